package symbolize

import (
	"bytes"
	"context"
	"errors"

	"github.com/symfilter/symfilter/internal/object"
)

// A sourceText is the text or checksum of a source file in debug information. It is zero for most
// compilers, which record neither.
type sourceText struct {
	text   []byte // the whole file, a copy; nil: not embedded
	md5    [16]byte
	hasMD5 bool
}

// source returns the text or checksum in debug information for file, the [Frame.File] of a Frame at
// l. It waits for the module's file as code does. It uses no index: it opens the module's file, and
// inflates it if it is compressed.
func (s *Symbolizer) source(ctx context.Context, l Location, file string) (sourceText, error) {
	q, err := s.acquire(ctx, l)
	if err == nil {
		q, err = s.unpacked(ctx, q, l, (*entry).sourcesAwaitUnpacking)
	}
	if err != nil {
		return sourceText{}, err
	}
	text, err := q.source(q.m.obj.Place(l.Addr), file)
	q.judge()
	if err != nil {
		return sourceText{}, q.end(err)
	}
	if q.e.isProvisional() || q.e.sourcesAwaitUnpacking() {
		err = ErrPending
	}
	q.end(nil)
	return text, err
}

// source returns a copy of a source file's text or checksum from the debug information. If err is
// not nil, the module's file is unusable; complain records other errors.
func (q *question) source(addr uint64, file string) (s sourceText, err error) {
	m := q.m
	if m.dw == nil || m.packed {
		return s, nil
	}
	err = guard(func() error {
		found, ok, err := m.dw.Source(addr, file)
		if ok {
			s = sourceText{bytes.Clone(found.Text), found.MD5, found.HasMD5}
		}
		m.touched(m.dw.Read())
		return err
	})
	if err != nil {
		q.complain(err)
	}
	if brokeReader(err) {
		s = sourceText{}
	}
	if errors.Is(err, object.ErrFault) {
		return s, err
	}
	return s, nil
}
