package valgrind

import (
	"bytes"
	"debug/elf"
	"time"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A site is one physical frame of a stack: a function, and the calls that were
// inlined into it.
type site struct {
	number uint64  // in its stack
	frames []Frame // as the report has them, innermost first
	at     *epoch  // where its object is; nil: not known
	addr   uint64  // the address, as an element has it
	kind   markup.PCKind
	rel    uint64 // what is looked up, in the object's file
	ended  bool   // a handler of signals: it is the code that returns to what was interrupted
}

// sites returns the physical frames of a stack. Frames at one address in a row
// are one function with its inlined calls, or a function that calls itself: as
// often as their names and lines repeat.
func (t *tracker) sites(dst []site, frames []Frame) []site {
	number := uint64(0)
	for i := 0; i < len(frames); {
		n := 1
		for i+n < len(frames) && together(&frames[i], &frames[i+n]) && n < maxItems {
			n++
		}
		end := i + n
		p := min(period(frames[i:end]), maxInline) // nothing inlines that deep
		for ; i < end; i = min(end, i+p) {
			s := site{number: number, frames: frames[i:min(end, i+p)]}
			t.locate(&s, dst, number)
			dst = append(dst, s)
			number++
		}
	}
	return dst
}

// together reports whether frames in a row are at one address.
func together(a, b *Frame) bool { return a.IP == b.IP && a.RawIP == nil && b.RawIP == nil }

// period returns the length of the shortest piece that frames are repetitions
// of.
func period(frames []Frame) int {
	n := len(frames)
next:
	for p := 1; p <= n/2; p++ {
		if n%p != 0 {
			continue
		}
		for i := p; i < n; i++ {
			if !equal(&frames[i], &frames[i-p]) {
				continue next
			}
		}
		return p
	}
	return n
}

func equal(a, b *Frame) bool {
	return a.Line == b.Line && bytes.Equal(a.Fn, b.Fn) && bytes.Equal(a.File, b.File) && bytes.Equal(a.Dir, b.Dir)
}

// locate fills in where s is. The first frame's address is exact. Callers have
// that of the return address less one byte, and so has what a signal
// interrupted, which is no caller.
func (t *tracker) locate(s *site, before []site, number uint64) {
	f := &s.frames[len(s.frames)-1]
	s.at = t.place(f)
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
	if m := s.at.of.file.Image.Machine; m == elf.EM_MIPS { // less eight there: within the call
		s.addr, s.kind = f.IP, markup.Precise
	}
	s.rel = s.addr - s.at.bias
	if s.kind == markup.ReturnAddress {
		s.rel--
	}
}

// isTrampoline notes and reports whether s is the code that ends a signal
// handler: the system call sigreturn. Nothing calls it: its address is that
// which the handler returns to.
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

// returns says whether the code at addr ends a signal handler.
type returns struct {
	addr uint64
	is   bool
}

// An answerer asks the symbolizer for sites. Its answers are kept.
type answerer struct {
	*report.Asker
	known     map[placeKey]*answer
	variables map[placeKey]symbolize.Variable
	time      time.Time // of the current record; zero if nothing has asked for it yet
}

// answer is what a site is, by the symbolizer.
type answer struct {
	frames []symbolize.Frame
	err    error
	until  time.Time // it holds till then; zero: for good

	compared Frame          // the last function that it was compared with,
	depth    int            // and its inlined calls, as many,
	said     bool           // and what better said then
	json     jsonout.Buffer // frames, once they were printed
}

// placeKey is a place in the code of a process.
type placeKey struct {
	at  *epoch
	rel uint64
}

func newAnswerer(o *report.Options) *answerer {
	return &answerer{Asker: report.NewAsker(o), known: make(map[placeKey]*answer), variables: make(map[placeKey]symbolize.Variable)}
}

// ask returns the frames of a site that has a place.
func (a *answerer) ask(s *site) *answer {
	if known := a.remembered(s); known != nil {
		return known
	}
	return a.remember(s, a.Frames(nil, s.at.of.file.Object, s.rel))
}

// knowsNothing reports whether no symbol covers a site that has a place, as far
// as can be said without waiting.
func (a *answerer) knowsNothing(s *site) bool {
	known := a.remembered(s)
	if known == nil {
		got := a.AtOnce(nil, s.at.of.file.Object, s.rel)
		if got.Err != nil {
			return false
		}
		known = a.remember(s, got)
	}
	return len(known.frames) == 0
}

// remembered returns the answer for a site that was given before and holds; nil
// if there is none.
func (a *answerer) remembered(s *site) *answer {
	known := a.known[placeKey{s.at, s.rel}]
	if known != nil && !known.until.IsZero() && a.now().After(known.until) {
		return nil
	}
	return known
}

// remember keeps an answer, if it is one. That no symbol covers a site holds for
// a while: a debug file may come.
func (a *answerer) remember(s *site, from report.Answer) *answer {
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

// now returns the time, which is asked for once in a record.
func (a *answerer) now() time.Time {
	if a.time.IsZero() {
		a.time = time.Now()
	}
	return a.time
}

// better reports whether an answer says more of a site than the report does. A
// report with lines was made where the debug files are: it is told again only
// by an answer that says the same, and more exactly.
func (a *answer) better(s *site) bool {
	if len(a.frames) == 0 {
		return false
	}
	last := &s.frames[len(s.frames)-1]
	if len(s.frames) == 1 && a.depth == 1 && equal(last, &a.compared) {
		return a.said
	}
	said := a.isBetter(s, last)
	a.depth, a.said = len(s.frames), said
	a.compared = Frame{Fn: bytes.Clone(last.Fn), Dir: bytes.Clone(last.Dir), File: bytes.Clone(last.File), Line: last.Line}
	return said
}

func (a *answer) isBetter(s *site, last *Frame) bool {
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
	if _, is := replaced(outer.Linkage); is { // the report has the name of what was replaced
		return false
	}
	return line
}

// agrees reports whether an answer has the functions and lines of the report.
func (a *answer) agrees(s *site) bool {
	if len(a.frames) != len(s.frames) {
		return false
	}
	for i := range a.frames {
		got, f := &a.frames[i], &s.frames[i]
		if uint64(got.Line) != f.Line || base(got.File) != string(f.File[lastSlash(f.File):]) {
			return false
		}
		fn := string(f.Fn)
		if report.Closed(got.Func) == report.Closed(fn) || got.Linkage == fn {
			continue
		}
		if !got.Inlined || identifier(got.Func) != identifier(fn) { // of inlined calls Valgrind has the bare name
			return false
		}
	}
	return true
}
