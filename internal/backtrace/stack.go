package backtrace

import (
	"bytes"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/report"
)

// A Stack is a backtrace: its lines, and the answers of the filter for its frames.
type Stack struct {
	Rows    []Row
	Answers []filter.Resolved // answers for the frames of the rows
	Cut     bool              // the stack continues a stack that was too long
	Message []byte            // beginning of the last line with text before the stack

	text    []byte
	process string // key of its process
	number  uint64 // number of the last frame
	dialect string // dialect of the last frame
	waiting int    // rows at the end that are not frames: part of the stack if a frame follows
}

// A Row is a line of a backtrace.
type Row struct {
	Ended  bool // the line has a line end
	More   bool // the line belongs to the frame of the row before
	Named  bool // the frame was symbolized when it was logged
	Frame  int  // index in the frames of its answer; filter.NoFrame without an answer
	Answer int  // index in Answers; filter.NoFrame without an answer

	end int // offset of the end of the row's text
}

// Text returns the text of the i-th row. It is valid until [Grouping.End] returns.
func (s *Stack) Text(i int) []byte {
	from := 0
	if i > 0 {
		from = s.Rows[i-1].end
	}
	return s.text[from:s.Rows[i].end]
}

// IsSingle reports whether the stack is one address, not a backtrace: it has a single answer,
// without a frame number and without lines after it.
func (s *Stack) IsSingle() bool {
	return len(s.Answers) == 1 && s.Answers[0].Frame == filter.NoNumber && s.Rows[0].Answer == 0 && s.Rows[len(s.Rows)-1].Answer == 0
}

// IsText reports whether the stack is a single line in the form of a gdb frame, which may be other
// text.
func (s *Stack) IsText() bool {
	return len(s.Answers) == 0 && s.dialect == gdbDialect && len(s.Rows) == 1
}

// Frame returns the frame of the i-th row, with the name from its answer or, if the answer has no
// frames, from its text. ok is false if the row has neither an answer nor a frame that the log
// already names.
func (s *Stack) Frame(i int) (fr findings.TraceFrame, ok bool) {
	r := &s.Rows[i]
	if r.Answer < 0 {
		switch {
		case !r.Named:
			return fr, false
		case s.dialect == gdbDialect:
			return gdbFrame(s.Text(i))
		}
		return namedFrame(s.Text(i))
	}
	a := &s.Answers[r.Answer]
	fr = findings.TraceFrame{Object: a.Module, ID: a.ID, Address: a.Addr, Offset: a.Offset}
	if s.IsAnswered(i) {
		fr.Frame = a.Frames[r.Frame]
		fr.Func, _ = report.Unversioned(fr.Func)
	} else if text := s.Text(i); isNamedIn(a, text) {
		switch a.Dialect {
		case "kernel":
			fr.Func = kernelFunction(text)
		case gdbDialect:
			named, _ := gdbFrame(text)
			fr.Frame = named.Frame
		default:
			named, _ := namedFrame(text)
			fr.Frame = named.Frame
		}
	}
	return fr, true
}

// IsAnswered reports whether the i-th row has a frame of an answer.
func (s *Stack) IsAnswered(i int) bool {
	r := &s.Rows[i]
	return r.Answer >= 0 && r.Frame < len(s.Answers[r.Answer].Frames)
}

// IsNamed reports whether the producer may have named the frame of the i-th row. The text may then
// have a name that the answer lacks.
func (s *Stack) IsNamed(i int) bool {
	r := &s.Rows[i]
	return r.Named || r.Answer >= 0 && isNamedIn(&s.Answers[r.Answer], s.Text(i))
}

// IsKernel reports whether the i-th row has a frame of a kernel.
func (s *Stack) IsKernel(i int) bool {
	a := s.Rows[i].Answer
	return a >= 0 && s.Answers[a].Dialect == "kernel"
}

// IsChance reports whether the kernel has marked the frame of the i-th row with "?": an earlier
// call may have left its address on the stack.
func (s *Stack) IsChance(i int) bool {
	return s.IsKernel(i) && bytes.Contains(s.Text(i), []byte(" ? "))
}

func (s *Stack) isOpen() bool { return len(s.Rows) > 0 }

func (s *Stack) add(text []byte, r Row) {
	s.text = append(s.text, text...)
	r.end = len(s.text)
	s.Rows = append(s.Rows, r)
}

// mayAddBetween reports whether a line may be between two frames of the stack: at most one line or,
// in gdb's bt full, maxBelowFrame lines.
func (s *Stack) mayAddBetween(text []byte) bool {
	most := 1
	if s.dialect == gdbDialect {
		most = maxBelowFrame
	}
	return s.isOpen() && s.waiting < most && len(text) <= MaxBetween
}

// continues reports whether l, a line with a frame, belongs to the stack. r is the frame's answer,
// or nil if the log already has its name.
func (s *Stack) continues(l *filter.Line, r *filter.Resolved) bool {
	switch {
	case l.Process != s.process:
		return false
	case r == nil: // symbolized when it was logged
		return s.waiting == 0
	case r.Dialect != s.dialect && s.dialect != "":
		return false
	case s.number == filter.NoNumber || r.Frame == filter.NoNumber:
		return s.number == r.Frame || s.waiting == 0
	case s.waiting > 0:
		return r.Frame == s.number+1
	}
	return r.Frame > s.number
}
