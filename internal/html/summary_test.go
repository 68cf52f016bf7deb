package html

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/pagetest"
)

// outline returns the outline of the page that write writes.
func outline(t *testing.T, write func(*Page)) string {
	t.Helper()
	p, err := pagetest.Parse(whole("log", write))
	if err != nil {
		t.Fatal(err)
	}
	return p.Outline()
}

// stack returns a backtrace of one frame.
func stack(key, kind string, beside bool) *Backtrace {
	return &Backtrace{Key: key, Kind: kind, Beside: beside, About: -1, Title: Detail{Function: key}, Rows: []Row{{Text: []byte("#0 " + key), Ended: true}}}
}

// Stacks of a report must be in one group, on a small page and in the chunks of a large page. Text
// between these stacks must be in the group, but another input or another backtrace must not be.
func TestStacksOfAReportAreInAGroup(t *testing.T) {
	write := func(p *Page) {
		p.Text([]byte("starting"), true)
		p.Backtrace(stack("use", "heap-use-after-free", false))
		p.Text([]byte("freed by"), true)
		p.Backtrace(stack("free", "", true))
		p.Fold("bytes")
		p.Text([]byte("00 00"), true)
		p.Unfold()
		p.Backtrace(stack("allocation", "", true))
		p.Backtrace(stack("use", "", false))
		p.Backtrace(stack("other", "", true))
		p.Input("second")
		p.Backtrace(stack("last", "", true))
	}
	const summary = `* 2 heap-use-after-free · 1: use
t     Backtraces: 6, different: 5
`
	const head = `columns: 3
b     Backtrace 1: use
b o   Backtrace 2: free
`
	const tail = `columns: 1
b o   Backtrace 4: other
columns: 1
b o   Backtrace 5: last
`
	small := summary + head + "y   + bytes\nb o   Backtrace 3: allocation\nr   + Backtrace 1 again\n" + tail
	if diff := cmp.Diff(small, outline(t, write)); diff != "" {
		t.Errorf("small (-want +got):\n%s", diff)
	}
	large := head + "b o   Backtrace 3: allocation\n" + tail + summary
	got := outline(t, func(p *Page) {
		p.Limit(1, 1)
		p.Text([]byte("before"), true)
		p.Text([]byte("the page is large"), true)
		write(p)
	})
	if diff := cmp.Diff(large, got); diff != "" {
		t.Errorf("large (-want +got):\n%s", diff)
	}
}

// The summary must list the most frequent kinds first, and then the number of the other kinds.
func TestKindsOfTheSummaryAreBounded(t *testing.T) {
	got := outline(t, func(p *Page) {
		for i := range maxKinds + 3 {
			for range i + 1 {
				p.Backtrace(stack(fmt.Sprint("f", i), fmt.Sprint("kind", i), false))
			}
		}
	})
	lines := strings.Split(got, "\n")
	for i, want := range map[int]string{0: "* 19 kind18 · 19: f18", maxKinds - 1: "* 4 kind3 · 4: f3", maxKinds: "* other kinds: 3"} {
		if lines[i] != want {
			t.Errorf("line %d is %q, want %q", i, lines[i], want)
		}
	}
}
