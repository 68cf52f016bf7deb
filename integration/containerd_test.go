//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A shim starts symfilter as containerd's shim starts a logging binary. Descriptors 3 and 4 are the
// container's streams. The binary closes descriptor 5 when it is ready.
type shim struct {
	*exec.Cmd
	out, err *os.File // the container's ends
	stderr   bytes.Buffer
}

// startShim starts symfilter with the arguments that containerd takes from a URI. It returns once
// symfilter is ready.
func startShim(t *testing.T, args ...string) *shim {
	t.Helper()
	var ends [6]*os.File
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ends[i], ends[i+1] = r, w
	}
	s := &shim{Cmd: exec.Command(command, args...), out: ends[1], err: ends[3]}
	s.Env = []string{"CONTAINER_ID=web-1", "CONTAINER_NAMESPACE=shop"}
	s.ExtraFiles = []*os.File{ends[0], ends[2], ends[5]}
	s.Stderr = &s.stderr
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Process.Kill(); s.Wait() })
	for _, f := range s.ExtraFiles {
		f.Close()
	}
	ends[4].SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := ends[4].Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("not ready: %d bytes, %v; %s", n, err, s.stderr.String())
	}
	ends[4].Close()
	return s
}

// end waits until symfilter exits with 0.
func (s *shim) end(t *testing.T) {
	t.Helper()
	if err := s.Wait(); err != nil {
		t.Errorf("%v; %s", err, s.stderr.String())
	}
}

// textOfStream returns the text of one stream in a CRI log. It fails the test if a line has another
// form.
func textOfStream(t *testing.T, log, stream string) string {
	t.Helper()
	form := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) ([FP]) (.*)\n$`)
	var text strings.Builder
	for line := range strings.Lines(log) {
		m := form.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%q is not a line of CRI", line)
		}
		if m[1] != stream {
			continue
		}
		text.WriteString(m[3])
		if m[2] == "F" {
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// uri returns the arguments with which containerd starts symfilter for a logging URI with this path
// and these members.
func uri(path string, members ...string) []string {
	args := []string{"--path", path, "--no-default-debug-directories", "true", "container-log", ""}
	return append(append(args, "--debug-file-directory", checkout+"/testdata/debug"), members...)
}

// Each stream must have its own modules, even after a rotation. Lines that are still in the pipes
// when symfilter is stopped must be written, too.
func TestContainersLogThroughSymfilter(t *testing.T) {
	log, golden := fixture(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "logs", "shop-web-1.log")
	s := startShim(t, uri(filepath.Join(dir, "logs", "{namespace}-{id}.log"))...)
	begin, rest := log[:len(log)/2], log[len(log)/2:]
	io.WriteString(s.out, begin)
	io.WriteString(s.err, "of the other stream: {{{pc:0x555555555ac0}}}\n")
	content := func(path string) string { b, _ := os.ReadFile(path); return string(b) }
	until(t, "the line of standard error is written", func() bool {
		return strings.Contains(content(path), " stderr F of the other stream: [[[pc:0x555555555ac0]]]\n")
	})
	if info, err := os.Stat(path); err != nil || info.Mode()&^0o640 != 0 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	io.WriteString(s.out, rest)
	io.WriteString(s.err, "no line end")
	s.Process.Signal(syscall.SIGTERM) // containerd sends SIGTERM when the container has ended
	s.out.Close()
	s.err.Close()
	s.end(t)
	all := content(path+".1") + content(path)
	if diff := cmp.Diff(golden, textOfStream(t, all, "stdout")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got, want := textOfStream(t, all, "stderr"), "of the other stream: [[[pc:0x555555555ac0]]]\nno line end"; got != want {
		t.Errorf("stderr: got %q, want %q", got, want)
	}
	if len(content(path)) == 0 {
		t.Error("after the rotation, no line is in a new file")
	}
	if back := run(t, []byte(all), command, "--input=cri", "--no-default-debug-directories"); back != all {
		t.Errorf("what symfilter reads of it (-want +got)\n%s", cmp.Diff(all, back))
	}
}

// The server of debug files sends its first answer after SIGTERM, or never. The last lines must
// wait for the answer, but must be written even without it.
func TestLastLinesOfAContainerWaitForDebugFiles(t *testing.T) {
	for name, answers := range map[string]bool{"a slow server": true, "a silent server": false} {
		t.Run(name, func(t *testing.T) {
			asked, signalled := make(chan bool, 100), make(chan bool)
			files := http.StripPrefix("/buildid/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- true
				select {
				case <-signalled:
				case <-r.Context().Done():
				}
				id, what, _ := strings.Cut(r.URL.Path, "/")
				if !answers {
					<-r.Context().Done()
				}
				if what != "debuginfo" || len(id) < 3 {
					http.NotFound(w, r)
					return
				}
				http.ServeFile(w, r, filepath.Join(checkout, "testdata/debug/.build-id", id[:2], id[2:]+".debug"))
			}))
			server := httptest.NewServer(files)
			defer server.Close()
			defer server.CloseClientConnections()
			dir := t.TempDir()
			path := filepath.Join(dir, "web.log")
			s := startShim(t, "--path", path, "--no-default-debug-directories", "true", "container-log", "", "--debuginfod-urls", server.URL)
			log, golden := fixture(t)
			io.WriteString(s.out, log)
			select {
			case <-asked:
			case <-time.After(time.Minute):
				t.Fatalf("no request; %s", s.stderr.String())
			}
			s.Process.Signal(syscall.SIGTERM)
			close(signalled)
			s.out.Close()
			s.err.Close()
			s.end(t)
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := textOfStream(t, string(got), "stdout")
			if answers && text != golden {
				t.Errorf("(-want +got)\n%s", cmp.Diff(golden, text))
			}
			if !answers && !strings.Contains(text, "(libledger.so+0x1917) (BuildId: ") {
				t.Errorf("got %s", text)
			}
		})
	}
}

// symfilter must first end the line that an earlier, killed symfilter has left unfinished. A log in
// the format json-file must be readable like Docker's log.
func TestContainersLogOfDocker(t *testing.T) {
	log, golden := fixture(t)
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(`{"log":"cut`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startShim(t, uri(path, "--format", "json-file")...)
	io.WriteString(s.out, log)
	s.out.Close()
	s.err.Close()
	s.end(t)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, entries, ok := strings.Cut(string(b), `{"log":"cut`+"\n")
	if !ok {
		t.Fatalf("the cut line has no end: %.100q", b)
	}
	var text strings.Builder
	for line := range strings.Lines(run(t, []byte(entries), command, "--input=docker", "--no-default-debug-directories")) {
		var entry struct{ Log, Stream string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Stream != "stdout" {
			t.Fatalf("%s: %v", line, err)
		}
		text.WriteString(entry.Log)
	}
	if diff := cmp.Diff(golden, text.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestContainerd(t *testing.T) {
	testenv.OnlyLong(t)
	if os.Geteuid() != 0 {
		testenv.Forbidden(t, "to run a container", "this user is not root")
	}
	daemon := collectorPart(t, "usr/bin/containerd")
	busybox := collectorPart(t, "bin/busybox")
	dir := t.TempDir()
	if len(dir) > 80 { // a socket's path has at most 108 bytes
		short, err := os.MkdirTemp("", "ctd")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(short) })
		dir = short
	}
	root := filepath.Join(dir, "rootfs")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(root, "bin"), 0o755),
		os.Link(busybox, filepath.Join(root, "bin", "cat")),
		os.WriteFile(filepath.Join(dir, "config.toml"), []byte("version = 2\nroot = \""+dir+"/root\"\nstate = \""+dir+"/state\"\n"+
			"disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n[grpc]\naddress = \""+dir+"/c.sock\"\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	log, golden := fixture(t)
	if err := os.WriteFile(filepath.Join(root, "crash.log"), []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + filepath.Dir(daemon) + ":" + filepath.Join(filepath.Dir(filepath.Dir(daemon)), "sbin") + ":" + os.Getenv("PATH")
	var messages messages
	d := exec.Command(daemon, "-c", filepath.Join(dir, "config.toml"))
	d.Env, d.Stdout, d.Stderr = append(os.Environ(), path), &messages, &messages
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Process.Signal(syscall.SIGTERM); d.Wait() })
	if !testenv.Wait(func() bool { return strings.Contains(messages.String(), "successfully booted") }) {
		t.Fatalf("containerd does not start:\n%s", messages.String())
	}
	script, err := os.ReadFile("../examples/containerd/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/usr/bin/symfilter?", command+"?--no-default-debug-directories=true&--debug-file-directory="+checkout+"/testdata/debug&", "/var/log/containers/", dir+"/").Replace(string(script))
	run := exec.Command("sh", "-c", text, "run.sh", "--rootfs", root, "symfilter-test", "/bin/cat", "/crash.log")
	run.Env = append(os.Environ(), path, "CONTAINERD_ADDRESS="+dir+"/c.sock")
	if out, err := run.CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("cgroup")) || bytes.Contains(out, []byte("operation not permitted")) {
			testenv.Forbidden(t, "to run a container", string(out))
		}
		t.Fatalf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(filepath.Join(dir, "symfilter-test.log"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, textOfStream(t, string(b), "stdout")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
