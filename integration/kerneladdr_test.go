//go:build linux

package integration

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// returnsIn returns the return addresses of the calls in the code of a stand-in for a kernel.
func returnsIn(t *testing.T, file string) (all []uint64) {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+5 <= len(code); i++ {
		to := int64(i+5) + int64(int32(binary.LittleEndian.Uint32(code[i+1:])))
		if code[i] == 0xe8 && to >= 0 && to < int64(len(code)) {
			all = append(all, text.Addr+uint64(i)+5)
		}
	}
	return all
}

func functionAt(t *testing.T, file string, addr uint64) string {
	t.Helper()
	name, _, _ := strings.Cut(run(t, fmt.Appendf(nil, "%s %#x\n", file, addr), "llvm-symbolizer-19"), "\n")
	return name
}

// Addresses that a kernel logs without names must be resolved if the log shows where the kernel was
// loaded.
func TestAddressesOfAKernelAreResolved(t *testing.T) {
	t.Parallel()
	need(t, "gcc", "llvm-symbolizer-19", "llvm-readelf-19")
	const offset = 0x33600000
	vmlinux := filepath.Join(t.TempDir(), "vmlinux")
	run(t, nil, "gcc", "-O2", "-g", "-static", "-nostdlib", "-ffreestanding", "-Wl,-e,0", "-fno-pie", "-no-pie", "-fcf-protection=none", "-mcmodel=kernel",
		"-Wl,-Ttext=0xffffffff81000000", "-o", vmlinux, filepath.Join(checkout, "integration", "testdata", "kernel", "arm64.c"))
	returns := returnsIn(t, vmlinux)
	if len(returns) < 4 {
		t.Fatalf("%d calls", len(returns))
	}
	init := kernelSymbols(t, vmlinux)["ledger_init"][0]
	const head = "CPU: 0 PID: 1 Comm: swapper Not tainted 6.6.0 #1\nCall Trace:\n"
	frames := func(addrs []uint64, by uint64) (text, want string) {
		for _, addr := range addrs {
			line := fmt.Sprintf("[    1.000000]  %#x", addr+by)
			text += line + "\n"
			want += fmt.Sprintf("%s %s %s\n", line, functionAt(t, vmlinux, addr-1), chainAt(t, vmlinux, addr-1))
		}
		return text, want
	}
	lines, answers := frames(returns, offset)
	few, fewAnswers := frames(returns[:2], offset)
	named := fmt.Sprintf("[<%016x>] ? ledger_init+%#x/%#x", returns[0]+offset, returns[0]-init.addr, max(init.next, init.size))
	place := chainAt(t, vmlinux, returns[0]-1)
	at := "Kernel Offset: 0x33600000 from 0xffffffff81000000 (relocation range: 0xffffffff80000000-0xffffffffbfffffff)\n"
	pair := fmt.Sprintf("epc : %016x ra : %016x sp : ff20000000013e60\n", returns[0]+offset, returns[1]+offset)
	shown := pair + fmt.Sprintf("--- %#x: %s at %s\n--- %#x: %s at %s\n", returns[0]+offset, functionAt(t, vmlinux, returns[0]), chainAt(t, vmlinux, returns[0]),
		returns[1]+offset, functionAt(t, vmlinux, returns[1]-1), chainAt(t, vmlinux, returns[1]-1))
	registers := strings.Repeat("RAX: 0000000000000000 RBX: ffffffff82000000 RCX: 0000000000000000\n", 20)
	for _, tc := range []struct{ name, log, want string }{
		{"by the distance", few + registers + at, fewAnswers + registers + at},
		{"not moved", strings.ReplaceAll(few, "0xffffffffb4600", "0xffffffff81000") + "Kernel Offset: disabled\n", strings.ReplaceAll(fewAnswers, "0xffffffffb4600", "0xffffffff81000") + "Kernel Offset: disabled\n"},
		{"by a function", few + named + "\n", fewAnswers + named + " " + place + "\n"},
		{"registers", pair + named + "\n", shown + named + " " + place + "\n"},
		{"by calls", lines, answers},
		{"by nothing", few, few},
		{"another distance", few + strings.Replace(at, "0x336", "0x337", 1), few + strings.Replace(at, "0x336", "0x337", 1)},
		{"of another kernel", few + strings.Replace(at, "0xffffffff81000000", "0xffffffff80000000", 1), few + strings.Replace(at, "0xffffffff81000000", "0xffffffff80000000", 1)},
		{"of modules", " 0xffffffffc0378000\n" + lines, " 0xffffffffc0378000\n" + answers},
		{"of an application", strings.ReplaceAll(lines, "[    1.000000]", "at"), strings.ReplaceAll(lines, "[    1.000000]", "at")},
	} {
		got, messages := explained(t, head+tc.log, "--explain", "--image", vmlinux)
		if got != head+tc.want {
			t.Errorf("%s: %s\n%s", tc.name, otherLine(got, head+tc.want), messages)
		}
		if again, _ := explained(t, got, "-q", "--image", vmlinux); again != got && tc.name != "by nothing" {
			t.Errorf("%s, filtered twice: %s", tc.name, otherLine(again, got))
		}
		if tc.name == "by nothing" && !strings.Contains(messages, "the log does not show where the kernel was loaded") {
			t.Errorf("%s", messages)
		}
	}
}

// If the functions in a recorded log are replaced by their addresses, symfilter must print the same
// places for them.
func TestAddressesOfARecordedKernelAreResolved(t *testing.T) {
	testenv.OnlyLong(t)
	vmlinux, _, _ := kernelFiles(t)
	const offset = 0x33600000 // as the log has it
	symbols := kernelSymbols(t, vmlinux)
	text := readText(t, filepath.Join("testdata", "kernel", "console.log"))
	var named, bare []string
	for line := range strings.Lines(text) {
		m := kernelFunction.FindStringSubmatch(line)
		named = append(named, line)
		if m != nil && m[4] == "" {
			size, at := number(t, m[3]), number(t, m[2])
			fits := slices.DeleteFunc(slices.Clone(symbols[m[1]]), func(s kernelSymbol) bool { return s.next != size && (s.size > size || size >= s.size+32) })
			if len(fits) == 1 {
				line = strings.Replace(line, m[0], fmt.Sprintf("%#x", fits[0].addr+at+offset), 1)
			}
		}
		bare = append(bare, line)
	}
	byName := placesOf(run(t, []byte(strings.Join(named, "")), command, "-q", "--image", vmlinux))
	address := regexp.MustCompile(` 0xffffffff[89ab]\w{7}( |$)`)
	for _, without := range []string{"", "Kernel Offset: "} {
		var lines []string
		for _, line := range bare {
			if without == "" || !strings.Contains(line, without) {
				lines = append(lines, line)
			}
		}
		out := run(t, []byte(strings.Join(lines, "")), command, "-q", "--image", vmlinux)
		var chains []string
		resolved, raw := 0, 0
		i := 0
		for line := range strings.Lines(out) {
			line = strings.TrimSpace(line)
			if file, ok := strings.CutSuffix(line, " [inline]"); ok {
				chains = append(chains, file[strings.LastIndexByte(file, ' ')+1:])
				continue
			}
			isBare := address.MatchString(line) && !strings.Contains(line, "Kernel Offset")
			if !isBare && !kernelFunction.MatchString(line) {
				continue
			}
			want := byName[i].chain
			i++
			words := strings.Fields(line)
			last := words[len(words)-1]
			switch {
			case !isBare:
			case strings.HasPrefix(last, "0xffffffff"):
				raw++
			case strings.Join(append(chains, last), " ") != want:
				t.Errorf("%s: %q, want %q", line, chains, want)
			default:
				resolved++
			}
			chains = nil
		}
		t.Logf("%d addresses resolved, %d not", resolved, raw)
		if resolved < 90 || raw > 8 {
			t.Errorf("%d addresses resolved, %d not", resolved, raw)
		}
	}
}
