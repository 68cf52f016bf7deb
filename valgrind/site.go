package valgrind

import (
	"bytes"
	"debug/elf"
	"time"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// A site is a physical frame of a stack: a function with the calls inlined into it.
type site struct {
	number uint64  // index in its stack, from 0
	frames []Frame // the report's frames, innermost first
	at     *epoch  // epoch of its object; nil if unknown
	addr   uint64  // address to print in a markup element
	kind   markup.PCKind
	rel    uint64 // address to look up in the object's file
	ended  bool   // the site is the trampoline that ends a signal handler
}

// appendSites appends the sites of a stack. Successive frames at one address are one site: a
// function with its inlined calls. If a sequence of names and lines repeats at that address, each
// repetition is a site, since the function calls itself.
func (t *tracker) appendSites(dst []site, frames []Frame) []site {
	number := uint64(0)
	for i := 0; i < len(frames); {
		n := 1
		for i+n < len(frames) && haveSameAddress(&frames[i], &frames[i+n]) && n < maxItems {
			n++
		}
		end := i + n
		p := min(period(frames[i:end]), maxInline)
		for ; i < end; i = min(end, i+p) {
			s := site{number: number, frames: frames[i:min(end, i+p)]}
			t.locateSite(&s, dst, number)
			dst = append(dst, s)
			number++
		}
	}
	return dst
}

// haveSameAddress reports whether two successive frames are at one address.
func haveSameAddress(a, b *Frame) bool { return a.IP == b.IP && a.RawIP == nil && b.RawIP == nil }

// period returns the length of the shortest sequence that, repeated, makes up frames.
func period(frames []Frame) int {
	return report.Period(len(frames), func(i, j int) bool { return areEqual(&frames[i], &frames[j]) })
}

func areEqual(a, b *Frame) bool {
	return a.Line == b.Line && bytes.Equal(a.Fn, b.Fn) && bytes.Equal(a.File, b.File) && bytes.Equal(a.Dir, b.Dir)
}

// locateSite sets the epoch and the addresses of s. The report has the exact address of a stack's
// first frame. The addresses of other frames are one byte too low, except on MIPS.
func (t *tracker) locateSite(s *site, before []site, number uint64) {
	f := &s.frames[len(s.frames)-1]
	s.at = t.epochOf(f)
	s.addr, s.kind = f.IP, markup.Precise
	if number > 0 {
		s.addr++
		s.kind = markup.ReturnAddress
		if before[len(before)-1].ended || s.at != nil && t.isTrampoline(s) {
			s.kind = markup.Precise
		}
	}
	if s.at == nil {
		return
	}
	// on MIPS, the report has the address of the call, eight bytes before the return address
	if m := s.at.of.file.Image.Machine; m == elf.EM_MIPS {
		s.addr, s.kind = f.IP, markup.Precise
	}
	s.rel = s.addr - s.at.bias
	if s.kind == markup.ReturnAddress {
		s.rel--
	}
}

// isTrampoline reports whether s is the trampoline that ends a signal handler, and sets s.ended.
// The address of a trampoline is exact, since the handler returns to its beginning.
func (t *tracker) isTrampoline(s *site) bool {
	slot := &s.at.returns[s.addr%uint64(len(s.at.returns))]
	if slot.addr == s.addr {
		s.ended = slot.is
		return s.ended
	}
	f := s.at.of.file
	f.safely(func() { s.ended = f.endsHandler(s.addr - s.at.bias) })
	*slot = returns{s.addr, s.ended}
	return s.ended
}

// A returns is a cached result of isTrampoline.
type returns struct {
	addr uint64
	is   bool
}

// An answerer looks up sites with the symbolizer, and caches the answers.
type answerer struct {
	*report.Asker
	known     map[placeKey]*answer
	variables map[placeKey]symbolize.Variable
	time      time.Time // time of the current record; zero until needed
}

type answer struct {
	frames []symbolize.Frame
	err    error
	until  time.Time // expiry of the answer; zero if never

	// The last site with which improvesOn compared the answer, and the result.
	compared  Frame // the outermost function of the site
	depth     int   // number of the site's frames
	wasBetter bool

	json jsonout.Buffer // frames as printed; empty before the first print
}

// A placeKey identifies an address in an object of a process.
type placeKey struct {
	at  *epoch
	rel uint64
}

func newAnswerer(o *report.Options) *answerer {
	return &answerer{Asker: report.NewAsker(o), known: make(map[placeKey]*answer), variables: make(map[placeKey]symbolize.Variable)}
}

func (a *answerer) answerFor(s *site) *answer {
	if known := a.keptAnswer(s); known != nil {
		return known
	}
	return a.keepAnswer(s, a.Frames(nil, s.at.of.file.Object, s.rel))
}

// hasNoSymbol reports whether no symbol covers a located site. It does not wait, and returns false
// if the debug file is still searched for.
func (a *answerer) hasNoSymbol(s *site) bool {
	known := a.keptAnswer(s)
	if known == nil {
		got := a.AtOnce(nil, s.at.of.file.Object, s.rel)
		if got.Err != nil {
			return false
		}
		known = a.keepAnswer(s, got)
	}
	return len(known.frames) == 0
}

// keptAnswer returns the kept answer for a site, or nil if there is none or it has expired.
func (a *answerer) keptAnswer(s *site) *answer {
	known := a.known[placeKey{s.at, s.rel}]
	if known != nil && !known.until.IsZero() && a.now().After(known.until) {
		return nil
	}
	return known
}

// keepAnswer returns an answer, and caches it if from.Kept is set. The answer that no symbol covers
// a site expires after nothingHolds, since a debug file may arrive.
func (a *answerer) keepAnswer(s *site, from report.Answer) *answer {
	got := &answer{frames: from.Frames, err: from.Err, until: from.Until}
	if !from.Kept {
		return got
	}
	if len(got.frames) == 0 {
		got.until = a.now().Add(nothingHolds)
	}
	if len(a.known) >= maxAnswers {
		clear(a.known)
	}
	a.known[placeKey{s.at, s.rel}] = got
	return got
}

// now returns the current time, which it reads only once for each record.
func (a *answerer) now() time.Time {
	if a.time.IsZero() {
		a.time = time.Now()
	}
	return a.time
}

// improvesOn reports whether an answer adds to the frames of a site in the report. If the report
// has a line for the site, Valgrind had the debug file. Then the answer must agree with the report,
// and adds only columns and whole names.
func (a *answer) improvesOn(s *site) bool {
	if len(a.frames) == 0 {
		return false
	}
	last := &s.frames[len(s.frames)-1]
	if len(s.frames) == 1 && a.depth == 1 && areEqual(last, &a.compared) {
		return a.wasBetter
	}
	a.depth, a.wasBetter = len(s.frames), a.hasMore(s, last)
	a.compared = Frame{Fn: bytes.Clone(last.Fn), Dir: bytes.Clone(last.Dir), File: bytes.Clone(last.File), Line: last.Line}
	return a.wasBetter
}

func (a *answer) hasMore(s *site, last *Frame) bool {
	if last.Line != 0 {
		return a.agrees(s)
	}
	outer := &a.frames[len(a.frames)-1]
	line, named := false, outer.Func != ""
	for i := range a.frames {
		line = line || a.frames[i].HasLine
	}
	if last.Fn == nil {
		return line || named
	}
	if _, is := replacedName(outer.Linkage); is { // the report has the replaced function
		return false
	}
	return line
}

// agrees reports whether an answer and the report have the same functions and lines.
func (a *answer) agrees(s *site) bool {
	if len(a.frames) != len(s.frames) {
		return false
	}
	for i := range a.frames {
		got, f := &a.frames[i], &s.frames[i]
		if uint64(got.Line) != f.Line || baseName(got.File) != string(base(f.File)) {
			return false
		}
		fn := string(f.Fn)
		if report.Closed(got.Func) == report.Closed(fn) || got.Linkage == fn {
			continue
		}
		if !got.Inlined || identifier(got.Func) != identifier(fn) { // Valgrind prints bare names for inlined calls
			return false
		}
	}
	return true
}
