package llvmfilter

import (
	"io"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// worstElements are elements of each kind in their shortest forms, and texts that look like the
// beginning of an element.
var worstElements = []string{
	"x ", "\x1b[1m", "\x1b[3", "{{{reset}}}", "{{{module:1:a:elf:aa}}}", "{{{mmap:0:1:load:0:r:0}}}", "{{{bt:0:0}}}", "{{{bt:0:0x500100}}}",
	"{{{pc:0}}}", "{{{data:0}}}", "{{{symbol:a}}}", "{{{hexdict:}}}", "{{{hexdict:", "}}}", "{{{dumpfile:a:b}}}", "{{{u}}}", "{{{U}}}",
	"{{{bt:z}}}", "{{{bt:", "{{{symbol:{{{", "{{{", "{{{}}}", "{{{pc:::::::::}}}",
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// The output for a line, and the memory allocated for it, must at most be proportional to the
// line's length, whichever two elements alternate in it. LLVM's filter repeats the line for each
// error in it; this filter repeats it at most maxRepeat times.
func TestTheWorkOnALineGrowsWithItsLength(t *testing.T) {
	fuzztest.WithoutRace(t)
	const n = 8 << 10
	// bytes of output and diagnostics for each byte of the line, in addition to maxEcho
	const most = 3 * maxRepeat
	context := "{{{module:0:a:elf:aa}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0}}}\n"
	for _, o := range []Options{{}, {Color: true, DiagColor: true}} {
		for i, a := range worstElements {
			for _, b := range worstElements[i:] {
				both := a + b
				cost := func(n int) (bytes, allocated int64) {
					var out counter
					f := New(&out, &out, o)
					io.WriteString(f, context)
					before := fuzztest.Allocated()
					io.WriteString(f, strings.Repeat(both, n/len(both))+"\n")
					f.Close()
					return int64(out), fuzztest.Allocated() - before
				}
				half, _ := cost(n)
				whole, allocated := cost(2 * n)
				if whole > most*2*n+maxEcho || float64(whole) > 2.2*float64(half)+maxEcho {
					t.Errorf("%q with colour %v: %d bytes come out of %d, and %d of twice as many", both, o.Color, half, n, whole)
				}
				if allocated > most*2*n+16*chunk {
					t.Errorf("%q with colour %v: %d bytes are allocated for %d", both, o.Color, allocated, 2*n)
				}
			}
			fuzztest.Growth(t, []byte(a), func(line []byte) {
				f := New(io.Discard, io.Discard, o)
				io.WriteString(f, context)
				f.Write(line)
				f.Close()
			})
		}
	}
}
