package report

import (
	"sync"
	"testing"
)

// ledger is a Ledger that grants up to a number of bytes, and records the most bytes that were
// granted at the same time.
type ledger struct {
	mu         sync.Mutex
	left, out  int64
	most, asks int64
}

func (l *ledger) Take(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks++
	if n > l.left {
		return false
	}
	l.left, l.out = l.left-n, l.out+n
	l.most = max(l.most, l.out)
	return true
}

func (l *ledger) Give(n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left, l.out = l.left+n, l.out-n
}

// Together, the Shares of one Budget must take no more than the Budget and its ledger have. They
// must seldom call the ledger, and must return everything.
func TestSharesStayWithinBudgetAndLedger(t *testing.T) {
	for _, test := range []struct {
		name         string
		most, ledger int64
		want         int64 // bytes that all Shares take together
	}{
		{"the budget is smaller", 8 << 20, 100 << 20, 8 << 20},
		{"the ledger is smaller", 100 << 20, 8 << 20, 8 << 20},
		{"both are small", 1000, 1000, 1000},
		{"nothing is left", 1 << 20, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &ledger{left: test.ledger}
			b := NewBudget(test.most, l)
			var all sync.WaitGroup
			var mu sync.Mutex
			var taken int64
			for range 4 {
				all.Go(func() {
					s := NewShare(b)
					for s.Take(100, 0) {
					}
					mu.Lock()
					taken += s.Taken()
					mu.Unlock()
				})
			}
			all.Wait()
			// Near the limit, a Share may be refused while another one briefly holds bytes.
			if taken > test.want || taken < test.want-4*100*4 {
				t.Errorf("%d bytes were taken, want %d", taken, test.want)
			}
			if l.most > max(test.most+ledgerStep, 0) || l.most > test.ledger {
				t.Errorf("%d bytes were out of the ledger, of %d and %d", l.most, test.most, test.ledger)
			}
			if most := test.want/ledgerStep + 20; l.asks > most {
				t.Errorf("the ledger was asked %d times, want %d at most", l.asks, most)
			}
		})
	}
}

func TestSharesGiveBack(t *testing.T) {
	l := &ledger{left: 10 << 20}
	b := NewBudget(10<<20, l)
	one, two := NewShare(b), NewShare(b)
	if !one.Take(6<<20, 0) || !two.Take(3<<20, 0) || two.Take(2<<20, 0) || two.Take(1<<20, 1) {
		t.Fatal("the shares are not those of 10 MiB")
	}
	one.Release()
	if l.out < 3<<20 || l.out > 5<<20 || b.Used() != 3<<20 {
		t.Errorf("after the first share %d bytes are out and %d used", l.out, b.Used())
	}
	if !two.Reserve(8<<20) || two.Reserve(11<<20) {
		t.Error("what was given back cannot be taken")
	}
	two.Release()
	if l.out != 0 || b.Used() != 0 {
		t.Errorf("%d bytes are out and %d used, want none", l.out, b.Used())
	}
}
