//go:build linux

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/testenv"
)

// terminalOf starts a command with a new terminal as its three streams and as its controlling
// terminal. It returns the other end of the terminal.
func terminalOf(t *testing.T, cmd *exec.Cmd) *programText {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		testenv.Forbidden(t, "to open a terminal", err)
	}
	t.Cleanup(func() { ours.Close() })
	number := 0
	conn, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Control(func(fd uintptr) {
		unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 77})
	})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &programText{File: ours}
}

// If symfilter runs on a terminal, the program must get a terminal of the same size. A prompt
// without a line feed must be passed on, and input and Ctrl-C must work as on the outer terminal.
func TestAStartedProgramHasATerminal(t *testing.T) {
	w := buildStarted(t)
	cmd := w.command("terminals", "read", "stack", "wait")
	terminal := terminalOf(t, cmd)
	terminal.await(t, "terminals: 1 1, 77 columns\r\n")
	terminal.await(t, "name? ")
	terminal.WriteString("you\n")
	terminal.await(t, "hello you\r\n")
	terminal.await(t, "print_stack")
	terminal.WriteString("\n")
	terminal.await(t, "waiting\r\n")
	terminal.WriteString("\x03")
	if err := cmd.Wait(); ended(err) != "signal: interrupt" {
		t.Errorf("got %v", err)
	}
}

// When a process started by the program gets SIGWINCH, its terminal must already have the new size.
func TestANewSizeReachesProcessesOfAStartedProgram(t *testing.T) {
	w := buildStarted(t)
	terminal := terminalOf(t, exec.Command(command, "run", "--", "sh", "-c", `"$0" resize; echo ended`, w.program))
	terminal.await(t, "waiting\r\n")
	conn, err := terminal.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	conn.Control(func(fd uintptr) {
		err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 66})
	})
	if err != nil {
		t.Fatal(err)
	}
	terminal.await(t, "now 66 columns\r\n")
	terminal.await(t, "ended\r\n")
}

// Ctrl-Z must stop the program and symfilter, so that the shell gets its terminal back. The command
// fg must continue both, each time.
func TestAStartedProgramIsAJobOfTheShell(t *testing.T) {
	w := buildStarted(t)
	need(t, "bash")
	cmd := exec.Command("bash", "--norc", "--noprofile", "-i")
	cmd.Env = append(os.Environ(), "PS1=ready> ", "HISTFILE=", "TERM=dumb")
	terminal := terminalOf(t, cmd)
	terminal.await(t, "ready> ")
	words := append([]string{}, w.command("read", "read", "exit", "6").Args...)
	fmt.Fprintf(terminal, "'%s'\n", strings.Join(words, "' '"))
	for range 2 {
		terminal.await(t, "name? ")
		terminal.WriteString("\x1a")
		terminal.await(t, "Stopped")
		terminal.await(t, "ready> ")
		terminal.WriteString("fg\n")
		terminal.await(t, "'6'") // the shell prints the command line of the job when it continues the job
		terminal.WriteString("job\n")
		terminal.await(t, "hello job\r\n")
	}
	terminal.WriteString("echo status $?\n")
	terminal.await(t, "status 6\r\n")
	terminal.WriteString("exit\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
