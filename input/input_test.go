package input

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

const report = "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>4</protocolversion>\n"

func TestFormatsAreRecognisedByTheirBeginning(t *testing.T) {
	tests := []struct {
		name, head string
		want       Format
	}{
		{"a report", report, Valgrind},
		{"without declaration", "<valgrindoutput>\n", Valgrind},
		{"behind a byte order mark, with a comment", "\xef\xbb\xbf<?xml version='1.0' encoding='utf-8'?>\n<!-- made by -->\n<valgrindoutput>", Valgrind},
		{"the beginning of a declaration", "<?x", Auto},
		{"a declaration without end", "<?xml version", Auto},
		{"a declaration alone", "<?xml version=\"1.0\"?>\n", Auto},
		{"the beginning of the element", "<?xml version=\"1.0\"?>\n<valgri", Auto},
		{"nothing", "", Auto},
		{"other XML", "<?xml version=\"1.0\"?>\n<testsuite>", Markup},
		{"a log", "<6>kernel: ", Markup},
		{"a blank line", "\n", Markup},
		{"a log that speaks of reports", "see <valgrindoutput>\n" + report, Markup},
		{"markup", "{{{reset}}}", Markup},
		{"a declaration longer than anybody writes", "<?xml " + strings.Repeat(" ", headSize), Markup},
	}
	for _, tt := range tests {
		if got := Recognise([]byte(tt.head)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// taken is what a translator was given.
type taken struct {
	bytes.Buffer
	closed int
}

func (k *taken) Close() error { k.closed++; return nil }

func packed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInputsGoToTheirTranslatorWhole(t *testing.T) {
	log := "a log\n{{{pc:0x1}}}\nwithout end"
	tests := []struct {
		name, in string
		format   Format
		want     string // the translator, and what it gets
	}{
		{"a report", report, Auto, "valgrind:" + report},
		{"a log", log, Auto, "markup:" + log},
		{"nothing", "", Auto, "markup:"},
		{"the beginning of a declaration", "<?xm", Auto, "markup:<?xm"},
		{"a report that shall be a log", report, Markup, "markup:" + report},
		{"a report without its beginning", "</frame>", Valgrind, "valgrind:</frame>"},
		{"a packed report", packed(t, report), Auto, "valgrind:" + report},
		{"a packed log", packed(t, log), Auto, "markup:" + log},
		{"two packed logs", packed(t, log) + packed(t, log), Auto, "markup:" + log + log},
		{"the beginning of a packed one", gzipMagic[:2], Auto, "markup:" + gzipMagic[:2]},
	}
	for _, tt := range tests {
		for _, block := range []int{1, 3, 1 << 20} {
			var markup, valgrind taken
			w := New(tt.format, Translators{
				Markup:   func() io.WriteCloser { return &markup },
				Valgrind: func() io.WriteCloser { return &valgrind },
			})
			for in := tt.in; in != ""; {
				n := min(len(in), block)
				if _, err := io.WriteString(w, in[:n]); err != nil {
					t.Errorf("%s: %v", tt.name, err)
				}
				in = in[n:]
			}
			if err := w.Close(); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			got := "markup:" + markup.String()
			if valgrind.closed == 1 {
				got = "valgrind:" + valgrind.String()
			}
			if got != tt.want || markup.closed+valgrind.closed != 1 {
				t.Errorf("%s, in blocks of %d: got %q, want %q", tt.name, block, got, tt.want)
			}
		}
	}
}

func TestAPackedInputThatIsCutIsReadAsFarAsItGoes(t *testing.T) {
	var markup taken
	in := packed(t, strings.Repeat("a line of a log\n", 100_000))
	w := New(Auto, Translators{Markup: func() io.WriteCloser { return &markup }})
	w.Write([]byte(in[:len(in)-100]))
	if err := w.Close(); err == nil {
		t.Error("no error of an input that is cut")
	}
	if markup.Len() == 0 || markup.closed != 1 {
		t.Errorf("got %d bytes, closed %d times", markup.Len(), markup.closed)
	}
}

func TestPlainUnpacks(t *testing.T) {
	for _, in := range []string{"", "a", report, packed(t, report)} {
		r, err := Plain(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		want := in
		if strings.HasPrefix(in, gzipMagic) {
			want = report
		}
		if string(got) != want || err != nil {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}
