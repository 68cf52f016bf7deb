package dialect

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
)

const (
	maxLine    = 64 << 10 // bytes of the longest line read: MongoDB prints a whole trace on one
	maxAnchors = 32       // anchors tried in a line; a frame has at most four
	maxPath    = 4096     // bytes of a module's name: Linux's PATH_MAX
)

type grammar struct {
	dialect *Dialect
	anchor  anchor

	// direct are the bytes allowed directly before the anchor; back are the bytes allowed before
	// the blanks, if any, that precede the anchor. '\n' is the start of the line, and '0' any
	// digit. An empty set allows any byte. match may rely on both.
	direct, back string

	// Three further sets of bytes reject nearly all anchors that match would reject. before: the
	// byte before the byte that back accepts. next: the byte after the anchor's hexadecimal digits,
	// or after the anchor if digitsAfter is 0. then: the byte after the byte that next accepts and
	// after any blanks there. '\n' is also the end of the line.
	before, next, then string
	shape              shape

	// words, if not empty, are the allowed pairs of bytes of before and back, for
	// [Reader.Prefilter].
	words []string

	// window is set for a weak grammar, which may match only while this window is open. Each match
	// keeps the window open.
	window window

	// match adds the frames around the anchor at the given offset to l. If it returns false, the
	// frames that it has added are removed.
	match func(r *Reader, l *Line, at int) bool
}

// A Line is a line of a log with its frames, if it has any. Its memory is reused.
type Line struct {
	Text   []byte // the line without its end
	Frames []Frame
	edits  []Edit

	// Map is set if the line is an entry of /proc/PID/maps, which begins at MapStart.
	Map      bool
	MapStart int

	// Holds is set if the program prints maps or modules after the frames of this line.
	Holds bool
}

// A Reader finds the frames in the lines of one log. One goroutine at a time may use it.
type Reader struct {
	// Firmware is set if the operator has named a file for addresses without a module. The Reader
	// then reads registers and lists of addresses, in lines found by [NextFirmware].
	Firmware bool

	// OnX86 is set if all the operator's files for addresses without a module are x86-64 kernels of
	// Linux. In firmware dumps, the Reader then reads only RIP and EIP, as a virtual machine or a
	// debugger prints them: see [IsCounter].
	OnX86 bool

	*tables          // nil until first needed
	only    []string // names of the dialects; nil for all except OnDemand

	history
	windows
	producers
	facts factLog
	quota Quota

	line    Line
	part    Line // a line of a record of rsyslog
	bare    bare // the line, if it has colours
	modules modules
	ends    frameEnds
}

// producers hold data from lines of one dialect for later lines of the same dialect.
type producers struct {
	kernel kernelLog
	deaths deaths
	glibc  glibcFault
	gdb    gdbSignal
	device deviceFault
	envoy  envoyObject

	// line at which ClickHouse reported a signal; 0: none, or its frames were read
	clickHouseSignal int64
	jvmFrame         int64  // line of the first native frame, after the header
	goSignal         uint64 // address of the last signal in C code in a Go program
}

func (p *producers) forget() {
	*p = producers{kernel: p.kernel, gdb: gdbSignal{frame: -1}, jvmFrame: -1}
	p.kernel.forget()
}

// NewReader returns a Reader for the named dialects. A nil list selects all dialects except
// dialects on demand.
func NewReader(only []string) *Reader {
	r := &Reader{only: only}
	r.Reset()
	return r
}

// Reset forgets all lines. The next line may have any number.
func (r *Reader) Reset() {
	r.history.reset()
	r.windows.reset()
	r.producers.forget()
	r.facts.forget()
}

// Line reads text, the line with this number, without its end. It returns nil for a line without a
// frame, unless the line has a map or a header and [Reader.Wants] returns true for it. It also
// returns nil for a line longer than 64 KiB. The Line is valid until the next call. A line without
// an anchor may be skipped unless Wants returns true for it, or [NextFirmware] finds a number in
// it.
func (r *Reader) Line(text []byte, number int64) *Line { return r.LineAt(text, number, -1) }

// LineAt is Line for a line whose first mark accepted by [Reader.MayMatch] is at offset mark. If
// mark is -1, no mark is known. A mark is at the byte before "0x" or "ip", or at the first byte of
// "pc ", "PC=" or another anchor. At the start of the line, it is at "0x" itself. If [Reader.Wants]
// returns true, mark is ignored.
func (r *Reader) LineAt(text []byte, number int64, mark int) *Line {
	r.load()
	l := &r.line
	l.Text, l.Frames, l.edits, l.Holds, l.Map = text, l.Frames[:0], l.edits[:0], false, false
	if len(text) == 0 || len(text) > maxLine {
		return nil
	}
	wants := number <= r.latest
	r.number = number
	escaped := bytes.IndexByte(text, esc) >= 0
	if escaped && r.bare.set(text) {
		l.Text = r.bare.text
		defer r.bare.restore(l, text)
	}
	if wants || len(l.Text) < len(text) {
		mark = -1
	}
	found := r.recordOrFrames(l, mark)
	if wants || found {
		r.quota.Add(len(text) + 1)
	}
	if escaped && found && controls(l) {
		l.Frames, found = l.Frames[:0], false
	}
	switch {
	case found && needsContext(l):
		if !wants {
			r.readPast()
		}
		r.open(windowTrace, number)
		l.Holds = number <= r.holdsUntil
		if r.facts.process != 0 || l.Holds {
			pid := processIn(text[:l.Frames[0].Start])
			for i := range l.Frames {
				l.Frames[i].PID = pid
			}
		}
	case found:
	case !wants:
		if r.Firmware {
			r.facts.deviceLine(l.Text, r.number)
		}
		return nil
	case r.mapLine(l.Text):
		l.Map = true
		r.open(windowTrace, number)
		found = true
	default:
		found = r.header(l)
	}
	r.readTo = number
	if len(l.Frames) > 0 {
		r.frameAt = number
	}
	if !found {
		return nil
	}
	return l
}

// needsContext reports whether the lines around l may help to resolve one of its frames.
func needsContext(l *Line) bool {
	for i := range l.Frames {
		f := &l.Frames[i]
		if f.Kernel != nil && f.Kernel.Release != "" && f.Kind != InKernel {
			continue // the frame needs nothing else
		}
		if !f.Named && !f.Optional && f.Unread == nil && (f.ID.IsZero() || f.Kind == Runtime) {
			return true
		}
	}
	return false
}

// frames finds the frames of l, and reports whether there are any. It tries at most maxAnchors
// anchors, up to the first with a frame, and then the grammars without an anchor. mark is as in
// LineAt.
func (r *Reader) frames(l *Line, mark int) bool {
	text := l.Text
	r.modules.marks.from = -1
	tried, from := 0, 0
	if mark >= 0 {
		if a, at, ok := anchorOf(text, mark); ok {
			set, _ := r.of[a].bytes(text, at)
			if r.matchAt(l, a, at, set) {
				return true
			}
			tried, from = 1, at+len(anchorText[a])
		}
	}
	for i := from; i < len(text); i++ {
		if !ends[text[i]] {
			continue
		}
		a, at, ok := anchorTo(text, i)
		if !ok {
			continue
		}
		set := r.of[a].at(text, at)
		if set == 0 {
			continue
		}
		if r.matchAt(l, a, at, set) {
			return true
		}
		if tried++; tried == maxAnchors {
			break
		}
	}
	for i := range r.lines {
		if g := &r.lines[i]; g.window&r.opened() != 0 && r.matches(g, l, 0) {
			return true
		}
	}
	return false
}

func (r *Reader) matchAt(l *Line, a anchor, at int, set uint64) bool {
	f := &r.of[a]
	for i, left := range f.grammarsOf(set) {
		for ; left != 0; left &= left - 1 {
			if r.matches(&f.grammars[i*64+bits.TrailingZeros64(left)], l, at) {
				return true
			}
		}
	}
	return false
}

func (r *Reader) matches(g *grammar, l *Line, at int) bool {
	if g.match(r, l, at) && r.inWindow(g.window) {
		for i := range l.Frames {
			l.Frames[i].Dialect = g.dialect
		}
		return true
	}
	l.Frames, l.edits = l.Frames[:0], l.edits[:0]
	return false
}

// controls reports whether a module's name contains ESC, which file names rarely do.
func controls(l *Line) bool {
	return slices.ContainsFunc(l.Frames, func(f Frame) bool { return strings.IndexByte(f.Module, esc) >= 0 })
}

// inWindow reports whether w is empty, or one of its windows is open. It keeps the open windows of
// w open. It is called only after a match, because it may read earlier lines: the header may
// precede the first line with an anchor.
func (r *Reader) inWindow(w window) bool {
	if w == 0 {
		return true
	}
	if w&r.opened() == 0 {
		if !r.pastOpens(w) {
			return false
		}
		r.readPast()
	}
	if w&r.opened() == 0 {
		return false
	}
	r.open(w&r.opened(), r.number)
	return true
}

// Facts returns the log's facts about the process. Later lines change them.
func (r *Reader) Facts() *Facts { return &r.facts.Facts }

// Quota returns the log's Quota. The Reader adds the bytes of each line that has a frame, or for
// which [Reader.Wants] returns true. Reset does not change the Quota.
func (r *Reader) Quota() *Quota { return &r.quota }

// frame adds an empty frame to l.
func (l *Line) frame() *Frame {
	l.Frames = append(l.Frames, Frame{Number: -1})
	return &l.Frames[len(l.Frames)-1]
}

// edit adds an edit to f, the last frame of l. A frame's edits must be added in line order.
func (l *Line) edit(f *Frame, e Edit) {
	n := len(f.Edits) + 1
	l.edits = append(l.edits, e)
	f.Edits = l.edits[len(l.edits)-n:]
}

// after adds edits that insert the answer at the given offset: " f file:line".
func (l *Line) after(f *Frame, at int) {
	l.edit(f, Edit{Span{at, at}, " ", Name, ""})
	l.edit(f, Edit{Span{at, at}, " ", AtLine, ""})
}

// recordOrFrames finds the frames of l, a line of a log or a record of rsyslog with several lines.
func (r *Reader) recordOrFrames(l *Line, mark int) bool {
	return bytes.Contains(l.Text, rsyslogEnd) && r.record(l) || r.frames(l, mark)
}
