//go:build linux && (amd64 || arm64)

package sandbox

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A call is what the kernel shows a filter.
type call struct {
	number, arch uint32
	args         [2]uint32 // their low halves
}

// judge is the kernel's interpreter, as far as the filter needs it. It fails the test if the filter does what a kernel would
// not load.
func judge(t *testing.T, filter []unix.SockFilter, c call) (action uint32) {
	t.Helper()
	memory := map[uint32]uint32{offsetCall: c.number, offsetArch: c.arch, offsetArg0: c.args[0], offsetArg1: c.args[1]}
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
		filter, err := program(network)
		if err != nil {
			t.Fatal(err)
		}
		if len(filter) > 100 {
			t.Errorf("%d instructions: the kernel translates them at each start", len(filter))
		}
		var want verdicts
		want.decide(network)
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

func TestFilter(t *testing.T) {
	self := uint32(os.Getpid())
	const newThread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	tests := []struct {
		name            string
		number          uint32
		args            [2]uint32
		offline, online uint32
	}{
		{"read", unix.SYS_READ, [2]uint32{}, pass, pass},
		{"openat", unix.SYS_OPENAT, [2]uint32{}, pass, pass},
		{"mmap", unix.SYS_MMAP, [2]uint32{}, pass, pass},
		{"futex", unix.SYS_FUTEX, [2]uint32{}, pass, pass},
		{"fchmod", unix.SYS_FCHMOD, [2]uint32{}, pass, pass},
		{"linkat", unix.SYS_LINKAT, [2]uint32{}, pass, pass},
		{"memfd_create", unix.SYS_MEMFD_CREATE, [2]uint32{}, pass, pass},
		{"inotify_add_watch", unix.SYS_INOTIFY_ADD_WATCH, [2]uint32{}, pass, pass},
		{"exit_group", unix.SYS_EXIT_GROUP, [2]uint32{}, pass, pass},
		{"setpriority", unix.SYS_SETPRIORITY, [2]uint32{}, pass, pass},
		{"landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, [2]uint32{}, pass, pass},
		{"execve", unix.SYS_EXECVE, [2]uint32{}, refused, refused},
		{"execveat", unix.SYS_EXECVEAT, [2]uint32{}, refused, refused},
		{"clone of a thread", unix.SYS_CLONE, [2]uint32{newThread}, pass, pass},
		{"clone of a process", unix.SYS_CLONE, [2]uint32{uint32(unix.SIGCHLD)}, refused, refused},
		{"clone of a process that shares memory", unix.SYS_CLONE, [2]uint32{unix.CLONE_VM | unix.CLONE_VFORK}, refused, refused},
		{"clone of a thread in a namespace", unix.SYS_CLONE, [2]uint32{newThread | unix.CLONE_NEWNET}, refused, refused},
		{"clone3", unix.SYS_CLONE3, [2]uint32{}, missing, missing},
		{"unshare", unix.SYS_UNSHARE, [2]uint32{}, refused, refused},
		{"setns", unix.SYS_SETNS, [2]uint32{}, refused, refused},
		{"ptrace", unix.SYS_PTRACE, [2]uint32{}, refused, refused},
		{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [2]uint32{}, refused, refused},
		{"pidfd_open", unix.SYS_PIDFD_OPEN, [2]uint32{}, missing, missing},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [2]uint32{}, missing, missing},
		{"kill of this process", unix.SYS_KILL, [2]uint32{self}, pass, pass},
		{"kill of another", unix.SYS_KILL, [2]uint32{1}, refused, refused},
		{"kill of a group", unix.SYS_KILL, [2]uint32{^uint32(0)}, refused, refused},
		{"tgkill of this process", unix.SYS_TGKILL, [2]uint32{self, 1}, pass, pass},
		{"tgkill of another", unix.SYS_TGKILL, [2]uint32{1, 1}, refused, refused},
		{"ioctl", unix.SYS_IOCTL, [2]uint32{0, unix.TCGETS}, pass, pass},
		{"ioctl that types", unix.SYS_IOCTL, [2]uint32{0, unix.TIOCSTI}, refused, refused},
		{"ioctl that pastes", unix.SYS_IOCTL, [2]uint32{0, tioclinux}, refused, refused},
		{"socket of TCP", unix.SYS_SOCKET, [2]uint32{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}, refused, pass},
		{"socket of UDP", unix.SYS_SOCKET, [2]uint32{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_NONBLOCK}, refused, pass},
		{"raw socket", unix.SYS_SOCKET, [2]uint32{unix.AF_INET, unix.SOCK_RAW}, refused, refused},
		{"socket of this machine", unix.SYS_SOCKET, [2]uint32{unix.AF_UNIX, unix.SOCK_STREAM}, refused, refused},
		{"socket of the kernel", unix.SYS_SOCKET, [2]uint32{unix.AF_NETLINK, unix.SOCK_RAW}, refused, refused},
		{"connect", unix.SYS_CONNECT, [2]uint32{}, refused, pass},
		{"bind", unix.SYS_BIND, [2]uint32{}, refused, pass},
		{"listen", unix.SYS_LISTEN, [2]uint32{}, refused, refused},
		{"bpf", unix.SYS_BPF, [2]uint32{}, refused, refused},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [2]uint32{}, refused, refused},
		{"userfaultfd", unix.SYS_USERFAULTFD, [2]uint32{}, refused, refused},
		{"keyctl", unix.SYS_KEYCTL, [2]uint32{}, refused, refused},
		{"mount", unix.SYS_MOUNT, [2]uint32{}, refused, refused},
		{"pivot_root", unix.SYS_PIVOT_ROOT, [2]uint32{}, refused, refused},
		{"chroot", unix.SYS_CHROOT, [2]uint32{}, refused, refused},
		{"init_module", unix.SYS_INIT_MODULE, [2]uint32{}, refused, refused},
		{"setuid", unix.SYS_SETUID, [2]uint32{}, refused, refused},
		{"setresgid", unix.SYS_SETRESGID, [2]uint32{}, refused, refused},
		{"setgroups", unix.SYS_SETGROUPS, [2]uint32{}, refused, refused},
		{"capset", unix.SYS_CAPSET, [2]uint32{}, refused, refused},
		{"personality", unix.SYS_PERSONALITY, [2]uint32{}, refused, refused},
		{"a call of the future", 600, [2]uint32{}, missing, missing},
		{"x32 execve", 1<<30 | 520, [2]uint32{}, missing, missing},
	}
	for _, network := range []bool{false, true} {
		filter, err := program(network)
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
		// read of another architecture has the number of something else here.
		if got := judge(t, filter, call{unix.SYS_READ, unix.AUDIT_ARCH_I386, [2]uint32{}}); got != refused {
			t.Errorf("network %t: a call of 32 bits: %#x, want %#x", network, got, refused)
		}
	}
}
