package judge

import (
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/testenv"
)

// A frame that a signal has interrupted must be exact even if a later call of Judge judges it,
// after the trampoline. This happens if the writer of the log pauses between the two lines.
func TestTheFrameAfterATrampolineIsExactInALaterJudgement(t *testing.T) {
	testenv.OnlyOn(t, "linux/amd64") // Go's runtime has a trampoline there
	m, returns := thisProgram(t)
	text, _ := m.File.Section(".text")
	trampoline := uint64(0)
	for addr := text.Addr; addr < text.Addr+text.Size && trampoline == 0; addr++ {
		if m.isTrampoline(addr) {
			trampoline = addr
		}
	}
	if trampoline == 0 {
		t.Fatal("the test program has no trampoline")
	}
	for _, c := range []struct {
		name   string
		number int // number of the first frame; -1: the frames have no numbers
		step   int
	}{{"numbered", 1, 1}, {"without numbers", -1, 0}} {
		var frames []*Frame
		for i, addr := range []uint64{returns[0], trampoline, returns[1], returns[2]} {
			frames = append(frames, frame(dialect.Frame{Dialect: glibc, Number: c.number + i*c.step, LoggedPlace: dialect.LoggedPlace{Module: m.Path, Kind: dialect.Vaddr, Value: addr}}))
		}
		trace := Trace{Open: func(*dialect.Frame) *Image { return m }}
		trace.Judge(frames[:2], &dialect.Facts{})
		trace.Judge(frames[2:], &dialect.Facts{})
		for i, want := range []uint64{returns[0] - 1, trampoline, returns[1], returns[2] - 1} {
			if f := frames[i]; f.Place.Err != nil || f.Place.Addr != want {
				t.Errorf("%s: frame %d is placed at %#x, %v; want %#x", c.name, i, f.Place.Addr, f.Place.Err, want)
			}
		}
	}
}
