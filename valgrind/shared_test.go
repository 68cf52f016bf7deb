package valgrind

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// distinctErrors returns a report of errors with different innermost functions. Their callers are
// from a small set.
func distinctErrors(errors, depth int) []byte {
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<protocolversion>4</protocolversion>\n<protocoltool>memcheck</protocoltool>\n<pid>7</pid>\n\n")
	frame := func(n int) {
		fmt.Fprintf(&b, "    <frame>\n      <ip>%#X</ip>\n      <obj>/opt/app</obj>\n      <fn>ns::Example::run_%d(int)</fn>\n      <dir>/src/example</dir>\n      <file>example.cpp</file>\n      <line>%d</line>\n    </frame>\n", 0x401000+16*n, n, n)
	}
	for i := range errors {
		fmt.Fprintf(&b, "<error>\n  <unique>%#x</unique>\n  <tid>1</tid>\n  <kind>InvalidRead</kind>\n  <what>Invalid read of size 4</what>\n  <stack>\n", i)
		frame(1000 + i)
		for j := range depth {
			frame((i*31 + j*17) % 64)
		}
		b.WriteString("  </stack>\n</error>\n\n")
	}
	b.WriteString("</valgrindoutput>\n")
	return b.Bytes()
}

// found returns the findings of a report.
func found(xml []byte) *findings.Collection {
	s := findings.New(nil)
	w := newFinder(s, "report.xml", nil, Options{})
	for rest := xml; len(rest) > 0; {
		n := min(len(rest), 64<<10)
		w.Write(rest[:n])
		rest = rest[n:]
	}
	w.Close()
	return s
}

// In a report with many different errors, most bytes are stacks. The memory kept for them must grow
// with the number of different frames, not of all frames.
func TestFindingsShareFrames(t *testing.T) {
	const errors, depth = 500, 20
	s := found(distinctErrors(errors, depth))
	different := make(map[*findings.TraceFrame]bool)
	frames := 0
	for _, x := range s.All() {
		for _, f := range x.Traces[0].Frames {
			different[f] = true
			frames++
		}
	}
	if len(s.All()) != errors || frames != errors*(depth+1) || len(different) != errors+64 {
		t.Errorf("%d findings with %d frames, of which %d are different; want %d, %d, %d", len(s.All()), frames, len(different), errors, errors*(depth+1), errors+64)
	}
}

func TestFindingsOfManyFramesTakeLittleMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	const errors = 2000
	allocated := func(depth int) float64 {
		xml := distinctErrors(errors, depth)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		found(xml)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / errors
	}
	few, many := allocated(8), allocated(24)
	if few > 2000 || (many-few)/16 > 12 { // measured: 1,510 and 8; without sharing 5,300 and 330
		t.Errorf("an error with 8 callers takes %.0f bytes, and each further caller %.0f", few, (many-few)/16)
	}
}
