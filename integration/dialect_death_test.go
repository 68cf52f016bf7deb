//go:build linux

package integration

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// For a killed process, the kernel logs the base name of a file, and on the next line the code
// around the fault. This code must prove the file.
func TestProcessesThatDiedAreResolvedByTheirCode(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "death", twinBuild{link: link})
			for _, form := range []string{"new", "old"} {
				log := w.output(t, nil, form)
				w.wantSame(t, log, "--symbol-path", w.dir)
				frames := w.frames(t, log, "--symbol-path", w.dir)
				w.wantChain(t, frames, "inventory.h/fall")
				if len(frames) != 1 || frames[0].Verified != "code" {
					t.Errorf("%+v", frames)
				}
				if got := w.text(t, log); got != string(log) {
					t.Errorf("no file is named, but the line is answered: %s", got)
				}
				line, _, _ := strings.Cut(string(log), "\n")
				if got := w.text(t, []byte(line+"\n"), "--symbol-path", w.dir); got != line+"\n" {
					t.Errorf("without the code the line is answered: %s", got)
				}
				got := w.text(t, []byte(line+"\n"), "--image", "death="+w.program)
				if place := w.chain(t, "inventory.h/fall")[0]; !strings.HasSuffix(got, "/"+place+"\n") {
					t.Errorf("with --image: %s, want %s", got, place)
				}
			}
		})
	}
}

// Another build has different code at the address, so the line must stay unchanged.
func TestProcessesThatDiedAreNotResolvedByOtherBuilds(t *testing.T) {
	w := newTraceTwin(t, "death", twinBuild{})
	log := w.output(t, nil)
	other := newTraceTwin(t, "death", twinBuild{flags: []string{"-O1"}})
	for _, args := range [][]string{{"--symbol-path", other.dir}, {"--image", "death=" + other.program}, {"--symbol-path", w.dir, "--no-paths"}} {
		if got := w.text(t, log, append(args, "--debug-file-directory", other.debug)...); got != string(log) {
			t.Errorf("%v: %s", args, got)
		}
	}
	both := w.frames(t, log, "--symbol-path", other.dir, "--symbol-path", w.dir)
	w.wantChain(t, both, "inventory.h/fall")
}

// Faults on other processors must be resolved by their code. AArch64 logs the address on a later
// line, and PowerPC prints instructions as words.
func TestProcessesOfOtherProcessorsThatDied(t *testing.T) {
	need(t, "aarch64-linux-gnu-gcc", "aarch64-linux-gnu-objdump")
	w := &traceTwin{whole: t.TempDir(), debug: t.TempDir()}
	w.program = filepath.Join(w.whole, "died")
	source := filepath.Join(w.whole, "died.c")
	if err := os.WriteFile(source, []byte(`int step(int n) { return n * 3 + 1; }
__attribute__((noinline)) int fall(volatile int *p, int n) {
  n = n * 7 + 3;
  *p = n;
  n = n * n + 5 * *p;
  return n ^ (n << 3);
}
void _start(void) { for (;;) fall((int *)8, step(2)); }
`), 0o666); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "aarch64-linux-gnu-gcc", "-g", "-O1", "-nostdlib", "-static", "-Wl,-z,max-page-size=0x1000,-z,separate-code", source, "-o", w.program)
	listing := run(t, nil, "aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", w.program)
	var at uint64 // address of the store in fall
	for line := range strings.Lines(listing) {
		if strings.Contains(line, "\tstr\t") {
			fmt.Sscanf(strings.TrimSpace(line), "%x:", &at)
		}
	}
	file, err := elf.Open(w.program)
	if err != nil || at == 0 {
		t.Fatal(err, listing)
	}
	defer file.Close()
	text := file.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	var words strings.Builder
	for i := 0; i+4 <= len(code); i += 4 {
		format := " %08x"
		if text.Addr+uint64(i) == at {
			format = " <%08x>"
		}
		fmt.Fprintf(&words, format, binary.LittleEndian.Uint32(code[i:]))
	}
	base := at &^ 0xfff
	arm := fmt.Sprintf("died[7]: unhandled level 2 translation fault (11) at 0x00000008, esr 0x92000046, in died[%x+1000]\nCPU: 0 PID: 7 Comm: died\npc : %016x\n", base, at)
	riscv := fmt.Sprintf("died[7]: unhandled signal 11 code 0x1 at 0x0000000000000008 in died[%x,%x+1000]\n", text.Offset+at-text.Addr, base)
	power := fmt.Sprintf("died[7]: segfault (11) at 8 nip %x lr %x code 1 in died[%x+1000]\ndied[7]: code:%s\n", at, at, base, words.String())
	for log, args := range map[string][]string{
		arm:   {"--image", w.program},
		riscv: {"--image", w.program},
		power: {"--symbol-path", w.whole},
	} {
		frames := w.frames(t, []byte(log), args...)
		if len(frames) != 1 || len(frames[0].Frames) != 1 || frames[0].Frames[0].Function != "fall" || frames[0].Frames[0].Line != 4 {
			t.Errorf("%s: %+v", log, frames)
		}
	}
	for _, log := range []string{strings.Replace(arm, "+1000", "+2000", 1), strings.Replace(power, " <", " 00000000 <", 1)} {
		if got := run(t, []byte(log), command, "--image", w.program, "--symbol-path", w.whole); got != log {
			t.Errorf("a line that does not fit the file is answered: %s", got)
		}
	}
}

func TestKernelLogOfAProcessThatDied(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "dmesg")
	if err := exec.Command("dmesg").Run(); err != nil {
		testenv.Forbidden(t, "to read the kernel's log", err)
	}
	if on, err := os.ReadFile("/proc/sys/debug/exception-trace"); err != nil || strings.TrimSpace(string(on)) != "1" {
		testenv.Forbidden(t, "the kernel's log of processes that die", "exception-trace is off")
	}
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			cmd := exec.Command(w.program)
			_ = cmd.Run()
			var log strings.Builder
			mark := fmt.Sprintf("fault[%d]", cmd.Process.Pid)
			lines := strings.SplitAfter(run(t, nil, "dmesg"), "\n")
			for i, line := range lines {
				if strings.Contains(line, mark) {
					log.WriteString(line + lines[i+1])
				}
			}
			if log.Len() == 0 {
				testenv.Forbidden(t, "the kernel's log of this process", "no line for it: the limit of messages was reached")
			}
			frames := w.frames(t, []byte(log.String()), "--symbol-path", filepath.Dir(w.program))
			w.wantChain(t, frames, "inventory.h/fall")
		})
	}
}
