package filter

import (
	"fmt"
	"runtime/debug"

	"github.com/symfilter/symfilter/markup"
)

const maxStack = 4 << 10 // bytes of a stack trace in a diagnostic, about 20 calls

// currentLine is the line that is being filtered.
type currentLine struct {
	text []byte // nil between lines
	end  int    // offset of the line's end in its block; 0 if it is not in a block
}

// guardedBlock is block, but prints a line unchanged if filtering it panics. It defers one call for
// each block: a deferred call for each line would add 6 % to the time of a hot frame.
func (f *Filter) guardedBlock(b []byte) {
	for len(b) > 0 {
		b = b[f.survive(func() { f.block(b) }, len(b)):]
	}
}

// guardedLine filters a line, and prints it unchanged after a panic.
func (f *Filter) guardedLine(b []byte) {
	f.survive(func() {
		means, _ := meaning(&f.lineFilter, nil, b, -1, 0)
		takeLine(&f.lineFilter, b, means)
	}, 0)
}

// release prints the held lines of a raw backtrace, between two blocks. A line whose printing
// panics is printed unchanged.
func (f *Filter) release() {
	for f.tracer.isBuffering() {
		f.survive(f.tracer.release, 0)
	}
}

// survive calls do, which filters the given number of bytes (all), and returns this number. If
// filtering a line panics, survive prints the line unchanged and returns the offset of the line's
// end. The fault may be in this package or in a function of the Options; the symbolizer recovers
// panics in readers of debug files itself.
//
// A part of a line longer than outputChunk may appear twice. A panic outside of a line, or during
// the unchanged printing, comes from the writer and is not recovered.
func (f *Filter) survive(do func(), all int) (end int) {
	defer func() {
		line := f.current
		if line.text == nil {
			return
		}
		fault := recover()
		stack := debug.Stack()
		end = line.end
		f.forgetCurrent()
		f.quietly(f.closeModule)
		f.open = nil
		f.line--
		f.plain(line.text, 1)
		f.quietly(func() {
			f.diagnose(0, fmt.Sprintf("symfilter failed on this line, which is printed unchanged; please report this bug: %v\n%s", fault, stack[:min(len(stack), maxStack)]))
		})
	}()
	f.current.text, f.current.end = nil, 0
	do()
	return all
}

func (f *Filter) forgetCurrent() {
	f.leavePlace()
	f.layout.Drop()
	f.records.reset()
	f.current = currentLine{}
	f.pieces, f.footnotes = nil, nil
	f.scan = markup.Scanner{}
}

func (f *Filter) quietly(do func()) {
	defer func() { _ = recover() }()
	do()
}
