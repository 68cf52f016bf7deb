package rtrace

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/lines"
)

// A Reader splits a report into records. Its memory does not grow with the report. One goroutine at
// a time may use it.
type Reader struct {
	visit func(*Record) error
	rec   Record
	err   error

	cut lines.Cutter

	headed bool // the first line was read, which may be a header

	// The state of calls and their frames.
	open       bool // frames of a call may follow
	framed     bool // the call has a frame
	compressed bool // the header lists the step "compress": calls may share backtraces
	ends       ends // how calls end in this report
	number     uint64

	// The lines of frames with names at one address: inlined calls, or a function that calls
	// itself.
	run      []byte
	lines    []int // the end of each line in run
	runAddr  uint64
	reported [][]byte

	epoch int // epoch of the records
}

// ends is the mark that ends a call and its backtrace.
type ends uint8

const (
	endUnknown ends = iota
	endBlank        // an empty line
	endCall         // the next call
)

// NewReader returns a Reader that calls visit for each record. An error of visit ends the reading,
// and Write and Close return it.
func NewReader(visit func(*Record) error) *Reader {
	return &Reader{visit: visit, cut: lines.Cutter{Max: maxLine}}
}

// Write reads the lines that end in p. Frames with names wait for the next line.
func (r *Reader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && r.err == nil; {
		var line []byte
		var kind lines.Kind
		switch line, kind, rest = r.cut.Line(rest); kind {
		case lines.Whole:
			r.readLine(line)
		case lines.Head, lines.Rest:
			r.visitPart(line)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Close reads the last line, if it has no line end. It returns the error of visit.
func (r *Reader) Close() error {
	if line, _ := r.cut.Finish(); len(line) > 0 && r.err == nil {
		r.readLine(line)
	}
	r.endRun()
	return r.err
}

// visitPart emits a part of a line that is too long as a comment.
func (r *Reader) visitPart(line []byte) {
	r.endRun()
	r.headed = true
	r.rec = Record{Kind: Comment, Raw: line}
	r.emit()
}

func (r *Reader) emit() {
	if r.err == nil {
		r.rec.epoch = r.epoch
		r.err = r.visit(&r.rec)
	}
}

// readLine reads a whole line.
func (r *Reader) readLine(line []byte) {
	text := bare(line)
	if addr, after, ok := parseFrame(text); ok && (text[0] == '\t' || r.open) {
		r.frame(line, addr, after)
		return
	}
	r.endRun()
	fields := r.rec.Fields[:0]
	r.rec = Record{Raw: line, Fields: fields}
	parse(&r.rec, text, !r.headed)
	switch r.rec.Kind {
	case Blank:
		if r.framed {
			r.ends = endBlank
		}
		r.endTrace()
	case Header:
		r.endTrace()
		r.headed = true
		r.ends = endUnknown
		r.compressed = bytes.Contains(r.rec.Field("filter"), []byte("compress"))
	case Alloc, Free:
		if r.framed && r.ends == endUnknown {
			r.ends = endCall
		}
		r.rec.Joined = r.open && !r.framed && (r.compressed || r.ends == endBlank)
		if !r.rec.Joined {
			r.number = 0
		}
		r.open, r.framed = true, false
	case Map, Context, Resource, Attachment:
		r.endTrace()
	}
	if r.rec.Kind != Blank {
		r.headed = true
	}
	r.emit()
}

// endTrace ends a call and its backtrace.
func (r *Reader) endTrace() { r.open, r.framed, r.number = false, false, 0 }

// frame reads a line of a frame.
func (r *Reader) frame(line []byte, addr uint64, after []byte) {
	r.headed, r.framed = true, true
	if s := parseSymbol(after); s.function == nil && s.file == nil { // not an inlined call
		r.endRun()
		r.rec = Record{Kind: Frame, Raw: line, Addr: addr, Fields: r.rec.Fields[:0]}
		if len(after) > 0 {
			r.reported = append(r.reported[:0], after)
			r.rec.Reported = r.reported
		}
		r.emitFrame()
		return
	}
	if len(r.lines) > 0 && addr != r.runAddr || len(r.lines) >= maxRun || len(r.run)+len(line) > maxLine+maxLine/2 {
		r.endRun()
	}
	r.runAddr = addr
	r.run = append(r.run, line...)
	r.lines = append(r.lines, len(r.run))
}

func (r *Reader) emitFrame() {
	r.rec.Frame = r.number
	r.number++
	r.emit()
}

// endRun emits the frames of the lines at one address. If the lines repeat, each repetition is a
// frame.
func (r *Reader) endRun() {
	n := len(r.lines)
	if n == 0 {
		return
	}
	r.reported = r.reported[:0]
	from := 0
	for _, end := range r.lines {
		_, text, _ := parseFrame(bare(r.run[from:end]))
		r.reported = append(r.reported, text)
		from = end
	}
	p := period(r.reported)
	from = 0
	for i := 0; i < n; i += p {
		end := r.lines[i+p-1]
		r.rec = Record{Kind: Frame, Raw: r.run[from:end], Addr: r.runAddr, Reported: r.reported[i : i+p], Fields: r.rec.Fields[:0]}
		r.emitFrame()
		from = end
	}
	r.run, r.lines = r.run[:0], r.lines[:0]
}

// period returns the length of the shortest sequence whose repetition gives lines.
func period(lines [][]byte) int {
	n := len(lines)
next:
	for p := 1; p <= n/2; p++ {
		if n%p != 0 {
			continue
		}
		for i := p; i < n; i++ {
			if !bytes.Equal(lines[i], lines[i-p]) {
				continue next
			}
		}
		return p
	}
	return n
}
