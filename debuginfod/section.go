package debuginfod

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

const noteSection = ".note.gnu.build-id"

// Section returns a section of the file with the build ID. It asks the servers in order. A server
// must first send the note of the build ID, with this ID. Nothing is kept in the cache. The error
// wraps [fs.ErrNotExist] if every server answered that it has no such section or file, if no server
// may be asked, or if id or name is invalid. Older servers serve no sections at all.
func (c *Client) Section(ctx context.Context, id buildid.ID, name string) ([]byte, error) {
	if id.IsZero() || name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == '/' || r >= 0x7f }) {
		return nil, fmt.Errorf("debuginfod: section %.40q: %w", name, fs.ErrNotExist)
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.running.Add(1) // Close must wait for this call
	}
	c.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	defer c.running.Done()
	ctx, cancel := context.WithTimeoutCause(ctx, c.o.MaxTime, errTotal)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(c.ctx, func() { end(ErrClosed) })()

	var failed error
	for _, s := range c.servers {
		if c.o.Offline || s.refused != "" {
			continue
		}
		if !c.admitID(id) {
			return nil, fmt.Errorf("debuginfod: section %s of %s: %w", name, id, errTooMany)
		}
		data, err := c.sectionOf(ctx, s, id, name)
		if err == nil {
			return data, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("debuginfod: section %s of %s: %w", name, id, context.Cause(ctx))
		}
		if failed == nil && !errors.Is(err, fs.ErrNotExist) {
			failed = fmt.Errorf("debuginfod: section %s of %s: %s: %w", name, id, s.name, err)
		}
	}
	if failed != nil {
		return nil, failed
	}
	return nil, fmt.Errorf("debuginfod: section %s of %s: %w", name, id, fs.ErrNotExist)
}

// sectionOf fetches a section from one server. It first fetches the note with the build ID, and
// fails if the note is of another build.
func (c *Client) sectionOf(ctx context.Context, s *server, id buildid.ID, name string) ([]byte, error) {
	note, err := c.rawSection(ctx, s, id, noteSection)
	if err != nil {
		return nil, err
	}
	if got, err := noteID(note); err != nil {
		return nil, &failure{reason: "sent a note without a build ID"}
	} else if got != id {
		return nil, &failure{reason: fmt.Sprintf("sent the note of another build, %s", got)}
	}
	if name == noteSection {
		return note, nil
	}
	return c.rawSection(ctx, s, id, name)
}

// rawSection fetches one section from one server, without a check of the build ID.
func (c *Client) rawSection(ctx context.Context, s *server, id buildid.ID, name string) ([]byte, error) {
	all := c.contenders(key{})
	for _, e := range all {
		e.final = e.s != s
	}
	most := min(c.o.MaxSize, maxSection)
	for {
		a := c.race(ctx, all, "/buildid/"+id.String()+"/section/"+name, "")
		if a == nil {
			return nil, summaryOf(all, s)
		}
		var b bytes.Buffer
		_, f := c.copyBody(&b, a, most, func(int64) {})
		a.close()
		c.answered(a, f)
		if f == nil {
			return b.Bytes(), nil
		}
		if a.c.fault = f; f.canceled || !c.mayRetry(a.c, f) {
			return nil, f
		}
	}
}

// summaryOf returns the reason why s sent no section: fs.ErrNotExist if it has no such file, or its
// last failure.
func summaryOf(all []*contender, s *server) error {
	for _, e := range all {
		switch {
		case e.s != s:
		case e.miss:
			return fs.ErrNotExist
		case e.fault != nil:
			return e.fault
		}
	}
	return errors.New("not asked")
}
