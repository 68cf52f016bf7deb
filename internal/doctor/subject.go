package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// A Subject is a build ID or file in an argument of a command.
type Subject struct {
	Word string     // as in the command line
	Path string     // absolute; empty: Word is a build ID, or standard input
	ID   buildid.ID // from Word, or of the file after Examine; zero: none
	ELF  bool       // after Examine: the file is an ELF file
	Core bool       // after Examine: the file is a core file
	kind *fileKind  // after Examine: a kind of file that is not a log; nil: unknown

	segments *segments // nil until AddressAt has read them
}

// A WordError reports that a word is neither a file nor a build ID.
type WordError struct{ error }

// SubjectOf returns the subject of word, without opening a file. A file of this name takes
// precedence over a build ID.
func SubjectOf(word string) (s Subject, err error) {
	s.Word = word
	info, err := os.Stat(word)
	switch {
	case word == "-":
		return s, nil
	case word == "":
		return s, WordError{errors.New("the name of a FILE is empty")}
	case errors.Is(err, fs.ErrNotExist):
		if s.ID, err = buildid.Parse([]byte(word)); err != nil {
			return s, WordError{fmt.Errorf("%s: no such file, and %w", word, err)}
		}
		if len(word)%2 != 0 {
			return s, WordError{fmt.Errorf("%s: no such file, and not a build ID, which has an even number of hex digits, not %d", word, len(word))}
		}
		return s, nil
	case err != nil:
		return s, fmt.Errorf("open %s: %w", word, wording.Cause(err))
	case info.IsDir():
		return s, fmt.Errorf("%s is a folder; name a file in it", word)
	}
	s.Path, err = filepath.Abs(word)
	return s, err
}

// Examine finds out what kind of file the subject is. The process should already be confined.
func (s *Subject) Examine() error {
	if info, err := os.Stat(s.Path); s.Path == "" || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := buildid.OpenRegular(s.Path, "the command line")
	if err != nil {
		return fmt.Errorf("open %s: %w", s.Word, wording.Cause(err))
	}
	defer file.Close()
	var head [kindSize]byte
	n, _ := file.ReadAt(head[:], 0) // shorter files are not ELF files
	s.ELF, s.Core = elfKind(head[:n])
	s.kind = kindOf(head[:n])
	if !s.ELF || s.Core {
		return nil
	}
	if s.ID, err = buildid.Read(file, file.Size()); err != nil && !errors.Is(err, buildid.ErrNoID) {
		return fmt.Errorf("%s: %w", s.Word, err)
	}
	return nil
}

// NotProgram returns why addresses in the subject cannot be looked up, or nil if the subject may
// have addresses. It must be called after Examine.
func (s *Subject) NotProgram() error {
	const want = "not an ELF program, library or debug file"
	switch {
	case s.Core:
		return fmt.Errorf("%s is a core file, %s: read it with gdb; symfilter addr accepts the program that was running, and its libraries", s.Word, want)
	case s.ELF || !s.ID.IsZero():
		return nil
	case s.kind == zipFile:
		return fmt.Errorf("%s is a zip file, %s: write symfilter addr --symbol-path %s with the build ID of a file in it", s.Word, want, s.Word)
	case s.kind != nil && s.kind.program != "":
		return fmt.Errorf("%s is %s, %s: unpack it with %s; to filter a log in it, run symfilter %s", s.Word, s.kind.name, want, s.kind.program, s.Word)
	case s.kind != nil:
		return fmt.Errorf("%s is %s, %s", s.Word, s.kind.name, want)
	}
	return fmt.Errorf("%s is %s; to filter a log, run symfilter %s", s.Word, want, s.Word)
}

// Location returns the location of a module-relative address in the subject.
func (s *Subject) Location(addr uint64) symbolize.Location {
	return symbolize.Location{ID: s.ID, Name: s.Path, Addr: addr}
}

// Unresolved returns the subject with n addresses that are unresolved because of err.
func (s *Subject) Unresolved(n int64, err error) symbolize.Unresolved {
	return symbolize.Unresolved{ID: s.ID, Name: s.Path, Frames: n, Err: err}
}

// Outside returns an *OutsideError if addr is outside of the file that sym uses for the subject.
// Otherwise it returns nil.
func (s *Subject) Outside(sym *symbolize.Symbolizer, addr uint64) error {
	r := sym.Report(s.ID, s.Path)
	if r.High == 0 || addr >= r.Low && addr < r.High {
		return nil
	}
	return &OutsideError{addr, r.Low, r.High}
}

// An OutsideError reports an address outside of a file's addresses, perhaps an address of a
// process.
type OutsideError struct{ addr, low, high uint64 }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("outside of the file, whose addresses are 0x%x to 0x%x", e.low, e.high-1)
}

// next returns advice about other kinds of addresses that e.addr may be.
func (e *OutsideError) next() string {
	switch {
	case e.addr < e.low:
		return fmt.Sprintf("if the address is an offset in the file, add 0x%x, the file's link address", e.low)
	case e.low == 0:
		return "if it is an address of a process, subtract the start of the module's first mapping, as in /proc/PID/maps"
	}
	return fmt.Sprintf("if it is an address of a process, subtract the start of the module's first mapping, as in /proc/PID/maps, and add 0x%x", e.low)
}
