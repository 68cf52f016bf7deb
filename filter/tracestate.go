package filter

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/dialect"
	"github.com/symfilter/symfilter/internal/checkpoint"
)

// savedPast is the number of bytes before the current line that a checkpoint has: the header of a
// trace is a few lines before its first frame.
const savedPast = 2 << 10

// maxFrameNumber bounds the frames that inlined calls have added to a stack of a checkpoint.
const maxFrameNumber = 1 << 30

// savedTraces are what the lines so far mean for the raw backtraces to come.
type savedTraces struct {
	Reader   dialect.State                 `json:"reader"`
	Past     checkpoint.Text               `json:"past,omitempty"`
	Facts    *savedFacts                   `json:"facts,omitempty"`
	Stacks   []savedStack                  `json:"stacks,omitempty"`
	Made     uint64                        `json:"made,omitempty"` // modules that were made up
	Open     bool                          `json:"open,omitempty"` // the fields after it are of an open trace
	Last     int64                         `json:"last,omitempty"`
	Full     bool                          `json:"full,omitempty"`
	Promise  bool                          `json:"promise,omitempty"`
	Verdicts checkpoint.List[savedVerdict] `json:"verdicts,omitempty"`
}

// A savedStack is a stack whose frames are renumbered.
type savedStack struct {
	Index  int    `json:"i"`
	Before uint64 `json:"before"`
	Number int    `json:"number"`
	Added  int    `json:"added,omitempty"`
}

type savedVerdict struct {
	Module  checkpoint.Text `json:"module"`
	BuildID string          `json:"build_id,omitempty"`
	Bias    uint64          `json:"bias,omitempty"`
	Biased  bool            `json:"biased,omitempty"`
	Proved  bool            `json:"proved,omitempty"`
	Refuted string          `json:"refuted,omitempty"`
	Symbols int             `json:"symbols,omitempty"`
	Calls   int             `json:"calls,omitempty"`
	Failed  []uint64        `json:"failed,omitempty"`
	Process uint64          `json:"process,omitempty"`
	Moved   bool            `json:"moved,omitempty"`
}

// savedFacts are Facts. Paths and names are UTF-8 in nearly all logs.
type savedFacts struct {
	Maps    checkpoint.List[savedMapping]    `json:"maps,omitempty"`
	Modules checkpoint.List[savedModuleFact] `json:"modules,omitempty"`
}

type savedMapping struct {
	Start   uint64          `json:"start"`
	End     uint64          `json:"end"`
	Offset  uint64          `json:"offset,omitempty"`
	Path    checkpoint.Text `json:"path"`
	Code    bool            `json:"code,omitempty"`
	Deleted bool            `json:"deleted,omitempty"`
}

type savedModuleFact struct {
	Name    checkpoint.Text `json:"name,omitempty"`
	BuildID string          `json:"build_id,omitempty"`
	Base    uint64          `json:"base,omitempty"`
	HasBase bool            `json:"has_base,omitempty"`
	End     uint64          `json:"end,omitempty"`
	Main    bool            `json:"main,omitempty"`
	Text    uint64          `json:"text,omitempty"`
}

// factsSaved returns the form of facts in JSON, nil if there are none.
func factsSaved(f *dialect.Facts) *savedFacts {
	if f.Empty() {
		return nil
	}
	s := new(savedFacts)
	for _, m := range f.Maps() {
		s.Maps = append(s.Maps, savedMapping{m.Start, m.End, m.Offset, checkpoint.Text(m.Path), m.Code, m.Deleted})
	}
	for _, m := range f.Modules() {
		s.Modules = append(s.Modules, savedModuleFact{checkpoint.Text(m.Name), m.ID.String(), m.Base, m.HasBase, m.End, m.Main, m.Text})
	}
	return s
}

// facts returns the Facts of s, which stay within their bounds.
func (s *savedFacts) facts() (f dialect.Facts, err error) {
	if s == nil {
		return f, nil
	}
	for _, m := range s.Maps {
		if m.Start >= m.End {
			return f, checkpoint.Damaged("the mapping [%#x-%#x] is empty", m.Start, m.End)
		}
		f.AddMap(dialect.Map{Start: m.Start, End: m.End, Offset: m.Offset, Path: string(m.Path), Code: m.Code, Deleted: m.Deleted})
	}
	for _, m := range s.Modules {
		id, err := savedID(m.BuildID)
		if err != nil {
			return f, err
		}
		f.AddModule(dialect.ModuleFact{Name: string(m.Name), ID: id, Base: m.Base, HasBase: m.HasBase, End: m.End, Main: m.Main, Text: m.Text})
	}
	return f, nil
}

// savedID parses the build ID of a checkpoint.
func savedID(digits string) (id buildid.ID, err error) {
	if digits == "" {
		return id, nil
	}
	if id, err = buildid.Parse([]byte(digits)); err != nil {
		return id, checkpoint.Damaged("a build ID: %v", err)
	}
	return id, nil
}

// saved returns the state of t, nil if it has no dialects.
func (t *tracer) saved() *savedTraces {
	if t == nil {
		return nil
	}
	s := &savedTraces{
		Reader: t.reader.State(),
		Past:   t.past.tail[max(0, len(t.past.tail)-savedPast):],
		Facts:  factsSaved(t.reader.Facts()),
		Made:   t.locator.first + uint64(len(t.locator.made)),
	}
	for i, k := range t.locator.stacks {
		if i > 0 && k != (stack{}) {
			s.Stacks = append(s.Stacks, savedStack{i, k.before, k.number, k.added})
		}
	}
	if t.trace == nil {
		return s
	}
	s.Open, s.Last, s.Full, s.Promise = true, t.last, t.full, t.promise
	for _, v := range t.trace.Verdicts() {
		to := savedVerdict{
			Module: checkpoint.Text(v.Module), BuildID: v.ID.String(), Bias: v.Bias, Biased: v.Biased, Proved: v.Proved,
			Symbols: v.Symbols, Calls: v.Calls, Failed: v.Failed, Process: v.Process, Moved: v.Moved,
		}
		if v.Refuted != nil {
			to.Refuted = v.Refuted.Error()
		}
		s.Verdicts = append(s.Verdicts, to)
	}
	return s
}

// restore sets the state of t, which is new, and calls hold for the lines that were held back.
func (t *tracer) restore(s *savedTraces, hold func()) error {
	facts, err := s.Facts.facts()
	if err != nil {
		return err
	}
	if len(s.Past) > savedPast || len(s.Verdicts) > maxImages {
		return checkpoint.Damaged("its backtrace has too many parts")
	}
	for _, k := range s.Stacks {
		if k.Index <= 0 || k.Index >= maxStacks || k.Number < 0 || !between(k.Added, maxFrameNumber) {
			return checkpoint.Damaged("a stack is not valid")
		}
		t.locator.stacks[k.Index] = stack{k.Before, k.Number, k.Added}
	}
	t.locator.first = min(s.Made, maxMade) // they are printed again, as others
	before := s.Reader                     // as it was, about, before the lines that are held
	before.MapAt, before.MapStart, before.FrameAt = -1, 0, -1
	t.reader.SetState(before)
	if s.Open {
		t.begin()
		t.last, t.promise = s.Last, s.Promise
		for _, v := range s.Verdicts {
			id, err := savedID(v.BuildID)
			if err != nil {
				return err
			}
			t.trace.Resume(dialect.Verdict{
				Module: string(v.Module), ID: id, Bias: v.Bias, Biased: v.Biased, Proved: v.Proved,
				Refuted: refutation(v.Refuted), Symbols: v.Symbols, Calls: v.Calls, Failed: v.Failed, Process: v.Process, Moved: v.Moved,
			})
		}
	}
	hold()
	t.reader.SetState(s.Reader) // the held lines are read twice
	t.reader.SetFacts(facts)
	t.past.tail = append(t.past.tail[:0], s.Past...)
	t.full, t.promise = s.Full, s.Promise
	return nil
}

// refutation returns the reason of this text for which a file is not the one that ran.
func refutation(text string) error {
	for _, err := range []error{dialect.ErrSymbol, dialect.ErrCall, dialect.ErrNotCode} {
		if text == err.Error() {
			return err
		}
	}
	if text != "" {
		return dialect.ErrRefuted
	}
	return nil
}

// between reports whether n is at least 0 and at most most.
func between(n, most int) bool { return n >= 0 && n <= most }
