package bundle

import (
	"io"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/symbolize"
)

// secret is a word that must never be printed. No dialect splits it. It does not look like a file's
// name, so it is masked even if a dialect takes it for a module.
const secret = "ézq7secreté"

// reportOf returns the report of a log in which nothing can be resolved.
func reportOf(t *testing.T, log string) string {
	t.Helper()
	sym := symbolize.New(symbolize.Options{})
	defer sym.Close()
	var l Log
	f := filter.New(io.Discard, filter.Options{Symbolizer: sym, Printer: &l})
	if _, err := io.WriteString(f, log); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r := NewRedactor(&b, "/home/alice", nil)
	modules, _ := f.Unresolved()
	for _, m := range modules {
		r.Hide(m.Name, m.Candidate)
	}
	l.PrintTo(r)
	return b.String()
}

// TestNoPlaceOfALineIsPrinted replaces each word in the samples of all dialects by a secret, and
// inserts the secret before each word. make test-long also uses the logs of the dialects' tests.
func TestNoPlaceOfALineIsPrinted(t *testing.T) {
	shown := 0
	for _, log := range sampleLogs(t) {
		for i := 0; i < len(log); {
			n := max(1, wordLen(log[i:]))
			for _, with := range []string{log[:i] + secret + log[i+n:], log[:i] + secret + log[i:]} {
				got := reportOf(t, with)
				shown += strings.Count(got, "xxx0xxxxxxx")
				if strings.Contains(got, "zq7") {
					t.Fatalf("the secret of\n%s\nis in\n%s", with, got)
				}
			}
			i += n
		}
	}
	if shown == 0 {
		t.Error("no line with a secret was printed")
	}
}

// sampleLogs returns logs of all dialects.
func sampleLogs(t *testing.T) (logs []string) {
	for _, d := range dialect.All() {
		logs = append(logs, d.Sample+"\n")
	}
	if fuzztest.Long() {
		logs = append(logs, logtest.Samples(t, "../dialect/testdata/*.txtar")...)
	}
	return logs
}
