package rtrace

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/lines"
)

// A Reader takes a report apart. Its memory does not grow with the report.
type Reader struct {
	visit func(*Record) error
	rec   Record
	err   error

	cut lines.Cutter

	headed bool // a header, or a line in its place, has come

	// How calls and frames stand to each other.
	open       bool // a call is there that a frame may follow
	framed     bool // frames of it came
	compressed bool // the header says that calls share backtraces
	ends       ends // what ends a call in this report
	number     uint64

	// Frames at one address that have names: inlined calls, or a function that
	// calls itself.
	run     []byte
	lines   []int // where each ends in run
	runAddr uint64
	said    [][]byte

	epoch int // that frames get
}

// ends is what ends a call and its backtrace.
type ends uint8

const (
	endUnknown ends = iota
	endBlank        // an empty line
	endCall         // the next call
)

// NewReader returns a Reader that calls visit for each record. An error of visit
// ends the reading, and comes back from Write and Close.
func NewReader(visit func(*Record) error) *Reader {
	return &Reader{visit: visit, cut: lines.Cutter{Max: maxLine}}
}

// Write reads p. A line is a record when its end has come; frames with names
// wait for the line that follows them.
func (r *Reader) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0 && r.err == nil; {
		var line []byte
		var kind lines.Kind
		switch line, kind, rest = r.cut.Line(rest); kind {
		case lines.Whole:
			r.whole(line)
		case lines.Head, lines.Rest:
			r.part(line)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Close reads what is left: a line without an end.
func (r *Reader) Close() error {
	if line, _ := r.cut.Finish(); len(line) > 0 && r.err == nil {
		r.whole(line)
	}
	r.endRun()
	return r.err
}

// part hands over a part of a line that is too long to be read.
func (r *Reader) part(line []byte) {
	r.endRun()
	r.headed = true
	r.rec = Record{Kind: Comment, Raw: line}
	r.hand()
}

func (r *Reader) hand() {
	if r.err == nil {
		r.rec.epoch = r.epoch
		r.err = r.visit(&r.rec)
	}
}

// whole reads a line.
func (r *Reader) whole(line []byte) {
	text := bare(line)
	if addr, said, ok := parseFrame(text); ok && (text[0] == '\t' || r.open) {
		r.frame(line, addr, said)
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
		r.close()
	case Header:
		r.close()
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
		r.close()
	}
	if r.rec.Kind != Blank {
		r.headed = true
	}
	r.hand()
}

// close ends a call and its backtrace.
func (r *Reader) close() { r.open, r.framed, r.number = false, false, 0 }

// frame reads a line of a frame.
func (r *Reader) frame(line []byte, addr uint64, said []byte) {
	r.headed, r.framed = true, true
	if s := parseSaid(said); s.function == nil && s.file == nil { // nothing is inlined into it
		r.endRun()
		r.rec = Record{Kind: Frame, Raw: line, Addr: addr, Fields: r.rec.Fields[:0]}
		if len(said) > 0 {
			r.said = append(r.said[:0], said)
			r.rec.Said = r.said
		}
		r.count()
		return
	}
	if len(r.lines) > 0 && addr != r.runAddr || len(r.lines) >= maxRun || len(r.run)+len(line) > maxLine+maxLine/2 {
		r.endRun()
	}
	r.runAddr = addr
	r.run = append(r.run, line...)
	r.lines = append(r.lines, len(r.run))
}

func (r *Reader) count() {
	r.rec.Frame = r.number
	r.number++
	r.hand()
}

// endRun hands over the frames that the lines at one address are: as often as
// they repeat.
func (r *Reader) endRun() {
	n := len(r.lines)
	if n == 0 {
		return
	}
	r.said = r.said[:0]
	from := 0
	for _, end := range r.lines {
		_, text, _ := parseFrame(bare(r.run[from:end]))
		r.said = append(r.said, text)
		from = end
	}
	p := period(r.said)
	from = 0
	for i := 0; i < n; i += p {
		end := r.lines[i+p-1]
		r.rec = Record{Kind: Frame, Raw: r.run[from:end], Addr: r.runAddr, Said: r.said[i : i+p], Fields: r.rec.Fields[:0]}
		r.count()
		from = end
	}
	r.run, r.lines = r.run[:0], r.lines[:0]
}

// period returns the length of the shortest piece that lines are repetitions of.
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
