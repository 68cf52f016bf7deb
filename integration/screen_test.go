//go:build linux

package integration

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updateScreens = flag.Bool("update-screens", false, "write the captured screens to testdata/screens")

// screenLog returns the path of testdata/crash.log with a third backtrace, which has frames in the
// C library.
func screenLog(t *testing.T) string {
	t.Helper()
	log, err := os.ReadFile(filepath.Join(checkout, "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "crash.log")
	log = append(log, "stack of the thread that waits\n"+
		"    {{{bt:0:0x7ffff7e4b2a0:pc}}}\n    {{{bt:1:0x7ffff7e4b3f0:ra}}}\n    {{{bt:2:0x7ffff7e4c0a8:ra}}}\n"+
		"    {{{bt:3:0x7ffff7fbd918:ra}}}\n    {{{bt:4:0x0000555555555ac1:ra}}}\n    {{{bt:5:0x7ffff7df324a:ra}}}\n    {{{bt:6:0x7ffff7df3305:ra}}}\n"...)
	if err := os.WriteFile(name, log, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// screenCommand returns a shell command that filters a log.
func screenCommand(log string, args ...string) string {
	words := append(append([]string{command, "-q", "--no-index"}, crashArgs()...), append(args, log)...)
	for i, w := range words {
		words[i] = "'" + w + "'" // no path of a test contains a quote
	}
	return strings.Join(words, " ")
}

// onScreen runs a shell command on a terminal, tmux, with this many columns, and returns the screen
// once its last line is end.
func onScreen(t *testing.T, columns int, script, end string, flags ...string) string {
	t.Helper()
	need(t, "tmux")
	dir, err := os.MkdirTemp("", "screen") // a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	tmux := func(args ...string) (string, error) {
		cmd := exec.Command("tmux", append([]string{"-u", "-S", filepath.Join(dir, "s"), "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "NO_COLOR=", "CLICOLOR_FORCE=", "DEBUGINFOD_URLS=", "COLUMNS="+strconv.Itoa(columns))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := tmux("new-session", "-d", "-x", strconv.Itoa(columns), "-y", "100", script+"; cat"); err != nil {
		t.Fatal(err, out)
	}
	defer tmux("kill-server")
	capture := func(flags ...string) string {
		t.Helper()
		screen, err := tmux(append([]string{"capture-pane", "-p"}, flags...)...)
		if err != nil {
			t.Fatal(err, screen)
		}
		return strings.TrimRight(screen, "\n")
	}
	defer func() {
		if t.Failed() {
			t.Log(capture())
		}
	}()
	until(t, "the line "+end+" on the screen", func() bool { return strings.HasSuffix(capture(), "\n"+end) })
	return capture(flags...) + "\n"
}

// A crash must fit on terminals with 80 and 120 columns. testdata/screens has the expected screens.
func TestACrashFitsIntoATerminal(t *testing.T) {
	log := screenLog(t)
	line := func(args ...string) string { return screenCommand(log, args...) + "; echo END" }
	names := namesOf(run(t, nil, command, append(crashArgs(), "-q", "--module-lines=none", "--all-frames", log)...))
	for _, columns := range []int{80, 120} {
		t.Run(strconv.Itoa(columns), func(t *testing.T) {
			screen := onScreen(t, columns, line(), "END")
			golden(t, "crash-"+strconv.Itoa(columns), screen)
			for _, name := range names {
				if len(name) <= columns && !strings.Contains(screen, name) {
					t.Errorf("%s is broken on the screen", name)
				}
			}
			if columns == 80 {
				golden(t, "crash-80-colours", onScreen(t, columns, line(), "END", "-e"))
				golden(t, "crash-80-all-frames-short-names", onScreen(t, columns, line("--all-frames", "--short-names"), "END"))
			}
		})
	}
}

// namesOf returns the functions with arguments and the files with lines in frames of the form #0
// 0xADDR FUNCTION FILE:LINE:COLUMN (MODULE+0xADDR).
func namesOf(text string) (names []string) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		_, rest, ok := strings.Cut(line, " 0x")
		_, rest, _ = strings.Cut(rest, " ")
		function, rest, found := strings.Cut(rest, " /src/")
		place, _, whole := strings.Cut(rest, " (")
		if ok && found && whole {
			names = append(names, function, "/src/"+place)
		}
	}
	return names
}

// golden compares a screen with testdata/screens/NAME.txt. With colours it needs the version of
// tmux that wrote the file, since versions spell colours differently.
func golden(t *testing.T, name, screen string) {
	t.Helper()
	if v := run(t, nil, "tmux", "-V"); strings.Contains(screen, "\x1b") && v != "tmux 3.3a\n" {
		t.Logf("the colours of %s are not compared: this is %s", name, v)
		return
	}
	file := filepath.Join("testdata", "screens", name+".txt")
	if *updateScreens {
		if err := os.WriteFile(file, []byte(screen), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), screen); diff != "" {
		t.Errorf("%s: want (-), got (+):\n%s", name, diff)
	}
}

// less -R must show the output of symfilter --color=always with its colours and lines.
func TestLessShowsACrash(t *testing.T) {
	need(t, "less")
	const columns = 80
	script := screenCommand(screenLog(t), "--color=always", "--module-lines=none", "--all-frames=false") + " | less -R"
	screen := onScreen(t, columns, script, "(END)", "-e")
	golden(t, "less-80-colours", screen)
	if strings.Contains(screen, "ESC") {
		t.Errorf("less shows control characters:\n%s", screen)
	}
}
