package sandbox

import "golang.org/x/sys/unix"

// architecture is the kernel's number of this architecture. Calls of 32-bit programs have
// another number.
const architecture = unix.AUDIT_ARCH_AARCH64

var deniedHere = [...]calls{
	{unix.SYS_EXECVE, unix.SYS_EXECVE},
	{unix.SYS_IOPRIO_SET, unix.SYS_IOPRIO_SET},
	{unix.SYS_UMOUNT2, unix.SYS_NFSSERVCTL}, // mount, pivot_root
	{unix.SYS_CHROOT, unix.SYS_CHROOT},
	{unix.SYS_QUOTACTL, unix.SYS_QUOTACTL},
	{unix.SYS_ACCT, unix.SYS_PERSONALITY}, // capset
	{unix.SYS_UNSHARE, unix.SYS_UNSHARE},
	{unix.SYS_KEXEC_LOAD, unix.SYS_DELETE_MODULE},  // init_module
	{unix.SYS_SYSLOG, unix.SYS_SCHED_SETSCHEDULER}, // ptrace
	{unix.SYS_TKILL, unix.SYS_TKILL},
	{unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_SIGQUEUEINFO},
	{unix.SYS_REBOOT, unix.SYS_SETGROUPS}, // and all calls between, such as setuid
	{unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME},
	{unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX},
	{unix.SYS_ADD_KEY, unix.SYS_KEYCTL},
	{unix.SYS_SWAPON, unix.SYS_SWAPOFF},
	{unix.SYS_MIGRATE_PAGES, unix.SYS_PERF_EVENT_OPEN}, // rt_tgsigqueueinfo
	{unix.SYS_FANOTIFY_INIT, unix.SYS_CLOCK_ADJTIME},   // open_by_handle_at
	{unix.SYS_SETNS, unix.SYS_SETNS},
	{unix.SYS_PROCESS_VM_READV, unix.SYS_SCHED_SETATTR}, // kcmp, finit_module
	{unix.SYS_BPF, unix.SYS_USERFAULTFD},                // execveat
	{unix.SYS_KEXEC_FILE_LOAD, unix.SYS_KEXEC_FILE_LOAD},
}
