package filter

import (
	"bytes"
	"hash/maphash"
	"slices"

	"github.com/symfilter/symfilter/internal/judge"
)

// A repeat is a stack that the log has printed before, with its results: the frames, the evidence
// for later stacks, and the output. If the same lines occur again, they get these results, and are
// not read, judged and laid out again. The files, the answers and the facts in the log must be
// unchanged.
//
// A stack becomes a repeat if it is held back for the second time and all its frames have answers.
// Its text alone must decide how it is read and printed. The output must be plain text.
type repeat struct {
	text []byte        // the lines of the stack, with line ends
	ends []int         // offsets in text of the ends of the lines
	read []judge.Frame // the frames, one for each line, with their Places
	// inTrace and searched describe how the first line was read: see reading. kept is the number,
	// from 1, of the last line that keeps the trace open, or 0.
	inTrace, searched bool
	kept              int
	stack             *judge.KnownStack

	out      []byte
	proofs   Proofs
	outcomes Outcomes
	turns    uint32 // the Cache's turns when the answers were copied from it
	until    int64  // Unix nanoseconds until which all answers are the best; 0: no limit
}

// A reading describes how a held line was read. It decides whether the line may be part of a
// repeat.
type reading struct {
	alone    bool // only the line's own text decides how it is read and printed
	inTrace  bool // the line was read in a trace
	searched bool // earlier lines were searched for headers
	keeps    bool // the line keeps the trace open
}

// continues reports whether a line with the reading next may follow a line with the reading r in a
// repeat. The text of the next line alone must decide how that line is read.
func (r reading) continues(next reading) bool {
	return next.alone && !next.searched && next.inTrace == (r.inTrace || r.keeps)
}

// Bounds of the repeats of a log. A repeat with 16 frames takes about 16 KiB.
const (
	maxRepeats    = 128
	maxRepeatSize = 2 << 20 // bytes of all repeats
	maxAlike      = 8       // repeats that begin with the same line
	seenBits      = 10      // 1,024 stacks that were held back once
)

// repeats holds the repeats of a log. add keeps its bounds.
type repeats struct {
	seed maphash.Seed
	of   map[uint64][]*repeat // by hash of their first line
	n    int
	size int
	seen *[1 << seenBits]uint32 // hashes of stacks that were held back
}

func newRepeats() *repeats { return &repeats{seed: maphash.MakeSeed()} }

// find returns the longest repeat at the start of b. line is the first line of b; inTrace is set if
// that line is read in a trace.
func (c *repeats) find(b, line []byte, inTrace bool) (found *repeat) {
	for _, r := range c.of[maphash.Bytes(c.seed, line)] {
		if r.inTrace == inTrace && bytes.HasPrefix(b, r.text) && (found == nil || len(r.text) > len(found.text)) {
			found = r
		}
	}
	return found
}

// isNew records that a stack with this text was held back. It reports whether the stack should
// become a repeat: it was held back before, and is not a repeat yet.
func (c *repeats) isNew(text, line []byte, inTrace bool) bool {
	if c.seen == nil {
		c.seen = new([1 << seenBits]uint32)
	}
	hash := maphash.Bytes(c.seed, text)
	if inTrace {
		hash = ^hash
	}
	seen := &c.seen[hash>>(64-seenBits)]
	if *seen != uint32(hash)|1 {
		*seen = uint32(hash) | 1
		return false
	}
	for _, r := range c.of[maphash.Bytes(c.seed, line)] {
		if r.inTrace == inTrace && bytes.Equal(r.text, text) {
			return false
		}
	}
	return true
}

// add adds r, unless r alone exceeds maxRepeatSize. If r would exceed another bound, all other
// repeats are dropped first. If maxAlike repeats begin with the first line of r, it replaces the
// oldest of them.
func (c *repeats) add(r *repeat) {
	const perFrame = 640 // bytes
	size := len(r.text) + len(r.out) + len(r.read)*perFrame
	if size > maxRepeatSize {
		return
	}
	if c.n++; c.n > maxRepeats || c.size+size > maxRepeatSize {
		c.of, c.n, c.size = nil, 1, 0
	}
	c.size += size
	if c.of == nil {
		c.of = make(map[uint64][]*repeat)
	}
	key := maphash.Bytes(c.seed, r.text[:r.ends[0]])
	if alike := c.of[key]; len(alike) == maxAlike {
		c.of[key] = append(alike[:0], alike[1:]...)
	}
	c.of[key] = append(c.of[key], r)
}

// A heldRun is a stack in held lines that may become a repeat.
type heldRun struct {
	from, to int // held lines
	stack    *judge.KnownStack
}

// heldRuns returns the stacks among the held lines that may become repeats. The lines were just
// judged; frames are all frames of these lines.
func (c *repeats) heldRuns(t *tracer, frames []*judge.Frame) (all []heldRun) {
	if c == nil || t.trace == nil {
		return nil
	}
	before := 0 // number of frames in t.buffered[:from]
	for from, to := 0, 0; from < len(t.buffered); from = to {
		end := t.trace.EndOfStack(before)
		frame := before
		for to = from; frame < end && t.isAloneAfter(from, to); to++ {
			frame++
		}
		if to == from {
			before += len(t.buffered[from].frames)
			to++
			continue
		}
		first, last := &t.buffered[from], &t.buffered[to-1]
		if c.isNew(t.text[first.from:last.to], t.text[first.from:first.to], first.inTrace) {
			if known := t.trace.Known(frames, before, frame); known != nil {
				all = append(all, heldRun{from, to, known})
			}
		}
		before = frame
	}
	return all
}

// isAloneAfter reports whether t.buffered[i] may extend a repeat that begins with t.buffered[from].
func (t *tracer) isAloneAfter(from, i int) bool {
	if i >= len(t.buffered) || len(t.buffered[i].frames) != 1 {
		return false
	}
	return i == from && t.buffered[i].alone || i > from && t.buffered[i-1].continues(t.buffered[i].reading)
}

// isAlone reports whether a line with these frames may be part of a repeat: its text alone decides
// how it is printed. The caller checks that the text alone decides how it is read.
func isAlone(text []byte, frames []judge.Frame) bool {
	if len(frames) != 1 || bytes.IndexByte(text, esc) >= 0 || len(text) == 0 || text[len(text)-1] != '\n' {
		return false
	}
	fr := &frames[0]
	return fr.Digits.To == 0 && fr.Below == "" && !fr.PlaceBelow && !fr.Wraps && !fr.Unframed && !fr.Named && !fr.Awaits
}

// learn prints the lines of a stack by calling lay for each of them. If all frames have answers,
// learn adds the stack to the repeats.
func (c *repeats) learn(t *tracer, run heldRun, lay func(b []byte, frames []judge.Frame)) {
	f, n := t.f, run.to-run.from
	first, last := &t.buffered[run.from], &t.buffered[run.to-1]
	r := &repeat{text: bytes.Clone(t.text[first.from:last.to]), stack: run.stack, inTrace: first.inTrace, searched: first.searched}
	f.closeModule()
	start, whole := len(f.ready), true
	before := Stats{Proofs: f.proofs, Outcomes: f.outcomes}
	t.locator.until = 0
	for i := run.from; i < run.to; i++ {
		l, at := &t.buffered[i], len(f.ready)
		t.printed++
		lay(t.text[l.from:l.to], l.frames)
		whole = whole && len(f.ready) > at
		r.ends = append(r.ends, l.to-first.from)
		if l.keeps {
			r.kept = len(r.ends)
		}
		r.read = append(r.read, judge.Clone(l.frames)...)
		r.read[i-run.from].Place.Image = nil // its file may be closed
	}
	if r.out = bytes.Clone(f.ready[min(start, len(f.ready)):]); whole && f.flushed.laid == 0 {
		r.until, r.turns = t.locator.until, f.cached.turns.Load()
		r.proofs, r.outcomes = f.proofs, f.outcomes
		r.proofs.sub(before.Proofs)
		r.outcomes.Sub(&before.Outcomes)
		if raw := &r.outcomes[OriginRaw]; raw[ResultResolved]+raw[ResultSymbolOnly] == int64(n) {
			c.add(r)
		}
	}
	f.sendLarge()
}

// isCurrent reports whether the answers in r are still the best.
func (r *repeat) isCurrent(f *lineFilter) bool {
	return r.turns == f.cached.turns.Load() && (r.until == 0 || f.unixNow() < r.until)
}

func (c *repeats) forget(r *repeat) {
	key := maphash.Bytes(c.seed, r.text[:r.ends[0]])
	c.of[key] = slices.DeleteFunc(c.of[key], func(other *repeat) bool { return other == r })
}

// judgeAgain judges the held lines by the results of their repeats. It returns false if a line with
// a frame has no current repeat, or if JudgeKnown fails. The frames must then be judged from
// scratch.
func judgeAgain(t *tracer) bool {
	t.fold()
	var stacks []*judge.KnownStack
	for i := 0; i < len(t.buffered); i++ {
		switch l := &t.buffered[i]; {
		case l.again != nil:
			if !l.again.isCurrent(t.f) {
				t.repeats.forget(l.again)
				return false
			}
			stacks = append(stacks, l.again.stack)
			i += len(l.again.ends) - 1
		case len(l.frames) > 0:
			return false
		}
	}
	if len(stacks) == 0 || !t.trace.JudgeKnown(stacks, t.reader.Facts()) {
		return false
	}
	t.files.charge(t.reader.Quota())
	return true
}

// fold finds the repeats in held lines that were read one by one, because a block of the input
// ended within the stack.
func (t *tracer) fold() {
	if t.repeats == nil || len(t.repeats.of) == 0 || t.listing || t.maps.buffered || t.maps.complete {
		return
	}
	for i := 0; i < len(t.buffered); {
		l := &t.buffered[i]
		switch {
		case l.again != nil:
			i += len(l.again.ends)
		case len(l.frames) == 0:
			i++
		default:
			r := t.repeats.find(t.text[l.from:], t.text[l.from:l.to], l.inTrace)
			if r == nil || !t.readAs(r, i) {
				return // one stack without a repeat is enough: all stacks are judged together
			}
			for k := range r.ends {
				t.buffered[i+k].frames, t.buffered[i+k].repeated = nil, true
			}
			l.again = r
			i += len(r.ends)
		}
	}
}

// readAs reports whether the results of r apply to t.buffered[first:], which begins with the text
// of r's lines. They apply if the lines were read in the same way, and r is current.
func (t *tracer) readAs(r *repeat, first int) bool {
	l := &t.buffered[first]
	if l.searched != r.searched || l.frames[0].Apart != r.read[0].Apart || !r.isCurrent(t.f) {
		return false
	}
	for i := first; i < first+len(r.ends); i++ {
		l := &t.buffered[i]
		if !t.isAloneAfter(first, i) || !isAlone(t.text[l.from:l.to], l.frames) {
			return false
		}
	}
	return true
}

// unfold gives the held lines of repeats their frames, so that they are judged like other lines.
func unfold(held []bufferedLine) {
	for i := range held {
		r := held[i].again
		if r == nil {
			continue
		}
		for k := range r.ends {
			held[i+k].frames, held[i+k].again = judge.Clone(r.read[k:k+1]), nil
		}
	}
}

// printAgain prints the kept output of r, and counts its frames.
func printAgain(t *tracer, r *repeat) {
	f, n := t.f, len(r.ends)
	f.closeModule()
	f.line += int64(n)
	f.dictLookups = 0
	f.printOf(f.line)
	f.ready = append(f.ready, r.out...)
	f.elements += n
	f.answered += n
	f.proofs.Add(r.proofs)
	for result, count := range r.outcomes[OriginRaw] {
		f.outcomes[OriginRaw][result] += count
	}
	t.locator.stacks[0] = stack{}
	t.maps.keep(r.read)
	f.sendLarge()
}
