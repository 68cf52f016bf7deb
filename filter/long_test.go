package filter

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// ColorNever must remove the colours of a line that is too long, and of a line with too many
// elements. It must do so whatever the chunking, and after a restart.
func TestNoColourIsLeftInLongLines(t *testing.T) {
	fuzztest.WithoutRace(t)
	x := strings.Repeat("x", maxLine)
	long := "a\x1b[31mb{{{symbol:\x1b[1mf}}}" + x + "\x1b[0m c\x1b[\x1b[\x1b[mm\x1b[\xe2\x82\xac\x1b[38;5;1md{{{symbol:\x1b[1mf}}}\x1b[2K"
	plain := "ab{{{symbol:f}}}" + x + " c\x1b[" + `\x1b[m` + "\x1b[\xe2\x82\xacd{{{symbol:f}}}\x1b[2K"
	many := strings.Repeat("{{{symbol:f}}}", maxPieces)
	for _, test := range []struct{ name, in, want string }{
		{"with a line end", long + "\n{{{symbol:f}}}\n", plain + "\nf\n"},
		{"at the end", long + "\x1b[", plain + "\x1b["},
		{"elements", many + "\x1b[31m{{{symbol:\x1b[1mf}}}\n", strings.Repeat("f", maxPieces) + "{{{symbol:f}}}\n"},
	} {
		for seed := range longOr[uint64](4, 2) {
			r := rand.New(rand.NewPCG(seed, 1))
			for _, output := range []Output{Text, JSON} {
				o := Options{Color: ColorNever, Output: output}
				var b bytes.Buffer
				f := New(&b, o)
				for rest := test.in; rest != ""; {
					n := min(len(rest), 1+r.IntN(3))
					if len(rest) > 100 && len(rest) < len(test.in)-100 {
						n = min(len(rest)-90, 1+r.IntN(maxLine))
					}
					io.WriteString(f, rest[:n])
					if rest = rest[n:]; r.IntN(2) == 0 {
						context := f.AppendContext(nil)
						f = New(&b, o)
						if err := f.Restore(context); err != nil {
							t.Fatal(err)
						}
					}
				}
				f.Close()
				got := b.String()
				if output == JSON {
					got = textOfObjects(t, got)
				}
				if want := strings.TrimSuffix(test.want, "\n"); strings.TrimSuffix(got, "\n") != want {
					i := firstDifference(got, want)
					t.Fatalf("%s, seed %d, output %d: got %.100q from byte %d on, want %.100q", test.name, seed, output, got[i:], i, want[min(i, len(want)):])
				}
			}
		}
	}
}

// A line that is too long keeps its colours, and the filter adds no colours: the last colours of
// the line apply to the next line.
func TestColoursOfLongLinesStayAsTheyAre(t *testing.T) {
	long := "\x1b[31mred" + strings.Repeat("x", maxLine) + "\n"
	for name, want := range map[Color]string{ColorKeep: long + "next\n", ColorAlways: long + "next\n"} {
		var b strings.Builder
		f := New(&b, Options{Color: name})
		io.WriteString(f, long+"next\n")
		f.Close()
		if got := b.String(); got != want {
			i := firstDifference(got, want)
			t.Errorf("%v: got %.100q from byte %d on", name, got[i:], i)
		}
	}
}

// textOfObjects returns the text of JSON objects in the form of the text output.
func textOfObjects(t *testing.T, out string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(out) {
		var l struct {
			Text      string
			Raw       []byte
			Continues bool
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Raw != nil {
			l.Text = string(l.Raw)
		}
		b.WriteString(l.Text)
		if !l.Continues {
			b.WriteString("\n")
		}
	}
	return b.String()
}

// If Flush follows each of many small writes, its total time must be linear in the length of the
// line. The output must be the same as after one write.
func TestFlushLooksAtEachByteOnceOrTwice(t *testing.T) {
	fuzztest.WithoutRace(t)
	const length, write = maxLine / 2, 256
	text := strings.Repeat("\x1b[31mred\x1b[0m text ", length/18)
	for _, test := range []struct {
		name, line string
		perFlush   int64 // bytes that each Flush may read in addition
	}{
		{"text", strings.Repeat("text ", length/5), 0},
		{"colours", text, 0},
		{"an element", "{{{symbol:f}}} " + text, 0},
		{"the beginning of an element", text + "{{{symbol:" + strings.Repeat("f", 3*longestElement), 2 * longestElement},
	} {
		for _, color := range []Color{ColorKeep, ColorAlways, ColorNever} {
			want, _ := filterString(t, Options{Color: color}, test.line+"\nnext\n", nil)
			var b strings.Builder
			f := New(&b, Options{Color: color})
			flushes := int64(0)
			for rest := test.line + "\nnext\n"; rest != ""; flushes++ {
				n := min(write, len(rest))
				io.WriteString(f, rest[:n])
				rest = rest[n:]
				f.Flush()
			}
			f.Close()
			if b.String() != want {
				t.Errorf("%s, colour %d: the output differs from byte %d on", test.name, color, firstDifference(b.String(), want))
			}
			if limit := 6*int64(len(test.line)) + flushes*test.perFlush; f.steps > limit {
				t.Errorf("%s, colour %d: %d steps for %d bytes in %d writes, want at most %d", test.name, color, f.steps, len(test.line), flushes, limit)
			}
		}
	}
}
