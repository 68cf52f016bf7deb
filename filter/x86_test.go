package filter

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// The instruction pointer of an x86 kernel must be found in any form in the output of a virtual
// machine or debugger. No other text may be taken for it.
func TestCountersOfX86AreFound(t *testing.T) {
	image := Image{Path: filepath.Join(recordedFirmware, "aarch64.elf")}
	f := New(io.Discard, Options{Symbolizer: testSymbolizer(t), Dialects: Dialects{Images: []Image{image}}})
	if f.tracer.reader.OnX86 {
		t.Error("firmware is taken for a kernel")
	}
	f.tracer.reader.OnX86 = true
	for _, line := range []string{
		"RIP=000000004010004c RFL=00000246", "    RIP: 000000004010004c  RSP: ffff88", "rip = 0x000000004010004c", "\x1b[1mEip\x1b[0m:4010004c", "(rIP) 0x4010004c",
	} {
		at := strings.Index(strings.ToLower(line), "ip") - 1
		for _, lines := range []int{0, 1, 30, 64, 5000} {
			before, after := strings.Repeat("a script in /dev/ripley, eip, PC=0x12345678\n", lines), strings.Repeat("descriptor rip\n", lines)
			m := blockMarks{of: f, b: []byte(before + line + "\n" + after)}
			if got := m.nextNumber(0); got != len(before)+at {
				t.Errorf("%q after %d bytes: found at %d", line, len(before), got)
			}
			if got := m.nextNumber(len(before) + len(line) + 1); got != len(m.b) {
				t.Errorf("after %q and %d bytes: found at %d", line, len(before), got)
			}
		}
	}
}
