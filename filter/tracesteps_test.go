package filter

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// Bounds of the work on traces, in steps of dialect.Quota of about 50 ns. A log takes at most 0.5 s
// for each MiB, and 0.4 s in addition. A block delays later lines by at most 0.5 s.
const (
	mostLogSteps    = 8 << 20
	mostStepsAByte  = 10
	mostBlockSteps  = 10 << 20
	mostTraceGrowth = 1.1 // maximum growth of the steps per byte in a longer log
)

// traceSteps filters a log of size bytes, made by repeated calls of text. It returns the steps of
// the log's traces, and checks the steps of each block.
func traceSteps(t *testing.T, o Options, text func() string, size int) int64 {
	t.Helper()
	f := New(io.Discard, o)
	quota := f.tracer.reader.Quota()
	const block = 64 << 10
	var b strings.Builder
	for written := 0; written < size; written += b.Len() {
		b.Reset()
		for b.Len() < min(block, size-written) {
			b.WriteString(text())
		}
		before := quota.Steps()
		if _, err := io.WriteString(f, b.String()); err != nil {
			t.Fatal(err)
		}
		if n := quota.Steps() - before; n > mostBlockSteps {
			t.Errorf("%d steps for a block of %d bytes, want at most %d", n, b.Len(), mostBlockSteps)
		}
	}
	f.Close() // judges the last trace
	return quota.Steps()
}

// mallocs returns the number of allocations of the process so far.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// The steps and allocations for the traces of a log must be linear in its length. The logs repeat
// each sample of each dialect, all samples and all their lines at random, or different traces of a
// large program.
func TestTracesTakeStepsInProportionToTheLog(t *testing.T) {
	fuzztest.WithoutRace(t)
	testenv.OnlyOn(t, "linux") // this program must be an ELF file
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// each log has its own numbers, so its text does not depend on the order of the logs
	random := func() *rand.Rand { return rand.New(rand.NewPCG(9, 10)) }
	repeated := func(text string) func() string { return func() string { return text } }
	oneOf := func(texts []string) func() string {
		rng := random()
		return func() string { return texts[rng.IntN(len(texts))] }
	}
	samples := logtest.Samples(t, "../internal/dialect/testdata/*.txtar")
	addresses := random()
	logs := map[string]func() string{
		"samples": oneOf(samples),
		"lines":   oneOf(strings.SplitAfter(strings.Join(samples, ""), "\n")),
		"traces of a large program": func() string {
			at := func() uint64 { return 0x7f0000000000 + addresses.Uint64N(48<<20) }
			return fmt.Sprintf("======= Backtrace: =========\n%[1]s[%#[2]x]\n%[1]s(n%[3]x+0x4c)[%#[3]x]\n%[1]s[%#[4]x]\n%[1]s[%#[5]x]\n%[1]s[%#[6]x]\n%[1]s[%#[7]x]\n"+
				"======= Memory map: ========\n00400000-00401000 r-xp 00000000 fe:01 1    /opt/x\n\n", program, at(), at(), at(), at(), at(), at())
		},
	}
	paths, err := filepath.Glob("../internal/dialect/testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for i, archive := range logtest.Archives(t, "../internal/dialect/testdata/*.txtar") {
		var text strings.Builder
		for i := 0; i < len(archive.Files); i += 2 {
			text.Write(archive.Files[i].Data)
		}
		logs[filepath.Base(paths[i])] = repeated(text.String())
	}
	for name, text := range logs {
		shortest := 256 << 10
		if name == "samples" || name == "lines" {
			// in 256 KiB of random text, chance alone changes the allocations by 12%
			shortest = 1 << 20
		}
		longest := 4 * shortest
		if fuzztest.Long() {
			longest = 16 << 20
		}
		t.Run(name, func(t *testing.T) {
			o := Options{Symbolizer: testSymbolizer(t), Patience: patient, Dialects: Dialects{Whole: true}}
			before, allocatedBefore := 0.0, 0.0
			for size := shortest; size <= longest; size *= 4 {
				allocated := mallocs()
				steps := traceSteps(t, o, text, size)
				allocated = mallocs() - allocated
				if most := int64(mostLogSteps + mostStepsAByte*size); steps > most {
					t.Errorf("%d steps for %d bytes, want at most %d", steps, size, most)
				}
				each := float64(steps) / float64(size)
				t.Logf("%d bytes: %d steps, %.2f for a byte", size, steps, each)
				if before > 0 && each > before*mostTraceGrowth {
					t.Errorf("%.2f steps for a byte of %d, %.2f for one of a shorter log", each, size, before)
				}
				before = each
				const besides = 20_000 // allocations that do not grow with the log
				if most := allocatedBefore*mostTraceGrowth*float64(size) + besides; allocatedBefore > 0 && float64(allocated) > most {
					t.Errorf("%d allocations for %d bytes, want at most %.0f: a shorter log has %.4f for a byte", allocated, size, most, allocatedBefore)
				}
				allocatedBefore = float64(allocated) / float64(size)
			}
		})
	}
}
