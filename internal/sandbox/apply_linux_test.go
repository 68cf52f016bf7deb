//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// asPrisoner is the environment variable that makes the test binary a prisoner: a process that
// confines itself, and prints the results of forbidden and allowed calls.
const asPrisoner = "TEST_SANDBOX_POLICY"

func TestMain(m *testing.M) {
	if text := os.Getenv(asPrisoner); text != "" {
		if err := prison(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type order struct {
	Policy
	In, Out string // writable folder, and another folder
	Parent  int    // the ID of another process
	Address string // the other process listens at this address
	Socket  string // the other process listens at this path
	Old     bool   // the kernel has neither seccomp nor Landlock
}

type confession struct {
	State    State
	Threads  []string // the lines on restrictions in each thread's status
	Attempts map[string]string
}

// prison confines this process, and makes the attempts in three threads: the one that called Apply,
// an earlier one, and a later one.
func prison(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	older := newWorker()
	if o.Old {
		if err := age(); err != nil {
			return err
		}
	}
	var c confession
	c.State = Apply(o.Policy)
	workers := map[string]worker{"older": older, "newer": newWorker(), "same": func(f func()) { f() }}
	c.Attempts = make(map[string]string)
	for _, a := range attempts {
		if o.Old {
			break // without a filter, the attempts would succeed, and execve would replace this process
		}
		results := make(map[string]string)
		for name, do := range workers {
			do(func() { results[name] = errorName(a.try(&o, name)) })
		}
		c.Attempts[a.name] = results["same"]
		if results["older"] != results["same"] || results["newer"] != results["same"] {
			c.Attempts[a.name] = fmt.Sprint(results)
		}
	}
	all, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil {
		return err
	}
	for _, path := range all {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return err
		}
		var restrictions []string
		for line := range strings.Lines(string(data)) {
			if name, value, _ := strings.Cut(line, ":"); name == "NoNewPrivs" || name == "Seccomp" {
				restrictions = append(restrictions, name+" "+strings.TrimSpace(value))
			}
		}
		c.Threads = append(c.Threads, strings.Join(restrictions, ", "))
	}
	return json.NewEncoder(os.Stdout).Encode(c)
}

func age() error {
	filter := []unix.SockFilter{load(offsetCall),
		jump(unix.BPF_JEQ, unix.SYS_SECCOMP, 0, 1), end(unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)),
		jump(unix.BPF_JEQ, unix.SYS_LANDLOCK_CREATE_RULESET, 0, 1), end(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)),
		end(unix.SECCOMP_RET_ALLOW)}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// root may install a filter without no_new_privs. age then leaves the flag unset, to test that
	// Apply sets it
	if os.Geteuid() != 0 {
		if err := raw(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
			return err
		}
	}
	return raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
}

// A worker calls a function in its own thread, and waits until the function returns.
type worker func(func())

func newWorker() worker {
	work, done := make(chan func()), make(chan bool)
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
			done <- true
		}
	}()
	return func(f func()) { work <- f; <-done }
}

// errorName returns the system's name of err, such as EPERM, or "ok" if err is nil.
func errorName(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// raw makes a system call by its number.
func raw(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return errno
	}
	if number == unix.SYS_CLONE && r == 0 { // a child process, which must not exist
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
	return nil
}

// attempts lists the attempts of a prisoner with their results without and with a network. If abi
// is set, Landlock denies the attempt from that version on.
var attempts = []struct {
	name            string
	abi             int
	offline, online string
	try             func(o *order, where string) error
}{
	{"program", 0, "EPERM", "EPERM", func(*order, string) error { return unix.Exec("/proc/self/exe", []string{"x"}, nil) }},
	{"program of a file", 0, "EPERM", "EPERM", func(*order, string) error {
		return raw(unix.SYS_EXECVEAT, 0, 0, 0, 0, unix.AT_EMPTY_PATH)
	}},
	{"process", 0, "EPERM", "EPERM", func(*order, string) error { return raw(unix.SYS_CLONE, uintptr(unix.SIGCHLD)) }},
	{"process by clone3", 0, "ENOSYS", "ENOSYS", func(*order, string) error { return raw(unix.SYS_CLONE3, 0, 0) }},
	{"thread", 0, "ok", "ok", func(*order, string) error { newWorker()(func() {}); return nil }},
	{"namespace", 0, "EPERM", "EPERM", func(*order, string) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	{"trace the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error { return unix.PtraceAttach(o.Parent) }},
	{"memory of the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		return raw(unix.SYS_PROCESS_VM_READV, uintptr(o.Parent))
	}},
	{"files of the parent", 1, "EACCES", "EACCES", func(o *order, _ string) error {
		_, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", o.Parent))
		return err
	}},
	{"signal to the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error { return unix.Kill(o.Parent, 0) }},
	{"signal to itself", 0, "ok", "ok", func(*order, string) error { return unix.Kill(os.Getpid(), 0) }},
	{"signal to the parent by a file's events", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		defer unix.Close(p[0])
		defer unix.Close(p[1])
		_, err := unix.FcntlInt(uintptr(p[0]), unix.F_SETOWN, o.Parent)
		return err
	}},
	{"limits of the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		var now unix.Rlimit
		return unix.Prlimit(o.Parent, unix.RLIMIT_CORE, nil, &now)
	}},
	{"limits of its own", 0, "ok", "ok", func(*order, string) error {
		var now unix.Rlimit
		return unix.Prlimit(0, unix.RLIMIT_CORE, nil, &now)
	}},
	{"priority of the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		return unix.Setpriority(unix.PRIO_PROCESS, o.Parent, 0)
	}},
	{"priority of the user's processes", 0, "EPERM", "EPERM", func(*order, string) error {
		return unix.Setpriority(unix.PRIO_USER, 0, 0)
	}},
	{"priority of its own", 0, "ok", "ok", func(*order, string) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, 0) }},
	{"processors of the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		var all unix.CPUSet
		if err := unix.SchedGetaffinity(o.Parent, &all); err != nil {
			return err
		}
		return unix.SchedSetaffinity(o.Parent, &all)
	}},
	{"scheduling of the parent", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		const other = 0 // SCHED_OTHER
		var param int32
		return raw(unix.SYS_SCHED_SETSCHEDULER, uintptr(o.Parent), other, uintptr(unsafe.Pointer(&param)))
	}},
	{"io_uring", 0, "ENOSYS", "ENOSYS", func(*order, string) error { return raw(unix.SYS_IO_URING_SETUP, 1) }},
	{"bpf", 0, "EPERM", "EPERM", func(*order, string) error { return raw(unix.SYS_BPF, 0) }},
	{"keys", 0, "EPERM", "EPERM", func(*order, string) error { return raw(unix.SYS_KEYCTL, 0) }},
	{"mount", 0, "EPERM", "EPERM", func(o *order, _ string) error { return unix.Mount(o.Out, o.In, "", unix.MS_BIND, "") }},
	{"other user", 0, "EPERM", "EPERM", func(*order, string) error { return raw(unix.SYS_SETUID, uintptr(os.Getuid())) }},
	{"type into a terminal", 0, "EPERM", "EPERM", func(*order, string) error { return unix.IoctlSetInt(0, unix.TIOCSTI, 0) }},
	{"what a terminal is asked", 0, "ENOTTY", "ENOTTY", func(*order, string) error {
		_, err := unix.IoctlGetTermios(0, unix.TCGETS)
		return err
	}},

	{"connection", 0, "EPERM", "ok", func(o *order, _ string) error {
		conn, err := net.Dial("tcp", o.Address)
		if err == nil {
			conn.Close()
		}
		return err
	}},
	{"datagrams", 0, "EPERM", "ok", func(*order, string) error {
		conn, err := net.Dial("udp", "127.0.0.1:9")
		if err == nil {
			conn.Close()
		}
		return err
	}},
	{"socket of the machine", 0, "EPERM", "EPERM", func(*order, string) error { return makeSocket(unix.AF_UNIX, unix.SOCK_STREAM, 0) }},
	{"two sockets", 0, "EPERM", "EPERM", func(*order, string) error {
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	}},
	{"connection to a socket of the machine", 0, "EPERM", "EPERM", func(o *order, _ string) error {
		conn, err := net.Dial("unix", o.Socket)
		if err == nil {
			conn.Close()
		}
		return err
	}},
	{"server of the machine", 0, "EPERM", "EPERM", func(o *order, where string) error {
		return serve(filepath.Join(o.In, "socket-"+where))
	}},
	{"server of the machine elsewhere", 1, "EPERM", "EPERM", func(o *order, where string) error {
		return serve(filepath.Join(o.Out, "socket-"+where))
	}},
	{"raw packets", 0, "EPERM", "EPERM", func(*order, string) error { return makeSocket(unix.AF_INET, unix.SOCK_RAW, 0) }},
	{"Multipath TCP", 0, "EPERM", "EPERM", func(*order, string) error {
		return makeSocket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)
	}},
	{"UDP-Lite", 0, "EPERM", "EPERM", func(*order, string) error {
		return makeSocket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDPLITE)
	}},
	{"server", 0, "EPERM", "EPERM", func(*order, string) error { return listen() }},
	{"well-known port", 0, "EPERM", "EPERM", func(*order, string) error { return bind(unix.SOCK_STREAM, 8080) }},
	{"any port", 0, "EPERM", "EPERM", func(*order, string) error { return bind(unix.SOCK_STREAM, 0) }},
	{"port of UDP", 0, "EPERM", "EPERM", func(*order, string) error { return bind(unix.SOCK_DGRAM, 0) }},

	{"read elsewhere", 0, "ok", "ok", func(o *order, _ string) error {
		_, err := os.ReadFile(filepath.Join(o.Out, "file"))
		return err
	}},
	{"list elsewhere", 0, "ok", "ok", func(o *order, _ string) error { _, err := os.ReadDir(o.Out); return err }},
	{"write elsewhere", 1, "EACCES", "EACCES", func(o *order, _ string) error {
		return write(filepath.Join(o.Out, "file"), 0)
	}},
	{"truncate elsewhere", 3, "EACCES", "EACCES", func(o *order, _ string) error { return os.Truncate(filepath.Join(o.Out, "file"), 0) }},
	{"create elsewhere", 1, "EACCES", "EACCES", func(o *order, where string) error {
		return write(filepath.Join(o.Out, "new-"+where), os.O_CREATE|os.O_EXCL)
	}},
	{"folder elsewhere", 1, "EACCES", "EACCES", func(o *order, where string) error { return os.Mkdir(filepath.Join(o.Out, "dir-"+where), 0o700) }},
	{"remove elsewhere", 1, "EACCES", "EACCES", func(o *order, _ string) error { return os.Remove(filepath.Join(o.Out, "file")) }},
	{"rename out", 1, "EXDEV EACCES", "EXDEV EACCES", func(o *order, where string) error {
		path := filepath.Join(o.In, "out-"+where)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
		return os.Rename(path, filepath.Join(o.Out, "in-"+where))
	}},
	{"nameless file elsewhere", 1, "EACCES", "EACCES", func(o *order, _ string) error { return write(o.Out, unix.O_TMPFILE) }},
	{"pipe with a name", 1, "EACCES", "EACCES", func(o *order, where string) error {
		return unix.Mkfifo(filepath.Join(o.In, "pipe-"+where), 0o600)
	}},
	{"device", 1, "EACCES EPERM", "EACCES EPERM", func(o *order, where string) error {
		return raw(unix.SYS_MKNODAT, at, text(filepath.Join(o.In, "null-"+where)), unix.S_IFCHR|0o600, 1<<8|3)
	}},
	{"link", 1, "EACCES", "EACCES", func(o *order, where string) error {
		return os.Symlink("/etc/passwd", filepath.Join(o.In, "link-"+where))
	}},

	{"cache file", 0, "ok", "ok", func(o *order, where string) error { return cacheFile(filepath.Join(o.In, "cache-"+where)) }},
	{"nameless file that gets a name", 0, "ok", "ok", func(o *order, where string) error {
		return nameless(o.In, filepath.Join(o.In, "named-"+where))
	}},
	{"file of memory", 0, "ok", "ok", func(*order, string) error {
		fd, err := unix.MemfdCreate("x", unix.MFD_CLOEXEC)
		if err == nil {
			err = errors.Join(unix.Ftruncate(fd, 1<<20), unix.Close(fd))
		}
		return err
	}},
	{"lock", 0, "ok", "ok", func(o *order, _ string) error {
		f, err := os.Open(o.Out)
		if err != nil {
			return err
		}
		defer f.Close()
		return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	}},
	{"watch", 0, "ok", "ok", func(o *order, _ string) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.InotifyAddWatch(fd, o.Out, unix.IN_CREATE)
		return err
	}},
	{"pipe of more", 0, "ok", "ok", func(*order, string) error {
		var p [2]int
		if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return err
		}
		defer unix.Close(p[0])
		defer unix.Close(p[1])
		if _, err := unix.FcntlInt(uintptr(p[1]), unix.F_SETPIPE_SZ, 1<<17); err != nil {
			return err
		}
		_, err := os.ReadDir(fmt.Sprintf("/proc/self/fd/%d/..", p[0])) // not a folder
		if !errors.Is(err, unix.ENOTDIR) {
			return err
		}
		f, err := os.OpenFile(fmt.Sprintf("/dev/fd/%d", p[0]), os.O_RDONLY|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		return f.Close()
	}},
}

// listening has the results that differ if the policy allows listening on ports, and on sockets in
// a writable folder.
var listening = map[string]string{
	"socket of the machine":           "ok",
	"server of the machine":           "ok",
	"server of the machine elsewhere": "EACCES",
	"server":                          "ok",
	"well-known port":                 "ok EADDRINUSE",
	"any port":                        "ok",
	"port of UDP":                     "ok",
}

const at = ^uintptr(99) // AT_FDCWD

// text returns the address of s as a C string.
func text(s string) uintptr {
	b, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err)
	}
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(b))
}

var kept []*byte // arguments of system calls, kept alive

func makeSocket(domain, kind, protocol int) error {
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// listen listens on any port, without a call of bind.
func listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Listen(fd, 1)
}

// serve listens on a Unix socket at path, then removes it.
func serve(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	return errors.Join(unix.Listen(fd, 1), os.Remove(path))
}

func bind(kind, port int) error {
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
}

func write(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// cacheFile writes, renames and removes files in dir, as the caches do.
func cacheFile(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "ab"), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer f.Close()
	name := filepath.Join(dir, "ab", "file")
	now := time.Now()
	_, err = f.WriteString("text")
	return errors.Join(err, f.Chmod(0o400), f.Truncate(2), f.Sync(), os.Rename(f.Name(), name), os.Chtimes(name, now, now),
		write(filepath.Join(dir, "empty"), os.O_CREATE|os.O_TRUNC), os.RemoveAll(dir))
}

// nameless creates a file without a name in dir, and then names it.
func nameless(dir, name string) error {
	f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// kernelLandlock returns the kernel's version of Landlock, or 0.
func kernelLandlock() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// hidesThreads reports whether the test was built with cgo, as the race detector requires. Package
// syscall then cannot make a call in all threads.
func hidesThreads() bool {
	info, _ := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "CGO_ENABLED" {
			return s.Value == "1"
		}
	}
	return false
}

func confess(t *testing.T, o order) (c confession) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asPrisoner+"="+string(text), "GORACE=atexit_sleep_ms=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

// newOrder returns an order with folders, and with a listening process.
func newOrder(t *testing.T, p Policy) order {
	t.Helper()
	o := order{Policy: p, In: t.TempDir(), Out: t.TempDir(), Parent: os.Getpid()}
	o.Write = []string{o.In, filepath.Join(o.Out, "nowhere")}
	if err := os.WriteFile(filepath.Join(o.Out, "file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	o.Address = l.Addr().String()
	o.Socket = filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", o.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { local.Close() })
	return o
}

func TestAllThreadsGiveUpWhatThePolicyDoesNotKeep(t *testing.T) {
	for _, p := range []struct {
		name                       string
		network, listening, accept bool
	}{{"offline", false, false, false}, {"network", true, false, false}, {"listening", false, true, false}, {"accept", false, false, true}} {
		t.Run(p.name, func(t *testing.T) {
			o := newOrder(t, Policy{Network: p.network, Listen: p.listening, Accept: p.accept})
			if p.listening {
				o.Sockets = []string{o.In}
			}
			c := confess(t, o)
			abi := kernelLandlock()
			if hidesThreads() && abi < abiThreads {
				abi = 0
			}
			if !c.State.NoNewPrivs || !c.State.Seccomp || c.State.Landlock != abi {
				t.Fatalf("in force: %s; want Landlock ABI %d and the rest", c.State, abi)
			}
			if (abi == 0) != (len(c.State.Missing) > 0) {
				t.Errorf("missing: %q", c.State.Missing)
			}
			if len(c.Threads) < 4 {
				t.Errorf("%d threads", len(c.Threads))
			}
			for _, said := range c.Threads {
				if said != "NoNewPrivs 1, Seccomp 2" {
					t.Errorf("a thread with %s", said)
				}
			}
			for _, a := range attempts {
				want := a.offline
				switch differs, ok := listening[a.name]; {
				case p.network:
					want = a.online
				case p.listening && ok:
					want = differs
				}
				if a.abi > abi && want != "EPERM" {
					continue // only Landlock would deny the attempt
				}
				if got := c.Attempts[a.name]; !strings.Contains(" "+want+" ", " "+got+" ") {
					t.Errorf("%s: %s, want %s", a.name, got, want)
				}
			}
		})
	}
}

func TestOtherProcessesAreKept(t *testing.T) {
	c := confess(t, newOrder(t, Policy{OtherProcesses: true}))
	if want := (State{NoNewPrivs: true, Seccomp: true}).String() + "; no Landlock: " + errOtherProcesses.Error(); c.State.String() != want {
		t.Errorf("in force: %s; want %s", c.State, want)
	}
	for name, want := range map[string]string{"files of the parent": "ok", "program": "EPERM", "connection": "EPERM"} {
		if got := c.Attempts[name]; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// The process may send signals to the child. All other operations on the child must be denied.
func TestAChildMayBeSignalled(t *testing.T) {
	c := confess(t, newOrder(t, Policy{Child: os.Getpid()}))
	for name, want := range map[string]string{
		"signal to the parent": "ok", "signal to itself": "ok", "trace the parent": "EPERM", "limits of the parent": "EPERM", "program": "EPERM",
	} {
		if got := c.Attempts[name]; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// If the kernel lacks a part of the sandbox, the other parts must be applied, and the missing part
// must be reported.
func TestOldKernels(t *testing.T) {
	o := newOrder(t, Policy{})
	o.Old = true
	c := confess(t, o)
	want, thread := "no new privileges; no seccomp: invalid argument; no Landlock: function not implemented", "NoNewPrivs 1, Seccomp 2"
	if hidesThreads() {
		want, thread = "none; no seccomp: invalid argument; no restrictions: "+inAllThreads(unix.ENOTSUP, "seccomp").Error(), ""
	}
	if got := c.State.String(); got != want {
		t.Errorf("in force: %s; want %s", got, want)
	}
	for _, said := range c.Threads {
		if thread != "" && said != thread {
			t.Errorf("a thread with %s", said)
		}
	}
}
