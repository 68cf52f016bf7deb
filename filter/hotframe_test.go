package filter

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
)

// hotFrame returns a line with a sanitizer's frame at an address in a program of testdata.
func hotFrame(number int, addr uint64) string {
	return fmt.Sprintf("    #%d %#x  (/opt/shop/a.out+%#x) (BuildId: a0a1a2a3a4a5a6a7)\n", number, 0x55d012340000+addr, addr)
}

// hotFrameLog returns a log with more frames than are kept for late maps, so later frames may be
// hot.
func hotFrameLog() string {
	var b strings.Builder
	for i := range 2 * maxLateFrames {
		b.WriteString(hotFrame(i%16, 0x400138+uint64(i%0x50)))
	}
	return b.String()
}

// newHotPair returns a pair in which both Filters take repeats, but only the first has the fast
// path for hot frames.
func newHotPair(t *testing.T, whole bool) *pair {
	// separate Symbolizers: with a shared one, a name would cost steps only in the first Filter
	p, other := newPair(t, whole), newPair(t, whole)
	p.without = New(&p.plainOutput, other.with.o)
	p.without.bare = false
	return p
}

// The output must be the same with and without hotFrames, whatever lines are between the hot
// frames.
func TestHotFramesChangeNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	const hot = "    #1 0x55d01234017a  (/opt/shop/a.out+0x40017a) (BuildId: a0a1a2a3a4a5a6a7)\n"
	others := append(logtest.Samples(t, "../internal/dialect/testdata/*.txtar"),
		hotFrame(0, 0x40017a)+hotFrame(1, 0x40018d)+hotFrame(2, 0x400140), hotFrame(3, 0x40017a)+hotFrame(7, 0x400142),
		strings.ReplaceAll(hot, "\n", "\r\n"), strings.ReplaceAll(hot, "\n", " \t\n"), strings.ReplaceAll(hot, "  (", " in ??? ("),
		strings.ReplaceAll(hot, "  (", " in shop::pay(int) ("), strings.ReplaceAll(hot, "  (", " in a /src/a.cpp:7 ("),
		strings.ReplaceAll(hot, "  (", " in \x1b[1ma\x1b[m ("), strings.ReplaceAll(hot, "  (", " in #012 ("), strings.ReplaceAll(hot, "  (", " in {{{ ("),
		strings.ReplaceAll(hot, "#1", "#01"), strings.ReplaceAll(hot, "#1", "#012"), strings.ReplaceAll(hot, "#1", "#12345"),
		strings.ReplaceAll(hot, "0x55d0", "0x000055d0"), strings.ReplaceAll(hot, "0x55d0", "0x00000055d0"), strings.ReplaceAll(hot, "0x55d0", "0X55D0"),
		strings.ReplaceAll(hot, "    #", "   #"), strings.ReplaceAll(hot, "    #", "==7==    #"), strings.ReplaceAll(hot, "    #", "shop[7]:     #"),
		strings.ReplaceAll(hot, "a.out", "b.out"), strings.ReplaceAll(hot, "a6a7", "a6a8"), strings.ReplaceAll(hot, " (BuildId: a0a1a2a3a4a5a6a7)", ""),
		strings.ReplaceAll(hot, "0x40017a", "0x7a"), strings.ReplaceAll(hot, "a7)", "a7) text"), "\x1b[31m", "text\n", strings.Repeat("text\n", 300), "{{{hexdict:a\n", "}}}\n",
		bareModule+"{{{bt:0:0x50017a}}}\n", "EIP:\n", androidHead+androidFrames,
		"======= Memory map: ========\n00400000-00500000 r-xp 00000000 fe:01 1 /vendor/bin/a.out\n7f0000000000-7f0000001000 r-xp 00000000 fe:01 1 /opt/b.so\n\n")
	log := hotFrameLog()
	rng := rand.New(rand.NewPCG(5, 9))
	check := func(t *testing.T, whole bool) {
		p := newHotPair(t, whole)
		p.write(t, log)
		few := [4]string{hot, hotFrame(2, 0x40018d), others[rng.IntN(len(others))], others[rng.IntN(len(others))]}
		for range 60 {
			text := few[rng.IntN(len(few))]
			if cut := rng.IntN(40); cut < len(text) {
				p.write(t, text[:cut])
				p.with.Flush()
				p.without.Flush()
				text = text[cut:]
			}
			p.write(t, text)
		}
		if p.close(t); t.Failed() {
			t.Fatalf("lines:\n%s", strings.Join(few[:], "-----\n"))
		}
	}
	for i := range fuzztest.LongOr(200, 16) {
		if !t.Failed() { // fake clock: files are checked again after some time
			synctest.Test(t, func(t *testing.T) { check(t, i%2 == 0) })
		}
	}
}

// For each sample between hot frames, the output is the same in one block and line by line.
func TestHotFramesAndSamplesChangeNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	log := hotFrameLog()
	p := newHotPair(t, true)
	p.write(t, log)
	for _, sample := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		text := hotFrame(0, 0x40017a) + strings.Repeat(sample, 2) + hotFrame(1, 0x40018d) + hotFrame(0, 0x40017a)
		io.WriteString(p.with, text)
		for line := range strings.Lines(text) {
			io.WriteString(p.without, line)
		}
	}
	p.write(t, log)
	p.close(t)
}

// hotFrames must filter hot frames, except while frames are kept for late maps.
func TestHotFramesAreRecognized(t *testing.T) {
	f := New(io.Discard, Options{Symbolizer: testSymbolizer(t), Patience: patient})
	hot := hotFrame(0, 0x40017a) + hotFrame(1, 0x40017a) + hotFrame(123, 0x40017a)
	io.WriteString(f, hot)
	if n := f.hotFrames([]byte(hot), len(hot)); n != 0 {
		t.Errorf("%d bytes of hot frames at the beginning, while frames are kept for maps", n)
	}
	io.WriteString(f, hotFrameLog()+hot)
	if n := f.hotFrames([]byte(hot+"text\n"), len(hot)); n != len(hot) {
		t.Errorf("%d bytes of hot frames, want %d", n, len(hot))
	}
	f.Close()
}
