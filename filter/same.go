package filter

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/html"
)

// verdicts distinguish backtraces. They are remembered, because a log may have a million equal
// ones.
type verdicts struct {
	seen map[uint64]*verdict // by hash of the rows
	seed maphash.Seed
	own  *findings.Own // Look.Own of the Filter
	text []byte        // what is hashed: a hash of bytes takes a fifth of the time of one of values
}

// A verdict has the results for a backtrace.
type verdict struct {
	key   string      // equal for equal backtraces; empty without a frame
	kinds []html.Kind // of its rows
	known bool        // the page needs no Details of it
}

// maxSeen bounds the verdicts that are remembered: 4 MiB, if each has 40 rows.
const maxSeen = 16 << 10

// of returns the verdict for a backtrace with a role.
func (j *verdicts) of(s *openStack, role string) *verdict {
	if j.seen == nil {
		j.seed = maphash.MakeSeed()
	}
	text := appendName(j.text[:0], role)
	at := 0
	for i := range s.rows {
		r := &s.rows[i]
		line := s.text[at:r.end]
		at = r.end
		if r.named || r.answer >= 0 && isNamedIn(&s.answers[r.answer], line) {
			text = append(binary.LittleEndian.AppendUint32(text, uint32(len(line))), line...)
		}
		text = binary.LittleEndian.AppendUint32(text, uint32(r.frame))
		text = binary.LittleEndian.AppendUint32(text, uint32(r.answer))
	}
	for i := range s.answers {
		a := &s.answers[i]
		if text = appendAddress(text, a); a.Module == "" {
			text = binary.LittleEndian.AppendUint64(text, a.Addr)
		}
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
	known := j.judge(s, role)
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

// judge returns a new verdict for a backtrace.
func (j *verdicts) judge(s *openStack, role string) *verdict {
	v := &verdict{kinds: make([]html.Kind, len(s.rows))}
	var own, all []uint64 // the places of frames, each once: however deep a recursion is, it is the same
	at := 0
	for i := range s.rows {
		r := &s.rows[i]
		text := s.text[at:r.end]
		at = r.end
		fr, ok := s.frame(r, text)
		if !ok {
			continue
		}
		if v.kinds[i] = s.kind(r, &fr, j.own); isChance(s, r, text) {
			continue
		}
		place := maphash.Bytes(j.seed, appendFramePlace(j.text[:0], &fr))
		if v.kinds[i] != html.System && !slices.Contains(own, place) {
			own = append(own, place)
		}
		if !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	if len(own) > 0 {
		all = own
	}
	if len(all) > 0 {
		text := appendName(j.text[:0], role)
		for _, place := range all {
			text = binary.LittleEndian.AppendUint64(text, place)
		}
		v.key = strconv.FormatUint(maphash.Bytes(j.seed, text), 16)
	}
	return v
}

// appendFramePlace appends what makes the place of a frame another one: its function with the line,
// or its place in the module. If that is not known, it is the part of the address that is the same
// in each process.
func appendFramePlace(dst []byte, fr *findings.TraceFrame) []byte {
	dst = appendName(appendName(dst, fr.Func), fr.File)
	switch {
	case fr.Line > 0:
		return binary.LittleEndian.AppendUint32(dst, fr.Line)
	case fr.Offset == 0:
		return binary.LittleEndian.AppendUint64(appendName(dst, fr.Object), fr.Address&(1<<12-1))
	}
	return binary.LittleEndian.AppendUint64(fr.ID.AppendHex(appendName(dst, fr.Object)), fr.Offset)
}

// kind returns the kind of a row with a frame.
func (s *openStack) kind(r *stackRow, fr *findings.TraceFrame, rules *findings.Own) html.Kind {
	own := false
	switch {
	case isSignalFrame(fr.Func):
	case s.answered(r):
		own = s.answers[r.answer].Own(r.frame)
	default:
		own = (rules == nil || rules.Is(fr.Func, fr.File, fr.Object)) && !findings.EndsProgram(fr.Func)
	}
	switch {
	case !own:
		return html.System
	case r.answer >= 0 && !s.answered(r), fr.Func == "":
		return html.Unresolved
	}
	return html.Own
}
