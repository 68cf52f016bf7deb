package object

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/symfilter/symfilter/internal/unpack"
)

// Options bound the memory and disk of a file beyond its own bytes. The zero value grants all
// memory, on the heap.
type Options struct {
	// Take requests n bytes of memory before sections are inflated, read or copied, or
	// MiniDebugInfo is unpacked; Give returns them. Single sections below 64 KiB are on the Go heap
	// without a call. Errors of Take must wrap [ErrMemory]. The sections then go to SpillDir, or
	// fail with that error.
	//
	// Taken memory is outside of the Go heap, in anonymous mappings, if the system has them. It is
	// unmapped when the file is closed. Both functions must be safe for concurrent use. Set both or
	// neither.
	Take func(n int64) error
	Give func(n int64)

	// SpillDir is the directory for sections that Take does not grant: they are inflated into
	// mapped files without a name. Their blocks are allocated before anything is written, and 1 GiB
	// of the file system is left to others. A missing directory is made. A directory in memory
	// (tmpfs) is refused. If SpillDir is empty, or the system cannot map files, sections do not go
	// to files.
	SpillDir string

	// LastAlias makes Symbol prefer the last of several symbols with one address and size, as
	// llvm-symbolizer does.
	LastAlias bool
}

// ErrMemory is wrapped by errors about memory that Options.Take did not grant. Such errors are not
// kept, since memory may be available later.
var ErrMemory = errors.New("not enough memory at the moment")

// ErrInMemory is wrapped by errors about a spill directory that is in memory itself.
var ErrInMemory = errors.New("the directory is in memory (tmpfs)")

// OffHeap reports whether memory that Options.Take granted is outside of the Go heap on this
// system.
const OffHeap = canMap

// OpenWith is [Open] with options.
func OpenWith(r io.ReaderAt, size int64, osFile *os.File, o Options) (*File, error) {
	f, err := Open(r, size, osFile)
	if err == nil {
		f.room.Options = o
	}
	return f, err
}

// A room is the memory and disk space that a file has taken.
type room struct {
	Options
	mu     sync.Mutex // guards arenas: another goroutine may call ReleasePages
	arenas []*arena   // memory of sections
}

// add records an arena of the file, so that Close frees the arena unless release does so earlier.
func (r *room) add(a *arena) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.arenas = append(r.arenas, a)
}

// An arena is memory for sections: a mapping outside of the heap, or the mapping of a file in the
// spill directory. If the system cannot map, it is on the heap.
type arena struct {
	bytes  []byte
	taken  int64 // bytes that Take granted; 0 for a file, and without Take
	onHeap bool
	file   *os.File // open while the arena is written
}

// newArena returns an arena of size bytes, if take grants them. Any goroutine may call it.
func (o *Options) newArena(size uint64, take func(int64) error) (*arena, error) {
	if err := take(int64(size)); err != nil {
		return nil, err
	}
	if !canMap {
		return &arena{bytes: make([]byte, size), taken: int64(size), onHeap: true}, nil
	}
	b, err := anonymous(size)
	if err != nil {
		o.Give(int64(size))
		return nil, fmt.Errorf("map %d MiB: %w: %w", size>>20, ErrMemory, err)
	}
	return &arena{bytes: b, taken: int64(size)}, nil
}

// spill returns an arena of size bytes in a new file in SpillDir. denied is the reason why no
// memory was granted. Any goroutine may call it.
func (o *Options) spill(size uint64, denied error) (*arena, error) {
	if o.SpillDir == "" || !canMap || size < minSpill || !errors.Is(denied, ErrMemory) {
		return nil, denied
	}
	if err := os.MkdirAll(o.SpillDir, 0o700); err != nil {
		return nil, fmt.Errorf("%w; cannot inflate into a file: %w", denied, err)
	}
	file, b, err := scratch(o.SpillDir, size)
	if err != nil {
		return nil, fmt.Errorf("%w; cannot inflate %d MiB into a file in %s: %w", denied, size>>20, o.SpillDir, err)
	}
	return &arena{bytes: b, file: file}, nil
}

func (a *arena) spilled() bool { return a.taken == 0 && !a.onHeap }

// fill unpacks a stream to the arena's file, at the given offset. It writes the file instead of its
// mapping: a page fault that waits for the disk would hold up the whole process.
func (a *arena) fill(p unpack.Stream, at uint64) error {
	return p.To(io.NewOffsetWriter(a.file, int64(at)))
}

// written closes the arena's file, if any, after writing.
func (a *arena) written() error {
	if a.file == nil {
		return nil
	}
	err := a.file.Close()
	a.file = nil
	return err
}

func (a *arena) free(o *Options) error {
	b := a.bytes
	a.bytes = nil
	err := a.written()
	if !a.onHeap && len(b) > 0 {
		err = errors.Join(err, unmap(b))
	}
	if a.taken > 0 {
		o.Give(a.taken)
	}
	return err
}

// release frees an arena before Close; a may be nil. The arena's bytes must not be used afterwards.
func (r *room) release(a *arena) error {
	if a == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.arenas, a); i >= 0 {
		r.arenas = slices.Delete(r.arenas, i, i+1)
		return a.free(&r.Options)
	}
	return nil
}

func (a *arena) offHeap() bool { return a != nil && !a.onHeap }

// borrow takes n bytes for a decoder; the caller returns them with giveBack.
func (o *Options) borrow(n uint64) (giveBack func(), err error) {
	if o.Take == nil || n == 0 {
		return func() {}, nil
	}
	if err := o.Take(int64(n)); err != nil {
		return nil, err
	}
	return func() { o.Give(int64(n)) }, nil
}

func (r *room) free() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, a := range r.arenas {
		errs = append(errs, a.free(&r.Options))
	}
	r.arenas = nil
	return errors.Join(errs...)
}
