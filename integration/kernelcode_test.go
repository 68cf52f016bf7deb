//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// An oopsed is a stand-in for a kernel that prints the code around an instruction.
type oopsed struct {
	vmlinux string
	head    string // the log before the code
	tail    string // the log after the code
	code    []byte // bytes of the file that are printed
	at      int    // index of the instruction in code
}

// oopsIn compiles a stand-in and returns the oops at an offset in one of its functions.
func oopsIn(t *testing.T, compiler, counter string, offset, before, after uint64, flags ...string) *oopsed {
	t.Helper()
	need(t, compiler, "llvm-readelf-19")
	o := &oopsed{vmlinux: filepath.Join(t.TempDir(), "vmlinux")}
	args := append([]string{"-O2", "-g", "-static", "-nostdlib", "-ffreestanding", "-Wl,-e,0", "-o", o.vmlinux}, flags...)
	run(t, nil, compiler, append(args, filepath.Join(checkout, "integration", "testdata", "kernel", "arm64.c"))...)
	symbols := kernelSymbols(t, o.vmlinux)
	frame := func(name string, offset uint64) string {
		s := symbols[name][0]
		return fmt.Sprintf("%s+%#x/%#x", name, offset, max(s.next, s.size))
	}
	settle, init := symbols["ledger_settle"][0], symbols["ledger_init"][0]
	o.head = "CPU: 0 PID: 1 Comm: swapper Not tainted 6.6.0 #1\n" + counter + frame("ledger_init", offset) + "\n"
	o.tail = "Call Trace:\n " + frame("ledger_settle", settle.size-1) + "\n " + frame("ledger_init", offset) + "\n"
	f, err := elf.Open(o.vmlinux)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	all, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	at := init.addr + offset - text.Addr
	first := at - min(at, before)
	o.code, o.at = all[first:min(at+after, uint64(len(all)))], int(at-first)
	return o
}

// log returns the oops with this code, printed in units of unit bytes.
func (o *oopsed) log(code []byte, unit int) string {
	var b strings.Builder
	b.WriteString("Code:")
	for i := 0; i+unit <= len(code); i += unit {
		word := ""
		for k := unit - 1; k >= 0; k-- {
			word += fmt.Sprintf("%02x", code[i+k])
		}
		switch {
		case i == o.at && unit == 1:
			word = "<" + word + ">"
		case i == o.at:
			word = "(" + word + ")"
		}
		b.WriteString(" " + word)
	}
	return o.head + b.String() + "\n" + o.tail
}

// explained runs symfilter on a log and returns its output and its messages.
func explained(t *testing.T, log string, args ...string) (out, messages string) {
	t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Stdin = strings.NewReader(log)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// The code that a kernel prints must prove its file, even if the kernel has patched itself there.
// Other code must refute the file: this must be reported once, and nothing may be resolved.
func TestCodeOfAnOopsProvesTheFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		o    *oopsed
		unit int
	}{
		{"x86-64", oopsIn(t, "gcc", "RIP: 0010:", 8, 42, 22, "-fno-pie", "-no-pie", "-fcf-protection=none", "-Wl,-Ttext=0xffffffff81000000", "-mcmodel=kernel"), 1},
		{"arm64", oopsIn(t, "aarch64-linux-gnu-gcc", "pc : ", 16, 16, 4), 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resolved := func(code []byte) (out, messages string) {
				t.Helper()
				return explained(t, tc.o.log(code, tc.unit), "--explain", "--image", tc.o.vmlinux)
			}
			out, messages := resolved(tc.o.code)
			if n := strings.Count(out, "arm64.c:"); n < 3 || !strings.Contains(messages, "by other bytes of the file") {
				t.Errorf("%d answers\n%s%s", n, out, messages)
			}
			patched := bytes.Clone(tc.o.code)
			if tc.unit == 1 {
				for i := 0; i+5 <= len(patched); i++ {
					if patched[i] == 0xe8 {
						copy(patched[i:], "\x0f\x1f\x44\x00\x00")
					}
				}
			} else {
				copy(patched, "\x1f\x20\x03\xd5")
			}
			if bytes.Equal(patched, tc.o.code) {
				t.Fatal("nothing is patched")
			}
			if again, messages := resolved(patched); strings.Count(again, "arm64.c:") != strings.Count(out, "arm64.c:") || !strings.Contains(messages, "by other bytes of the file") {
				t.Errorf("patched:\n%s%s", again, messages)
			}
			other := bytes.Clone(tc.o.code)
			for i := range other {
				other[i] = byte(0x11 + 7*i)
			}
			log := tc.o.log(other, tc.unit)
			out, messages = resolved(other)
			if out != log || strings.Count(messages, "the code in the file differs from the code in the log") != 1 {
				t.Errorf("another file:\n%s%s", out, messages)
			}
			if out, _ := explained(t, log, "-q", "--force-image", "--image", tc.o.vmlinux); !strings.Contains(out, "arm64.c:") {
				t.Errorf("--force-image:\n%s", out)
			}
		})
	}
}
