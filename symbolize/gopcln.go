package symbolize

import (
	"errors"

	"github.com/symfilter/symfilter/internal/gopcln"
	"github.com/symfilter/symfilter/internal/object"
)

// A goTable is the function table of a Go program. It is read at the first lookup of an address
// without debug information.
type goTable struct {
	tried   bool
	table   *gopcln.Table // nil: the file has no such table
	scratch []gopcln.Frame
}

// goFrames appends copies of the frames at addr from the table of a Go program. The error is
// object.ErrFault.
func (q *question) goFrames(dst []Frame, addr uint64) (frames []Frame, err error) {
	s, g := q.s, &q.m.goTable
	if g.tried && g.table == nil {
		return dst, nil
	}
	frames = dst
	err = guard(func() error {
		if !g.tried {
			g.tried = true
			if g.table, _ = gopcln.New(q.m.obj); g.table == nil { // no table: its only error
				return nil
			}
		}
		g.scratch = g.table.Lookup(g.scratch[:0], addr)
		for _, f := range g.scratch {
			n := &noName
			if s.o.Names != NoNames {
				n = s.names.ofFile(f.Name)
			}
			frames = append(frames, Frame{
				Func:      n.shown,
				Linkage:   n.linkage,
				PlainFunc: n.plain,
				File:      f.File,
				Line:      f.Line,
				Inlined:   f.Inlined,
				HasLine:   f.File != "",
			})
		}
		return nil
	})
	if err == nil {
		return frames, nil
	}
	q.complain(err)
	g.table = nil
	if !errors.Is(err, object.ErrFault) {
		err = nil
	}
	return dst, err
}

func (g *goTable) footprint() int64 {
	if g.table == nil {
		return 0
	}
	return g.table.Footprint()
}
