package symbolize

import (
	"errors"
	"io/fs"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/symindex"
)

// An indexed is the index of a file, with what was copied out of it. Many
// goroutines may ask it at once.
type indexed struct {
	mu     sync.RWMutex    // held for reading by questions, and for writing to end them
	index  *symindex.Index // nil: closed
	o      *Options
	copies atomic.Pointer[copies]
	grown  atomic.Bool // by more than a little since it was asked last
}

// copies are names and paths of an index by their numbers.
type copies struct {
	names chunks[name]
	paths chunks[indexPath]
	size  atomic.Int64 // bytes of all
}

// chunks are pointers by number, in pieces that are made when they are needed.
type chunks[T any] []atomic.Pointer[[chunk]atomic.Pointer[T]]

const (
	chunk    = 128     // pointers that get memory together
	muchText = 1 << 20 // bytes that are more than a little
)

// An indexPath is a path that was copied.
type indexPath struct {
	filePath
	plain bool // printable ASCII
}

// openIndex opens the index of m's file, which is still open.
func (m *module) openIndex(o *Options, file *buildid.File) {
	if o.IndexDir == "" || o.Names == ShortNames || file.OS() == nil || m.holds < DebugInfo {
		return
	}
	raw, err := m.obj.BuildID()
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
	m.useIndex(o)
}

// useIndex opens the index if it is there and good.
func (m *module) useIndex(o *Options) {
	x, err := m.dir.Open(m.source)
	switch {
	case err == nil:
		m.index = newIndexed(x, o)
	case errors.Is(err, symindex.ErrDamaged):
		m.dir.Remove(m.source)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, symindex.ErrStale):
		m.source = symindex.Source{} // the directory cannot be read: it need not be written
	}
}

func newIndexed(index *symindex.Index, o *Options) *indexed {
	x := &indexed{index: index, o: o}
	x.forget()
	return x
}

// forget gives up what was copied.
func (x *indexed) forget() {
	if x == nil {
		return
	}
	pieces := func(n int) int { return (n + chunk - 1) / chunk }
	c := &copies{names: make(chunks[name], pieces(x.index.Names())), paths: make(chunks[indexPath], pieces(x.index.Files()))}
	c.size.Store(int64(8 * (len(c.names) + len(c.paths))))
	x.copies.Store(c)
}

// close closes the index, when the questions at work are answered.
func (x *indexed) close() error {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	index := x.index
	x.index = nil
	if index == nil {
		return nil
	}
	return index.Close()
}

func (x *indexed) footprint() int64 {
	if x == nil {
		return 0
	}
	return x.index.Footprint() + x.copies.Load().size.Load()
}

// closeIndex closes m's index, if it has one.
func (m *module) closeIndex() error {
	x := m.index
	m.index = nil
	return x.close()
}

// spoilt takes an index that contradicts itself, or cannot be read, out of
// use: debug information answers from now on.
func (m *module) spoilt(o *Options) {
	m.closeIndex()
	m.dir.Remove(m.source)
	m.source = symindex.Source{}
	if err := m.affordable(o); err != nil && m.dw != nil {
		m.dw.Close()
		m.dw, m.fault = nil, err
	}
}

// indexFrames is debugFrames by the index; ok is false where there is none.
func (s *Symbolizer) indexFrames(m *module, dst []Frame, addr uint64) (frames []Frame, ok bool) {
	if m.index == nil {
		return dst, false
	}
	start := len(dst)
	err := guard(func() (err error) {
		dst, err = m.index.frames(dst, addr)
		return err
	})
	if err != nil {
		m.spoilt(&s.o)
		return dst[:start], false
	}
	return dst, true
}

// indexSymbol is symbol by the index; ok is false where other tables may know
// better.
func (s *Symbolizer) indexSymbol(m *module, addr uint64) (v symbol, ok bool) {
	if m.index == nil {
		return v, false
	}
	err := guard(func() (err error) {
		v, ok, err = m.index.symbol(addr)
		return err
	})
	if err != nil {
		m.spoilt(&s.o)
		return symbol{}, false
	}
	return v, ok
}

// AtOnce is Code where the answer can be had without waiting for anything, not
// even for another question about the same file; ok is false where Code may
// know more.
func (s *Symbolizer) AtOnce(dst []Frame, l Location) (frames []Frame, ok bool) {
	e := s.known(l)
	if e == nil {
		return dst, false
	}
	if frames, ok := s.byIndex(e, dst, l.Addr); ok {
		return frames, true
	}
	if !e.mu.TryLock() {
		return dst, false
	}
	m := e.module
	if m == nil || m.dw == nil || e.finding || e.awaitsUnpacking() {
		e.mu.Unlock()
		return dst, false
	}
	m.began = time.Now()
	e.used.Store(s.clock.Add(1))
	start := len(dst)
	frames, err := s.code(m, dst, l.Addr)
	s.judge(e)
	s.release(e, err)
	return frames, err == nil && len(frames) > start
}

// IndexedOnly is AtOnce by an index alone: it keeps nobody from asking about
// the same file.
func (s *Symbolizer) IndexedOnly(dst []Frame, l Location) (frames []Frame, ok bool) {
	e := s.known(l)
	if e == nil {
		return dst, false
	}
	return s.byIndex(e, dst, l.Addr)
}

// known returns the entry of l, or nil.
func (s *Symbolizer) known(l Location) *entry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil
	}
	return s.entries[keyOf(l.ID, l.Name)]
}

// byIndex is Code by e's index alone.
func (s *Symbolizer) byIndex(e *entry, dst []Frame, addr uint64) (frames []Frame, ok bool) {
	x := e.index.Load()
	if x == nil || s.o.NoInlines || s.o.Names != LinkageNames || s.o.Reaching {
		return dst, false
	}
	if dst, ok = x.code(dst, addr); ok {
		e.used.Store(s.clock.Add(1))
	}
	if x.grown.Load() && x.grown.CompareAndSwap(true, false) {
		if e.mu.TryLock() {
			s.account(e)
			e.mu.Unlock()
		}
		s.relieve()
	}
	return dst, ok
}

// code is Symbolizer.code, for addresses of which the index knows all there is
// to know. What is wrong with the index is found again by who may close it.
func (x *indexed) code(dst []Frame, addr uint64) (frames []Frame, ok bool) {
	start := len(dst)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.index == nil {
		return dst, false
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			frames, ok = dst[:start], false
		}
	}()
	frames, err := x.frames(dst, addr)
	if err != nil || len(frames) == start {
		return dst, false
	}
	symbol, ok, err := x.symbol(addr)
	if err != nil || !ok {
		return dst, false
	}
	frames[len(frames)-1].takeName(&symbol.Frame)
	return frames, true
}

// frames appends the frames at addr, in copies; an error says that the index
// cannot be believed.
func (x *indexed) frames(dst []Frame, addr uint64) ([]Frame, error) {
	start := len(dst)
	var room [8]symindex.Frame
	found, err := x.index.Lookup(room[:0], addr)
	if err != nil {
		return dst, err
	}
	for i := range found {
		f := &found[i]
		dst = append(dst, Frame{Line: f.Line, Column: f.Column, Inlined: f.Inlined})
		frame := &dst[len(dst)-1]
		if f.Name > 0 && x.o.Names != NoNames {
			n, err := x.name(f.Name - 1)
			if err != nil {
				return dst[:start], err
			}
			frame.Func, frame.Linkage, frame.PlainFunc = n.shown, n.linkage, n.plain
		}
		if f.File > 0 {
			p, err := x.path(f.File - 1)
			if err != nil {
				return dst[:start], err
			}
			frame.File, frame.CompDir, frame.Dir, frame.HasLine, frame.PlainFile = p.text, p.comp, p.dir, true, p.plain
		}
	}
	return dst, nil
}

// symbol returns the symbol that covers addr; ok is false where there is none,
// or none with a size.
func (x *indexed) symbol(addr uint64) (v symbol, ok bool, err error) {
	sym, found, err := x.index.Symbol(addr)
	if err != nil || !found || sym.Size == 0 || addr-sym.Addr >= sym.Size {
		return v, false, err
	}
	n, err := x.name(sym.Name)
	if err != nil || n.linkage == "" {
		return v, false, err
	}
	v.addr, v.size = sym.Addr, sym.Size
	v.Func, v.Linkage, v.PlainFunc, v.FromSymbol = n.shown, n.linkage, n.plain, true
	return v, true, nil
}

// name returns the name of that number, which is without text where the index
// has none.
func (x *indexed) name(i uint32) (*name, error) {
	c := x.copies.Load()
	if int(i)/chunk >= len(c.names) {
		return nil, symindex.ErrDamaged
	}
	place := c.names.place(i, c)
	if n := place.Load(); n != nil {
		return n, nil
	}
	linkage, shown, err := x.index.Name(i)
	if err != nil {
		return nil, err
	}
	n := &name{}
	if len(linkage) > 0 && (x.o.NoDemangle || &shown[0] == &linkage[0]) {
		n.linkage = string(linkage)
		n.shown = n.linkage
	} else if len(linkage) > 0 {
		both := string(linkage) + string(shown)
		n.linkage, n.shown = both[:len(linkage)], both[len(linkage):]
	}
	n.plain = isPlain(n.shown)
	place.Store(n)
	x.copied(c, int64(unsafe.Sizeof(*n))+int64(len(linkage)+len(shown)))
	return n, nil
}

// path returns the path of that number.
func (x *indexed) path(i uint32) (*indexPath, error) {
	c := x.copies.Load()
	if int(i)/chunk >= len(c.paths) {
		return nil, symindex.ErrDamaged
	}
	place := c.paths.place(i, c)
	if p := place.Load(); p != nil {
		return p, nil
	}
	text, comp, dir, err := x.index.File(i)
	if err != nil {
		return nil, err
	}
	p := &indexPath{filePath: filePath{string(text), comp, dir}}
	p.plain = isPlain(p.text)
	place.Store(p)
	x.copied(c, int64(unsafe.Sizeof(*p))+int64(len(text)))
	return p, nil
}

// place returns where the pointer of that number is, which others may store
// meanwhile.
func (all chunks[T]) place(i uint32, c *copies) *atomic.Pointer[T] {
	piece := &all[i/chunk]
	p := piece.Load()
	if p == nil {
		p = new([chunk]atomic.Pointer[T])
		if !piece.CompareAndSwap(nil, p) {
			p = piece.Load()
		} else {
			c.size.Add(int64(unsafe.Sizeof(*p)))
		}
	}
	return &p[i%chunk]
}

// copied counts what was copied, and forgets it all when it is too much.
func (x *indexed) copied(c *copies, n int64) {
	size := c.size.Add(n)
	if size > x.o.MaxMemory/8 && x.copies.Load() == c {
		x.forget()
	}
	if size/muchText != (size-n)/muchText {
		x.grown.Store(true)
	}
}
