package symbolize

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// An indexer writes the index of one file. Several goroutines read its units. Their results are
// joined in the order of the units, so that the same file always gives the same index.
type indexer struct {
	dw      *dwarf.Data
	obj     *object.File
	table   iter.Seq[object.Symbol]
	w       *symindex.Writer
	workers int
	begin   func()              // called in each goroutine that ordered starts; may be nil
	done    func(units, of int) // progress; may be nil

	stretches []dwarf.Stretch
	units     []unitStretches

	byRef   map[uint64]uint32 // numbers of names, by their position in debug information
	names   numbered[string]  // names, which alias the file
	paths   numbered[filePath]
	symbols []symindex.Symbol
	read    atomic.Int64 // bytes of units read since the file's pages were released
	spent   atomic.Int64 // steps so far
	limit   int64        // steps
}

type unitStretches struct {
	unit      uint64
	number    uint32
	stretches []dwarf.Stretch
}

// A filePath is a path with the lengths of its compilation directory and of all its directories.
type filePath struct {
	text      string
	comp, dir int
}

const (
	// bytes of a mapped file that may stay in memory: few units are read a second time
	pagesKept     = 24 << 20
	namesExpected = 1 << 14 // names of a medium-sized program
	// bytes of memory that reading one name takes: less than a page, since names are close together
	nameTouched = 1 << 10
	namesAtOnce = 1 << 10 // names demangled by one goroutine at a time
)

// errLaterPart reports a file that cannot be indexed: its debug information needs other files,
// which may be missing later.
var errLaterPart = errors.New("parts of its debug information are in other files")

// hasSupplement reports whether names may be in a supplementary file.
func hasSupplement(obj *object.File) bool {
	_, gnu := obj.Section(".gnu_debugaltlink")
	_, sup := obj.Section(".debug_sup")
	return gnu || sup
}

// newIndexer returns an indexer of a file, which must stay open. Afterwards other goroutines may
// use obj and dw.
func newIndexer(obj *object.File, dw *dwarf.Data) *indexer {
	return &indexer{
		dw: dw.Fork(), obj: obj, table: obj.Symbols(), workers: 1,
		byRef: make(map[uint64]uint32, namesExpected),
		names: numbered[string]{number: make(map[string]uint32, namesExpected)},
		paths: numbered[filePath]{number: make(map[filePath]uint32)},
		limit: maxOwed + indexSteps*debugBytes(obj),
	}
}

// debugBytes returns the size of the debug information for an index.
func debugBytes(obj *object.File) (n int64) {
	for _, name := range []string{".debug_info", ".debug_line"} {
		data, _ := obj.Data(name) // an unreadable section adds nothing
		n += int64(len(data))
	}
	return n
}

// charge adds the steps that d has taken. It fails if the index costs too much.
func (x *indexer) charge(d *dwarf.Data) error {
	steps, _ := d.Spent()
	if x.spent.Add(steps) > x.limit {
		return errDear
	}
	return nil
}

func (x *indexer) plan() (err error) {
	if hasSupplement(x.obj) {
		return errLaterPart
	}
	x.stretches, err = x.dw.Stretches()
	if err = cmp.Or(x.charge(x.dw), err); err != nil {
		return err
	}
	byUnit := slices.Clone(x.stretches)
	slices.SortStableFunc(byUnit, func(a, b dwarf.Stretch) int { return cmp.Compare(a.Unit, b.Unit) })
	for i := 0; i < len(byUnit); {
		j := i + 1
		for j < len(byUnit) && byUnit[j].Unit == byUnit[i].Unit {
			j++
		}
		x.units = append(x.units, unitStretches{unit: byUnit[i].Unit, stretches: byUnit[i:j]})
		i = j
	}
	for sym := range x.table {
		x.symbols = append(x.symbols, symindex.Symbol{Addr: sym.Addr, Size: sym.Size, Name: x.name(sym.Name)})
	}
	return nil
}

// enter is called at the start of each worker. It calls begin unless the worker runs in the
// caller's goroutine.
func (x *indexer) enter() {
	if x.begin != nil && x.workers > 1 {
		x.begin()
	}
}

func (x *indexer) write(ctx context.Context, w *symindex.Writer) error {
	x.w = w
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := x.walk(ctx); err != nil {
		return err
	}
	numbers := make(map[uint64]uint32, len(x.units))
	for _, u := range x.units {
		numbers[u.unit] = u.number
	}
	for _, s := range x.stretches {
		w.AddSpan(s.Lo, s.Hi, numbers[s.Unit])
	}
	for _, s := range x.symbols {
		w.AddSymbol(s)
	}
	for _, p := range x.paths.all {
		w.AddFile(p.text, p.comp, p.dir)
	}
	return x.writeNames(ctx)
}

func (x *indexer) name(b []byte) uint32 {
	text := ""
	if len(b) > 0 {
		text = unsafe.String(&b[0], min(len(b), maxName))
	}
	return x.names.of(text)
}

// numbered is a list of distinct values. The number of a value is its index in all.
type numbered[T comparable] struct {
	all    []T
	number map[T]uint32
}

func (s *numbered[T]) of(v T) uint32 {
	n, ok := s.number[v]
	if !ok {
		n = uint32(len(s.all))
		s.all = append(s.all, v)
		s.number[v] = n
	}
	return n
}

func (x *indexer) walk(ctx context.Context) error {
	return ordered(ctx, x.workers, len(x.units), func() func(int) (*unitIndex, error) {
		x.enter()
		d := x.dw.Fork()
		return func(i int) (u *unitIndex, err error) {
			err = guard(func() error {
				u, err = x.unit(d, &x.units[i])
				return err
			})
			return u, err
		}
	}, func(i int, u *unitIndex) error {
		for j, ref := range u.names {
			n, ok := x.byRef[ref]
			if !ok {
				n = x.name(x.dw.Name(ref))
				x.byRef[ref] = n
				x.touched(nameTouched)
			}
			u.nameNumbers[j] = n
		}
		files := make([]uint32, len(u.files))
		for j, p := range u.files {
			files[j] = x.paths.of(p)
		}
		x.units[i].number = x.w.AddUnit(&u.Unit, u.nameNumbers, files)
		if x.done != nil {
			x.done(i+1, len(x.units))
		}
		return nil
	})
}

// A unitIndex is one unit's part of an index.
type unitIndex struct {
	symindex.Unit
	names       []uint64
	nameNumbers []uint32
	files       []filePath
}

// A unitWriter fills a unitIndex.
type unitWriter struct {
	*unitIndex
	names map[uint64]uint32
	// for each file of the unit, 1 plus the result of the method file; 0 before the first call for
	// this file
	files  []uint32
	number []uint32 // for each call, its number from AddCall; 0 if not added yet
	usual  []uint32 // for each call, its symindex.Call.Usual
	paths  func(uint32) (string, int, int)
}

const maxUnitFiles = 1 << 20 // files with a higher number have no path

func (x *indexer) unit(d *dwarf.Data, u *unitStretches) (*unitIndex, error) {
	b := unitWriter{unitIndex: &unitIndex{}, names: make(map[uint64]uint32, 64)}
	begun := 0 // stretches that have begun
	w, err := d.Walk(u.unit, u.stretches, func(w *dwarf.Unit, p dwarf.Piece) {
		if b.paths == nil {
			b.paths = w.File
		}
		for begun < len(u.stretches) && u.stretches[begun].Lo <= p.Addr {
			if begun == 0 || u.stretches[begun-1].Hi < u.stretches[begun].Lo {
				b.BeginSpan()
			}
			begun++
		}
		row := symindex.Row{Addr: p.Addr, Line: p.Line, Column: p.Column}
		if p.HasLine {
			row.File = b.file(p.File)
		}
		usual := false
		if p.Call >= 0 {
			row.Call = b.call(w, p.Call, row.File)
			usual = b.usual[p.Call] == row.File
		}
		b.AddRow(row, usual)
	})
	if err = cmp.Or(x.charge(d), err); err != nil {
		return nil, err
	}
	b.nameNumbers = make([]uint32, len(b.unitIndex.names))
	x.touched(w.Size())
	return b.unitIndex, nil
}

// touched counts bytes of the file that were read. After more than pagesKept bytes, it releases the
// pages of the file.
func (x *indexer) touched(bytes int64) {
	if n := x.read.Add(bytes); n > pagesKept && x.read.CompareAndSwap(n, 0) {
		x.obj.ReleasePages()
	}
}

// file returns the number of a file, from 1; 0 if the unit has no path for it.
func (b *unitWriter) file(i uint32) uint32 {
	if i >= maxUnitFiles {
		return 0
	}
	if int(i) >= len(b.files) {
		b.files = append(b.files, make([]uint32, int(i)+1-len(b.files))...)
	}
	if b.files[i] == 0 {
		b.files[i] = 1
		if text, comp, dir := b.paths(i); text != "" {
			b.unitIndex.files = append(b.unitIndex.files, filePath{text, comp, dir})
			b.files[i] = uint32(len(b.unitIndex.files)) + 1
		}
	}
	return b.files[i] - 1
}

// call returns the number of the unit's call i, and adds the call if it is new. The parameter at is
// the number of the file of the call's row, or of the file in which a call was inlined into it.
func (b *unitWriter) call(w *dwarf.Unit, i int, at uint32) uint32 {
	if i < len(b.number) && b.number[i] != 0 {
		return b.number[i]
	}
	from := w.Call(i)
	to := symindex.Call{Line: from.Line, Column: from.Column, Usual: at}
	if from.Parent >= 0 {
		to.File = b.file(from.File)
		to.Parent = b.call(w, from.Parent, to.File)
	}
	if from.Name != 0 {
		n, ok := b.names[from.Name]
		if !ok {
			n = uint32(len(b.unitIndex.names)) + 1
			b.unitIndex.names = append(b.unitIndex.names, from.Name)
			b.names[from.Name] = n
		}
		to.Name = n
	}
	if i >= len(b.number) {
		n := w.Calls() - len(b.number)
		b.number = append(b.number, make([]uint32, n)...)
		b.usual = append(b.usual, make([]uint32, n)...)
	}
	b.usual[i] = at
	b.number[i] = b.AddCall(to)
	return b.number[i]
}

// writeNames writes the names, with the demangled form of each name that takes long to demangle.
func (x *indexer) writeNames(ctx context.Context) error {
	names := x.names.all
	parts := (len(names) + namesAtOnce - 1) / namesAtOnce
	part := func(i int) []string { return names[i*namesAtOnce : min((i+1)*namesAtOnce, len(names))] }
	return ordered(ctx, x.workers, parts, func() func(int) ([]string, error) {
		x.enter()
		return func(i int) (shown []string, err error) {
			err = guard(func() error {
				for _, name := range part(i) {
					shown = append(shown, slowName(name))
				}
				return nil
			})
			return shown, err
		}
	}, func(i int, shown []string) error {
		return guard(func() error {
			for j, name := range part(i) {
				x.w.AddName(name, shown[j])
			}
			x.touched(nameTouched * namesAtOnce)
			return nil
		})
	})
}

// ordered does n jobs in the given number of goroutines, or in the caller's if workers is at most
// 1. Each worker gets its function from newWorker. ordered calls finish with the results, in order.
// At most 4 results per worker wait for finish. The first error ends the work.
func ordered[T any](ctx context.Context, workers, n int, newWorker func() func(int) (T, error), finish func(int, T) error) error {
	if workers <= 1 {
		do := newWorker()
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			v, err := do(i)
			if err == nil {
				err = finish(i, v)
			}
			if err != nil {
				return err
			}
			runtime.Gosched() // a log line may be waiting for the processor
		}
		return nil
	}
	type result struct {
		v   T
		err error
	}
	type job struct {
		i    int
		done chan result
	}
	ctx, cancel := context.WithCancel(ctx)
	jobs := make(chan job)
	waiting := make(chan job, 4*workers)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	all.Go(func() {
		defer close(jobs)
		defer close(waiting)
		for i := range n {
			j := job{i, make(chan result, 1)}
			select {
			case waiting <- j:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		all.Go(func() {
			do := newWorker()
			for j := range jobs {
				if ctx.Err() != nil {
					return
				}
				v, err := do(j.i)
				j.done <- result{v, err}
			}
		})
	}
	for j := range waiting {
		select {
		case r := <-j.done:
			if r.err == nil {
				r.err = finish(j.i, r.v)
			}
			if r.err != nil {
				return r.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}
