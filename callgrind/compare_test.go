package callgrind

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// If memory does not suffice to compare all functions, Close must return ErrMemory. It must always
// release the memory.
func TestComparisonsAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, c := range []struct {
		most int64
		want error
	}{{4 << 20, ErrMemory}, {32 << 20, nil}} {
		budget := report.NewBudget(c.most, nil)
		cmp := NewComparison(io.Discard, Options{ReportOptions: symbolize.ReportOptions{Memory: budget}})
		for _, r := range []*Report{cmp.Before, cmp.After} {
			if err := r.Begin(Input{Label: "input"}); err != nil {
				t.Fatal(err)
			}
			io.WriteString(r, "events: Ir\n")
			for i := range 4000 {
				if _, err := fmt.Fprintf(r, "fn=(%d) f%d\n1 1\n", i, i); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmp.Close(); !errors.Is(err, c.want) {
			t.Errorf("with %d MiB: %v, want %v", c.most>>20, err, c.want)
		}
		if used := budget.Used(); used != 0 {
			t.Errorf("with %d MiB: %d bytes are still taken", c.most>>20, used)
		}
	}
}
