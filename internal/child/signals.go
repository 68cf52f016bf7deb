//go:build linux

package child

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Signals are the signals that callers receive and hand to Pass.
var Signals = []os.Signal{
	unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH,
}

// IsIgnored reports whether this process ignores sig, for example because of nohup. signal.Ignored
// does not report this for SIGTSTP.
func IsIgnored(sig syscall.Signal) bool {
	var action [4]uint64 // see reset
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&action)), 8, 0, 0)
	const ignore = 1 // SIG_IGN
	return *(*uintptr)(unsafe.Pointer(&action)) == ignore
}

// Pass passes on a signal of this process, unless the program got it, too. A terminal signals its
// whole foreground group, and a signal does not show whether a group got it. So in the foreground,
// Pass assumes that the program got SIGINT, SIGQUIT and SIGTSTP. If the terminal is gone, it also
// assumes this for SIGHUP. SIGWINCH becomes a Resize. SIGCONT is passed on only if the program is
// stopped. After the end of the program, Pass does nothing: another process may have its process
// ID.
func (p *Program) Pass(sig syscall.Signal) {
	if p.EndedBefore(0) {
		return
	}
	switch sig {
	case unix.SIGWINCH:
		p.Resize()
		return
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP:
		if inForeground() {
			return
		}
	case unix.SIGHUP:
		if p.started && !hasTerminal() {
			return
		}
	case unix.SIGCONT:
		if !p.isStopped() {
			return
		}
	}
	unix.Kill(p.PID, sig)
}

// Ends reports whether sig is a request to end a process.
func Ends(sig syscall.Signal) bool {
	return sig == unix.SIGINT || sig == unix.SIGQUIT || sig == unix.SIGTERM || sig == unix.SIGHUP
}

func (p *Program) isStopped() bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return false
	}
	_, state, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return bytes.HasPrefix(state, []byte("T"))
}

// Stop stops this process by sig, which has stopped the program, so that a shell sees a stopped
// job. It returns true after this process was continued. In the background, it returns false at
// once for SIGSTOP: a later SIGCONT may go to the program alone.
func (p *Program) Stop(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
	default:
		if !inForeground() {
			return false
		}
	}
	if !p.isStopped() {
		return true
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := setOf(sig)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
	// From here on, the terminal's signal may stop this process, too. The SIGCONT that then
	// continues it also removes the blocked signal, so this process never stops twice.
	signal.Reset(sig)
	reset(sig)
	unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	return true
}

// Die ends this process by the signal that has ended the program, without a core dump. It returns
// if that is impossible, for example in the first process of a container.
func Die(sig syscall.Signal) {
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	reset(sig)
	raise(sig)
}

func reset(sig syscall.Signal) {
	var action [4]uint64 // struct sigaction of the kernel: all zero is SIG_DFL
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
}

// raise sends sig to this thread.
func raise(sig syscall.Signal) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := setOf(sig)
	unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
}

func setOf(sig syscall.Signal) (set unix.Sigset_t) {
	bit, word := uint(sig-1), 8*uint(unsafe.Sizeof(set.Val[0]))
	set.Val[bit/word] = 1 << (bit % word)
	return set
}
