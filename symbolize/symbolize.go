package symbolize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// A Finder knows a place where files are found by build ID. Find returns an
// open file whose ID was verified; the caller closes it. A miss that may be
// remembered wraps fs.ErrNotExist. Find calls note for each place it looked
// at, and may be called by many goroutines at once.
type Finder interface {
	Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error)
}

// Options configure a Symbolizer. The zero value finds nothing.
type Options struct {
	// Finders are asked in order.
	Finders []Finder

	// Servers are asked in order when neither Finders nor a debug link, below,
	// led to debug information: they may be slow, and learn what is looked for.
	Servers []Finder

	// LinkDirs are the folders below which the files are that a file names:
	// its debug file (.gnu_debuglink) and what dwz left of it. They are looked
	// for beside it, too.
	LinkDirs []string

	// DWP is the path of the package of split units for every module. Without
	// it the package is FILE.dwp beside the file.
	DWP string

	// NoAlt leaves alone what dwz moved to other files, as LLVM does: what only
	// they name has no name.
	NoAlt bool

	// MaxMemory bounds the bytes of memory that all files together take for
	// parsed units, inflated sections, symbol tables, names and the making of
	// indexes; mapped pages of files do not count. Inflated sections are
	// outside of the Go heap on Linux and macOS. 0 means DefaultMaxMemory.
	MaxMemory int64

	// OffHeap is called with the bytes that are held outside of the Go heap
	// when they have changed by some MiB: so much less the heap may have. It
	// must not call the Symbolizer. nil: nobody is told.
	OffHeap func(bytes int64)

	// Notify is called once for each file that is left alone for a time,
	// because it breaks its reader, costs too much, or there is no memory
	// for it, with a message that names the file. It must not call the
	// Symbolizer. Many goroutines may call it. nil: Reports alone have it.
	Notify func(message string)

	// SpillDir is the directory in which compressed debug sections are inflated
	// that do not fit MaxMemory, into files without a name that end with the
	// process. Empty, or in memory itself (tmpfs): such debug information is
	// left alone while there is no memory for it.
	SpillDir string

	// IndexDir is the directory of indexes: what was learnt of a file before,
	// kept for later runs. Empty: there are none. IndexBudget bounds the bytes
	// in it; 0 means 4 GiB. In memory (tmpfs) an eighth of MaxMemory bounds
	// them, and is taken from it.
	IndexDir    string
	IndexBudget int64

	// NoDemangle leaves names as the linker knows them.
	NoDemangle bool

	// NoInlines answers code with one frame: the function that was called,
	// and the innermost file and line.
	NoInlines bool

	// Names says by which name functions are known.
	Names Names

	// Reaching answers by LLVM's rule that a symbol without a size reaches to
	// the next one, through the end of its section and beyond the last section
	// of all. It counts for code and for Data, which names the symbol there.
	// With it, Frame.SymbolFile is looked up, as LLVM does, and the symbols of a
	// program that links to its debug file are its own.
	Reaching bool

	room          object.Options     // of files
	lend          func(n int64) bool // grants memory for as long as a question is answered
	spillInMemory bool               // SpillDir is, and not used
}

// Names says by which name functions are known.
type Names uint8

// The choices of llvm-symbolizer --functions.
const (
	LinkageNames Names = iota // with namespaces and parameters; of the symbol table, those of inlined calls of debug information
	ShortNames                // as they are declared, without namespaces and parameters: of debug information only
	NoNames                   // none: of debug information file and line only, of the symbol table nothing
)

// A Location is a place in a binary.
type Location struct {
	ID   buildid.ID
	Name string // the module's name as logged; without an ID, a path that the operator gave
	Addr uint64 // module-relative; return-address adjustment already applied
}

// A Frame is a function and a source position in it.
type Frame struct {
	Func       string // as shown: demangled; empty when neither symbol nor debug information names it
	Linkage    string // the name before demangling
	File       string // source file as the compiler recorded it, joined with its directories
	CompDir    int    // bytes of File that are the compilation directory and what separates it from the rest
	Dir        int    // bytes of File before the file's name as recorded, which may begin with directories, too
	Line       uint32 // 1-based; 0: the compiler says that no line is to blame
	Column     uint32 // 1-based; 0: not known
	Offset     uint64 // bytes from the symbol's start, where only the symbol table knows the address
	SymbolFile string // of a local symbol that names the outermost frame: its source file, without folders; looked up with Options.Reaching, where a frame has no File
	FromSymbol bool   // Func and Linkage are the symbol table's
	Inlined    bool   // inlined into the frame that follows
	HasLine    bool   // File and Line are known
	PlainFunc  bool   // Func is known to be printable ASCII
	PlainFile  bool   // so is File

	// Until is how long the answer may be kept: the module's file has no
	// debug information, and then a better one will be looked for. The zero
	// time: for ever.
	Until time.Time
}

// A Variable is a named piece of data.
type Variable struct {
	Name    string // as shown: demangled
	Linkage string // the name before demangling
	Offset  uint64 // bytes from its start to the address asked for
	Size    uint64 // bytes; 0: not known
	Member  string // what is at Offset, as ".refs", "[3].refs" or "[3]+0x4"; empty at the start, and when not known

	Until time.Time // how long the answer may be kept, as in a Frame
}

var (
	// ErrPending says that the file was still looked for when the context
	// ended: a later question may be answered.
	ErrPending = errors.New("debug file still being looked for")

	// ErrNoSymbol says that nothing with a name is known at an address.
	ErrNoSymbol = errors.New("no symbol")

	// ErrClosed says that the Symbolizer was closed.
	ErrClosed = errors.New("symbolizer closed")
)

// A NotFoundError says that no finder has the file of a module. It wraps
// fs.ErrNotExist.
type NotFoundError struct {
	ID   buildid.ID
	Name string
	Err  error // the first error that was not a plain miss, or nil
}

func (e *NotFoundError) Error() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.ID.IsZero():
		return fmt.Sprintf("no file known for %.200q, which has no build ID", e.Name)
	}
	return "build ID " + e.ID.String() + ": no debug file found"
}

// Unwrap returns fs.ErrNotExist and the error that kept a finder from looking.
func (e *NotFoundError) Unwrap() []error {
	if e.Err != nil {
		return []error{fs.ErrNotExist, e.Err}
	}
	return []error{fs.ErrNotExist}
}

// A FaultError says that the file of a module was found and cannot be used.
type FaultError struct {
	Path string
	Err  error
}

func (e *FaultError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns what was wrong with the file.
func (e *FaultError) Unwrap() error { return e.Err }

// A Symbolizer answers locations. Many goroutines may use it at once;
// questions about one file are answered one after the other, but for those
// that its index answers.
type Symbolizer struct {
	o    Options
	ctx  context.Context // done when the Symbolizer is closed
	stop context.CancelFunc

	mu      sync.RWMutex
	entries map[key]*entry
	closed  bool
	finding sync.WaitGroup // goroutines that look for files
	slots   chan struct{}  // one for each of them that may run
	queue   chan struct{}  // one for each of them that may be

	names  names
	clock  atomic.Uint64 // questions so far: the time of the least-recently-used order
	memory memory

	background background
}

// key names a module: by its ID, or by its name when it has none.
type key struct {
	id   buildid.ID
	name string // as far as it is kept
}

func keyOf(id buildid.ID, name string) key {
	if id.IsZero() {
		return key{name: kept(name)}
	}
	return key{id: id}
}

// kept returns as much of a module's name as is remembered, in a copy if that
// is not all.
func kept(name string) string {
	if len(name) > maxModuleName {
		return strings.Clone(name[:maxModuleName])
	}
	return name
}

// New returns a Symbolizer that asks o.Finders.
func New(o Options) *Symbolizer {
	if o.MaxMemory <= 0 {
		o.MaxMemory = DefaultMaxMemory
	}
	s := &Symbolizer{
		o:       o,
		entries: make(map[key]*entry),
		slots:   make(chan struct{}, maxFinding),
		queue:   make(chan struct{}, maxQueued),
	}
	s.background.part, s.background.least = indexPart, indexLookups
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.place()
	s.names.init(s.o.MaxMemory/4, o.NoDemangle)
	s.memory.init(&s.o, &s.names.size)
	return s
}

// place decides what goes to which directory: one in memory is no disk.
func (s *Symbolizer) place() {
	o := &s.o
	o.room = object.Options{Take: s.takeNow, Give: s.give, SpillDir: o.SpillDir}
	o.lend = s.lend
	if o.SpillDir != "" && object.InMemory(o.SpillDir) {
		o.spillInMemory, o.room.SpillDir = true, ""
	}
	if share := o.MaxMemory / 8; o.IndexDir != "" && (o.IndexBudget == 0 || o.IndexBudget > share) && object.InMemory(o.IndexDir) {
		o.IndexBudget = share
		o.MaxMemory -= share
	}
}

// Close ends all looking for files, waits for it, and closes the files.
// Questions that come later fail with ErrClosed.
func (s *Symbolizer) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.finding.Wait()
	var errs []error
	for _, e := range s.all() {
		e.mu.Lock()
		errs = append(errs, s.shut(e))
		e.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Prefetch starts to look for a module's file, in a goroutine that Close waits
// for, and returns at once. While very many are looked for it does nothing: the
// first question about the module starts the search then.
func (s *Symbolizer) Prefetch(id buildid.ID, name string) {
	defer s.relieve()
	for {
		e, err := s.entry(id, name)
		if err != nil {
			return
		}
		e.mu.Lock()
		if e.gone {
			e.mu.Unlock()
			continue
		}
		if (e.module == nil || e.module.dw == nil) && !e.finding {
			if e.wants(name) || e.due() {
				s.find(e)
			}
		}
		e.mu.Unlock()
		return
	}
}

// Code appends the frames at a location to dst, innermost first; nothing known
// there: dst unchanged. It waits for the module's file until ctx is done, then
// returns ErrPending, with what a file without debug information says that was
// found meanwhile. Other errors are a *NotFoundError, a *FaultError or
// ErrClosed. The strings are copies. A file without debug information answers,
// until a better one is found: [Frame.Until].
func (s *Symbolizer) Code(ctx context.Context, dst []Frame, l Location) ([]Frame, error) {
	if dst, ok := s.IndexedOnly(dst, l); ok {
		return dst, nil
	}
	e, err := s.acquire(ctx, l)
	if err == nil {
		e, err = s.unpacked(ctx, e, l)
	}
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst, err = s.code(e.module, dst, l.Addr)
	s.judge(e)
	if e.module.dw == nil {
		until := e.until()
		for i := range dst[start:] {
			dst[start+i].Until = until
		}
	}
	if err != nil {
		return dst, s.release(e, err)
	}
	pending := e.pending()
	s.release(e, nil)
	return dst, pending
}

// AwaitLocal waits until a location's file has been looked for everywhere but on
// servers, or ctx is done. It begins no search.
func (s *Symbolizer) AwaitLocal(ctx context.Context, l Location) {
	s.mu.RLock()
	e := s.entries[keyOf(l.ID, l.Name)]
	s.mu.RUnlock()
	if e == nil {
		return
	}
	e.mu.Lock()
	finding, local := e.finding, e.local
	e.mu.Unlock()
	if !finding {
		return
	}
	select {
	case <-local:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// Data returns the variable at a location, or the function. It waits like
// Code. Nothing known: ErrNoSymbol. Nothing is claimed beyond a symbol's size;
// a symbol without a size names the one address it stands at, unless
// Options.Reaching says otherwise.
func (s *Symbolizer) Data(ctx context.Context, l Location) (Variable, error) {
	e, err := s.acquire(ctx, l)
	if err == nil && e.module.dw != nil && !e.module.dw.VariablesAreDear() {
		e, err = s.unpacked(ctx, e, l)
	}
	if err != nil {
		return Variable{}, err
	}
	v, err := s.data(e.module, l.Addr)
	s.judge(e)
	if err == nil && e.module.dw == nil {
		v.Until = e.until()
	}
	if err != nil && err != ErrNoSymbol {
		return v, s.release(e, err)
	}
	if pending := e.pending(); pending != nil {
		err = pending
	}
	s.release(e, nil)
	return v, err
}

// Demangle returns name as shown, as LLVM demangles it; what is not a mangled
// C++ or Rust name, or exceeds the limits, is returned as it is.
func (s *Symbolizer) Demangle(name string) string { return s.names.get(name).shown }
