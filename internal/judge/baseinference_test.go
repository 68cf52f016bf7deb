package judge

import (
	"debug/elf"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/testenv"
)

// placeOf judges frames with these addresses and without a module, and returns them. The frames are
// innermost first, and m is the operator's file.
func placeOf(m *Image, memory *Memory, addrs []uint64) []*Frame {
	frames := framesOf(0, addrs)
	t := Trace{Memory: memory, Unnamed: func() []*Image { return []*Image{m} }}
	t.Judge(frames, &dialect.Facts{})
	return frames
}

// framesOf returns frames with these addresses. process is the number of their process, or 0 if the
// log has none.
func framesOf(process uint64, addrs []uint64) (frames []*Frame) {
	for i, addr := range addrs {
		f := dialect.Frame{Dialect: named("rust"), Number: i, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Runtime, Addr: addr, Value: addr, Call: dialect.Return}}
		f.Process = process
		frames = append(frames, frame(f))
	}
	return frames
}

// at returns addrs, addresses in a file, moved by the load bias.
func at(bias uint64, addrs []uint64) (all []uint64) {
	for _, addr := range addrs {
		all = append(all, addr+bias)
	}
	return all
}

// draw returns n random elements of all, which may repeat.
func draw(rng *rand.Rand, all []uint64, n int) (some []uint64) {
	for range n {
		some = append(some, all[rng.IntN(len(all))])
	}
	return some
}

// located returns the number of located frames, and the number of located frames whose address is
// not the one in want.
func located(frames []*Frame, want []uint64) (found, wrong int) {
	for i, f := range frames {
		if f.Place.Err == nil && f.Place.Verified != "" {
			found++
			if i >= len(want) || f.Place.Addr != want[i]-1 {
				wrong++
			}
		}
	}
	return found, wrong
}

// A program's load bias must be inferred from its return addresses alone. The test draws them at
// random, so no call leads from one frame to the next. Real traces need fewer frames.
func TestBasesAreInferredFromReturnAddresses(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(3, 4))
	trials := fuzztest.LongOr(500, 50)
	for _, c := range []struct{ frames, least int }{{2, 0}, {4, 0}, {12, trials * 9 / 10}, {16, trials}, {40, trials}} {
		found := 0
		for range trials {
			bias := 0x550000000000 + rng.Uint64N(1<<28)*pageSize
			addrs := draw(rng, returns, c.frames)
			// addresses of a library
			other := at(0x7f0000000000+rng.Uint64N(1<<28)*pageSize, draw(rng, returns, 3))
			got, wrong := located(placeOf(m, nil, append(at(bias, addrs), other...)), addrs)
			if wrong > 0 || got != 0 && got != c.frames {
				t.Fatalf("%d frames: %d are placed, %d of them wrong", c.frames, got, wrong)
			}
			found += min(got, 1)
		}
		t.Logf("%d frames: %d of %d found", c.frames, found, trials)
		if found < c.least {
			t.Errorf("%d frames: the base is inferred %d times of %d, want %d", c.frames, found, trials, c.least)
		}
	}
}

// No frame may be located at a wrong address if some or all addresses of a trace do not fit the
// file. bias is 0 if no address fits.
func TestWrongBasesAreNotInferred(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(5, 6))
	base := func() uint64 { return 0x550000000000 + rng.Uint64N(1<<28)*pageSize }
	text, _ := m.File.Section(".text")
	for _, c := range []struct {
		name  string
		addrs func(n int) (addrs []uint64, bias uint64)
	}{
		{"of another build, whose code is moved by less than a page from some function on", func(n int) ([]uint64, uint64) {
			bias, from, by := base(), returns[rng.IntN(len(returns))], 16*(1+rng.Uint64N(200))
			addrs := draw(rng, returns, n)
			for i := range addrs {
				if addrs[i] >= from || i == 0 {
					addrs[i] += by
				}
			}
			return at(bias, addrs), bias
		}},
		{"none of which returns", func(n int) ([]uint64, uint64) {
			addrs := draw(rng, returns, n)
			for i := range addrs {
				addrs[i] += 1 + rng.Uint64N(3)
			}
			return at(base(), addrs), 0
		}},
		{"anywhere in the code", func(n int) (addrs []uint64, bias uint64) {
			bias = base()
			for range n {
				addrs = append(addrs, bias+text.Addr+rng.Uint64N(text.Size))
			}
			return addrs, bias
		}},
		{"each of another process", func(n int) (addrs []uint64, bias uint64) {
			for range n {
				addrs = append(addrs, at(base(), draw(rng, returns, 1))...)
			}
			return addrs, 0
		}},
		{"two of which are wrong", func(n int) ([]uint64, uint64) {
			bias := base()
			addrs := at(bias, draw(rng, returns, n))
			for _, i := range rng.Perm(n)[:2] {
				addrs[i] += 3
			}
			return addrs, bias
		}},
	} {
		trials := fuzztest.LongOr(2000, 60)
		for range trials {
			n := 3 + rng.IntN(38)
			addrs, bias := c.addrs(n)
			for _, f := range placeOf(m, nil, addrs) {
				if f.Place.Err == nil && (bias == 0 || f.Place.Addr+bias+1 != f.Addr) {
					t.Errorf("addresses %s: %#x of %d addresses is placed at %#x, the load bias is %#x", c.name, f.Addr, n, f.Place.Addr, bias)
				}
			}
		}
	}
}

// A base must be proved even if no call leads from one frame to the next.
func TestShuffledFramesKeepTheirBase(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(7, 8))
	addrs := draw(rng, returns, 24)
	rng.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	if found, wrong := located(placeOf(m, nil, at(0x555500000000, addrs)), addrs); found != len(addrs) || wrong != 0 {
		t.Errorf("%d of %d are placed, %d wrong", found, len(addrs), wrong)
	}
}

// A later trace of the same process must need fewer return addresses for the same base. A trace of
// another process must need as many as the first.
func TestABaseHoldsForLaterTraces(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(9, 10))
	const bias = 0x555512345000
	memory := new(Memory)
	first, later := draw(rng, returns, 24), draw(rng, returns, 4)
	if found, _ := located(placeOf(m, memory, at(bias, later)), later); found != 0 {
		t.Fatalf("%d of 4 addresses are placed before the base is known", found)
	}
	if found, _ := located(placeOf(m, memory, at(bias, first)), first); found != len(first) {
		t.Fatalf("%d of %d addresses are placed", found, len(first))
	}
	if found, wrong := located(placeOf(m, memory, at(bias, later)), later); found != len(later) || wrong != 0 {
		t.Errorf("in a later trace, %d of 4 addresses are placed, %d wrong", found, wrong)
	}
	if found, _ := located(placeOf(m, memory, at(bias+1<<30, later)), later); found != 0 {
		t.Errorf("in a later trace of another process, %d of 4 addresses are placed", found)
	}
	if found, wrong := located(placeOf(m, memory, at(bias+1<<30, first)), first); found != len(first) || wrong != 0 {
		t.Errorf("the same trace of another process: %d of %d addresses are placed, %d wrong", found, len(first), wrong)
	}
	memory.ForgetRuns()
	if found, _ := located(placeOf(m, memory, at(bias, later)), later); found != 0 {
		t.Errorf("in another log, %d of 4 addresses are placed", found)
	}
}

// The error of a frame without a base must have the approximate number of further return addresses
// that would prove a base.
func TestABaseThatIsNotProvedSaysWhatIsMissing(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(11, 12))
	addrs := draw(rng, returns, 4)
	frames := placeOf(m, nil, at(0x555512345000, addrs))
	err, is := frames[0].Place.Err.(*BaseError)
	if !is || err.Inference.Votes != 4 || err.More < 2 || err.More > 12 {
		t.Fatalf("got %v", frames[0].Place.Err)
	}
	more := draw(rng, returns, err.More+2)
	if found, _ := located(placeOf(m, nil, at(0x555512345000, slices.Concat(addrs, more))), nil); found != 4+len(more) {
		t.Errorf("with %d more, %d of %d are placed", len(more), found, 4+len(more))
	}
}

// Segments far larger than the code must not be tried page by page, and segments at the end of the
// address space must not wrap around. The program headers of a hostile file may have any sizes.
func TestHostileSegmentsAreNotTried(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(13, 14))
	addrs := at(0x555512345000, draw(rng, returns, 8))
	code := object.Segment{Type: elf.PT_LOAD, Flags: elf.PF_X | elf.PF_R}
	for _, c := range []struct{ addr, size uint64 }{{0, 1 << 47}, {0, 1<<64 - 1}, {1 << 46, 1<<64 - 1}, {1<<64 - 0x1800, 0x17ff}, {1<<64 - 16, 15}} {
		m.Segments = []object.Segment{code}
		m.Segments[0].Addr, m.Segments[0].FileSize, m.Segments[0].MemSize = c.addr, c.size, c.size
		kernel := at(1<<64-1<<47, addrs[:1]) // these addresses allow the most biases
		if found, _ := located(placeOf(m, nil, append(kernel, addrs...)), nil); found != 0 {
			t.Errorf("segment %#x of %#x bytes: %d addresses are placed", c.addr, c.size, found)
		}
	}
}

// Pages of a segment that have no code must not count: they would make a vote for a wrong base look
// less likely.
func TestOnlyCodeShowsHowLikelyAVoteIs(t *testing.T) {
	m, returns := thisProgram(t)
	addr := 0x555512345000 + returns[len(returns)/2]
	bits := func() float64 {
		e := election{image: m, voters: []voter{{addr: addr, call: dialect.Return}}}
		e.vote()
		return e.voters[0].bits
	}
	want := bits()
	m.Segments = slices.Clone(m.Segments)
	for i := range m.Segments {
		if s := &m.Segments[i]; s.Flags&elf.PF_X != 0 {
			s.FileSize += 64 << 20
		}
	}
	if got := bits(); got != want {
		t.Errorf("with 64 MiB of other bytes after the code, a vote has %.1f bits, without them %.1f", got, want)
	}
}

// The more files are tried, the fewer bits a base must have, since each file may have a wrong base
// by coincidence.
func TestABaseNeedsMoreIfManyFilesAreTried(t *testing.T) {
	m, returns := thisProgram(t)
	rng := rand.New(rand.NewPCG(15, 16))
	addrs := at(0x555512345000, draw(rng, returns, 40))
	bits := func(files int) float64 {
		var got float64
		trace := Trace{Unnamed: func() []*Image {
			all := []*Image{m}
			for len(all) < files {
				all = append(all, &Image{Path: "other", Err: ErrNoModule})
			}
			return all
		}}
		trace.Inferred = func(_ *Image, _ uint64, by Inference) { got = by.Bits }
		trace.Judge(framesOf(0, addrs), &dialect.Facts{})
		return got
	}
	if one, many := bits(1), bits(64); one == 0 || math.Abs(one-many-6) > 1e-6 {
		t.Errorf("the base has %.1f bits if one file is tried, and %.1f if 64 are", one, many)
	}
}

// For a 32-bit process, one call before an address must not prove the base of an earlier trace with
// the same process number. A process that is started again with this number, as in a container, may
// have a base a few pages away.
func TestTheNumberOfA32BitProcessIsNotItsBase(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(17, 18))
	memory := new(Memory)
	judge := func(base uint64, addrs []uint64) (found int) {
		frames := framesOf(1, at(base, addrs))
		trace := Trace{Memory: memory, Unnamed: func() []*Image { return []*Image{m} }}
		trace.Judge(frames, &dialect.Facts{})
		found, _ = located(frames, nil)
		return found
	}
	first := draw(rng, returns, 24)
	if found := judge(0x56555000, first); found != len(first) {
		t.Fatalf("%d of %d addresses are placed", found, len(first))
	}
	if found := judge(0x56555000, first[:1]); found != 0 {
		t.Error("one address is placed")
	}
	if found := judge(0x56555000, first[:4]); found != 4 {
		t.Errorf("%d of 4 addresses of the same process are placed", found)
	}
}

// If no work is left for the search for a base, the error must be ErrBudget.
func TestABaseThatIsNotSearchedForSaysSo(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(13, 14))
	addrs := at(0x555512345000, draw(rng, returns, 12))
	var frames []*Frame
	for i, addr := range addrs {
		frames = append(frames, frame(dialect.Frame{Dialect: named("rust"), Number: i, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Runtime, Addr: addr, Value: addr, Call: dialect.Return}}))
	}
	tr := Trace{worked: maxBiasWork, Unnamed: func() []*Image { return []*Image{m} }}
	for range 2 {
		if tr.Judge(frames, &dialect.Facts{}); frames[0].Place.Err != ErrBudget {
			t.Errorf("got %v", frames[0].Place.Err)
		}
	}
	tr.worked = 0
	if tr.Judge(frames, &dialect.Facts{}); frames[0].Place.Err != nil {
		t.Errorf("with work left: %v", frames[0].Place.Err)
	}
}

// A checkpoint must keep the fact that a base was inferred: an address outside the file may then be
// in any other file.
func TestAnInferredBaseIsSaved(t *testing.T) {
	m, returns := thisProgram(t)
	m.Given = true
	rng := rand.New(rand.NewPCG(15, 16))
	addrs := append(at(0x555512345000, draw(rng, returns, 12)), 0x7f0012345678)
	unnamed := func() []*Image { return []*Image{m} }
	judged := func(tr *Trace) []*Frame {
		var frames []*Frame
		for i, addr := range addrs {
			frames = append(frames, frame(dialect.Frame{Dialect: named("rust"), Number: i, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Runtime, Addr: addr, Value: addr, Call: dialect.Return}}))
		}
		tr.Judge(frames, &dialect.Facts{})
		return frames
	}
	first := &Trace{Unnamed: unnamed}
	judged(first)
	second := &Trace{Unnamed: unnamed}
	second.SetState(first.State())
	second.Resume(first.Verdicts())
	frames := judged(second)
	if last := frames[len(frames)-1].Place.Err; last != ErrNoModule || frames[0].Place.Err != nil {
		t.Errorf("the first frame has %v, the one of another file %v", frames[0].Place.Err, last)
	}
}

// A callGraph has the calls of a file, from which random stacks are made.
type callGraph struct {
	m       *Image
	returns []uint64 // return addresses
	// return addresses of calls through a pointer
	indirect []uint64
	// return addresses of direct calls, by the beginning of the called function
	callers map[uint64][]uint64
	thumb   uint64 // 1 on Arm: bit 0 of return addresses, since the code is taken for Thumb
}

// graphOf returns the call graph of a file on this machine.
func graphOf(t *testing.T, path string) *callGraph {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := object.Open(file, info.Size(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	g := &callGraph{m: &Image{Path: path, File: f, Segments: f.Segments(), Given: true}, callers: make(map[uint64][]uint64)}
	text, _ := f.Section(".text")
	if f.Machine == elf.EM_ARM {
		g.thumb = 1
	}
	for addr := text.Addr + 1; addr < text.Addr+text.Size; addr += 1 + g.thumb {
		if yes, _ := f.CallEndsAt(addr); !yes {
			continue
		}
		target, direct := f.CallTarget(addr)
		start, _, known := f.UnwindRange(target)
		if direct && (!known || start != target) {
			continue // bytes that only look like a call, or a call of code between functions
		}
		g.returns = append(g.returns, addr)
		if !direct {
			g.indirect = append(g.indirect, addr)
		}
		if direct {
			g.callers[target] = append(g.callers[target], addr)
		}
	}
	return g
}

// stack returns n random return addresses, innermost first. In four of five cases, the caller of a
// function that has direct callers is one of these callers. In all other cases, the caller is a
// call through a pointer.
func (g *callGraph) stack(rng *rand.Rand, n int) (addrs []uint64) {
	for len(addrs) < n {
		from := g.returns
		if len(addrs) > 0 {
			from = g.indirect
		}
		at := draw(rng, from, 1)[0]
		addrs = append(addrs, at)
		for len(addrs) < n && rng.IntN(5) > 0 {
			start, _, known := g.m.File.UnwindRange(at - 1)
			if !known || len(g.callers[start]) == 0 {
				break
			}
			at = draw(rng, g.callers[start], 1)[0]
			addrs = append(addrs, at)
		}
	}
	return addrs
}

// Random stacks of libraries and programs must get their base, longer stacks more often, but never
// a wrong base. docs/decisions/addresses-without-modules.md has the shares.
func TestBasesOfStacksAreInferred(t *testing.T) {
	paths := []string{"/lib/x86_64-linux-gnu/libc.so.6"}
	if fuzztest.Long() {
		paths = append(paths, "/usr/bin/gdb")
	}
	for _, path := range paths {
		testenv.Need(t, path)
		g := graphOf(t, path)
		rng := rand.New(rand.NewPCG(1, 2))
		const trials = 200
		for _, c := range []struct{ frames, least int }{{3, 0}, {5, 70}, {6, 140}, {8, 190}, {10, 190}} {
			found := 0
			for range trials {
				addrs := g.stack(rng, c.frames)
				got, wrong := located(placeOf(g.m, nil, at(0x550000000000+rng.Uint64N(1<<28)*pageSize, addrs)), addrs)
				if wrong > 0 {
					t.Errorf("%s, %d frames: %d of %d places are wrong", path, c.frames, wrong, got)
				}
				found += min(got, 1)
			}
			t.Logf("%s, %d frames: %d of %d found", path, c.frames, found, trials)
			if found < c.least {
				t.Errorf("%s, %d frames: the base is inferred %d times of %d, want %d", path, c.frames, found, trials, c.least)
			}
		}
	}
}
