package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

const (
	// maxSource bounds a source file, in bytes.
	maxSource = 16 << 20

	maxSourcePath = 4 << 10 // bytes of a path: PATH_MAX
	maxSourceTail = 117     // bytes of a path that are in the name in the cache: NAME_MAX/2 less the hash and a NUL, as in elfutils
)

// Source returns the text of a source file, from the cache or a server. path is its absolute path
// in the debug information of the build ID. Source calls note, which may be nil, for each place
// without the file. If ctx ends, Source returns at once.
//
// The error wraps [fs.ErrNotExist] if every server answered that it has no such file, or if no
// server can have the path. A path that leads above its root is refused: a proxy that shortens it
// would request something else. A source file has no build ID: its text is as trustworthy as its
// server.
func (c *Client) Source(ctx context.Context, id buildid.ID, path string, note func(buildid.Attempt)) ([]byte, error) {
	if note == nil {
		note = func(buildid.Attempt) {}
	}
	f, err := c.openSource(ctx, id, path, note)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size() > maxSource {
		return nil, fmt.Errorf("debuginfod: source file %.200q of %s: more than %d MiB", path, id, maxSource>>20)
	}
	text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		return nil, fmt.Errorf("debuginfod: %w", err)
	}
	return text, nil
}

func (c *Client) openSource(ctx context.Context, id buildid.ID, path string, note func(buildid.Attempt)) (*buildid.File, error) {
	if id.IsZero() || len(path) < 2 || path[0] != '/' || len(path) > maxSourcePath || strings.ContainsRune(path, 0) || !filepath.IsLocal(path[1:]) {
		return nil, fmt.Errorf("debuginfod: source file %.200q: a server needs a build ID and a valid absolute path: %w", path, fs.ErrNotExist)
	}
	f, err := c.sourceFile(ctx, key{id: id, source: path, forwarded: forwarded(ctx)}, note)
	if err != nil {
		return nil, fmt.Errorf("debuginfod: source file %.200q of %s: %w", path, id, err)
	}
	return f, nil
}

func (c *Client) sourceFile(ctx context.Context, k key, note func(buildid.Attempt)) (*buildid.File, error) {
	if !c.o.Offline && len(c.servers) > 0 {
		return c.find(ctx, k, k.source, note)
	}
	f, l, err := c.lookUp(k)
	switch {
	case f != nil:
		return f, nil
	case err != nil:
		return nil, errors.Join(fs.ErrNotExist, err)
	}
	note(buildid.Attempt{Where: c.cache.where(), Reason: l.reason})
	return nil, fmt.Errorf("not in the cache, and no server is asked: %w", fs.ErrNotExist)
}

// most returns the maximum size of k's file, in bytes.
func (c *Client) most(k key) int64 {
	if k.source != "" {
		return min(c.o.MaxSize, maxSource)
	}
	return c.o.MaxSize
}

// sourceName returns the name of a source file in the cache, as elfutils 0.192 forms it
// (path_escape, PR32218). The name has a hash of the path, and the end of the path. # replaces all
// characters but ASCII letters, digits, dots, hyphens and underscores.
func sourceName(path string) string {
	name := fmt.Appendf(nil, "source-%08x-", djb2(path))
	for _, c := range []byte(path[max(0, len(path)-maxSourceTail):]) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '_':
		default:
			c = '#'
		}
		name = append(name, c)
	}
	return string(name)
}

// djb2 is the hash in elfutils' path_escape. Characters are signed, as on x86.
func djb2(s string) uint32 {
	h := uint32(5381)
	for i := range len(s) {
		h = h<<5 + h + uint32(int32(int8(s[i])))
	}
	return h
}
