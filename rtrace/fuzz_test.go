package rtrace

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// forms are the outputs that FuzzRtrace makes from each input.
var forms = []string{
	"rtrace", "json", "markup", "elements",
	"rtrace --leaks", "json --compress --sort=count", "markup --leaks --compress --depth=2",
	"rtrace --context=1 --resource=3 --exclude=3 --call-address=0x1000-0x7fffffffffff",
	"rtrace --compress --max-memory=4000",
}

// collected are the outputs of FuzzRtrace that are printed only at the end of a report.
var collected = []string{"findings", "findings --max-memory=4000", "folded", "folded --compress --max-memory=4000"}

// FuzzRtrace checks that no report makes the reader panic, hang or exceed its memory, and that the
// size of the written blocks does not change the output. Unresolved lines must be printed
// unchanged, and no line of the input may become an element. If records are left out, the others
// must keep their order.
func FuzzRtrace(f *testing.F) {
	names, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(names) == 0 {
		f.Fatalf("%d seeds, %v", len(names), err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if !strings.HasPrefix(file.Name, "json") {
				f.Add(file.Data)
			}
		}
	}
	f.Add([]byte("version=1,filter=compress\n" + strings.Repeat("1. a(1) = 0x1\n", 100) + strings.Repeat("\t0x1 f()\n\t0x1 g()\n", 50)))
	f.Add([]byte(strings.Repeat(": /lib/prog64.so => 0x1000-0x2000\n: /lib/prog64.so => 0x2000-0x3000\n", 30)))
	o := Options{ReportOptions: symbolize.ReportOptions{Symbolizer: newSymbolizer(f), PrefixMap: fixtures(f), Wait: 1 << 40}}
	f.Fuzz(func(t *testing.T, input []byte) {
		defer fuzztest.Watch(t, input)()
		for _, form := range slices.Concat(forms, collected) {
			whole := translated(t, form, input, len(input)+1, o)
			if blocks := translated(t, form, input, 7, o); blocks != whole {
				t.Errorf("%s in blocks of 7 bytes:\n%q\nwhole:\n%q", form, blocks, whole)
			}
			switch strings.Fields(form)[0] {
			case "json":
				for line := range strings.Lines(whole) {
					if !strings.HasPrefix(line, "diagnostic: ") && !json.Valid([]byte(line)) {
						t.Errorf("%s: no JSON: %s", form, line)
					}
				}
			case "markup", "elements":
				if n, headers := resets(whole), countHeaders(input); n > headers {
					t.Errorf("%s: %d resets of %d headers in\n%q", form, n, headers, whole)
				}
			}
		}
		fuzztest.Growth(t, input, func(input []byte) { translated(t, forms[0], input, len(input)+1, o) })
		untouched(t, input)
		var out bytes.Buffer
		w := translation(t, "rtrace --context=1 --resource=3 --depth=3 --exclude=3", &out, Options{})
		w.Write(input)
		w.Close()
		for line := range bytes.Lines(out.Bytes()) {
			if bytes.Contains(line, []byte("depth=")) { // a header that --depth changed
				continue
			}
			i := bytes.Index(input, line)
			if i < 0 {
				t.Errorf("%q is not in the report, or not in this order, of\n%q", line, out.Bytes())
				break
			}
			input = input[i+len(line):]
		}
	})
}

// untouched checks that a report is printed unchanged if there are no symbols, and that its records
// together contain each byte.
func untouched(t *testing.T, input []byte) {
	var out bytes.Buffer
	w := NewReport(&out, Options{})
	w.Write(input)
	w.Close()
	if !bytes.Equal(out.Bytes(), input) {
		t.Errorf("got %q, want what it was, %q", out.Bytes(), input)
	}
	var all []byte
	r := newReader(func(rec *record) error {
		all = append(all, rec.Raw...)
		return nil
	})
	r.Write(input)
	r.Close()
	if !bytes.Equal(all, input) {
		t.Errorf("records of %q, want %q", all, input)
	}
}

func countHeaders(input []byte) (n int) {
	r := newReader(func(rec *record) error {
		if rec.Kind == headerRecord {
			n++
		}
		return nil
	})
	r.Write(input)
	r.Close()
	return n
}

// resets counts the elements that begin a process.
func resets(text string) (n int) {
	var s markup.Scanner
	for line := range strings.Lines(text) {
		s.Reset([]byte(line))
		for {
			tok, ok := s.Next()
			if !ok {
				break
			}
			if tok.Kind == markup.Elem && tok.Tag == markup.TagReset {
				n++
			}
		}
	}
	return n
}

// failing is a writer that fails after left bytes.
type failing struct{ left int }

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

func TestErrorsOfTheWriterComeBack(t *testing.T) {
	input := []byte("version=2.0, pid=1\n1. malloc(1) = 0x1\n\t0x1234\n\n")
	for _, form := range forms {
		for _, left := range []int{0, 10} {
			w := translation(t, form, &failing{left}, Options{})
			_, err := w.Write(input)
			if err = errors.Join(err, w.Close()); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%s, %d bytes: got %v, want %v", form, left, err, io.ErrClosedPipe)
			}
		}
	}
}
