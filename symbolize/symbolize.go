package symbolize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// A Finder finds files by build ID, in a directory tree or on a server. Find returns an open file
// whose ID was verified; the caller closes it. Its error wraps fs.ErrNotExist for a plain miss.
// Other errors mean that the finder is out of order, and delay the next search. Find calls note for
// each place it looked at. Many goroutines may call it.
type Finder interface {
	Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error)
}

// Options configure a Symbolizer. The zero value finds nothing.
type Options struct {
	// Finders are asked in order.
	Finders []Finder

	// Servers are asked in order if neither Finders nor a debug link (LinkDirs) led to debug
	// information. Servers may be slow, and learn the build IDs.
	Servers []Finder

	// LinkDirs are folders with the files of links: debug files (.gnu_debuglink) and the
	// supplementary files of dwz. Both are also searched for next to the file with the link.
	LinkDirs []string

	// DWP is the path of the package of split units for every module. If it is empty, the package
	// is FILE.dwp next to the file.
	DWP string

	// NoAlt makes the Symbolizer ignore the supplementary files of dwz, as LLVM does. Functions
	// whose names are only in such a file then have no name.
	NoAlt bool

	// MaxMemory bounds the bytes of memory for all files: parsed units, inflated sections, symbol
	// tables, names, and the making of indexes. It does not include mapped pages of files. Inflated
	// sections are outside of the Go heap on Linux and macOS. 0 means DefaultMaxMemory.
	MaxMemory int64

	// OffHeap is called with the number of bytes held outside of the Go heap whenever that number
	// has changed by 8 MiB. The caller can lower the heap's limit by that number. OffHeap must not
	// call the Symbolizer. It may be nil.
	OffHeap func(bytes int64)

	// Notify is called once for each file that is set aside: the parser failed, lookups cost too
	// much, or the file needs too much memory. The message names the file. Notify must not call the
	// Symbolizer. Many goroutines may call it. If nil, the message is only in Reports.
	Notify func(message string)

	// Came is called when a build ID has a file that can answer more than earlier files. This is
	// the first file, debug information after symbols, or a file whose compressed sections were
	// inflated in the background. A file that was closed to save memory and is opened again is not
	// reported. Many goroutines may call Came. It may ask with Now, and must return soon. It may be
	// nil.
	Came func(id buildid.ID)

	// SpillDir is the directory for compressed debug sections that do not fit into MaxMemory when
	// they are inflated. Its files have no name, and vanish with the process. If SpillDir is empty
	// or in memory (tmpfs), debug information that does not fit is not used.
	SpillDir string

	// IndexDir is the directory of indexes, which keep the answers about a file for later runs. If
	// it is empty, there are no indexes. IndexBudget bounds the bytes in it; 0 means 4 GiB. If the
	// directory is in memory (tmpfs), the bound is at most an eighth of MaxMemory, and is
	// subtracted from MaxMemory.
	IndexDir    string
	IndexBudget int64

	// Jobs is the number of goroutines that may read the debug information of one file at once, and
	// make its index. Answers do not depend on it. It is at most MaxJobs; 0 means as many as there
	// are processors (GOMAXPROCS).
	Jobs int

	// NoDemangle leaves names mangled.
	NoDemangle bool

	// OldRustAsLLVM shows names of Rust's old mangling as LLVM 19 does, which takes them for C++:
	// core::ptr::drop_in_place$LT$u8$GT$::h0123456789abcdef instead of
	// core::ptr::drop_in_place<u8>.
	OldRustAsLLVM bool

	// NoInlines gives one frame for each address of code: the physical function, with the file and
	// line in that function. The calls inlined into it are left out.
	NoInlines bool

	// Names selects the names of functions.
	Names Names

	// Reaching applies LLVM's rule for symbols without a size, in code and in data. Such a symbol
	// reaches to the next one, even past the end of its section and beyond the last section.
	// Reaching also sets Frame.SymbolFile. As in LLVM, a program with a link to its debug file then
	// uses its own symbols, even if the debug file has some.
	Reaching bool

	// Details sets Frame.Details and the declaration of a Variable. Indexes have no details, so
	// they are not used, and lookups take longer.
	Details bool

	placement
}

// A placement holds the values that the method place derives from Options.
type placement struct {
	room          object.Options     // memory and spill directory of the files
	lend          func(n int64) bool // grants memory until the question ends
	spillInMemory bool               // SpillDir is in memory, and therefore not used
	indexes       *symindex.Listing  // the files in IndexDir
}

// Names selects the names of functions.
type Names uint8

// The choices of llvm-symbolizer --functions.
const (
	// names with namespaces and parameters, from the symbol table; for inlined calls from debug
	// information
	LinkageNames Names = iota
	// names as declared, without namespaces and parameters, from debug information only
	ShortNames
	NoNames // no function names: only file and line, from debug information
	// names as Valgrind's tools print them: LinkageNames for functions, ShortNames for inlined
	// calls
	ValgrindNames
	DebugNames // linkage names from debug information only: symbols name nothing
)

// A Location is an address in a binary.
type Location struct {
	ID buildid.ID
	// the module's name as logged; without an ID, a path given by the operator: see StateMark
	Name string
	Addr uint64 // module-relative; return-address adjustment already applied
}

// StateMark separates the path from the state of the file in the Name of a Location without an ID.
// With the state, a file and its replacement have different names, and so separate answers. No path
// contains StateMark.
const StateMark = "\x00"

// A Frame is a function and a source position in it.
type Frame struct {
	Func    string // demangled; empty if neither symbol table nor debug information names it
	Linkage string // the name before demangling
	File    string // source file as the compiler recorded it, joined with its directories
	CompDir int    // bytes of File that are the compilation directory and its separator
	// bytes of File before the file name that debug information has; this name may contain
	// directories
	Dir    int
	Line   uint32 // 1-based; 0 if the compiler attributes the code to no line
	Column uint32 // 1-based; 0: not known
	Offset uint64 // bytes from the symbol's start; 0 if debug information knows the address
	// source file of the local symbol that names the outermost frame, without directories; set only
	// with Options.Reaching, and only if a frame has no File
	SymbolFile string
	FromSymbol bool // Func and Linkage are from the symbol table
	Inlined    bool // inlined into the next frame
	HasLine    bool // File and Line are known
	PlainFunc  bool // Func is known to be printable ASCII
	PlainFile  bool // File is known to be printable ASCII

	Details *Details // nil unless Options.Details is set

	// Until is the expiry time of the answer: a better file will be searched for then, or debug
	// information is still being inflated. The zero time means never.
	Until time.Time
}

// A Variable is a named piece of data.
type Variable struct {
	Name    string // demangled
	Linkage string // the name before demangling
	Offset  uint64 // bytes from the start of the variable to the address asked for
	Size    uint64 // bytes; 0: not known
	// member at Offset, such as ".refs", "[3].refs" or "[3]+0x4"; empty at the start, and if not
	// known
	Member string

	// Declared is the declaration in debug information of the variable at the address; only with
	// Options.Details. It may be known without a symbol: then AskData returns it with ErrNoSymbol.
	// If Line is 0, File is the source file of a local symbol, without folders.
	Declared Declaration

	Until time.Time // when the answer expires, as in a Frame
}

// Details are the parts of a Frame that other symbolizers print.
type Details struct {
	Discriminator uint32 // distinguishes the blocks of one line; 0: none
	Declared      Declaration
	Start         uint64 // address of the function or call
	HasStart      bool   // Start is known

	First  uint64 // start of the first range in the order of debug information; 0: not known
	Entry  uint64 // number of the function's or call's entry in debug information; 0: none
	Linker bool   // Linkage is a linkage name, or a plain name in a language such as C
	Split  bool   // the function is in split debug information
	// compilation directory to which File is relative; set only with DWARF 5, and only if File
	// begins with the first directory of the line table
	Within string
}

// A Declaration is the place in source code that declares a function or variable.
type Declaration struct {
	File    string // as in a Frame; empty: not known
	CompDir int    // as in a Frame
	Dir     int    // as in a Frame
	Line    uint32 // 1-based; 0: not known
	Within  string // as in Details
}

var (
	// ErrPending reports that the file was still searched for or inflated when the question had to
	// end. A later question may get a better answer.
	ErrPending = errors.New("the search for the debug file has not ended")

	// ErrNoSymbol reports that no named function or variable is known at an address.
	ErrNoSymbol = errors.New("no symbol")

	// ErrClosed reports that the Symbolizer was closed.
	ErrClosed = errors.New("symbolizer closed")
)

// A NotFoundError reports that no finder has the file of a module. It wraps fs.ErrNotExist.
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
		return fmt.Sprintf("no file found for %.200q, which has no build ID", e.Name)
	}
	return "build ID " + e.ID.String() + ": no debug file found"
}

// Unwrap returns fs.ErrNotExist and Err, unless that is nil.
func (e *NotFoundError) Unwrap() []error {
	if e.Err != nil {
		return []error{fs.ErrNotExist, e.Err}
	}
	return []error{fs.ErrNotExist}
}

// A FaultError reports that the file of a module was found and cannot be used.
type FaultError struct {
	Path string
	Err  error
}

func (e *FaultError) Error() string { return e.Path + ": " + e.Err.Error() }

// Unwrap returns the reason why the file cannot be used.
func (e *FaultError) Unwrap() error { return e.Err }

// A Symbolizer answers questions about locations. Many goroutines may use it at once. Questions
// about one file wait for each other, unless an index or a parallel reader (Options.Jobs) answers
// them.
type Symbolizer struct {
	o    Options
	ctx  context.Context // done when the Symbolizer is closed
	stop context.CancelFunc

	cache cache
	names names

	tasks sync.WaitGroup // goroutines that run tasks or make indexes
	slots chan struct{}  // a slot for each search that may run
	queue chan struct{}  // a slot for each task that may run or wait

	background background
	warmer     warmer
}

// clipName returns at most maxModuleName bytes of a module's name, in a copy if it is longer.
func clipName(name string) string {
	if len(name) > maxModuleName {
		return strings.Clone(name[:maxModuleName])
	}
	return name
}

// New returns a Symbolizer with the options o. The caller must close it.
func New(o Options) *Symbolizer {
	if o.MaxMemory <= 0 {
		o.MaxMemory = DefaultMaxMemory
	}
	s := &Symbolizer{
		o:     o,
		cache: cache{entries: make(map[key]*entry)},
		slots: make(chan struct{}, maxFinding),
		queue: make(chan struct{}, maxQueued),
	}
	s.background.part, s.background.least = indexPart, indexLookups
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.place()
	s.names.init(s.o.MaxMemory/4, o.NoDemangle, o.OldRustAsLLVM)
	s.warmer.init(s)
	s.cache.memory.init(&s.o, &s.names.size)
	return s
}

// place sets up memory and directories. It refuses to spill to a directory in memory (tmpfs), and
// subtracts indexes in such a directory from the budget.
func (s *Symbolizer) place() {
	o := &s.o
	o.room = object.Options{Take: s.cache.takeNow, Give: s.cache.give, SpillDir: o.SpillDir, LastAlias: o.Reaching}
	o.lend = s.cache.lend
	o.indexes = new(symindex.Listing)
	if o.SpillDir != "" && object.InMemory(o.SpillDir) {
		o.spillInMemory, o.room.SpillDir = true, ""
	}
	if o.IndexDir != "" && object.InMemory(o.IndexDir) {
		share := o.MaxMemory / 8
		if o.IndexBudget > 0 {
			share = min(share, o.IndexBudget)
		}
		o.IndexBudget = share
		o.MaxMemory -= share
	}
}

// Close ends all searches, waits for their end, and closes the files. Later questions fail with
// ErrClosed.
func (s *Symbolizer) Close() error {
	s.cache.mu.Lock()
	s.cache.closed = true
	s.cache.mu.Unlock()
	s.stop()
	s.tasks.Wait()
	var errs []error
	for _, e := range s.cache.all() {
		e.mu.Lock()
		errs = append(errs, s.cache.shut(e))
		e.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Prefetch starts the search for a module's file, in a goroutine that Close waits for. It does not
// wait for the search, but it may wait long for a running question about the file. While maxQueued
// tasks run or wait it does nothing; the first question about the module then starts the search.
func (s *Symbolizer) Prefetch(id buildid.ID, name string) {
	defer s.cache.relieve()
	for {
		e, err := s.cache.entry(id, name)
		if err != nil {
			return
		}
		e.mu.Lock()
		if e.state == forgotten {
			e.mu.Unlock()
			continue
		}
		if (e.module == nil || e.module.dw == nil) && e.task == nil {
			if e.wants(name) || e.due() {
				s.find(e)
			}
		}
		e.mu.Unlock()
		return
	}
}

// codeUntil returns what code returns, and until: the time after which another question may get a
// better answer. until is zero if the answer is final.
func (s *Symbolizer) codeUntil(ctx context.Context, dst []Frame, l Location) (frames []Frame, until time.Time, err error) {
	if e := s.cache.existing(l.ID, l.Name); e != nil {
		if dst, ok := s.byIndex(e, dst, l.Addr); ok {
			return dst, until, nil
		}
	}
	q, err := s.acquire(ctx, l)
	if err == nil {
		q, err = s.unpacked(ctx, q, l, (*entry).awaitsUnpacking)
	}
	if err != nil {
		return dst, until, err
	}
	start := len(dst)
	dst, err = q.code(dst, l.Addr)
	q.judge()
	if q.m.dw == nil || q.e.awaitsUnpacking() {
		until = q.until()
		for i := range dst[start:] {
			dst[start+i].Until = until
		}
	}
	if err != nil {
		return dst, until, q.end(err)
	}
	pending := q.e.pending()
	q.end(nil)
	return dst, until, pending
}

// dataUntil is data, with until as in codeUntil.
func (s *Symbolizer) dataUntil(ctx context.Context, l Location) (v Variable, until time.Time, err error) {
	q, err := s.acquire(ctx, l)
	if err == nil {
		q, err = s.unpacked(ctx, q, l, (*entry).variablesAwaitUnpacking)
	}
	if err != nil {
		return v, until, err
	}
	v, err = q.data(l.Addr)
	q.judge()
	if q.m.dw == nil || q.e.unpacking() {
		until = q.until()
	}
	if err == nil {
		v.Until = until
	}
	if err != nil && err != ErrNoSymbol {
		return v, until, q.end(err)
	}
	if q.e.isProvisional() || q.e.variablesAwaitUnpacking() {
		err = ErrPending
	}
	q.end(nil)
	return v, until, err
}

// Demangle returns the demangled form of a C++ or Rust name, as LLVM shows it. It returns other
// names, and names beyond the demangler's limits, unchanged, but cuts a name off after 64 KiB. With
// Options.NoDemangle no name is demangled.
func (s *Symbolizer) Demangle(name string) string { return s.names.get(name).shown }
