package dialect

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// Frames at random places of a file prove it in at most one of 10,000 traces, however few they are. The file
// is this program, whose code changes with the package, so that a few traces do.
func TestRandomFramesProveNoFile(t *testing.T) {
	m, _ := thisProgram(t)
	random := rand.New(rand.NewSource(1))
	const traces = 40000
	for frames := 1; frames <= 4; frames++ {
		named := 0
		for range traces {
			var all []*Frame
			for i := range frames {
				s := m.Segments[0]
				for s.Flags&1 == 0 {
					s = m.Segments[random.Intn(len(m.Segments))]
				}
				addr := s.Addr + uint64(random.Int63n(int64(s.FileSize)))
				all = append(all, &Frame{Dialect: &glibc, Number: i, Kind: Vaddr, Value: addr, Module: m.Path})
			}
			trace := Trace{Open: func(*Frame) *Image {
				copied := *m
				return &copied
			}}
			trace.Judge(all, new(Facts))
			if slices.ContainsFunc(all, func(f *Frame) bool { return f.Place.Err == nil }) {
				named++
			}
		}
		if named > traces/10000 {
			t.Errorf("%d traces of %d frames: in %d frames are located", traces, frames, named)
		}
	}
}

// What the frames of a trace show about a file, in numbers.
func TestProofsOfFiles(t *testing.T) {
	path, given, guessed := &Image{}, &Image{Given: true}, &Image{Guessed: true}
	addrs := make([]uint64, maxEvidence)
	for _, test := range []struct {
		name            string
		e               Evidence
		m               *Image
		proves, refutes bool
	}{
		{"two calls", Evidence{Called: addrs[:2]}, path, false, false},
		{"three calls", Evidence{Called: addrs[:3]}, path, true, false},
		{"three calls and a failure", Evidence{Called: addrs[:3], Failed: addrs[:1]}, path, false, true},
		{"four calls and a failure", Evidence{Called: addrs[:4], Failed: addrs[:1]}, path, true, false},
		{"a symbol and a failure", Evidence{Symbols: 1, Failed: addrs[:1]}, path, true, false},
		{"a symbol and two failures", Evidence{Symbols: 1, Failed: addrs[:2]}, path, false, true},
		{"a trampoline", Evidence{Trampolines: 1}, path, true, false},
		{"as many failures as calls", Evidence{Called: addrs, Failed: addrs}, path, false, true},
		{"a call in a called function", Evidence{Called: addrs[:1], Linked: maxLinkBits}, path, true, false},
		{"a failure in the operator's file", Evidence{Called: addrs[:1], Failed: addrs[:1]}, given, false, false},
		{"two failures in it", Evidence{Called: addrs[:1], Failed: addrs[:2]}, given, false, true},
		{"three calls in a file found by its name", Evidence{Called: addrs[:3]}, guessed, false, false},
		{"four calls in it", Evidence{Called: addrs[:4]}, guessed, true, false},
		{"a failure in it", Evidence{Called: addrs[:9], Failed: addrs[:1]}, guessed, true, true},
	} {
		if proves, refutes := test.e.proves(test.m), test.e.refutes(test.m); proves != test.proves || refutes != test.refutes {
			t.Errorf("%s: proves %t, refutes %t", test.name, proves, refutes)
		}
	}
}

// placed returns how many of frames are located.
func placed(frames []*Frame) (n int) {
	for _, f := range frames {
		if f.Place.Err == nil {
			n++
		}
	}
	return n
}

// A failure withdraws the file for the frames of its own stack; those of others keep theirs.
func TestFailuresWithdrawTheFileForTheirStack(t *testing.T) {
	m, returns := thisProgram(t)
	var all []*Frame
	add := func(addr uint64, apart bool) {
		all = append(all, &Frame{Dialect: &glibc, Number: -1, Kind: Vaddr, Value: addr, Module: m.Path, Apart: apart})
	}
	for i := range 8 {
		add(returns[i*100], i == 0)
	}
	add(returns[900], true)
	add(returns[1000]+1, false)
	trace := Trace{Open: func(*Frame) *Image {
		copied := *m
		return &copied
	}}
	trace.Judge(all, new(Facts))
	if first, second := placed(all[:8]), placed(all[8:]); first != 8 || second != 0 {
		t.Errorf("%d and %d frames are located, want 8 and 0", first, second)
	}
}

// GCC's AddressSanitizer follows frame pointers: in a program without them the last frame of a stack may
// be outside the code. One such address is neither for nor against the file; a second one, one within
// a stack, and one of an unwinder that reads tables are.
func TestALastFrameOutsideTheCode(t *testing.T) {
	m, returns := thisProgram(t)
	outside := m.lowest() + 1
	for _, test := range []struct {
		name   string
		by     *Dialect
		addrs  []uint64 // 0: the next stack begins
		placed int
	}{
		{"three calls and the end of a stack", &sanitizer, []uint64{returns[0], returns[100], returns[200], outside}, 3},
		{"the end of the first stack", &sanitizer, []uint64{returns[0], outside, 0, returns[100], returns[200]}, 3},
		{"the same address twice", &sanitizer, []uint64{returns[0], outside, 0, returns[100], returns[200], outside}, 3},
		{"two calls", &sanitizer, []uint64{returns[0], returns[100], outside}, 0},
		{"two addresses", &sanitizer, []uint64{returns[0], outside, 0, returns[100], returns[200], outside + 1}, 0},
		{"within a stack", &sanitizer, []uint64{returns[0], outside, returns[100], returns[200]}, 0},
		{"an unwinder that reads tables", &glibc, []uint64{returns[0], returns[100], returns[200], outside}, 0},
	} {
		var all []*Frame
		number := 0
		for _, addr := range test.addrs {
			if addr == 0 {
				number-- // a number that neither rises nor falls begins a stack
				continue
			}
			number++
			all = append(all, &Frame{Dialect: test.by, Number: number, Kind: Vaddr, Value: addr, Module: m.Path})
		}
		copied := *m
		trace := Trace{Open: func(*Frame) *Image { return &copied }}
		trace.Judge(all, new(Facts))
		if got := placed(all); got != test.placed {
			t.Errorf("%s: %d frames are located, want %d", test.name, got, test.placed)
		}
	}
}

// A frame outside the code, as unwinders that follow frame pointers print it, disproves the file only
// if too few frames prove it, and its reason is the one that is true.
func TestFramesOutsideTheCodeOfAProvedFile(t *testing.T) {
	m, returns := thisProgram(t)
	for calls, want := range map[int]error{1: ErrNotCode, 3: ErrNotCode, 4: ErrStray, 8: ErrStray} {
		var all []*Frame
		for i := range calls {
			all = append(all, &Frame{Dialect: &glibc, Number: -1, Kind: Vaddr, Value: returns[i*100], Module: m.Path})
		}
		all = append(all, &Frame{Dialect: &glibc, Number: -1, Kind: Vaddr, Value: m.lowest() + 1, Module: m.Path})
		copied := *m
		trace := Trace{Open: func(*Frame) *Image { return &copied }}
		trace.Judge(all, new(Facts))
		located := 0
		if want == ErrStray {
			located = calls
		}
		if got := all[calls].Place.Err; got != want || placed(all) != located {
			t.Errorf("%d calls: %d frames are located, the other one: %v", calls, placed(all), got)
		}
	}
}

// A program that is started again is loaded at another address: each process has its own load bias,
// even if their lines are mixed. A restart keeps them apart.
func TestEachProcessHasItsLoadBias(t *testing.T) {
	m, returns := thisProgram(t)
	movable := *m
	movable.Fixed = false
	biases := []uint64{0x1000000000, 0x2000000000}
	for _, mixed := range []bool{false, true} {
		var all []*Frame
		for n := range 80 {
			i, process := n%40, n/40
			if mixed {
				i, process = n/2, n%2
			}
			addr := returns[i*50] + biases[process]
			all = append(all, &Frame{Dialect: &glibc, Number: i + 1, Kind: Runtime, Addr: addr, Value: addr, Module: m.Path})
		}
		trace := Trace{Open: func(*Frame) *Image {
			copied := movable
			return &copied
		}}
		trace.Judge(all, new(Facts))
		resumed := Trace{Open: trace.Open}
		resumed.Resume(trace.Verdicts())
		if diff := cmp.Diff(trace.Verdicts(), resumed.Verdicts(), cmp.AllowUnexported(buildid.ID{})); diff != "" || len(trace.Verdicts()) != len(biases) {
			t.Errorf("mixed %t: verdicts before (-) and after (+) a restart:\n%s", mixed, diff)
		}
		right := 0
		for _, f := range all {
			if f.Place.Err == nil && (f.Place.Addr+1+biases[0] == f.Addr || f.Place.Addr+1+biases[1] == f.Addr) {
				right++
			}
		}
		if right != len(all) {
			t.Errorf("mixed %t: %d of %d frames are located", mixed, right, len(all))
		}
	}
}

// If the file of the C library is not here, the frame after one in it may be where a signal was: without
// a call before it, it is exact if the frames around it prove its file.
func TestFramesAfterASignalNeedNoLibrary(t *testing.T) {
	m, returns := thisProgram(t)
	for _, test := range []struct {
		before string // module of the frame before
		proofs int    // frames after it
		want   int
	}{
		{"/lib/libc.so.6", 3, 4},
		{"/lib/libc.musl-x86_64.so.1", 3, 4},
		{"/lib/libc.so.6", 2, 0},
		{"/lib/libother.so", 3, 0},
	} {
		all := []*Frame{{Dialect: &glibc, Number: 0, Kind: BaseOffset, Value: 0x3c050, Module: test.before}}
		all = append(all, &Frame{Dialect: &glibc, Number: 1, Kind: Vaddr, Value: returns[900] + 1, Module: m.Path})
		for i := range test.proofs {
			all = append(all, &Frame{Dialect: &glibc, Number: i + 2, Kind: Vaddr, Value: returns[i*100], Module: m.Path})
		}
		trace := Trace{Open: func(f *Frame) *Image {
			copied := *m
			if f.Module != m.Path {
				copied = Image{Err: ErrNoLib}
			}
			return &copied
		}}
		trace.Judge(all, new(Facts))
		if got := placed(all[1:]); got != test.want || got > 0 && all[1].Place.Addr != returns[900]+1 {
			t.Errorf("%s, %d frames: %d are located, want %d", test.before, test.proofs, got, test.want)
		}
	}
}
