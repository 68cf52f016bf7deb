package sandbox

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var errOtherProcesses = errors.New("symfilter has to read files of other processes in /proc")

// Rights to files that the process gives up outside of the policy's folders, by the first version
// of Landlock that has them. Reading remains, since modules, .dwo files, linked debug files and
// rotated logs may be anywhere.
const (
	rights1 = unix.LANDLOCK_ACCESS_FS_EXECUTE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	rights2 = unix.LANDLOCK_ACCESS_FS_REFER // without it, renaming into another folder is always denied
	rights3 = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	rights5 = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV

	// writing are the rights kept in the policy's folders.
	writing = unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE

	// onFiles are the rights of writing that a rule for a file can keep.
	onFiles = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE

	// binding are the rights kept in the folders of sockets.
	binding = unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE
)

// First versions of Landlock that restrict TCP, have scopes, and restrict all threads at once.
const (
	abiNetwork = 4
	abiScopes  = 6
	abiThreads = 8
)

// ruleNetPort is LANDLOCK_RULE_NET_PORT of linux/landlock.h, and netPort its struct
// landlock_net_port_attr.
const ruleNetPort = 2

type netPort struct{ access, port uint64 }

// restrictFiles restricts all threads by Landlock and returns the version of the kernel's
// interface. Each thread must have set no_new_privs.
func restrictFiles(p Policy) (abi int, err error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	abi = int(version)
	attr := handled(abi, p)
	// The kernel accepts a longer struct than its own, if the rest is zero.
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return 0, fmt.Errorf("make a ruleset: %w", errno)
	}
	defer unix.Close(int(fd))
	for _, dir := range p.Write {
		keep(fd, dir, writing&attr.Handled_access_fs)
	}
	for _, dir := range p.Sockets {
		keep(fd, dir, binding&attr.Handled_access_fs)
	}
	for _, dir := range p.Devices {
		keep(fd, dir, rights5&attr.Handled_access_fs)
	}
	if p.Network && attr.Handled_access_net&unix.LANDLOCK_ACCESS_NET_BIND_TCP != 0 {
		// Package net binds to port 0, any port, to test for IPv6.
		any := netPort{access: unix.LANDLOCK_ACCESS_NET_BIND_TCP}
		unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, ruleNetPort, uintptr(unsafe.Pointer(&any)), 0, 0, 0)
	}
	if abi >= abiThreads {
		_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, unix.LANDLOCK_RESTRICT_SELF_TSYNC, 0)
	} else {
		_, _, errno = syscall.AllThreadsSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	}
	if errno != 0 {
		return 0, inAllThreads(errno, "Linux 7.0")
	}
	return abi, nil
}

// handled returns the rights that the process gives up, unless a rule keeps them.
func handled(abi int, p Policy) (attr unix.LandlockRulesetAttr) {
	attr.Handled_access_fs = rights1
	for _, more := range []struct {
		abi    int
		rights uint64
	}{{2, rights2}, {3, rights3}, {5, rights5}} {
		if abi >= more.abi {
			attr.Handled_access_fs |= more.rights
		}
	}
	if abi >= abiNetwork {
		if !p.Listen {
			attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_BIND_TCP
		}
		if !p.Network {
			attr.Handled_access_net |= unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		}
	}
	if abi >= abiScopes {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	// Threads restricted one by one have separate domains. The kernel would deny the signals by
	// which the Go runtime interrupts its threads.
	if abi >= abiThreads {
		attr.Scoped |= unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// keep adds a rule that keeps rights at path, a folder or file. It ignores a path that cannot
// be opened: a later use of the rights fails and is reported.
func keep(ruleset uintptr, path string, rights uint64) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= onFiles
	}
	if rights == 0 { // the rights do not apply to files, or this kernel does not know them
		return
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
}

// inAllThreads explains the error of a system call in all threads. In a build with cgo, such a
// call always fails. other names the alternative.
func inAllThreads(errno syscall.Errno, other string) error {
	if errno == syscall.ENOTSUP {
		return fmt.Errorf("a build with cgo needs %s for this restriction; a static build does not", other)
	}
	return errno
}
