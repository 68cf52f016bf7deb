package filter

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"github.com/symfilter/symfilter/internal/html"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// verdicts distinguish backtraces. They are remembered, because a log may have a million equal
// ones.
type verdicts struct {
	seen map[uint64]*verdict // by hash of the rows
	seed maphash.Seed
	text []byte // what is hashed: a hash of bytes takes a fifth of the time of one of values
}

// A verdict has the results for a backtrace.
type verdict struct {
	key   string      // equal for equal backtraces; empty without a frame with a name or an object
	kinds []html.Kind // of its rows
	known bool        // the page needs no Details of it
}

// maxSeen bounds the verdicts that are remembered: 4 MiB, if each has 40 rows.
const maxSeen = 16 << 10

// of returns the verdict for a backtrace.
func (j *verdicts) of(s *openStack) *verdict {
	if j.seen == nil {
		j.seed = maphash.MakeSeed()
	}
	text := j.text[:0]
	for i := range s.rows {
		r := &s.rows[i]
		text = binary.LittleEndian.AppendUint32(text, uint32(r.frame))
		text = binary.LittleEndian.AppendUint32(text, uint32(r.answer))
	}
	for i := range s.answers {
		a := &s.answers[i]
		text = appendAddress(text, a)
		text = binary.LittleEndian.AppendUint32(text, uint32(len(a.Frames)))
		if len(a.Frames) > 0 { // an answer may become better
			text = appendName(appendName(text, a.Frames[0].Func), a.Frames[0].File)
		}
		text = strconv.AppendBool(text, a.Err != nil)
	}
	j.text = text
	sum := maphash.Bytes(j.seed, text)
	if known := j.seen[sum]; known != nil {
		return known
	}
	known := &verdict{kinds: make([]html.Kind, len(s.rows))}
	var stack report.Stack
	unnamed := text[:0]
	for i := range s.rows {
		r := &s.rows[i]
		known.kinds[i] = s.kind(r, &stack)
		if known.kinds[i] == html.Unresolved && !r.more {
			unnamed = appendAddress(unnamed, &s.answers[r.answer])
		}
	}
	if !stack.Empty() {
		known.key = stack.Fingerprint("log/1")
		// In the fingerprint all frames of a module without names are the same one. On a page that
		// would hide backtraces that differ.
		if len(unnamed) > 0 {
			known.key += strconv.FormatUint(maphash.Bytes(j.seed, unnamed), 16)
		}
	}
	if j.seen == nil || len(j.seen) >= maxSeen {
		j.seen = make(map[uint64]*verdict)
	}
	j.seen[sum] = known
	return known
}

// appendAddress appends the place of an answer in its module.
func appendAddress(dst []byte, a *Resolved) []byte {
	dst = a.ID.AppendHex(appendName(dst, a.Module))
	return binary.LittleEndian.AppendUint64(append(dst, 0), a.Offset)
}

// appendName appends a name with its length, so that other names in its place make other bytes.
func appendName(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
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
