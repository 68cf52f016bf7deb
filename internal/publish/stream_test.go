package publish

import (
	"fmt"
	"io"
	"testing"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A printer must not keep the output for a finding, about 4 kB. The number of allocations for each
// finding must stay within a bound.
func TestPrintersKeepNothingOfWhatTheyPrint(t *testing.T) {
	fuzztest.WithoutRace(t)
	r := results()
	const n = 4_000
	for i := range n {
		x := aRead()
		x.Fingerprint = fmt.Sprint(i)
		r.Add(0, x, 1)
	}
	for name, tt := range map[string]struct {
		print func(io.Writer, *Result) error
		most  float64 // allocations for a finding
		least countBytes
	}{
		"sarif":       {SARIF, 25, 3_000 * n},
		"junit":       {JUnit, 25, 300 * n},
		"codequality": {CodeQuality, 5, 150 * n},
	} {
		var size countBytes
		if err := tt.print(&size, r); err != nil || size < tt.least {
			t.Errorf("%s: %d bytes, error %v", name, size, err)
		}
		if got := testing.AllocsPerRun(1, func() { tt.print(io.Discard, r) }) / n; got > tt.most {
			t.Errorf("%s: %.0f allocations for a finding, want at most %.0f", name, got, tt.most)
		}
	}
}

func TestErrorsOfWritingAreReturned(t *testing.T) {
	r := results()
	for i := range 100 {
		r.Add(0, &findings.Finding{Tool: "memcheck", Kind: "x", Fingerprint: fmt.Sprint(i)}, 1)
	}
	for name, print := range map[string]func(io.Writer, *Result) error{"sarif": SARIF, "junit": JUnit, "codequality": CodeQuality} {
		for _, after := range []int{0, 1} {
			if err := print(&full{after}, r); err != io.ErrShortWrite {
				t.Errorf("%s: error %v", name, err)
			}
		}
	}
}

// A full fails with io.ErrShortWrite after left bytes, like a full disk.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	n := min(f.left, len(p))
	f.left -= n
	if n < len(p) {
		return n, io.ErrShortWrite
	}
	return n, nil
}
