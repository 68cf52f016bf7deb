package buildid

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/symfilter/symfilter/internal/object"
)

// said puts an error of open into the words of an Attempt, which has the path already.
func said(err error) string {
	var format *object.FormatError
	var limit *object.LimitError
	var path *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "no such file"
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

// passing reports whether err is about this moment rather than about the file: it must not be remembered as a miss.
func passing(err error) bool {
	return exhausted(err) || isContext(err) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EINTR) || errors.Is(err, syscall.EAGAIN)
}

// exhausted reports whether err says that this process or the system has no more descriptors or memory.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// isContext reports whether err is that of a context that ended.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// A search is one Find: it keeps what must be said when nothing is found.
type search struct {
	ctx     context.Context
	where   string
	query   Query
	note    func(Attempt)
	passing error // the first error that says nothing about the file

	unusable *UnusableError // the first file that was there and was none
}

func (s *search) tell(where, said string) {
	if s.note != nil {
		s.note(Attempt{where, said})
	}
}

// try opens the file at path, or tells why it is not the one.
func (s *search) try(path string) *File {
	if s.ctx.Err() != nil {
		return nil
	}
	f, err := open(path, s.where, s.query.ID)
	if err == nil {
		return f
	}
	s.failed(path, err)
	return nil
}

// failed keeps and tells that the file at path is not the one, for err.
func (s *search) failed(path string, err error) {
	if s.ctx.Err() != nil {
		return
	}
	s.tell(path, said(err))
	if s.passing == nil && passing(err) {
		s.passing = err
	}
	if s.unusable == nil && unusable(err) {
		s.unusable = &UnusableError{path, err}
	}
}

// tryVerified is try for places where a file without a note cannot be trusted.
func (s *search) tryVerified(path string) *File {
	f := s.try(path)
	if f != nil && f.unverified {
		f.Close()
		s.tell(path, ErrNoID.Error())
		return nil
	}
	return f
}

// miss returns the error of a search that found nothing.
func (s *search) miss() error {
	err := s.ctx.Err()
	if err == nil {
		err = s.passing
	}
	if err == nil && s.unusable != nil {
		err = s.unusable
	}
	if err == nil {
		err = fs.ErrNotExist
	}
	if s.query.ID.IsZero() {
		return fmt.Errorf("%s: %w", s.where, err)
	}
	return fmt.Errorf("build ID %s: %s: %w", s.query.ID, s.where, err)
}

// best returns that of n files which serves the query best, the first of equals, and whether none can serve it better. open opens the
// one of a number, or returns nil.
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

// wholeRank is the rank of a file that has what is asked for.
const wholeRank = 3

// rankOf says how well a file serves a kind of query: more is better.
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
