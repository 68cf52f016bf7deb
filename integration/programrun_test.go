//go:build linux

package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A startedTwin is a stripped program, a stripped library, and the folder of the debug files.
type startedTwin struct{ program, plugin, debug string }

// buildStarted builds testdata/run/program.c, with further flags for the program.
func buildStarted(t *testing.T, more ...string) startedTwin {
	t.Helper()
	need(t, "gcc", "strip", "objcopy")
	dir := t.TempDir()
	w := startedTwin{filepath.Join(dir, "program"), filepath.Join(dir, "plugin.so"), filepath.Join(dir, "debug")}
	if err := os.Mkdir(w.debug, 0o777); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(checkout, "integration", "testdata", "run", "program.c")
	for file, flags := range map[string][]string{w.program: append([]string{"-pie", "-fPIE"}, more...), w.plugin: {"-DPLUGIN", "-shared", "-fPIC"}} {
		run(t, nil, "gcc", append(flags, "-g", "-O1", "-Wl,--build-id", source, "-o", file)...)
		run(t, nil, "objcopy", "--only-keep-debug", file, filepath.Join(w.debug, filepath.Base(file)+".debug"))
		run(t, nil, "strip", "--strip-all", file)
	}
	return w
}

// command returns symfilter run for the program with these arguments.
func (w startedTwin) command(words ...string) *exec.Cmd {
	return exec.Command(command, append([]string{"run", "--no-index", "-s", w.debug, "--", w.program}, words...)...)
}

// ended returns how a command ended: "exit status 3", "signal: terminated", or "".
func ended(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.Error()
	}
	return fmt.Sprint(err)
}

// programFunctions returns the functions of the program that a log names, in the log's order.
func programFunctions(log string) (names []string) {
	for _, found := range regexp.MustCompile(`(?m)^ *\d+: +0x[0-9a-f]+ - (print_stack|settle|on_abort|act|main|enter)\b`).FindAllStringSubmatch(log, -1) {
		names = append(names, found[1])
	}
	return names
}

// A stripped, position-independent program prints addresses itself, in its children, in a library
// that it loads, and in a handler before its death. All must get names from the debug files.
func TestAStartedProgramIsResolvedByItsMaps(t *testing.T) {
	w := buildStarted(t)
	for _, c := range []struct {
		words []string
		want  []string
		end   string
	}{
		{[]string{"stack"}, []string{"print_stack", "settle", "act", "main"}, "<nil>"},
		{[]string{"child", "exit", "3"}, []string{"print_stack", "settle", "act", "main"}, "exit status 3"},
		{[]string{"plugin", w.plugin}, []string{"print_stack", "settle", "enter", "act", "main"}, "<nil>"},
		{[]string{"abort"}, []string{"print_stack", "settle", "on_abort", "act", "main"}, "signal: aborted"},
		{[]string{"children"}, []string{"print_stack", "settle", "act", "main"}, "<nil>"},
	} {
		t.Run(c.words[0], func(t *testing.T) {
			out, err := w.heldRun(t, c.words...)
			if got := programFunctions(out); !slices.Equal(got, c.want) || ended(err) != c.end {
				t.Errorf("ended by %v, want %s; functions %s, want %s\n%s", err, c.end, got, c.want, out)
			}
		})
	}
	out, err := w.heldRun(t, "stack")
	if err != nil || !regexp.MustCompile(regexp.QuoteMeta(w.program)+` was loaded at 0x[0-9a-f]+000: the maps of process \d+ show this address`).MatchString(out) {
		t.Errorf("--explain: %v\n%s", err, out)
	}
}

// All programs that are not position-independent have the same load address. So the stack must
// prove that the addresses belong to this program, and the frames must then be resolved.
func TestAStartedProgramAtAFixedAddressProvesItself(t *testing.T) {
	w := buildStarted(t, "-no-pie", "-fno-pie")
	out, err := w.heldRun(t, "stack")
	if got, want := programFunctions(out), []string{"print_stack", "settle", "act", "main"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: functions %s, want %s\n%s", err, got, want, out)
	}
}

// heldRun runs the program, and keeps its input open until the output has main's name. It returns
// the whole output and how the program ended.
func (w startedTwin) heldRun(t *testing.T, words ...string) (string, error) {
	t.Helper()
	cmd := w.command(words...)
	cmd.Args = slices.Insert(cmd.Args, 2, "--explain")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // since one program signals its group
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := startPiped(t, cmd, &cmd.Stdout, &cmd.Stderr)
	heard := programText{File: out}
	text := heard.await(t, " - main\n")
	in.Close()
	rest, err := io.ReadAll(out)
	if err != nil {
		t.Error(err)
	}
	return text + heard.text + string(rest), cmd.Wait()
}

// symfilter must exit with the program's status, and pass on its output. It must leave the
// program's input to the program.
func TestAStartedProgramKeepsItsStatusAndItsStreams(t *testing.T) {
	w := buildStarted(t)
	for _, c := range []struct {
		words       []string
		in          string
		out, failed string
	}{
		{[]string{"exit", "7"}, "", "", "exit status 7"},
		{[]string{"kill", "9"}, "", "", "signal: killed"},
		{[]string{"kill", "11"}, "", "", "signal: segmentation fault"},
		{[]string{"kill", "13"}, "", "", "signal: broken pipe"},
		{[]string{"read", "exit", "0"}, "me\nrest", "name? hello me\n", "<nil>"},
		{[]string{"terminals"}, "", "terminals: 0 0, 0 columns\n", "<nil>"},
	} {
		cmd := w.command(c.words...)
		cmd.Stdin = strings.NewReader(c.in)
		out, err := cmd.Output()
		if string(out) != c.out || ended(err) != c.failed {
			t.Errorf("%s: %v, want %s; %q, want %q", c.words, err, c.failed, out, c.out)
		}
	}
	flood, err := w.command("flood").Output()
	plain, err2 := exec.Command(w.program, "flood").Output()
	if err != nil || err2 != nil || !bytes.Equal(flood, plain) {
		t.Errorf("%d bytes of %d: %v, %v", len(flood), len(plain), err, err2)
	}
	both := w.command("read", "exit", "0")
	both.Stdin = strings.NewReader("x\n")
	if out, err := both.CombinedOutput(); err != nil || string(out) != "name? hello x\n" {
		t.Errorf("to one file: %q, %v", out, err)
	}
}

// If the reader closes the output, the program must get SIGPIPE, as without symfilter.
func TestAStartedProgramHearsThatItsReaderIsGone(t *testing.T) {
	w := buildStarted(t)
	cmd := w.command("flood", "exit", "0")
	startPiped(t, cmd, &cmd.Stdout).Close()
	if err := cmd.Wait(); ended(err) != "signal: broken pipe" {
		t.Errorf("got %v", err)
	}
}

// symfilter must not wait for a process that outlives the program and keeps the program's output
// open.
func TestAProcessThatStaysIsNotAwaited(t *testing.T) {
	w := buildStarted(t)
	cmd := w.command("stack", "stay", "exit", "4")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stderr strings.Builder
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = out
	errs := startPiped(t, cmd, &cmd.Stderr)
	err = cmd.Wait()
	unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	text, _ := os.ReadFile(out.Name())
	message := make([]byte, 1<<12)
	n, _ := errs.Read(message)
	stderr.Write(message[:n])
	if !strings.Contains(string(text), "stack backtrace:") || ended(err) != "exit status 4" || !strings.Contains(stderr.String(), "still have its output") {
		t.Errorf("%v: %s\n%s", err, text, &stderr)
	}
}

// A programText is a program's output; text is the part that was read but not awaited yet.
type programText struct {
	*os.File
	text string
}

// await reads the output until it contains word, and returns the output up to there.
func (p *programText) await(t *testing.T, word string) (got string) {
	t.Helper()
	b := make([]byte, 1<<12)
	p.SetReadDeadline(time.Now().Add(time.Minute))
	for !strings.Contains(p.text, word) {
		n, err := p.Read(b)
		if p.text += string(b[:n]); err != nil {
			t.Fatalf("no %q in %q: %v", word, p.text, err)
		}
	}
	end := strings.Index(p.text, word) + len(word)
	got, p.text = p.text[:end], p.text[end:]
	return got
}

// A signal to symfilter alone must reach the program exactly once.
func TestSignalsReachAStartedProgramOnce(t *testing.T) {
	w := buildStarted(t)
	for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGTERM} {
		cmd := w.command("wait", "exit", "5")
		out := startPiped(t, cmd, &cmd.Stdout)
		heard := programText{File: out}
		heard.await(t, "waiting\n")
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(out)
		if err != nil {
			t.Error(err)
		}
		got := heard.text + string(rest)
		if err := cmd.Wait(); ended(err) != "exit status 5" || got != fmt.Sprintf("got signal %d\n", sig) {
			t.Errorf("%v: %v, %q", sig, err, got)
		}
	}
	cmd := w.command("wait")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // in a background group
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	(&programText{File: out.(*os.File)}).await(t, "waiting\n")
	cmd.Process.Signal(syscall.SIGINT)
	if err := cmd.Wait(); ended(err) != "signal: interrupt" {
		t.Errorf("SIGINT: %v", err)
	}
}

// Signals that symfilter has inherited as ignored must be ignored in the program, too. The test
// omits signals that Go's runtime does not leave ignored.
func TestIgnoredSignalsAreInherited(t *testing.T) {
	const ignored = 1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGTSTP-1) | 1<<(syscall.SIGTTOU-1)
	for trap, want := range map[string]uint64{"trap '' HUP INT TSTP TTOU; ": ignored, "": 0} {
		out, err := exec.Command("sh", "-c", trap+`exec "$0" run -- cat /proc/self/status`, command).Output()
		found := regexp.MustCompile(`(?m)^SigIgn:\s*([0-9a-f]+)$`).FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%v: %s", err, out)
		}
		if got, _ := strconv.ParseUint(string(found[1]), 16, 64); got&(ignored|1<<(syscall.SIGPIPE-1)) != want {
			t.Errorf("%q: ignored are %x, want %x", trap, got, want)
		}
	}
}

// As the first process of a container, symfilter must wait for processes whose parent has ended.
func TestOrphansOfAContainerAreAwaited(t *testing.T) {
	need(t, "unshare")
	words := []string{"--map-root-user", "--fork", "--pid", "--mount-proc"}
	if out, err := exec.Command("unshare", append(words, "true")...).CombinedOutput(); err != nil {
		testenv.Forbidden(t, "to make a namespace", fmt.Errorf("%w: %s", err, out))
	}
	const script = `orphan=$(sh -c 'true & echo $!')
for i in $(seq 1000); do test -e /proc/$orphan || { echo gone; exit 3; }; sleep 0.01; done`
	out, err := exec.Command("unshare", append(words, command, "run", "--", "sh", "-c", script)...).CombinedOutput()
	if string(out) != "gone\n" || ended(err) != "exit status 3" {
		t.Errorf("%v: %s", err, out)
	}
}

// If a program cannot be started, symfilter must exit with the status that shells use.
func TestWhatCannotBeStartedIsReported(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no program\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("no program\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	lost := filepath.Join(dir, "lost")
	if err := os.WriteFile(lost, []byte("#! /no/such -x\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want string }{
		{lost, "exit status 127: symfilter: run: DIR/lost: the first line names the interpreter /no/such, which does not exist\n"},
		{"no-such-program", "exit status 127: symfilter: run: no-such-program: not found in the folders of PATH\n"},
		{filepath.Join(dir, "none"), "exit status 127: symfilter: run: DIR/none: no such file or directory\n"},
		{text, "exit status 126: symfilter: run: DIR/text: permission denied\n"},
		{script, "exit status 126: symfilter: run: DIR/script: neither a program nor a script with #! and an interpreter\n"},
	} {
		cmd := exec.Command(command, "run", "--", c.name)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		err := cmd.Run()
		if diff := cmp.Diff(c.want, strings.ReplaceAll(ended(err)+": "+stderr.String(), dir, "DIR")); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// Invalid flags must be reported, and the program must not be started.
func TestAMistakeInTheFlagsStartsNothing(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "started")
	cmd := exec.Command(command, "run", "--source-url=nothing", "--", "touch", mark)
	out, err := cmd.CombinedOutput()
	if ended(err) != "exit status 2" {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("the program was started")
	}
}

// symfilter must read the maps and files of the program even after it has given up its rights.
func TestMapsAreReadInTheSandbox(t *testing.T) {
	need(t, "strace")
	w := buildStarted(t)
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", append([]string{"-f", "-y", "-o", trace, "-e", "trace=openat,seccomp"}, w.command("exit", "0").Args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		testenv.Forbidden(t, "to trace a process", fmt.Errorf("%w: %s", err, out))
	}
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	confined := bytes.Index(text, []byte("seccomp(SECCOMP_SET_MODE_FILTER"))
	maps := regexp.MustCompile(`openat\(\d+</proc/\d+>, "maps"`).FindIndex(text)
	if confined < 0 || maps == nil || maps[0] < confined {
		t.Errorf("confined at byte %d, maps opened at %v:\n%s", confined, maps, text)
	}
}

// If the program has ended, but its output is not read, a signal must end symfilter: there is no
// process to which it could be passed on.
func TestASignalAfterTheEndOfAProgramEndsSymfilter(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	mark := filepath.Join(t.TempDir(), "ended")
	cmd := exec.Command(command, "run", "--", "sh", "-c", "i=0; while [ $i -lt 900 ]; do printf '%0100d\\n' $i; i=$((i+1)); done; trap 'touch "+mark+"' EXIT")
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the program has ended", func() bool { _, err := os.Stat(mark); return err == nil })
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	for end := time.Now().Add(time.Minute); ; {
		select {
		case err := <-exited:
			if got := ended(err); got != "signal: terminated" {
				t.Errorf("symfilter ended with %s", got)
			}
			return
		case <-time.After(50 * time.Millisecond):
			cmd.Process.Signal(syscall.SIGTERM)
		}
		if time.Now().After(end) {
			cmd.Process.Kill()
			t.Fatal("symfilter does not end")
		}
	}
}
