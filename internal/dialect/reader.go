package dialect

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

const (
	maxLine    = 64 << 10 // bytes of a line that are read: MongoDB prints a whole trace on one line
	maxAnchors = 32       // anchors of a line that are tried; a frame has at most four
	maxPath    = 4096     // bytes of a module's name: Linux's PATH_MAX
)

// A grammar recognizes the frames of a dialect.
type grammar struct {
	dialect *Dialect
	anchor  anchor

	// direct are the bytes that may be directly before the anchor; back are the bytes that may be
	// before the blanks before it. '\n' stands for the beginning of the line, '0' for all digits.
	// If one is empty, any byte may be there. match may rely on them.
	direct, back string

	// Three further sets of bytes reject nearly all anchors that match would reject, before it is
	// called. before: the byte before the byte of back. next: the byte after the hexadecimal digits
	// of the anchor, or after the anchor if digitsAfter has 0 for it. then: the byte after that one
	// and blanks. '\n' also stands for the end of the line.
	before, next, then string
	shape              shape

	// words, if not empty, are the bytes of before and back that may be together, for [Reader.Sift].
	words []string

	// window is set for a weak grammar, which may match only while this window is open. Each frame
	// keeps it open.
	window window

	// match looks for a frame around the anchor at at, and adds it to l. If it returns false, the
	// frames that it has added are removed.
	match func(r *Reader, l *Line, at int) bool
}

// A Line holds the frames, and a map, in a line of a log. Its memory is reused for the next line.
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
	// Past, if not nil, returns the last n lines before the current one, each with its end. It may
	// return more or fewer lines.
	Past func(n int64) []byte

	// RawPast is Past for lines that may still have their envelopes, such as strings of JSON. If it
	// is nil, Past is used.
	RawPast func(n int64) []byte

	// Firmware is set if the operator has named a file for the addresses of a log that name no module.
	// Then registers and lists of addresses are read, for which [NextFirmware] finds the lines.
	Firmware bool

	// OnX86 is set if all these files are of kernels of Linux for x86-64: of firmware, their logs have no more
	// than the registers RIP and EIP, as a virtual machine or a debugger prints them. [NextCounter] finds
	// the lines.
	OnX86 bool

	*tables          // nil until the first line is read, which in most logs never happens
	only    []string // names of the dialects; nil for all

	line   Line
	bare   bare  // the line, if it has colours
	number int64 // number of the current line
	readTo int64 // number of the last line that was read
	pastAt int64 // the line before which the past was read last

	// sought holds, for each window, the line before which the past was last searched for its
	// headers.
	sought [maxWindows]int64

	until      [maxWindows]int64 // number of the line up to which each window is open
	latest     int64             // the largest of until
	holdsUntil int64             // frames up to this line wait for maps

	headerAt   int64  // the line of the header whose fact is taken
	firstFrame int64  // the line after the last header of native frames
	signalPC   uint64 // address of the last signal in C code of a Go program

	mapAt    int64  // the last line with a map
	mapStart uint64 // address of that map

	facts   Facts
	factsAt int64 // the last line with a fact
	quota   Quota

	crashes []*Crash // the last crashes
	inPast  bool     // set while lines before the current one are searched for headers

	kernel   *Kernel     // the kernel of the last frames of a kernel; nil if not known
	kernelAt int64       // the line that named kernel, or its first frame
	loaded   *KernelLoad // of the last kernel that has started, or logs; nil if no frame needs it
	loadedAt int64       // the last line with a frame or a distance of loaded
	awaits   *Code       // of the last frame that awaits code; nil if none does
	awaitsAt int64       // line of that frame
	fault    string      // the last function of a kernel that was named as the place of an instruction
	faultAt  int64       // line of fault
	entryAt  int64       // the last line with a function of a kernel that saves the registers of stopped code; 0: none

	diedAt int64 // line of the last process that the kernel has killed; 0: none

	fault32   uint64 // the program counter of the last dump of registers
	fault32At int64  // its line

	kernelTexts *[1 << kernelTextBits]kernelText // nil until the first frame of a kernel
	kernelSeed  maphash.Seed
	kernelName  string     // the release and
	kernelID    buildid.ID // the build ID of the kernel that the texts are of

	exactAfter  int64 // line after which the next frame of glibc is the place of a fault; 0: none
	dumpAt      int64 // last line at which a program began to print its registers
	signalAt    int64 // line at which ClickHouse has reported a signal; 0: none, or its frames were read
	frameAt     int64 // the last line with a frame
	gdbSignal   int   // number of the last frame that gdb printed as that of a signal handler
	gdbSignalAt int64 // line of that frame

	idDigits []byte // digits of id, the last build ID
	id       buildid.ID
	module   string // the last name of a module
	tails    tails
}

// NewReader returns a Reader for the named dialects; nil means all.
func NewReader(only []string) *Reader {
	r := &Reader{only: only}
	r.Reset()
	return r
}

// Reset forgets all lines that were read. The next line may have any number.
func (r *Reader) Reset() {
	r.number, r.readTo, r.pastAt, r.latest, r.holdsUntil = -1, -1, -1, -1, -1
	for i := range r.until {
		r.until[i], r.sought[i] = -1, -1
	}
	r.exactAfter, r.dumpAt, r.signalAt = 0, 0, 0
	r.fault32, r.fault32At, r.diedAt = 0, 0, 0
	r.frameAt, r.gdbSignal, r.signalPC = -1, -1, 0
	r.facts.Reset()
	r.crashes, r.kernel, r.fault, r.entryAt, r.awaits, r.loaded = nil, nil, "", 0, nil, nil
	r.mapAt, r.mapStart, r.firstFrame = -1, 0, -1
}

// Line reads text, the line with this number, without its end. It returns nil if the line has
// neither a frame nor a map. The Line is valid until the next call. Lines without an anchor may be
// left out unless [Reader.Wants] returns true for them, or [NextFirmware] finds a number in them.
func (r *Reader) Line(text []byte, number int64) *Line { return r.LineAt(text, number, -1) }

// LineAt is Line for a line whose first mark at which [Reader.MayMatch] reports true is at mark;
// -1: it is not known. A mark is the byte before "0x", the first byte of "pc ", "PC=" or another
// anchor, or "0x" itself at the beginning of the line. It is not used if [Reader.Wants] asks for the
// line.
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
	found := r.frames(l, mark)
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
			r.programFacts(l.Text)
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

// needsContext reports whether the lines around l may help to resolve a frame of it.
func needsContext(l *Line) bool {
	for i := range l.Frames {
		f := &l.Frames[i]
		if f.Kernel != nil && f.Kernel.Release != "" && f.Kind != InKernel {
			continue // nothing else is needed
		}
		if !f.Named && !f.Optional && f.Unread == nil && (f.ID.IsZero() || f.Kind == Runtime) {
			return true
		}
	}
	return false
}

// frames finds the frames of l at the first of its anchors that has one. mark is as in LineAt.
func (r *Reader) frames(l *Line, mark int) bool {
	text := l.Text
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

// matchAt tries the grammars of set at the anchor at at.
func (r *Reader) matchAt(l *Line, a anchor, at int, set uint64) bool {
	for ; set != 0; set &= set - 1 {
		if r.matches(&r.of[a].grammars[bits.TrailingZeros64(set)], l, at) {
			return true
		}
	}
	return false
}

// matches tries g at at.
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

// controls reports whether the line has an ESC in the name of a module, which no file has.
func controls(l *Line) bool {
	return slices.ContainsFunc(l.Frames, func(f Frame) bool { return strings.IndexByte(f.Module, esc) >= 0 })
}

// inWindow reports whether one of the windows w is open, or w is empty, and keeps them open. It is
// called after a match, because it reads the lines before: the header may be before the first line
// with an anchor.
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

// lastLines returns the last n lines before the current one, without colours.
func (r *Reader) lastLines(n int64) []byte { return WithoutColors(r.Past(n)) }

// Facts returns the facts of the log about the process. They change with later lines.
func (r *Reader) Facts() *Facts { return &r.facts }

// Quota returns the Quota of the log, to which each line adds that has a frame or for which
// [Reader.Wants] returns true. Reset does not change it.
func (r *Reader) Quota() *Quota { return &r.quota }

// frame adds an empty frame to l.
func (l *Line) frame() *Frame {
	l.Frames = append(l.Frames, Frame{Number: -1})
	return &l.Frames[len(l.Frames)-1]
}

// edit adds an edit to f, the last frame of l. The edits of a frame must be added in the order of
// their places.
func (l *Line) edit(f *Frame, e Edit) {
	n := len(f.Edits) + 1
	l.edits = append(l.edits, e)
	f.Edits = l.edits[len(l.edits)-n:]
}

// after adds edits that append the answer at at: " f file:line".
func (l *Line) after(f *Frame, at int) {
	l.edit(f, Edit{Span{at, at}, " ", Name, ""})
	l.edit(f, Edit{Span{at, at}, " ", AtLine, ""})
}

// name returns the name of a module as a string. It keeps the last one, because frames of one
// module often follow each other.
func (r *Reader) name(b []byte) string {
	if string(b) != r.module {
		r.module = string(b)
	}
	return r.module
}
