package filter

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

// A Look sets how frames are shown to people. The zero value is the form for programs. Width and Fold
// have no effect on other forms of output than text, and with Options.Emit.
type Look struct {
	// Own tells the program's own frames from those of its system, for Fold and [Resolved.Own]. If
	// it is nil, every frame is own.
	Own *findings.Own

	// ShortNames shows … in place of the arguments of templates in the names of functions.
	ShortNames bool

	// Width is the number of columns of the terminal. What does not fit into a line is continued on
	// another one, before a function, before its file and line, or before its module. 0: no line is
	// broken.
	Width int

	// Fold replaces runs of two or more frames of the system by one line that counts them, in
	// backtraces that have an own frame. Only frames that are alone on their lines are folded. The
	// frames of a run are held back until its end, or until Flush.
	Fold bool

	// AtOnce holds no frame back when Write returns: runs end with it.
	AtOnce bool
}

// look is the state of a layout with a Look.
type look struct {
	Look
	fold fold

	// Of the current line of output:
	start   int          // its offset in the text
	frame   int          // offset of the frame in it; negative: none
	indent  int          // columns by which the further lines of the frame are indented
	breaks  []breakPoint // in order
	kept    bool         // the line is not broken
	folded  foldable     // set if the line is that of a frame
	parts   []linePart   // the lines of output before it, of the current line of the log
	scratch []byte
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
	foldable
}

// newLook returns the look for a Filter with options o, or nil if its output is for programs.
func newLook(o *Options) *look {
	if o.Output != Text || o.Printer != nil || o.Emit != nil || o.Look.Width <= 0 && !o.Look.Fold {
		return nil
	}
	return &look{Look: o.Look, frame: -1, indent: textIndent}
}

// frameBegins marks the beginning of a frame in the current line of output. It is continued the
// given number of columns after it.
func (k *look) frameBegins(at, indent int) {
	if k != nil {
		k.frame, k.indent = at, indent
	}
}

// breakable marks an offset at which the current line of output may be broken. A blank after the
// offset is left out if the line is broken.
func (k *look) breakable(at int) {
	if k != nil {
		k.addBreak(at, anyPart)
	}
}

// addBreak is not inlined, so that the methods that call it are: without a look they cost nothing.
//
//go:noinline
func (k *look) addBreak(at int, kind breakKind) {
	k.breaks = append(k.breaks, breakPoint{at, kind})
}

// breakableName marks the commas of a part of a function's name, which was laid out at the offset at.
func (k *look) breakableName(at int, name string) {
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

// textBegins marks the place at which an answer has ended and text of the log begins.
func (k *look) textBegins(at int) {
	if k != nil {
		k.addBreak(at, logText)
	}
}

// frameEnds marks the current line of output as that of a frame, which may be folded.
func frameEnds(l *layout, fr foldable) {
	k := l.look
	if k == nil || !k.Fold {
		return
	}
	if k.frame < 0 || l.color == ColorKeep && bytes.IndexByte(l.buf[k.start:], esc) >= 0 {
		fr.whole = false // colours of the log would be lost with the line
	}
	fr.kind = frameLine
	if k.frame >= 0 {
		fr.prefix = k.frame - k.start
	}
	k.folded = fr
}

// attach marks the current line of output as one that belongs to the frame on the line before.
func (k *look) attach() {
	if k != nil {
		k.folded = foldable{kind: attachedLine}
	}
}

// endLine ends a line of output at the end of buf: it breaks the line if it is too long.
func (k *look) endLine(buf []byte) []byte {
	if k.Width > 0 && len(k.breaks) > 0 && !k.kept {
		buf = k.breakLine(buf)
	}
	k.breaks, k.frame, k.indent = k.breaks[:0], -1, textIndent
	return buf
}

// textIndent is the number of columns by which a line without a frame at its beginning is continued.
const textIndent = 4

// beginLine begins the next line of output for the same line of the log at the offset at, after the
// line end.
func (k *look) beginLine(at int) {
	if k.Fold {
		k.parts = append(k.parts, linePart{at, k.folded})
	}
	k.folded, k.start, k.kept = foldable{}, at, false
}

// keep leaves the current line of output unbroken: its parts move.
func (k *look) keep() {
	if k != nil {
		k.kept = true
	}
}

// forget forgets the current line.
func (k *look) forget() {
	k.start, k.frame, k.kept, k.breaks, k.parts, k.folded = 0, -1, false, k.breaks[:0], k.parts[:0], foldable{}
}
