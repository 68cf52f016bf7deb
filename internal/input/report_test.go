package input

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/filter"
)

// split returns a Writer that copies logs to log, and reports to report.
func split(log, report io.Writer) *Writer {
	w := newWriter(Auto, filter.Options{}, log)
	w.t.Valgrind = func() io.WriteCloser { return plain{report} }
	return w
}

const begunReport = "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n<protocolversion>4</protocolversion>\nmore\n"

// Block sizes, and a restart before the report, must not change the output.
func TestAReportAfterAProgramsLinesIsRead(t *testing.T) {
	for _, log := range []string{
		"starting\n",
		"\n",
		"<\n<?\n<?xml\n<?xml ?>\n<?xml ?>\nno report\n<!DOCTYPE x>\n",
		"{{{reset}}}\n{{{module:0:a.out:elf:abcd}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n",
		strings.Repeat("a line of the program, of 40 characters.\n", 1500),
	} {
		var want bytes.Buffer
		w := newWriter(Markup, filter.Options{}, &want)
		io.WriteString(w, log)
		w.Close()
		in := log + begunReport
		for seed := range uint64(20) {
			random := rand.New(rand.NewPCG(seed, 0))
			var out, report bytes.Buffer
			w := split(&out, &report)
			for at := 0; at < len(in); {
				n := min(1+random.IntN(1+random.IntN(len(in))), len(in)-at)
				io.WriteString(w, in[at:at+n])
				at += n
				checkHead(t, w)
				if context, ok := w.AppendContext(nil); ok && at < len(log) {
					w = split(&out, &report)
					if err := w.Restore(context); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != want.String() || report.String() != begunReport || w.Format() != Valgrind {
				t.Fatalf("%.50q, %d: the log is %q, the report %q, the format %v", log, seed, out.String(), report.String(), w.Format())
			}
		}
	}
}

// A line that cannot begin a report must be printed at once. A line that may begin a report must be
// printed after a silence.
func TestLinesThatMentionXMLComeOutAtOnce(t *testing.T) {
	for _, test := range []struct {
		line string
		kept bool
	}{
		{"sent <?xml version=\"1.0\"?>\n", false},
		{"<?xml version=\"1.0\"?> <request/>\n", false},
		{"<?xml version=\"1.0\n", false},
		{"<valgrind>\n", false},
		{"<!DOCTYPE html>\n", false},
		{"<?xml version=\"1.0\"?>\n", true},
		{"<!DOCTYPE valgrindoutput\n", true},
	} {
		var out bytes.Buffer
		w := newRecorder(&out)
		io.WriteString(w, "a log\n")
		for range 3 {
			out.Reset()
			io.WriteString(w, test.line)
			if kept := out.Len() == 0; kept != test.kept || kept != w.Undecided() || kept != w.Unfinished() {
				t.Errorf("%q: kept %t, undecided %t", test.line, kept, w.Undecided())
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.line || w.Undecided() {
				t.Errorf("%q: after silence %q is out", test.line, out.String())
			}
		}
		w.Close()
	}
}
