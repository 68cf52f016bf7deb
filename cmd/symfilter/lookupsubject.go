package main

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

// A subject is what the argument of a command names: a build ID or a file.
type subject struct {
	word string     // as on the command line
	path string     // absolute; empty: word is a build ID, or standard input
	id   buildid.ID // of a file, after examine; zero if it has none
	elf  bool       // after examine: the file is an ELF file
	core bool       // after examine: it is a core file
	kind *fileKind  // after examine: a kind of file that is not a log; nil if not known
}

// subjectOf returns the subject that word names, and reads nothing yet. A file of that name takes
// precedence over a build ID. An error that is a usageError means that word is neither.
func subjectOf(word string) (s subject, err error) {
	s.word = word
	info, err := os.Stat(word)
	switch {
	case word == "-":
		return s, nil
	case word == "":
		return s, usageError{errors.New("the name of a FILE is empty")}
	case errors.Is(err, fs.ErrNotExist):
		if s.id, err = buildid.Parse([]byte(word)); err != nil {
			return s, usageError{fmt.Errorf("%s: no such file, and %w", word, err)}
		}
		if len(word)%2 != 0 {
			return s, usageError{fmt.Errorf("%s: no such file, and not a build ID: an odd number of hex digits, %d", word, len(word))}
		}
		return s, nil
	case err != nil:
		return s, fmt.Errorf("open %s: %w", word, wording.Cause(err))
	case info.IsDir():
		return s, fmt.Errorf("%s is a folder; name a file in it", word)
	}
	s.path, err = filepath.Abs(word)
	return s, err
}

// examine finds out what kind of file the subject is. The process should be confined before.
func (s *subject) examine() error {
	if info, err := os.Stat(s.path); s.path == "" || err != nil || !info.Mode().IsRegular() {
		return nil
	}
	file, err := buildid.OpenRegular(s.path, "the command line")
	if err != nil {
		return fmt.Errorf("open %s: %w", s.word, wording.Cause(err))
	}
	defer file.Close()
	var head [kindSize]byte
	n, _ := file.ReadAt(head[:], 0) // shorter files are not ELF files
	s.elf, s.core = elfKind(head[:n])
	s.kind = kindOf(head[:n])
	if !s.elf || s.core {
		return nil
	}
	if s.id, err = buildid.Read(file, file.Size()); err != nil && !errors.Is(err, buildid.ErrNoID) {
		return fmt.Errorf("%s: %w", s.word, err)
	}
	return nil
}

// notProgram returns why the subject has no addresses that can be looked up, after examine; nil if
// it may have some.
func (s *subject) notProgram() error {
	const want = "not a program, library or debug file in ELF"
	switch {
	case s.core:
		return fmt.Errorf("%s is a core file, %s: gdb reads it, and symfilter addr takes the programs and libraries that it was made of", s.word, want)
	case s.elf || !s.id.IsZero():
		return nil
	case s.kind == zipFile:
		return fmt.Errorf("%s is a zip file, %s: write symfilter addr --symbol-path %s with the build ID of a file in it", s.word, want, s.word)
	case s.kind != nil && s.kind.program != "":
		return fmt.Errorf("%s is %s, %s: unpack it with %s; to filter a log in it, write symfilter %s", s.word, s.kind.name, want, s.kind.program, s.word)
	case s.kind != nil:
		return fmt.Errorf("%s is %s, %s", s.word, s.kind.name, want)
	}
	return fmt.Errorf("%s is %s; to filter a log, write symfilter %s", s.word, want, s.word)
}

// location returns the place in the subject at a module-relative address.
func (s *subject) location(addr uint64) symbolize.Location {
	return symbolize.Location{ID: s.id, Name: s.path, Addr: addr}
}

// unresolved returns the subject with n addresses that have no name because of err.
func (s *subject) unresolved(n int64, err error) symbolize.Unresolved {
	return symbolize.Unresolved{ID: s.id, Name: s.path, Frames: n, Err: err}
}
