package child

import (
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/testenv"
)

// started starts a shell that runs script, with different files for its two outputs.
func started(t *testing.T, script string) *Program {
	t.Helper()
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := Start("sh", []string{"-c", script}, in, in, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func waitFor(t *testing.T, p *Program) syscall.WaitStatus {
	t.Helper()
	status, err := p.Wait(func(syscall.Signal) {})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// All text that was written before the program's end must be read. Another process that still has
// the output open must not be awaited.
func TestTheOutputEndsWithTheProgram(t *testing.T) {
	for _, c := range []struct {
		name, script string
		left         bool
	}{
		{"ends alone", "echo text; exit 3", false},
		{"leaves a process", "echo text; sleep 1000 & echo $!; exit 3", true},
	} {
		p := started(t, c.script)
		if status := waitFor(t, p); status.ExitStatus() != 3 {
			t.Errorf("%s: status %d", c.name, status.ExitStatus())
		}
		p.Ended(0)
		text, err := io.ReadAll(p.Outputs[0])
		if err != nil || !strings.HasPrefix(string(text), "text\n") || p.Left() != c.left {
			t.Errorf("%s: %q, %v, left: %v", c.name, text, err, p.Left())
		}
		if c.left {
			pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(text), "text\n")))
			if err != nil {
				t.Fatal(err)
			}
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// Reading must end even if another process writes without end after the program's end.
func TestAFloodAfterTheEndIsCut(t *testing.T) {
	p := started(t, "yes & exit 0")
	waitFor(t, p)
	if _, err := p.Outputs[0].Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	p.Ended(0)
	n, err := io.Copy(io.Discard, p.Outputs[0])
	if err != nil || n > 3*pipeSize || !p.Left() {
		t.Errorf("%d bytes, %v, left: %v", n, err, p.Left())
	}
}

func TestAStopIsReported(t *testing.T) {
	p := started(t, "kill -STOP $$; exit 4")
	var stopped []syscall.Signal
	status, err := p.Wait(func(sig syscall.Signal) {
		stopped = append(stopped, sig)
		if !p.isStopped() {
			t.Error("it is not stopped")
		}
		unix.Kill(p.PID, unix.SIGCONT)
	})
	if err != nil || status.ExitStatus() != 4 || len(stopped) != 1 || stopped[0] != unix.SIGSTOP {
		t.Errorf("%v, status %d, stopped by %v", err, status.ExitStatus(), stopped)
	}
	if p.isStopped() {
		t.Error("it is stopped after its end")
	}
}

func TestWithoutPseudoTerminalsThereArePipes(t *testing.T) {
	ours, theirs, err := openTerminal(os.Stderr)
	if err != nil {
		testenv.Missing(t, "pseudo-terminals: "+err.Error())
	}
	defer ours.Close()
	defer theirs.Close()
	before := multiplexer
	defer func() { multiplexer = before }()
	multiplexer = t.TempDir() + "/none"
	p, err := Start("sh", []string{"-c", "test -t 1 || echo no terminal"}, theirs, theirs, theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	text, err := io.ReadAll(p.Outputs[0])
	if err != nil || string(text) != "no terminal\n" || p.Plain == nil {
		t.Errorf("%q, %v; reason: %v", text, err, p.Plain)
	}
	waitFor(t, p)
}

// If an output is a terminal, the program must get a terminal of the same size. When the size of
// the output's terminal changes, the program's terminal must get the new size.
func TestATerminalHasTheSizeOfOurs(t *testing.T) {
	ours, theirs, err := openTerminal(os.Stderr)
	if err != nil {
		testenv.Missing(t, "pseudo-terminals: "+err.Error())
	}
	defer ours.Close()
	defer theirs.Close()
	size := &unix.Winsize{Row: 20, Col: 70}
	control(theirs, func(fd int) { err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start("sh", []string{"-c", "test -t 1 && test -t 2 && stty size <&1; printf 'no line feed'"}, theirs, theirs, theirs)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	text, err := io.ReadAll(p.Outputs[0])
	if err != nil || string(text) != "20 70\nno line feed" || len(p.Outputs) != 1 {
		t.Errorf("%q, %v; %d outputs", text, err, len(p.Outputs))
	}
	waitFor(t, p)
	size.Col = 50
	control(theirs, func(fd int) { unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	if !resize(p.Outputs[0].from, theirs) || resize(p.Outputs[0].from, theirs) {
		t.Error("the size is not that of the terminal")
	}
}
