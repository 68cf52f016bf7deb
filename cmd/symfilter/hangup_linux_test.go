package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func detached(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// A run that reads from a pipe or follows files must outlive SIGHUP. Log collectors and logrotate
// send it to such programs.
func TestHangupsAreOutlived(t *testing.T) {
	dir := t.TempDir()
	log, followed := filepath.Join(dir, "log"), filepath.Join(dir, "followed")
	for _, path := range []string{log, followed} {
		if err := os.WriteFile(path, []byte("of a file\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		args  []string
		first string
	}{
		"a pipe":                  {nil, ""},
		"a pipe, by name":         {[]string{"-"}, ""},
		"a followed file":         {[]string{"--follow", followed}, "of a file\n"},
		"a file, and then a pipe": {[]string{log, "-"}, "of a file\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startCommand(t, detached(test.args...))
			goesOn := func(line string) {
				if test.args != nil && test.args[0] == "--follow" {
					appendTo(t, followed, line)
				} else {
					p.write(t, line)
				}
				p.expect(t, line)
			}
			p.expect(t, test.first)
			goesOn("before\n")
			p.signal(t, syscall.SIGHUP)
			goesOn("after\n")
			p.signal(t, syscall.SIGHUP)
			goesOn("after another one\n")
			p.signal(t, syscall.SIGTERM)
			if rest, code := p.end(t); rest != "" || code != 143 {
				t.Errorf("got %q and exit code %d, want nothing and 143; %s", rest, code, p.stderr.String())
			}
		})
	}
}

// The loss of the terminal during the end of a run is not a second signal: complete output must
// still be printed.
func TestATerminalThatGoesDoesNotCutTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terminal := true
		s := &stopper{
			patience: time.Minute,
			hangups:  &hangups{started: true, exists: func() bool { return terminal }, again: make(chan struct{}, 1)},
			reading:  make(chan struct{}), signals: make(chan os.Signal), ending: make(chan struct{}), ended: make(chan struct{}),
		}
		s.last.Store(func() { panic("the process is ended immediately") })
		go s.listen(func() {})
		s.signals <- syscall.SIGHUP
		s.signals <- syscall.SIGTERM
		<-s.reading
		terminal = false
		time.Sleep(2 * lastTerminal)
		if got := s.end(); got != int(syscall.SIGTERM) {
			t.Errorf("ended by signal %d, want %d", got, syscall.SIGTERM)
		}
	})
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestHangupsEndTheReadingOfFiles(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p := startCommand(t, detached(fifo))
	if _, err := in.WriteString("line\n"); err != nil {
		t.Fatal(err)
	}
	p.expect(t, "line\n")
	p.signal(t, syscall.SIGHUP)
	if rest, code := p.end(t); rest != "" || code != 129 {
		t.Errorf("got %q and exit code %d, want nothing and 129", rest, code)
	}
}

// A hang-up must end the run if its terminal is gone or soon disappears. The kernel sends it, or a
// shell that is about to end. While the terminal exists, the run must continue.
func TestARunEndsWithItsTerminal(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, []byte("line\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	symfilter := os.Args[0]
	for name, test := range map[string]struct {
		args []string
		end  string // what closes the terminal
		code int
	}{
		"a pipe":           {[]string{symfilter}, "its other end is closed", 129},
		"a followed file":  {[]string{symfilter, "--follow", log}, "its other end is closed", 129},
		"a job of a shell": {[]string{"sh", "-c", `"$0" --follow "$1" & read -r line; kill -HUP $!`, symfilter, log}, "the shell ends", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master, terminal := openTerminal(t)
			cmd := exec.Command(test.args[0], test.args[1:]...)
			cmd.ExtraFiles = []*os.File{terminal} // descriptor 3
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
			p := startCommand(t, cmd)
			terminal.Close()
			if len(test.args) == 1 {
				p.write(t, "line\n")
			}
			p.expect(t, "line\n")
			switch test.end {
			case "its other end is closed":
				p.signal(t, syscall.SIGHUP)
				master.Close()
			default:
				p.write(t, "go on\n")
			}
			if rest, code := p.end(t); rest != "" || code != test.code {
				t.Errorf("got %q and exit code %d, want nothing and %d; %s", rest, code, test.code, p.stderr.String())
			}
		})
	}
}
