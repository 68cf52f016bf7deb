package unpack

import (
	"errors"
	"fmt"
	"sync"
)

// Memory bounds the bytes that the decoders of all compressed inputs may take together for their
// windows. Its methods are safe for concurrent use.
type Memory struct {
	mu          sync.Mutex
	total, left uint64
}

// DefaultMemory is the size in bytes of an input's Memory if input.Translators.Memory is nil.
const DefaultMemory = 256 << 20

// NewMemory returns a Memory of n bytes.
func NewMemory(n int64) *Memory { return &Memory{total: uint64(max(n, 0)), left: uint64(max(n, 0))} }

// Left returns the bytes that are not taken.
func (m *Memory) Left() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left
}

// ErrNoMemory is wrapped by errors of decoders whose window does not fit into the Memory.
var ErrNoMemory = errors.New("not enough memory for compressed inputs")

// A lease is one input's part of a Memory.
type lease struct {
	of *Memory
	n  uint64
}

// take grows the lease to n bytes. It fails if the Memory has too little left.
func (l *lease) take(n uint64) error {
	if n <= l.n {
		return nil
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if n-l.n > l.of.left {
		return fmt.Errorf("%w: unpacking needs %d MiB; %d of %d are left", ErrNoMemory, (n-1)>>20+1, (l.of.left+l.n)>>20, l.of.total>>20)
	}
	l.of.left -= n - l.n
	l.n = n
	return nil
}

func (l *lease) end() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.left += l.n
	l.n = 0
}
