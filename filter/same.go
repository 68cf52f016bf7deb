package filter

import (
	"hash/maphash"
	"strconv"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/html"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// verdicts distinguish backtraces. They are remembered, because a log may have a million equal
// ones.
type verdicts struct {
	seen map[uint64]*verdict // by hash of the rows
	seed maphash.Seed
}

// A verdict has the results for a backtrace.
type verdict struct {
	key   string      // equal for equal backtraces; empty without a frame with a name or an object
	kinds []html.Kind // of its rows
}

// An answerKey has the parts of an answer that decide its frames.
type answerKey struct {
	module, function, file string
	id                     buildid.ID
	offset                 uint64
	frames                 int
	failed                 bool
}

// maxSeen bounds the verdicts that are remembered: 4 MiB, if each has 40 rows.
const maxSeen = 16 << 10

// of returns the verdict for a backtrace.
func (j *verdicts) of(s *openStack) *verdict {
	var h maphash.Hash
	if j.seen == nil {
		j.seed = maphash.MakeSeed()
	}
	h.SetSeed(j.seed)
	for i := range s.rows {
		r := &s.rows[i]
		maphash.WriteComparable(&h, [2]int{r.frame, r.answer})
	}
	for i := range s.answers {
		a := &s.answers[i]
		k := answerKey{module: a.Module, id: a.ID, offset: a.Offset, frames: len(a.Frames), failed: a.Err != nil}
		if k.frames > 0 { // an answer may become better
			k.function, k.file = a.Frames[0].Func, a.Frames[0].File
		}
		maphash.WriteComparable(&h, k)
	}
	sum := h.Sum64()
	if known := j.seen[sum]; known != nil {
		return known
	}
	known := &verdict{kinds: make([]html.Kind, len(s.rows))}
	var stack report.Stack
	var unnamed maphash.Hash
	unnamed.SetSeed(j.seed)
	anyUnnamed := false
	for i := range s.rows {
		r := &s.rows[i]
		known.kinds[i] = s.kind(r, &stack)
		if known.kinds[i] == html.Unresolved && !r.more {
			a := &s.answers[r.answer]
			maphash.WriteComparable(&unnamed, answerKey{module: a.Module, id: a.ID, offset: a.Offset})
			anyUnnamed = true
		}
	}
	if !stack.Empty() {
		known.key = stack.Fingerprint("log/1")
		// In the fingerprint all frames of a module without names are the same one. On a page that
		// would hide backtraces that differ.
		if anyUnnamed {
			known.key += strconv.FormatUint(unnamed.Sum64(), 16)
		}
	}
	if j.seen == nil || len(j.seen) >= maxSeen {
		j.seen = make(map[uint64]*verdict)
	}
	j.seen[sum] = known
	return known
}

// kind returns the kind of a row, and adds its frame to stack.
func (s *openStack) kind(r *stackRow, stack *report.Stack) html.Kind {
	if r.answer < 0 {
		return html.Other
	}
	a := &s.answers[r.answer]
	own := a.Own(r.frame)
	var f *symbolize.Frame
	if r.frame < len(a.Frames) {
		f = &a.Frames[r.frame]
	}
	if !r.more {
		stack.Add(f, a.Module, own)
	}
	switch {
	case !own:
		return html.System
	case f == nil || f.Func == "":
		return html.Unresolved
	}
	return html.Own
}
