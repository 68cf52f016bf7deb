package symbolize

import (
	"errors"
	"io/fs"
	"unsafe"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// indexed is a module's index, if it has one, with what was copied out of it.
type indexed struct {
	index  *symindex.Index // nil: none
	source symindex.Source // what an index must have been made from; without an ID: there can be none
	dir    symindex.Dir
	frames []symindex.Frame // scratch
	names  [][]name         // by number, in chunks that are made when they are needed; not read yet where linkage is empty
	paths  [][]indexPath    // by number; not read yet where text is empty
	text   int64            // bytes of names and paths
}

// openIndex opens the index of m's file, which is still open.
func (m *module) openIndex(o *Options, file *buildid.File) {
	if o.IndexDir == "" || o.Names == ShortNames || file.OS() == nil || m.holds < DebugInfo {
		return
	}
	raw, err := object.BuildID(file, file.Size())
	if err != nil {
		return
	}
	id, err := buildid.FromBytes(raw)
	if err != nil {
		return
	}
	source, ok := sourceOf(file, id)
	if !ok || hasSupplement(m.obj) {
		return
	}
	m.source, m.dir = source, symindex.Dir{Path: o.IndexDir, Budget: o.IndexBudget}
	m.useIndex()
}

// useIndex opens the index if it is there and good.
func (m *module) useIndex() {
	x, err := m.dir.Open(m.source)
	switch {
	case err == nil:
		m.index = x
	case errors.Is(err, symindex.ErrDamaged):
		m.dir.Remove(m.source)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, symindex.ErrStale):
		m.source = symindex.Source{} // the directory cannot be read: it need not be written
	}
}

// closeIndex closes the index. What was copied out of it is forgotten.
func (x *indexed) closeIndex() error {
	if x.index == nil {
		return nil
	}
	err := x.index.Close()
	x.index = nil
	x.forget()
	return err
}

// forget gives up what was copied.
func (x *indexed) forget() { x.frames, x.names, x.paths, x.text = nil, nil, nil, 0 }

func (x *indexed) footprint() int64 {
	if x.index == nil {
		return 0
	}
	return x.index.Footprint() + x.text + int64(cap(x.names)+cap(x.paths))*int64(unsafe.Sizeof([]name{}))
}

// spoilt takes an index that contradicts itself, or cannot be read, out of
// use: debug information answers from now on.
func (m *module) spoilt(budget int64) {
	m.closeIndex()
	m.dir.Remove(m.source)
	m.source = symindex.Source{}
	if err := m.affordable(budget); err != nil && m.dw != nil {
		m.dw.Close()
		m.dw, m.fault = nil, err
	}
}

// indexFrames is debugFrames by the index; ok is false where it has none.
func (s *Symbolizer) indexFrames(m *module, dst []Frame, addr uint64) (frames []Frame, ok bool) {
	if m.index == nil {
		return dst, false
	}
	start := len(dst)
	err := guard(func() (err error) {
		if m.indexed.frames, err = m.index.Lookup(m.indexed.frames[:0], addr); err != nil {
			return err
		}
		for _, f := range m.indexed.frames {
			var n name
			if f.Name > 0 && s.o.Names != NoNames {
				if n, err = m.indexName(s, f.Name-1); err != nil {
					return err
				}
			}
			frame := Frame{Func: n.shown, Linkage: n.linkage, Line: f.Line, Column: f.Column, Inlined: f.Inlined, PlainFunc: n.plain}
			if f.File > 0 {
				p, err := m.indexPath(s, f.File-1)
				if err != nil {
					return err
				}
				frame.File, frame.CompDir, frame.Dir, frame.HasLine, frame.PlainFile = p.text, p.comp, p.dir, true, p.plain
			}
			dst = append(dst, frame)
		}
		return nil
	})
	if err != nil {
		m.spoilt(s.o.MaxMemory)
		return dst[:start], false
	}
	return dst, true
}

// An indexPath is a path that was copied.
type indexPath struct {
	filePath
	plain bool // printable ASCII
}

// chunk is how many names, or paths, get memory together.
const chunk = 128

// slot returns the i-th of what chunks hold, of n in all.
func slot[T any](x *indexed, chunks *[][]T, i uint32, n int) *T {
	if *chunks == nil {
		*chunks = make([][]T, (n+chunk-1)/chunk)
	}
	c := &(*chunks)[i/chunk]
	if *c == nil {
		*c = make([]T, chunk)
		x.text += chunk * int64(unsafe.Sizeof((*c)[0]))
	}
	return &(*c)[i%chunk]
}

// indexName returns the name of that number.
func (m *module) indexName(s *Symbolizer, i uint32) (name, error) {
	if int64(i) >= int64(m.index.Names()) {
		return name{}, symindex.ErrDamaged
	}
	n := slot(&m.indexed, &m.names, i, m.index.Names())
	if n.linkage != "" {
		return *n, nil
	}
	linkage, shown, err := m.index.Name(i)
	if err != nil || len(linkage) == 0 {
		return name{}, err
	}
	v := name{linkage: string(linkage)}
	v.shown = v.linkage
	if !s.o.NoDemangle && &shown[0] != &linkage[0] {
		v.shown = string(shown)
	}
	v.plain = isPlain(v.shown)
	*n = v
	m.copied(int64(len(linkage)+len(shown)), s.o.MaxMemory/8)
	return v, nil
}

func (m *module) indexPath(s *Symbolizer, i uint32) (indexPath, error) {
	if int64(i) >= int64(m.index.Files()) {
		return indexPath{}, symindex.ErrDamaged
	}
	p := slot(&m.indexed, &m.paths, i, m.index.Files())
	if p.text != "" {
		return *p, nil
	}
	text, comp, dir, err := m.index.File(i)
	if err != nil {
		return indexPath{}, err
	}
	v := indexPath{filePath{string(text), comp, dir}, false}
	v.plain = isPlain(v.text)
	*p = v
	m.copied(int64(len(text)), s.o.MaxMemory/8)
	return v, nil
}

// copied counts what was copied, and forgets it when it is more than budget.
func (x *indexed) copied(n, budget int64) {
	if x.text += n; x.text > budget {
		x.names, x.paths, x.text = nil, nil, 0
	}
}

// indexSymbol is symbol by the index; ok is false where other tables may know
// better.
func (s *Symbolizer) indexSymbol(m *module, addr uint64) (v symbol, ok bool) {
	if m.index == nil || m.symbolObject() != m.obj {
		return v, false
	}
	err := guard(func() error {
		sym, found, err := m.index.Symbol(addr)
		if err != nil || !found || sym.Size == 0 || addr-sym.Addr >= sym.Size {
			return err
		}
		n, err := m.indexName(s, sym.Name)
		if err != nil || n.linkage == "" {
			return err
		}
		v.addr, v.size = sym.Addr, sym.Size
		v.Func, v.Linkage, v.PlainFunc, v.FromSymbol = n.shown, n.linkage, n.plain, true
		ok = true
		return nil
	})
	if err != nil {
		m.spoilt(s.o.MaxMemory)
		return symbol{}, false
	}
	return v, ok
}
