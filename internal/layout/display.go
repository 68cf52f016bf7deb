package layout

import (
	"bytes"
	"strings"
)

var newline = []byte{'\n'}

// A Display breaks and folds the lines of output for people: the parts of the current line are
// marked while it is laid out. The methods that mark do nothing for a nil Display, that of an
// output for programs.
type Display struct {
	Style
	fold fold

	// Of the current line of output:
	start   int          // its offset in the text
	frame   int          // offset of the frame in it; negative: none
	indent  int          // columns by which the further lines of the frame are indented
	breaks  []breakPoint // in order
	kept    bool         // the line is not broken
	folded  FoldFrame    // set if the line is that of a frame
	parts   []linePart   // the lines of output before it, of the current line of the log
	scratch []byte
}

// A Style is how a Display shows lines.
type Style struct {
	// Width is the number of columns of the terminal. What does not fit into a line is continued on
	// another one, at one of the marks. 0: no line is broken.
	Width int

	// Fold replaces runs of two or more frames of the system by one line that counts them, in
	// backtraces that have an own frame.
	Fold bool

	Colors     bool // answers have colours
	KeepsColor bool // the colours of the log are printed as they are: they may last longer than a line
}

// NewDisplay returns a Display with a Style, or nil if it neither breaks nor folds lines.
func NewDisplay(s Style) *Display {
	if s.Width <= 0 && !s.Fold {
		return nil
	}
	return &Display{Style: s, frame: -1, indent: textIndent}
}

// A breakPoint is an offset at which a line of output may be continued on another one.
type breakPoint struct {
	at   int
	kind breakKind
}

// A breakKind is what begins at a breakPoint.
type breakKind uint8

const (
	anyPart   breakKind = iota // a function, its file and line, a module
	logText                    // text of the log: the line is not broken here
	namePart                   // the arguments of a function: broken here only if the function is wider than a line
	commaPart                  // the text after a comma in a name: if the arguments, or the name before them, are
)

// A linePart is one of the lines of output for a line of the log.
type linePart struct {
	end int // offset of its end in the text, its line end included
	FoldFrame
}

// FrameBegins marks the beginning of a frame in the current line of output. It is continued the
// given number of columns after it.
func (k *Display) FrameBegins(at, indent int) {
	if k != nil {
		k.frame, k.indent = at, indent
	}
}

// Breakable marks an offset at which the current line of output may be broken. A blank after the
// offset is left out if the line is broken.
func (k *Display) Breakable(at int) {
	if k != nil {
		k.addBreak(at, anyPart)
	}
}

// addBreak is not inlined, so that the methods that call it are: a nil Display costs nothing.
//
//go:noinline
func (k *Display) addBreak(at int, kind breakKind) {
	k.breaks = append(k.breaks, breakPoint{at, kind})
}

// BreakableName marks the commas of a part of a function's name, which was laid out at the offset
// at.
func (k *Display) BreakableName(at int, name string) {
	if k == nil {
		return
	}
	for from := 0; ; {
		i := strings.Index(name[from:], ", ")
		if i < 0 {
			return
		}
		from += i + 1
		k.breaks = append(k.breaks, breakPoint{at + from, commaPart})
	}
}

// BreakableArguments marks the beginning of the arguments of a function.
func (k *Display) BreakableArguments(at int) {
	if k != nil {
		k.addBreak(at, namePart)
	}
}

// TextBegins marks the place at which an answer has ended and text of the log begins.
func (k *Display) TextBegins(at int) {
	if k != nil {
		k.addBreak(at, logText)
	}
}

// FrameEnds marks the current line of output, at the end of buf, as that of a frame, which may be
// folded.
func (k *Display) FrameEnds(buf []byte, fr FoldFrame) {
	if k == nil || !k.Fold {
		return
	}
	if k.frame < 0 || k.KeepsColor && bytes.IndexByte(buf[k.start:], esc) >= 0 {
		fr.Whole = false // colours of the log would be lost with the line
	}
	fr.kind = frameLine
	if k.frame >= 0 {
		fr.prefix = k.frame - k.start
	}
	k.folded = fr
}

// Attach marks the current line of output as one that belongs to the frame on the line before.
func (k *Display) Attach() {
	if k != nil {
		k.folded = FoldFrame{kind: attachedLine}
	}
}

// Keep leaves the current line of output unbroken: its parts move.
func (k *Display) Keep() {
	if k != nil {
		k.kept = true
	}
}

// SourceColumns returns the number of columns of a source line that fit after the text before it,
// which ends buf.
func (k *Display) SourceColumns(buf []byte) int {
	if k == nil || k.Width <= 0 {
		return maxSourceColumns
	}
	before, _ := columns(buf[k.start:], 0)
	return min(max(k.Width-before-sourceMargin, leastSource), maxSourceColumns)
}

const leastSource = 20 // columns of a source line that are shown, however narrow a terminal is

// EndLine ends a line of output at the end of buf: it breaks the line if it is too long.
func (k *Display) EndLine(buf []byte) []byte {
	if k.Width > 0 && len(k.breaks) > 0 && !k.kept {
		buf = k.breakLine(buf)
	}
	k.breaks, k.frame, k.indent = k.breaks[:0], -1, textIndent
	return buf
}

// textIndent is the number of columns by which a line without a frame at its beginning is
// continued.
const textIndent = 4

// BeginLine begins the next line of output for the same line of the log at the offset at, after the
// line end.
func (k *Display) BeginLine(at int) {
	if k.Fold {
		k.parts = append(k.parts, linePart{at, k.folded})
	}
	k.folded, k.start, k.kept = FoldFrame{}, at, false
}

// Forget forgets the current line.
func (k *Display) Forget() {
	k.start, k.frame, k.kept, k.breaks, k.parts, k.folded = 0, -1, false, k.breaks[:0], k.parts[:0], FoldFrame{}
}
