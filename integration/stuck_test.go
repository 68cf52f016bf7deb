//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// A stalling is a folder on its own file system. Its server, bindfs, can be stopped: then readers
// wait, as on a network file system that is gone.
type stalling struct {
	dir    string
	server *exec.Cmd
}

func newStalling(t *testing.T, folder string) *stalling {
	t.Helper()
	need(t, "bindfs", "/dev/fuse")
	s := &stalling{dir: t.TempDir()}
	s.server = exec.Command("bindfs", "-f", folder, s.dir)
	var said lockedBuffer
	s.server.Stderr = &said
	if err := s.server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.server.Wait() }()
	t.Cleanup(func() {
		s.server.Process.Signal(syscall.SIGCONT)
		s.server.Process.Signal(syscall.SIGTERM) // bindfs then unmounts the folder
		<-ended
	})
	for entries := []os.DirEntry(nil); len(entries) == 0; entries, _ = os.ReadDir(s.dir) {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("bindfs: %v\n%s", err, said.String())
		case <-time.After(time.Millisecond):
		}
	}
	return s
}

// stall makes all readers wait until resume is called.
func (s *stalling) stall()  { s.server.Process.Signal(syscall.SIGSTOP) }
func (s *stalling) resume() { s.server.Process.Signal(syscall.SIGCONT) }

// A debug file on a file system that no longer answers blocks a filter. Until the file system
// answers again, the watchdog must not be pinged, and health must name the pipeline. The test
// avoids garbage collection: it would stop all goroutines, and nothing could be reported.
func TestAFilterThatIsStuckIsReported(t *testing.T) {
	t.Parallel()
	need(t, "objcopy")
	libc, err := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if err != nil || len(libc) == 0 {
		t.Fatalf("no libc: %v", err)
	}
	f, err := elf.Open(libc[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	functions := make(map[string]uint64)
	for _, s := range symbols {
		functions[s.Name] = s.Value
	}
	content, err := os.ReadFile(libc[0])
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	hex := id.String()
	below := filepath.Join(".build-id", hex[:2], hex[2:]+".debug")
	need(t, "/usr/lib/debug/"+below)
	debug := t.TempDir()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(debug, below)), 0o700); err != nil {
		t.Fatal(err)
	}
	// 10 MB that are read piece by piece; compressed sections would be read at once
	run(t, nil, "objcopy", "--decompress-debug-sections", "/usr/lib/debug/"+below, filepath.Join(debug, below))
	files := newStalling(t, debug)

	m := newServiceManager(t, 500*time.Millisecond)
	d := startDaemon(t, `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, build_id_directories: [`+files.dir+`/.build-id]}
pipelines:
  app: {input: {files: ["DIR/*.log"]}, patience: {local: 1s, servers: 1s}, filter: {module_lines: none}, output: {file: DIR/out}}
`, append(m.env, "GOGC=off")...)
	m.expect("(?s)READY=1\n.*")
	log := d.path("a.log")
	appendTo(t, log, fmt.Sprintf("{{{reset}}}\n{{{module:0:libc:elf:%s}}}\n{{{mmap:0:0x10000000:load:0:rx:0}}}\n{{{pc:%#x}}}\n", hex, functions["nl_langinfo"]))
	for got := []byte(nil); !strings.HasPrefix(string(got), "nl_langinfo["); got, _ = os.ReadFile(d.path("out")) {
		m.expect("WATCHDOG=1")
	}

	files.stall()
	defer files.resume()
	appendTo(t, log, fmt.Sprintf("{{{pc:%#x}}}\n", functions["wcscoll"]))
	const stuck = "no progress: a file system of debug files does not answer, or this is a bug (report the stack trace that SIGQUIT prints)"
	m.expect(regexp.QuoteMeta("STATUS=1 pipeline; filter of app: " + stuck))
	if status, text := d.get("/healthz"); status != http.StatusServiceUnavailable || text != `{"healthy":false,"stuck":"app"}`+"\n" {
		t.Errorf("/healthz: got %d %s", status, text)
	}
	const want = `{"ready":false,"problems":[{"part":"filter","pipeline":"app","problem":"` + stuck + `","ready":false}]}` + "\n"
	if status, text := d.get("/readyz"); status != http.StatusServiceUnavailable || inSandbox.ReplaceAllString(text, "") != want {
		t.Errorf("/readyz: got %d %s", status, text)
	}
	m.expectNothing(1500 * time.Millisecond) // after 500 ms systemd would have ended the daemon

	files.resume()
	m.expect("STATUS=1 pipeline")
	m.expect("WATCHDOG=1")
	d.awaitAnswer("/readyz", http.StatusOK, `{"ready":true}`+"\n")
	if n := strings.Count(d.stderr.String(), "msg=\"no progress"); n != 1 {
		t.Errorf("%d messages about it, want 1", n)
	}
	got, err := os.ReadFile(d.path("out"))
	if lines := strings.Split(string(got), "\n"); err != nil || len(lines) != 3 || !strings.HasPrefix(lines[1], "wcscoll[") {
		t.Errorf("got %q, %v", got, err)
	}
}

func (m *serviceManager) expectNothing(within time.Duration) {
	m.t.Helper()
	m.conn.SetReadDeadline(time.Now().Add(within))
	b := make([]byte, 4096)
	if n, err := m.conn.Read(b); err == nil {
		m.t.Errorf("got %q, want nothing", b[:n])
	}
}
