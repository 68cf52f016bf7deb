package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// openTerminal returns both ends of a pseudo-terminal that passes bytes on unchanged.
func openTerminal(t *testing.T) (master, terminal *os.File) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	master = os.NewFile(uintptr(fd), "/dev/ptmx")
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := term.MakeRaw(slave); err != nil {
		t.Fatal(err)
	}
	terminal = os.NewFile(uintptr(slave), "terminal")
	t.Cleanup(func() { terminal.Close() })
	return master, terminal
}

// onTerminal runs symfilter with its output on a terminal, and returns the output. Variables that
// affect colours are unset, unless env has them.
func onTerminal(t *testing.T, log string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	shown, err := runOnTerminal(t, cmd, log, env)
	if err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	return shown
}

// runOnTerminal is like onTerminal, but runs cmd. If cmd.Stderr is nil, standard error is also the
// terminal.
func runOnTerminal(t *testing.T, cmd *exec.Cmd, log string, env []string) (string, error) {
	t.Helper()
	master, terminal := openTerminal(t)
	cmd.Stdin = strings.NewReader(log)
	cmd.Stdout = terminal
	if cmd.Stderr == nil {
		cmd.Stderr = terminal
	}
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"TERM", "NO_COLOR", "CLICOLOR_FORCE"}, name) || strings.HasPrefix(name, "SYMFILTER_")
	})
	cmd.Env = append(append(cmd.Env, "TERM=xterm", asCommand+"=1"), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	shown, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) { // EIO is the end of a terminal
		t.Error(err)
	}
	return string(shown), cmd.Wait()
}

// In the llvm style, a FILE on the command line must be ignored, as llvm-symbolizer does. A message
// on the terminal must report this.
func TestFilesAreNotReadInTheStyleOfLLVM(t *testing.T) {
	for args, want := range map[string]string{
		"--filter-markup crash.log": "symfilter: FILEs and addresses on the command line are ignored with --filter-markup\n",
		"--filter-markup":           "",
	} {
		shown, err := runOnTerminal(t, exec.Command(os.Args[0], strings.Fields(args)...), "", nil)
		if shown != want || err != nil {
			t.Errorf("%s: the terminal shows %q (%v), want %q", args, shown, err, want)
		}
	}
}

// The output must equal that of llvm-symbolizer on the same kind of terminal.
func TestTerminalInTheStyleOfLLVM(t *testing.T) {
	fuzztest.WithoutRace(t)
	testenv.Need(t, llvmSymbolizer)
	const log = "a \x1b[31mred\x1b[0m {{{symbol:_Z1fv}}} {{{pc:0x1}}} b {{{bt:x:0x1}}} c\n{{{module:0:m:elf:aabb}}}\n" +
		"{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{reset:begin}}}\n\x1b[1m{{{module:0:m:elf:aabb}}}\n{{{mmap:0x1000:16:load:0:r:0}}}\n{{{bt:0:0x1004}}} {{{data:0x1004}}}\n"
	for _, env := range []string{
		"", "NO_COLOR=1", "NO_COLOR=", "CLICOLOR_FORCE=1", "TERM=", "TERM=dumb", "TERM=linux", "TERM=vt100", "TERM=vt220", "TERM=ansi",
		"TERM=cygwin", "TERM=rxvt-unicode", "TERM=screen", "TERM=tmux-256color", "TERM=foot", "TERM=xterm-256color NO_COLOR=1",
	} {
		for _, args := range []string{"", "--color", "--color=auto", "--color=never"} {
			for _, both := range []bool{true, false} {
				if !both && args != "" {
					continue // the terminal gets the same
				}
				run := func(name string) (shown, said string) {
					cmd := exec.Command(name, append([]string{"--filter-markup", "--debug-file-directory=nowhere"}, strings.Fields(args)...)...)
					var stderr strings.Builder
					if !both {
						cmd.Stderr = &stderr
					}
					shown, err := runOnTerminal(t, cmd, log, append(strings.Fields(env), "DEBUGINFOD_URLS="))
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					return shown, stderr.String()
				}
				wantShown, wantSaid := run(llvmSymbolizer)
				if shown, said := run(os.Args[0]); shown != wantShown || said != wantSaid {
					t.Errorf("%q, %q:\n got %q %q\nwant %q %q", args, env, shown, said, wantShown, wantSaid)
				}
			}
		}
	}
}

// A terminal must get the colours of a log. Other control characters must be escaped, except with
// --raw or --filter-markup.
func TestTerminal(t *testing.T) {
	const log = "a \x1b[31mred\x1b[0m {{{symbol:_Z1fv}}}\n\x1b]0;title\a tab\there\r\x9b5n\n"
	const (
		colored = "a \x1b[31mred\x1b[0m \x1b[1mf()\x1b[0m\n\\x1b]0;title\\x07 tab\there\\x0d\\x9b5n\n"
		plain   = "a red f()\n\\x1b]0;title\\x07 tab\there\\x0d\\x9b5n\n"
		object  = `{"v":1,"text":"a \u001b[31mred\u001b[0m f()","elements":[{"tag":"symbol","name":"_Z1fv","demangled":"f()"}]}` + "\n"
	)
	for _, test := range []struct {
		args, env, want string
	}{
		{"", "", colored},
		{"--color=auto", "", colored},
		{"", "NO_COLOR=1", plain},
		{"", "NO_COLOR=", colored},
		{"", "TERM=dumb", plain},
		{"--color", "NO_COLOR=1", colored},
		{"--color=never", "CLICOLOR_FORCE=1", plain},
		{"", "NO_COLOR=1 CLICOLOR_FORCE=1", colored},
		{"--raw --color=never", "", "a red f()\n\x1b]0;title\a tab\there\r\x9b5n\n"},
		{"--raw", "", "a \x1b[31mred\x1b[0m \x1b[1mf()\x1b[0m\n\x1b]0;title\a tab\there\r\x9b5n\n"},
		{"", "SYMFILTER_RAW=true NO_COLOR=1", "a red f()\n\x1b]0;title\a tab\there\r\x9b5n\n"},
		{"--output=markup", "", log},
		{"--filter-markup", "", "a \x1b[0;31mred\x1b[0m \x1b[0;34mf()\x1b[0m\n\x1b]0;title\a tab\there\r\x9b5n\n"},
		{"--filter-markup", "NO_COLOR=1", "a \x1b[0;31mred\x1b[0m \x1b[0;34mf()\x1b[0m\n\x1b]0;title\a tab\there\r\x9b5n\n"},
		{"--filter-markup", "TERM=dumb", "a red f()\n\x1b]0;title\a tab\there\r\x9b5n\n"},
		{"--filter-markup --color=never", "", "a red f()\n\x1b]0;title\a tab\there\r\x9b5n\n"},
	} {
		if got := onTerminal(t, log, strings.Fields(test.env), strings.Fields(test.args)...); got != test.want {
			t.Errorf("%q, %q:\n got %q\nwant %q", test.args, test.env, got, test.want)
		}
	}
	line, _, _ := strings.Cut(onTerminal(t, log, nil, "--output=json"), "\n")
	if line += "\n"; line != object {
		t.Errorf("--output=json:\n got %q\nwant %q", line, object)
	}
}

// Names in JSON and in profiles must always be escaped. With --raw, and in pipes, reports must be
// unchanged.
func TestReportsOnATerminal(t *testing.T) {
	const evil = "\x1b]0;title\a\x1b[31m\u202e\u00ad\u2066\U000e0041\xff\x9b5n"
	const shown = `\x1b]0;title\x07\x1b[31m\u202e\u00ad\u2066\U000e0041\xff\x9b5n`
	const quoted = `\u001b]0;title\u0007\u001b[31m\u202e\u00ad\u2066\udb40\udc41` + "\ufffd\ufffd" + `5n`
	const report = "version=2.2, arch=x86_64, timestamp=2010.1.1 1:1:1, process=/bin/EVIL, pid=1\n" +
		": /lib/EVIL.so => 0x1000-0x2000\n1. [100.1] mallocEVIL(10) = 0x4000\n\t0x1100\n\n"
	const profile = "# callgrind format\nversion: 1\ncmd: EVIL\npositions: line\nevents: Ir\n\nob=/lib/EVIL.so\nfl=EVIL.c\nfn=EVIL\n1 10\n\n"
	const log = "EVIL{{{module:0:EVIL:elf:aa}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{pc:0x1000}}}{{{symbol:EVIL}}}\n"
	for _, test := range []struct {
		args, log string
		want      string // EVIL in the output
	}{
		{"--output=rtrace", report, shown},
		{"--output=rtrace --raw", report, evil},
		{"--output=callgrind", profile, shown},
		{"--output=callgrind --raw", profile, shown}, // names are escaped everywhere
		{"--output=json", log, quoted},
		{"--output=json --raw", log, quoted},
		{"--output=json --input=rtrace", report, quoted},
		{"--output=json --input=callgrind", profile, quoted},
		{"--input=callgrind", profile, shown},
		{"--input=rtrace", report, shown},
		{"profile -", "desc: (none)\ncmd: EVIL\ntime_unit: i\n", shown},
		{"profile --output=folded -", "{\"dhatFileVersion\":2,\"pps\":[{\"tb\":1,\"fs\":[1]}],\"ftbl\":[\"[root]\",\"0x1: EVIL (a.c:1)\"]}", `\u202e\u00ad\u2066\U000e0041`},
	} {
		got := onTerminal(t, strings.ReplaceAll(test.log, "EVIL", evil), []string{"NO_COLOR=1"}, append(strings.Fields(test.args), "-q")...)
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q in it", test.args, got, test.want)
		}
		if left := escape.AppendText(nil, got, "\t\n"); test.want != evil && string(left) != got {
			t.Errorf("%s: this reaches the terminal: %q", test.args, got)
		}
	}
	cmd := exec.Command(os.Args[0], "--output=rtrace", "-q")
	cmd.Stdin, cmd.Env = strings.NewReader(strings.ReplaceAll(report, "EVIL", evil)), append(os.Environ(), asCommand+"=1")
	if out, err := cmd.Output(); err != nil || !strings.Contains(string(out), evil) {
		t.Errorf("in a pipe: got %q, %v; want %q in it", out, err, evil)
	}
}

// The layout must depend on the terminal's width, on flags and on the environment. Text in a pipe
// must not be laid out.
func TestLooksOfATerminal(t *testing.T) {
	const log = "{{{module:0:/opt/app:elf:aabb}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" +
		"{{{module:1:libc.so.6:elf:aacc}}}\n{{{mmap:0x2000:0x1000:load:1:rx:0}}}\n" +
		"{{{bt:0:0x2010}}}\n{{{bt:1:0x2020}}}\n{{{bt:2:0x1030}}}\n"
	const (
		modules = "module #0x0 app aabb\nmodule #0x1 libc.so.6 aacc\n"
		full    = "[[[ELF module #0x0 \"/opt/app\"; BuildID=aabb [0x1000-0x1fff](rx)]]]\n[[[ELF module #0x1 \"libc.so.6\"; BuildID=aacc [0x2000-0x2fff](rx)]]]\n"
		libc    = "    #0    0x0000000000002010 (libc.so.6+0x10) (BuildId: aacc)\n    #1    0x0000000000002020 (libc.so.6+0x1f) (BuildId: aacc)\n"
		own     = "    #2    0x0000000000001030 (/opt/app+0x2f) (BuildId: aabb)\n"
		folded  = "    2 frames of libc.so.6\n"
		broken  = "    #0    0x0000000000002010\n         (libc.so.6+0x10)\n         (BuildId: aacc)\n    #1    0x0000000000002020\n         (libc.so.6+0x1f)\n         (BuildId: aacc)\n    #2    0x0000000000001030\n         (/opt/app+0x2f)\n         (BuildId: aabb)\n"
	)
	for _, test := range []struct{ args, env, want string }{
		{"", "NO_COLOR=1", modules + folded + own},
		{"", "TERM=dumb", modules + folded + own},
		{"--all-frames", "NO_COLOR=1", modules + libc + own},
		{"--own libc.*", "NO_COLOR=1", modules + libc + own},
		{"--system /opt", "NO_COLOR=1", modules + libc + own}, // no frame is own
		{"--module-lines=full", "NO_COLOR=1", full + folded + own},
		{"--module-lines=none", "NO_COLOR=1", folded + own},
		{"--omit-module-lines", "NO_COLOR=1", folded + own},
		{"--keep-raw", "NO_COLOR=1", modules + libc + own},
		{"--raw --color=never", "", full + libc + own},
		{"--all-frames --module-lines=none", "NO_COLOR=1 COLUMNS=36", broken},
		{"--all-frames --module-lines=none", "NO_COLOR=1 COLUMNS=x", libc + own},
		{"--all-frames --module-lines=none", "NO_COLOR=1 COLUMNS=3", libc + own},
		{"--raw --color=never --module-lines=none", "COLUMNS=36", libc + own},
	} {
		env := append([]string{"COLUMNS="}, strings.Fields(test.env)...)
		if got := onTerminal(t, log, env, append(strings.Fields(test.args), "-q", "--no-paths")...); got != test.want {
			t.Errorf("%q, %q:\n got %q\nwant %q", test.args, test.env, got, test.want)
		}
	}
	for args, want := range map[string]string{
		"":                    full + libc + own,
		"--all-frames=false":  full + folded + own,
		"--module-lines=full": full + libc + own,
	} {
		cmd := exec.Command(os.Args[0], append(strings.Fields(args), "-q", "--no-paths")...)
		cmd.Stdin, cmd.Env = strings.NewReader(log), append(os.Environ(), asCommand+"=1", "COLUMNS=36")
		if out, err := cmd.Output(); err != nil || string(out) != want {
			t.Errorf("in a pipe, %q: got %q, %v; want %q", args, out, err, want)
		}
	}
}

// Folded frames must be printed after a silence in the input, before the next line of the log
// arrives.
func TestFoldedFramesReachTheTerminalInSilence(t *testing.T) {
	master, terminal := openTerminal(t)
	cmd := exec.Command(os.Args[0], "-q", "--no-paths", "--module-lines=none", "--color=never")
	cmd.Env = append(os.Environ(), "TERM=xterm", "COLUMNS=", asCommand+"=1")
	cmd.Stdout = terminal
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	io.WriteString(stdin, "{{{module:0:app:elf:aabb}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{module:1:libc.so.6:elf:aacc}}}\n{{{mmap:0x2000:0x1000:load:1:rx:0}}}\n"+
		"{{{bt:0:0x1030}}}\n{{{bt:1:0x2010}}}\n{{{bt:2:0x2020}}}\n")
	const want = "    #0    0x0000000000001030 (app+0x30) (BuildId: aabb)\n    2 frames of libc.so.6\n"
	shown := make([]byte, len(want))
	if _, err := io.ReadFull(master, shown); err != nil || string(shown) != want {
		t.Errorf("got %q, %v; want %q", shown, err, want)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
