//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A server is a program of another project. Its output is its log.
type server struct {
	cmd *exec.Cmd
	out *bufio.Reader
	log bytes.Buffer // output to both streams
}

// startServer starts a program, and reads its output up to the first line that contains the text in
// ready.
func startServer(t *testing.T, cmd *exec.Cmd, ready string) *server {
	t.Helper()
	s := &server{cmd: cmd, out: bufio.NewReader(startPiped(t, cmd, &cmd.Stdout, &cmd.Stderr))}
	t.Cleanup(func() { cmd.Process.Kill() })
	if !s.readTo(ready) {
		t.Fatalf("%s is not ready:\n%s", cmd, &s.log)
	}
	return s
}

// readTo reads the log up to the next line that contains text. It returns false if there is no such
// line.
func (s *server) readTo(text string) bool {
	for {
		line, err := s.out.ReadString('\n')
		s.log.WriteString(line)
		if strings.Contains(line, text) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// end reads the rest of the log, and returns the whole log.
func (s *server) end() []byte {
	s.out.WriteTo(&s.log)
	s.cmd.Wait()
	return s.log.Bytes()
}

// framesOfSystem returns the frames of a log of a Debian program without debug information. It
// fails the test if a frame's answer is not the function that the log names, or if a frame of the C
// library has no line.
func framesOfSystem(t *testing.T, log []byte, args ...string) (all []twinFrame) {
	t.Helper()
	need(t, "/usr/lib/debug/.build-id", "c++filt")
	wantInRecords(t, log, args...)
	out := run(t, log, command, append([]string{"--output=json"}, args...)...)
	all = framesIn(t, out)
	for line := range strings.Lines(out) {
		frames := framesIn(t, line)
		_, name, _ := strings.Cut(line, "(")
		name, _, ok := strings.Cut(name, "+0x")
		if len(frames) != 1 || !ok || name == "" || strings.Contains(frames[0].Module, "/libc.so") {
			continue // a local function of the C library is nearer than the exported one
		}
		name = strings.TrimSpace(run(t, nil, "c++filt", name))
		if f := frames[0]; len(f.Frames) == 0 || f.Frames[0].Function != name || f.Verified != "symbol" {
			t.Errorf("%s+%s is %+v, verified by %s, in the log %s", f.Module, f.Offset, f.Frames, f.Verified, name)
		}
	}
	for _, f := range all {
		if strings.Contains(f.Module, "/libc.so") && (len(f.Frames) == 0 || f.Frames[0].Line == 0 && f.Frames[0].Function != "__restore_rt") {
			t.Errorf("%s+%s has no line: %+v %s", f.Module, f.Offset, f.Frames, f.Reason)
		}
	}
	return all
}

// Frames of a Redis crash must be resolved. Redis prints the frame of the fault first, and names
// its executable by the process title.
func TestRedisCrash(t *testing.T) {
	need(t, "redis-server")
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	s := startServer(t, exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir,
		"--enable-debug-command", "yes", "--crash-memcheck-enabled", "no"), "ready to accept connections")
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("DEBUG SEGFAULT\r\n")); err != nil {
		t.Fatal(err)
	}
	log := s.end()
	frames := framesOfSystem(t, log)
	if len(frames) < 8 || !strings.HasSuffix(frames[0].Module, "/redis-server") || frames[0].Offset != frames[2].Offset ||
		len(frames[1].Frames) == 0 || frames[1].Frames[0].Function != "__restore_rt" {
		t.Errorf("the fault, the trampoline and the fault again are not the first frames: %+v\n%s", frames, log)
	}
	others := framesIn(t, run(t, log, command, "--output=json", "--image", "redis-server=/usr/bin/c++filt"))
	if len(others) != len(frames) {
		t.Errorf("%d frames with another program, want %d", len(others), len(frames))
	}
	for _, f := range others {
		if !strings.Contains(f.Module, "/libc.so") && len(f.Frames) > 0 {
			t.Errorf("another program answers: %+v", f)
		}
	}
}

// asServerUser makes cmd run as the user of the database if the test runs as root: PostgreSQL does
// not start as root.
func asServerUser(t *testing.T, cmd *exec.Cmd, dir string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		return cmd
	}
	u, err := user.Lookup("postgres") // created by Debian's package
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	cmd.Dir = dir
	return cmd
}

// Backtraces of PostgreSQL must be resolved. PostgreSQL prints one for an error in a function of
// backtrace_functions. It names its executable by the process title, or by its path in single-user
// mode.
func TestPostgreSQLBacktrace(t *testing.T) {
	testenv.OnlyLong(t)
	const bin = "/usr/lib/postgresql/15/bin/"
	need(t, bin+"postgres")
	dir, err := os.MkdirTemp("/tmp", "symfilter-postgres-") // a folder that the server's user may enter
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data := filepath.Join(dir, "data")
	if out, err := asServerUser(t, exec.Command(bin+"initdb", "-D", data, "-A", "trust", "-U", "postgres"), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	single := asServerUser(t, exec.Command(bin+"postgres", "--single", "-D", data, "-c", "backtrace_functions=int4div", "postgres"), dir)
	single.Stdin = strings.NewReader("select 1/0\n")
	log, err := single.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	if n := len(framesOfSystem(t, log)); n < 15 {
		t.Errorf("%d frames in\n%s", n, log)
	}
	s := startServer(t, asServerUser(t, exec.Command(bin+"postgres", "-D", data, "-c", "backtrace_functions=int4div", "-c", "listen_addresses=", "-k", dir), dir),
		"ready to accept connections")
	// the division makes psql fail
	exec.Command(bin+"psql", "-U", "postgres", "-h", dir, "-c", "select 1/0").Run()
	s.readTo("STATEMENT:")
	s.cmd.Process.Signal(syscall.SIGINT)
	log = s.end()
	if !bytes.Contains(log, []byte("\tpostgres: postgres postgres [local] SELECT(")) {
		t.Errorf("no frame with a title in\n%s", log)
	}
	if n := len(framesOfSystem(t, log, "--image", "postgres="+bin+"postgres")); n < 15 {
		t.Errorf("%d frames in\n%s", n, log)
	}
}

// Frames of a MariaDB crash must be resolved. MariaDB resolves frames of libraries itself, but not
// its own: addr2line does not find the executable by its process title.
func TestMariaDBCrash(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "mariadbd")
	dir := t.TempDir()
	s := startServer(t, exec.Command("mariadbd", "--no-defaults", "--datadir="+dir, "--socket="+filepath.Join(dir, "s"),
		"--skip-networking", "--skip-grant-tables", "--user=root"), "ready for connections")
	s.cmd.Process.Signal(syscall.SIGSEGV)
	log := s.end()
	if n := len(framesOfSystem(t, log)); n < 4 {
		t.Errorf("%d frames in\n%s", n, log)
	}
	if text := run(t, log, command); !strings.Contains(text, "] mysqld_main(int, char**)") {
		t.Errorf("mysqld_main is not demangled:\n%s", text)
	}
}

// The callers in glibc's log of allocations must be resolved. glibc 2.36 logs each as an offset
// from the load base.
func TestMtraceIsResolved(t *testing.T) {
	const debug = "/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0"
	need(t, debug)
	for name, link := range map[string]string{"pie": "-pie", "no-pie": "-no-pie"} {
		t.Run(name, func(t *testing.T) {
			w := newTraceTwin(t, "allocate", twinBuild{link: []string{link}})
			path := filepath.Join(w.dir, "log")
			cmd := exec.Command(w.program)
			cmd.Env = append(os.Environ(), "MALLOC_TRACE="+path, "LD_PRELOAD="+debug)
			producers.combined(t, cmd) // the exit status is a sum
			log, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			w.wantChain(t, w.frames(t, log), "malloc", "realloc", "realloc", "free")
		})
	}
}
