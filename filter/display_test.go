package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/logtest"
)

// An absolute path must be shown without .. elements in any form of Paths. A relative path must be
// shown unchanged.
func TestAbsolutePathsAreShownWithoutParents(t *testing.T) {
	for path, want := range map[string]string{
		"/build/gcc-12/build/libsanitizer/asan/../../../src/libsanitizer/asan/asan_new.cpp": "/build/gcc-12/src/libsanitizer/asan/asan_new.cpp",
		"/src/./a..c":  "/src/./a..c",
		"../src/a.c":   "../src/a.c",
		"./a/../b.c":   "./a/../b.c",
		"/a/../../b.c": "/b.c",
	} {
		if got := (&Paths{}).Shown(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	mapped := Paths{Map: []buildid.PrefixMap{{Old: "/build/x/../", New: "/home/me/"}}}
	if got := mapped.Shown("/build/x/../src/a.c"); got != "/home/me/src/a.c" {
		t.Errorf("a prefix with .. is not replaced: %s", got)
	}
}

// lookLog is a log with system frames and with wide frames.
const lookLog = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n" +
	"{{{module:1:libc.so.6:elf:c0}}}\n{{{mmap:0x600000:0x2000:load:1:rx:0x0}}}\n"

func lookOptions(t testing.TB) Options {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient, Terminal: true, Color: ColorNever, ModuleLines: ModuleLinesNone}
	o.Display = Display{Own: new(findings.Own), Width: 60, Fold: true}
	return o
}

// Held system frames must be printed before later output. Flush, which the command calls after 100
// ms of silence, must print them before a prompt.
func TestHeldFramesComeOutInTime(t *testing.T) {
	const own, system = "{{{bt:1:0x50018e}}}\n", "{{{bt:2:0x600010}}}\n{{{bt:3:0x600020}}}\n"
	const ownOut, folded = "    #1    0x000000000050018e bare+0x2 (a.out+0x40018d)\n", "    2 frames of libc.so.6\n"
	const unfolded = "    #2    0x0000000000600010 (libc.so.6+0xf) (BuildId: c0)\n    #3    0x0000000000600020 (libc.so.6+0x1f) (BuildId: c0)\n"
	for _, test := range []struct {
		name, in, atOnce string
		more, after      string // printed by Flush, and by Close
	}{
		{"an own frame alone", own, ownOut, "", ""},
		{"frames of the system after it", own + system, ownOut, folded, ""},
		{"a prompt after them", own + system + "> ", ownOut, folded + "> ", ""},
		{"no own frame", system, "", unfolded, ""},
		{"an own frame that is not finished", own + system + "{{{bt:4:0x50", ownOut, folded, "{{{bt:4:0x50"},
		{"text", own + system + "text\n", ownOut + folded + "text\n", "", ""},
		{"a reset", own + system + "{{{reset}}}\ntext\n", ownOut + folded + "[[[reset]]]\ntext\n", "", ""},
		{"a long line", own + system + strings.Repeat("x", directWrite) + "\n", ownOut + folded + strings.Repeat("x", directWrite) + "\n", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			o := lookOptions(t)
			o.Display.Width = 0
			f := New(&out, o)
			io.WriteString(f, lookLog)
			io.WriteString(f, test.in)
			if got := out.String(); got != test.atOnce {
				t.Errorf("at once: got %q, want %q", got, test.atOnce)
			}
			if got, want := innerOf(f).Unfinished(), test.more != "" || test.after != ""; got != want {
				t.Errorf("unfinished: got %v, want %v", got, want)
			}
			out.Reset()
			f.Flush()
			if got := out.String(); got != test.more {
				t.Errorf("after silence: got %q, want %q", got, test.more)
			}
			out.Reset()
			f.Close()
			if got := out.String(); got != test.after {
				t.Errorf("at the end: got %q, want %q", got, test.after)
			}
			o.Display.AtOnce = true
			out.Reset()
			f = New(&out, o)
			io.WriteString(f, lookLog)
			io.WriteString(f, test.in)
			if got, want := out.String(), test.atOnce+strings.TrimSuffix(test.more, "> "); got != want {
				t.Errorf("with AtOnce: got %q, want %q", got, want)
			}
		})
	}
}

// System frames before the first own frame must be printed as they arrive, and system frames after
// an own frame must only be counted. So a long recursion takes little memory.
func TestHeldFramesAreBounded(t *testing.T) {
	o := lookOptions(t)
	var out bytes.Buffer
	f := New(&out, o)
	io.WriteString(f, lookLog)
	frames := func(from, to int) {
		for i := from; i < to; i++ {
			fmt.Fprintf(f, "{{{bt:%d:0x600010}}}\n", i)
			if n := f.layout.Display.Held(); n > layout.MaxFoldBytes+1000 {
				t.Fatalf("%d bytes are held back", n)
			}
		}
	}
	const many = 3 * layout.MaxFoldFrames
	frames(0, many)
	if n := bytes.Count(out.Bytes(), newline); n != many {
		t.Errorf("%d frames of %d are printed", n, many)
	}
	out.Reset()
	io.WriteString(f, "end\n{{{bt:0:0x50018e}}}\n")
	frames(1, many)
	f.Close()
	if got, want := out.String(), "end\n    #0    0x000000000050018e bare+0x3 (a.out+0x40018e)\n    767 frames of libc.so.6\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// With Emit, which containers' logs use, lines are neither broken nor folded.
func TestLinesForEmitHaveNoLook(t *testing.T) {
	o := lookOptions(t)
	got := ""
	o.Emit = func(line int64, out []byte) error {
		got += fmt.Sprintf("%d %s", line, out)
		return nil
	}
	f := New(nil, o)
	io.WriteString(f, lookLog+"{{{bt:1:0x50018e}}}\n{{{bt:2:0x600010}}}\n{{{bt:3:0x600020}}}\n")
	f.Close()
	const want = "5     #1    0x000000000050018e bare+0x2 (a.out+0x40018d)\n" +
		"6     #2    0x0000000000600010 (libc.so.6+0xf) (BuildId: c0)\n7     #3    0x0000000000600020 (libc.so.6+0x1f) (BuildId: c0)\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Without Fold, Display may change only where lines are broken. With any width and chunking, the
// output must have the same words.
func TestALookKeepsAllWords(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	logs := append(logtest.Samples(t, "../internal/dialect/testdata/*.txtar"), lookLog+strings.Repeat("x {{{pc:0x50017a}}} y {{{data:0x5011dc}}}{{{symbol:_Z1fv}}}\n{{{bt:0:0x50017a:message}}} z\n", 3))
	for i := range fuzztest.LongOr(20, 2) {
		for _, log := range logs {
			o := resolvingDialects(t)
			if i == 0 {
				o = lookOptions(t)
				o.Display = Display{}
			}
			o.Terminal, o.Color = true, Color(r.IntN(3))
			o.ModuleLines = ModuleLinesNone
			plain, _ := filterString(t, o, log, nil)
			o.Display.Width = 20 + r.IntN(100)
			got, _ := filterString(t, o, log, nil)
			if again, _ := filterString(t, o, log, r); again != got {
				t.Fatalf("chunking changes the output of %q:\n got %q\nwant %q", log, again, got)
			}
			if words(got) != words(plain) {
				t.Fatalf("%q, %d columns:\n got %q\nwant %q", log, o.Display.Width, got, plain)
			}
		}
	}
}

// FuzzLook checks that no log makes the Display fail, and that no word is lost if nothing is
// folded.
func FuzzLook(f *testing.F) {
	for _, log := range append(logtest.Samples(f, "../internal/dialect/testdata/*.txtar")[:4], lookLog+"{{{bt:0:0x600010}}}\n{{{bt:1:0x600010}}}\n{{{bt:2:0x50017a}}}\n") {
		f.Add([]byte(log), byte(40))
	}
	plain := resolvingDialects(f)
	plain.Terminal, plain.ModuleLines = true, ModuleLinesNone
	f.Fuzz(func(t *testing.T, log []byte, mode byte) {
		if len(log) > 16<<10 {
			return
		}
		defer fuzztest.Watch(t, log)()
		o := plain
		o.Color = Color(mode % 3)
		want, _ := filterString(t, o, string(log), nil)
		o.Display.Width = 20 + int(mode)
		got, failed := filterString(t, o, string(log), nil)
		if words(got) != words(want) {
			t.Errorf("%d columns: got %q, want %q", o.Display.Width, got, want)
		}
		o.Display.Fold, o.Display.Own = true, new(findings.Own)
		_, folded := filterString(t, o, string(log), nil)
		if strings.Contains(failed+folded, "symfilter failed") {
			t.Error(failed, folded)
		}
	})
}

// words returns text without blanks, line ends and colours.
func words(text string) string {
	return strings.Join(strings.Fields(string(layout.WithoutColor([]byte(strings.NewReplacer(" ", "", "\r\n", "\n", "\n", "").Replace(text))))), "")
}

// The time for breaking a line is linear in its length.
func TestBreakingIsLinear(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := lookOptions(t)
	o.Color = ColorAlways
	for _, input := range []string{"\x1b]8;;", "\x1b[1 ", "{{{pc:0x50017a}}}", "{{{symbol:f<a, b, c>}}}", "é{{{bt:0:0x50017a}}} "} {
		fuzztest.Growth(t, []byte(input), func(line []byte) {
			f := New(io.Discard, o)
			io.WriteString(f, lookLog)
			f.Write(line)
			f.Close()
		})
	}
}
