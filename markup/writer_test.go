package markup_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/markup"
)

func TestWriter(t *testing.T) {
	pc := markup.PC{Addr: 0x12}
	many := strings.Repeat("{", 1024)
	for _, tt := range []struct {
		name  string
		parts []any // text, elements, or nil for Flush
		want  string
	}{
		{"nothing", nil, ""},
		{"text and elements", []any{"a ", pc, " b\n", markup.Reset{}, "\n"}, "a {{{pc:0x12}}} b\n{{{reset}}}\n"},
		{"an empty text", []any{"", pc, ""}, "{{{pc:0x12}}}"},
		{"three braces", []any{"a {{{b}}}"}, "a {{{symbol:{{{}}}b}}}"},
		{"a longer run", []any{"{{{{{"}, "{{{symbol:{{{{{}}}"},
		{"short runs", []any{"{ {{a{"}, "{ {{a{"},
		{"a short run before an element", []any{"{{", pc}, "{{{symbol:{{}}}{{{pc:0x12}}}"},
		{"a run over several calls", []any{"a{", "{", "{", "b"}, "a{{{symbol:{{{}}}b"},
		{"a short run over several calls", []any{"a{", "{", "b"}, "a{{b"},
		{"a run held back at a flush", []any{"a{", nil, "{{b"}, "a{{{symbol:{{{}}}b"},
		{"a run at the end", []any{"a{{"}, "a{{"},
		{"a very long run", []any{many + "{ " + many + many}, "{{{symbol:" + many + "}}}{ {{{symbol:" + many + "}}}{{{symbol:" + many + "}}}"},
		{"a colour", []any{"\x1b[1mred"}, "{{{symbol:\x1b}}}[1mred"},
		{"a colour over several calls", []any{"\x1b", "[1m"}, "{{{symbol:\x1b}}}[1m"},
		{"other escapes", []any{"\x1b\x1b]8;;\x1b\\\x1b"}, "\x1b\x1b]8;;\x1b\\\x1b"},
		{"an escape before an element", []any{"\x1b", pc}, "\x1b{{{pc:0x12}}}"},
		{"an escape before braces", []any{"\x1b{{{"}, "\x1b{{{symbol:{{{}}}"},
		{"a short run before an escape", []any{"{{\x1b[1m"}, "{{{symbol:{{}}}{{{symbol:\x1b}}}[1m"},
		{"closing braces", []any{pc, "}}}"}, "{{{pc:0x12}}}}}}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			w := markup.NewWriter(&out)
			for _, p := range tt.parts {
				var err error
				switch p := p.(type) {
				case string:
					err = w.Text([]byte(p))
				case markup.Element:
					err = w.Element(p)
				default:
					err = w.Flush()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestWriterFlushes(t *testing.T) {
	var out bytes.Buffer
	w := markup.NewWriter(&out)
	w.Text([]byte("a line\n{{"))
	if out.Len() != 0 {
		t.Errorf("got %q before Flush", out.String())
	}
	w.Flush()
	if got, want := out.String(), "a line\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

var errFull = errors.New("no space left")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriterKeepsTheFirstError(t *testing.T) {
	w := markup.NewWriter(full{})
	text := bytes.Repeat([]byte("a"), 1<<20)
	for name, err := range map[string]error{
		"Text": w.Text(text), "Element": w.Element(markup.Reset{}), "Text again": w.Text(text[:1]), "Flush": w.Flush(), "Close": w.Close(),
	} {
		if !errors.Is(err, errFull) {
			t.Errorf("%s: got %v, want %v", name, err, errFull)
		}
	}
}

func TestLiteral(t *testing.T) {
	for name, want := range map[string]bool{"{": true, "{{{{": true, "\x1b": true, "": false, "a": false, "{a": false, "\x1b{": false, "{ ": false} {
		if got := (markup.Symbol{Name: name}).Literal(); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// script passes text and elements made from data to a Writer, in the order that ops determines. It
// returns the expected result of a scan. In this result, each element is between NULs, which the
// text does not contain.
func script(t *testing.T, w *markup.Writer, data, ops []byte) (want string) {
	t.Helper()
	var b strings.Builder
	elements := []markup.Element{
		markup.Reset{}, markup.Symbol{Name: "f"}, markup.PC{Addr: 0x12}, markup.BT{Frame: 1, Addr: 2, Kind: markup.Precise}, markup.Data{},
		markup.MMap{Size: 1, Mode: markup.Read}, markup.Module{Name: "a", BuildID: id(t, "aa")}, markup.DumpFile{Type: "a", Name: "b"}, markup.HexDict{Body: "A: 0x1"},
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	data = bytes.ReplaceAll(data, []byte{0}, []byte{1})
	for _, op := range ops {
		switch {
		case op < 0xc0:
			n := min(int(op), len(data))
			check(w.Text(data[:n]))
			b.Write(data[:n])
			data = data[n:]
		case op < 0xf0:
			e := elements[int(op)%len(elements)]
			check(w.Element(e))
			fmt.Fprintf(&b, "\x00%#v\x00", e)
		default:
			check(w.Flush())
		}
	}
	check(w.Text(data))
	b.Write(data)
	check(w.Close())
	return b.String()
}

// FuzzWriter checks that a scan of a Writer's output finds the text and elements passed to it.
func FuzzWriter(f *testing.F) {
	for i, s := range seeds {
		f.Add([]byte(s), []byte{byte(i), 0xc0 + byte(i), 1, 0xf0, 1, 2, 0xc1})
	}
	f.Add([]byte(strings.Repeat("{", 3000)+"\x1b[1m"), []byte{100, 0xff, 100, 0xc1, 1})
	f.Fuzz(func(t *testing.T, data, ops []byte) {
		watch(t, func() {
			fuzztest.Growth(t, data, func(data []byte) {
				w := markup.NewWriter(io.Discard)
				w.Text(data)
				w.Close()
			})
			var out bytes.Buffer
			want := script(t, markup.NewWriter(&out), data, ops)
			var got strings.Builder
			for line := range strings.Lines(out.String()) {
				var s markup.Scanner
				s.Reset([]byte(line))
				for tok, ok := s.Next(); ok; tok, ok = s.Next() {
					if tok.Kind == markup.Text && tok.Tag == markup.NoTag {
						got.Write(tok.Raw)
						continue
					}
					e, err := markup.Parse(tok)
					if err != nil {
						t.Fatalf("%q: %v", tok.Raw, err)
					}
					if s, ok := e.(markup.Symbol); ok && s.Literal() {
						got.WriteString(s.Name)
					} else {
						fmt.Fprintf(&got, "\x00%#v\x00", e)
					}
				}
			}
			if diff := cmp.Diff(want, got.String()); diff != "" {
				t.Errorf("%q (-want +got):\n%s", out.String(), diff)
			}
		})
	})
}

// TestLLVMShowsTheVeryText checks that LLVM's filter restores the text that a Writer printed.
func TestLLVMShowsTheVeryText(t *testing.T) {
	const name = "llvm-symbolizer-19"
	testenv.Need(t, name)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"{", "{{", "{{{", "}", "}}}", "\n", "\r\n", "\x1b", "\x1b[", "\x1b[1m", "\x1b[0;31m", "a", "pc:0x1", "{{{pc:0x1}}}", "{{{", ":", "\xff", "[", "symbol", " ", "1m",
		strings.Repeat("{", 1025)}
	var in bytes.Buffer
	var want strings.Builder
	w := markup.NewWriter(&in)
	for range 20000 {
		switch n := random.IntN(len(pieces) + 2); {
		case n < len(pieces):
			w.Text([]byte(pieces[n]))
			want.WriteString(pieces[n])
		case n == len(pieces):
			w.Element(markup.Symbol{Name: "f"})
			want.WriteString("f")
		default:
			w.Element(markup.Symbol{Name: "_Z1gv"})
			want.WriteString("g()")
		}
	}
	w.Text([]byte("\n")) // LLVM's filter adds a missing final line end
	want.WriteString("\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, "--filter-markup")
	cmd.Stdin = &in
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	if diff := cmp.Diff(strings.Split(want.String(), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("%v (-want +got):\n%.2000s", cmd, diff)
	}
}
