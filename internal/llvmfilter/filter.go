package llvmfilter

import (
	"bytes"
	"context"
	"io"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/symbolize"
)

// A Filter prints a log as LLVM's filter does. One goroutine at a time may use it.
type Filter struct {
	w           io.Writer
	diag        io.Writer
	o           Options
	out         []byte // output not yet written to w
	diagnostics []byte // diagnostics not yet written to diag
	err         error  // the first error of w; nothing is written after it

	cut lines.Cutter

	line   []byte // the current line, with its line end
	crlf   bool   // the current line ends with CR LF
	echoed int    // bytes of diagnostics about the current line
	style
	space

	open   *moduleLine     // module line that still collects maps
	now    context.Context // an ended context: lookups with it do not wait
	frames []symbolize.Frame
	kept   map[place][]symbolize.Frame
	broken map[buildid.ID]struct{} // files reported as unusable

	keptSize int // bytes
}

// New returns a Filter that prints the log to out, and diagnostics about its markup to diag.
// They correspond to LLVM's standard output and standard error. Errors of diag are ignored, and
// diag may be nil. The Filter closes neither.
func New(out, diag io.Writer, o Options) *Filter {
	if diag == nil {
		diag = io.Discard
	}
	now, stop := context.WithCancel(context.Background())
	stop()
	return &Filter{w: out, diag: diag, o: o, now: now, cut: lines.Cutter{Max: maxLine}}
}

// Write filters p. Before it returns, it writes every complete line in p, except a module line that
// may still get maps. All errors are the writer's: a log cannot cause an error.
func (f *Filter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		var b []byte
		var kind lines.Kind
		switch b, kind, rest = f.cut.Block(rest); kind {
		case lines.Whole:
			f.block(b)
		case lines.Head, lines.Rest:
			f.plain(b)
		}
	}
	f.send()
	if f.err != nil {
		return 0, f.err
	}
	return len(p), nil
}

// ReadFrom filters r to its end, in large blocks. It leaves an unfinished last line to Close.
func (f *Filter) ReadFrom(r io.Reader) (n int64, err error) {
	return io.CopyBuffer(struct{ io.Writer }{f}, struct{ io.Reader }{r}, make([]byte, readBlock))
}

// Close finishes the module line and the last line, which always gets a line end. It returns
// the writer's first error.
func (f *Filter) Close() error {
	line, long := f.cut.Finish()
	if len(line) > 0 {
		f.lineOf(append(line, '\n'))
	}
	if long {
		f.out = append(f.out, '\n')
	}
	f.endModule()
	f.resetColor()
	f.forget()
	f.send()
	return f.err
}

// block filters b, which ends with a line end. Lines without a mark, "{{{" or ESC, are not examined
// one by one.
func (f *Filter) block(b []byte) {
	braces, esc := nextMark(b, 0, opening), nextMark(b, 0, escape)
	for at := 0; at < len(b); {
		if braces < at {
			braces = nextMark(b, at, opening)
		}
		if esc < at {
			esc = nextMark(b, at, escape)
		}
		mark := min(braces, esc)
		if mark == len(b) {
			f.plain(b[at:])
			return
		}
		start := at + bytes.LastIndexByte(b[at:mark], '\n') + 1
		end := mark + bytes.IndexByte(b[mark:], '\n') + 1
		if start > at {
			f.plain(b[at:start])
		}
		if end-start > maxLine+1 {
			f.plain(b[start:end])
		} else {
			f.lineOf(b[start:end])
		}
		at = end
	}
}

var (
	opening = []byte("{{{")
	closing = []byte("}}}")
	escape  = []byte{'\x1b'}
)

// nextMark returns the offset of the first mark in b[at:], as an offset in b, or len(b).
func nextMark(b []byte, at int, mark []byte) int {
	if i := bytes.Index(b[at:], mark); i >= 0 {
		return at + i
	}
	return len(b)
}

// plain prints b unchanged: whole lines, or parts of a very long one.
func (f *Filter) plain(b []byte) {
	f.resetColor()
	if f.open != nil {
		end := bytes.IndexByte(b, '\n')
		f.crlf = end > 0 && b[end-1] == '\r'
		f.endModule()
	}
	if len(b) < chunk {
		f.print(b)
		return
	}
	f.send()
	f.write(b)
}

func (f *Filter) print(b []byte) {
	f.out = append(f.out, b...)
	if len(f.out) >= chunk {
		f.send()
	}
}

// send writes the output, then the diagnostics.
func (f *Filter) send() {
	f.write(f.out)
	f.out = f.out[:0]
	if cap(f.out) > 4*chunk {
		f.out = nil
	}
	if len(f.diagnostics) > 0 {
		f.diag.Write(f.diagnostics) // like LLVM, without a check for errors
		f.diagnostics = f.diagnostics[:0]
		if cap(f.diagnostics) > 4*chunk {
			f.diagnostics = nil
		}
	}
}

func (f *Filter) write(b []byte) {
	if len(b) == 0 || f.err != nil {
		return
	}
	if n, err := f.w.Write(b); err != nil {
		f.err = err
	} else if n != len(b) {
		f.err = io.ErrShortWrite
	}
}
