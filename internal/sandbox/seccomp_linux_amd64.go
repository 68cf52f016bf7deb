package sandbox

import "golang.org/x/sys/unix"

// architecture is the kernel's number of this architecture. Calls of 32-bit programs have
// another number.
const architecture = unix.AUDIT_ARCH_X86_64

var deniedHere = [...]calls{
	{unix.SYS_FORK, unix.SYS_EXECVE},
	{unix.SYS_PTRACE, unix.SYS_PTRACE},
	{unix.SYS_SETUID, unix.SYS_SETGID},
	{unix.SYS_SETPGID, unix.SYS_CAPSET}, // and all calls between, such as setresuid
	{unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_SIGQUEUEINFO},
	{unix.SYS_MKNOD, unix.SYS_PERSONALITY},
	{unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER},
	{unix.SYS_VHANGUP, unix.SYS__SYSCTL},   // pivot_root, modify_ldt
	{unix.SYS_ADJTIMEX, unix.SYS_SECURITY}, // chroot, mount, swapon, reboot, iopl, init_module, quotactl
	{unix.SYS_TKILL, unix.SYS_TKILL},
	{unix.SYS_KEXEC_LOAD, unix.SYS_IOPRIO_SET}, // add_key, keyctl
	{unix.SYS_MIGRATE_PAGES, unix.SYS_MIGRATE_PAGES},
	{unix.SYS_UNSHARE, unix.SYS_UNSHARE},
	{unix.SYS_MOVE_PAGES, unix.SYS_MOVE_PAGES},
	{unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_FANOTIFY_MARK}, // perf_event_open
	{unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_CLOCK_ADJTIME}, // open_by_handle_at
	{unix.SYS_SETNS, unix.SYS_SETNS},
	{unix.SYS_PROCESS_VM_READV, unix.SYS_SCHED_SETATTR}, // kcmp, finit_module
	{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_USERFAULTFD},    // bpf, execveat
}
