package object

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// For the direct calls of a program, CallTarget must return the beginnings of its own functions.
// CalledImport must return the names of imported functions.
func TestTargetsOfCalls(t *testing.T) {
	testenv.OnlyOn(t, "linux")
	file, err := os.Open(testenv.Find(t, "/bin/sh"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(file, info.Size(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, ok := f.Section(".text")
	if !ok {
		t.Fatal("/bin/sh has no section .text")
	}
	inside, imports := 0, 0
	for addr := text.Addr; addr < text.Addr+text.Size; addr++ {
		if target, ok := f.CallTarget(addr); ok {
			if start, _, ok := f.UnwindRange(target); ok && start == target {
				inside++
			}
		}
		if name, ok := f.CalledImport(addr); ok && (bytes.Equal(name, []byte("__errno_location")) || bytes.Equal(name, []byte("write"))) {
			imports++
		}
	}
	if inside < 100 || f.Machine == 62 && imports == 0 { // EM_X86_64
		t.Errorf("%d calls of functions of the file, %d of libraries", inside, imports)
	}
}

// labelled matches the first line of a function. targeted matches a direct call with its target.
// anyCode matches the line of any instruction.
var (
	labelled = regexp.MustCompile(`^([0-9a-f]+) <(.*)>:`)
	targeted = regexp.MustCompile(`^ *([0-9a-f]+):\s+(?:bl|blx|calll|callq|jal|jalr)\s+(?:ra, )?(?:0x([0-9a-f]+) |-?0x[0-9a-f]+\(ra\) )<([^>+]+)`)
	anyCode  = regexp.MustCompile(`^ *([0-9a-f]+): `)
)

// CallTarget must return the target that a disassembler prints, for each direct call.
func TestCallsLeadWhereADisassemblerSeesThem(t *testing.T) {
	fuzztest.WithoutRace(t)
	testenv.Need(t, "llvm-objdump-19")
	files := map[string]int{} // minimum number of calls
	for _, name := range []string{"aarch64", "arm", "thumb", "i386", "x86_64", "riscv64"} {
		files["../../symbolize/testdata/arch/"+name+".elf"] = 1
	}
	if fuzztest.Long() {
		for _, machine := range []string{"aarch64-linux-gnu", "arm-linux-gnueabihf", "riscv64-linux-gnu"} {
			files["/usr/"+machine+"/lib/libc.so.6"] = 1000
		}
	}
	for path, least := range files {
		if filepath.IsAbs(path) {
			testenv.Need(t, path)
		}
		args := []string{"-d", "--no-show-raw-insn", path}
		thumb := uint64(0)
		if strings.Contains(path, "thumb") || strings.Contains(path, "arm-linux") {
			thumb = 1
			args = append(args, "--triple=thumbv7-linux-gnueabihf") // a stripped file does not show its instruction set
		}
		out, err := exec.Command("llvm-objdump-19", args...).Output()
		if err != nil {
			t.Fatal(err)
		}
		labels := make(map[string]uint64)
		for line := range strings.Lines(string(out)) {
			if m := labelled.FindStringSubmatch(line); m != nil {
				labels[m[2]], _ = strconv.ParseUint(m[1], 16, 64)
			}
		}
		f, found, call, want := open(t, path), 0, uint64(0), uint64(0)
		for line := range strings.Lines(string(out)) {
			at := anyCode.FindStringSubmatch(line)
			if at == nil {
				continue
			}
			addr, _ := strconv.ParseUint(at[1], 16, 64)
			if want != 0 && addr-call <= 5 && f.ExecCovers(want) { // otherwise a section ends, or data was disassembled as code
				found++
				if got, ok := f.CallTarget(addr | thumb); got != want || !ok {
					t.Errorf("%s: the call before %#x leads to %#x, %v; want %#x", path, addr, got, ok, want)
				}
			}
			call, want = addr, 0
			if m := targeted.FindStringSubmatch(line); m != nil && m[2] != "" {
				want, _ = strconv.ParseUint(m[2], 16, 64)
			} else if m != nil {
				want = labels[m[3]]
			}
		}
		if t.Logf("%s: %d calls", path, found); found < least {
			t.Errorf("%s: %d calls, want at least %d", path, found, least)
		}
	}
}

// For a call through the procedure linkage table, CalledImport must return the function's name on
// each machine.
func TestImportsOfOtherMachines(t *testing.T) {
	testenv.OnlyLong(t)
	for _, machine := range []string{"aarch64-linux-gnu", "arm-linux-gnueabihf", "riscv64-linux-gnu"} {
		path := "/usr/" + machine + "/lib/libc.so.6"
		testenv.Need(t, path)
		f := open(t, path)
		text, _ := f.Section(".text")
		calls, thumb := 0, uint64(0)
		if strings.HasPrefix(machine, "arm-") {
			thumb = 1
		}
		for addr := text.Addr + 4; addr < text.Addr+text.Size; addr += 2 {
			if name, ok := f.CalledImport(addr | thumb); ok && string(name) == "malloc" {
				if calls++; !f.CallMayLeave(addr | thumb) {
					t.Errorf("%s: the call of malloc before %#x may not leave the file", path, addr)
				}
			}
		}
		if t.Logf("%s: %d calls of malloc", path, calls); calls < 10 {
			t.Errorf("%s: %d calls of malloc", path, calls)
		}
	}
}
