package judge

import (
	"cmp"
	"debug/elf"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A program that may be loaded anywhere, and prints only addresses, still shows where it was
// loaded. A call ends at each return address. An address therefore votes for each load bias that
// puts the address at the end of a call in the file. A vote for a wrong bias is a coincidence. Its
// probability is the share of the file's pages in which a call ends at the same offset. A call that
// also leads to the function of the called frame is rarer still. A bias is inferred if a wrong bias
// would have as much evidence in fewer than one of 2^inferredBits traces, among all biases and
// files tried.

// Limits of the inference.
const (
	inferredBits  = 30 // bits of a proof: a wrong base has them in less than one of 10^9 traces
	runnerUpBits  = 20 // bits by which the best bias must lead the second best
	leastVotes    = 3  // return addresses at which a call must end
	usualVotes    = 5  // return addresses that most files need
	maxCandidates = 16 // biases with the most votes that are weighed
	// bits subtracted for a return address without a call, if the previous frame is not in the
	// file; two such frames refute the bias
	strayBits     = 8.0
	maxLinkWeight = 13  // maximum bits of a call that leads to the function of the called frame
	maxWeighed    = 512 // frames of a trace that are weighed
)

// jumpShare bounds the share of calls to other files that go through a jump in a function of this
// file. In the stacks of TestBasesOfRealStacksAreInferred, none of the 6,947 calls to other files
// does.
const jumpShare = 1.0 / 8

// An Inference is the evidence for a load bias of a file, from return addresses alone.
type Inference struct {
	Votes    int     // return addresses at which a call of the file ends
	Links    int     // calls among them that lead to the function of the called frame
	RunnerUp int     // votes for the second best load bias
	Biases   int     // load biases that were tried
	Bits     float64 // a wrong load bias has as much evidence in one of 2^Bits traces
}

// String describes the evidence in one sentence for people.
func (in *Inference) String() string {
	return fmt.Sprintf("calls end at %d return addresses, and %d of these calls lead to the next frame; of %d other bases, the best has calls before %d return addresses; a wrong base has evidence this strong in one of 10^%d traces",
		in.Votes, in.Links, max(in.Biases-1, 0), in.RunnerUp, in.decades())
}

// decades returns the odds against a wrong base as an exponent of ten.
func (in *Inference) decades() int { return int(max(in.Bits, 0) * math.Log10(2)) }

// proves reports whether the evidence proves the load bias.
func (in *Inference) proves() bool { return in.Votes >= leastVotes && in.Bits >= inferredBits }

// A voter is one of the distinct return addresses of a trace.
type voter struct {
	addr uint64
	call dialect.Call
	bits float64 // weight of its vote
	// weights of its vote if the called frame is in another file: leaving if the call may lead to
	// that file, staying if only a jump in this file could lead there
	leaving, staying float64
}

type candidate struct {
	bias  uint64
	votes int
}

// infer looks for the load bias of v's file from the return addresses of frames. Some of these
// frames are in the file. frames are in the order of the log. infer repeats a search only if the
// number of addresses has grown by more than a quarter.
func (t *Trace) infer(v *verdict, frames []*Frame) {
	frames = frames[:min(len(frames), maxWeighed)]
	voters := votersOf(frames)
	if len(voters) == 0 || v.voted > 0 && len(voters) < v.voted+1+v.voted/4 {
		return
	}
	v.voted = len(voters)
	e := election{trace: t, image: v.image, frames: frames, voters: voters, files: t.files}
	if t.inferAsBefore(v, &e) {
		return
	}
	page := voters[0].addr &^ (pageSize - 1)
	key := e.question(page).sum()
	found, known := t.remembered().inferred.get(key, maxSearched)
	if !known {
		held, whole := t.hold(v, &e)
		if !held {
			return
		}
		found = inferred{distance: e.best.bias - page, by: v.inference}
		if whole {
			t.remembered().inferred.put(key, found, maxSearched)
		}
	}
	if v.inference = found.by; v.inference.proves() {
		v.loadAt(page + found.distance)
		if process, one := e.process(); one {
			t.remembered().bases.put(process, v.bias, maxSearched)
		}
		if t.Inferred != nil {
			t.Inferred(v.image, v.bias+v.image.lowest(), v.inference)
		}
	}
}

// hold makes voters vote, and sets v.inference. If the remaining work does not suffice for all
// voters, only the first ones vote. held is false if no election takes place: the file has no code
// or too much code, or too few voters could vote. whole is true if all voters have voted, and the
// quota is not used up.
func (t *Trace) hold(v *verdict, e *election) (held, whole bool) {
	pages := v.image.codePages()
	left := max(0, min(maxBiasWork-t.worked, t.quota().Left()))
	if pages == 0 {
		return false, false
	}
	if pages > maxBiases || left/pages < min(leastVotes, len(e.voters)) {
		v.voted, v.cut = 0, true
		return false, false
	}
	all := len(e.voters)
	e.voters = e.voters[:min(all, left/pages)]
	work := len(e.voters)*pages + maxCandidates*len(e.frames)
	t.worked += work
	t.quota().Spend(work)
	e.vote()
	v.inference = e.winner()
	if lack := inferredBits - v.inference.Bits; lack > 0 && lack <= refinedBits {
		work := e.refine(&v.inference, max(0, min(maxBiasWork-t.worked, t.quota().Left())))
		t.worked += work
		t.quota().Spend(work)
	}
	return true, len(e.voters) == all && t.quota().Left() > 0
}

// An inferred is the result of an election, as stored in a Memory. distance is the load bias minus
// the page of the first voter, so it does not depend on the load address.
type inferred struct {
	distance uint64
	by       Inference
}

// question returns the key of the election's result in a Memory. The key does not depend on the
// load address: the addresses are relative to page, the page of the first voter.
func (e *election) question(page uint64) question {
	q := about(e.image).number(uint64(e.files))
	for _, f := range e.frames {
		q = q.number(f.Addr - page).number(uint64(f.Call)).number(uint64(int64(f.Number)))
	}
	return q
}

// process returns a hash that identifies the file and the process of the frames. one is false if
// the frames are from several processes.
func (e *election) process() (question sum, one bool) {
	number := e.frames[0].process()
	for _, f := range e.frames {
		if f.process() != number {
			return question, false
		}
	}
	return about(e.image).number(number).sum(), true
}

// process returns the number of the process of f, or 0 if the log does not show it.
func (f *Frame) process() uint64 { return max(f.Process, f.PID) }

// Bits of evidence that frames have the load bias of an earlier trace of their process.
// sameProcessBits count if the log shows the number of the process, and an address is 4 GiB or
// more. priorBits count if only one of the two is true. A 64-bit program is loaded at one of 2^28
// pages, so an address from another process is rarely in the file's code at this bias.
const sameProcessBits, priorBits = 30, 16

// inferAsBefore gives v the load bias of an earlier trace of the process, if the return addresses
// support this bias. It reports whether they do.
func (t *Trace) inferAsBefore(v *verdict, e *election) bool {
	process, one := e.process()
	bias, known := t.remembered().bases.get(process, maxSearched)
	if !one || !known {
		return false
	}
	e.weighAlike()
	in := e.weigh(candidate{bias: bias})
	f := e.frames[0]
	// a 32-bit process is loaded at one of few pages
	numbered, wide := f.process() != 0, f.Addr>>32 != 0
	switch {
	case numbered && wide:
		in.Bits += sameProcessBits
	// a restarted program may get the same number, as in a container
	case numbered || wide:
		in.Bits += priorBits
	}
	// a single vote may be from a later program with the same process number
	if in.Votes < 2 || in.Bits < inferredBits {
		return false
	}
	v.loadAt(bias)
	v.inference = in
	return true
}

// loadAt sets the load bias, which was inferred from calls before return addresses.
func (v *verdict) loadAt(bias uint64) { v.bias, v.biased, v.inferred = bias, true, true }

// A BaseError is the reason why addresses are not located in a file that may be loaded anywhere:
// too few return addresses support one load bias.
type BaseError struct {
	Path      string
	Inference Inference // for the best load bias
	// approximate number of further return addresses that would prove the bias; 0 if no bias fits
	// enough addresses
	More int
}

// Error describes the evidence in the trace, and how to get more.
func (e *BaseError) Error() string {
	const instead = "log /proc/self/maps, or give --image FILE@BASE"
	if e.More == 0 {
		return "no base of " + e.Path + " puts calls before the return addresses: another file ran, or most of the addresses are in other files; " + instead
	}
	return fmt.Sprintf("too few return addresses show where %s was loaded: %d follow a call at the best base, but a wrong base has as many in one of 10^%d traces; about %d more would prove the base; otherwise %s",
		e.Path, e.Inference.Votes, e.Inference.decades(), e.More, instead)
}

// unproven returns the reason why v has no load bias.
func (v *verdict) unproven() error {
	if v.cut {
		return ErrBudget
	}
	e := &BaseError{Path: v.image.Path, Inference: v.inference}
	in := &v.inference
	switch {
	case in.Votes > 1 && in.Bits > 0:
		perVote := (in.Bits + math.Log2(float64(in.Biases))) / float64(in.Votes)
		e.More = int(math.Ceil(max(inferredBits-in.Bits, 1) / perVote))
	case v.voted < usualVotes:
		e.More = usualVotes - v.voted
	}
	return e
}

// votersOf returns the distinct return addresses of frames, at most maxSightings.
func votersOf(frames []*Frame) (all []voter) {
	for _, f := range frames {
		if len(all) == maxSightings {
			break
		}
		if isReturn(f) && !slices.ContainsFunc(all, func(v voter) bool { return v.addr == f.Addr }) {
			all = append(all, voter{addr: f.Addr, call: f.Call})
		}
	}
	return all
}

// isReturn reports whether f has a return address, unlike the frame of a fault.
func isReturn(f *Frame) bool {
	return f.Call == dialect.Return || f.Call == dialect.Adjusted && f.Number != 0
}

// code yields the segments of m that contain code.
func (m *Image) code() iter.Seq[object.Segment] {
	return func(yield func(object.Segment) bool) {
		for _, s := range m.Segments {
			if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && s.FileSize > 0 && !yield(s) {
				return
			}
		}
	}
}

// codePages returns an upper bound of the number of pages with code in m. It counts at most
// maxBiases+1 pages for a segment.
func (m *Image) codePages() (pages int) {
	for s := range m.code() {
		pages += int(min(s.FileSize/pageSize+2, maxBiases+1))
	}
	return pages
}

func (m *Image) codeSize() (size uint64) {
	for s := range m.code() {
		size += s.FileSize
	}
	return size
}

// An election finds the load bias with the most evidence for a file.
type election struct {
	trace  *Trace
	image  *Image
	frames []*Frame
	voters []voter
	files  int // number of files tried for these frames: each may get a wrong base

	tried      int // different load biases that put a voter into the code
	candidates []candidate
	best       candidate
}

// vote counts the votes for each load bias that puts a voter into the code, and sets the weight of
// each voter's vote. It sets e.candidates to the biases with the most votes, at least two each.
func (e *election) vote() {
	var votes []uint64
	var all []biasRange
	for i := range e.voters {
		v := &e.voters[i]
		before, tried, leaving := len(votes), 0, 0
		for s := range e.image.code() {
			// first is the lowest address of the segment at the same offset in a page as v.addr.
			// Addresses above v.addr are not tried, since no bias is negative.
			first, last := s.Addr+(v.addr-s.Addr)&(pageSize-1), min(s.Addr+s.FileSize-1, v.addr)
			if first < s.Addr || first > last {
				continue
			}
			pages := (last-first)/pageSize + 1
			for page := range pages {
				at := first + page*pageSize
				if !e.image.isCode(at - 1) {
					// without code there, the address is neither for nor against the bias
					continue
				}
				tried++
				if yes, _ := e.image.followsCall(at, v.call); yes {
					votes = append(votes, v.addr-at)
					if e.image.File.CallMayLeave(e.image.callEnd(at, v.call)) {
						leaving++
					}
				}
			}
			all = append(all, biasRange{v.addr - (first + (pages-1)*pageSize), v.addr - first})
		}
		rarity := func(n int) float64 { return math.Log2(float64(tried+1) / float64(n+1)) }
		v.bits = rarity(len(votes) - before)
		v.leaving, v.staying = rarity(leaving)+math.Log2(1-jumpShare), rarity(len(votes)-before-leaving)+math.Log2(jumpShare)
	}
	e.tried = different(all)
	slices.Sort(votes)
	for i := 0; i < len(votes); {
		n := 1
		for i+n < len(votes) && votes[i+n] == votes[i] {
			n++
		}
		if n > 1 {
			e.candidates = append(e.candidates, candidate{votes[i], n})
		}
		i += n
	}
	slices.SortStableFunc(e.candidates, func(a, b candidate) int { return cmp.Compare(b.votes, a.votes) })
	e.candidates = e.candidates[:min(len(e.candidates), maxCandidates)]
}

// weighAlike gives the vote of each voter the same weight, callBits. It is for a bias from an
// earlier trace or from a mapping, for which no search has computed weights.
func (e *election) weighAlike() {
	for i := range e.voters {
		v := &e.voters[i]
		v.bits, v.leaving, v.staying = callBits, callBits, callBits
	}
}

// A biasRange has the load biases from low to high, a page apart.
type biasRange struct{ low, high uint64 }

// different returns the number of distinct load biases in the ranges all, which it sorts.
func different(all []biasRange) (n int) {
	slices.SortFunc(all, func(a, b biasRange) int { return cmp.Compare(a.low, b.low) })
	next := uint64(0) // the lowest load bias that is not counted yet
	for _, r := range all {
		if low := max(r.low, next); low <= r.high {
			n += int((r.high-low)/pageSize) + 1
			next = r.high + pageSize
		}
	}
	return n
}

// winner returns the inference for the best candidate, and sets e.best to this candidate. If the
// best candidate leads the second best by less than runnerUpBits, Bits of the result are at most
// this lead.
func (e *election) winner() (best Inference) {
	best.Bits = math.Inf(-1)
	second := math.Inf(-1)
	for _, c := range e.candidates {
		in := e.weigh(c)
		switch {
		case in.Bits > best.Bits:
			second = best.Bits
			in.RunnerUp = best.Votes
			best, e.best = in, c
		case in.Bits > second:
			second = in.Bits
			best.RunnerUp = max(best.RunnerUp, in.Votes)
		}
	}
	best.Biases = e.tried
	if best.Bits-second < runnerUpBits {
		best.Bits = min(best.Bits, best.Bits-second)
	}
	return best
}

// weigh returns the evidence of the frames for a candidate. Its Bits are minus infinity if the
// frames refute the candidate.
func (e *election) weigh(c candidate) (in Inference) {
	in.Bits = -math.Log2(float64(max(e.tried, 1))) - math.Log2(float64(max(e.files, 1)))
	var voted []uint64
	strays, contradictions := 0, 0
	for i, f := range e.frames {
		addr := f.Addr - c.bias
		if !isReturn(f) || f.Addr < c.bias || !e.image.isCode(addr-1) || slices.Contains(voted, addr) {
			continue
		}
		if e.atTrampoline(i, c.bias) {
			voted = append(voted, addr)
			in.Bits += max(0, e.placeBits(len(e.frames))-1) // a file may have two trampolines
			continue
		}
		if e.isInterrupted(i, c.bias) {
			continue
		}
		if yes, _ := e.image.followsCall(addr, f.Call); !yes {
			// after a frame in another file, this frame may have been interrupted by a signal
			if i == 0 || e.has(e.frames[i-1], c.bias) {
				in.Bits = math.Inf(-1)
				return in
			}
			strays++
			continue
		}
		voted = append(voted, addr)
		in.Votes++
		in.Bits += e.callBits(i, c.bias) + e.startBits(i, c.bias)
		if i > 0 {
			if bits, how := e.link(f, e.frames[i-1], c.bias); how != unlinked {
				in.Links++
				in.Bits += bits
			} else if e.contradicts(f, e.frames[i-1], c.bias) {
				contradictions++
				in.Bits -= contradictionBits
			}
		}
	}
	if strays > 1 || contradictions > mostContradictions+len(voted)/16 {
		in.Bits = math.Inf(-1)
	}
	in.Bits -= strayBits * float64(strays)
	return in
}

// has reports whether, with this bias, f is in the code of the file.
func (e *election) has(f *Frame, bias uint64) bool {
	return f.Addr >= bias && e.image.isCode(f.Addr-bias)
}

// callBits returns the weight, in bits, of the call that ends at frame i's return address.
func (e *election) callBits(i int, bias uint64) float64 {
	addr := e.frames[i].Addr
	at := slices.IndexFunc(e.voters, func(v voter) bool { return v.addr == addr })
	switch {
	case at < 0:
		return 0 // the limit of the work was reached before its vote
	case i == 0 || e.has(e.frames[i-1], bias) || !follows(e.frames[i], e.frames[i-1]):
		return e.voters[at].bits
	case e.image.File.CallMayLeave(e.image.callEnd(addr-bias, e.frames[i].Call)):
		return e.voters[at].leaving
	}
	return e.voters[at].staying
}
