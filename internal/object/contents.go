package object

import (
	"bytes"
	"errors"
	"io"
)

// contents are the bytes of a file, and the memory for copies of its parts. The file is mapped, or
// the parts of a small file are in memory, or a reader reads parts on demand.
type contents struct {
	r        io.ReaderAt
	mapped   []byte      // the whole file; nil if image is set, or if parts are read on demand
	image    *smallImage // set for a small file
	inMemory bool        // mapped is not a mapping of a file
	onHeap   bool        // mapped is on the heap
	closed   bool
	room     room
}

// held returns the bytes of the file at [off, off+size) without a copy. The range must be inside
// the file. ok is false if the bytes must be read through r.
func (c *contents) held(off, size uint64) (b []byte, ok bool) {
	switch {
	case c.mapped != nil:
		return c.mapped[off : off+size : off+size], true
	case c.image != nil:
		b = c.image.find(off, size)
		return b, b != nil || size == 0
	}
	return nil, false
}

// Held reports whether the file needs no reader: it is mapped, or in memory.
func (c *contents) Held() bool { return c.mapped != nil || c.image != nil }

// bytes returns a reader of the file's bytes. It prefers the mapping: the descriptor may be closed.
func (c *contents) bytes() io.ReaderAt {
	if c.mapped != nil {
		return bytes.NewReader(c.mapped)
	}
	return c.r
}

// read returns a copy of the bytes of a section.
func (c *contents) read(s *Section) (k kept) {
	if s.Size > maxHeapSection {
		return kept{err: &LimitError{"bytes", s.Size, maxHeapSection}}
	}
	if k.data, k.arena, k.err = c.alloc(s.Size); k.err == nil {
		k.offHeap = k.arena.offHeap()
		k.data = k.data[:s.Size:s.Size]
		if b, ok := c.held(s.Offset, s.Size); ok { // the reader may be closed
			copy(k.data, b)
		} else {
			k.err = readFull(c.r, k.data, s.Offset)
		}
	}
	if k.err != nil {
		k.data = nil
	}
	return k // keep releases the memory of a failed section
}

// Spills reports whether sections that exceed the memory may be inflated into files.
func (c *contents) Spills() bool { return c.room.SpillDir != "" && canMap }

// Granted returns the number of bytes that Options.Take has granted and that the file still holds.
func (c *contents) Granted() (n int64) {
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	for _, a := range c.room.arenas {
		n += a.taken
	}
	return n
}

// alloc returns size bytes for a section, and their arena. The bytes are valid until release or
// Close. Without Take, and for small sections, the bytes are on the heap, and the arena is nil.
func (c *contents) alloc(size uint64) (b []byte, a *arena, err error) {
	if c.room.Take == nil || size < minArena {
		return make([]byte, size), nil, nil
	}
	if a, err = c.room.newArena(size, c.room.Take); err != nil {
		return nil, nil, err
	}
	c.room.add(a)
	return a.bytes, a, nil
}

// Alloc returns size bytes of memory that are valid until Close. It takes them like the memory of a
// section: see Options.Take. If onHeap is true, the caller must count them: Footprint does not.
func (c *contents) Alloc(size int) (b []byte, onHeap bool, err error) {
	b, a, err := c.alloc(uint64(size))
	return b, !a.offHeap(), err
}

// footprint returns the bytes of heap that hold the file itself, without its sections.
func (c *contents) footprint() int64 {
	n := c.image.footprint()
	if c.onHeap {
		n += int64(cap(c.mapped))
	}
	return n
}

func (c *contents) close() error {
	m := c.mapped
	c.closed, c.mapped, c.image = true, nil, nil
	err := c.room.free()
	if m == nil || c.inMemory {
		return err
	}
	return errors.Join(err, unmap(m))
}
