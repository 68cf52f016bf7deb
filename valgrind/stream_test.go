package valgrind

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/markup"
)

// An error must reach the sink as soon as its end tag is written, even if no further bytes are
// written.
func TestErrorsAreOutAtOnce(t *testing.T) {
	var got strings.Builder
	sink := markup.NewWriter(&got)
	w := NewMarkup(sink, Options{})
	report := "<?xml version=\"1.0\"?>\n<valgrindoutput>\n"
	for i := range 3 {
		report += fmt.Sprintf("<error>\n  <unique>%#x</unique>\n  <what>error %[1]d</what>\n</error>", i)
		io.WriteString(w, report)
		sink.Flush()
		if want := fmt.Sprintf("error %d [%#[1]x]\n", i); !strings.HasSuffix(got.String(), want) {
			t.Errorf("got %q, want %q at its end", got.String(), want)
		}
		report = "\n\n"
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// If an error is so long that it is passed on in parts, no stack and no error may be lost.
func TestLongErrorsComeInParts(t *testing.T) {
	const frames, errors = 150_000, 3
	var b bytes.Buffer
	for range errors {
		b.WriteString("<error>\n  <what>long</what>\n  <stack>\n")
		for i := range frames {
			fmt.Fprintf(&b, "    <frame>\n      <ip>%#X</ip>\n    </frame>\n", i+1)
		}
		b.WriteString("  </stack>\n  <auxwhat>after</auxwhat>\n</error>\n")
	}
	var gotErrors, gotFrames, gotAfter int
	next := uint64(1)
	r := NewReader(func(rec *Record) error {
		if rec.Name != "error" {
			t.Errorf("got a record %q", rec.Name)
		}
		if !rec.Continued {
			gotErrors++
			next = 1
		}
		for _, it := range rec.Items {
			if it.Name == "auxwhat" {
				gotAfter++
			}
			if it.Name != "stack" {
				continue
			}
			for _, f := range rec.Frames[it.First:it.Last] {
				if f.IP != next {
					t.Fatalf("got the frame %#x, want %#x", f.IP, next)
				}
				next++
				gotFrames++
			}
		}
		return nil
	})
	if _, err := r.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if gotErrors != errors || gotFrames != errors*frames || gotAfter != errors {
		t.Errorf("got %d errors, %d frames and %d texts after them, want %d, %d and %[4]d", gotErrors, gotFrames, gotAfter, errors, errors*frames)
	}
}

// The memory of a reader must not depend on the length of the report.
func TestMemoryIsConstant(t *testing.T) {
	report := largeReport(1 << 20)
	end := bytes.LastIndex(report, []byte("</valgrindoutput>"))
	begin := bytes.Index(report, []byte("<error>"))
	w := NewMarkup(markup.NewWriter(io.Discard), Options{})
	w.Write(report[:begin])
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	var before uint64
	for i := range 64 {
		if i == 4 {
			before = live()
		}
		for rest := report[begin:end]; len(rest) > 0; {
			n := min(len(rest), 64<<10)
			w.Write(rest[:n])
			rest = rest[n:]
		}
	}
	if after := live(); after > before+1<<20 {
		t.Errorf("60 MiB of a report keep %d KiB", (after-before)>>10)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever the size of the blocks, the lexer must examine or move each byte of a report only a few
// times on average.
func TestWorkGrowsAsTheReport(t *testing.T) {
	const size, times = maxLeaf + maxLeaf/4, 6
	tests := []struct{ name, begin, piece string }{
		{"errors", "", "<error>\n<what>x</what>\n<stack>\n<frame>\n<ip>0x1</ip>\n</frame>\n</stack>\n</error>\n"},
		{"without a line end", "", "<error><what>x</what><stack><frame><ip>0x1</ip></frame></stack></error>"},
		{"errors without end", "", "<error>\n<what>x\n<stack>\n<frame>\n<ip>0x1\n"},
		{"one error", "<error><stack>", "<frame><ip>0x1</ip></frame>"},
		{"one text", "<error><what>", "a < b "},
		{"one line", "", "a < b "},
		{"blanks", "", "    "},
		{"blanks in an error", "<error>", "    "},
		{"line ends in an error", "<error>", "\n"},
		{"blanks in a text", "<error><what>", "\n    <"},
		{"many blanks in a text", "<error><what>\n" + strings.Repeat(" ", 800_000), " <"},
		{"a line that begins with blanks", strings.Repeat(" ", 800_000), "x"},
		{"'<'", "", "<"},
		{"'<' in an error", "<error>", "<"},
		{"'&' in a text", "<error><what>", "&amp"},
		{"beginnings", "<error>", "<what>"},
		{"beginnings of lines", "<error>", "<what>\n"},
		{"unknown elements", "<error>", "<a>"},
		{"unknown elements and ends", "<error>", "<a><b></c>"},
		{"beginnings of unknown elements", "<error>", "<a b"},
		{"names without end", "", "<" + strings.Repeat("a", 70)},
		{"attributes without end", "", "<a " + strings.Repeat("a", 3000)},
		{"threads", "<error>", "<threadname>x"},
		{"comments of users", "", "<usercomment></usercomment> x"},
		{"comments of users without end", "", "<usercomment>"},
		{"ends of a comment of a user", "<usercomment>", "</usercomment> x"},
		{"beginnings of comments", "", "<!-- "},
		{"beginnings of comments in an error", "<error>", "<!-- "},
		{"sections", "<error><suppression><rawtext>", "<![CDATA[a]]>"},
		{"beginnings of sections", "<error>", "<rawtext><![CDATA["},
		{"instructions without end", "", "<? a "},
		{"declarations", "", "<!DOCTYPE "},
		{"documents", "", "<valgrindoutput>"},
		{"ends of documents", "", "</valgrindoutput>"},
	}
	for _, tt := range tests {
		report := []byte(tt.begin + strings.Repeat(tt.piece, size/len(tt.piece)))
		for _, block := range []int{61, 32 << 10} {
			r := NewReader(func(*Record) error { return nil })
			most := 0
			for rest := report; len(rest) > 0; {
				n := min(len(rest), block)
				r.Write(rest[:n])
				rest = rest[n:]
				most = max(most, cap(r.in.buf))
			}
			r.Close()
			if r.in.work > times*len(report) {
				t.Errorf("%s, in blocks of %d: looked at %d bytes for each", tt.name, block, r.in.work/len(report))
			}
			if most > 4*maxRecord {
				t.Errorf("%s, in blocks of %d: kept %d bytes", tt.name, block, most)
			}
		}
	}
}

// An error that does not end must be passed on in parts of bounded size.
func TestRecordsWithoutAnEndAreDivided(t *testing.T) {
	parts, longest := 0, 0
	r := NewReader(func(rec *Record) error {
		size := 0
		for _, it := range rec.Items {
			size += len(it.Text)
		}
		parts, longest = parts+1, max(longest, size)
		return nil
	})
	what := []byte("<auxwhat>" + strings.Repeat("x", 64<<10) + "</auxwhat>\n")
	r.Write([]byte("<valgrindoutput>\n<error>\n"))
	for range 6 * maxRecord / len(what) {
		r.Write(what)
	}
	r.Close()
	if parts < 6 || longest > maxRecord+maxLeaf {
		t.Errorf("%d parts, the longest with %d bytes", parts, longest)
	}
}
