package filter

import "io"

// An output takes the lines that are finished.
type output struct {
	w     io.Writer
	emit  func(line int64, out []byte) error // Options.Emit
	of    int64                              // line of the log that is being printed
	ready []byte                             // not yet at w
	err   error                              // the writer's first; nothing is written after it
}

// printOf notes of which line of the log the output that follows is made. With Options.Emit it sends
// what was made of another line.
func (o *output) printOf(line int64) {
	if o.of == line {
		return
	}
	if o.emit != nil {
		o.send()
	}
	o.of = line
}

// send writes what is ready.
func (o *output) send() {
	o.write(o.ready)
	o.ready = o.ready[:0]
	if cap(o.ready) > 4*outputChunk {
		o.ready = nil
	}
}

// sendLarge is send if much is ready.
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

// diagnose reports what was wrong with the element at byte off of the line.
func (f *lineFilter) diagnose(off int, message string) {
	if f.o.Diagnose != nil {
		f.o.Diagnose(Diagnostic{Line: f.line, Byte: off + 1, Message: message})
	}
}
