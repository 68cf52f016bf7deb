package debuginfod

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
)

// info examines the cache. It changes nothing.
func (c *diskCache) info() access.CacheInfo {
	info := access.CacheInfo{Dir: c.dir, Clean: defaultCleanInterval, Unused: defaultMaxUnused, Miss: defaultMiss}
	problem := func(format string, args ...any) {
		if len(info.Problems) < maxProblems {
			info.Problems = append(info.Problems, fmt.Sprintf(format, args...))
		}
	}
	root, err := c.open()
	if errors.Is(err, fs.ErrNotExist) {
		return info
	}
	if err != nil {
		info.Exists = !errors.Is(err, errNoCache)
		problem("the cache is not used: %v", lastError(err))
		return info
	}
	defer root.Close()
	info.Exists = true
	if st, err := root.Stat("."); err == nil {
		info.Mode = st.Mode()
	}
	info.Clean = c.control(root, cleanIntervalFile, defaultCleanInterval, false)
	info.Unused = c.control(root, maxUnusedFile, defaultMaxUnused, false)
	info.Miss = c.control(root, missFile, defaultMiss, false)
	if st, err := root.Lstat(cleanIntervalFile); err == nil {
		info.LastCleaned = st.ModTime()
	}
	top, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		problem("the cache cannot be listed: %v", lastError(err))
	}
	seen := 0
	for _, dir := range top {
		if !hexName(dir.Name()) {
			continue
		}
		st, err := root.Lstat(dir.Name())
		if err == nil {
			err = checkDir(st)
		}
		if err != nil {
			problem("%q is not used: %v", dir.Name(), lastError(err))
			continue
		}
		entries, _ := fs.ReadDir(root.FS(), dir.Name())
		for _, e := range entries {
			if seen++; seen > maxCacheFiles {
				problem("the cache has more than %d files; further files are not counted", maxCacheFiles)
				return info
			}
			st, err := e.Info()
			if err != nil || strings.HasPrefix(e.Name(), missedByPrefix) {
				continue
			}
			name := dir.Name() + "/" + e.Name()
			err = checkOwner(st)
			switch {
			case !st.Mode().IsRegular():
				problem("%q is not used: not a regular file", name)
				continue
			case err != nil:
				problem("%q is not used: %v", name, err)
				continue
			}
			info.Size += st.Size()
			switch {
			case tempName(e.Name()):
				info.Temporary++
			case st.Size() == 0:
				info.Misses++
			case checkMode(st) != nil:
				problem("%q is not used: %v", name, checkMode(st))
			default:
				info.Files++
			}
		}
	}
	return info
}

// probe asks one server for the debug file of id, or of a random ID if id is zero. name is the
// server's URL in [Client.Servers]. It makes one request and reads only the beginning of the
// answer. The outcome does not affect later requests.
func (c *Client) probe(ctx context.Context, name string, id buildid.ID) access.ProbeResult {
	r := access.ProbeResult{Server: name}
	i := slices.IndexFunc(c.servers, func(s *server) bool { return s.name == name })
	if i < 0 {
		r.Answer = "not a server of this client"
		return r
	}
	s := c.servers[i]
	switch {
	case s.refused != "":
		r.Answer = s.refused
		return r
	case c.o.Offline:
		r.Answer = "not asked: offline"
		return r
	}
	if id.IsZero() {
		raw := make([]byte, 20)
		rand.Read(raw)
		id, _ = buildid.FromBytes(raw)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.MaxTime, errTotal)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(c.ctx, func() { stop(ErrClosed) })()
	w := newWatch(c.timeout, stop)
	defer w.stop()
	began := time.Now()
	resp, err := c.get(ctx, s, key{id: id, kind: buildid.Debug}.url())
	r.Took = time.Since(began)
	if err != nil {
		r.Answer = c.failed(ctx, err, began, false).reason
		return r
	}
	defer resp.Body.Close()
	r.Reachable = true
	if resp.StatusCode != http.StatusOK {
		miss, f := refused(resp, c.o.MaxSize)
		if r.Works = miss; miss {
			r.Answer = fmt.Sprintf("%d: no such file", resp.StatusCode)
		} else {
			r.Answer = f.reason
		}
		return r
	}
	var head [len(elfMagic)]byte
	if _, err := io.ReadFull(resp.Body, head[:]); err != nil || string(head[:]) != elfMagic {
		r.Answer = "sent something other than an ELF file"
		return r
	}
	r.Works, r.Has, r.Answer = true, true, "has the file"
	return r
}
