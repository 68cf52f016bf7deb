//go:build unix

package dwarf

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/object"
)

// apart is an argument for Beside: it calls run in another goroutine.
func apart(run func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		run()
	}()
	return func() { <-done }
}

// If another goroutine runs a long line program, neither answers nor costs may change. The kept
// rows or sequences must give the same answers as a run of the whole program.
func TestColdRunsInAnotherGoroutineChangeNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const size = 1000 // bytes of opcodes of a sequence; it has at least as many bytes of code
	var program []byte
	for i := range uint64(2 * apartProgram / size) {
		program = append(program, setAddress(0x1000+(i*37%64)<<13)...)
		for range size {
			program = append(program, byte(13+r.IntN(200)))
		}
		program = append(program, endSequence...)
	}
	addrs := make([]uint64, 100)
	for i := range addrs {
		addrs[i] = 0x1000 + r.Uint64N(64<<13)
	}
	type outcome struct {
		Frames []Frame
		Steps  int64
		Kept   bool // the rows are kept
	}
	lookUp := func(beside func(func()) func()) (all []outcome, lines, listed int) {
		d, once := dataOf(lineSections(program)), dataOf(lineSections(program))
		d.Beside(beside)
		for _, addr := range addrs {
			var o outcome
			var err error
			if o.Frames, err = d.Lookup(nil, addr); err != nil {
				t.Fatal(err)
			}
			o.Steps, _ = d.Spent()
			u := d.unitAt(0)
			if o.Kept = u.lines.decoded; u.lines.listed {
				listed++
			}
			once.work = maxWork
			whole := once.unitAt(0)
			whole.openLines()
			row := whole.coldLine(addr)
			if row.ok {
				lines++
			}
			if got := u.lineAt(addr); got != row {
				t.Errorf("%#x: got %+v, %+v from a run of the whole program", addr, got, row)
			}
			all = append(all, o)
		}
		checkFootprint(t, d)
		return all, lines, listed
	}
	one, lines, listed := lookUp(nil)
	two, _, _ := lookUp(apart)
	if diff := cmp.Diff(one, two, cmp.Comparer(equalFrames)); diff != "" {
		t.Errorf("-one goroutine +two goroutines:\n%s", diff)
	}
	for _, beside := range []func(func()) func(){nil, apart} {
		d := dataOf(lineSections(program))
		d.Beside(beside)
		d.tick = warmLookups // the first lookup keeps the rows
		for i, addr := range addrs {
			frames, err := d.Lookup(nil, addr)
			if err != nil || !d.unitAt(0).lines.decoded {
				t.Fatalf("%#x: %v", addr, err)
			}
			if diff := cmp.Diff(one[i].Frames, frames, cmp.Comparer(equalFrames)); diff != "" {
				t.Errorf("%#x: -cold +kept:\n%s", addr, diff)
			}
		}
	}
	if lines < len(addrs)/10 || listed < 5 || !one[len(one)-1].Kept {
		t.Errorf("%d of %d addresses have a line, %d lookups found sequences, rows are kept at the end: %v", lines, len(addrs), listed, one[len(one)-1].Kept)
	}
}

// A fault in the other goroutine must become a fault of the lookup.
func TestFaultsOfColdRunsArePassedOn(t *testing.T) {
	gone, err := syscall.Mmap(-1, 0, 2*apartProgram, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(gone)
	d := dataOf(lineSections(endSequence))
	d.work = maxWork
	d.Beside(apart)
	u := d.unitAt(0)
	u.openLines()
	u.lines.program = cursor{buf: gone}
	err = object.Guard(func() { u.lookup(u, nil, 0x1000) })
	if err != object.ErrFault {
		t.Errorf("got %v, want %v", err, object.ErrFault)
	}
}
