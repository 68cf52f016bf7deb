package judge

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/testenv"
)

// programReturns holds the return addresses of thisProgram, which are searched once.
var programReturns struct {
	sync.Once
	all []uint64
}

// thisProgram returns the running program as the file of a position-independent module, and
// addresses of its code that follow a call.
func thisProgram(t *testing.T) (m *Image, returns []uint64) {
	t.Helper()
	testenv.OnlyOn(t, "linux") // the program must be an ELF file
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
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
	m = &Image{Path: path, File: f, Segments: f.Segments()}
	programReturns.Do(func() {
		text, _ := f.Section(".text")
		for addr := text.Addr + 1; addr < text.Addr+text.Size; addr++ {
			if yes, _ := f.CallEndsAt(addr); yes {
				programReturns.all = append(programReturns.all, addr)
			}
		}
	})
	returns = slices.Clone(programReturns.all)
	if len(returns) < 1000 {
		t.Fatalf("the test program has %d calls", len(returns))
	}
	return m, returns
}

// framesOfModule returns frames whose return addresses are addrs, moved by the load bias.
func framesOfModule(path string, bias uint64, addrs []uint64) (frames []*Frame) {
	for _, addr := range addrs {
		frames = append(frames, frame(dialect.Frame{Dialect: glibc, Number: -1, LoggedPlace: dialect.LoggedPlace{Module: path, Kind: dialect.Runtime, Addr: addr + bias, Value: addr + bias}}))
	}
	return frames
}

// Eight return addresses must be enough to find the load bias of a program of several megabytes.
// Fewer addresses must not give a wrong bias, and addresses of another file must give none.
func TestBiasesAreFoundByCalls(t *testing.T) {
	m, returns := thisProgram(t)
	rng := rand.New(rand.NewPCG(1, 2))
	trials := fuzztest.LongOr(100, 25)
	for _, c := range []struct {
		frames    int
		found     int // minimum number of trials with a bias
		different bool
	}{
		{frames: 1}, {frames: 2}, {frames: 3}, {frames: 8, found: trials}, {frames: 24, found: trials},
		{frames: 2, different: true}, {frames: 3, different: true}, {frames: 5, different: true}, {frames: 8, different: true}, {frames: 24, different: true},
	} {
		found := 0
		for range trials {
			bias := 0x7f0000000000 + rng.Uint64N(1<<28)*pageSize
			if c.different {
				bias += 1 + rng.Uint64N(pageSize-1)
			}
			var addrs []uint64
			for range c.frames {
				addrs = append(addrs, returns[rng.IntN(len(returns))])
			}
			frames := framesOfModule(m.Path, bias, addrs)
			trace := Trace{Open: func(*dialect.Frame) *Image { return m }}
			trace.Judge(frames, &dialect.Facts{})
			for i, f := range frames {
				if f.Place.Err != nil {
					continue
				}
				found++
				if want := addrs[i] - 1; c.different || f.Place.Addr != want {
					t.Errorf("%d frames: frame %d is placed at %#x, not at %#x", c.frames, i, f.Place.Addr, want)
				}
				break
			}
		}
		t.Logf("%d frames, different: %v: %d of %d found", c.frames, c.different, found, trials)
		if found < c.found {
			t.Errorf("%d frames: the bias is found %d times of %d", c.frames, found, trials)
		}
	}
}

// In files linked by lld, a page may have the end of a segment and the beginning of the next one. A
// mapping of code must then belong to the segment with code.
func TestBiasOfAMapWithTwoSegments(t *testing.T) {
	const base = 0x5638e2ccf000
	image := &Image{Segments: []object.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Addr: 0, Offset: 0, FileSize: 0x13c30, MemSize: 0x13c30},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0x14c30, Offset: 0x13c30, FileSize: 0x3f1e0, MemSize: 0x3f1e0},
	}}
	for _, m := range []dialect.Map{
		{Start: base, End: base + 0x14000},
		{Start: base + 0x14000, End: base + 0x54000, Offset: 0x13000, Code: true},
		{Start: base, End: base + 0x54000, Code: true}, // the whole file, as eu-unstrip lists it
	} {
		if bias, ok := image.biasOfMap(&m); !ok || bias != base {
			t.Errorf("%+v: got %#x, %t, want %#x", m, bias, ok, uint64(base))
		}
	}
}
