package judge

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/testenv"
)

// startedProgram returns the results of startedAt for git.
func startedProgram(t *testing.T) (g *callGraph, entry uint64, inMain []uint64) {
	t.Helper()
	testenv.OnlyOn(t, "linux/amd64")
	return startedAt(t, "/usr/bin/git")
}

// startedAt returns the call graph of a position-independent program, the return address at its
// entry, and the return addresses in main.
func startedAt(t *testing.T, path string) (g *callGraph, entry uint64, inMain []uint64) {
	t.Helper()
	testenv.Need(t, path)
	g = graphOf(t, path)
	file := g.m.File
	start, end, ok := file.UnwindRange(file.Main())
	if !ok || g.m.Fixed {
		testenv.Missing(t, path+", whose entry loads main's address")
	}
	for at := (file.Entry | g.thumb) + 1; at <= file.Entry+object.EntrySpan && entry == 0; at += 1 + g.thumb {
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
		testenv.Missing(t, path+", whose entry and main call functions")
	}
	return g, entry, inMain
}

// A stack that ends at the program's entry must need fewer frames to prove the base. In the test,
// frames of the C library are between the entry and main.
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

// All programs begin in the same way: the entry and main of another build must not show a wrong
// base.
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

// In a file with a signal trampoline, such as libc, the frame that the signal has interrupted
// follows no call. This frame must not refute the base.
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

// In another build of a program, all code after some function may have moved. Frames before that
// function may then prove a base. Only a few stacks may have a moved frame with a wrong name, since
// such a frame follows a call only by coincidence.
func TestFramesOfAnotherBuildGetFewWrongNames(t *testing.T) {
	testenv.OnlyOn(t, "linux/amd64")
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(home, ".cache/symfilter-stacks") // made by scripts/fetch-stacks
	for _, program := range []struct {
		path string
		most int // stacks of 10,000 with a wrong name
	}{
		{"/usr/bin/git", 6},
		// calls are denser in the code of these machines
		{filepath.Join(cache, "arm64/tree/usr/bin/aarch64-linux-gnu-ld.gold"), 30},
		{filepath.Join(cache, "armhf/tree/usr/bin/arm-linux-gnueabihf-ld.gold"), 45},
		{filepath.Join(cache, "riscv64/tree/usr/bin/riscv64-linux-gnu-ld.bfd"), 15},
	} {
		t.Run(filepath.Base(program.path), func(t *testing.T) {
			if strings.HasPrefix(program.path, cache) {
				testenv.OnlyLong(t)
			}
			g, entry, inMain := startedAt(t, program.path)
			rng := rand.New(rand.NewPCG(31, 32))
			trials, based, wrong := fuzztest.LongOr(10_000, 2000), 0, 0
			for range trials {
				addrs := g.stackBelow(rng, 3+rng.IntN(8), inMain)
				found, misnamed := g.namesMoved(rng, addrs, entry)
				based += min(found, 1)
				wrong += min(misnamed, 1)
			}
			t.Logf("of %d stacks %d get a base, %d a wrong name", trials, based, wrong)
			if based == 0 || wrong > max(2, program.most*trials/10_000) {
				t.Errorf("of %d stacks %d get a base, %d a wrong name", trials, based, wrong)
			}
		})
	}
}

// stackBelow returns the n return addresses of a random stack, and then one in main. The call
// before the address in main leads to the function of the previous address, or is through a
// pointer.
func (g *callGraph) stackBelow(rng *rand.Rand, n int, inMain []uint64) (addrs []uint64) {
	for {
		addrs = g.stack(rng, n)
		last, _, _ := g.m.File.UnwindRange(addrs[n-1] - 1)
		var callers []uint64
		for _, at := range inMain {
			if slices.Contains(g.indirect, at) || slices.Contains(g.callers[last], at) {
				callers = append(callers, at)
			}
		}
		if len(callers) > 0 {
			return append(addrs, draw(rng, callers, 1)[0])
		}
	}
}

// namesMoved judges a stack of another build, whose outermost frame is the entry. In this build,
// all code after the start of one frame's function has higher addresses. namesMoved returns the
// number of located frames, and the number of frames located in a wrong function.
func (g *callGraph) namesMoved(rng *rand.Rand, addrs []uint64, entry uint64) (found, misnamed int) {
	moved := 16 * (1 + rng.Uint64N(1<<12))
	from, _, _ := g.m.File.UnwindRange(draw(rng, addrs, 1)[0] - 1)
	base := 0x555500000000 + rng.Uint64N(1<<20)*pageSize
	if g.m.File.Machine == elf.EM_ARM {
		base &= 1<<32 - 1
	}
	var logged []uint64
	for _, addr := range append(slices.Clone(addrs), entry) {
		if addr > from {
			addr += moved
		}
		logged = append(logged, base+addr)
	}
	frames := placeOf(g.m, nil, logged)
	for i, f := range frames[:len(addrs)] {
		if f.Place.Err != nil || f.Place.Verified == "" {
			continue
		}
		want, _, _ := g.m.File.UnwindRange(addrs[i] - 1)
		got, _, _ := g.m.File.UnwindRange(f.Place.Addr)
		if got != want {
			misnamed++
		}
	}
	found, _ = located(frames, nil)
	return found, misnamed
}
