package filter

import (
	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/judge"
)

// maxFrameNumber bounds the frames that inlined calls have added to a stack in a checkpoint.
const maxFrameNumber = 1 << 30

// savedTraces is the state from earlier lines that later raw backtraces need.
type savedTraces struct {
	Reader dialect.State `json:"reader"`
	// state of the Reader before the held lines
	Before   *dialect.State             `json:"before,omitempty"`
	Past     checkpoint.List[savedPast] `json:"past,omitempty"` // lines before the held lines
	Facts    *savedFacts                `json:"facts,omitempty"`
	Stacks   []savedStack               `json:"stacks,omitempty"`
	Invented uint64                     `json:"made,omitempty"` // number of made-up modules
	// a trace is open; the fields below, except Late, are its state
	Open     bool                          `json:"open,omitempty"`
	Last     int64                         `json:"last,omitempty"`
	Full     bool                          `json:"full,omitempty"`
	Promise  bool                          `json:"promise,omitempty"`
	Trace    judge.TraceState              `json:"trace,omitzero"`
	Verdicts checkpoint.List[savedVerdict] `json:"verdicts,omitempty"`
	Late     *savedLate                    `json:"late,omitempty"`
}

type savedStack struct {
	Index  int    `json:"i"`
	Before uint64 `json:"before"`
	Number int    `json:"number"`
	Added  int    `json:"added,omitempty"`
}

type savedVerdict struct {
	Module  checkpoint.Text                 `json:"module"`
	BuildID string                          `json:"build_id,omitempty"`
	Prefix  string                          `json:"build_id_prefix,omitempty"`
	Path    checkpoint.Text                 `json:"path,omitempty"`
	Refuted string                          `json:"refuted,omitempty"`
	Seen    checkpoint.List[judge.Sighting] `json:"seen,omitempty"`
	judge.Verdict
}

// saved returns the state of t, or nil without dialects.
func (t *tracer) saved() *savedTraces {
	if t == nil {
		return nil
	}
	s := &savedTraces{
		Reader:   t.reader.State(),
		Past:     pastSaved(t),
		Facts:    factsSaved(t.reader.Facts()),
		Invented: t.locator.firstInvented + uint64(len(t.locator.invented)),
	}
	if t.isBuffering() {
		s.Before = &t.before
	}
	for i, k := range t.locator.stacks {
		if i > 0 && k != (stack{}) {
			s.Stacks = append(s.Stacks, savedStack{i, k.before, k.number, k.added})
		}
	}
	// later maps matter only if the next frame may be in the same trace
	if t.reader.Wants(t.next()) || t.trace != nil && t.next()-t.last <= t.trace.Lasts() {
		s.Late = t.maps.saved()
	}
	if t.trace == nil {
		return s
	}
	s.Open, s.Last, s.Full, s.Promise = true, t.last, t.full, t.expectsMaps
	s.Trace = t.trace.State()
	for _, v := range t.trace.Verdicts() {
		to := savedVerdict{
			Module: checkpoint.Text(v.Module), BuildID: v.ID.String(), Prefix: v.Prefix.String(), Path: checkpoint.Text(v.Path),
			Seen: v.Seen, Verdict: v,
		}
		if v.Refuted != nil {
			to.Refuted = v.Refuted.Error()
		}
		s.Verdicts = append(s.Verdicts, to)
	}
	return s
}

// restore sets the state of t, which must be new. It calls hold, which filters the saved lines
// again to hold them back.
func (t *tracer) restore(s *savedTraces, hold func()) error {
	if len(s.Verdicts) > maxImages {
		return checkpoint.Damaged("the backtrace has too many parts")
	}
	for _, k := range s.Stacks {
		if k.Index <= 0 || k.Index >= maxStacks || k.Number < 0 || !between(k.Added, maxFrameNumber) {
			return checkpoint.Damaged("a stack is not valid")
		}
		t.locator.stacks[k.Index] = stack{k.Before, k.Number, k.Added}
	}
	// the output may be another file, so made-up modules are printed again, with new numbers
	t.locator.firstInvented = min(s.Invented, maxInvented)
	before := s.Reader
	if s.Before != nil {
		before = *s.Before
		// keep the windows that the held lines have opened
		before.Until, before.HoldsUntil = s.Reader.Until, s.Reader.HoldsUntil
	}
	t.reader.SetState(before)
	facts, err := s.Facts.facts()
	if err != nil {
		return err
	}
	t.reader.SetFacts(facts)
	if s.Open {
		t.begin()
		t.last, t.expectsMaps = s.Last, s.Promise
		verdicts, err := s.verdicts()
		if err != nil {
			return err
		}
		t.trace.Resume(verdicts)
		t.trace.SetState(s.Trace)
	}
	if err := t.maps.restore(s.Late); err != nil {
		return err
	}
	if err := t.past.restore(s.Past); err != nil {
		return err
	}
	hold()
	t.reader.SetState(s.Reader) // the held lines are read again
	if s.Before != nil {
		t.before = *s.Before
		t.before.Until = nil
	}
	facts, _ = s.Facts.facts()
	t.reader.SetFacts(facts)
	t.full, t.expectsMaps = s.Full, s.Promise
	return nil
}

func (s *savedTraces) verdicts() (all []judge.Verdict, err error) {
	for i := range s.Verdicts {
		from := &s.Verdicts[i]
		v := from.Verdict
		if v.ID, err = savedID(from.BuildID); err == nil {
			v.Prefix, err = savedID(from.Prefix)
		}
		if err != nil {
			return nil, err
		}
		v.Module, v.Path, v.Seen, v.Refuted = string(from.Module), string(from.Path), from.Seen, refutation(from.Refuted)
		all = append(all, v)
	}
	return all, nil
}

// refutation returns the error with this text: nil for an empty text, ErrRefuted for an unknown
// one.
func refutation(text string) error {
	for _, err := range []error{judge.ErrSymbol, judge.ErrCall, judge.ErrNotCode} {
		if text == err.Error() {
			return err
		}
	}
	if text != "" {
		return judge.ErrRefuted
	}
	return nil
}

// between reports whether n is from 0 to most.
func between(n, most int) bool { return n >= 0 && n <= most }
