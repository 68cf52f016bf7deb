package object

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/symfilter/symfilter/internal/inflate"
)

// Options say what a file may use beyond its own bytes.
type Options struct {
	// SpillDir is where compressed sections are inflated to that would not fit: into files that have no name any more, and take no
	// heap. Their space is taken before anything is written, and 1 GiB of the file system is left to others. It is made if it is not
	// there. Empty, or where the system cannot map files: all are inflated on the heap.
	SpillDir string
	// SpillOver is how many bytes of inflated sections may lie on the heap.
	SpillOver int64
}

// OpenWith is [Open] with options.
func OpenWith(r io.ReaderAt, size int64, osFile *os.File, o Options) (*File, error) {
	f, err := Open(r, size, osFile)
	if err == nil {
		f.spill.Options = o
	}
	return f, err
}

// Spills reports whether sections that do not fit the heap are inflated elsewhere.
func (f *File) Spills() bool { return f.spill.SpillDir != "" && canMap }

// spill is where sections go that do not fit.
type spill struct {
	Options
	heap uint64   // bytes of inflated sections on it
	maps [][]byte // sections elsewhere
}

// room returns where an inflated section goes: size bytes and [inflate.Slack] more. nil: on the heap, but bit by bit, since packed bytes are not likely
// to become so many.
func (f *File) room(size, packed uint64) ([]byte, error) {
	over := uint64(max(f.spill.SpillOver, 0))
	if f.Spills() && size >= minSpill && f.spill.heap+size > over {
		if err := os.MkdirAll(f.spill.SpillDir, 0o700); err != nil {
			return nil, fmt.Errorf("inflate in a file: %w", err)
		}
		b, err := scratch(f.spill.SpillDir, size+inflate.Slack)
		if err != nil {
			return nil, fmt.Errorf("inflate %d MiB in a file in %s: %w", size>>20, f.spill.SpillDir, err)
		}
		f.spill.maps = append(f.spill.maps, b)
		return b, nil
	}
	f.spill.heap += size
	if !likely(size, packed) {
		return nil, nil
	}
	return make([]byte, size+inflate.Slack), nil
}

// holds reports whether data lies elsewhere than on the heap.
func (s *spill) holds(data []byte) bool {
	return len(data) > 0 && slices.ContainsFunc(s.maps, func(b []byte) bool { return &b[0] == &data[0] })
}

// unmap gives all sections elsewhere back.
func (s *spill) unmap() error {
	var errs []error
	for _, b := range s.maps {
		errs = append(errs, unmap(b))
	}
	s.maps = nil
	return errors.Join(errs...)
}
