//go:build linux

package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

const firmwareSources = "testdata/firmware"

// recordedFirmware returns the path of a file that build.sh has made in testdata/firmware/recorded.
func recordedFirmware(name string) string { return filepath.Join(firmwareSources, "recorded", name) }

// A firmwareFrame is an address in a dump with its answers: a place for each call, innermost first.
type firmwareFrame struct {
	addr   uint64
	places []string // FUNC at FILE:LINE
}

var firmwareAnswer = regexp.MustCompile(`^--- 0x([0-9a-f]+): (.*)$`)

// firmwareFrames returns the frames in out, and the log without the answers.
func firmwareFrames(t *testing.T, out string) (frames []firmwareFrame, log string) {
	t.Helper()
	for line := range strings.Lines(out) {
		text := strings.TrimRight(line, "\r\n")
		if m := firmwareAnswer.FindStringSubmatch(text); m != nil {
			addr, err := strconv.ParseUint(m[1], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, firmwareFrame{addr, []string{m[2]}})
		} else if caller, ok := strings.CutPrefix(text, "  (inlined by) "); ok {
			last := &frames[len(frames)-1]
			last.places = append(last.places, caller)
		} else {
			log += line
		}
	}
	return frames, log
}

// truth returns llvm-symbolizer's answer for an address of a file.
func truth(t *testing.T, file string, addr uint64) (places []string) {
	t.Helper()
	out := run(t, nil, "llvm-symbolizer-19", "--obj="+file, "--output-style=LLVM", fmt.Sprintf("%#x", addr))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		place := lines[i+1][:strings.LastIndexByte(lines[i+1], ':')] // without the column
		places = append(places, lines[i]+" at "+place)
	}
	return places
}

// checkFirmware compares frames with llvm-symbolizer's answers. pc is the fault's address. called
// are addresses of calls, from which nothing is subtracted.
func checkFirmware(t *testing.T, file string, frames []firmwareFrame, pc uint64, called []uint64) {
	t.Helper()
	for _, f := range frames {
		lookup := f.addr
		if f.addr != pc && !slices.Contains(called, f.addr) {
			lookup = f.addr&^1 - 1
		}
		if diff := cmp.Diff(truth(t, file, lookup), f.places); diff != "" {
			t.Errorf("%#x (-llvm +symfilter)\n%s", f.addr, diff)
		}
	}
}

// hexNumbers returns the hex numbers that follow the text mark on the same line.
func hexNumbers(t *testing.T, log, mark string) (all []uint64) {
	t.Helper()
	_, rest, ok := strings.Cut(log, mark)
	if !ok {
		t.Fatalf("no %q in\n%s", mark, log)
	}
	for _, word := range strings.Fields(rest[:strings.IndexByte(rest+"\n", '\n')]) {
		n, err := strconv.ParseUint(strings.TrimPrefix(word, "0x"), 16, 64)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

// wantFirmware filters a dump with the image file. It fails the test unless the dump has the wanted
// number of frames, all with llvm-symbolizer's answers, and is otherwise unchanged.
func wantFirmware(t *testing.T, file string, log []byte, want int) {
	t.Helper()
	out := run(t, log, command, "--image", file)
	frames, rest := firmwareFrames(t, out)
	if rest != string(log) {
		t.Errorf("the log is changed (-log +output)\n%s", cmp.Diff(string(log), rest))
	}
	if len(frames) != want {
		t.Errorf("%d frames, want %d:\n%s", len(frames), want, out)
	}
	pc := hexNumbers(t, string(log), "PC = ")[0]
	var called []uint64
	if strings.Contains(string(log), "-afpiC ") {
		called = hexNumbers(t, string(log), "-afpiC ")
	}
	checkFirmware(t, file, frames, pc, called)
	if twice := run(t, []byte(out), command, "--image", file); twice != out {
		t.Errorf("filtered twice (-once +twice)\n%s", cmp.Diff(out, twice))
	}
}

// firmwareLogs are dumps of a fault in an inlined call and its callers: by Zephyr, NuttX, Mbed OS,
// RT-Thread, CmBacktrace, a HardFault handler, and ESP-IDF on RISC-V.
var firmwareLogs = []struct {
	name   string
	frames int
}{
	{"cortexm", 2 + 2 + 3 + 2 + 2 + 3 + 2 + 3 + 2 + 2},
	{"riscv", 3 + 2 + 1 + 2 + 2 + 1 + 2 + 1 + 2 + 2},
}

func TestRecordedDumpsOfFirmware(t *testing.T) {
	need(t, "llvm-symbolizer-19")
	for _, f := range firmwareLogs {
		t.Run(f.name, func(t *testing.T) {
			wantFirmware(t, recordedFirmware(f.name+".elf"), []byte(readFile(t, recordedFirmware(f.name+".log"))), f.frames)
		})
	}
}

// otherMachines are logs of the firmware on other machines, where it crashes in the same line.
// faults and polls are the numbers of frames of the fault and of its caller; rest is the minimum
// number of other frames. aarch64.log also has a list with main and two functions of the port, and
// U-Boot's registers with its run-time addresses.
var otherMachines = []struct {
	name                string
	faults, polls, rest int
}{
	{"aarch64", 3, 3, 3},
	{"mips", 3, 3, 0},
	{"avr", 4, 0, 0}, // in words, in bytes, and in words again
}

// wantOtherMachine checks the answers for the log of one of otherMachines.
func wantOtherMachine(t *testing.T, dir, name string, faults, polls, rest int) {
	t.Helper()
	log := readFile(t, filepath.Join(dir, name+".log"))
	frames, without := firmwareFrames(t, run(t, []byte(log), command, "--image", filepath.Join(dir, name+".elf")))
	if without != log {
		t.Errorf("the log is changed (-log +output)\n%s", cmp.Diff(log, without))
	}
	got := make(map[string]int)
	for _, f := range frames {
		got[strings.Join(f.places, ", ")]++
	}
	const fault, poll = "scale at /src/app.c:11, calibrate at /src/app.c:15, read_sensor at /src/app.c:19", "poll_sensors at /src/app.c:25"
	if got[fault] != faults || got[poll] != polls || len(frames) < faults+polls+rest || rest > 0 && got["main at /src/app.c:32"] != 1 {
		t.Errorf("answers are %v, want %d of the fault and %d of its caller", got, faults, polls)
	}
}

func TestRecordedDumpsOfOtherMachines(t *testing.T) {
	for _, m := range otherMachines {
		t.Run(m.name, func(t *testing.T) { wantOtherMachine(t, recordedFirmware(""), m.name, m.faults, m.polls, m.rest) })
	}
	other := readFile(t, recordedFirmware("mips.log")) // of another file
	if out := run(t, []byte(other), command, "--image", recordedFirmware("aarch64.elf")); out != other {
		t.Errorf("the log of another machine is resolved:\n%s", out)
	}
}

// AVR's addresses count bytes or words. Without a call before the address, its unit is unknown, so
// the line must stay unchanged.
func TestAddressesOfAVRWithoutACallStay(t *testing.T) {
	const log = "PC = 0x00a8 LR = 0x0154\n"
	if out := run(t, []byte(log), command, "--image", recordedFirmware("avr.elf")); out != log {
		t.Errorf("printed\n%s", out)
	}
}

func TestFirmwareThatCrashesInQEMU(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "clang-19", "ld.lld-19", "avr-gcc", "qemu-system-arm",
		"qemu-system-aarch64", "qemu-system-riscv32", "qemu-system-mips", "qemu-system-avr", "llvm-symbolizer-19")
	logs := make(map[string]string)
	for _, flags := range []string{"-O2", "-Os", "-O0"} {
		dir := t.TempDir()
		build := exec.Command(filepath.Join(firmwareSources, "build.sh"), dir)
		build.Env = append(os.Environ(), "FIRMWARE_FLAGS="+flags)
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build: %v\n%s", err, out)
		}
		for _, m := range otherMachines {
			t.Run(m.name+flags, func(t *testing.T) { wantOtherMachine(t, dir, m.name, m.faults, m.polls, m.rest) })
		}
		for _, f := range firmwareLogs {
			t.Run(f.name+flags, func(t *testing.T) {
				file, log := filepath.Join(dir, f.name+".elf"), readFile(t, filepath.Join(dir, f.name+".log"))
				frames, _ := firmwareFrames(t, run(t, []byte(log), command, "--image", file))
				wantFirmware(t, file, []byte(log), len(frames))
				if len(frames) < 18 {
					t.Errorf("%d frames, want at least 18", len(frames))
				}
				if other := logs[f.name]; other != "" { // of another build
					out := run(t, []byte(other), command, "--image", file)
					if frames, _ := firmwareFrames(t, out); len(frames) > 0 {
						t.Errorf("the log of another build is resolved:\n%s", out)
					}
				}
				logs[f.name] = log
			})
		}
	}
}

// ESP-IDF prints the first digits of the program's hash before or after the backtrace. Zephyr
// prints the build's version at the start. A file of another program must not be used without
// --force-image.
func TestTheProgramInTheLogDecidesTheFile(t *testing.T) {
	file := recordedFirmware("riscv.elf")
	own := hashOf(t, file)
	id := regexp.MustCompile(`Build ID: ([0-9a-f]{40})`).FindStringSubmatch(run(t, nil, "readelf", "-n", file))[1]
	const registers = "MEPC    : 0x80000036  RA      : 0x80000058  SP      : 0x80001850\r\n"
	const other = "9d0e9a1f03b5c2d4"
	const zephyr, otherZephyr = "v3.7.0-12-g3c5f1d0e9a7b", "v3.7.0-13-g3c5f1d0e9a7b"
	lines := strings.Repeat("I (1234) sensor: temperature 21\r\n", 10001)
	for _, test := range []struct {
		name, log string
		args      []string
		resolved  bool
	}{
		{"its own hash after the registers", registers + "\r\nELF file SHA256: " + own + "\r\n", nil, true},
		{"its own hash at the start", "I (29) cpu_start: ELF file SHA256:  " + own[:9] + "...\r\n" + registers, nil, true},
		{"another hash after the registers", registers + "\r\nELF file SHA256: " + other + "\r\n", nil, false},
		{"another hash at the start", "I (29) cpu_start: ELF file SHA256:  " + other[:9] + "...\r\n" + registers, nil, false},
		{"another hash long before", "I (29) cpu_start: ELF file SHA256:  " + other[:9] + "...\r\n" + lines + registers, nil, false},
		{"another hash, forced", registers + "\r\nELF file SHA256: " + other + "\r\n", []string{"--force-image"}, true},
		{"its own hash, beside another file", "ELF file SHA256: " + own + "\r\n" + registers, []string{"--image", recordedFirmware("cortexm.elf")}, true},
		{"the hash of another file, which is given", "ELF file SHA256: " + hashOf(t, recordedFirmware("cortexm.elf")) + "\r\n" + registers, []string{"--image", recordedFirmware("cortexm.elf")}, true},
		{"its own build of Zephyr", "*** Booting Zephyr OS build " + zephyr + " ***\r\n" + registers, nil, true},
		{"another build of Zephyr", "*** Booting Zephyr OS build " + otherZephyr + " ***\r\n" + registers, nil, false},
		{"another build of Zephyr long before", "*** Booting Zephyr OS build " + otherZephyr + " ***\r\n" + lines + registers, nil, false},
		{"another build, with a delay", "*** Booting Zephyr OS build " + otherZephyr + " (delayed boot 500ms) ***\r\n" + registers, nil, false},
		{"another version, of nRF Connect", "*** Using Zephyr OS v3.6.99-100befc70c74 ***\r\n" + registers, nil, false},
		{"another build, forced", "*** Booting Zephyr OS build " + otherZephyr + " ***\r\n" + registers, []string{"--force-image"}, true},
		{"another build, then its own", "*** Booting Zephyr OS build " + otherZephyr + " ***\r\n*** Booting Zephyr OS build " + zephyr + " ***\r\n" + registers, nil, true},
		{"its own build, then another", "*** Booting Zephyr OS build " + zephyr + " ***\r\n" + registers + "*** Booting Zephyr OS build " + otherZephyr + " ***\r\n", nil, true},
		{"a banner that a reset has cut", "*** Booting Zephyr OS build " + otherZephyr[:8] + "\r\n" + registers, nil, true},
		{"its own build ID", "<inf> mflt: GNU Build ID: " + id + "\r\n" + registers, nil, true},
		{"another build ID", "<inf> mflt: GNU Build ID: " + other + "\r\n" + registers, nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.Command(command, append([]string{"--image", file, "--explain"}, test.args...)...)
			cmd.Stdin = strings.NewReader(test.log)
			var messages strings.Builder
			cmd.Stderr = &messages
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if frames, _ := firmwareFrames(t, string(out)); (len(frames) == 2) != test.resolved || !test.resolved && string(out) != test.log {
				t.Errorf("printed\n%s", out)
			}
			if told := strings.Count(messages.String(), "--force-image"); told > 1 || (told == 1) == test.resolved {
				t.Errorf("reported\n%s", messages.String())
			}
		})
	}
}

// A line that reaches a limit of held lines must still be answered only once.
func TestLongDumpsOfFirmwareAreFilteredOnce(t *testing.T) {
	t.Parallel()
	const fault = "PC: 0x00000040"
	for _, tc := range []struct{ name, log string }{
		{"lines", strings.Repeat("lr: 0x20000040\n", 255) + fault + "\n"},
		{"bytes", strings.Repeat(strings.Repeat("x", 1000)+"\n"+fault+"\n", 80)},
		{"bytes of a line", strings.Repeat(strings.Repeat("x", 64000)+" "+fault+"\n", 4)},
	} {
		once := run(t, []byte(tc.log), command, "-q", "--image", recordedFirmware("cortexm.elf"))
		if n := strings.Count(once, "read_sensor"); n != strings.Count(tc.log, fault) {
			t.Errorf("%s: %d answers", tc.name, n)
		}
		if twice := run(t, []byte(once), command, "-q", "--image", recordedFirmware("cortexm.elf")); twice != once {
			t.Errorf("%s: %s", tc.name, otherLine(twice, once))
		}
	}
}

// A wild function pointer leads to an address without code. No debug file is missing, so the
// address must not count as unresolved.
func TestWildAddressesAreNotUnresolved(t *testing.T) {
	const answer = "--- 0x80000058: poll_sensors at /src/app.c:25\n"
	const outside = "none of the files that --image names has code at this address"
	for _, test := range []struct {
		log, want, reported string
		status              int
	}{
		{"PC = 0xdeadbeef LR = 0x80000058\n", "PC = 0xdeadbeef LR = 0x80000058\n" + answer, "left as logged: 1 address, such as 0xdeadbeef (" + outside, 0},
		{"PC = 0xdeadbeef\nLR = 0x80000058\n", "PC = 0xdeadbeef\nLR = 0x80000058\n" + answer, "left as logged: 1 address, such as 0xdeadbeef (" + outside, 0},
		{"PC = 0xdeadbeef LR = 0xfffffff9\n", "PC = 0xdeadbeef LR = 0xfffffff9\n", "unresolved: addresses without a module, 1 address: " + outside, 3},
	} {
		cmd := exec.Command(command, "--image", recordedFirmware("riscv.elf"), "--explain", "--strict")
		cmd.Stdin = strings.NewReader(test.log)
		var messages strings.Builder
		cmd.Stderr = &messages
		out, _ := cmd.Output()
		if diff := cmp.Diff(test.want, string(out)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if status := cmd.ProcessState.ExitCode(); status != test.status || !strings.Contains(messages.String(), test.reported) {
			t.Errorf("%q ended with %d, want %d, and reported\n%s", test.log, status, test.status, messages.String())
		}
	}
}

func hashOf(t *testing.T, file string) string {
	t.Helper()
	sum := sha256.Sum256([]byte(readFile(t, file)))
	return hex.EncodeToString(sum[:])[:16]
}

// With frame pointers, ESP-IDF also prints a backtrace on RISC-V, from which nothing was
// subtracted: the addresses must be looked up as return addresses.
func TestBacktracesOfESP32OnRISCV(t *testing.T) {
	const fault = "scale at /src/app.c:11\r\n  (inlined by) calibrate at /src/app.c:15\r\n  (inlined by) read_sensor at /src/app.c:19\r\n"
	const backtrace = "Backtrace: 0x80000036:0x80001850 0x80000058:0x80001890 0x8000008c:0x800018a0\r\n"
	const answers = "--- 0x80000036: " + fault + "--- 0x80000058: poll_sensors at /src/app.c:25\r\n--- 0x8000008c: main at /src/app.c:32\r\n"
	const pc = "MEPC    : 0x80000036\r\n"
	for _, test := range []struct{ name, log, want string }{
		{"alone", backtrace, backtrace + answers},
		{"after the registers", pc + backtrace, pc + "--- 0x80000036: " + fault + backtrace + answers},
		{"abort", "abort() was called at PC 0x80000055 on core 0\r\n", "abort() was called at PC 0x80000055 on core 0\r\n--- 0x80000055: poll_sensors at /src/app.c:25\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, []byte(test.log), command, "--image", recordedFirmware("riscv.elf"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Rust subtracts 4 from the return addresses, even if the call has 2 bytes. The calls must be found
// nevertheless, and only in the right file.
func TestBacktracesOfRustOnESP32(t *testing.T) {
	const log = "!! A panic occured in 'src/main.rs', at line 21, column 5:\r\n\r\nBacktrace:\r\n\r\n0x80000054\r\n0x80000088\r\n0x80000034\r\n\r\nnext\r\n"
	want := strings.NewReplacer(
		"0x80000054\r\n", "0x80000054\r\n--- 0x80000054: poll_sensors at /src/app.c:25\r\n",
		"0x80000088\r\n", "0x80000088\r\n--- 0x80000088: main at /src/app.c:32\r\n").Replace(log)
	for _, file := range []string{"riscv.elf", "cortexm.elf"} {
		got := run(t, []byte(log), command, "--image", recordedFirmware(file))
		if file == "cortexm.elf" {
			want = log
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", file, diff)
		}
	}
}

// Debian has no simulator of Xtensa, so the test writes the dump in ESP-IDF's form, with calls in
// the program's code.
func TestPanicsOfESP32(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "xtensa-lx106-elf-gcc", "xtensa-lx106-elf-objdump", "llvm-symbolizer-19")
	file := filepath.Join(t.TempDir(), "app.elf")
	run(t, nil, "xtensa-lx106-elf-gcc", "-g", "-O2", "-ffreestanding", "-nostdlib", "-mtext-section-literals",
		"-Wl,-Ttext=0x400d1000", "-Wl,-emain", "-o", file, filepath.Join(firmwareSources, "app.c"))
	code := run(t, nil, "xtensa-lx106-elf-objdump", "-d", file)
	at := func(instruction string) uint64 {
		m := regexp.MustCompile(`(?m)^([0-9a-f]+):.*` + instruction).FindStringSubmatch(code)
		if m == nil {
			t.Fatalf("no %s in\n%s", instruction, code)
		}
		n, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	pc, read, poll := at("break"), at("call0.*<read_sensor>"), at("call0.*<poll_sensors>")
	// the highest bits of a return address are the size of its window
	log := fmt.Sprintf("Guru Meditation Error: Core  0 panic'ed (Breakpoint). Exception was unhandled.\r\n\r\n"+
		"Core  0 register dump:\r\nPC      : %#08x  PS      : 0x00060530  A0      : %#08x  A1      : 0x3ffb1f40\r\n\r\n\r\n"+
		"Backtrace: %#08x:0x3ffb1f40 %#08x:0x3ffb1f60 %#08x:0x3ffb1f80 |<-CORRUPTED\r\n",
		pc, (read+3)&0x3fffffff|0x80000000, pc-3, read, poll)
	out := run(t, []byte(log), command, "--image", file)
	frames, rest := firmwareFrames(t, out)
	if rest != log {
		t.Errorf("the log is changed (-log +output)\n%s", cmp.Diff(log, rest))
	}
	fault, inRead, inPoll := truth(t, file, pc), truth(t, file, read), truth(t, file, poll)
	want := []firmwareFrame{{pc, fault}, {read + 3, inRead}, {pc, fault}, {read, inRead}, {poll, inPoll}}
	if diff := cmp.Diff(want, frames, cmp.AllowUnexported(firmwareFrame{})); diff != "" {
		t.Errorf("(-llvm +symfilter)\n%s", diff)
	}
	if len(fault) != 3 {
		t.Errorf("the fault is in %d functions, want 3: %q", len(fault), fault)
	}
}
