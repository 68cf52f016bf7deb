package filter

import (
	"fmt"
	"runtime/debug"

	"github.com/symfilter/symfilter/markup"
)

const maxStack = 4 << 10 // bytes of the stack that are reported: some 20 calls

// currentLine is the line that lineOf works on.
type currentLine struct {
	text []byte // nil between lines
	end  int    // offset after it in the block, if the line is in a block
}

// lines is block, except that a line which panics passes as it is, and the rest of b follows. One
// deferred call a block instead of one a line: that would cost a hot frame 6 % of its time.
func (f *Filter) lines(b []byte) {
	for len(b) > 0 {
		b = b[f.survive(func() { f.block(b) }, len(b)):]
	}
}

// oneLine is lineOf for a line by itself, with the same promise.
func (f *Filter) oneLine(b []byte) { f.survive(func() { f.lineOf(b) }, 0) }

// survive calls do. If a line panics there, by a fault in this package or in a function of the
// Options, survive passes the line on as it is and returns the offset of the line's end; otherwise
// it returns all. Panics in the readers of debug files are caught before, by the symbolizer, and
// cost only their answer.
//
// A line longer than outputChunk may have been printed in part; then it appears twice rather than
// not at all. A panic outside of a line, or while the line is passed on, is the writer's and
// continues.
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
			f.diagnose(0, fmt.Sprintf("this line broke symfilter and passes as it is; please report it: %v\n%s", fault, stack[:min(len(stack), maxStack)]))
		})
	}()
	f.current.text, f.current.end = nil, 0
	do()
	return all
}

// forgetCurrent drops what the current line has printed and remembered.
func (f *Filter) forgetCurrent() {
	f.layout.drop()
	f.noted.reset()
	f.current = currentLine{}
	f.pieces, f.footnotes = nil, nil
	f.scan = markup.Scanner{}
}

// quietly calls do and ignores its panic.
func (f *Filter) quietly(do func()) {
	defer func() { _ = recover() }()
	do()
}
