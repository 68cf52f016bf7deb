package filter

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"github.com/symfilter/symfilter/internal/findings"
)

// frames returns the frames of a stack, which other stacks may share.
func (f *Finder) frames(rows []stackRow) []*findings.TraceFrame {
	sum, ok := f.sum(rows)
	if known := f.stacks[sum]; ok && known != nil {
		return known
	}
	all := f.makeFrames(rows)
	if ok {
		if len(f.stacks) >= maxFoundStacks {
			clear(f.stacks)
		}
		f.stacks[sum] = all
	}
	return all
}

// sum returns a hash of the answers of a stack. ok is not set if the frames are not those of the
// answers alone.
func (f *Finder) sum(rows []stackRow) (sum uint64, ok bool) {
	s := &f.stack
	text := f.text[:0]
	at := 0
	for i := range rows {
		r := &rows[i]
		line := s.text[at:r.end]
		at = r.end
		if r.named || r.answer >= 0 && isNamedIn(&s.answers[r.answer], line) {
			return 0, false
		}
		text = binary.LittleEndian.AppendUint32(text, uint32(r.frame))
		text = binary.LittleEndian.AppendUint32(text, uint32(r.answer))
		text = strconv.AppendBool(text, isChance(s, r, line))
	}
	for i := range s.answers {
		a := &s.answers[i]
		text = binary.LittleEndian.AppendUint64(appendAddress(text, a), uint64(len(a.Frames)))
		if a.Offset == 0 {
			text = binary.LittleEndian.AppendUint64(text, a.Addr)
		}
		if len(a.Frames) > 0 { // an answer may become better
			text = appendName(appendName(text, a.Frames[0].Func), a.Frames[0].File)
		}
	}
	f.text = text
	return maphash.Bytes(f.seed, text), true
}

// makeFrames returns the frames of a stack.
func (f *Finder) makeFrames(rows []stackRow) []*findings.TraceFrame {
	s := &f.stack
	all := make([]*findings.TraceFrame, 0, len(rows))
	at := 0
	for i := range rows {
		r := &rows[i]
		text := s.text[at:r.end]
		at = r.end
		fr, ok := s.frame(r, text)
		if !ok || r.more || isChance(s, r, text) {
			continue
		}
		if fr.HasLine && !s.answered(r) {
			fr.File = f.paths.shown(fr.File)
		}
		if s.isKernel(r) && len(all) == 0 && len(rows) > 1 && isReporter(fr.Func) {
			continue
		}
		all = append(all, &fr)
	}
	return all
}

// hash returns a hash that is equal for the same report of one build.
func (f *Finder) hash(x *findings.Finding) uint64 {
	text := appendName(appendName(f.text[:0], x.Tool), x.Kind)
	for t := range x.Traces {
		text = binary.LittleEndian.AppendUint32(text, uint32(len(x.Traces[t].Frames)))
		for _, fr := range x.Traces[t].Frames {
			text = fr.ID.AppendHex(appendName(text, fr.Object))
			place := fr.Offset
			if place == 0 && fr.Func == "" {
				place = fr.Address
			}
			text = binary.LittleEndian.AppendUint64(text, place)
			text = appendName(appendName(text, fr.Func), fr.File)
			text = binary.LittleEndian.AppendUint32(text, fr.Line)
		}
	}
	if len(x.Traces) == 0 {
		text = appendName(text, x.Message)
	}
	f.text = text
	return maphash.Bytes(f.seed, text)
}
