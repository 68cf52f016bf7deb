package report

import (
	"sync"
	"sync/atomic"
)

// DefaultMaxMemory bounds the heap, in bytes, of a reader whose report has no Budget. It equals the
// symbolizer's default.
const DefaultMaxMemory = 512 << 20

// ledgerStep is the least number of bytes that a Budget takes from its Ledger, unless the Ledger
// has fewer. It saves a call for each small allocation.
const ledgerStep = 1 << 20

// A Ledger grants memory from a shared budget: see [symbolize.ReportOptions]. With the
// [symbolize.Symbolizer] as Ledger, reports and debug files share --max-memory. A Ledger
// must be safe for concurrent use.
type Ledger interface {
	Take(n int64) bool // reports whether n more bytes are granted
	Give(n int64)      // returns n granted bytes
}

// A Budget bounds the heap of several reports together. It is safe for concurrent use.
type Budget struct {
	most   int64 // bytes
	ledger Ledger
	used   atomic.Int64

	mu      sync.Mutex
	granted atomic.Int64 // bytes granted by the ledger
}

// NewBudget returns a Budget of the given size in bytes. ledger, if not nil, must also grant each
// byte.
func NewBudget(bytes int64, ledger Ledger) *Budget { return &Budget{most: bytes, ledger: ledger} }

// BudgetOf returns memory, the Memory of Options, if it is a Budget. Otherwise it returns a Budget
// of DefaultMaxMemory for one report. Its ledger is memory, which may be nil.
func BudgetOf(memory Ledger) *Budget {
	if b, ok := memory.(*Budget); ok {
		return b
	}
	return NewBudget(DefaultMaxMemory, memory)
}

// Most returns the size of the Budget, in bytes.
func (b *Budget) Most() int64 { return b.most }

// Used returns the bytes that were taken and not returned.
func (b *Budget) Used() int64 { return b.used.Load() }

// covers reports whether the ledger has granted, or now grants, used bytes.
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

// Take reports whether n more bytes are granted.
func (b *Budget) Take(n int64) bool { return b.take(n, 0) }

// take is Take, but also fails if fewer than spare bytes of the Budget would remain.
func (b *Budget) take(n, spare int64) bool {
	used := b.used.Add(n)
	if used > b.most-spare || !b.covers(used) {
		b.used.Add(-n)
		return false
	}
	return true
}

// Give returns n bytes to the Budget. Unused bytes go back to the ledger if they exceed
// 2*ledgerStep, or if no bytes are in use.
func (b *Budget) Give(n int64) {
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

// A Share is one report's part of a Budget. It is not safe for concurrent use.
type Share struct {
	Budget *Budget // not nil
	taken  int64
}

// NewShare returns an empty Share of the Budget of memory: see [BudgetOf].
func NewShare(memory Ledger) Share { return Share{Budget: BudgetOf(memory)} }

// Taken returns the size of the Share, in bytes.
func (s *Share) Taken() int64 { return s.taken }

// Take adds n bytes to the Share if at least spare bytes of the Budget remain. It reports whether
// it has added them.
func (s *Share) Take(n, spare int64) bool {
	if !s.Budget.take(n, spare) {
		return false
	}
	s.taken += n
	return true
}

// Reserve grows the Share to at least n bytes, in large steps. It returns false if the Budget does
// not allow that.
func (s *Share) Reserve(n int64) bool {
	missing := n - s.taken
	return missing <= 0 || s.Take(max(missing, min(ledgerStep, s.Budget.most/64)), 0) || s.Take(missing, 0)
}

// Release returns all bytes of the Share to the Budget.
func (s *Share) Release() {
	if s.taken > 0 {
		s.Budget.Give(s.taken)
		s.taken = 0
	}
}
