package filter

import "io"

// An output collects finished lines and writes them in large pieces.
type output struct {
	w     io.Writer
	emit  func(line int64, out []byte) error // Options.Emit
	of    int64                              // number of the line being printed
	ready []byte                             // not written yet
	err   error                              // first error of the writer
}

// printOf sets the line number of the following output. With Options.Emit it first sends the output
// of the previous line.
func (o *output) printOf(line int64) {
	if o.of == line {
		return
	}
	if o.emit != nil {
		o.send()
	}
	o.of = line
}

// send writes the collected output. It is not inlined: its callers can then be inlined.
//
//go:noinline
func (o *output) send() {
	o.write(o.ready)
	o.ready = o.ready[:0]
	if cap(o.ready) > 4*outputChunk {
		o.ready = nil
	}
}

func (o *output) sendLarge() {
	if len(o.ready) >= outputChunk {
		o.send()
	}
}

func (o *output) write(b []byte) {
	if len(b) == 0 || o.err != nil {
		return
	}
	if o.emit != nil {
		o.err = o.emit(o.of, b)
		return
	}
	if n, err := o.w.Write(b); err != nil {
		o.err = err
	} else if n != len(b) {
		o.err = io.ErrShortWrite
	}
}

// diagnose reports a fault in an element to Options.Diagnose. off is the element's offset in the
// current line.
func (f *lineFilter) diagnose(off int, message string) {
	if f.o.Diagnose != nil {
		f.o.Diagnose(Diagnostic{Line: f.line, Byte: off + 1, Message: message})
	}
}
