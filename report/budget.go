package report

import (
	"sync"
	"sync/atomic"
)

// DefaultMaxMemory is the heap, in bytes, that the reader of a report takes at most if it has no
// Budget: as much as the symbolizer's default.
const DefaultMaxMemory = 512 << 20

// ledgerStep is how many bytes a Budget takes from its Ledger at a time, so that a table of small
// entries does not ask for each.
const ledgerStep = 1 << 20

// A Ledger grants memory out of a budget that others share. [symbolize.Symbolizer] is one: what
// reports take and what debug files take is then --max-memory together.
type Ledger interface {
	Take(n int64) bool // reports whether n more bytes are granted
	Give(n int64)      // takes n granted bytes back
}

// A Budget is the heap that reports may take together. Reports on different goroutines may share
// one.
type Budget struct {
	most   int64 // bytes
	ledger Ledger
	used   atomic.Int64

	mu      sync.Mutex
	granted atomic.Int64 // by the ledger
}

// NewBudget returns a Budget of so many bytes, which also must be granted by the ledger, if that is
// not nil.
func NewBudget(bytes int64, ledger Ledger) *Budget { return &Budget{most: bytes, ledger: ledger} }

// Most returns the bytes of the Budget.
func (b *Budget) Most() int64 { return b.most }

// Used returns the bytes that are taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// covers reports whether the ledger grants used bytes.
func (b *Budget) covers(used int64) bool {
	if b.ledger == nil || used <= b.granted.Load() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	missing := used - b.granted.Load()
	for _, n := range []int64{max(missing, ledgerStep), missing} {
		if missing <= 0 {
			return true
		}
		if b.ledger.Take(n) {
			b.granted.Add(n)
			return true
		}
	}
	return false
}

// give takes n bytes back, and returns to the ledger what is no longer needed of it.
func (b *Budget) give(n int64) {
	used := b.used.Add(-n)
	if b.ledger == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if excess := b.granted.Load() - used; excess > 2*ledgerStep || used == 0 && excess > 0 {
		b.granted.Add(-excess)
		b.ledger.Give(excess)
	}
}

// A Share is what one report has taken of a Budget. One goroutine at a time uses it.
type Share struct {
	Of    *Budget // not nil
	taken int64
}

// NewShare returns an empty Share of b; nil is a Budget of DefaultMaxMemory for this report alone.
func NewShare(b *Budget) Share {
	if b == nil {
		b = NewBudget(DefaultMaxMemory, nil)
	}
	return Share{Of: b}
}

// Taken returns the bytes of the Share.
func (s *Share) Taken() int64 { return s.taken }

// Take reports whether n more bytes fit the Budget and leave spare bytes of it, and takes them if
// they do.
func (s *Share) Take(n, spare int64) bool {
	used := s.Of.used.Add(n)
	if used > s.Of.most-spare || !s.Of.covers(used) {
		s.Of.used.Add(-n)
		return false
	}
	s.taken += n
	return true
}

// Reserve makes the Share at least n bytes, and reports whether that was possible. It grows by a
// step at a time.
func (s *Share) Reserve(n int64) bool {
	missing := n - s.taken
	return missing <= 0 || s.Take(max(missing, min(ledgerStep, s.Of.most/64)), 0) || s.Take(missing, 0)
}

// Release gives all of it back.
func (s *Share) Release() {
	if s.taken > 0 {
		s.Of.give(s.taken)
		s.taken = 0
	}
}
