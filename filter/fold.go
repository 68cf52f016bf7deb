package filter

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/sgr"
)

// Limits of the frames of a backtrace that are held back before its first own frame. Others are
// printed as they come. A backtrace of a crash has less than 30 there.
const (
	maxFoldFrames  = 256
	maxFoldBytes   = 64 << 10
	maxFoldModules = 3  // names of modules in the line for a run; further ones are "others"
	maxFoldName    = 40 // characters of a function in it, without … for the rest
)

// A lineKind is what a line of output is to a run of frames.
type lineKind uint8

const (
	otherLine    lineKind = iota // ends the backtrace
	frameLine                    // a frame
	attachedLine                 // belongs to the frame on the line before
)

// A foldable is a line of output that may be a frame. Its strings are printable.
type foldable struct {
	kind     lineKind
	system   bool   // the frame is one of the system
	whole    bool   // nothing follows the frame in its line
	numbered bool   // number is set
	number   uint64 // in the log
	prefix   int    // bytes of the line before the frame
	indent   int    // blanks with which the frame begins
	module   string // without folders
	function string // as shown; empty if it has none
}

// A fold holds back the frames of a run of the system until its end.
type fold struct {
	inTrace bool     // a backtrace has begun
	own     bool     // it has had an own frame
	passing bool     // too many frames of the system were before the first own frame: they are printed as they come
	line    int64    // number of the last frame's line in the log
	last    foldable // the last frame
	prefix  []byte   // the text before each frame of the backtrace

	n        int    // frames of the run that are held back
	text     []byte // their lines; if own is set, that of the first frame
	eol      []byte // of the run
	modules  []string
	more     bool      // there are further modules
	function [2]string // of the first frame with a function and of the last one, without arguments
}

// holds reports whether frames are held back.
func (p *printing) folds() bool { return p.look != nil && p.look.fold.n > 0 }

// printLooking is print if there is a look.
func (p *printing) printLooking(eol []byte, continues bool) {
	k := p.look
	at := 0
	if !k.Fold {
		p.ready = append(append(p.ready, p.buf...), eol...)
		p.buf = p.buf[:0]
		k.forget()
		return
	}
	for _, part := range k.parts {
		p.printPartFolding(p.buf[at:part.end], nil, &part.foldable)
		at = part.end
	}
	last := k.folded
	if continues || len(eol) == 0 {
		last = foldable{}
	}
	p.printPartFolding(p.buf[at:], eol, &last)
	p.buf = p.buf[:0]
	k.forget()
}

// printPartFolding prints a line of output, or holds it back. text includes the line end unless eol
// is its line end.
func (p *printing) printPartFolding(text, eol []byte, fr *foldable) {
	k := &p.look.fold
	switch {
	case fr.kind == attachedLine && k.n > 0:
		if !k.own || k.n == 1 {
			k.text = append(append(k.text, text...), eol...)
		}
		return
	case fr.kind == otherLine && len(text)+len(eol) > 0:
		p.endFold()
	case fr.kind == frameLine:
		again := fr.numbered && k.last.numbered && fr.number <= k.last.number && k.line != p.of
		if !k.inTrace || again || !bytes.Equal(k.prefix, text[:fr.prefix]) {
			p.endFold()
			k.inTrace, k.prefix = true, append(k.prefix[:0], text[:fr.prefix]...)
		}
		k.line, k.last = p.of, *fr
		if fr.system && fr.whole && !k.passing && len(text) < maxFoldBytes {
			k.hold(text, eol, fr)
			if !k.own && (k.n >= maxFoldFrames || len(k.text) >= maxFoldBytes) {
				p.releaseFold(false)
				k.passing = true
			}
			return
		}
		p.releaseFold(k.own || !fr.system)
		if !fr.system {
			k.own, k.passing = true, false
		}
	}
	p.ready = append(append(p.ready, text...), eol...)
}

// hold adds a frame to the run.
func (k *fold) hold(text, eol []byte, fr *foldable) {
	if k.n == 0 || !k.own {
		k.text = append(append(k.text, text...), eol...)
	}
	if k.n++; k.n == 1 {
		k.eol = append(k.eol[:0], eol...)
		if len(eol) == 0 {
			k.eol = append(k.eol, newline...)
		}
	}
	if fr.module != "" && !k.names(fr.module) {
		if len(k.modules) < maxFoldModules {
			k.modules = append(k.modules, strings.Clone(fr.module))
		} else {
			k.more = true
		}
	}
	if fr.function != "" {
		name := strings.Clone(briefName(fr.function))
		if k.function[0] == "" {
			k.function[0] = name
		}
		k.function[1] = name
	}
}

// names reports whether the modules of the run have the name.
func (k *fold) names(module string) bool {
	for _, m := range k.modules {
		if m == module {
			return true
		}
	}
	return false
}

// endFold ends the current backtrace, and prints its frames that are held back. They are folded if
// the backtrace has an own frame.
func (p *printing) endFold() {
	if p.look != nil && p.look.fold.inTrace {
		p.endTrace(&p.look.fold)
	}
}

func (p *printing) endTrace(k *fold) {
	p.releaseFold(k.own)
	k.inTrace, k.own, k.passing, k.last = false, false, false, foldable{}
}

// releaseFold prints the frames that are held back: as one line if folded is set and there are two
// or more.
func (p *printing) releaseFold(folded bool) {
	k := &p.look.fold
	switch {
	case k.n == 0:
		return
	case k.n == 1 || !folded:
		p.ready = append(p.ready, k.text...)
	default:
		p.ready = append(append(p.ready, k.prefix...), spaces[:k.last.indent]...)
		p.ready = append(p.layout.appendFolded(p.ready, k), k.eol...)
	}
	k.n, k.text, k.modules, k.more, k.function = 0, k.text[:0], k.modules[:0], false, [2]string{}
	if cap(k.text) > 2*maxFoldBytes {
		k.text = nil
	}
}

// appendFolded appends the text for a run, such as
// 3 frames of libc.so.6, libstdc++.so.6: raise … std::terminate.
func (l *layout) appendFolded(dst []byte, k *fold) []byte {
	look := sgr.State{Attrs: sgr.Faint}
	if l.color == ColorAlways {
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
	dst = k.appendNames(dst, start, l.look.Width)
	if l.color == ColorAlways {
		dst = sgr.AppendTransition(dst, look, sgr.State{})
	}
	return dst
}

// appendNames appends the functions of the run to its line, whose text begins at the offset start of
// dst: as many as fit into width columns, or all if width is 0.
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
	before += k.last.indent
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

// baseModule returns the last part of a module's name, printable.
func baseModule(name string) string { return escape.Clean(name[strings.LastIndexByte(name, '/')+1:]) }

// markFrame marks the current line of output as that of the i-th frame of the answer for e. whole
// reports whether nothing follows it in its line.
func markFrame(f *lineFilter, e *frameFields, a *answer, i int, whole bool) {
	if !f.look.Fold {
		return
	}
	fr := foldable{numbered: true, number: e.number, whole: whole, indent: len("    ")}
	if a.mod != nil {
		fr.module = baseModule(a.mod.label())
		if a.hasText {
			fr.system, fr.function = a.text.ofSystem(i), a.text.frame(i).name
		} else {
			fr.system = f.own != nil && !f.own.Is("", "", a.mod.name())
		}
	}
	frameEnds(&f.layout, fr)
}

// markLocated is markFrame for a frame of a raw backtrace; a is nil if it has no answer. rest is the
// text of the log after the last answer in the line.
func markLocated(f *lineFilter, fr *judge.Frame, a *answer, i int, rest []byte) {
	if !f.look.Fold {
		return
	}
	m := foldable{numbered: fr.Number >= 0, number: uint64(max(fr.Number, 0)), module: baseModule(fr.Module), whole: endsFrame(rest)}
	if a != nil && a.hasText {
		t := a.text.frame(i)
		m.system, m.function = a.text.ofSystem(i), t.function()
		if fr.Inline == dialect.InlinedBy { // the lines of one address stay together
			m.system = a.text.allOfSystem()
		}
	} else {
		m.system = f.own != nil && !f.own.Is("", "", fr.Module)
	}
	frameEnds(&f.layout, m)
}
