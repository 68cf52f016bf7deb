package layout

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/sgr"
)

// Limits of folding. MaxFoldFrames and MaxFoldBytes bound the frames held back before the first own
// frame of a backtrace, a frame of the program's own code. Further frames are printed at once. A
// crash has fewer than 30 system frames before its first own frame.
const (
	MaxFoldFrames  = 256
	MaxFoldBytes   = 64 << 10
	maxFoldModules = 3  // module names in the line for a run; further modules are "others"
	maxFoldName    = 40 // characters of a function's name in that line; … replaces the rest
)

// A lineKind is the role of a line of output in a run of frames.
type lineKind uint8

const (
	otherLine    lineKind = iota // ends the backtrace
	frameLine                    // a frame
	attachedLine                 // part of the frame on the preceding line
)

// A FoldFrame describes a line of output that may show a frame. Its strings are printable.
type FoldFrame struct {
	System   bool   // the frame belongs to a system library or runtime
	Whole    bool   // no text of the log follows the frame in its line
	Numbered bool   // Number is set
	Number   uint64 // number of the frame in the log
	Indent   int    // blanks before the frame's number
	Module   string // file name without folders; empty if unknown
	Function string // as displayed; empty if the frame has none

	kind   lineKind
	prefix int // bytes of the line before the frame
}

// A fold holds back a run of system frames until the run ends.
type fold struct {
	inTrace bool // a backtrace has begun
	own     bool // the backtrace has a frame of the program's own code
	// too many system frames came before the first own frame, so they are printed at once
	passing bool
	line    int64     // line number of the last frame in the log
	last    FoldFrame // the last frame
	prefix  []byte    // the text before each frame of the backtrace

	n       int    // frames in the run that are held back
	text    []byte // their lines; if own is set, only the first frame's
	eol     []byte // line end of the run
	modules []string
	more    bool // the run has further modules
	// names, without arguments, of the run's first and last function; empty without functions
	function [2]string
}

// Held returns the number of bytes held back.
func (l *Display) Held() int {
	if l == nil {
		return 0
	}
	return len(l.fold.text)
}

// Print appends the lines of output in buf for a line of the log, except for lines that it holds
// back. eol is the end of the last line, which buf lacks. line is the line's number in the log.
// continues is set if another part of the line of the log follows.
func (l *Display) Print(dst, buf, eol []byte, line int64, continues bool) []byte {
	if !l.Fold {
		l.Forget()
		return append(append(dst, buf...), eol...)
	}
	at := 0
	for i := range l.parts {
		part := &l.parts[i]
		dst = l.printPart(dst, buf[at:part.end], nil, line, &part.FoldFrame)
		at = part.end
	}
	last := l.folded
	if continues || len(eol) == 0 {
		last = FoldFrame{}
	}
	dst = l.printPart(dst, buf[at:], eol, line, &last)
	l.Forget()
	return dst
}

// printPart appends a line of output, or holds it back. The line end is in text or in eol.
func (l *Display) printPart(dst, text, eol []byte, line int64, fr *FoldFrame) []byte {
	k := &l.fold
	switch {
	case fr.kind == attachedLine && k.n > 0:
		if !k.own || k.n == 1 {
			k.text = append(append(k.text, text...), eol...)
		}
		return dst
	case fr.kind == otherLine && len(text)+len(eol) > 0:
		dst = l.EndTrace(dst)
	case fr.kind == frameLine:
		again := fr.Numbered && k.last.Numbered && fr.Number <= k.last.Number && k.line != line
		if !k.inTrace || again || !bytes.Equal(k.prefix, text[:fr.prefix]) {
			dst = l.EndTrace(dst)
			k.inTrace, k.prefix = true, append(k.prefix[:0], text[:fr.prefix]...)
		}
		k.line, k.last = line, *fr
		if fr.System && fr.Whole && !k.passing && len(text) < MaxFoldBytes {
			k.hold(text, eol, fr)
			if !k.own && (k.n >= MaxFoldFrames || len(k.text) >= MaxFoldBytes) {
				dst = l.release(dst, false)
				k.passing = true
			}
			return dst
		}
		dst = l.release(dst, k.own || !fr.System)
		if !fr.System {
			k.own, k.passing = true, false
		}
	}
	return append(append(dst, text...), eol...)
}

func (k *fold) hold(text, eol []byte, fr *FoldFrame) {
	if k.n == 0 || !k.own {
		k.text = append(append(k.text, text...), eol...)
	}
	if k.n++; k.n == 1 {
		k.eol = append(k.eol[:0], eol...)
		if len(eol) == 0 {
			k.eol = append(k.eol, newline...)
		}
	}
	if fr.Module != "" && !slices.Contains(k.modules, fr.Module) {
		if len(k.modules) < maxFoldModules {
			k.modules = append(k.modules, strings.Clone(fr.Module))
		} else {
			k.more = true
		}
	}
	if fr.Function != "" {
		name := strings.Clone(briefName(fr.Function))
		if k.function[0] == "" {
			k.function[0] = name
		}
		k.function[1] = name
	}
}

// EndTrace ends the current backtrace, and appends the frames held back. It folds them if the
// backtrace has a frame of the program's own code.
func (l *Display) EndTrace(dst []byte) []byte {
	if l == nil || !l.fold.inTrace {
		return dst
	}
	return l.endTrace(dst)
}

func (l *Display) endTrace(dst []byte) []byte {
	dst = l.Release(dst)
	k := &l.fold
	k.inTrace, k.own, k.passing, k.last = false, false, false, FoldFrame{}
	return dst
}

// Release appends the frames held back, folded if the backtrace has a frame of the program's own
// code. The backtrace continues.
func (l *Display) Release(dst []byte) []byte { return l.release(dst, l.fold.own) }

// release appends the frames held back. If folded is set, two or more frames become one line.
func (l *Display) release(dst []byte, folded bool) []byte {
	k := &l.fold
	switch {
	case k.n == 0:
		return dst
	case k.n == 1 || !folded:
		dst = append(dst, k.text...)
	default:
		dst = append(append(dst, k.prefix...), spaces[:k.last.Indent]...)
		dst = append(l.appendFolded(dst), k.eol...)
	}
	k.n, k.text, k.modules, k.more, k.function = 0, k.text[:0], k.modules[:0], false, [2]string{}
	if cap(k.text) > 2*MaxFoldBytes {
		k.text = nil
	}
	return dst
}

// appendFolded appends the text for a run, such as: 3 frames of libc.so.6, libstdc++.so.6:
// raise … std::terminate.
func (l *Display) appendFolded(dst []byte) []byte {
	k := &l.fold
	look := sgr.State{Attrs: sgr.Faint}
	if l.Colors {
		dst = sgr.AppendTransition(append(dst, "\x1b[0m"...), sgr.State{}, look)
	}
	start := len(dst)
	dst = strconv.AppendInt(dst, int64(k.n), 10)
	dst = append(dst, " frames"...)
	if len(k.modules) > 0 {
		dst = append(append(dst, " of "...), strings.Join(k.modules, ", ")...)
		if k.more {
			dst = append(dst, " and others"...)
		}
	}
	dst = k.appendNames(dst, start, l.Width)
	if l.Colors {
		dst = sgr.AppendTransition(dst, look, sgr.State{})
	}
	return dst
}

// appendNames appends the names of the run's first and last function to its line, which begins at
// dst[start]. If the two do not fit into width columns, it appends only the first, or none. A width
// of 0 means no limit.
func (k *fold) appendNames(dst []byte, start, width int) []byte {
	first, last := k.function[0], k.function[1]
	forms := []string{first + " … " + last, first + " …"}
	switch {
	case last == "":
		return dst
	case first == last:
		forms = []string{first}
	case k.n == 2:
		forms[0] = first + ", " + last
	}
	before, _ := columns(k.prefix, 0)
	before += k.last.Indent
	for _, form := range forms {
		end := len(dst)
		dst = append(append(dst, ": "...), form...)
		if n, _ := columns(dst[start:], before); width <= 0 || n <= width {
			return dst
		}
		dst = dst[:end]
	}
	return dst
}
