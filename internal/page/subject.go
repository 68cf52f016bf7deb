package page

import (
	"path"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/html"
)

// A subject is the frame that a backtrace is about. Without such a frame, it holds only a title.
type subject struct {
	row   int // index in the stack's rows; -1 if the backtrace only has a title
	title html.Detail
	crash bool // a signal arrived here, or the function ended the program
}

// aboutOf returns the frame that a backtrace is about: the innermost named frame outside of the
// system, or else the innermost unresolved frame. It skips functions that ran after the crash:
// signal handlers, and functions that end a program. If no such frame is left, the outermost system
// frame with a name gives only the title. Without such a frame, aboutOf returns a frame of the
// handler, or any other frame as the title.
func aboutOf(s *backtrace.Stack, kinds []html.Kind) subject {
	own, unnamed, known, handler, other := -1, -1, -1, -1, -1
	returns, crash := false, false
	for i := range s.Rows {
		fr, ok := s.Frame(i)
		if !ok || s.IsChance(i) {
			continue
		}
		if interrupts(&fr, &returns) {
			if handler < 0 {
				handler = own
			}
			own, unnamed, known, crash = -1, -1, -1, true
		}
		ends := backtrace.EndsProgram(fr.Func)
		crash = crash || own < 0 && ends
		ends = ends || s.IsKernel(i) && backtrace.IsReporter(fr.Func)
		switch {
		case kinds[i] != html.System && fr.Func != "" && !ends:
			if own < 0 {
				own = i
			}
		case kinds[i] == html.Unresolved && !ends:
			if unnamed < 0 {
				unnamed = i
			}
		case fr.Func != "" && !backtrace.IsOutermost(fr.Func) && !backtrace.IsSignalFrame(fr.Func):
			known = i
		default:
			other = i
		}
	}
	for _, row := range []int{own, unnamed, known, handler, other} {
		if row < 0 {
			continue
		}
		about := subject{row: row, title: titleOf(s, row), crash: crash}
		if row == known || row == other {
			about.row = -1
		}
		return about
	}
	return subject{row: -1, crash: crash}
}

// titleOf returns the frame of the i-th row of a stack as a title.
func titleOf(s *backtrace.Stack, i int) html.Detail {
	fr, _ := s.Frame(i)
	title := html.Detail{Function: escape.Clean(fr.Func), File: escape.Clean(fr.File), Line: fr.Line, Module: escape.Clean(fr.Object), Offset: fr.Offset}
	if fr.Func == "" && fr.Offset == 0 { // the module or the offset in it is unknown
		title.Function = strings.TrimPrefix(path.Base(title.Module)+" 0x", ". ") + strconv.FormatUint(fr.Address, 16)
	}
	return title
}

// interrupts reports whether a signal interrupted a frame, so that the frames before it belong to
// the handler. The name of an interrupted frame is that of a signal frame, or its address is exact
// and follows return addresses. returns is a variable for all calls for one backtrace: it is set
// while frames have return addresses.
func interrupts(fr *findings.TraceFrame, returns *bool) bool {
	const page = 1<<12 - 1
	was := *returns
	if fr.Address != 0 && fr.Object != "" {
		switch (fr.Address - fr.Offset) & page { // modules are loaded at whole pages
		case 0:
			*returns = false
			return was
		case 1:
			*returns = true
		}
	}
	return backtrace.IsSignalFrame(fr.Func)
}
