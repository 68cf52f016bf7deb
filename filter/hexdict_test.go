package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

const dictHead = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}\n"

// FuzzHexDict checks that the lines of any hexdict are printed unchanged, with footnotes as the
// only addition. The division of the log into blocks must change nothing.
func FuzzHexDict(f *testing.F) {
	f.Add("\n    CS:                   0 RIP:     0x50017a EFL:            0x10246 CR2:                  0\n    RAX:      0xc53d0acbcf0 RBX:     0x5011dc\n  ", "[1.5] ")
	f.Add(" a:0x50018d b:0 c:0x c:zz :0x1 0x500180: x:0x5001800000000000000000", "")
	f.Add("\n[1] A: 0x50018d\n[2] B: 00\n[3] ", "[0] ")
	f.Add(strings.Repeat("a:0x50017a ", 4000), "")
	f.Add(strings.Repeat("a:0x50017a\n", 300), "x ")
	s := testSymbolizer(f)
	f.Fuzz(func(t *testing.T, body, prefix string) {
		if len(body)+len(prefix) > 100<<10 || strings.Contains(body+prefix, "{{{") || strings.ContainsAny(body, "}\r") || strings.ContainsAny(prefix, "{\n\r") ||
			strings.Count(body, "\n") >= maxDictLines-1 || strings.Contains(body, "\n") && len(body) > maxDict-maxDictLines {
			return
		}
		defer fuzztest.Watch(t, body)()
		o := Options{Symbolizer: s, Patience: patient}
		dict := prefix + "{{{hexdict:" + body + "}}}"
		head, _ := filterString(t, o, dictHead, nil)
		whole, _ := filterString(t, o, dictHead+dict+"\nend\n", nil)
		if cut, _ := filterString(t, o, dictHead+dict+"\nend\n", rand.New(rand.NewPCG(uint64(len(body)), 1))); cut != whole {
			t.Fatalf("blocks change what comes out: %.500q, %.500q", cut, whole)
		}
		rest, ok := strings.CutPrefix(whole, head+dict+"\n")
		if !ok {
			t.Fatalf("%.500q came out as %.500q", dict, whole)
		}
		notes, ok := strings.CutSuffix(rest, "end\n")
		if !ok {
			t.Fatalf("after the hexdict: %.500q", rest)
		}
		n := 0
		for note := range strings.Lines(notes) {
			n++
			if want := fmt.Sprintf("[%d] ", n); !strings.Contains(note, want) || !strings.Contains(note, " → ") {
				t.Fatalf("footnote %d: %q", n, note)
			}
		}
		fuzztest.Growth(t, []byte(dict), func(dicts []byte) {
			f := New(io.Discard, o)
			io.WriteString(f, dictHead)
			f.Write(dicts)
			f.Close()
		})
	})
}

// A hexdict without an end must be closed at its limit. Until then, it may hold no more text than
// the limit and one line.
func TestUnclosedHexDictIsBounded(t *testing.T) {
	var b bytes.Buffer
	f := New(&b, Options{})
	line := strings.Repeat("R:0x50017a ", 20) + "\n"
	io.WriteString(f, dictHead+"{{{hexdict:\n")
	for range 10000 {
		io.WriteString(f, line)
		if d := f.process.hex; d != nil && (len(d.body) > maxDict+len(line) || d.lines > maxDictLines) {
			t.Fatalf("%d bytes and %d lines are held", len(d.body), d.lines)
		}
	}
	if f.process.hex != nil {
		t.Error("it is open still")
	}
	if got := strings.Count(b.String(), line); got != 10000 {
		t.Errorf("%d of 10000 lines came out", got)
	}
}

// A value without a name in a hexdict must not count as unresolved, in total or for its module: the
// value may be a number.
func TestValuesOfHexdictsAreNotCounted(t *testing.T) {
	f := New(io.Discard, Options{})
	io.WriteString(f, dictHead+"{{{hexdict: RIP: 0x500180 RSP: 0x501004}}}\n{{{pc:0x500190:pc}}}\n{{{hexdict: RIP: 0x500180}}}\n")
	f.Close()
	modules, failed := f.Unresolved()
	if len(modules) != 1 || modules[0].Frames != 1 || failed != 1 {
		t.Errorf("%d unresolved, by module %+v; want the pc alone", failed, modules)
	}
}
