package page

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/html"
)

// verdicts caches a verdict for each distinct backtrace, since a log may repeat a backtrace a
// million times.
type verdicts struct {
	seen map[uint64]*verdict // verdicts so far, by hash of the rows and their frames
	seed maphash.Seed
	own  ownFrames // Display.Own of the Filter
	text []byte    // bytes to hash, reused; hashing values takes five times as long
}

type ownFrames interface {
	Is(function, file, object string) bool
}

// A verdict holds the facts that backtraces with equal rows and frames share.
type verdict struct {
	key   string      // equal for equal backtraces; empty without a frame
	kinds []html.Kind // by row of the backtrace
	known bool        // the page needs no more details of the backtrace
}

// maxSeen bounds the verdicts: 4 MiB, if each has 40 rows.
const maxSeen = 16 << 10

// verdicts.of returns the verdict for a backtrace, and makes it if there is none. role is the role
// of the backtrace in its report.
func (j *verdicts) of(s *backtrace.Stack, role string) *verdict {
	if j.seen == nil {
		j.seed = maphash.MakeSeed()
	}
	text := backtrace.AppendName(j.text[:0], role)
	for i := range s.Rows {
		r := &s.Rows[i]
		if s.IsNamed(i) {
			line := s.Text(i)
			text = append(binary.LittleEndian.AppendUint32(text, uint32(len(line))), line...)
		}
		text = binary.LittleEndian.AppendUint32(text, uint32(r.Frame))
		text = binary.LittleEndian.AppendUint32(text, uint32(r.Answer))
	}
	for i := range s.Answers {
		a := &s.Answers[i]
		if text = backtrace.AppendPlace(text, a); a.Module == "" {
			text = binary.LittleEndian.AppendUint64(text, a.Addr)
		}
		text = binary.LittleEndian.AppendUint32(text, uint32(len(a.Frames)))
		if len(a.Frames) > 0 { // a later lookup may give a better name
			text = backtrace.AppendName(backtrace.AppendName(text, a.Frames[0].Func), a.Frames[0].File)
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

// judge returns a new verdict for a backtrace.
func (j *verdicts) judge(s *backtrace.Stack, role string) *verdict {
	v := &verdict{kinds: make([]html.Kind, len(s.Rows))}
	var own, all []uint64 // hashes of frames' locations, each once even in a recursion
	for i := range s.Rows {
		fr, ok := s.Frame(i)
		if !ok {
			continue
		}
		if v.kinds[i] = kindOf(s, i, &fr, j.own); s.IsChance(i) {
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
		text := backtrace.AppendName(j.text[:0], role)
		for _, place := range all {
			text = binary.LittleEndian.AppendUint64(text, place)
		}
		v.key = strconv.FormatUint(maphash.Bytes(j.seed, text), 16)
	}
	return v
}

// appendFramePlace appends bytes that identify the location of a frame: its function and file, with
// the line or else the offset in the module. If both are unknown, it appends the offset in the
// memory page, which is the same in each process.
func appendFramePlace(dst []byte, fr *findings.TraceFrame) []byte {
	dst = backtrace.AppendName(backtrace.AppendName(dst, fr.Func), fr.File)
	switch {
	case fr.Line > 0:
		return binary.LittleEndian.AppendUint32(dst, fr.Line)
	case fr.Offset == 0:
		return binary.LittleEndian.AppendUint64(backtrace.AppendName(dst, fr.Object), fr.Address&(1<<12-1))
	}
	return binary.LittleEndian.AppendUint64(fr.ID.AppendHex(backtrace.AppendName(dst, fr.Object)), fr.Offset)
}

// kindOf returns the kind of the i-th row of a stack, whose frame is fr.
func kindOf(s *backtrace.Stack, i int, fr *findings.TraceFrame, rules ownFrames) html.Kind {
	own := false
	r := &s.Rows[i]
	switch {
	case backtrace.IsSignalFrame(fr.Func):
	case s.IsAnswered(i):
		own = s.Answers[r.Answer].Own(r.Frame)
	default:
		own = (rules == nil || rules.Is(fr.Func, fr.File, fr.Object)) && !backtrace.EndsProgram(fr.Func)
	}
	switch {
	case !own:
		return html.System
	case r.Answer >= 0 && !s.IsAnswered(i), fr.Func == "":
		return html.Unresolved
	}
	return html.Own
}
