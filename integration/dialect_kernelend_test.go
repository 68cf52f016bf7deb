//go:build linux

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The end of a function must be taken for a return address only after a call to a function that
// does not return. This must hold for a vmlinux, and for a module, which is not linked.
func TestTheEndOfAKernelFunctionFollowsACall(t *testing.T) {
	need(t, "gcc", "ld")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	const source = `	.text
	.file 1 "/src/k.c"
	.globl plain, calls, panics
	.type plain,@function
	.type calls,@function
	.type panics,@function
plain:
	.loc 1 10
	.rept 31
	nop
	.endr
	ret
	.size plain,.-plain
calls:
	.loc 1 20
	.rept 27
	nop
	.endr
	.loc 1 21
	call panics
	.size calls,.-calls
panics:
	.loc 1 30
	.rept 32
	nop
	.endr
	.size panics,.-panics
`
	if err := os.WriteFile(path("k.s"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "gcc", "-c", "-o", path("k.o"), path("k.s"))
	run(t, nil, "ld", "-e", "0", "-Ttext=0xffffffff81000000", "--build-id", "-o", path("vmlinux"), path("k.o"))
	run(t, nil, "ld", "-r", "--build-id", "-o", path("ledger.ko"), path("k.o"))
	const head = "CPU: 0 PID: 1 Comm: x Not tainted 6.1.0-56-amd64 #1\nCall Trace:\n"
	for _, module := range []string{"", " [ledger]"} {
		log := head + strings.ReplaceAll(" plain+0x10/0x20@\n plain+0x20/0x20@\n calls+0x20/0x20@\n", "@", module)
		want := head + strings.ReplaceAll(" plain+0x10/0x20@ /src/k.c:10\n plain+0x20/0x20@\n calls+0x20/0x20@ /src/k.c:21\n", "@", module)
		if got := run(t, []byte(log), command, "-q", "--image", path("vmlinux"), "--image", "ledger="+path("ledger.ko")); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}
