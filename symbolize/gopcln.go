package symbolize

import (
	"errors"
	"runtime/debug"

	"github.com/symfilter/symfilter/internal/gopcln"
)

// goTable is the table of a Go program, looked for when the first address has
// no debug information.
type goTable struct {
	tried   bool
	table   *gopcln.Table // nil: there is none
	scratch []gopcln.Frame
}

// goFrames appends what the table of a Go program says of addr, in copies. The
// error is errFault.
func (s *Symbolizer) goFrames(m *module, dst []Frame, addr uint64) (frames []Frame, err error) {
	g := &m.goTable
	if g.tried && g.table == nil {
		return dst, nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			frames, err = dst, caught(r)
			m.complain(err)
			g.table = nil
			if !errors.Is(err, errFault) {
				err = nil
			}
		}
	}()
	if !g.tried {
		g.tried = true
		if g.table, _ = gopcln.New(m.obj); g.table == nil { // there is none, the only error
			return dst, nil
		}
	}
	g.scratch = g.table.Lookup(g.scratch[:0], addr)
	frames = dst
	for _, f := range g.scratch {
		var n name
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
	return frames, nil
}

func (g *goTable) footprint() int64 {
	if g.table == nil {
		return 0
	}
	return g.table.Footprint()
}
