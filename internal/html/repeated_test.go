package html

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/deflate"
)

// longBacktrace returns a backtrace of about 10 KB, which has little in common with others.
func longBacktrace(key string, seed uint64) *Backtrace {
	r := rand.New(rand.NewPCG(seed, 1))
	b := &Backtrace{Key: key, About: -1}
	for i := range 100 {
		b.Rows = append(b.Rows, Row{Text: fmt.Appendf(nil, "#%d %#x function_%x_%x (library+%#x) <&>", i, r.Uint64(), r.Uint64(), r.Uint64(), r.Uint32()), Ended: true, Kind: Own})
	}
	return b
}

// A backtrace that repeats beyond the reach of a match is compressed once, whatever is around it:
// the second one, for the others. Of one that is near, or differs, or repeats only once, none is
// compressed alone.
func TestRepeatedBacktracesAreCompressedOnce(t *testing.T) {
	for _, test := range []struct {
		name             string
		between, differs int // bytes before each backtrace; backtraces that follow each other and differ
		parts            int // of 10 backtraces
	}{{"far", deflate.Window, 1, 9}, {"near", 100, 1, 0}, {"changing", deflate.Window, 2, 0}} {
		t.Run(test.name, func(t *testing.T) {
			var want strings.Builder
			r := rand.New(rand.NewPCG(1, 2))
			parts := 0
			page := whole("log", func(p *Page) {
				p.Limit(1000, 3)
				add := func(bytes int) {
					for n := want.Len(); want.Len() < n+bytes; {
						line := fmt.Sprintf("%x %x", r.Uint64(), r.Uint64())
						p.Text([]byte(line), true)
						want.WriteString(line + "\n")
					}
				}
				add(2000)
				for i := range 10 {
					add(test.between)
					b := longBacktrace("a", uint64(i%test.differs))
					for _, r := range b.Rows {
						want.WriteString(string(r.Text) + "\n")
					}
					p.Backtrace(b)
				}
				parts = len(p.chunk.parts)
			})
			read(t, page, want.String())
			if parts != test.parts {
				t.Errorf("%d parts are compressed, want %d", parts, test.parts)
			}
		})
	}
}

// The text that is kept for backtraces that repeat is bounded.
func TestRepeatedBacktracesAreBounded(t *testing.T) {
	p := New("log")
	p.Limit(1000, 3)
	line := []byte(strings.Repeat("x", 1000))
	for range 2 * headRows {
		p.Text(line, true)
	}
	for i := range 2 * keptRepeated / 10_000 {
		b := longBacktrace(fmt.Sprint(i), uint64(i))
		p.Backtrace(b)
		p.Backtrace(b)
	}
	kept := 0
	for _, e := range p.distinct.entries {
		kept += len(e.packed.text)
	}
	if kept > keptRepeated || kept < keptRepeated/2 {
		t.Errorf("%d bytes are kept, of at most %d", kept, keptRepeated)
	}
}
