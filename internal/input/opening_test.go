package input

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/unpack"
)

// An opening is a possible beginning of an input.
type opening struct{ name, want, text string }

var repeated = regexp.MustCompile(`(?s)\[\[(\d+) (.*?)\]\]`)

func openings(t testing.TB) (all []opening) {
	t.Helper()
	ar, err := txtar.ParseFile("testdata/openings.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		want, _, ok := strings.Cut(f.Name, ", ")
		if !ok {
			t.Fatalf("%q does not name a format", f.Name)
		}
		text := repeated.ReplaceAllStringFunc(strings.TrimSuffix(string(f.Data), "\\\n"), func(s string) string {
			m := repeated.FindStringSubmatch(s)
			n, _ := strconv.Atoi(m[1])
			return strings.Repeat(m[2], n)
		})
		all = append(all, opening{f.Name, want, text})
	}
	if len(all) < 40 {
		t.Fatalf("%d openings, want 40 or more", len(all))
	}
	return all
}

// filler returns n bytes of lines without markup.
func filler(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "line %d: nothing of note\n", i)
	}
	return b.String()[:n]
}

// newRecorder returns a Writer that filters logs to out, and copies reports and profiles to out.
func newRecorder(out io.Writer) *Writer {
	w := newWriter(Auto, filter.Options{}, out)
	asIs := func() io.WriteCloser { return plain{out} }
	w.t.Valgrind, w.t.Callgrind, w.t.RTrace = asIs, asIs, asIs
	return w
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// checkHead fails the test if w keeps more bytes than its limit.
func checkHead(t *testing.T, w *Writer) {
	t.Helper()
	if len(w.head) >= headSize || cap(w.head) > 4*headSize {
		t.Fatalf("the Writer keeps %d bytes, and has room for %d", len(w.head), cap(w.head))
	}
}

// Output must begin at most 8 KiB after the first line of the input. A line of a log must be
// printed once it is whole, or longer than 1 MiB.
func TestWhateverAnInputBeginsWithItComesOut(t *testing.T) {
	for _, o := range openings(t) {
		t.Run(o.name, func(t *testing.T) {
			in := o.text + filler(16<<10)
			within := min(strings.IndexByte(in, '\n')+1, maxLine) + 8<<10
			for _, block := range []int{1, 100, 4095, 64 << 10} {
				if block < 100 && len(in) > 40<<10 {
					continue // slow under the race detector
				}
				var out bytes.Buffer
				w := newRecorder(&out)
				for at := 0; at < len(in); {
					n := min(block, len(in)-at)
					if _, err := io.WriteString(w, in[at:at+n]); err != nil {
						t.Fatal(err)
					}
					at += n
					checkHead(t, w)
					if at >= within+block && out.Len() == 0 {
						t.Fatalf("in blocks of %d, nothing is out after %d bytes", block, at)
					}
				}
				if got := w.Format().String(); got != o.want {
					t.Errorf("in blocks of %d: taken for %s, want %s", block, got, o.want)
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				if out.String() != in {
					t.Errorf("in blocks of %d: %d bytes came out of %d, or others", block, out.Len(), len(in))
				}
			}
		})
	}
}

func TestSilenceDecidesWhatAnInputIs(t *testing.T) {
	for _, o := range openings(t) {
		t.Run(o.name, func(t *testing.T) {
			for _, n := range []int{3, 40, 1000, len(o.text)} {
				n = min(n, len(o.text))
				if n > 2<<10 && o.want == "docker" || o.want == "cri" && n > len("2016-10-06T00:17:09.669794202Z stdout") || o.want == "journal" && n > len(cursor) {
					continue // the format is known: an entry is printed once it is whole
				}
				in := o.text + filler(10<<10)
				var out bytes.Buffer
				w := newRecorder(&out)
				io.WriteString(w, in[:n])
				if out.Len() == 0 && !w.Unfinished() {
					t.Errorf("after %d bytes nothing is unfinished, and nothing out", n)
				}
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
				if got := out.Len(); got == 0 || got > n || w.Undecided() {
					t.Errorf("after %d bytes and silence, %d bytes are out, undecided: %t", n, got, w.Undecided())
				}
				io.WriteString(w, in[n:])
				w.Close()
				if out.String() != in {
					t.Errorf("after silence at %d, %d bytes came out of %d, or others", n, out.Len(), len(in))
				}
			}
		})
	}
}

func TestSilenceDecidesWhatAPackedInputIs(t *testing.T) {
	for _, o := range openings(t) {
		synctest.Test(t, func(t *testing.T) {
			var in, out bytes.Buffer
			z := gzip.NewWriter(&in)
			w := newRecorder(&out)
			send := func(s string) {
				io.WriteString(z, s)
				z.Flush()
				if _, err := w.Write(in.Bytes()); err != nil {
					t.Fatal(err)
				}
				in.Reset()
				synctest.Wait() // until the input is unpacked
			}
			n := min(3, len(o.text))
			send(o.text[:n])
			if out.Len() == 0 && !w.Unfinished() {
				t.Errorf("%s: nothing is unfinished", o.name)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if out.String() != o.text[:n] || w.Unfinished() {
				t.Errorf("%s: after %d bytes and silence %q is out", o.name, n, out.String())
			}
			send(o.text[n:])
			z.Close()
			w.Write(in.Bytes())
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if out.String() != o.text {
				t.Errorf("%s: %d bytes came out of %d, or others", o.name, out.Len(), len(o.text))
			}
		})
	}
}

func TestWhatFollowsAnOpeningTakesNoMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	const size, most = 1 << 20, 256 << 10 // bytes
	block := filler(64 << 10)
	for _, o := range openings(t) {
		for name, pack := range map[string]func(string) string{
			"plain":  func(s string) string { return s },
			"packed": func(s string) string { return packed(t, s) },
		} {
			var n count
			w := newRecorder(&n)
			io.WriteString(w, pack(o.text))
			more := []byte(pack(block))
			w.Write(more)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range size / len(block) {
				w.Write(more)
			}
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%s, %s: %d KiB are allocated for %d that follow, want at most %d", o.name, name, got>>10, size>>10, most>>10)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if want := len(o.text) + len(block) + size; int(n) != want {
				t.Errorf("%s, %s: %d bytes came out of %d", o.name, name, n, want)
			}
		}
	}
}

type count int

func (n *count) Write(p []byte) (int, error) { *n += count(len(p)); return len(p), nil }

// Other programs write entries like Docker's, but without line ends in their text. Such an entry
// must stay a whole line, even if it is longer than the head. A line that Docker has cut must be
// joined.
func TestEntriesOfOthersStayLines(t *testing.T) {
	const tail = `","stream":"stdout","time":"2019-01-01T11:11:11.111111111Z"}` + "\n"
	entry := func(text string) string { return `{"log":"` + text + tail }
	element := func(i int) string { return entry(fmt.Sprintf("%d {{{symbol:_ZN2ns5innerEi}}}", i)) }
	shown := func(i int) string { return entry(fmt.Sprintf("%d ns::inner(int)", i)) }
	first := strings.Repeat("x", 5000)
	for name, test := range map[string]struct{ in, want string }{
		"of others":           {entry(first) + element(1) + element(2), entry(first) + shown(1) + shown(2)},
		"of others, broken":   {entry(first+`\z`) + element(1) + element(2), entry(first+`\z`) + shown(1) + shown(2)},
		"of Docker, broken":   {entry(first+`\z`) + entry(`\n`) + entry("{{{symbol:_ZN2ns5") + entry(`innerEi}}}\n`), entry(first+`\z`) + entry(`\n`) + entry(`ns::inner(int)\n`)},
		"of others, short":    {entry("x") + element(1) + entry(first), entry("x") + shown(1) + entry(first)},
		"of Docker":           {entry(first+`\n`) + entry("{{{symbol:_ZN2ns5") + entry(`innerEi}}}\n`), entry(first+`\n`) + entry(`ns::inner(int)\n`)},
		"of Docker, cut":      {entry(strings.Repeat("x", 16<<10-10)+"{{{symbol:") + entry(`_ZN2ns5innerEi}}}\n`), entry(strings.Repeat("x", 16<<10-10)+"ns::inner(") + entry(`int)\n`)},
		"of others, but once": {entry(first) + element(1) + entry(`\n`) + entry("{{{symbol:_ZN2ns5") + entry(`innerEi}}}\n`), entry(first) + shown(1) + entry(`\n`) + entry(`ns::inner(int)\n`)},
	} {
		o := testOptions(t)
		if got := envelope(t, Auto, o, test.in, nil); got != test.want {
			t.Errorf("%s: (-got +want)\n%s", name, cmp.Diff(got, test.want))
		}
		for seed := range uint64(10) {
			if got := envelope(t, Auto, o, test.in, rand.New(rand.NewPCG(seed, 0))); got != test.want {
				t.Fatalf("%s: blocks change what comes out:\n%s", name, cmp.Diff(got, test.want))
			}
		}
		for cut := 0; cut < len(test.in); cut += 1 + len(test.in)/50 {
			if got := interrupted(t, Auto, o, test.in, cut); got != test.want {
				t.Fatalf("%s: cut at %d: (-restored +uninterrupted)\n%s", name, cut, cmp.Diff(got, test.want))
			}
		}
	}
}

// A Writer must have output after 8 KiB of input, and must keep less than 4 KiB of input. The block
// size must not change the format, with or without a pause after a given number of bytes.
func FuzzRecognise(f *testing.F) {
	for _, o := range openings(f) {
		if len(o.text) < 20<<10 {
			f.Add([]byte(o.text), uint16(len(o.text)/2), uint64(1))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, pause uint16, seed uint64) {
		if f, _ := unpack.FormatOf(in); len(in) > 32<<10 || f != nil {
			return // tested by FuzzUnpack
		}
		if bytes.HasPrefix(in, []byte(markLE)) || bytes.HasPrefix(in, []byte(markBE)) {
			return // tested by FuzzUTF16
		}
		defer fuzztest.Watch(t, in)()
		if len(in) > 0 {
			for n := len(in); n < 8<<10; n = len(in) {
				in = append(in, in[:min(n, 8<<10-n)]...)
			}
		}
		random := rand.New(rand.NewPCG(seed, 0))
		blocks := []func(at, n int) int{
			func(_, n int) int { return n },
			func(at, n int) int {
				if at > headSize {
					return n
				}
				return 1
			},
			func(_, n int) int { return 1 + random.IntN(n) },
		}
		was := Auto
		for i, next := range blocks {
			format := recorded(t, in, int(pause)%8192, next)
			if i > 0 && format != was {
				t.Fatalf("blocks change %v to %v", was, format)
			}
			was = format
		}
	})
}

// recorded writes an input to a Writer, in blocks, and returns the format. After the first pause
// bytes, it calls Flush, unless pause is 0.
func recorded(t *testing.T, in []byte, pause int, next func(at, n int) int) Format {
	t.Helper()
	var out bytes.Buffer
	asIs := func() io.WriteCloser { return plain{&out} }
	w := New(Auto, Translators{Markup: asIs, Container: func(Format) io.WriteCloser { return asIs() }, Valgrind: asIs, Callgrind: asIs, RTrace: asIs})
	for at := 0; at < len(in); {
		n := min(next(at, len(in)-at), len(in)-at)
		if at < pause && at+n > pause {
			n = pause - at
		}
		w.Write(in[at : at+n])
		at += n
		checkHead(t, w)
		if at == pause {
			w.Flush()
		}
		if at >= 8<<10 && out.Len() == 0 {
			t.Fatalf("nothing is out after %d bytes", at)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), in) {
		t.Fatalf("%d bytes came out of %d, or others", out.Len(), len(in))
	}
	return w.Format()
}
