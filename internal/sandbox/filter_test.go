//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A call is a system call as the kernel presents it to a filter.
type call struct {
	number, arch uint32
	args         [3]uint32 // low halves of the arguments
}

// judge interprets the filter like the kernel. It fails the test for instructions that the kernel
// would not load.
func judge(t *testing.T, filter []unix.SockFilter, c call) (action uint32) {
	t.Helper()
	memory := map[uint32]uint32{offsetCall: c.number, offsetArch: c.arch, offsetArg0: c.args[0], offsetArg1: c.args[1], offsetArg2: c.args[2]}
	var a uint32
	for at := 0; at < len(filter); at++ {
		i := filter[at]
		branch := func(yes bool) {
			if yes {
				at += int(i.Jt)
			} else {
				at += int(i.Jf)
			}
		}
		switch i.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			value, ok := memory[i.K]
			if !ok {
				t.Fatalf("instruction %d loads from %d", at, i.K)
			}
			a = value
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			a &= i.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			branch(a == i.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			branch(a >= i.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			branch(a&i.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return i.K
		default:
			t.Fatalf("instruction %d has code %#x", at, i.Code)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

const (
	pass    = unix.SECCOMP_RET_ALLOW
	refused = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	missing = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

func TestTheFilterFindsTheVerdictOfEachCall(t *testing.T) {
	for _, network := range []bool{false, true} {
		filter, err := program(Policy{Network: network})
		if err != nil {
			t.Fatal(err)
		}
		if len(filter) > 128 {
			t.Errorf("%d instructions: the kernel translates them at each start", len(filter))
		}
		var want verdicts
		want.decide(Policy{Network: network})
		plain := map[verdict]uint32{allow: pass, deny: refused, absent: missing}
		for number := range uint32(lastCall + 200) {
			v := absent
			if int(number) < len(want) {
				v = want[number]
			}
			expect, simple := plain[v]
			if got := judge(t, filter, call{number: number, arch: architecture}); simple && got != expect {
				t.Errorf("network %t: call %d: %#x, want %#x", network, number, got, expect)
			}
		}
	}
}

// The filter must refuse signals to processes other than the child and this process, except
// SIGWINCH.
func TestFilterWithAChild(t *testing.T) {
	filter, err := program(Policy{Child: 77})
	if err != nil {
		t.Fatal(err)
	}
	group := ^uint32(4711) + 1
	for _, c := range []struct {
		name string
		args [3]uint32
		want uint32
	}{
		{"the child", [3]uint32{77, uint32(unix.SIGTERM)}, pass},
		{"this process", [3]uint32{uint32(os.Getpid()), uint32(unix.SIGTERM)}, pass},
		{"another", [3]uint32{4711, uint32(unix.SIGTERM)}, refused},
		{"a group", [3]uint32{group, uint32(unix.SIGTERM)}, refused},
		{"the window of a group", [3]uint32{group, uint32(unix.SIGWINCH)}, pass},
	} {
		if got := judge(t, filter, call{number: unix.SYS_KILL, arch: architecture, args: c.args}); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
	}
	if got := judge(t, filter, call{number: unix.SYS_TGKILL, arch: architecture, args: [3]uint32{4711, uint32(unix.SIGWINCH), uint32(unix.SIGWINCH)}}); got != refused {
		t.Errorf("a thread of another: %#x", got)
	}
}

func TestFilter(t *testing.T) {
	self := uint32(os.Getpid())
	const newThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	tests := []struct {
		name            string
		number          uint32
		args            [3]uint32
		offline, online uint32
	}{
		{"read", unix.SYS_READ, [3]uint32{}, pass, pass},
		{"openat", unix.SYS_OPENAT, [3]uint32{}, pass, pass},
		{"mmap", unix.SYS_MMAP, [3]uint32{}, pass, pass},
		{"futex", unix.SYS_FUTEX, [3]uint32{}, pass, pass},
		{"fchmod", unix.SYS_FCHMOD, [3]uint32{}, pass, pass},
		{"linkat", unix.SYS_LINKAT, [3]uint32{}, pass, pass},
		{"memfd_create", unix.SYS_MEMFD_CREATE, [3]uint32{}, pass, pass},
		{"inotify_add_watch", unix.SYS_INOTIFY_ADD_WATCH, [3]uint32{}, pass, pass},
		{"exit_group", unix.SYS_EXIT_GROUP, [3]uint32{}, pass, pass},
		{"setpriority of this thread", unix.SYS_SETPRIORITY, [3]uint32{unix.PRIO_PROCESS, 0, 10}, pass, pass},
		{"setpriority of another", unix.SYS_SETPRIORITY, [3]uint32{unix.PRIO_PROCESS, 1, 10}, refused, refused},
		{"setpriority of a group", unix.SYS_SETPRIORITY, [3]uint32{unix.PRIO_PGRP, 0, 10}, refused, refused},
		{"setpriority of a user", unix.SYS_SETPRIORITY, [3]uint32{unix.PRIO_USER, 0, 10}, refused, refused},
		{"prlimit64 of this process", unix.SYS_PRLIMIT64, [3]uint32{0, unix.RLIMIT_NOFILE}, pass, pass},
		{"prlimit64 of another", unix.SYS_PRLIMIT64, [3]uint32{1, unix.RLIMIT_CPU}, refused, refused},
		{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, [3]uint32{1}, refused, refused},
		{"sched_getaffinity", unix.SYS_SCHED_GETAFFINITY, [3]uint32{}, pass, pass},
		{"sched_setparam", unix.SYS_SCHED_SETPARAM, [3]uint32{1}, refused, refused},
		{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, [3]uint32{1}, refused, refused},
		{"sched_setattr", unix.SYS_SCHED_SETATTR, [3]uint32{1}, refused, refused},
		{"sched_yield", unix.SYS_SCHED_YIELD, [3]uint32{}, pass, pass},
		{"ioprio_set", unix.SYS_IOPRIO_SET, [3]uint32{1, 1}, refused, refused},
		{"migrate_pages", unix.SYS_MIGRATE_PAGES, [3]uint32{1}, refused, refused},
		{"move_pages", unix.SYS_MOVE_PAGES, [3]uint32{1}, refused, refused},
		{"fcntl", unix.SYS_FCNTL, [3]uint32{0, unix.F_SETFL}, pass, pass},
		{"fcntl of whom events signal", unix.SYS_FCNTL, [3]uint32{0, unix.F_SETOWN, 1}, refused, refused},
		{"fcntl of which thread events signal", unix.SYS_FCNTL, [3]uint32{0, unix.F_SETOWN_EX}, refused, refused},
		{"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, [3]uint32{}, pass, pass},
		{"execve", unix.SYS_EXECVE, [3]uint32{}, refused, refused},
		{"execveat", unix.SYS_EXECVEAT, [3]uint32{}, refused, refused},
		{"clone of a thread", unix.SYS_CLONE, [3]uint32{newThread}, pass, pass},
		{"clone of a process", unix.SYS_CLONE, [3]uint32{uint32(unix.SIGCHLD)}, refused, refused},
		{"clone of a process that shares memory", unix.SYS_CLONE, [3]uint32{unix.CLONE_VM | unix.CLONE_VFORK}, refused, refused},
		{"clone of a thread in a namespace", unix.SYS_CLONE, [3]uint32{newThread | unix.CLONE_NEWNET}, refused, refused},
		{"clone3", unix.SYS_CLONE3, [3]uint32{}, missing, missing},
		{"unshare", unix.SYS_UNSHARE, [3]uint32{}, refused, refused},
		{"setns", unix.SYS_SETNS, [3]uint32{}, refused, refused},
		{"ptrace", unix.SYS_PTRACE, [3]uint32{}, refused, refused},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [3]uint32{}, refused, refused},
		{"pidfd_open", unix.SYS_PIDFD_OPEN, [3]uint32{}, missing, missing},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [3]uint32{}, missing, missing},
		{"kill of this process", unix.SYS_KILL, [3]uint32{self}, pass, pass},
		{"kill of another", unix.SYS_KILL, [3]uint32{1}, refused, refused},
		{"kill of a group", unix.SYS_KILL, [3]uint32{^uint32(0)}, refused, refused},
		{"tgkill of this process", unix.SYS_TGKILL, [3]uint32{self, 1}, pass, pass},
		{"tgkill of another", unix.SYS_TGKILL, [3]uint32{1, 1}, refused, refused},
		{"ioctl", unix.SYS_IOCTL, [3]uint32{0, unix.TCGETS}, pass, pass},
		{"ioctl that types", unix.SYS_IOCTL, [3]uint32{0, unix.TIOCSTI}, refused, refused},
		{"ioctl of whom events signal", unix.SYS_IOCTL, [3]uint32{0, fiosetown}, refused, refused},
		{"ioctl of which group a socket signals", unix.SYS_IOCTL, [3]uint32{0, unix.SIOCSPGRP}, refused, refused},
		{"ioctl that pastes", unix.SYS_IOCTL, [3]uint32{0, tioclinux}, refused, refused},
		{"bpf", unix.SYS_BPF, [3]uint32{}, refused, refused},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [3]uint32{}, refused, refused},
		{"userfaultfd", unix.SYS_USERFAULTFD, [3]uint32{}, refused, refused},
		{"keyctl", unix.SYS_KEYCTL, [3]uint32{}, refused, refused},
		{"mount", unix.SYS_MOUNT, [3]uint32{}, refused, refused},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [3]uint32{}, refused, refused},
		{"chroot", unix.SYS_CHROOT, [3]uint32{}, refused, refused},
		{"init_module", unix.SYS_INIT_MODULE, [3]uint32{}, refused, refused},
		{"setuid", unix.SYS_SETUID, [3]uint32{}, refused, refused},
		{"setresgid", unix.SYS_SETRESGID, [3]uint32{}, refused, refused},
		{"setgroups", unix.SYS_SETGROUPS, [3]uint32{}, refused, refused},
		{"capset", unix.SYS_CAPSET, [3]uint32{}, refused, refused},
		{"personality", unix.SYS_PERSONALITY, [3]uint32{}, refused, refused},
		{"a call of the future", 600, [3]uint32{}, missing, missing},
		{"x32 execve", 1<<30 | 520, [3]uint32{}, missing, missing},
	}
	for _, network := range []bool{false, true} {
		filter, err := program(Policy{Network: network})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range tests {
			want := tt.offline
			if network {
				want = tt.online
			}
			if got := judge(t, filter, call{tt.number, architecture, tt.args}); got != want {
				t.Errorf("network %t: %s: %#x, want %#x", network, tt.name, got, want)
			}
		}
		// on another architecture, the number of read is another call
		if got := judge(t, filter, call{unix.SYS_READ, unix.AUDIT_ARCH_I386, [3]uint32{}}); got != refused {
			t.Errorf("network %t: a call of 32 bits: %#x, want %#x", network, got, refused)
		}
	}
}

func TestTheFilterKeepsTheSocketsOfThePolicy(t *testing.T) {
	policies := []struct {
		name string
		Policy
	}{
		{"none", Policy{}},
		{"network", Policy{Network: true}},
		{"local", Policy{Local: true}},
		{"listen", Policy{Listen: true}},
		{"sockets", Policy{Sockets: []string{"/run"}}},
		{"accept", Policy{Accept: true}},
		{"all", Policy{Network: true, Local: true, Listen: true, Sockets: []string{"/run"}, Accept: true}},
	}
	for _, tt := range []struct {
		name   string
		number uint32
		args   [3]uint32
		passes string // policies that allow the call
	}{
		{"socket of TCP", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, "network listen all"},
		{"socket of UDP", unix.SYS_SOCKET, [3]uint32{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, "network listen all"},
		{"socket of TCP by number", unix.SYS_SOCKET, [3]uint32{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, "network listen all"},
		{"socket of UDP by number", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP}, "network listen all"},
		{"socket of Multipath TCP", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP}, ""},
		{"socket of SCTP", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, ""},
		{"socket of UDP-Lite", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE}, ""},
		{"socket of ping", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, ""},
		{"raw socket", unix.SYS_SOCKET, [3]uint32{unix.AF_INET, unix.SOCK_RAW}, ""},
		{"socket of this machine", unix.SYS_SOCKET, [3]uint32{unix.AF_UNIX, unix.SOCK_STREAM}, "local sockets all"},
		{"socket of the kernel", unix.SYS_SOCKET, [3]uint32{unix.AF_NETLINK, unix.SOCK_RAW}, ""},
		{"two sockets", unix.SYS_SOCKETPAIR, [3]uint32{unix.AF_UNIX, unix.SOCK_STREAM}, ""},
		{"connect", unix.SYS_CONNECT, [3]uint32{}, "network local all"},
		{"bind", unix.SYS_BIND, [3]uint32{}, "listen sockets all"},
		{"listen", unix.SYS_LISTEN, [3]uint32{}, "listen sockets all"},
		{"accept", unix.SYS_ACCEPT, [3]uint32{}, "listen sockets accept all"},
		{"accept4", unix.SYS_ACCEPT4, [3]uint32{}, "listen sockets accept all"},
		{"getsockname", unix.SYS_GETSOCKNAME, [3]uint32{}, "network local listen sockets accept all"},
		{"getpeername", unix.SYS_GETPEERNAME, [3]uint32{}, "network local listen sockets accept all"},
		{"execve", unix.SYS_EXECVE, [3]uint32{}, ""},
		{"ptrace", unix.SYS_PTRACE, [3]uint32{}, ""},
	} {
		var passes []string
		for _, p := range policies {
			filter, err := program(p.Policy)
			if err != nil {
				t.Fatal(err)
			}
			if len(filter) > 128 {
				t.Errorf("%s: %d instructions", p.name, len(filter))
			}
			switch got := judge(t, filter, call{tt.number, architecture, tt.args}); got {
			case pass:
				passes = append(passes, p.name)
			case refused:
			default:
				t.Errorf("%s: %s: %#x", p.name, tt.name, got)
			}
		}
		if got := strings.Join(passes, " "); got != tt.passes {
			t.Errorf("%s: kept by %q, want %q", tt.name, got, tt.passes)
		}
	}
}
