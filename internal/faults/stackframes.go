package faults

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/findings"
)

// frames returns the frames of a stack. Equal stacks share a slice, which must not change.
func (f *Finder) frames(s *backtrace.Stack) []*findings.TraceFrame {
	sum, ok := f.sum(s)
	if known := f.stacks[sum]; ok && known != nil {
		return known
	}
	all := f.makeFrames(s)
	if ok {
		if len(f.stacks) >= maxFoundStacks {
			clear(f.stacks)
		}
		f.stacks[sum] = all
	}
	return all
}

// sum returns a hash of the answers of a stack. ok is false if the log's text may name a frame,
// since the hash does not cover such names.
func (f *Finder) sum(s *backtrace.Stack) (sum uint64, ok bool) {
	text := f.text[:0]
	for i := range s.Rows {
		r := &s.Rows[i]
		if s.IsNamed(i) {
			return 0, false
		}
		text = binary.LittleEndian.AppendUint32(text, uint32(r.Frame))
		text = binary.LittleEndian.AppendUint32(text, uint32(r.Answer))
		text = strconv.AppendBool(text, s.IsChance(i))
	}
	for i := range s.Answers {
		a := &s.Answers[i]
		text = binary.LittleEndian.AppendUint64(backtrace.AppendPlace(text, a), uint64(len(a.Frames)))
		if a.Offset == 0 {
			text = binary.LittleEndian.AppendUint64(text, a.Addr)
		}
		if len(a.Frames) > 0 { // an answer may improve
			text = backtrace.AppendName(backtrace.AppendName(text, a.Frames[0].Func), a.Frames[0].File)
		}
	}
	f.text = text
	return maphash.Bytes(f.seed, text), true
}

func (f *Finder) makeFrames(s *backtrace.Stack) []*findings.TraceFrame {
	all := make([]*findings.TraceFrame, 0, len(s.Rows))
	for i := range s.Rows {
		fr, ok := s.Frame(i)
		if !ok || s.Rows[i].More || s.IsChance(i) {
			continue
		}
		if fr.HasLine && !s.IsAnswered(i) {
			fr.File = f.paths.Shown(fr.File)
		}
		if s.IsKernel(i) && len(all) == 0 && len(s.Rows) > 1 && backtrace.IsReporter(fr.Func) {
			continue
		}
		all = append(all, &fr)
	}
	return all
}

// hash returns a hash of the finding x. Equal reports of one build have equal hashes.
func (f *Finder) hash(x *findings.Finding) uint64 {
	text := backtrace.AppendName(backtrace.AppendName(f.text[:0], x.Tool), x.Kind)
	for t := range x.Traces {
		text = binary.LittleEndian.AppendUint32(text, uint32(len(x.Traces[t].Frames)))
		for _, fr := range x.Traces[t].Frames {
			text = fr.ID.AppendHex(backtrace.AppendName(text, fr.Object))
			place := fr.Offset
			if place == 0 && fr.Func == "" {
				place = fr.Address
			}
			text = binary.LittleEndian.AppendUint64(text, place)
			text = backtrace.AppendName(backtrace.AppendName(text, fr.Func), fr.File)
			text = binary.LittleEndian.AppendUint32(text, fr.Line)
		}
	}
	if len(x.Traces) == 0 {
		text = backtrace.AppendName(text, x.Message)
	}
	f.text = text
	return maphash.Bytes(f.seed, text)
}
