package symbolize

import (
	"debug/elf"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// Holds says what a file can answer from.
type Holds uint8

// From the least to the most; a file with more holds the less, too.
const (
	Nothing        Holds = iota // no symbols at all
	DynamicSymbols              // .dynsym: what the dynamic linker needs
	SymbolTable                 // .symtab: functions and variables, no lines
	DebugInfo                   // .debug_info
)

func (h Holds) String() string {
	return [...]string{"no symbols", "dynamic symbols only", "a symbol table without debug information", "debug information"}[h]
}

// A module is an open file with its readers; one goroutine at a time uses it.
type module struct {
	path, where string
	holds       Holds
	file        *buildid.File // nil when the object needs no descriptor
	obj         *object.File
	dw          *dwarf.Data // nil: none, or left alone because of fault
	fault       error       // what is wrong with the debug information
	packed      bool        // sections are inflated by the first lookup
	struck      error       // what the present lookup counts against it
	scratch     []dwarf.Frame
	goTable     goTable
	parts                       // that the file is continued in
	known       knownNames      // of debug information
	symbols     knownNames      // of the symbol table
	index       *indexed        // nil: none
	source      symindex.Source // what an index must have been made from; without an ID: there can be none
	dir         symindex.Dir
	pin         *pin      // nil: no index was begun
	inflated    bool      // sections were
	unpacked    time.Time // when
	unpackedAt  int       // and after how many lookups

	loan int64 // bytes that the present question was lent
	read int64 // bytes of the file, about, since its pages were given back

	lookups int           // so far
	cost    time.Duration // of all of them
	began   time.Time     // the present one
	spent   time.Duration // in lookups since the footprint was taken
}

// openModule reads file's headers and takes it over: on error it is closed.
func openModule(file *buildid.File, o *Options) (m *module, err error) {
	m = &module{path: file.Path(), where: file.Where(), file: file}
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	err = guard(func() error {
		if m.obj, err = object.OpenWith(file, file.Size(), file.OS(), o.room); err != nil {
			return err
		}
		m.holds = m.content()
		m.readLinks()
		m.openIndex(o, file)
		if !reads(m.obj) {
			err := file.Close()
			m.file = nil
			if err != nil {
				return err
			}
		}
		if m.holds < DebugInfo {
			return nil
		}
		if m.fault = m.affordable(o); m.fault != nil && m.index == nil {
			return nil
		}
		m.dw, m.fault = dwarf.New(m.obj, m.splitLinks(o))
		if m.dw != nil {
			m.dw.LazyNames()
			m.dw.Afford(func(n int64) bool {
				ok := o.lend(n)
				if ok {
					m.loan += n
				}
				return ok
			})
			if o.Names == ShortNames {
				m.dw.UseShortNames()
			}
		}
		if errors.Is(m.fault, dwarf.ErrNoDebugInfo) {
			m.fault = nil
		}
		return nil
	})
	return m, err
}

// content looks which sections there are.
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

// betterThan reports whether m answers more than o: debug information that can
// be used first, then by what it holds.
func (m *module) betterThan(o *module) bool {
	if (m.dw != nil) != (o.dw != nil) {
		return m.dw != nil
	}
	return m.holds > o.holds
}

// reads reports whether the object reads from its descriptor when it is asked
// for sections: those that are compressed, and all if it could not be mapped.
func reads(obj *object.File) bool {
	const plain = ".shstrtab" // is in every file that has sections, never compressed
	if _, ok := obj.Section(plain); !ok || obj.HeapCost(plain) > 0 {
		return true
	}
	for _, s := range obj.Sections() {
		if s.Flags&elf.SHF_COMPRESSED != 0 || strings.HasPrefix(s.Name, ".zdebug_") {
			return true
		}
	}
	return false
}

// lookupSections are those that lookups of code read.
var lookupSections = []string{
	".debug_info", ".debug_abbrev", ".debug_line", ".debug_str", ".debug_line_str", ".debug_str_offsets",
	".debug_addr", ".debug_ranges", ".debug_rnglists", ".debug_aranges",
}

// close unmaps the file; nothing that was returned of it is used any longer.
func (m *module) close() error {
	err := errors.Join(m.closeParts(), m.closeIndex())
	obj, file := m.obj, m.file
	m.obj, m.dw, m.file = nil, nil, nil
	closeFile := func() error {
		var errs []error
		if obj != nil {
			errs = append(errs, obj.Close())
		}
		if file != nil {
			errs = append(errs, file.Close())
		}
		return errors.Join(errs...)
	}
	if m.pin.later(closeFile) {
		return err
	}
	return errors.Join(err, closeFile())
}

// footprint returns the heap bytes that the readers hold.
func (m *module) footprint() int64 {
	n := m.obj.Footprint() + m.known.size + m.symbols.size + m.goTable.footprint() + m.parts.footprint() + m.index.footprint()
	if m.dw != nil {
		n += m.dw.Footprint()
	}
	return n
}

// granted returns the bytes of memory that were granted to the files.
func (m *module) granted() int64 {
	n := m.obj.Granted()
	if m.alt != nil {
		n += m.alt.obj.Granted()
	}
	return n
}

// due ends a lookup and reports whether the footprint is to be taken.
func (m *module) due() bool {
	m.lookups++
	took := time.Since(m.began)
	m.spent += took
	m.cost += took
	linked := m.linked()
	if m.lookups&(m.lookups-1) != 0 && m.lookups%accountEvery != 0 && m.spent < accountSpent && linked == m.counted { // not a power of two either
		return false
	}
	m.counted = linked
	m.spent = 0
	return true
}

// guard calls f and makes an error of a panic, and of a fault when the mapped
// file has shrunk meanwhile.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = caught(r)
		}
	}()
	return f()
}

// What breaks a reader.
var (
	errFault = errors.New("unreadable while in use: the file was truncated, or its disk fails; put a new file in place by renaming")
	errPanic = errors.New("its contents broke the reader, which is a fault in it worth reporting")
	errDear  = errors.New("its debug information takes far more work than such of a compiler; check the file (llvm-dwarfdump --verify), or strip its debug information")
)

// caught returns the error for what recover returned.
func caught(r any) error {
	if _, fault := r.(interface{ Addr() uintptr }); fault {
		return errFault // the runtime's error for an address that cannot be read
	}
	if e, ok := r.(runtime.Error); ok {
		return fmt.Errorf("%w: %s", errPanic, e.Error())
	}
	return fmt.Errorf("%w: %s", errPanic, clip(strings.ToValidUTF8(fmt.Sprint(r), "?"), maxSaid))
}
