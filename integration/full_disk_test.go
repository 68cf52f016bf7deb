//go:build linux

package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// smallDisk mounts a file system of 1 MiB with only this many free bytes. The file DIR/ballast
// takes the rest.
func smallDisk(t *testing.T, free int) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "disk") // short, since a socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		testenv.Missing(t, fmt.Sprintf("the right to mount a small file system (%v)", err))
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, 1<<20-free), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// upload posts a log to the socket at path, and returns the response status.
func upload(socket, log string) (int, error) {
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
	r, err := client.Post("http://symfilterd/v1/filter", "text/plain", strings.NewReader(log))
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	io.Copy(io.Discard, r.Body)
	return r.StatusCode, nil
}

// Lines that do not fit must not be acknowledged: a request gets no response, and files are reread
// after a crash. Once there is space, all lines are written.
func TestAFullDiskAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	const free = 64 << 10
	disk := smallDisk(t, free)
	var log strings.Builder
	for n := range 10_000 {
		fmt.Fprintf(&log, "line %d\n", n)
	}
	in := t.TempDir()
	appendTo(t, filepath.Join(in, "a.log"), log.String())
	conf := strings.NewReplacer("DISK", disk, "IN", in).Replace(`
state: IN/state
pipelines:
  app: {input: {files: ["IN/*.log"]}, output: {file: DISK/files}}
  web: {input: {http: "unix:DISK/web"}, output: {file: DISK/requests}}
`)
	d := startDaemon(t, conf)
	d.awaitProblems("/readyz", `{"part":"output","pipeline":"app","problem":"failing: write `+disk+`/files: no space left on device","ready":false}`)
	type result struct {
		status int
		err    error
	}
	answer := make(chan result, 1)
	go func() {
		status, err := upload(filepath.Join(disk, "web"), log.String())
		answer <- result{status, err}
	}()
	d.awaitProblems("/readyz", `{"part":"output","pipeline":"web","problem":"failing: `)
	d.cmd.Process.Kill()
	<-d.exited
	if r := <-answer; r.err == nil {
		t.Errorf("a request that was not written is answered with %d", r.status)
	}

	if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}
	d = startDaemon(t, conf)
	d.ready()
	if status, err := upload(filepath.Join(disk, "web"), log.String()); status != http.StatusNoContent || err != nil {
		t.Errorf("the request again: %d, %v", status, err)
	}
	if got := readFile(t, filepath.Join(disk, "requests")); !strings.HasSuffix(got, "\n"+log.String()) && got != log.String() {
		t.Errorf("an acknowledged request is not whole: %d bytes, want %d", len(got), log.Len())
	}
	until(t, "the last line", func() bool { return strings.HasSuffix(readFile(t, filepath.Join(disk, "files")), "line 9999\n") })
	missing := make(map[string]bool)
	for line := range strings.Lines(log.String()) {
		missing[line] = true
	}
	for line := range strings.Lines(readFile(t, filepath.Join(disk, "files"))) {
		delete(missing, line)
	}
	if len(missing) > 0 {
		t.Errorf("%d lines are lost", len(missing))
	}
}

// A failed checkpoint must be counted, and must delay nothing. After a crash, the lines must be
// read again, and a later checkpoint must be complete.
func TestCheckpointsOnAFullDisk(t *testing.T) {
	t.Parallel()
	disk := smallDisk(t, 4<<10) // enough for the checkpoint's file, but not for a record
	in := t.TempDir()
	log, out := filepath.Join(in, "a.log"), filepath.Join(in, "out")
	conf := strings.NewReplacer("DISK", disk, "IN", in).Replace(`
state: DISK
pipelines:
  app: {input: {files: ["IN/*.log"]}, output: {file: IN/out}}
`)
	d := startDaemon(t, conf)
	d.ready()
	fill, err := os.OpenFile(filepath.Join(disk, "ballast"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	fill.Write(make([]byte, 1<<20)) // until the disk is full
	fill.Close()
	appendTo(t, log, strings.Repeat("before\n", 2000))
	until(t, "the lines are written", func() bool { return readFile(t, out) == strings.Repeat("before\n", 2000) })
	until(t, "the error is counted", func() bool {
		_, text := d.get("/metrics")
		return strings.Contains(text, "\nsymfilter_checkpoint_errors_total ") && !strings.Contains(text, "\nsymfilter_checkpoint_errors_total 0\n")
	})
	d.cmd.Process.Kill()
	<-d.exited
	if err := os.Remove(filepath.Join(disk, "ballast")); err != nil {
		t.Fatal(err)
	}

	d = startDaemon(t, conf)
	appendTo(t, log, "after\n")
	twice := strings.Repeat("before\n", 4000) + "after\n"
	until(t, "the lines are read again", func() bool { return readFile(t, out) == twice })
	until(t, "its checkpoint", func() bool { return saved(t, filepath.Join(disk, "app.files"), log) })
	d.signal(syscall.SIGTERM)
	d.exit()
	d = startDaemon(t, conf)
	appendTo(t, log, "last\n")
	until(t, "the last line", func() bool { return strings.HasSuffix(readFile(t, out), "last\n") })
	if got := readFile(t, out); got != twice+"last\n" {
		t.Errorf("got %d bytes, want %d", len(got), len(twice)+5)
	}
}

// awaitProblems waits until an answer of the admin listener has this text.
func (d *runningDaemon) awaitProblems(path, text string) {
	d.t.Helper()
	until(d.t, text, func() bool {
		_, got := d.get(path)
		return strings.Contains(got, text)
	})
}
