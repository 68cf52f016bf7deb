package symbolize

import (
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// Holds ranks the symbols and debug information in a file.
type Holds uint8

// in increasing order of quality
const (
	Nothing        Holds = iota // no symbols at all
	DynamicSymbols              // .dynsym: what the dynamic linker needs
	SymbolTable                 // .symtab: functions and variables, no lines
	DebugInfo                   // .debug_info
)

func (h Holds) String() string {
	return [...]string{"no symbols", "dynamic symbols only", "a symbol table without debug information", "debug information"}[h]
}

// A module is an open file with its readers. One goroutine at a time uses it.
type module struct {
	path, where string // path of the file; the finder that has the file
	holds       Holds
	file        *buildid.File // nil if obj does not need it, since no section is compressed
	obj         *object.File
	dw          *dwarf.Data // nil if there is none, or fault keeps it from being used
	fault       error       // fault of the debug information; nil if none is known
	goTable     goTable
	parts                  // other files that the module reads
	known       knownNames // names in debug information
	symbols     knownNames // names in the symbol table
	early       earlySymbol

	crew  *crew    // nil until gather makes it
	index *indexed // nil if there is none
	// state of the file that its index must match; without an ID no index is possible
	source symindex.Source
	dir    symindex.Dir // directory of indexes
	// held by a task that reads the file without the entry's lock; nil before the first such task
	pin *pin

	packing
	usage
}

// packing is the state of the compressed debug sections of a file.
type packing struct {
	packed      bool      // the sections are not inflated yet: a lookup must inflate them first
	inflated    bool      // the sections were inflated, and take memory
	inflatedAt  time.Time // zero if inflated is not set
	lookupsThen int       // lookups before inflatedAt
}

// usage sums up the questions about a file. Examinations are not lookups: an index does not make
// them faster.
type usage struct {
	questions int
	lookups   int
	cost      time.Duration // time of all lookups
	spent     time.Duration // time of lookups since the footprint was taken
	read      int64         // approximate bytes read since the file's pages were released
	loan      int64         // bytes of memory that the current question has borrowed
}

// openModule reads file's headers and takes ownership of file; on error it closes file.
func openModule(file *buildid.File, o *Options) (m *module, err error) {
	m = &module{path: file.Path(), where: file.Where(), file: file}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	err = guard(func() error {
		if m.obj, err = openObject(file, o.room); err != nil {
			return err
		}
		m.holds = m.content()
		m.readLinks()
		m.openIndex(o, file)
		if m.file, err = release(file, m.obj); err != nil {
			return err
		}
		if m.holds < DebugInfo {
			m.fault = m.damage(file.Size())
			return nil
		}
		if m.fault = m.affordable(o); m.fault != nil && m.index == nil {
			return nil
		}
		m.dw, m.fault = dwarf.New(m.obj, m.splitLinks(o))
		if m.dw != nil {
			m.dw.LazyNames()
			if o.Details {
				m.dw.WithDetails()
			}
			// one reader of a small file is enough
			if o.jobs() > 1 && o.byIndexAlone() && !contentsOf(file).Whole() {
				m.dw.Share()
			}
			m.dw.Afford(func(n int64) bool {
				ok := o.lend(n)
				if ok {
					m.loan += n
				}
				return ok
			})
			m.dw.Beside(m.beside)
			switch o.Names {
			case ShortNames:
				m.dw.UseNames(dwarf.AllDeclared)
			case ValgrindNames:
				m.dw.UseNames(dwarf.InlinedDeclared)
			}
		}
		if errors.Is(m.fault, dwarf.ErrNoDebugInfo) {
			m.fault = nil
		}
		if m.fault == nil {
			m.fault = m.damage(file.Size())
		}
		return nil
	})
	return m, err
}

// damage returns an error if parts of m's file, of size bytes, are missing. A download or copy that
// ended early must not pass for a stripped file.
func (m *module) damage(size int64) error {
	if whole, cut := m.obj.CutOff(); cut {
		return fmt.Errorf("cut off: the file has %d of at least %d bytes; copy or download the file again", size, whole)
	}
	return m.obj.Damage()
}

// content returns the best source of answers among m's sections.
func (m *module) content() Holds {
	has := func(name string) bool {
		s, ok := m.obj.Section(name)
		return ok && s.Size > 0
	}
	switch {
	case has(".debug_info"):
		return DebugInfo
	case has(".symtab") || has(".gnu_debugdata") || has(".gopclntab"):
		return SymbolTable
	case has(".dynsym"):
		return DynamicSymbols
	}
	return Nothing
}

// betterThan reports whether m answers more than o: usable debug information first, then the better
// source.
func (m *module) betterThan(o *module) bool {
	if (m.dw != nil) != (o.dw != nil) {
		return m.dw != nil
	}
	return m.holds > o.holds
}

// contents has the methods of a file that may have been read whole: see [access.BuildID].
type contents interface {
	Bytes() []byte // nil if the file was not read whole
	Whole() bool
	Modified() (nanoseconds int64, ok bool)
}

func contentsOf(f *buildid.File) contents { return access.BuildID(f).(contents) }

// openObject opens the ELF file, from memory if file was read whole.
func openObject(file *buildid.File, room object.Options) (*object.File, error) {
	if data := contentsOf(file).Bytes(); data != nil {
		return object.OpenSmall(data, room)
	}
	return object.OpenWith(file, file.Size(), file.OS(), room)
}

// release closes file if reading obj, which was opened from file, needs no descriptor. obj needs
// one for compressed sections, and for all sections if file could not be mapped. release returns
// file if obj needs file, and nil otherwise. A file that was read whole is closed in either case,
// since its bytes are in memory.
func release(file *buildid.File, obj *object.File) (*buildid.File, error) {
	compressed := hasCompressed(obj)
	if obj.Held() && !compressed {
		return nil, file.Close()
	}
	if contentsOf(file).Whole() {
		return file, file.Close()
	}
	return file, nil
}

func hasCompressed(obj *object.File) bool {
	sections := obj.Sections()
	for i := range sections {
		if s := &sections[i]; s.Flags&elf.SHF_COMPRESSED != 0 || strings.HasPrefix(s.Name, ".zdebug_") {
			return true
		}
	}
	return false
}

// lookupSections are the sections that lookups of code read.
var lookupSections = []string{
	".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str", ".debug_str_offsets",
	".debug_addr", ".debug_ranges", ".debug_rnglists", ".debug_aranges",
}

// close unmaps the file, or lets the pin do so if the pin is held. Slices that alias the file must
// not be used afterwards.
func (m *module) close() error {
	m.closeCrew()
	err := errors.Join(m.closeParts(), m.closeIndex())
	closeFile := (&part{m.file, m.obj}).close
	m.obj, m.dw, m.file = nil, nil, nil
	if m.pin.later(closeFile) {
		return err
	}
	return errors.Join(err, closeFile())
}

// touched counts bytes of m's file that were read. After more than pagesKept bytes, it releases the
// pages of the file.
func (m *module) touched(n int64) {
	if m.crew != nil {
		m.crew.touched(n)
	} else if m.read += n; m.read > pagesKept {
		m.obj.ReleasePages()
		m.read = 0
	}
}

// closeCrew ends m's crew, if any, after the running lookups.
func (m *module) closeCrew() {
	m.crew.close()
	m.crew = nil
}

// footprint returns the heap bytes that the readers hold.
func (m *module) footprint() int64 {
	n := m.obj.Footprint() + m.known.size + m.symbols.size + m.goTable.footprint() + m.parts.footprint() + m.index.footprint() + m.crew.footprint()
	if m.dw != nil {
		n += m.dw.Footprint()
	}
	return n
}

// granted returns the bytes of memory granted to m's files.
func (m *module) granted() int64 {
	n := m.obj.Granted()
	if m.alt != nil {
		n += m.alt.obj.Granted()
	}
	return n
}

// due counts a question, which is a lookup if lookup is set. It reports whether the caller should
// update the ledger with m's footprint now.
func (m *module) due(took time.Duration, lookup bool) bool {
	m.questions++
	m.spent += took
	if lookup {
		m.lookups++
		m.cost += took
	}
	linked := m.linked()
	// the footprint is not updated now: see accountEvery and accountSpent
	if m.questions&(m.questions-1) != 0 && m.questions%accountEvery != 0 && m.spent < accountSpent && linked == m.counted {
		return false
	}
	m.counted = linked
	m.spent = 0
	return true
}

// guard calls read, which reads mapped files, and returns its error. If read panics, guard returns
// object.ErrFault for bytes that cannot be read, for example after a file was truncated. For every
// other panic it returns an errPanic: no input may end the program, and no panic passes unreported.
func guard(read func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panicError(r)
		}
	}()
	if fault := object.Guard(func() { err = read() }); fault != nil {
		return fault
	}
	return err
}

var (
	errPanic = errors.New("reading the file made symfilter panic; please report this bug")
	errDear  = errors.New("the debug information takes far more work to read than a compiler's output; check the file with llvm-dwarfdump --verify, or strip the debug information")
)

// panicError returns the error for a panic that is not a fault of a mapped file.
func panicError(recovered any) error {
	if e, ok := recovered.(runtime.Error); ok {
		return fmt.Errorf("%w: %s", errPanic, e.Error())
	}
	return fmt.Errorf("%w: %s", errPanic, clip(strings.ToValidUTF8(fmt.Sprint(recovered), "?"), maxSaid))
}

func brokeReader(err error) bool { return errors.Is(err, object.ErrFault) || errors.Is(err, errPanic) }
