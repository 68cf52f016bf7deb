//go:build linux

package child

import (
	"bytes"
	"fmt"
	"os"
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
	now := action(sig, nil)
	const ignore = 1 // SIG_IGN
	return *(*uintptr)(unsafe.Pointer(&now)) == ignore
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
		if p.inForeground() {
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
//
// The terminal may have sent sig to this process, too, and Stop must not stop it again after that.
// So sig is pending, but blocked, before the state of the program is read: a SIGCONT for both
// processes removes it.
func (p *Program) Stop(sig syscall.Signal) bool {
	switch sig {
	case unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU:
	default: // SIGSTOP, which cannot be blocked, and which no terminal sends
		if !p.inForeground() {
			return false
		}
		if p.isStopped() {
			unix.Kill(unix.Getpid(), sig)
		}
		return true
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := setOf(sig)
	unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
	if p.isStopped() {
		handler := action(sig, new(sigaction))
		unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil) // this process stops here
		action(sig, &handler)
		return true
	}
	var now unix.Timespec
	unix.RawSyscall6(unix.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0, uintptr(unsafe.Pointer(&now)), 8, 0, 0)
	unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	return true
}

// Die ends this process by the signal that has ended the program, without a core dump. It returns
// if that is impossible, for example in the first process of a container.
func Die(sig syscall.Signal) {
	unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	action(sig, new(sigaction))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set := setOf(sig)
	unix.PthreadSigmask(unix.SIG_UNBLOCK, &set, nil)
	unix.Tgkill(unix.Getpid(), unix.Gettid(), sig)
}

// A sigaction is the kernel's struct of this name: the handler, then the flags and the mask. All
// zero is SIG_DFL.
type sigaction [4]uint64

// action sets what this process does at sig, behind the back of package os/signal. It returns what
// the process did before.
func action(sig syscall.Signal, to *sigaction) (before sigaction) {
	unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(&before)), 8, 0, 0)
	return before
}

func setOf(sig syscall.Signal) (set unix.Sigset_t) {
	bit, word := uint(sig-1), 8*uint(unsafe.Sizeof(set.Val[0]))
	set.Val[bit/word] = 1 << (bit % word)
	return set
}
