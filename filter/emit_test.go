package filter

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Emit must get the line number of its output. For a block of plain lines this is the number of the
// first line, for a held module line the number of the module line.
func TestEmitGetsTheLine(t *testing.T) {
	const in = "one\ntwo\n" +
		"[3] {{{module:0:a:elf:aa}}}\n" +
		"[4] {{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n" +
		"{{{reset}}}{{{module:1:b:elf:bb}}}\n" +
		"six\n{{{pc:0x1}}} {{{symbol:x}}}\n{{{hexdict: A: 0x1\nB: 0x2}}} end\nlast"
	for name, test := range map[string]struct {
		o    Options
		want string
	}{
		"text": {Options{}, "1: one\n" + "2: two\n" + "3: [3] [[[ELF module #0x0 \"a\"; BuildID=aa [0x1000-0x1fff](rx)]]]\n" +
			"5: [[[reset]]][[[ELF module #0x1 \"b\"; BuildID=bb]]]\n" + "6: six\n" + "7: [[[pc:0x1]]] x\n" +
			"8: {{{hexdict: A: 0x1\n" + "9: B: 0x2}}} end\n" + "10: last"},
		"json": {Options{Output: JSON, Members: func(dst []byte, line int64) []byte { return fmt.Appendf(dst, `,"line":%d`, line) }},
			`1: {"v":1,"line":1,"text":"one"}` + "\n" + `2: {"v":1,"line":2,"text":"two"}` + "\n" +
				`3: {"v":1,"line":3,"text":"[3] [[[ELF module #0x0 \"a\"; BuildID=aa [0x1000-0x1fff](rx)]]]","elements":[{"tag":"module","id":0,"module":"a","build_id":"aa","maps":[{"start":"0x1000","end":"0x1fff","mode":"rx","offset":"0x0"}]}]}` + "\n" +
				`5: {"v":1,"line":5,"text":"[[[reset]]][[[ELF module #0x1 \"b\"; BuildID=bb]]]","elements":[{"tag":"reset"},{"tag":"module","id":1,"module":"b","build_id":"bb","maps":[]}]}` + "\n" +
				`6: {"v":1,"line":6,"text":"six"}` + "\n" +
				`7: {"v":1,"line":7,"text":"[[[pc:0x1]]] x","elements":[{"tag":"pc","address":"0x1","lookup":"0x0","reason":"no module covers the address"},{"tag":"symbol","name":"x","demangled":"x"}]}` + "\n" +
				`8: {"v":1,"line":8,"text":"{{{hexdict: A: 0x1"}` + "\n" +
				`9: {"v":1,"line":9,"text":"B: 0x2}}} end","elements":[{"tag":"hexdict","values":[{"key":"A","value":"0x1"},{"key":"B","value":"0x2"}]}]}` + "\n" +
				`10: {"v":1,"line":10,"text":"last"}` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 0))
				var got strings.Builder
				last, begun := int64(0), false
				o := test.o
				o.Emit = func(line int64, out []byte) error {
					if line < last {
						return fmt.Errorf("line %d comes after line %d", line, last)
					}
					for i, part := range strings.SplitAfter(string(out), "\n") {
						if n := line + int64(i); part != "" && (n != last || !begun) {
							fmt.Fprintf(&got, "%d: ", n)
							last, begun = n, true
						}
						got.WriteString(part)
					}
					return nil
				}
				f := New(nil, o)
				for rest := in; rest != ""; {
					n := 1 + r.IntN(len(rest))
					if _, err := f.Write([]byte(rest[:n])); err != nil {
						t.Fatal(err)
					}
					rest = rest[n:]
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(got.String(), test.want); d != "" {
					t.Fatalf("seed %d: (-got +want)\n%s", seed, d)
				}
			}
		})
	}
}

// TestHeldAndInDict checks the methods of inner that report the state after the lines so far.
func TestHeldAndInDict(t *testing.T) {
	f := New(nil, Options{Emit: func(int64, []byte) error { return nil }})
	for _, step := range []struct {
		in, want string
	}{
		{"one\n", "1 0 false"},
		{"{{{module:0:a:elf:aa}}}\n", "2 2 false"},
		{"{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n", "3 2 false"},
		{"four\n", "4 0 false"},
		{"{{{hexdict: A: 1\n", "5 0 true"},
		{"B: 2 }}} {{{module:1:b:elf:bb}}}\n", "6 6 false"},
		{"unfin", "6 6 false"},
	} {
		f.Write([]byte(step.in))
		if got := fmt.Sprint(innerOf(f).Line(), innerOf(f).HeldModule(), innerOf(f).InDict()); got != step.want {
			t.Errorf("after %q: got %s, want %s", step.in, got, step.want)
		}
	}
}

// An error of Emit must be returned, and Emit must not be called again.
func TestErrorsOfEmitAreReturned(t *testing.T) {
	full := errors.New("full")
	calls := 0
	f := New(nil, Options{Emit: func(int64, []byte) error { calls++; return full }})
	for range 3 {
		if n, err := f.Write([]byte("a\n{{{pc:0x1}}}\n")); n != 0 || err != full {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if err := f.Close(); err != full || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
}
