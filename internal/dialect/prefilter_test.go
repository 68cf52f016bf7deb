package dialect

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// numberMarks are the marks of numbers: "0x" with the byte before it.
var numberMarks = func() *MarkBytes {
	marks := new(MarkBytes)
	marks.Add("\t\n [(@+<>mK", "0x")
	return marks
}()

// numbersOf returns steps with the marks of numbers in b[from:]. If more is set, it also returns
// all offsets in b that are multiples of 16.
func numbersOf(b []byte, from int, more bool) (steps []Step) {
	for at := from; at < len(b); at += 64 {
		s := Step{At: at - from}
		for i := at; i < min(at+64, len(b)-2); i++ {
			if numberMarks.Begin(b[i:i+3]) || more && i%16 == 0 {
				s.Marks |= 1 << (i - at)
			}
		}
		if s.Marks != 0 {
			steps = append(steps, s)
		}
	}
	return steps
}

// prefiltered returns the offsets in b[from:] that Prefilter leaves.
func prefiltered(r *Reader, b []byte, from int, more bool) map[int]bool {
	all := make(map[int]bool)
	for _, s := range r.Prefilter(b, from, numberMarks, numbersOf(b, from, more)) {
		for i := range 64 {
			if s.Marks>>i&1 != 0 {
				all[from+s.At+i] = true
			}
		}
	}
	return all
}

// otherWord reports whether each grammar that may match at mark requires a word before the number,
// and b has another word there. Prefilter may then reject the number, although MayMatch does not:
// MayMatch does not examine words.
func otherWord(r *Reader, b []byte, mark int) bool {
	f, at := &r.of[anchor0x], mark+1
	_, blanks := f.bytes(b, at)
	set := f.at(b, at)
	for left := set; left != 0; left &= left - 1 {
		words := f.kinds[bits.TrailingZeros64(left)].first.words
		if len(words) == 0 || slices.Contains(words, string(b[max(0, blanks-2):blanks])) {
			return false
		}
	}
	return set != 0
}

// checkPrefilter checks that Prefilter leaves all marks of b[from:] for which MayMatch returns
// true, except numbers after other words.
func checkPrefilter(t *testing.T, r *Reader, b []byte, from int) {
	t.Helper()
	left, more := prefiltered(r, b, from, false), prefiltered(r, b, from, true)
	for i := from; i+2 < len(b); i++ {
		if numberMarks.Begin(b[i:i+3]) && r.MayMatch(b, i) && !(left[i] && more[i]) && !otherWord(r, b, i) {
			t.Fatalf("%q has lost its mark", b[max(0, i-24):min(len(b), i+24)])
		}
	}
}

// Prefilter must leave each mark at which a grammar may match, in the samples and in samples with
// random bytes changed.
func TestPrefilterLosesNoFrame(t *testing.T) {
	fuzztest.WithoutRace(t)
	r := NewReader(nil)
	r.load()
	random := rand.New(rand.NewPCG(15, 3))
	ordinary := []byte("a line around it, so that its numbers are not at an end\n")
	for _, log := range sampleLogs(t) {
		checkPrefilter(t, r, log, 0)
		checkPrefilter(t, r, bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n")), 0)
		for line := range bytes.Lines(log) { // without other numbers nearby
			checkPrefilter(t, r, slices.Concat(ordinary, line, ordinary), 0)
		}
		for range fuzztest.LongOr(100, 10) {
			other := bytes.Clone(log)
			for at := 0; at < len(other); at += 1 + random.IntN(40) {
				other[at] = " \t\n\r0afx]()[+:@#,/\x1bmK\x80"[random.IntN(22)]
			}
			checkPrefilter(t, r, other, random.IntN(len(other)))
		}
	}
}

// Each mark must have its kind, and at most one in 300 of all 2^21 strings of three ASCII bytes may
// wrongly have the kind of a mark.
func TestKindsOfMarks(t *testing.T) {
	fuzztest.WithoutRace(t)
	others := 0
	for i := range uint32(1 << 21) {
		mark := i&0x7f | i<<1&0x7f00 | i<<2&0x7f0000
		kind, is := numberMarks.kinds[hashOf(mark)], numberMarks.Begin([]byte{byte(mark), byte(mark >> 8), byte(mark >> 16)})
		switch {
		case mark == blank0x && kind&blankMark == 0, is && mark != blank0x && kind != otherMark:
			t.Errorf("%#x has the kind %d", mark, kind)
		case !is && kind != notMark:
			others++
		}
	}
	if others > 1<<21/300 {
		t.Errorf("%d other strings have the kind of a mark", others)
	}
}

// Prefilter must keep no memory in a Reader, since each of thousands of followed files has a
// Reader.
func TestPrefilterKeepsNoMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	const count, most = 1000, 1536
	log := bytes.Repeat([]byte("a line with the numbers 0x1000 and 0x2000\n"), 100)
	NewReader(nil).load()
	readers := make([]*Reader, count)
	steps := numbersOf(log, 0, false)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range readers {
		readers[i] = NewReader(nil)
		readers[i].Prefilter(log, 0, numberMarks, slices.Clone(steps))
	}
	if got := int(heap()-before) / count; got > most {
		t.Errorf("a Reader takes %d bytes, want at most %d", got, most)
	}
	runtime.KeepAlive(readers)
}

func TestFlattenListsEachMark(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 5))
	for range 100 {
		var steps []Step
		var want []int32
		for i := range random.IntN(200) {
			s := Step{At: i * 64, Marks: random.Uint64() >> random.IntN(64)}
			for k := range 64 {
				if s.Marks>>k&1 != 0 {
					want = append(want, int32(s.At+k))
				}
			}
			steps = append(steps, s)
		}
		var got []int32
		for rest := steps; len(rest) > 0; {
			var list []int32
			list, rest = flatten(make([]int32, 0, prefilterSize), rest)
			got = append(got, list...)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v: got %v, want %v", steps, got, want)
		}
	}
}

func FuzzPrefilter(f *testing.F) {
	f.Add([]byte("    #1 0x55d012340138  (/opt/shop/a.out+0x138)\n 0  prog 0x0000000000400138 main + 12\n"), 0)
	f.Add([]byte("\x1b[1m    ? \x1b[0m 0xffffffff81000000\r\n   0x1234\n:  0x12345678"), 5)
	r := NewReader(nil)
	f.Fuzz(func(t *testing.T, b []byte, from int) {
		defer fuzztest.Watch(t, b)()
		if from < 0 || from > len(b) || len(b) > 4<<10 {
			return
		}
		r.load()
		b = append(bytes.Clone(b), "\na line after it, so that the last numbers are not at the end of the block, and another one\n"...)
		checkPrefilter(t, r, b, min(from, len(b)))
	})
}

// bootLines are messages of Linux with numbers.
var bootLines = []string{
	"BIOS-e820: [mem 0x%016x-0x%016x] usable",
	"ACPI: SSDT 0x%016X %06X (v02 PmRef  Cpu0Ist  00003000 INTL 20160422)",
	"pci 0000:00:1f.2: BAR 0 [mem 0x%08x-0x%08x 64bit pref]",
	"pci_bus 0000:00: root bus resource [io  0x%04x-0x%04x window]",
	"clocksource: tsc: mask: 0xffffffffffffffff max_cycles: 0x%x, max_idle_ns: %d ns",
	"x86/fpu: Supporting XSAVE feature 0x%03x: 'AVX-512 opmask' (%d)",
	"last_pfn = 0x%x max_arch_pfn = 0x%x",
	"ata1.00: exception Emask 0x%x SAct 0x%x SErr 0x50000 action 0x6 frozen",
	"pci 0000:00:1f.2: reg 0x%x: [mem 0x%x-0xfebf1fff 64bit pref]",
	"mce: CPU0: Machine Check: 0x%x, MISC 0x%x",
}

// In a kernel's log without frames, Prefilter must remove all numbers, and allocate nothing.
func TestPrefilterLeavesNoNumberOfABoot(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 4))
	var log strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&log, "[%5d.%06d] ", i, random.IntN(1e6))
		fmt.Fprintf(&log, bootLines[i%len(bootLines)]+"\n", random.Uint32()>>(5+random.IntN(25)), random.Uint32()>>(5+random.IntN(25)))
	}
	b := []byte(log.String())
	r := NewReader(nil)
	steps := numbersOf(b, 0, true)
	const ends = 96 // bytes at both ends of a block, where all marks are left
	for at := range prefiltered(r, b, 0, true) {
		if at > ends && at < len(b)-ends && numberMarks.Begin(b[at:]) {
			t.Errorf("a mark is left in %q", b[at-24:at+24])
		}
	}
	again := make([]Step, len(steps))
	if n := testing.AllocsPerRun(10, func() {
		copy(again, steps)
		r.Prefilter(b, 0, numberMarks, again)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
