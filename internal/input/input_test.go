package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/symfilter/symfilter/internal/unpack"
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
		{"a declaration on two lines", "<?xml version=\"1.0\"\n", Markup},
		{"other XML", "<?xml version=\"1.0\"?>\n<testsuite>", Markup},
		{"a log", "<6>kernel: ", Markup},
		{"a blank line", "\n", Markup},
		{"a log that speaks of reports", "see <valgrindoutput>\n" + report, Markup},
		{"markup", "{{{reset}}}", Markup},
		{"a profile", "# callgrind format\nversion: 1\n", Callgrind},
		{"a profile without a header", "# callgrind format\n\nfn=main\n", Callgrind},
		{"the beginning of a profile", "# callg", Auto},
		{"the first line of a profile", "# callgrind format\n", Auto},
		{"a log with the first line of a profile", "# callgrind format\nstarted\n", Markup},
		{"a comment", "# calling", Markup},
		{"a profile without its first line", "version: 1\ncreator: callgrind-3.14.0\npid: 7\ncmd:  ./a\npart: 1\n\n\ndesc: I1 cache: \npositions: line\nevents: Ir\nsummary: 12\n\n\nob=(1) /bin/a\n", Callgrind},
		{"its header alone", "version: 1\ncreator: callgrind-3.14.0\npid: 7\ncmd: ./a\n", Callgrind},
		{"a header of which more may come", "version: 1\ncreator: callgrind-3.14.0\n", Auto},
		{"a line of a header that is cut", "versi", Auto},
		{"a profile of Cachegrind", "desc: I1 cache:         32768 B, 64 B, 8-way associative\ncmd: ./a\nevents: Ir I1mr\nfl=/a.c\n", Callgrind},
		{"a profile of gperftools", "events: Hits\n\nfl=a.c\nfn=f\n4 1\n", Callgrind},
		{"a profile of pprof", "positions: instr line\nevents: cpu(ms)\n\nob=(1) gop\n", Callgrind},
		{"a profile of Xdebug", "version: 1\r\ncreator: xdebug 3.1.6 (PHP 8.1.2)\r\ncmd: /a.php\r\npart: 1\r\npositions: line\r\n\r\nevents: Time_(10ns) Memory_(bytes)\r\n\r\nfl=(1) php:internal\r\n", Callgrind},
		{"a profile of the format's description", "events: Cycles Instructions Flops\nfl=file.f\nfn=main\n15 90 14 2\n", Callgrind},
		{"comments in a header", "positions: line\n# made by hand\n\nevents: Ir\nfn=main\n", Callgrind},
		{"a comment before a profile", "# made by hand\nevents: Ir\nfn=main\n", Markup},
		{"a log about events", "events: none\nstarted\n", Markup},
		{"a log of versions", "version: 3\nlistening\n", Markup},
		{"a log of parts", "part: 1\npid: 17\nfn=main\n", Markup},
		{"a line of the kernel", "event: 4\nevents:\nfl=1\n", Markup},
		{"a log of comments", "# one\n", Markup},
		{"a report of sp-rtrace", "version=2.0,arch=x86_64\n# made by hand\n\n12. malloc(102) = 0x804b008\n", RTrace},
		{"its header", "version=2.0,arch=x86_64\n", Auto},
		{"a log with such a header", "version=2.0,arch=x86_64\nstarted\n", Markup},
		{"a report of sp-rtrace, with blanks", "version=2.0, arch=i686, timestamp=2011.6.16 15:49:48, process=/usr/bin/a, pid=2, backtrace depth=10, origin=sp-rtrace 1.6, \n: /lib/a => 0x1-0x2\n", RTrace},
		{"its header, cut", "version=2.0, ar", Auto},
		{"the beginning of its header", "vers", Auto},
		{"a line of pairs", "version=2.0 arch=x86_64 started\n", Markup},
		{"a line of other pairs", "version=2.0, level=info\n", Markup},
		{"a line of an architecture", "arch=x86_64, process=init\n", Markup},
		{"a declaration longer than anybody writes", "<?xml " + strings.Repeat(" ", headSize), Markup},
	}
	for _, tt := range tests {
		if got := Recognise([]byte(tt.head)); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

const profile = "# callgrind format\nevents: Ir\nfn=main\n4 1\n"

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
		want     string // name of the translator, and its input
	}{
		{"a report", report, Auto, "valgrind:" + report},
		{"a log", log, Auto, "markup:" + log},
		{"nothing", "", Auto, "markup:"},
		{"the beginning of a declaration", "<?xm", Auto, "markup:<?xm"},
		{"a report that shall be a log", report, Markup, "markup:" + report},
		{"a report without its beginning", "</frame>", Valgrind, "valgrind:</frame>"},
		{"a profile", profile, Auto, "callgrind:" + profile},
		{"a profile without its beginning", "4 1\n", Callgrind, "callgrind:4 1\n"},
		{"a report of sp-rtrace", "version=2.0,arch=arm", Auto, "rtrace:version=2.0,arch=arm"},
		{"a header that ends", "version: 1\ncreator: x", Auto, "markup:version: 1\ncreator: x"},
		{"a packed report", packed(t, report), Auto, "valgrind:" + report},
		{"a packed log", packed(t, log), Auto, "markup:" + log},
		{"two packed logs", packed(t, log) + packed(t, log), Auto, "markup:" + log + log},
		{"the beginning of a packed one", gzipMagic[:2], Auto, "markup:" + gzipMagic[:2]},
	}
	for _, tt := range tests {
		for _, block := range []int{1, 3, 1 << 20} {
			var markup, valgrind, callgrind, rtrace taken
			w := New(tt.format, Translators{
				Markup:    func() io.WriteCloser { return &markup },
				Valgrind:  func() io.WriteCloser { return &valgrind },
				Callgrind: func() io.WriteCloser { return &callgrind },
				RTrace:    func() io.WriteCloser { return &rtrace },
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
			switch {
			case valgrind.closed == 1:
				got = "valgrind:" + valgrind.String()
			case callgrind.closed == 1:
				got = "callgrind:" + callgrind.String()
			case rtrace.closed == 1:
				got = "rtrace:" + rtrace.String()
			}
			if got != tt.want || markup.closed+valgrind.closed+callgrind.closed+rtrace.closed != 1 {
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

// A damaged input must be printed as far as possible. The damage must be an error of the input,
// which Close returns, and not of the output.
func TestDamagedPackedInputsComeOut(t *testing.T) {
	whole := packed(t, strings.Repeat("a line of a log\n", 3))
	for _, test := range []struct{ name, in, out, err string }{
		{"no gzip", gzipMagic + " this is no gzip\nmore\n", gzipMagic + " this is no gzip\nmore\n", "<nil>"},
		{"a header and no gzip", whole[:10] + "\xff\xff\xff\xffnot deflate\nmore\n", whole[:10] + "\xff\xff\xff\xffnot deflate\nmore\n", "<nil>"},
		{"nothing more", gzipMagic, gzipMagic, "<nil>"},
		{"a header that is cut", whole[:9], whole[:9], "<nil>"},
		{"garbage behind it", whole + "garbage\nand more\n", strings.Repeat("a line of a log\n", 3) + "garbage\nand more\n", "<nil>"},
		{"a sum that is wrong", whole[:len(whole)-8] + "12345678", strings.Repeat("a line of a log\n", 3), "not a valid gzip file: gzip: invalid checksum"},
		{"its end is missing", whole[:len(whole)-4], strings.Repeat("a line of a log\n", 3), "the gzip file is cut off; the contents before its end are printed"},
	} {
		for _, block := range []int{1, 7, 1 << 20} {
			var markup taken
			w := New(Auto, Translators{Markup: func() io.WriteCloser { return &markup }})
			for i := 0; i < len(test.in); i += block {
				if _, err := w.Write([]byte(test.in[i:min(i+block, len(test.in))])); err != nil {
					t.Fatalf("%s: Write: %v", test.name, err)
				}
			}
			err := w.Close()
			if got := markup.String(); got != test.out || markup.closed != 1 {
				t.Errorf("%s, in blocks of %d: got %q, closed %d times; want %q", test.name, block, got, markup.closed, test.out)
			}
			if got, _, _ := strings.Cut(fmt.Sprint(err), "; "); got != strings.Split(test.err, "; ")[0] {
				t.Errorf("%s, in blocks of %d: got error %v, want %s", test.name, block, err, test.err)
			}
			var damage *UnpackError
			if err != nil && !errors.As(err, &damage) {
				t.Errorf("%s: %T is not an UnpackError", test.name, err)
			}
		}
	}
}

func TestPlainUnpacks(t *testing.T) {
	for _, in := range []string{"", "a", report, packed(t, report)} {
		r, done, err := Plain(strings.NewReader(in), unpack.NewMemory(unpack.DefaultMemory))
		if err != nil {
			t.Fatal(err)
		}
		done()
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
