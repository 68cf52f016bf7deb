//go:build linux

package integration

import (
	"os"
	"path/filepath"
	"testing"
)

// The size of a function in a log is the distance to the next function, padding included. A file
// with another distance must be refused, even if the function's code fits.
func TestSizesOfFunctionsOfAKernelAreThoseOfTheLog(t *testing.T) {
	t.Parallel()
	need(t, "gcc")
	dir := t.TempDir()
	source, vmlinux := filepath.Join(dir, "standin.s"), filepath.Join(dir, "vmlinux")
	if err := os.WriteFile(source, []byte(`	.file 1 "/src/ledger.c"
	.text
	.globl _start
_start:
	.type settle,@function
settle:
	.loc 1 10
	call close
	.skip 0x28,0x90
	.size settle,.-settle
	.balign 16
	.type close,@function
close:
	.loc 1 20
	call settle
	.skip 0x23,0x90
	.size close,.-close
spare:	.skip 8,0x90
	.type last,@function
last:
	.loc 1 30
	call settle
	.skip 11,0x90
	.size last,.-last
`), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "gcc", "-nostdlib", "-static", "-Wl,-Ttext=0xffffffff81000000", "-o", vmlinux, source)
	const head = "CPU: 0 PID: 1 Comm: swapper Not tainted 6.6.0 #1\nCall Trace:\n"
	const proof = " settle+0x5/0x30"
	for _, tc := range []struct{ name, log, want string }{
		{"the distance", proof + "\n", proof + " /src/ledger.c:10\n"},
		{"a function of 16 bytes more", " settle+0x5/0x40\n", " settle+0x5/0x40\n"},
		{"beside one that fits", " settle+0x5/0x40\n close+0x5/0x28\n", " settle+0x5/0x40\n close+0x5/0x28\n"},
		{"a label that the kernel has left out", " close+0x5/0x30\n", " close+0x5/0x30 /src/ledger.c:20\n"},
		{"the last one", proof + "\n last+0x5/0x50\n", proof + " /src/ledger.c:10\n last+0x5/0x50 /src/ledger.c:30\n"},
	} {
		if got := run(t, []byte(head+tc.log), command, "-q", "--image", "vmlinux="+vmlinux, "-"); got != head+tc.want {
			t.Errorf("%s:\n%s", tc.name, got)
		}
	}
}
