//go:build linux

package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An ownFrame is a frame in a twin's program, from the output of backtrace_symbols_fd.
type ownFrame struct {
	addr, offset uint64 // in the process, and from the load base
	symbol       string // symbol that covers the address, as nm prints it
	start, size  uint64 // range of the symbol in the file
}

// ownFrames returns the frames of a stack in the program itself, up to main.
func (w *traceTwin) ownFrames(t *testing.T, out []byte, base uint64) (all []ownFrame) {
	t.Helper()
	symbols := regexp.MustCompile(`(?m)^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$`).FindAllStringSubmatch(run(t, nil, "nm", "-S", filepath.Join(w.whole, filepath.Base(w.program))), -1)
	for _, m := range regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(w.program)+`\(?.*\[0x([0-9a-f]+)\]$`).FindAllStringSubmatch(string(out), -1) {
		f := ownFrame{addr: number(t, m[1])}
		f.offset = f.addr - base
		for _, s := range symbols {
			if start, size := number(t, s[1]), number(t, s[2]); f.offset-start-1 < size {
				f.symbol, f.start, f.size = s[3], start, size
			}
		}
		if f.symbol == "_start" {
			break
		}
		all = append(all, f)
	}
	if len(all) < 4 {
		t.Fatalf("%d frames of the program in\n%s", len(all), out)
	}
	return all
}

// number parses a hexadecimal number.
func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// loadBase returns the load base of a position-independent program, from a frame without a name.
func loadBase(t *testing.T, w *traceTwin, out []byte) uint64 {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(w.program) + `\(\+0x([0-9a-f]+)\)\[0x([0-9a-f]+)\]`).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no offset in\n%s", out)
	}
	return number(t, string(m[2])) - number(t, string(m[1]))
}

// inProgram returns flags that link the library statically into a twin's program.
func inProgram(flags ...string) []string {
	return append(flags, filepath.Join(checkout, "integration", "testdata", "twin", "ledger.cc"))
}

var ownCalls = []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}

// Xen's call trace must be resolved. It names symbols, some with their file. xen-syms can be loaded
// at one address only.
func TestXenIsResolved(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "backtrace", twinBuild{link: inProgram("-no-pie")})
	var log strings.Builder
	log.WriteString("(XEN) ----[ Xen-4.17.3  x86_64  debug=n  Not tainted ]----\n(XEN) Xen call trace:\n")
	for i, f := range w.ownFrames(t, w.output(t, nil), 0) {
		file := []string{"", "backtrace.cc#"}[i%2]
		fmt.Fprintf(&log, "(XEN)    [<%016x>] F %s%s+%#x/%#x\n", f.addr, file, f.symbol, f.addr-f.start, f.size)
	}
	image := "--image=xen-syms=" + filepath.Join(w.whole, "backtrace")
	w.wantChain(t, w.frames(t, []byte(log.String()), image), ownCalls...)
	stripped := w.frames(t, []byte(log.String()), "--image=xen-syms="+w.program)
	w.wantChain(t, stripped, ownCalls...)

	other := newTraceTwin(t, "backtrace", twinBuild{flags: []string{"-O1"}, link: inProgram("-no-pie")})
	out := w.text(t, []byte(log.String()), "--debug-file-directory", other.debug, "--image=xen-syms="+filepath.Join(other.whole, "backtrace"))
	if out != log.String() {
		t.Errorf("another build changes the trace:\n%s", out)
	}
}

// Frames of OP-TEE must be resolved. OP-TEE logs the load address of a file, and frames with the
// addresses of calls.
func TestOPTEEIsResolved(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "backtrace", twinBuild{link: inProgram("-pie")})
	out := w.output(t, nil)
	base := loadBase(t, w, out)
	const uuid = "5b9e0e40-2636-11e1-ad9e-0002a5d5c51b"
	var log strings.Builder
	fmt.Fprintf(&log, "E/LD:  Status of TA %s\nE/LD:   arch: x86_64\n", uuid)
	fmt.Fprintf(&log, "E/LD:  region  0: va %#x pa 0x0e100000 size 0x002000 flags rw-s (ldelf)\n", base-0x8000)
	fmt.Fprintf(&log, "E/LD:  region  1: va %#x pa 0x0e100000 size 0x00f000 flags r-xs [0]\n", base)
	fmt.Fprintf(&log, "E/LD:   [0] %s @ %#x\nE/LD:  Call stack:\n", uuid, base)
	for _, f := range w.ownFrames(t, out, base) {
		fmt.Fprintf(&log, "E/LD:   %#x\n", f.addr-1)
	}
	w.wantChain(t, w.frames(t, []byte(log.String()), "--image="+uuid+"="+w.program), ownCalls...)

	other := newTraceTwin(t, "backtrace", twinBuild{flags: []string{"-O1"}, link: inProgram("-pie")})
	answer := w.text(t, []byte(log.String()), "--debug-file-directory", other.debug, "--image="+uuid+"="+other.program)
	if answer != log.String() {
		t.Errorf("another build changes the stack:\n%s", answer)
	}
}

// The instruction that QNX logs must be resolved. QNX prints its offset in the file and in an
// exported function.
func TestQNXIsResolved(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "backtrace", twinBuild{link: inProgram("-pie", "-rdynamic", "-Wl,-z,noseparate-code")})
	line := func(w *traceTwin) string {
		out := w.output(t, nil, "signal")
		for _, f := range w.ownFrames(t, out, loadBase(t, w, out)) {
			if f.symbol == "_Z4falli" {
				return fmt.Sprintf("Process 4711 (backtrace) terminated SIGSEGV code=1 fltno=11 ip=%016x(%s@%s+%#x) mapaddr=%016x. ref=0000000000000000\n",
					f.addr, w.program, f.symbol, f.offset-f.start, f.offset)
			}
		}
		t.Fatalf("no frame of fall in\n%s", out)
		return ""
	}
	log := line(w)
	w.wantChain(t, w.frames(t, []byte(log)), "fall")

	other := newTraceTwin(t, "backtrace", twinBuild{flags: []string{"-O0"}, link: inProgram("-pie", "-rdynamic", "-Wl,-z,noseparate-code")})
	answer := w.text(t, []byte(log), "--debug-file-directory", other.debug, "--image=backtrace="+other.program)
	if answer != log {
		t.Errorf("another build changes the line:\n%s", answer)
	}
}

// A frame must stay unchanged if its file is not ELF, if no file has the address, or if AArch64 has
// signed the address. --explain must print the reason.
func TestForeignFramesAreExplained(t *testing.T) {
	t.Parallel()
	const (
		macho  = "the module is a Mach-O file of macOS or iOS, which symfilter does not read; atos -o FILE -l BASE ADDRESS resolves the address"
		pe     = "the module is a PE file of Windows, which symfilter does not read; with its PDB file, a Windows debugger or llvm-symbolizer --obj=FILE resolves the address"
		gone   = "no file has the code: the program generated it, or unloaded its library before the report; keep the library loaded (RTLD_NODELETE) to get its names"
		signed = "a signed return address (AArch64 pointer authentication): the program must strip the signature (xpaclri) before it prints the address"
		wasm   = "the module is WebAssembly, which symfilter does not read; llvm-symbolizer --obj=FILE.wasm resolves offsets in it"
	)
	for _, c := range []struct{ line, module, means string }{
		{"1   inventory                     \t0x000000010f2a3f1c 0x10f2a0000 + 16156", "inventory", macho},
		{"000000d5`f86ff8a8 00007ff6`1c2b1034 inventory+0x1034", "inventory", pe},
		{"    at wasm://wasm/8d3f5a6e:wasm-function[33]:0x5d", "addresses without a module", wasm},
		{"    #1 0x10f2a3f1c  (/usr/lib/libledger.dylib:x86_64+0x3f1c)", "/usr/lib/libledger.dylib", macho},
		{`    #1 0x7ff61c2b1034  (C:\shop\ledger.dll+0x1034)`, `C:\shop\ledger.dll`, pe},
		{"C  [inventory.exe+0x1034]  f+0x12", "inventory.exe", pe},
		{"    #2 0x7f3112345678  (<unknown module>)", "addresses without a module", gone},
		{"#3  0x003c7f31c2a01154 in ?? () from /opt/shop/libledger.so", "/opt/shop/libledger.so", signed},
		{"    @     0x3c7f31c2a01154  (unknown)", "addresses without a module", signed},
	} {
		cmd := exec.Command(command, "--explain")
		cmd.Stdin = strings.NewReader(c.line + "\n")
		var out, explained strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &explained
		want := "symfilter: unresolved: " + c.module + ", 1 address: " + c.means + "\n"
		if err := cmd.Run(); err != nil || out.String() != c.line+"\n" || explained.String() != want {
			t.Errorf("%v: %s\nis printed as %s\nand explained as %s\nwant %s", err, c.line, &out, &explained, want)
		}
	}
}
