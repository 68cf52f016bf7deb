package rtrace

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/report"
)

// A recordReader splits a report into records. Its memory does not grow with the report. One
// goroutine at a time may use it.
type recordReader struct {
	visit func(*record) error
	rec   record
	err   error

	cut lines.Cutter

	headed bool // a line that is not empty was read, so later headers begin with version=

	// The state of the current calls and their frames.
	open       bool // frames of a call may follow
	framed     bool // the call has a frame
	compressed bool // the header lists the step "compress", so calls may share backtraces
	ends       ends // what ends calls in this report
	number     uint64

	// Lines of frames with names, all at the address runAddr: inlined calls, or a function that
	// calls itself.
	run      []byte
	lines    []int // end of each line in run
	runAddr  uint64
	reported [][]byte

	epoch int // epoch of the mappings for the records; 0 for the present mappings
}

// An ends value is the kind of line that ends a call and its backtrace in the current report.
type ends uint8

const (
	endUnknown ends = iota
	endBlank        // an empty line
	endCall         // the next call
)

// newReader returns a recordReader that calls visit for each record. Reading ends at visit's
// first error, which Write and Close return.
func newReader(visit func(*record) error) *recordReader {
	return &recordReader{visit: visit, cut: lines.Cutter{Max: maxLine}}
}

// IsRecord reports whether line is a call, or declares a map, context, resource type or attachment.
// header is the header of the line's report.
func IsRecord(header, line []byte) (ok bool) {
	r := newReader(func(rec *record) error {
		switch rec.Kind {
		case allocRecord, freeRecord, mapRecord, contextRecord, resourceRecord, attachmentRecord:
			ok = true
		}
		return nil
	})
	for _, b := range [][]byte{header, newline, line, newline} {
		r.Write(b) // Write fails for no input
	}
	r.Close()
	return ok
}

// Write reads the lines that end in p. Frames with names wait for the next line.
func (r *recordReader) Write(p []byte) (int, error) {
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
func (r *recordReader) Close() error {
	if line, _ := r.cut.Finish(); len(line) > 0 && r.err == nil {
		r.readLine(line)
	}
	r.endRun()
	return r.err
}

// visitPart emits a part of a long line as a comment.
func (r *recordReader) visitPart(line []byte) {
	r.endRun()
	r.headed = true
	r.rec = record{Kind: commentRecord, Raw: line}
	r.emit()
}

func (r *recordReader) emit() {
	if r.err == nil {
		r.rec.epoch = r.epoch
		r.err = r.visit(&r.rec)
	}
}

func (r *recordReader) readLine(line []byte) {
	text := bare(line)
	if addr, after, ok := parseFrame(text); ok && (text[0] == '\t' || r.open) {
		r.frame(line, addr, after)
		return
	}
	r.endRun()
	fields := r.rec.Fields[:0]
	r.rec = record{Raw: line, Fields: fields}
	parse(&r.rec, text, !r.headed)
	switch r.rec.Kind {
	case blankRecord:
		if r.framed {
			r.ends = endBlank
		}
		r.endTrace()
	case headerRecord:
		r.endTrace()
		r.headed = true
		r.ends = endUnknown
		r.compressed = bytes.Contains(r.rec.headerValue("filter"), []byte("compress"))
	case allocRecord, freeRecord:
		if r.framed && r.ends == endUnknown {
			r.ends = endCall
		}
		r.rec.Joined = r.open && !r.framed && (r.compressed || r.ends == endBlank)
		if !r.rec.Joined {
			r.number = 0
		}
		r.open, r.framed = true, false
	case mapRecord, contextRecord, resourceRecord, attachmentRecord:
		r.endTrace()
	}
	if r.rec.Kind != blankRecord {
		r.headed = true
	}
	r.emit()
}

// endTrace ends a call and its backtrace.
func (r *recordReader) endTrace() { r.open, r.framed, r.number = false, false, 0 }

func (r *recordReader) frame(line []byte, addr uint64, after []byte) {
	r.headed, r.framed = true, true
	if s := parseSymbol(after); s.function == nil && s.file == nil { // not an inlined call
		r.endRun()
		r.rec = record{Kind: frameRecord, Raw: line, Addr: addr, Fields: r.rec.Fields[:0]}
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

func (r *recordReader) emitFrame() {
	r.rec.Frame = r.number
	r.number++
	r.emit()
}

// endRun emits the frames of the collected lines at one address. Lines that differ are one frame
// with inlined calls. If a sequence of lines repeats, each repetition is a frame.
func (r *recordReader) endRun() {
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
	p := report.Period(n, func(i, j int) bool { return bytes.Equal(r.reported[i], r.reported[j]) })
	from = 0
	for i := 0; i < n; i += p {
		end := r.lines[i+p-1]
		r.rec = record{Kind: frameRecord, Raw: r.run[from:end], Addr: r.runAddr, Reported: r.reported[i : i+p], Fields: r.rec.Fields[:0]}
		r.emitFrame()
		from = end
	}
	r.run, r.lines = r.run[:0], r.lines[:0]
}
