package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/symbolize"
)

// A subject is what the argument of a command names: a build ID or a file.
type subject struct {
	word string     // as on the command line
	path string     // absolute; empty: word is a build ID
	id   buildid.ID // of a file, the one in it; zero if it has none
	elf  bool       // the file is an ELF file
	core bool       // of a process that crashed
}

// subjectOf returns the subject that word names. A file of that name takes precedence over a build
// ID. An error that is a usageError means that word is neither.
func subjectOf(word string) (s subject, err error) {
	s.word = word
	info, err := os.Stat(word)
	switch {
	case word == "":
		return s, usageError{errors.New("the name of a FILE is empty")}
	case errors.Is(err, fs.ErrNotExist):
		if s.id, err = buildid.Parse([]byte(word)); err != nil {
			return s, usageError{fmt.Errorf("%s: no such file, and %w", word, err)}
		}
		return s, nil
	case err != nil:
		return s, fmt.Errorf("open %s: %w", word, bare(err))
	case info.IsDir():
		return s, fmt.Errorf("%s is a folder; name a file in it", word)
	}
	if s.path, err = filepath.Abs(word); err != nil {
		return s, err
	}
	if !info.Mode().IsRegular() {
		return s, nil
	}
	file, err := buildid.OpenRegular(s.path, "the command line")
	if err != nil {
		return s, fmt.Errorf("open %s: %w", word, bare(err))
	}
	defer file.Close()
	var head [18]byte
	if _, err := file.ReadAt(head[:], 0); err == nil {
		s.elf, s.core = elfKind(head[:])
	}
	if !s.elf {
		return s, nil
	}
	if s.id, err = buildid.Read(file, file.Size()); err != nil && !errors.Is(err, buildid.ErrNoID) {
		return s, fmt.Errorf("%s: %w", word, err)
	}
	return s, nil
}

// location returns the place in the subject at a module-relative address.
func (s *subject) location(addr uint64) symbolize.Location {
	return symbolize.Location{ID: s.id, Name: s.path, Addr: addr}
}

// unresolved returns the subject with n addresses that have no name because of err.
func (s *subject) unresolved(n int64, err error) filter.Unresolved {
	return filter.Unresolved{ID: s.id, Name: s.path, Frames: n, Err: err}
}
