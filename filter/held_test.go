package filter

import (
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// liveBytes returns the bytes of memory in use after a garbage collection.
func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The memory for a log must not grow with its length, the length of a trace, or the number of lines
// after a header that promises maps. Nor may it grow with the number of processes, modules or
// frames of a line. Without TEST_LONG=1, the logs have a fifth of the lines.
func TestLogsTakeBoundedMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	const limit = 16 << 20 // bytes
	const promise = "======= Backtrace: =========\n"
	frame := func(module string, i int) string {
		return fmt.Sprintf("#%d  0x%016x in ?? () from %s\n", i, 0x7f31c2a01154+int64(i)*64, module)
	}
	kernel := strings.Repeat(" a+0x1/0x2", 32) + "\n"
	for _, c := range []struct {
		name  string
		lines int
		line  func(i int) string
	}{
		{"a trace of 100,000 frames", 100_000, func(i int) string { return frame("/none/libledger.so", i) }},
		{"100,000 frames after a header that promises maps", 100_000, func(i int) string {
			if i == 0 {
				return promise
			}
			return fmt.Sprintf("/none/libledger.so(+0x%x)[%#x]\n", i, 0x7f31c2a01154+int64(i))
		}},
		{"64 MiB without the maps that the header promises", 1 << 20, func(i int) string {
			if i == 0 {
				return promise + "/none/libledger.so(+0x1154)[0x7f31c2a01154]\n"
			}
			return "63 bytes of a service that logs without any address, and more.\n"
		}},
		{"as many headers as lines", 100_000, func(int) string {
			return promise + "/none/libledger.so(+0x1154)[0x7f31c2a01154]\n"
		}},
		{"lines of a kernel with 32 frames each", 10_000, func(i int) string {
			if i == 0 {
				return promise + "/none/libledger.so(+0x1154)[0x7f31c2a01154]\n"
			}
			return kernel
		}},
		{"10,000 interleaved processes", 40_000, func(i int) string {
			return fmt.Sprintf("p%d ", i%10_000) + frame("/none/libledger.so", i/10_000)
		}},
		{"errors of 10,000 processes under Valgrind", 40_000, func(i int) string {
			return fmt.Sprintf("==%d==    at 0x%X: ??? (in /none/libledger.so)\n", i%10_000+1, 0x4842000+i*16)
		}},
		{"a module for each frame", 20_000, func(i int) string { return frame(fmt.Sprintf("/none/lib%d.so", i), i%100) }},
		{"a name of 4 KiB for each module", 10_000, func(i int) string {
			return frame(fmt.Sprintf("/none/%s%d.so", strings.Repeat("l", 4000), i), i%100)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, whole := range map[string]bool{"a pipe": false, "a file": true} {
				o := resolvingDialects(t)
				o.Dialects.Images, o.Dialects.Whole = nil, whole
				if strings.HasPrefix(c.line(1), "p") {
					o.ProcessKey = regexp.MustCompile(`^(p\d+) `)
				}
				before, most, longest := liveBytes(), 0, 0
				f := New(io.Discard, o)
				lines := c.lines / fuzztest.LongOr(1, 5)
				var block strings.Builder
				for i := range lines {
					block.WriteString(c.line(i))
					if block.Len() < 64<<10 && i < lines-1 {
						continue
					}
					if _, err := io.WriteString(f, block.String()); err != nil {
						t.Fatal(err)
					}
					block.Reset()
					if n := len(f.tracer.text); n > longest+longest/4 || i == lines-1 || i%(lines/8) < 200 {
						most, longest = max(most, liveBytes()-before), max(longest, n)
					}
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				t.Logf("%s: %d KiB", name, most>>10)
				if most > limit {
					t.Errorf("%s: %d KiB are held, want at most %d", name, most>>10, limit>>10)
				}
			}
		})
	}
}
