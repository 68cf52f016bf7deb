//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A verdict is the filter's answer to a system call.
type verdict uint8

const (
	allow    verdict = iota
	deny             // EPERM
	absent           // ENOSYS: the caller falls back to an older call
	threads          // clone: allowed for threads without new namespaces
	own              // kill, tgkill: allowed for this process and the policy's child
	resizes          // kill: as own, and SIGWINCH is allowed for any process
	self             // prlimit64: allowed for the calling process
	nice             // setpriority: allowed for the calling thread
	mute             // fcntl: denied if it chooses the process that gets signals of a file
	tame             // ioctl: as mute, and denied if it types into a terminal
	internet         // socket: allowed for TCP and UDP over IP
	local            // socket: allowed for Unix sockets
	sockets          // socket: allowed for both
	verdictCount
)

// calls is a range of system calls, both ends included. A range includes unneeded calls in between:
// the kernel translates a filter with fewer ranges faster when the process starts.
type calls struct{ first, last uint16 }

// denied and the architecture's deniedHere list calls that no part of this process needs. A
// list of allowed calls would be safer, but would break. The Go runtime, the C library and the
// race detector change their calls with each version, and make some of them weeks after the
// start.
var denied = [...]calls{
	{unix.SYS_SOCKETPAIR, unix.SYS_SOCKETPAIR},
	{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETAFFINITY},
	{unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_GETFD},
	{unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MADVISE},
	{unix.SYS_MOUNT_SETATTR, unix.SYS_QUOTACTL_FD},
	{unix.SYS_PROCESS_MRELEASE, unix.SYS_PROCESS_MRELEASE},
}

// unknown is a range of calls that fail as on an older kernel: callers fall back. A filter
// cannot read the flags of clone3, which are in memory. Operations of io_uring bypass filters.
// The other calls are about pidfds and mounting.
var unknown = calls{unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_CLONE3}

// lastCall is the last call that the filter may allow. Later calls fail like the calls in unknown.
const lastCall = unix.SYS_FUTEX_REQUEUE

type verdicts [lastCall + 1]verdict

func (all *verdicts) set(v verdict, ranges ...calls) {
	for _, r := range ranges {
		for call := r.first; call <= r.last; call++ {
			all[call] = v
		}
	}
}

func (all *verdicts) decide(p Policy) {
	all.set(deny, denied[:]...)
	all.set(deny, deniedHere[:]...)
	all.set(absent, unknown)
	all[unix.SYS_CLONE] = threads
	all[unix.SYS_KILL], all[unix.SYS_TGKILL] = own, own
	if p.Child != 0 {
		all[unix.SYS_KILL] = resizes
	}
	all[unix.SYS_PRLIMIT64], all[unix.SYS_SETPRIORITY] = self, nice
	all[unix.SYS_FCNTL], all[unix.SYS_IOCTL] = mute, tame
	all.sockets(p)
}

func (all *verdicts) sockets(p Policy) {
	overIP, binds := p.Network || p.Listen, p.Listen || len(p.Sockets) > 0
	switch withPath := p.Local || len(p.Sockets) > 0; {
	case overIP && withPath:
		all[unix.SYS_SOCKET] = sockets
	case overIP:
		all[unix.SYS_SOCKET] = internet
	case withPath:
		all[unix.SYS_SOCKET] = local
	default:
		all[unix.SYS_SOCKET] = deny
	}
	for _, c := range [...]struct {
		kept  bool
		calls calls
	}{
		{p.Network || p.Local, calls{unix.SYS_CONNECT, unix.SYS_CONNECT}},
		{binds, calls{unix.SYS_BIND, unix.SYS_LISTEN}},
		{binds || p.Accept, calls{unix.SYS_ACCEPT, unix.SYS_ACCEPT}},
		{binds || p.Accept, calls{unix.SYS_ACCEPT4, unix.SYS_ACCEPT4}},
		{all[unix.SYS_SOCKET] != deny || p.Accept, calls{unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME}},
	} {
		if !c.kept {
			all.set(deny, c.calls)
		}
	}
}

// Offsets in struct seccomp_data of linux/seccomp.h. The filter reads only the low halves of
// arguments, which come first on these architectures. The kernel ignores the high halves of the
// arguments checked here.
const (
	offsetCall = 0
	offsetArch = 4
	offsetArg0 = 16
	offsetArg1 = 24
	offsetArg2 = 32
)

// namespaces are the flags of clone that create a namespace.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump returns an instruction that compares the loaded value with k by test. yes is the number of
// instructions to skip if the result is true, and no the number to skip if it is false.
func jump(test uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | test | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

func end(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

func (v verdict) code(dst []unix.SockFilter, policy *Policy) []unix.SockFilter {
	pass, refuse := end(unix.SECCOMP_RET_ALLOW), end(unix.SECCOMP_RET_ERRNO|uint32(unix.EPERM))
	switch v {
	case allow:
		return append(dst, pass)
	case absent:
		return append(dst, end(unix.SECCOMP_RET_ERRNO|uint32(unix.ENOSYS)))
	case threads:
		return append(dst, load(offsetArg0),
			jump(unix.BPF_JSET, unix.CLONE_THREAD, 0, 2),
			jump(unix.BPF_JSET, namespaces, 1, 0), pass, refuse)
	case own, resizes:
		self := uint32(os.Getpid()) // a confined process never forks
		child := self
		if policy.Child != 0 {
			child = uint32(policy.Child)
		}
		if v == resizes {
			dst = append(dst, load(offsetArg1), jump(unix.BPF_JEQ, uint32(unix.SIGWINCH), 3, 0))
		}
		return append(dst, load(offsetArg0),
			jump(unix.BPF_JEQ, self, 1, 0),
			jump(unix.BPF_JEQ, child, 0, 1), pass, refuse)
	case self:
		return append(dst, load(offsetArg0), jump(unix.BPF_JEQ, 0, 0, 1), pass, refuse)
	case nice:
		return append(dst, load(offsetArg0), jump(unix.BPF_JEQ, unix.PRIO_PROCESS, 0, 3),
			load(offsetArg1), jump(unix.BPF_JEQ, 0, 0, 1), pass, refuse)
	case mute:
		return append(dst, load(offsetArg1),
			jump(unix.BPF_JEQ, unix.F_SETOWN, 2, 0),
			jump(unix.BPF_JEQ, unix.F_SETOWN_EX, 1, 0), pass, refuse)
	case tame:
		return append(dst, load(offsetArg1),
			jump(unix.BPF_JEQ, fiosetown, 4, 0),
			jump(unix.BPF_JEQ, unix.SIOCSPGRP, 3, 0),
			jump(unix.BPF_JEQ, unix.TIOCSTI, 2, 0),
			jump(unix.BPF_JEQ, tioclinux, 1, 0), pass, refuse)
	case local:
		return append(dst, load(offsetArg0), jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1), pass, refuse)
	case internet, sockets:
		dst = append(dst, load(offsetArg0))
		if v == sockets {
			dst = append(dst, jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1), pass)
		}
		// IP has other protocols of the same types: Multipath TCP, SCTP, UDP-Lite, ping.
		return append(dst,
			jump(unix.BPF_JEQ, unix.AF_INET, 1, 0),
			jump(unix.BPF_JEQ, unix.AF_INET6, 0, 9),
			load(offsetArg1), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xf}, // flags are above the type
			jump(unix.BPF_JEQ, unix.SOCK_STREAM, 1, 0),
			jump(unix.BPF_JEQ, unix.SOCK_DGRAM, 0, 5),
			load(offsetArg2),
			jump(unix.BPF_JEQ, unix.IPPROTO_IP, 2, 0), // the default protocol of the type
			jump(unix.BPF_JEQ, unix.IPPROTO_TCP, 1, 0),
			jump(unix.BPF_JEQ, unix.IPPROTO_UDP, 0, 1), pass, refuse)
	}
	return append(dst, refuse)
}

// tioclinux is TIOCLINUX of asm-generic/ioctls.h: selection and paste on a console.
const tioclinux = 0x541c

// fiosetown is FIOSETOWN of asm-generic/sockios.h.
const fiosetown = 0x8901

// A span is a range of calls with the same verdict. It ends before the first call of the next span.
type span struct {
	first uint32
	verdict
}

// maxFilter bounds the instructions of the filter: the distance of each jump must fit in a
// byte.
const maxFilter = 256

var errFar = errors.New("the filter is too long")

// program returns the filter. It is a binary search for the span of a call, followed by the
// instructions of each verdict.
func program(policy Policy) ([]unix.SockFilter, error) {
	var all verdicts
	all.decide(policy)
	spans := make([]span, 0, maxFilter/2)
	for call, v := range all {
		if call == 0 || spans[len(spans)-1].verdict != v {
			spans = append(spans, span{uint32(call), v})
		}
	}
	// all later calls, and amd64's x32 calls, whose numbers have a high bit
	spans = append(spans, span{lastCall + 1, absent})
	const head = 3
	p := plan{filter: make([]unix.SockFilter, head, maxFilter), tails: make([]unix.SockFilter, 0, maxFilter/4)}
	tail := head + len(spans) - 1 // a search among n spans has n-1 instructions
	for v := range p.blocks {
		p.blocks[v] = tail + len(p.tails)
		if used := func(s span) bool { return s.verdict == verdict(v) }; slices.ContainsFunc(spans, used) {
			p.tails = verdict(v).code(p.tails, &policy)
		}
	}
	if tail+len(p.tails) > maxFilter {
		return nil, errFar
	}
	p.filter[0] = load(offsetArch)
	p.filter[1] = jump(unix.BPF_JEQ, architecture, 0, uint8(p.blocks[deny]-2))
	p.filter[2] = load(offsetCall)
	p.search(spans)
	return append(p.filter, p.tails...), nil
}

// A plan holds the parts of a filter that is being made.
type plan struct {
	filter []unix.SockFilter
	tails  []unix.SockFilter // instructions of the verdicts
	blocks [verdictCount]int // by verdict: index of its first instruction in the whole filter
}

// search appends the instructions that find the span of a call. There must be at least two spans.
func (p *plan) search(spans []span) {
	at, half := len(p.filter), len(spans)/2
	lower, upper := spans[:half], spans[half:]
	target := func(side []span, step int) uint8 {
		if len(side) == 1 {
			step = p.blocks[side[0].verdict]
		}
		return uint8(step - at - 1)
	}
	p.filter = append(p.filter, jump(unix.BPF_JGE, upper[0].first, target(upper, at+len(lower)), target(lower, at+1)))
	for _, side := range [...][]span{lower, upper} {
		if len(side) > 1 {
			p.search(side)
		}
	}
}

// filterCalls sets no_new_privs and installs the filter, in all threads. The kernel applies
// both to the other threads in one call.
func filterCalls(p Policy) error {
	filter, err := program(p)
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Both steps must run in one thread. The goroutine almost always stays in its thread.
	// Locking it there would start another thread, which takes 50 µs.
	before := unix.Gettid()
	err = install(&prog)
	if unix.Gettid() != before {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err = install(&prog)
	}
	return err
}

// install sets no_new_privs, and then installs the filter.
func install(prog *unix.SockFprog) error {
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	// Without SPEC_ALLOW, kernels before 5.16 slow down the whole process by mitigations for
	// untrusted code. Kernels before 4.17 do not support the flag.
	var errno syscall.Errno
	for _, flags := range [...]uintptr{unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, unix.SECCOMP_FILTER_FLAG_TSYNC} {
		var thread uintptr
		thread, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(prog)))
		switch {
		case errno == 0 && thread == 0:
			return nil
		case errno == 0:
			return fmt.Errorf("thread %d has another seccomp filter", thread)
		}
	}
	return errno
}
