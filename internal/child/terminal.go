//go:build linux

package child

import (
	"os"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// control passes the descriptor of f to the function use. The mode of f, blocking or not, does not
// change.
func control(f *os.File, use func(fd int)) {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(func(fd uintptr) { use(int(fd)) })
	}
}

func isTerminal(f *os.File) (is bool) {
	control(f, func(fd int) { is = term.IsTerminal(fd) })
	return is
}

// multiplexer is the device that makes pseudo-terminals. Tests change it.
var multiplexer = "/dev/ptmx"

// openTerminal returns both ends of a pseudo-terminal, with the modes and size of the given
// terminal. The pseudo-terminal passes output on unchanged, since the given terminal will turn line
// feeds into CR LF.
func openTerminal(like *os.File) (ours, theirs *os.File, err error) {
	fd, err := unix.Open(multiplexer, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: multiplexer, Err: err}
	}
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(fd)
		return nil, nil, os.NewSyscallError("unlock a pseudo-terminal", err)
	}
	end, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		unix.Close(fd)
		return nil, nil, os.NewSyscallError("open a pseudo-terminal", errno)
	}
	control(like, func(like int) {
		if modes, err := unix.IoctlGetTermios(like, unix.TCGETS); err == nil {
			modes.Oflag &^= unix.OPOST
			modes.Lflag &^= unix.ECHO
			unix.IoctlSetTermios(int(end), unix.TCSETS, modes)
		}
	})
	ours, theirs = os.NewFile(uintptr(fd), "pseudo-terminal"), os.NewFile(end, "terminal of the program")
	resize(ours, like)
	return ours, theirs, nil
}

// resize gives the terminal f the size of the terminal like, and reports whether the size has
// changed.
func resize(f, like *os.File) (changed bool) {
	var want *unix.Winsize
	control(like, func(fd int) { want, _ = unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ) })
	if want == nil {
		return false
	}
	control(f, func(fd int) {
		if is, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ); err == nil && *is != *want {
			changed = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, want) == nil
		}
	})
	return changed
}

// Resize gives each pseudo-terminal the size of the terminal that its text goes to. If a size
// changed, Resize sends SIGWINCH to the foreground processes again. They got a SIGWINCH at the same
// time as this process, and may have read the old size.
func (p *Program) Resize() {
	changed := false
	for _, o := range p.Outputs {
		changed = o.terminal && resize(o.from, o.To) || changed
	}
	if !changed {
		return
	}
	group := 0
	ownTerminal(func(fd int) { group, _ = unix.IoctlGetInt(fd, unix.TIOCGPGRP) })
	if group <= 1 || unix.Kill(-group, unix.SIGWINCH) != nil {
		unix.Kill(p.PID, unix.SIGWINCH)
	}
}

// ownTerminal passes the descriptor of this process's controlling terminal to the function use. It
// returns false if there is no controlling terminal.
func ownTerminal(use func(fd int)) bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	use(fd)
	return true
}

func hasTerminal() bool { return ownTerminal(func(int) {}) }

// inForeground reports whether this process is in its terminal's foreground process group, which
// gets the signals of keys such as Ctrl-C.
func (p *Program) inForeground() (is bool) {
	ownTerminal(func(fd int) {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		is = err == nil && group == p.group
	})
	return is
}
