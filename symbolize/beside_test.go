package symbolize

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With two processors, a lookup in a large unit reads the functions, the line program and the
// symbol concurrently. It must return the frames that a lookup with one processor returns.
func TestLookupsByTwoProcessorsFindTheSame(t *testing.T) {
	var src strings.Builder
	for f := range 60 {
		fmt.Fprintf(&src, "int f%d(int *p) {\n", f)
		for i := range 16 {
			fmt.Fprintf(&src, "\tp[%d] = p[%d] ? p[%d] * 3 : p[%d] - 5;\n", i, i+1, i+2, i+3)
		}
		src.WriteString("\treturn *p;\n}\n")
	}
	f := build(t, "large", src.String(), "-O0")
	answers := func(procs int) (all [][]Frame) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		for at := range uint64(12) { // each in a new Symbolizer, since a second lookup takes another path
			s := open(t, Options{}, oneFile{f, "here"})
			addr := 0x3000 + at*0x800
			if _, err := s.AskData(t.Context(), f.at(addr), Policy{}); err != nil { // reads the symbol table
				t.Fatal(err)
			}
			frames, err := s.Ask(t.Context(), nil, f.at(addr), Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if len(frames) != 1 || !frames[0].HasLine {
				t.Fatalf("%#x: got %+v", addr, frames)
			}
			all = append(all, frames)
		}
		return all
	}
	if diff := cmp.Diff(answers(1), answers(2)); diff != "" {
		t.Errorf("-one processor +two processors:\n%s", diff)
	}
}
