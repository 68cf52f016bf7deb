package layout

import (
	"bytes"
	"strings"
)

var newline = []byte{'\n'}

// A Display breaks lines of output at the terminal's width, and folds runs of system frames. Its
// callers mark the parts of the current line. If the output is for programs, the Display is nil,
// and its marking methods do nothing.
type Display struct {
	Style
	fold fold

	// The current line of output:
	start   int          // offset in the buffer of the text
	frame   int          // offset of its frame in the buffer; negative without one
	indent  int          // columns between the frame and its continuation lines
	breaks  []breakPoint // in ascending order
	kept    bool         // do not break the line
	folded  FoldFrame    // zero if the line shows no frame
	parts   []linePart   // earlier lines of output for the same line of the log
	scratch []byte
}

// A Style holds the settings of a Display.
type Style struct {
	// Width is the terminal's width in columns; 0 if lines are not broken. Wider lines are broken
	// at marks.
	Width int

	// Fold replaces each run of two or more frames of system libraries with a line that counts
	// them. It applies only to backtraces that also have a frame of the program's own code.
	Fold bool

	Colors     bool // names and other results are coloured
	KeepsColor bool // colours of the log are printed unchanged, and may last longer than a line
}

// NewDisplay returns a Display, or nil if the Style neither breaks nor folds lines.
func NewDisplay(s Style) *Display {
	if s.Width <= 0 && !s.Fold {
		return nil
	}
	return &Display{Style: s, frame: -1, indent: textIndent}
}

// A breakPoint is an offset at which a line of output may be broken.
type breakPoint struct {
	at   int
	kind breakKind
}

// A breakKind classifies the text after a breakPoint, and so determines when the line is broken
// there.
type breakKind uint8

const (
	anyPart breakKind = iota // a function, its file and line, a module
	logText                  // text of the log: never broken here
	// arguments of a function: broken here only if the function is wider than a line
	namePart
	// text after a comma in a name: broken here if the arguments, or the name before them, are
	// wider than a line
	commaPart
)

// A linePart is one of the lines of output that show one line of the log.
type linePart struct {
	end int // offset after its line end, in the buffer of the text
	FoldFrame
}

// FrameBegins marks the start of a frame in the current line of output. Continuation lines of the
// frame are indented by indent columns from the frame's start.
func (k *Display) FrameBegins(at, indent int) {
	if k != nil {
		k.frame, k.indent = at, indent
	}
}

// Breakable marks an offset at which the current line of output may be broken. A break removes a
// blank after the offset.
func (k *Display) Breakable(at int) {
	if k != nil {
		k.addBreak(at, anyPart)
	}
}

// addBreak is not inlined, so that its callers can be inlined and cost nothing for a nil Display.
//
//go:noinline
func (k *Display) addBreak(at int, kind breakKind) {
	k.breaks = append(k.breaks, breakPoint{at, kind})
}

// BreakableName marks the offset after each comma of name, a part of a function's name at the given
// offset.
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

// BreakableArguments marks the start of a function's arguments.
func (k *Display) BreakableArguments(at int) {
	if k != nil {
		k.addBreak(at, namePart)
	}
}

// TextBegins marks the offset where text of the log follows resolved text.
func (k *Display) TextBegins(at int) {
	if k != nil {
		k.addBreak(at, logText)
	}
}

// FrameEnds marks the current line of output, at the end of buf, as a frame that may be folded.
func (k *Display) FrameEnds(buf []byte, fr FoldFrame) {
	if k == nil || !k.Fold {
		return
	}
	if k.frame < 0 || k.KeepsColor && bytes.IndexByte(buf[k.start:], esc) >= 0 {
		fr.Whole = false // its prefix is unknown, or colours of the log would be lost
	}
	fr.kind = frameLine
	if k.frame >= 0 {
		fr.prefix = k.frame - k.start
	}
	k.folded = fr
}

// Attach marks the current line of output as part of the frame on the preceding line.
func (k *Display) Attach() {
	if k != nil {
		k.folded = FoldFrame{kind: attachedLine}
	}
}

// Keep prevents breaks in the current line of output. Lines with brackets for modules need it:
// their layout moves text, which invalidates marked offsets.
func (k *Display) Keep() {
	if k != nil {
		k.kept = true
	}
}

// SourceColumns returns the number of columns for a source line that follows the text at the end of
// buf.
func (k *Display) SourceColumns(buf []byte) int {
	if k == nil || k.Width <= 0 {
		return maxSourceColumns
	}
	before, _ := columns(buf[k.start:], 0)
	return min(max(k.Width-before-sourceMargin, leastSource), maxSourceColumns)
}

const leastSource = 20 // minimum columns of a source line, even on a narrow terminal

// EndLine ends the current line of output, at the end of buf, and breaks it if it is too wide. Keep
// prevents the break.
func (k *Display) EndLine(buf []byte) []byte {
	if k.Width > 0 && len(k.breaks) > 0 && !k.kept {
		buf = k.breakLine(buf)
	}
	k.breaks, k.frame, k.indent = k.breaks[:0], -1, textIndent
	return buf
}

// textIndent is the indentation of continuation lines if the line has no frame, in columns.
const textIndent = 4

// BeginLine begins another line of output for the same line of the log. The new line begins at the
// given offset of the output.
func (k *Display) BeginLine(at int) {
	if k.Fold {
		k.parts = append(k.parts, linePart{at, k.folded})
	}
	k.folded, k.start, k.kept = FoldFrame{}, at, false
}

// Forget drops the marks of all lines of output for the current line of the log.
func (k *Display) Forget() {
	k.start, k.frame, k.kept, k.breaks, k.parts, k.folded = 0, -1, false, k.breaks[:0], k.parts[:0], FoldFrame{}
}
