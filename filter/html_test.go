package filter

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/pagetest"
)

// pageOf returns the page of a log, and its text on a terminal without colours.
func pageOf(t testing.TB, log []byte, o Options) (page []byte, text string) {
	t.Helper()
	run := func(o Options) []byte {
		var out bytes.Buffer
		f := New(&out, o)
		if _, err := f.Write(log); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	o.Output = HTML
	page = run(o)
	o.Output, o.Color, o.Terminal, o.Own = Text, ColorNever, true, nil
	return page, strings.ReplaceAll(string(run(o)), "\r\n", "\n")
}

// checkPage parses a page, and compares the text of its log with want.
func checkPage(t testing.TB, page []byte, want string) *pagetest.Page {
	t.Helper()
	p, err := pagetest.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		from := max(0, at-100)
		t.Fatalf("the text differs from byte %d on: got\n%.300q\nwant\n%.300q", at, got[from:], want[from:])
	}
	return p
}

// The text of a page is what a terminal gets, for every log of the other tests.
func TestPagesHaveTheTextOfTheLog(t *testing.T) {
	var logs []string
	for _, pattern := range []string{"../testdata/*.log", "testdata/script/*.txtar", "../dialect/testdata/*/*.log", "../dialect/testdata/*.txt", "../integration/testdata/*.log"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, found...)
	}
	if len(logs) < 20 {
		t.Fatalf("only %d logs", len(logs))
	}
	s := testSymbolizer(t)
	for _, name := range logs {
		log, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		page, text := pageOf(t, log, Options{Symbolizer: s, Patience: patient})
		t.Run(name, func(t *testing.T) { checkPage(t, page, text) })
	}
}
