package symbolize

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/symindex"
)

// An indexed is the index of a file, with copies of the names and paths used so far. Many
// goroutines may use it at once.
type indexed struct {
	mu     sync.RWMutex    // held for reading during lookups, and for writing to close
	index  *symindex.Index // nil: closed
	o      *Options
	copies atomic.Pointer[copies]
	grown  atomic.Bool // set when copies have grown by muchText, until the ledger counts them
}

// copies holds copied names and paths of an index, by number.
type copies struct {
	names chunks[name]
	paths chunks[indexPath]
	size  atomic.Int64 // bytes of all
}

// chunks is an array of pointers, in pieces that are allocated when first needed.
type chunks[T any] []atomic.Pointer[[chunk]atomic.Pointer[T]]

const (
	chunk    = 128     // pointers allocated together
	muchText = 1 << 20 // growth in bytes that the ledger must count soon
)

// An indexPath is a path that was copied from an index.
type indexPath struct {
	filePath
	plain bool // printable ASCII
}

// openIndex opens the index of m's file, which is still open.
func (m *module) openIndex(o *Options, file *buildid.File) {
	if o.IndexDir == "" || o.Names == ShortNames || o.Names == ValgrindNames || o.Names == DebugNames || o.Details || m.holds < DebugInfo || m.obj.Placed() {
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
	if !o.indexes.Lacks(m.dir, source) {
		m.useIndex(o)
	}
}

// useIndex opens the index if it exists and is good, and removes a damaged one.
func (m *module) useIndex(o *Options) {
	x, err := m.dir.Open(m.source)
	switch {
	case err == nil:
		m.index = newIndexed(x, o)
		o.indexes.Has(m.dir, m.source)
	case errors.Is(err, symindex.ErrDamaged):
		m.dir.Remove(m.source)
	case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, symindex.ErrStale):
		m.source = symindex.Source{} // the directory cannot be read: make no index there either
	}
}

func newIndexed(index *symindex.Index, o *Options) *indexed {
	x := &indexed{index: index, o: o}
	x.forget()
	return x
}

func (x *indexed) forget() {
	if x == nil {
		return
	}
	pieces := func(n int) int { return (n + chunk - 1) / chunk }
	c := &copies{names: make(chunks[name], pieces(x.index.Names())), paths: make(chunks[indexPath], pieces(x.index.Files()))}
	c.size.Store(int64(8 * (len(c.names) + len(c.paths))))
	x.copies.Store(c)
}

// close closes the index after the running lookups have ended.
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

func (m *module) closeIndex() error {
	x := m.index
	m.index = nil
	return x.close()
}

// spoilt closes and removes the index of q's module, since the error err shows that the index is
// unreadable or invalid. Debug information answers afterwards. If the reader of the index panicked,
// the panic is reported as the module's fault.
func (q *question) spoilt(err error) {
	m := q.m
	m.closeIndex()
	m.dir.Remove(m.source)
	m.source = symindex.Source{}
	if err := m.affordable(&q.s.o); err != nil && m.dw != nil {
		m.drop(err)
	}
	if errors.Is(err, errPanic) && m.fault == nil {
		m.fault = fmt.Errorf("index: %w", err)
	}
}

// indexFrames appends the frames at addr from the index, as debugFrames does from debug
// information. ok is false if there is no usable index.
func (q *question) indexFrames(dst []Frame, addr uint64) (frames []Frame, ok bool) {
	x := q.m.index
	if x == nil {
		return dst, false
	}
	start := len(dst)
	err := guard(func() (err error) {
		dst, err = x.frames(dst, addr)
		return err
	})
	if err != nil {
		q.spoilt(err)
		return dst[:start], false
	}
	return dst, true
}

// indexSymbol returns the symbol at addr from the index. ok is false if there is no usable index,
// or if the symbol table may have a better answer.
func (q *question) indexSymbol(addr uint64) (v symbol, ok bool) {
	x := q.m.index
	if x == nil {
		return v, false
	}
	err := guard(func() (err error) {
		v, ok, err = x.symbol(addr)
		return err
	})
	if err != nil {
		q.spoilt(err)
		return symbol{}, false
	}
	return v, ok
}

// tryCode is like code, but fails if the answer would need a wait for anything except a lookup in
// the same unit. If ok is false, code may still have an answer. Unlike a question with Now, tryCode
// may parse an open file.
func (s *Symbolizer) tryCode(dst []Frame, l Location) (frames []Frame, ok bool) {
	e := s.cache.existing(l.ID, l.Name)
	if e == nil {
		return dst, false
	}
	if frames, ok := s.byIndex(e, dst, l.Addr); ok {
		return frames, true
	}
	if frames, ok := e.byCrew(dst, l.Addr); ok {
		return frames, true
	}
	if c := e.crew.Load(); c != nil && c.done.Load() {
		return dst, false // the question in log order reports the fault of the file
	}
	if !e.mu.TryLock() {
		return dst, false
	}
	if e.module == nil || e.module.dw == nil || e.task != nil || e.strikes > 0 || e.awaitsUnpacking() {
		e.mu.Unlock()
		return dst, false
	}
	var q question
	q.begin(s, e)
	start := len(dst)
	frames, err := q.code(dst, l.Addr)
	q.judge()
	q.end(err)
	return frames, err == nil && len(frames) > start
}

// byIndexAlone reports whether an index alone can give the answers that o selects.
func (o *Options) byIndexAlone() bool {
	return !o.NoInlines && o.Names == LinkageNames && !o.Reaching && !o.Details
}

// byIndex answers a code question from e's index alone.
func (s *Symbolizer) byIndex(e *entry, dst []Frame, addr uint64) (frames []Frame, ok bool) {
	x := e.index.Load()
	if x == nil || !s.o.byIndexAlone() {
		return dst, false
	}
	if dst, ok = x.code(dst, addr); ok {
		e.used.Store(s.cache.clock.Add(1))
		s.cache.counts.byIndex.Add(1)
	}
	if x.grown.Load() && x.grown.CompareAndSwap(true, false) {
		if e.mu.TryLock() {
			s.cache.account(e)
			e.mu.Unlock()
		}
		s.cache.relieve()
	}
	return dst, ok
}

// code is question.code for addresses that the index answers completely. For a damaged index it
// returns false. The next question that holds the entry's lock finds the damage, too, and removes
// the index.
func (x *indexed) code(dst []Frame, addr uint64) (frames []Frame, ok bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.index == nil {
		return dst, false
	}
	frames = dst
	err := guard(func() (err error) {
		if frames, err = x.frames(frames, addr); err != nil || len(frames) == len(dst) {
			return err
		}
		var symbol symbol
		if symbol, ok, err = x.symbol(addr); ok {
			frames[len(frames)-1].takeName(&symbol.Frame)
		}
		return err
	})
	if err != nil || !ok {
		return dst, false
	}
	return frames, true
}

// frames appends copies of the frames at addr. An error means that the index is damaged.
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

// symbol returns the symbol that covers addr. ok is false without a symbol that has a name and a
// size.
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

// name returns name i, empty if the index has no text for it.
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
	if x.o.NoDemangle {
		n.linkage = string(linkage)
		n.shown = n.linkage
	} else if len(shown) == 0 {
		n.linkage = string(linkage)
		n.shown = demangled(n.linkage, x.o.OldRustAsLLVM)
	} else if _, _, ok := oldRust(string(linkage)); ok && x.o.OldRustAsLLVM {
		n.linkage = string(linkage)
		n.shown = demangled(n.linkage, true)
	} else if len(linkage) > 0 {
		both := string(linkage) + string(shown)
		n.linkage, n.shown = both[:len(linkage)], both[len(linkage):]
	}
	n.plain = isPlain(n.shown)
	place.Store(n)
	x.copied(c, int64(unsafe.Sizeof(*n))+int64(len(n.linkage)+len(n.shown)))
	return n, nil
}

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

// place returns the address of pointer i, which other goroutines may set meanwhile.
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

// copied adds n bytes to the size of the copies, and drops all of them if they exceed an eighth of
// the budget.
func (x *indexed) copied(c *copies, n int64) {
	size := c.size.Add(n)
	if size > x.o.MaxMemory/8 && x.copies.Load() == c {
		x.forget()
	}
	if size/muchText != (size-n)/muchText {
		x.grown.Store(true)
	}
}
