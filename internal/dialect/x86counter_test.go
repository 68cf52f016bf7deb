package dialect

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// IsCounter must return true at some offset of each line with a register that is read for x86
// kernels.
func TestIsCounterFindsEachRegister(t *testing.T) {
	fuzztest.WithoutRace(t)
	words := []string{
		"RIP", "rip", "Eip", "stacked_", "/", "x", "_", "(", ")", ":", "=", " ", "\t", " ", "/x1=", "pc", "ra", "0x12345678", "ffffffff81063a42",
		"0xffffffff81063a42", "0010:", "[<", ">]", "7", "\x1b[1m", "(ra)", "m",
	}
	r := NewReader(nil)
	r.Firmware, r.OnX86 = true, true
	random := rand.New(rand.NewPCG(1, 1))
	found, skipped := 0, 0
	for range fuzztest.LongOr(2_000_000, 200_000) {
		var b strings.Builder
		for range 1 + random.IntN(10) {
			b.WriteString(words[random.IntN(len(words))])
		}
		line := []byte(b.String())
		counter := false
		for i := range max(0, len(line)-2) {
			counter = counter || slices.Contains([]string{"rip", "eip"}, strings.ToLower(string(line[i:i+3]))) && IsCounter(line, i)
		}
		r.Reset()
		l := r.Line(line, 1)
		ofRegister := l != nil && len(l.Frames) > 0 && l.Frames[0].Dialect == &registers
		switch {
		case ofRegister && !counter:
			t.Fatalf("no place in %q", line)
		case ofRegister:
			found++
		case !counter:
			skipped++
		}
	}
	if found < 200 || skipped < 1000 {
		t.Errorf("%d lines have a register, %d are skipped", found, skipped)
	}
}

func TestKernelsOfX86HaveNoFirmware(t *testing.T) {
	r := NewReader(nil)
	r.Firmware = true
	for _, line := range []string{
		"E: r3/a4:  0x20000bd0 r12/ip:  0x0000000a r14/lr:  0x000004a5", "1: EL3: 0x401b3c4", "abort() was called at PC 0x400d5678 on core 0",
		"[00000000] 801000a8(ra)", "sched_dumpstack: backtrace| 1: 0x0800313f 0x08000141", "run: addr2line -e CmBacktrace.elf -afpiC 08000a60 08000141",
	} {
		for _, r.OnX86 = range []bool{false, true} {
			r.Reset()
			if l := r.Line([]byte(line), 1); (l == nil || len(l.Frames) == 0) != r.OnX86 {
				t.Errorf("%q, x86 %v: %v", line, r.OnX86, l)
			}
		}
	}
}
