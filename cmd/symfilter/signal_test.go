//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

type process struct {
	*exec.Cmd
	in     io.WriteCloser
	pipe   io.Closer // the pipe of out
	out    *bufio.Reader
	stderr shared
}

// deadline bounds how long a process may take to end.
const deadline = time.Minute

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0], args...))
}

// startCommand starts cmd, which is or runs symfilter.
func startCommand(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd}
	p.Env = append(os.Environ(), asCommand+"=1")
	p.Stderr = &p.stderr
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.pipe, p.out = in, out, bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	hang := time.AfterFunc(deadline, func() {
		t.Errorf("hangs for %v", deadline)
		p.Process.Kill()
	})
	t.Cleanup(func() {
		hang.Stop()
		p.Process.Kill()
		p.Wait()
	})
	return p
}

func (p *process) write(t *testing.T, s string) {
	t.Helper()
	if _, err := io.WriteString(p.in, s); err != nil {
		t.Fatal(err)
	}
}

// expect reads len(want) bytes, and compares them with want.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	b := make([]byte, len(want))
	n, err := io.ReadFull(p.out, b)
	if got := string(b[:n]); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

// end reads the rest of the output, and returns it with the exit code. A process ended by a signal
// has the code that a shell reports.
func (p *process) end(t *testing.T) (rest string, code int) {
	t.Helper()
	b, err := io.ReadAll(p.out)
	if err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := p.Wait(); err != nil && !errors.As(err, &exit) {
		t.Error(err)
	}
	if status, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return string(b), exitSignal + int(status.Signal())
	}
	return string(b), p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	// On a busy machine, the signal may still be pending while another thread reads to the end of
	// the input.
	for end := time.Now().Add(deadline); p.pending() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond) // time for the signal to reach the goroutine that handles it
}

// pending reports whether no thread of the process has taken the signal yet. It returns false if
// the system does not report this.
func (p *process) pending() bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(p.Process.Pid) + "/status")
	if err != nil {
		return false
	}
	_, mask, ok := strings.Cut(string(status), "\nShdPnd:\t")
	return ok && strings.Trim(mask[:min(16, len(mask))], "0") != ""
}

func TestTerminationPrintsWhatIsComplete(t *testing.T) {
	p := start(t)
	p.write(t, "{{{module:0:one.so:elf:aabb}}}\nline\n")
	p.expect(t, "[[[ELF module #0x0 \"one.so\"; BuildID=aabb]]]\nline\n")
	p.write(t, "{{{module:1:two.so:elf:ccdd}}}\n") // a module line that waits for its maps
	p.write(t, "prompt: ")
	p.expect(t, "[[[ELF module #0x1 \"two.so\"; BuildID=ccdd]]]\nprompt: ")
	p.write(t, "{{{module:2:three.so:elf:eeff}}}\n")
	p.signal(t, syscall.SIGTERM)
	rest, code := p.end(t)
	if code != 143 {
		t.Errorf("exit code %d, want 143", code)
	}
	// the last line may have been read before or after the signal
	if rest != "" && rest != "{{{module:2:three.so:elf:eeff}}}\n" && rest != "[[[ELF module #0x2 \"three.so\"; BuildID=eeff]]]\n" {
		t.Errorf("got %q at the end", rest)
	}
}

func TestInterruptLeavesTheProducerItsLastWords(t *testing.T) {
	t.Setenv(lastWordsEnv, "1h")
	p := start(t)
	p.write(t, "working\n")
	p.expect(t, "working\n")
	p.signal(t, os.Interrupt)
	p.write(t, "interrupted, bye\n")
	p.expect(t, "interrupted, bye\n")
	p.in.Close()
	if rest, code := p.end(t); rest != "" || code != 130 {
		t.Errorf("got %q and exit code %d, want nothing and 130", rest, code)
	}
}

func TestInterruptWaitsNoLongerThanASecond(t *testing.T) {
	p := start(t)
	p.write(t, "working\n")
	p.expect(t, "working\n")
	begin := time.Now()
	p.signal(t, os.Interrupt)
	_, code := p.end(t) // the producer neither writes nor ends
	if code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	if took := time.Since(begin); took < lastWords { // deadline is the upper bound
		t.Errorf("took %v, want %v", took, lastWords)
	}
}

func TestASecondInterruptEndsAtOnce(t *testing.T) {
	t.Setenv(lastWordsEnv, "1h") // only the second interrupt ends the process
	p := start(t)
	p.write(t, "working\n")
	p.expect(t, "working\n")
	p.signal(t, os.Interrupt)
	go func() { // repeated, since two signals at the same moment count as one
		for p.Process.Signal(os.Interrupt) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	if _, code := p.end(t); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
}

func TestTerminationDoesNotWaitForAnOutputThatBlocks(t *testing.T) {
	p := start(t)
	stuck := make(chan struct{})
	go func() { // more than both pipes hold, so that the process blocks in a write
		defer close(stuck)
		block := strings.Repeat("a line of a log\n", 1<<12)
		for range 200 {
			if _, err := io.WriteString(p.in, block); err != nil {
				return
			}
		}
	}()
	p.expect(t, "a line")
	p.signal(t, syscall.SIGTERM)
	begin := time.Now()
	if err := p.Wait(); p.ProcessState.ExitCode() != 143 {
		t.Errorf("got %v, want exit code 143", err)
	}
	if took := time.Since(begin); took > 30*time.Second { // otherwise it would block forever
		t.Errorf("took %v", took)
	}
	<-stuck
}

func TestAClosedOutputEndsQuietly(t *testing.T) {
	p := start(t)
	p.write(t, "first\n")
	p.expect(t, "first\n")
	p.pipe.Close()
	for range 100 {
		if _, err := io.WriteString(p.in, strings.Repeat("more\n", 1000)); err != nil {
			break
		}
	}
	p.in.Close()
	p.Wait()
	if code := p.ProcessState.ExitCode(); code != 0 || p.stderr.String() != "" {
		t.Errorf("exit code %d and %q, want 0 and nothing", code, p.stderr.String())
	}
}

func TestAFullDiskIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stdin, cmd.Stdout = strings.NewReader("a line\n"), full
	var stderr strings.Builder
	cmd.Stderr = &stderr
	cmd.Run()
	if got, want := stderr.String(), "symfilter: write standard output: no space left on device\n"; got != want || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("got %q and exit code %d, want %q and 1", got, cmd.ProcessState.ExitCode(), want)
	}
}

func TestAPromptIsPassedOnAfterSilence(t *testing.T) {
	p := start(t)
	p.write(t, "login: ")
	p.expect(t, "login: ")
	p.write(t, "me {{{symbol:_Z3foov}}}\nlast words without an end")
	p.expect(t, "me foo()\n")
	p.in.Close()
	if rest, code := p.end(t); rest != "last words without an end" || code != 0 {
		t.Errorf("got %q and exit code %d, want the last words and 0", rest, code)
	}
}

func TestARegularFileAsStandardInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("hook {{{symbol:_Z3foov}}}"), 0o666); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stdin = in
	if got, err := cmd.Output(); string(got) != "hook foo()" || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, "hook foo()")
	}
}

func TestDumpFilesAreListedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dumps.json")
	p := start(t, "--dumpfile-output="+path)
	for n := 1; n <= 3; n++ {
		const line = "{{{dumpfile:core:a}}}\n"
		p.write(t, line+"next\n")
		p.expect(t, line+"next\n")
		for end := time.Now().Add(deadline); len(listed(t, path)) != n; {
			if time.Now().After(end) {
				t.Fatalf("%d listed, want %d", len(listed(t, path)), n)
			}
		}
	}
	p.signal(t, syscall.SIGTERM)
	if rest, code := p.end(t); rest != "" || code != 143 {
		t.Errorf("got %q and exit code %d, want nothing and 143", rest, code)
	}
}

// In each mode, complete lines must be printed before a signal ends the run. Lines that the
// producer writes after an interrupt must still be read.
func TestSignalsInAllModes(t *testing.T) {
	for _, test := range []struct{ flag, want string }{
		{"--output=json", `{"v":1,"text":"f()","elements":[{"tag":"symbol","name":"_Z1fv","demangled":"f()"}]}` + "\n"},
		{"--output=markup", "{{{symbol:_Z1fv}}}\n"},
		{"--filter-markup", "f()\n"},
	} {
		t.Run(test.flag, func(t *testing.T) {
			t.Parallel()
			for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
				p := start(t, test.flag)
				p.write(t, "{{{symbol:_Z1fv}}}\n")
				p.expect(t, test.want)
				p.signal(t, sig)
				if sig == syscall.SIGINT {
					p.write(t, "{{{symbol:_Z1fv}}}\n")
					p.expect(t, test.want)
					p.in.Close()
				}
				if rest, got := p.end(t); rest != "" || got != code {
					t.Errorf("%v: got %q and exit code %d, want nothing and %d", sig, rest, got, code)
				}
			}
		})
	}
}

// A line of 4 MiB is too long to be parsed as a whole. It must still be printed unchanged.
func TestLongLinesInAllModes(t *testing.T) {
	line := strings.Repeat("0123456789abcdef", 4<<20/16)
	for _, flag := range []string{"--output=markup", "--filter-markup", "--output=json"} {
		p := start(t, flag)
		go func() {
			io.WriteString(p.in, line+"\n")
			p.in.Close()
		}()
		rest, code := p.end(t)
		if flag == "--output=json" {
			rest = joined(t, rest)
		}
		if rest != line+"\n" || code != 0 {
			t.Errorf("%s: %d bytes and exit code %d, want %d and 0", flag, len(rest), code, len(line)+1)
		}
	}
}

// joined returns the text of JSON objects. If a line has several objects, all but the last are
// marked as continued.
func joined(t *testing.T, objects string) string {
	t.Helper()
	var b strings.Builder
	for d := json.NewDecoder(strings.NewReader(objects)); d.More(); {
		var o struct {
			Text      string
			Continues bool
		}
		if err := d.Decode(&o); err != nil {
			t.Fatal(err)
		}
		b.WriteString(o.Text)
		if !o.Continues {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestClosedOutputInAllModes(t *testing.T) {
	for _, flag := range []string{"--output=json", "--output=markup", "--filter-markup"} {
		p := start(t, flag)
		p.pipe.Close()
		go func() {
			for {
				if _, err := io.WriteString(p.in, "a {{{symbol:_Z1fv}}}\n"); err != nil {
					return
				}
			}
		}()
		if err := p.Wait(); err != nil || p.stderr.String() != "" {
			t.Errorf("%s: %v, %q", flag, err, p.stderr.String())
		}
	}
}
