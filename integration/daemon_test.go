//go:build linux

package integration

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// daemonCommand returns the path of symfilterd. The first test that needs it builds it.
func daemonCommand(t *testing.T) string {
	t.Helper()
	path, err := buildDaemon()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildDaemon = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(command), "symfilterd")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "../cmd/symfilterd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", errors.New("go build ../cmd/symfilterd: " + err.Error() + "\n" + string(out))
	}
	return path, nil
})

// A runningDaemon is a running symfilterd with a folder for its files.
type runningDaemon struct {
	t      *testing.T
	dir    string
	files  string // folder of inputs and outputs; empty in some tests
	cmd    *exec.Cmd
	stderr lockedBuffer
	exited chan struct{} // closed when cmd has ended and err is set
	err    error
}

// startDaemon starts symfilterd with a configuration, in which DIR is the daemon's temporary
// folder. It adds the admin listener unix:DIR/admin.
func startDaemon(t *testing.T, configuration string, env ...string) *runningDaemon {
	t.Helper()
	return startDaemonWith(t, nil, configuration, env...)
}

// startDaemonWith is startDaemon with flags.
func startDaemonWith(t *testing.T, flags []string, configuration string, env ...string) *runningDaemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "symfilterd") // short, since a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &runningDaemon{t: t, dir: dir, exited: make(chan struct{})}
	d.configure(configuration)
	d.cmd = exec.Command(daemonCommand(t), append(flags, "--config", d.path("symfilter.yaml"))...)
	d.cmd.Env = append(os.Environ(), env...)
	d.cmd.Stderr = &d.stderr
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		d.err = d.cmd.Wait()
		close(d.exited)
	}()
	t.Cleanup(func() {
		d.cmd.Process.Kill()
		<-d.exited
		if t.Failed() {
			t.Logf("symfilterd:\n%s", d.stderr.String())
		}
	})
	return d
}

// path returns the path of a file in the daemon's folder.
func (d *runningDaemon) path(name string) string { return filepath.Join(d.dir, name) }

func (d *runningDaemon) configure(text string) {
	d.t.Helper()
	text = strings.ReplaceAll("admin: {listen: 'unix:DIR/admin'}\n"+text, "DIR", d.dir)
	if err := os.WriteFile(d.path("symfilter.yaml"), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *runningDaemon) signal(s syscall.Signal) {
	d.t.Helper()
	if err := d.cmd.Process.Signal(s); err != nil {
		d.t.Fatal(err)
	}
}

// get returns the status and the body of an answer of the admin listener, or 0 without an answer.
func (d *runningDaemon) get(path string) (int, string) {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", d.path("admin"))
		},
	}}
	r, err := client.Get("http://symfilterd" + path)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.t.Error(err)
	}
	return r.StatusCode, string(body)
}

// inSandbox matches the member sandbox of /readyz, which depends on the kernel.
var inSandbox = regexp.MustCompile(`,"sandbox":"[^"]*"`)

// awaitAnswer waits for an answer of the admin listener. It ignores the member sandbox.
func (d *runningDaemon) awaitAnswer(path string, status int, body string) {
	d.t.Helper()
	var got int
	var text string
	for range 6000 {
		if got, text = d.get(path); got == status && inSandbox.ReplaceAllString(text, "") == body {
			return
		}
		select {
		case <-d.exited:
			d.t.Fatalf("symfilterd has ended: %v", d.err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	d.t.Fatalf("%s: got %d %q, want %d %q", path, got, text, status, body)
}

func (d *runningDaemon) ready() {
	d.t.Helper()
	d.awaitAnswer("/readyz", http.StatusOK, `{"ready":true}`+"\n")
}
