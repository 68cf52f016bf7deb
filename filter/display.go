package filter

import (
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
)

// Display selects how frames are shown to people. The zero value selects the form for programs.
// Width and Fold apply only to text, without a Printer and without Options.Emit.
type Display struct {
	// Own distinguishes the program's own frames from system frames, for Fold and [Resolved.Own].
	// function is a linkage name; file and object are the paths of a source and an object file.
	// Each is empty if unknown. If Own is nil, every frame is own.
	Own interface {
		Is(function, file, object string) bool
	}

	// ShortNames replaces the arguments of templates in function names with ….
	ShortNames bool

	// Width is the number of columns of the terminal. Longer lines are broken before a function,
	// its file and line, or its module. 0: no line is broken.
	Width int

	// Fold replaces each run of two or more system frames with a line that counts them. Only frames
	// alone on their lines are folded. A backtrace without own frames stays unfolded. A run is held
	// back until its end, or until Flush.
	Fold bool

	// AtOnce ends a run of system frames when Write returns, so no frame is held back.
	AtOnce bool
}

// newDisplay returns the Display for options o, or nil if the output is for programs.
func newDisplay(o *Options) *layout.Display {
	if o.Output != Text || o.Printer != nil || o.Emit != nil {
		return nil
	}
	return layout.NewDisplay(layout.Style{Width: o.Display.Width, Fold: o.Display.Fold, Colors: o.Color == ColorAlways, KeepsColor: o.Color == ColorKeep})
}

// baseModule returns the last part of a module's name, with control characters escaped.
func baseModule(name string) string { return escape.Clean(name[strings.LastIndexByte(name, '/')+1:]) }

// markFrame passes the i-th frame of the answer for e, in the current line of output, to the
// Display for folding. whole is set if nothing follows the frame in its line.
func markFrame(f *lineFilter, e *frameFields, a *answer, i int, whole bool) {
	if !f.layout.Display.Fold {
		return
	}
	fr := layout.FoldFrame{Numbered: true, Number: e.number, Whole: whole, Indent: len("    ")}
	if a.mod != nil {
		fr.Module = baseModule(a.mod.label())
		if a.hasText {
			fr.System, fr.Function = a.text.ofSystem(i), a.text.frame(i).Name
		} else {
			fr.System = f.own != nil && !f.own.Is("", "", a.mod.name())
		}
	}
	f.layout.Display.FrameEnds(f.layout.Buf, fr)
}

// markLocated is markFrame for a frame of a raw backtrace; a is nil if the frame has no answer.
// rest is the logged text after the last answer in the line.
func markLocated(f *lineFilter, fr *judge.Frame, a *answer, i int, rest []byte) {
	if !f.layout.Display.Fold {
		return
	}
	m := layout.FoldFrame{Numbered: fr.Number >= 0, Number: uint64(max(fr.Number, 0)), Module: baseModule(fr.Module), Whole: layout.EndsFrame(rest)}
	if a != nil && a.hasText {
		t := a.text.frame(i)
		m.System, m.Function = a.text.ofSystem(i), t.Function()
		if fr.Inline == dialect.InlinedBy { // the lines of one address stay together
			m.System = a.text.allOfSystem()
		}
	} else {
		m.System = f.own != nil && !f.own.Is("", "", fr.Module)
	}
	f.layout.Display.FrameEnds(f.layout.Buf, m)
}
