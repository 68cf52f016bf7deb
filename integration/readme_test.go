//go:build linux

package integration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The first block of commands in README.md must run unchanged from the root of a clone, and print
// the output shown in README. Frames in libc have names only if its debug package is installed.
func TestReadmeCommandsPrintTheGoldenFile(t *testing.T) {
	block := pageBlocks(t, "README.md", "sh")[0]
	const closing = "symfilter: 6 of 22 addresses stayed unresolved: libc.so.6 (4), libclang_rt.asan-x86_64.so (2); "
	print := func(closing string, env ...string) string {
		t.Helper()
		cmd := exec.Command("sh", "-e", "-c", block)
		cmd.Dir = ".."
		cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false"), env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		got, err := cmd.Output()
		if said := stderr.String(); err != nil || !strings.HasPrefix(said, closing) || strings.Count(said, "\n") != strings.Count(closing, ";") {
			t.Fatalf("%s: %v; it prints to standard error, and not %q alone:\n%s", block, err, closing, said)
		}
		return string(got)
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := read("asan.golden") + read("crash.golden")
	if diff := cmp.Diff(want, print(closing, noSystemDebug, "SYMFILTER_NO_PATHS=true")); diff != "" {
		t.Errorf("without the files of this system: testdata/*.golden (-), printed (+):\n%s", diff)
	}
	const libc = "/usr/lib/debug/.build-id/93/ac61ec5a8eb1396f9fbd350e3169a558528a40.debug"
	if _, err := os.Stat(libc); err == nil {
		got := print("", "SYMFILTER_QUIET=true")
		const bare, named = "(libc.so.6+0x27249) (BuildId: 93ac61ec5a8eb1396f9fbd350e3169a558528a40)", "__libc_start_call_main "
		if strings.Contains(got, bare) || strings.Count(got, named) != strings.Count(want, "libc.so.6+0x27249") {
			t.Errorf("%s is not used:\n%s", libc, got)
		}
	}

	// The before and after excerpts in README are parts of the log and of the golden file.
	shown := 0
	for _, rest, found := strings.Cut(readFile(t, filepath.Join("..", "README.md")), "```text\n"); found; shown++ {
		var block string
		block, rest, _ = strings.Cut(rest, "```")
		if all := read([]string{"asan.log", "asan.golden"}[min(shown, 1)]); !strings.Contains(all, block) {
			t.Errorf("README.md shows what is not there:\n%s", block)
		}
		_, rest, found = strings.Cut(rest, "```text\n")
	}
	if shown != 2 {
		t.Errorf("README.md shows %d pieces of output, want what was before and after", shown)
	}
}

// README's three commands must print the names in the log of README's program: from the standard
// error of a program, from a file, and from a followed file. Only the command with --explain may
// print the reasons for unresolved frames.
func TestReadmeThreeCommandsNameFrames(t *testing.T) {
	dir := t.TempDir()
	logs := filepath.Join(dir, "log")
	for _, folder := range []string{logs, filepath.Join(dir, "out")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	log := readFile(t, filepath.Join(checkout, "testdata", "asan.log"))
	for name, text := range map[string]string{"crash.log": log, "log/a.log": log, "server": "#!/bin/sh\ncat crash.log >&2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out/symbols": filepath.Join(checkout, "testdata", "debug"), "symfilter": command} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	lines := 0
	for line := range strings.Lines(pageBlocks(t, "README.md", "sh")[2]) {
		lines++
		out, errs := runLine(t, dir, strings.ReplaceAll(line, "/var/log/app", logs), "SYMFILTER_SYMBOL_PATH=out/symbols")
		if diff := cmp.Diff(readFile(t, filepath.Join(checkout, "testdata", "asan.golden")), out); diff != "" {
			t.Errorf("%s: want (-), got (+):\n%s", line, diff)
		}
		if explained := strings.Count(errs, "\n") > 1; explained != strings.Contains(line, "--explain") {
			t.Errorf("%s: reasons printed: %v\n%s", line, explained, errs)
		}
	}
	if lines != 3 {
		t.Errorf("README.md has %d commands, want 3", lines)
	}
}

// installCommand returns the install command in README.md that starts with words.
func installCommand(t *testing.T, words string) string {
	t.Helper()
	for line := range strings.Lines(pageBlocks(t, "README.md", "sh")[1]) {
		if strings.HasPrefix(line, words) {
			return line
		}
	}
	t.Fatalf("README.md does not install by %s", words)
	return ""
}

// runLine runs a command line of a page in dir, with the symfilter in dir, and returns its output.
// A command that follows files gets SIGTERM once the log is printed.
func runLine(t *testing.T, dir, line string, env ...string) (stdout, stderr string) {
	t.Helper()
	follows := strings.Contains(line, "--follow")
	// exec: the signal must reach symfilter
	cmd := exec.Command("sh", "-c", strings.Replace(line, "symfilter --follow", "exec symfilter --follow", 1))
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), noSystemDebug, "COLUMNS=200", "SYMFILTER_NO_PATHS=true"), env...)
	var errs bytes.Buffer
	name := filepath.Join(t.TempDir(), "printed")
	printed, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = printed, &errs
	if err := errors.Join(cmd.Start(), printed.Close()); err != nil {
		t.Fatal(err)
	}
	if follows {
		until(t, "the file is printed", func() bool { return strings.Contains(readFile(t, name), "SUMMARY") })
		cmd.Process.Signal(syscall.SIGTERM)
	}
	// doctor exits with 1 if debug files are missing
	missing := strings.HasPrefix(line, "symfilter doctor ")
	if err := cmd.Wait(); err != nil && !follows && !missing {
		t.Errorf("%s: %v\n%s", line, err, &errs)
	}
	return readFile(t, name), errs.String()
}

// pageBlocks returns the code blocks of a page in a language.
func pageBlocks(t *testing.T, page, language string) (blocks []string) {
	t.Helper()
	for _, part := range strings.Split(readFile(t, filepath.Join("..", page)), "```"+language+"\n")[1:] {
		block, _, closed := strings.Cut(part, "```\n")
		if !closed {
			t.Fatalf("%s has a block of %s without an end", page, language)
		}
		blocks = append(blocks, block)
	}
	if len(blocks) == 0 {
		t.Fatalf("%s has no block of %s", page, language)
	}
	return blocks
}

// The commands for devices and kernels in docs/usage.md resolve addresses of recorded logs. The
// test replaces the programs that the commands start by programs that print the logs. The log of
// another build must stay unresolved. serial_test.go tests serial ports.
func TestCommandsForDevicesResolveAddresses(t *testing.T) {
	need(t, "xz")
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	reports := func(name string) string { return filepath.Join("testdata", "kernel", "reports", name) }
	oops := strings.ReplaceAll(readText(t, reports("kasan.log")), "[reports]", "[ledger]")
	put("build/app.elf", readFile(t, recordedFirmware("riscv.elf")), 0o600)
	put("build/zephyr/zephyr.elf", readFile(t, recordedFirmware("riscv.elf")), 0o600)
	put("vmlinux", run(t, nil, "xz", "-dc", reports("kasan.vmlinux.xz")), 0o600)
	put("ledger.ko", run(t, nil, "xz", "-dc", reports("kasan.reports.ko.xz")), 0o600)
	put("oops.log", oops, 0o600)
	put("bin/dmesg", "#!/bin/sh\ncat oops.log\n", 0o700)
	put("bin/west", "#!/bin/sh\ncat saved.log\n", 0o700)
	if err := os.Symlink(command, filepath.Join(dir, "bin", "symfilter")); err != nil {
		t.Fatal(err)
	}
	const registers = "MEPC    : 0x80000036  RA      : 0x80000058\r\n"
	_, devices, found := strings.Cut(strings.Join(pageBlocks(t, "docs/usage.md", "sh manual"), ""), "# ESP32")
	if !found {
		t.Fatal("docs/usage.md has no commands for ESP32")
	}
	lines := 0
	for line := range strings.Lines(devices) {
		if !strings.Contains(line, "symfilter --image") && !strings.Contains(line, "| symfilter") || strings.Contains(line, "/dev/tty") {
			continue
		}
		lines++
		resolved := func(saved, want string) bool {
			t.Helper()
			put("saved.log", saved, 0o600)
			cmd := exec.Command("sh", "-e", "-c", line)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "SYMFILTER_SYMBOL_PATH=.", "SYMFILTER_QUIET=true")
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			return strings.Contains(string(out), want)
		}
		if strings.Contains(line, "build/") {
			const answer = "--- 0x80000058: poll_sensors at /src/app.c:25"
			if !resolved(registers, answer) {
				t.Errorf("nothing is resolved by %s", line)
			}
			other := registers + "ELF file SHA256: 9d0e9a1f03b5c2d4\r\n"
			if strings.Contains(line, "zephyr") {
				other = "*** Booting Zephyr OS build v3.7.0-13-g3c5f1d0e9a7b ***\r\n" + registers
			}
			if forced := strings.Contains(line, "--force-image"); resolved(other, answer) != forced {
				t.Errorf("the log of another build, resolved %v by %s", !forced, line)
			}
			continue
		}
		for mark, want := range map[string]bool{
			" [inline]\n": true,
			"bank_sleep+0xc/0x30 [ledger] /build/module/reports.c:131\n": strings.Contains(line, "ledger.ko"),
			"<-- trapping instruction":                                   strings.Contains(line, "--code"),
		} {
			if resolved("", mark) != want {
				t.Errorf("%q printed: %v, by %s", mark, !want, line)
			}
		}
	}
	if lines != 7 {
		t.Errorf("docs/usage.md has %d commands for devices that read logs, want 7", lines)
	}
}
