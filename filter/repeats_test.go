package filter

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/symbolize"
)

// A pair is two Filters with the same input, of which only the first takes repeats.
type pair struct {
	with, without       *Filter
	output, plainOutput bytes.Buffer
	again               int // stacks that were taken as repeats
	// anySteps ignores the steps spent: a search for a name in a file is cheaper after some
	// searches, and a repeat saves searches
	anySteps bool
}

func newPair(t *testing.T, whole bool) *pair {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/debug"), buildid.ModulePath{}}})
	t.Cleanup(func() { s.Close() })
	o := Options{Symbolizer: s, Patience: patient, Dialects: Dialects{Whole: whole}}
	p := new(pair)
	p.with, p.without = New(&p.output, o), New(&p.plainOutput, o)
	p.without.tracer.repeats = nil
	return p
}

// write writes text to both Filters, and compares their states.
func (p *pair) write(t *testing.T, text string) {
	t.Helper()
	for _, f := range []*Filter{p.with, p.without} {
		if _, err := io.WriteString(f, text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.with.tracer.buffered {
		if p.with.tracer.buffered[i].again != nil {
			p.again++
		}
	}
	if diff := cmp.Diff(p.context(p.without), p.context(p.with)); diff != "" {
		t.Errorf("after %.300q: the contexts differ (-without repeats +with)\n%s", text, diff)
	}
}

func (p *pair) context(f *Filter) string {
	context := f.AppendContext(nil)
	if p.anySteps {
		context = stepsSpent.ReplaceAll(context, nil)
	}
	return string(context)
}

var stepsSpent = regexp.MustCompile(`,"searched":\d+`)

// close closes both Filters, and compares their outputs and counts.
func (p *pair) close(t *testing.T) {
	t.Helper()
	for _, f := range []*Filter{p.with, p.without} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := p.output.String(), p.plainOutput.String(); got != want {
		t.Errorf("(-without repeats +with)\n%s", cmp.Diff(want, got))
	}
	if diff := cmp.Diff(p.without.Stats(), p.with.Stats()); diff != "" {
		t.Errorf("counts (-without repeats +with)\n%s", diff)
	}
}

// ownStack returns the return addresses on its stack, innermost first. It omits the last one, since
// no call leads to the first function of a goroutine.
//
//go:noinline
func ownStack() []uintptr {
	pcs := firstCall(make([]uintptr, 16))
	return pcs[:len(pcs)-1]
}

//go:noinline
func firstCall(pcs []uintptr) []uintptr { return secondCall(pcs)[:] }

//go:noinline
func secondCall(pcs []uintptr) []uintptr { return thirdCall(pcs)[:] }

//go:noinline
func thirdCall(pcs []uintptr) []uintptr { return fourthCall(pcs)[:] }

//go:noinline
func fourthCall(pcs []uintptr) []uintptr { return pcs[:runtime.Callers(2, pcs)] }

// glibcStack returns a backtrace in glibc's form with addresses in this program.
func glibcStack(t *testing.T, pcs []uintptr) string {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, pc := range pcs {
		fmt.Fprintf(&b, "%s[%#x]\n", program, pc)
	}
	return b.String()
}

const (
	androidHead   = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\nbacktrace:\n"
	androidFrames = "    #00 pc 000000000040017a  /vendor/bin/a.out (BuildId: a0a1a2a3a4a5a6a7)\n" +
		"    #01 pc 000000000040018d  /vendor/bin/a.out (BuildId: a0a1a2a3a4a5a6a7)\n"
)

// A Filter that reuses the results of repeated backtraces must have the same output and context as
// a Filter without repeats. The lines between the backtraces must not matter.
func TestRepeatsChangeNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	testenv.OnlyOn(t, "linux") // this program must be an ELF file
	own := glibcStack(t, ownStack())
	prefixed := func(prefix, stack string) string {
		return prefix + strings.ReplaceAll(strings.TrimSuffix(stack, "\n"), "\n", "\n"+prefix) + "\n"
	}
	const maps = "======= Memory map: ========\n00400000-00500000 r-xp 00000000 fe:01 1 /vendor/bin/a.out\n7f0000000000-7f0000001000 r-xp 00000000 fe:01 1 /opt/b.so\n\n"
	android := androidHead + androidFrames
	for _, c := range []struct {
		name    string
		stack   string
		between func(i int) string
		fewest  int // minimum number of repeats
	}{
		{"Android", android, func(int) string { return "" }, 5},
		{"glibc", own, func(int) string { return "crashed\n" }, 5},
		{"both", android + own, func(int) string { return "crashed\n" }, 5},
		{"glibc and Android", own + androidFrames, func(int) string { return "crashed\n" }, 0},
		{"other stacks", android, func(i int) string { return fmt.Sprintf("/none/lib%d.so(+0x%x)[0x7f0000%06x]\n", i, i, i) }, 0},
		{"plain lines", own, func(i int) string { return strings.Repeat("a plain line\n", 37*i) }, 3},
		{"another frame follows", own, func(i int) string { return strings.Repeat("/none/liba.so(+0x123)[0x7f0000000123]\n", i%2) + "text\n" }, 1},
		{"another number", android, func(i int) string {
			return fmt.Sprintf("    #%02d pc 0000000000400142  /vendor/bin/a.out (BuildId: a0a1a2a3a4a5a6a7)\n", i)
		}, 0},
		{"another build", android, func(i int) string { return strings.ReplaceAll(android, "a7)", "a8)") }, 0},
		{"a map", own + android, func(i int) string { return strings.Repeat(maps, i/6%2) }, 1},
		{"a base", own, func(i int) string { return strings.Repeat("Module: a.out (base 0x55d0c0a00000)\n", i/6%2) + "text\n" }, 1},
		{"a signal handler", own, func(i int) string { return strings.Repeat("EIP:\n", i%2) }, 0},
		{"a register dump", own, func(i int) string { return strings.Repeat("Register dump:\n", i/8) + "text\n" }, 1},
		{"colours", own, func(i int) string { return strings.Repeat("\x1b[31m", i%2) + "text\n" }, 5},
		{"elements", android, func(int) string { return bareModule + "{{{bt:0:0x50017a}}}\n" }, 5},
		{"an open hexdict", android, func(i int) string { return strings.Repeat("{{{hexdict:a\n", i%2) + "}}}\n" }, 1},
		{"a kernel", android, func(i int) string {
			return strings.Repeat("CPU: 0 PID: 1 Comm: a Not tainted 6.1.0-13-amd64 #1\n do_fault+0x30/0x160\n", i/7)
		}, 1},
		{"a colour in the stack", "\x1b[1m" + own, func(int) string { return "text\n" }, 0},
		{"line ends", strings.ReplaceAll(own, "\n", "\r\n"), func(i int) string { return "text\n" + strings.Repeat(own, i%2) }, 1},
		{"prefixes", prefixed("shop[4711]: ", own), func(i int) string { return prefixed(fmt.Sprintf("shop[%d]: ", i%3), own) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, whole := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) { // fake clock: lines are held back for a time
					p := newPair(t, whole)
					for i := range 16 {
						p.write(t, c.between(i))
						p.write(t, c.stack)
						p.write(t, strings.Repeat("text\n", 9*(i/2%2)))
					}
					p.write(t, strings.Repeat("text\n", 300)+strings.Repeat(c.between(0)+c.stack, 40))
					for i := range 16 { // the blocks end within a stack
						all := c.between(i) + c.stack
						cut := len(all) - 1 - i*len(c.stack)/16
						p.write(t, strings.Repeat(c.between(i+1)+c.stack, i%3)+all[:cut])
						p.write(t, all[cut:]+strings.Repeat(c.between(i)+c.stack, i%2))
					}
					if p.close(t); p.again < c.fewest {
						t.Errorf("%d repeats were held back, want at least %d", p.again, c.fewest)
					}
				})
			}
		})
	}
}

// A stack must also be taken as a repeat if a block of the input ends within it.
func TestStacksInTwoBlocksAreRepeats(t *testing.T) {
	fuzztest.WithoutRace(t)
	stack := androidHead + androidFrames
	synctest.Test(t, func(t *testing.T) { // fake clock: lines are held back for a time
		for cut := 1; cut < len(stack); cut++ {
			p := newPair(t, true)
			for range 4 {
				p.write(t, stack+strings.Repeat("text\n", 40)) // within one trace
			}
			p.write(t, stack[:cut])
			p.write(t, stack[cut:])
			if !judgeAgain(p.with.tracer) {
				t.Errorf("a block that ends after %q: the stack is not a repeat", stack[:cut])
			}
			p.close(t)
		}
	})
}

// The output for repeated samples, and for samples in random order, must be the same with and
// without repeats.
func TestRepeatsOfSamplesChangeNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	synctest.Test(t, repeatSamples) // fake clock: lines are held back for a time
}

func repeatSamples(t *testing.T) {
	android := androidHead + androidFrames
	samples := append(logtest.Samples(t, "../internal/dialect/testdata/*.txtar"), android, android)
	for i, sample := range samples {
		p := newPair(t, true)
		for range 4 {
			p.write(t, sample)
		}
		if p.close(t); t.Failed() {
			t.Fatalf("sample %d:\n%s", i, sample)
		}
	}
	rng := rand.New(rand.NewPCG(3, 7))
	for range fuzztest.LongOr(200, 10) {
		p := newPair(t, rng.IntN(2) == 0)
		p.anySteps = true
		few := [3]string{samples[rng.IntN(len(samples))], samples[rng.IntN(len(samples))], android}
		for range 30 {
			p.write(t, few[rng.IntN(len(few))])
		}
		if p.close(t); t.Failed() {
			t.Fatalf("samples:\n%s", strings.Join(few[:], "-----\n"))
		}
	}
}

// If a debug file arrives between two equal backtraces, it must be used for the second one.
func TestLateDebugFileServesRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := newLateFile(t)
		s := late.symbolizer()
		defer s.Close()
		var out bytes.Buffer
		f := New(&out, Options{Symbolizer: s, Patience: patient, Dialects: Dialects{Whole: true}})
		ask := func() string {
			out.Reset()
			const frame = "#00 pc 0000000000400140  /vendor/bin/a.out (BuildId: a0a1a2a3a4a5a6a7)\n"
			io.WriteString(f, strings.Repeat(frame+strings.Repeat("text\n", 20), 8))
			return out.String()
		}
		if got := ask(); len(f.tracer.repeats.of) == 0 || strings.Contains(got, "a.cpp") {
			t.Fatalf("with symbols only: %d repeats, and\n%s", len(f.tracer.repeats.of), got)
		}
		late.arrive(t, func() { ask() })
		if got := ask(); strings.Count(got, "a.cpp") < 8 {
			t.Errorf("with the late debug file:\n%s", got)
		}
	})
}

// If a file is replaced between two equal backtraces, the new file must be used for the second one.
func TestReplacedFilesServeRepeats(t *testing.T) {
	fuzztest.WithoutRace(t)
	testenv.OnlyOn(t, "linux")
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	own := strings.Repeat("crashed\n", 9)
	for _, pc := range ownStack() {
		own += fmt.Sprintf("%s[%#x]\n", path, pc)
	}
	p := newPair(t, true)
	for range 4 {
		p.write(t, own)
	}
	if p.again == 0 {
		t.Error("no repeat was held back")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		p.write(t, own)
	}
	if p.close(t); !strings.HasSuffix(p.output.String(), strings.Repeat(own, 2)) {
		t.Errorf("frames of a removed file have names:\n%s", p.output.String())
	}
}

// The memory of repeats must be bounded, however many stacks a log repeats.
func TestRepeatsAreBounded(t *testing.T) {
	c := newRepeats()
	for i := range 4 * maxRepeats {
		text := fmt.Appendf(nil, "%d\n%d\n", i/20, i)
		c.isNew(text, text[:2], false)
		c.add(&repeat{text: text, ends: []int{bytes.IndexByte(text, '\n') + 1}, out: make([]byte, 64<<10)})
		n := 0
		for _, alike := range c.of {
			if n += len(alike); len(alike) > maxAlike {
				t.Fatalf("%d repeats begin with one line", len(alike))
			}
		}
		if n > maxRepeats || n*64<<10 > maxRepeatSize {
			t.Fatalf("%d repeats of 64 KiB", n)
		}
	}
	c.add(&repeat{text: []byte("a\n"), ends: []int{2}, out: make([]byte, maxRepeatSize)})
	if c.size > maxRepeatSize {
		t.Errorf("%d bytes", c.size)
	}
}
