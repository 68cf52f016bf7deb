package buildid

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/symfilter/symfilter/internal/object"
)

// noSuchFile is the Reason of an [Attempt] at a path that does not exist.
const noSuchFile = "no such file"

// reasonFor returns the reason of an Attempt for err, an error of open, without the path.
func reasonFor(err error) string {
	var format *object.FormatError
	var limit *object.LimitError
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return noSuchFile
	case errors.As(err, &format):
		return "not an ELF file: " + format.Error()
	case errors.As(err, &limit):
		return "not an ELF file: " + limit.Error()
	case errors.Is(err, fs.ErrPermission):
		return "not readable: permission denied"
	case errors.As(err, &path):
		return path.Err.Error()
	}
	return err.Error()
}

// passing reports whether err is temporary or due to a failing disk. The file may exist, so it is
// not remembered as missing.
func passing(err error) bool {
	return exhausted(err) || isContext(err) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN)
}

// exhausted reports whether this process or the system has no more descriptors or memory.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// A search is the state of one Find. It collects the reasons of misses.
type search struct {
	ctx     context.Context
	where   string
	query   Query
	note    func(Attempt)
	passing error // the first error after which the file may exist

	unusable error // an UnusableError: the first file that is at its place but not usable
}

func (s *search) noteMiss(where, said string) {
	if s.note != nil {
		s.note(Attempt{where, said})
	}
}

// try opens the file at path. If it is not the right file, try notes the reason and returns nil.
func (s *search) try(path string) *File {
	if s.ctx.Err() != nil {
		return nil
	}
	f, err := open(path, s.where, s.query.ID, s.query.Whole)
	if err == nil {
		return f
	}
	s.failed(path, err)
	return nil
}

// failed notes and keeps err, the reason why the file at path is not the right one.
func (s *search) failed(path string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.noteMiss(path, reasonFor(err))
	if s.passing == nil && passing(err) {
		s.passing = err
	}
	if s.unusable == nil && unusable(err) {
		s.unusable = &UnusableError{path, err}
	}
}

// tryVerified is like try, but rejects a file without a note.
func (s *search) tryVerified(path string) *File {
	f := s.try(path)
	if f != nil && f.unverified {
		f.Close()
		s.noteMiss(path, ErrNoID.Error())
		return nil
	}
	return f
}

func (s *search) miss() error {
	err := cmp.Or(s.ctx.Err(), s.passing, s.unusable, fs.ErrNotExist)
	if s.query.ID.IsZero() {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return fmt.Errorf("build ID %s: %s: %w", s.query.ID, s.where, err)
}

// best returns the file that suits the query best, the first among equals. It considers n files, at
// most maxCandidates. open opens file i, or returns nil. whole reports whether no other file can be
// better.
func (s *search) best(n int, open func(i int) *File) (best *File, whole bool) {
	rank := -1
	for i := 0; i < min(n, maxCandidates) && rank < wholeRank; i++ {
		f := open(i)
		if f == nil {
			continue
		}
		if r := rankOf(f, s.query.Kind); r > rank {
			f, best, rank = best, f, r
		}
		if f != nil {
			f.Close()
		}
	}
	return best, rank == wholeRank
}

// wholeRank is the rank of a file with all contents of its kind.
const wholeRank = 3

// rankOf returns a file's rank for a kind of query. The highest rank is best.
func rankOf(f *File, kind Kind) int {
	o, err := object.Open(f, f.size, nil)
	if err != nil {
		return 0
	}
	defer o.Close()
	if kind == Executable {
		for _, s := range o.Sections() {
			if s.Flags&elf.SHF_EXECINSTR != 0 && s.Type != elf.SHT_NOBITS {
				return wholeRank
			}
		}
		return 1
	}
	if s, ok := o.Section(".debug_info"); ok && s.Type != elf.SHT_NOBITS {
		return wholeRank
	}
	if s, ok := o.Section(".symtab"); ok && s.Type != elf.SHT_NOBITS {
		return 2
	}
	return 1
}
