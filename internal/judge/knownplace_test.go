package judge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/testenv"
)

// startedProgram returns the call graph of a program that may be loaded anywhere, the return
// address at its entry, and those in main.
func startedProgram(t *testing.T) (g *callGraph, entry uint64, inMain []uint64) {
	t.Helper()
	testenv.OnlyOn(t, "linux/amd64")
	testenv.Need(t, "/usr/bin/git")
	g = graphOf(t, "/usr/bin/git")
	file := g.m.File
	start, end, ok := file.UnwindRange(file.Main())
	if !ok || g.m.Fixed {
		testenv.Missing(t, "a git whose entry loads main's address")
	}
	for at := file.Entry + 1; at <= file.Entry+object.EntrySpan && entry == 0; at++ {
		if yes, _ := file.CallEndsAt(at); yes {
			entry = at
		}
	}
	for _, at := range g.returns {
		if at > start && at <= end {
			inMain = append(inMain, at)
		}
	}
	if entry == 0 || len(inMain) == 0 {
		testenv.Missing(t, "a git whose entry and main call functions")
	}
	return g, entry, inMain
}

// A stack that ends where the program begins needs fewer frames. Between the two are those of the C
// library.
func TestTheEntryShowsTheBase(t *testing.T) {
	g, entry, inMain := startedProgram(t)
	rng := rand.New(rand.NewPCG(19, 20))
	const trials = 60
	var found [2]int
	for range trials {
		addrs := slices.Concat(draw(rng, g.returns, 1), draw(rng, g.indirect, 3), draw(rng, inMain, 1))
		base := 0x555500000000 + rng.Uint64N(1<<20)*pageSize
		library := []uint64{0x7f0012345678, 0x7f0012345789}
		for i, last := range []uint64{entry, draw(rng, g.indirect, 1)[0]} {
			all := slices.Concat(at(base, addrs), library, at(base, []uint64{last}))
			got, wrong := located(placeOf(g.m, nil, all), slices.Concat(addrs, library, []uint64{last}))
			if found[i] += min(got, 1); wrong > 0 {
				t.Errorf("%d of %d places are wrong", wrong, got)
			}
		}
	}
	t.Logf("with the entry %d of %d found, without it %d", found[0], trials, found[1])
	if found[0] < trials*9/10 || found[1] > trials/2 {
		t.Errorf("with the entry %d of %d are found, without it %d", found[0], trials, found[1])
	}
}

// Each program begins in the same way: an entry and a main that are as far from each other as in
// another build give no base.
func TestTheEntryOfAnotherProgramShowsNoBase(t *testing.T) {
	g, entry, inMain := startedProgram(t)
	rng := rand.New(rand.NewPCG(21, 22))
	for range fuzztest.LongOr(2000, 60) {
		moved := 16 * (1 + rng.Uint64N(1<<12))
		addrs := at(moved, draw(rng, g.returns, 3+rng.IntN(6)))
		switch rng.IntN(3) {
		case 0:
			addrs = append(addrs, inMain[0]+moved, entry+moved)
		case 1: // the same entry, other code
			addrs = append(addrs, inMain[0]+moved, entry)
		case 2:
			addrs = append(addrs, inMain[0], entry)
		}
		bias := 0x555500000000 + rng.Uint64N(1<<20)*pageSize
		for _, f := range placeOf(g.m, nil, at(bias, addrs)) {
			if f.Place.Err == nil && f.Place.Addr+bias+1 != f.Addr && f.Place.Addr+bias+moved+1 != f.Addr {
				t.Errorf("%#x of a program that is moved by %#x is placed at %#x", f.Addr-bias, moved, f.Place.Addr)
			}
		}
	}
}

// In a library with the trampoline to which handlers return, such as libc, the frame that the
// signal has interrupted follows no call.
func TestTheFrameAfterATrampolineRefutesNoBase(t *testing.T) {
	testenv.OnlyOn(t, "linux/amd64") // Go's runtime has a trampoline there
	m, returns := thisProgram(t)
	m.Given = true
	text, _ := m.File.Section(".text")
	trampoline := text.Addr
	for !m.isTrampoline(trampoline) {
		trampoline++
	}
	rng := rand.New(rand.NewPCG(23, 24))
	for _, kind := range []dialect.Call{dialect.Return, dialect.Adjusted} {
		addrs := draw(rng, returns, 18)
		fault := addrs[4]
		for yes := true; yes; yes, _ = m.followsCall(fault, dialect.Adjusted) {
			fault++
		}
		addrs[3], addrs[4] = trampoline, fault
		frames := framesOf(0, at(0x555512345000, addrs))
		if kind == dialect.Adjusted {
			for i, f := range frames {
				if f.Call = kind; i != 4 {
					f.Addr--
				}
			}
		}
		trace := Trace{Unnamed: func() []*Image { return []*Image{m} }}
		var base uint64
		trace.Inferred = func(_ *Image, at uint64, _ Inference) { base = at }
		trace.Judge(frames, &dialect.Facts{})
		if want := 0x555512345000 + m.lowest(); base != want {
			t.Errorf("kind %v: the base is %#x, want %#x", kind, base, want)
		}
	}
}

// In another build of a program, whose code is moved from some function on, a base may be proved by
// the frames before it. Then few of the moved frames, which follow a call by chance, get a name.
func TestFramesOfAnotherBuildGetFewWrongNames(t *testing.T) {
	g, entry, inMain := startedProgram(t)
	file := g.m.File
	rng := rand.New(rand.NewPCG(31, 32))
	trials, based, wrong := fuzztest.LongOr(10_000, 2000), 0, 0
	for range trials {
		addrs := append(g.stack(rng, 3+rng.IntN(8)), draw(rng, inMain, 1)[0])
		moved := 16 * (1 + rng.Uint64N(1<<12))
		from, _, _ := file.UnwindRange(draw(rng, addrs, 1)[0] - 1)
		base := 0x555500000000 + rng.Uint64N(1<<20)*pageSize
		var logged []uint64
		for _, addr := range append(slices.Clone(addrs), entry) {
			if addr > from {
				addr += moved
			}
			logged = append(logged, base+addr)
		}
		frames := placeOf(g.m, nil, logged)
		misnamed := false
		for i, f := range frames[:len(addrs)] {
			if f.Place.Err != nil || f.Place.Verified == "" {
				continue
			}
			want, _, _ := file.UnwindRange(addrs[i] - 1)
			got, _, _ := file.UnwindRange(f.Place.Addr)
			misnamed = misnamed || got != want
		}
		if got, _ := located(frames, nil); got > 0 {
			based++
		}
		if misnamed {
			wrong++
		}
	}
	t.Logf("of %d stacks %d get a base, %d a wrong name", trials, based, wrong)
	if based == 0 || wrong > trials/500 { // without the rules about calls that lead elsewhere three times as many
		t.Errorf("of %d stacks %d get a base, %d a wrong name", trials, based, wrong)
	}
}
