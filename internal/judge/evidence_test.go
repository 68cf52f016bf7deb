package judge

import (
	"math/rand"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A trace of one to four random addresses of a file must not prove the file. The file is this test
// program. Its code changes with the package, so at most one trace in 10,000 may prove it.
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
				all = append(all, frame(dialect.Frame{Dialect: glibc, Number: i, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: addr, Module: m.Path}}))
			}
			trace := Trace{Open: func(*dialect.Frame) *Image {
				copied := *m
				return &copied
			}}
			trace.Judge(all, new(dialect.Facts))
			if slices.ContainsFunc(all, func(f *Frame) bool { return f.Place.Err == nil }) {
				named++
			}
		}
		if named > traces/10000 {
			t.Errorf("%d traces of %d frames: in %d frames are located", traces, frames, named)
		}
	}
}

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
		{"four calls and a contradiction", Evidence{Called: addrs[:4], Failed: addrs[:1], Contradicted: 1}, path, true, true},
		{"a symbol and a contradiction", Evidence{Symbols: 1, Failed: addrs[:1], Contradicted: 1}, path, true, false},
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

// In a file that was changed after the log was written, four calls must not be enough unless two of
// them lead to the function of the called frame. A frame whose own symbol or code is in the file
// must need no other frames.
func TestYoungerFilesNeedMoreProof(t *testing.T) {
	m, returns := thisProgram(t)
	for _, younger := range []bool{false, true} {
		var all []*Frame
		for i := range 4 {
			all = append(all, frame(dialect.Frame{Dialect: glibc, Number: -1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: returns[i*100], Module: m.Path}}))
		}
		copied := *m
		copied.Younger = younger
		trace := Trace{Open: func(*dialect.Frame) *Image { return &copied }}
		trace.Judge(all, new(dialect.Facts))
		var want error
		if younger {
			want = ErrYounger
		}
		if got := all[0].Place.Err; got != want {
			t.Errorf("younger: %t: %v, want %v", younger, got, want)
		}
	}
	for _, test := range []struct {
		c    check
		want bool // the frame proves the file alone
	}{{check{verified: BySymbol}, true}, {check{verified: ByCode}, true}, {check{trampoline: true}, true}, {check{verified: ByCall}, false}, {check{}, false}} {
		if got := test.c.agreesAlone(); got != test.want {
			t.Errorf("%+v: %t, want %t", test.c, got, test.want)
		}
	}
	for _, e := range []struct {
		calls, links int
		want         bool
	}{{4, 2, true}, {3, 2, false}, {9, 1, false}} {
		if got := (&Evidence{Called: make([]uint64, e.calls), Links: e.links}).placesInYounger(); got != e.want {
			t.Errorf("%d calls, %d links: %t, want %t", e.calls, e.links, got, e.want)
		}
	}
}

func placed(frames []*Frame) (n int) {
	for _, f := range frames {
		if f.Place.Err == nil {
			n++
		}
	}
	return n
}

// If no call precedes a return address, the file must not be used for any other stack of that
// process, even in later traces. Doubt must be called if frames were located before. Stacks of
// another process must not be affected, since that process may have loaded another build.
func TestAFailureWithdrawsTheFileForItsProcess(t *testing.T) {
	m, returns := thisProgram(t)
	movable := *m
	movable.Fixed = false
	type stack struct {
		bias   uint64 // 0 if the log does not show it
		pid    uint64
		broken bool
	}
	for _, test := range []struct {
		name   string
		traces [][]stack
		want   []int // located frames of each stack
		doubts int
	}{
		{"one trace", [][]stack{{{}, {broken: true}}}, []int{0, 0}, 0},
		{"the failure first", [][]stack{{{broken: true}, {}}}, []int{0, 0}, 0},
		{"two traces of processes that are not known", [][]stack{{{broken: true}}, {{}}}, []int{0, 8}, 0},
		{"two traces of a process, by its load bias", [][]stack{{{bias: 1 << 40}}, {{bias: 1 << 40, broken: true}}, {{bias: 1 << 40}}}, []int{8, 0, 0}, 1},
		{"two traces of a process, by its number", [][]stack{{{pid: 7}}, {{pid: 7, broken: true}}, {{pid: 7}}}, []int{8, 0, 0}, 1},
		{"two processes in a trace, by their load biases", [][]stack{{{bias: 1 << 40}, {bias: 2 << 40, broken: true}}}, []int{8, 0}, 0},
		{"two processes, by their numbers", [][]stack{{{pid: 7}}, {{pid: 8, broken: true}}, {{pid: 7}, {pid: 8}}}, []int{8, 0, 8, 0}, 0},
	} {
		var memory Memory
		var got []int
		doubts := 0
		for _, stacks := range test.traces {
			trace := Trace{Memory: &memory, Doubt: func(*Image) { doubts++ }, Open: func(*dialect.Frame) *Image {
				copied := movable
				return &copied
			}}
			var all []*Frame
			for _, s := range stacks {
				for i := range 9 {
					f := frame(dialect.Frame{Dialect: glibc, Number: -1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: returns[i*100], Module: m.Path}, Proof: dialect.Proof{PID: s.pid, Apart: i == 0}})
					if i == 8 && s.broken {
						f.Value++
					} else if i == 8 {
						continue
					}
					if s.bias != 0 {
						f.Addr = s.bias + f.Value
					}
					all = append(all, f)
				}
			}
			trace.Judge(all, new(dialect.Facts))
			for _, s := range stacks {
				n := 8
				if s.broken {
					n++
				}
				got = append(got, placed(all[:n]))
				all = all[n:]
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" || doubts != test.doubts {
			t.Errorf("%s: %d doubts, want %d; located frames (-want +got)\n%s", test.name, doubts, test.doubts, diff)
		}
	}
}

// Consecutive frames must be in one stack if their numbers increase, or decrease, or are missing.
// Any other number must begin a stack. Only the first frame of a stack may have a number if the
// rest have none: it is the location of a fault.
func TestFramesOfOneStackGoTogether(t *testing.T) {
	for _, test := range []struct {
		name    string
		numbers []int
		want    []int
	}{
		{"rising", []int{0, 1, 2, 0, 1}, []int{1, 1, 1, 2, 2}},
		{"falling", []int{2, 1, 0, 0, 1}, []int{0, 0, 0, 1, 1}},
		{"without numbers", []int{-1, -1}, []int{0, 0}},
		{"a fault and its callers", []int{0, -1, -1, 0, -1}, []int{1, 1, 1, 2, 2}},
		{"without numbers after others", []int{0, 1, -1}, []int{1, 1, 2}},
	} {
		var s StackState
		var got []int
		for _, n := range test.numbers {
			s.next(&Frame{Frame: &dialect.Frame{Number: n}})
			got = append(got, s.Stack)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// If no call links a frame to its neighbour in the file, the frame must be located only if enough
// frames follow calls: four, or six if the frame itself follows no call. If a call between the two
// leads to another function, the frame must stay unproven, except in an operator's file and in a
// signal trampoline. A frame without neighbours in the file must need no link. If the base of an
// operator's file was inferred, a call that leads, or may lead, to another function must leave the
// frame unproven, unless another call links the frame.
func TestFramesThatNoCallConnects(t *testing.T) {
	_, returns := thisProgram(t)
	given := verdict{image: &Image{Path: "/opt/shop", Given: true}}
	inferred := verdict{image: given.image, inferred: true}
	for _, test := range []struct {
		name  string
		calls int
		c     check
		v     verdict
		want  error
	}{
		{"linked", 3, check{linked: true, beside: true, astray: true}, verdict{}, nil},
		{"no neighbour", 3, check{}, verdict{}, nil},
		{"three calls", 3, check{beside: true}, verdict{}, ErrUnproven},
		{"four calls", 4, check{beside: true}, verdict{}, nil},
		{"a fault and five calls", 5, check{beside: true, exact: true}, verdict{}, ErrUnproven},
		{"a fault and six calls", 6, check{beside: true, exact: true}, verdict{}, nil},
		{"a call elsewhere", 9, check{beside: true, astray: true}, verdict{}, ErrUnproven},
		{"a call elsewhere in a trampoline", 9, check{beside: true, astray: true, trampoline: true}, verdict{}, nil},
		{"a call elsewhere in the operator's file", 9, check{beside: true, astray: true}, given, nil},
		{"a call elsewhere at an inferred base", 9, check{astray: true}, inferred, ErrUnproven},
		{"an unclear call", 9, check{unclear: true}, verdict{}, nil},
		{"an unclear call in the operator's file", 9, check{unclear: true}, given, nil},
		{"an unclear call at an inferred base", 9, check{unclear: true}, inferred, ErrUnproven},
		{"two calls, one of which is unclear, at an inferred base", 9, check{linked: true, unclear: true}, inferred, nil},
	} {
		c := test.c
		v := test.v
		if c.of = &v; v.image == nil {
			v.image = &Image{Path: "/opt/shop"}
		}
		v.proved, v.all = true, Evidence{Called: returns[:test.calls]}
		if c.here = &c.of.all; !c.exact {
			c.verified = ByCall
		}
		f := frame(dialect.Frame{})
		if c.conclude(f); f.Place.Err != test.want {
			t.Errorf("%s: %v, want %v", test.name, f.Place.Err, test.want)
		}
	}
}

// openX86 opens a small x86-64 file with the functions outer and local, neither of which jumps to
// the other.
func openX86(t *testing.T) *object.File {
	t.Helper()
	file, err := os.Open("../../symbolize/testdata/arch/x86_64.elf")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := object.Open(file, info.Size(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestCallsThatLeadElsewhere(t *testing.T) {
	m := &Image{File: openX86(t)}
	const (
		outer, local = 0x1370, 0x13b0
		direct       = 0x1376 // after outer's call of local
		indirect     = 0x1384 // after a call through a pointer
	)
	for _, test := range []struct {
		end, addr uint64
		want      lead
	}{{direct, local + 9, here}, {direct, outer + 9, elsewhere}, {indirect, outer + 9, anywhere}, {direct, 0x10, anywhere}, {0x10, local + 9, anywhere}} {
		if got := new(Trace).leadOf(m, test.end, test.addr); got != test.want {
			t.Errorf("call before %#x, frame at %#x: %d, want %d", test.end, test.addr, got, test.want)
		}
	}
}

func TestCallsOfLibrariesLeadElsewhere(t *testing.T) {
	g, _, inMain := startedProgram(t)
	text, _ := g.m.File.Section(".text")
	calls := 0
	for addr := text.Addr + 1; addr < text.Addr+text.Size; addr++ {
		if name, ok := g.m.File.CalledImport(addr); ok && string(name) == "malloc" {
			if calls++; new(Trace).leadOf(g.m, addr, inMain[0]) != elsewhere {
				t.Errorf("the call of malloc before %#x may lead to main", addr)
			}
		}
	}
	if calls == 0 {
		t.Error("no calls of malloc")
	}
}

// A function must be decoded once for all traces of a log, but again if the file has changed.
func TestFunctionsAreDecodedOnce(t *testing.T) {
	const outer, local = 0x1370, 0x13b0
	const end = outer + 6 // after outer's call of local
	f := openX86(t)
	var memory Memory
	var got []int
	for _, state := range []string{"1", "1", "2"} {
		trace := &Trace{Memory: &memory, Quota: new(dialect.Quota)}
		left := trace.Quota.Left()
		trace.leadOf(&Image{File: f, State: state}, end, outer+9)
		got = append(got, left-trace.Quota.Left())
	}
	if want := []int{0x13cc - local, 0, 0x13cc - local}; !slices.Equal(got, want) {
		t.Errorf("steps: %v, want %v", got, want)
	}
}

// A sanitizer's address of a fault must refute the file if the address is inside an instruction.
// begins lists the addresses of the instructions in the function local. A report has one of these
// addresses, or an address one byte lower. In reports of other programs, the first frame's address
// may be anywhere.
func TestNoFaultIsWithinAnInstruction(t *testing.T) {
	const start, end = 0x13b0, 0x13cb
	begins := []uint64{start, 0x13b7, 0x13b9, 0x13bb, 0x13bd, 0x13c0, 0x13c2, 0x13c4, 0x13c6, 0x13c9, end}
	f := openX86(t)
	known, err := buildid.FromBytes([]byte("12345678"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		dialect *dialect.Dialect
		number  int
		id      buildid.ID
		refutes bool
	}{{sanitizer, 0, buildid.ID{}, true}, {sanitizer, 1, buildid.ID{}, false}, {sanitizer, 0, known, false}, {gdb, 0, buildid.ID{}, false}} {
		var got, want []uint64
		for addr := uint64(start); addr <= end; addr++ {
			trace := Trace{Open: func(*dialect.Frame) *Image {
				return &Image{Path: "/opt/shop", ID: test.id, File: f, Segments: f.Segments()}
			}}
			fault := frame(dialect.Frame{Dialect: test.dialect, Number: test.number, LoggedPlace: dialect.LoggedPlace{Kind: dialect.BaseOffset, Value: addr, Module: "/opt/shop", ID: test.id, Call: dialect.Adjusted}})
			trace.Judge([]*Frame{fault}, new(dialect.Facts))
			if fault.Place.Err == ErrWithin {
				got = append(got, addr)
			}
			if test.refutes && !slices.Contains(begins, addr) && !slices.Contains(begins, addr+1) {
				want = append(want, addr)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, frame %d, build ID %s: addresses that refute the file (-want +got)\n%s", test.dialect.Name, test.number, test.id, diff)
		}
	}
}

// GCC's AddressSanitizer follows frame pointers: in a program without frame pointers, the last
// frame of a stack may be outside the code. One such address must count neither for nor against the
// file. Three things must count against the file: a second, different address; an address outside
// the code within a stack; and an address outside the code from an unwinder that reads tables.
func TestALastFrameOutsideTheCode(t *testing.T) {
	m, returns := thisProgram(t)
	outside := m.lowest() + 1
	for _, test := range []struct {
		name   string
		by     *dialect.Dialect
		addrs  []uint64 // 0: another stack begins
		placed int
	}{
		{"three calls and the end of a stack", sanitizer, []uint64{returns[0], returns[100], returns[200], outside}, 3},
		{"the end of the first stack", sanitizer, []uint64{returns[0], outside, 0, returns[100], returns[200]}, 3},
		{"the same address twice", sanitizer, []uint64{returns[0], outside, 0, returns[100], returns[200], outside}, 3},
		{"two calls", sanitizer, []uint64{returns[0], returns[100], outside}, 0},
		{"two addresses", sanitizer, []uint64{returns[0], outside, 0, returns[100], returns[200], outside + 1}, 0},
		{"within a stack", sanitizer, []uint64{returns[0], outside, returns[100], returns[200]}, 0},
		{"an unwinder that reads tables", glibc, []uint64{returns[0], returns[100], returns[200], outside}, 0},
	} {
		var all []*Frame
		number := 0
		for _, addr := range test.addrs {
			if addr == 0 {
				number-- // a number that neither increases nor decreases begins a stack
				continue
			}
			number++
			all = append(all, frame(dialect.Frame{Dialect: test.by, Number: number, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: addr, Module: m.Path}}))
		}
		copied := *m
		trace := Trace{Open: func(*dialect.Frame) *Image { return &copied }}
		trace.Judge(all, new(dialect.Facts))
		if got := placed(all); got != test.placed {
			t.Errorf("%s: %d frames are located, want %d", test.name, got, test.placed)
		}
	}
}

// Unwinders that follow frame pointers may print a frame outside the code. If fewer than four other
// frames follow calls, this frame must get ErrNotCode, and no frame may be located. If four or more
// frames follow calls, this frame must get ErrStray, and the other frames must be located.
func TestFramesOutsideTheCodeOfAProvedFile(t *testing.T) {
	m, returns := thisProgram(t)
	for calls, want := range map[int]error{1: ErrNotCode, 3: ErrNotCode, 4: ErrStray, 8: ErrStray} {
		var all []*Frame
		for i := range calls {
			all = append(all, frame(dialect.Frame{Dialect: glibc, Number: -1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: returns[i*100], Module: m.Path}}))
		}
		all = append(all, frame(dialect.Frame{Dialect: glibc, Number: -1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: m.lowest() + 1, Module: m.Path}}))
		copied := *m
		trace := Trace{Open: func(*dialect.Frame) *Image { return &copied }}
		trace.Judge(all, new(dialect.Facts))
		located := 0
		if want == ErrStray {
			located = calls
		}
		if got := all[calls].Place.Err; got != want || placed(all) != located {
			t.Errorf("%d calls: %d frames are located, the other one: %v", calls, placed(all), got)
		}
	}
}

// If two processes have loaded a file at different addresses, each process must have its own load
// bias, even if their lines are mixed. A restart of symfilter must keep both biases.
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
			all = append(all, frame(dialect.Frame{Dialect: glibc, Number: i + 1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Runtime, Addr: addr, Value: addr, Module: m.Path}}))
		}
		trace := Trace{Open: func(*dialect.Frame) *Image {
			copied := movable
			return &copied
		}}
		trace.Judge(all, new(dialect.Facts))
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

// If the file of the C library is missing, a frame in it may be a signal trampoline. The next frame
// may then have been interrupted, so its address may follow no call. Its address must be taken as
// exact if the frames after it prove its file.
func TestFramesAfterASignalNeedNoLibrary(t *testing.T) {
	m, returns := thisProgram(t)
	for _, test := range []struct {
		before string // module of the previous frame
		proofs int    // frames after the interrupted one
		want   int
	}{
		{"/lib/libc.so.6", 3, 4},
		{"/lib/libc.musl-x86_64.so.1", 3, 4},
		{"/lib/libc.so.6", 2, 0},
		{"/lib/libother.so", 3, 0},
	} {
		all := []*Frame{frame(dialect.Frame{Dialect: glibc, Number: 0, LoggedPlace: dialect.LoggedPlace{Kind: dialect.BaseOffset, Value: 0x3c050, Module: test.before}})}
		all = append(all, frame(dialect.Frame{Dialect: glibc, Number: 1, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: returns[900] + 1, Module: m.Path}}))
		for i := range test.proofs {
			all = append(all, frame(dialect.Frame{Dialect: glibc, Number: i + 2, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Vaddr, Value: returns[i*100], Module: m.Path}}))
		}
		trace := Trace{Open: func(f *dialect.Frame) *Image {
			copied := *m
			if f.Module != m.Path {
				copied = Image{Err: ErrNoLib}
			}
			return &copied
		}}
		trace.Judge(all, new(dialect.Facts))
		if got := placed(all[1:]); got != test.want || got > 0 && all[1].Place.Addr != returns[900]+1 {
			t.Errorf("%s, %d frames: %d are located, want %d", test.before, test.proofs, got, test.want)
		}
	}
}
