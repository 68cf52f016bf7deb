//go:build linux

package integration

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A serviceManager receives a service's messages as systemd does.
type serviceManager struct {
	t    *testing.T
	conn *net.UnixConn
	env  []string // environment of the service
}

// newServiceManager returns a service manager; it has a watchdog unless the interval is 0.
func newServiceManager(t *testing.T, watchdog time.Duration) *serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "manager")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	m := &serviceManager{t, conn, []string{"NOTIFY_SOCKET=" + path}}
	if watchdog > 0 {
		m.env = append(m.env, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds()))
	}
	return m
}

// expect waits for a message that the pattern matches completely, and returns the messages before
// it.
func (m *serviceManager) expect(pattern string) (others []string) {
	m.t.Helper()
	m.conn.SetReadDeadline(time.Now().Add(time.Minute))
	re := regexp.MustCompile(`^(?:` + pattern + `)$`)
	b := make([]byte, 4096)
	for {
		n, err := m.conn.Read(b)
		if err != nil {
			m.t.Fatalf("no %s, but %q: %v", pattern, others, err)
		}
		if re.Match(b[:n]) {
			return others
		}
		others = append(others, string(b[:n]))
	}
}

// want fails the test if a message does not match the pattern completely.
func want(t *testing.T, when string, messages []string, pattern string) {
	t.Helper()
	for _, m := range messages {
		if !regexp.MustCompile(`^(?:` + pattern + `)$`).MatchString(m) {
			t.Errorf("%s: got %q, want %s", when, m, pattern)
		}
	}
}

// exit waits for the daemon to end and fails the test if its status is not 0.
func (d *runningDaemon) exit() {
	d.t.Helper()
	select {
	case <-d.exited:
		if d.err != nil {
			d.t.Errorf("symfilterd ends with %v", d.err)
		}
	case <-time.After(time.Minute):
		d.t.Fatal("symfilterd does not end")
	}
}

const oneFile = `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  app: {input: {files: ["DIR/*.log"]}, output: {file: DIR/out}}
`

// A service with Type=notify-reload and WatchdogSec= must report its start, a reload, a failed
// reload, the next reload, and its end.
func TestTheServiceManagerIsToldTheLifeOfTheDaemon(t *testing.T) {
	m := newServiceManager(t, 200*time.Millisecond)
	d := startDaemon(t, oneFile, m.env...)
	if before := m.expect("READY=1\nSTATUS=1 pipeline"); len(before) > 0 {
		t.Errorf("before READY=1 came %q", before)
	}
	const alive = "WATCHDOG=1|STATUS=1 pipeline"
	for range 3 {
		want(t, "while it runs", m.expect("WATCHDOG=1"), alive)
	}
	d.configure(strings.Replace(oneFile, "pipelines:", "pipelines:\n  web: {input: {http: 'unix:DIR/web', path: /v1/filter}, output: {peer: true}}", 1))
	d.signal(syscall.SIGHUP)
	want(t, "before the reload", m.expect("RELOADING=1\nMONOTONIC_USEC=[0-9]+\nSTATUS=reading the configuration"), alive)
	// On a busy machine a report of the status may come between the reload and READY.
	want(t, "during the reload", m.expect("READY=1\nSTATUS=2 pipelines"), "WATCHDOG=1|STATUS=2 pipelines")

	d.configure(strings.Replace(oneFile, "input:", "imput:", 1))
	d.signal(syscall.SIGHUP)
	m.expect("(?s)RELOADING=1\n.*")
	m.expect("READY=1\nSTATUS=2 pipelines; the last reload has failed: .*imput.*")
	if status, text := d.get("/readyz"); status != http.StatusOK || !strings.Contains(text, `"part":"configuration"`) || !strings.Contains(text, "imput") {
		t.Errorf("/readyz after a reload that failed: got %d %s", status, text)
	}
	d.configure(oneFile)
	d.signal(syscall.SIGHUP)
	m.expect("READY=1\nSTATUS=1 pipeline")
	d.ready()

	if err := os.WriteFile(d.path("a.log"), []byte("a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got := []byte(nil); string(got) != "a line\n"; got, _ = os.ReadFile(d.path("out")) {
		m.expect("WATCHDOG=1")
	}
	d.signal(syscall.SIGTERM)
	m.expect("STOPPING=1\nSTATUS=1 pipeline; stopping")
	d.exit()
}

// An output that accepts no lines may delay the end of the daemon by at most 5 seconds. Meanwhile
// the daemon must ping the watchdog, and ask the service manager for more time.
func TestABlockedOutputDoesNotLetTheWatchdogEndTheDaemon(t *testing.T) {
	t.Parallel()
	m := newServiceManager(t, 100*time.Millisecond)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.log"), []byte(strings.Repeat("a line\n", 100<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t, strings.NewReplacer("DIR/*.log", dir+"/*.log", "DIR/out", "/dev/full").Replace(oneFile), m.env...)
	m.expect("(?s)READY=1\n.*")
	want(t, "before it is told", m.expect("STATUS=1 pipeline; output of app: failing: write /dev/full: no space left on device"), "WATCHDOG=1|STATUS=1 pipeline")
	for range 3 {
		m.expect("WATCHDOG=1")
	}
	began := time.Now()
	d.signal(syscall.SIGTERM)
	m.expect("(?s)STOPPING=1\n.*")
	m.expect("EXTEND_TIMEOUT_USEC=[0-9]+")
	m.expect("WATCHDOG=1")
	go func() { // systemd continues to read
		for b := make([]byte, 4096); ; {
			if _, err := m.conn.Read(b); err != nil {
				return
			}
		}
	}()
	<-d.exited
	if took := time.Since(began); took > 20*time.Second { // 5 s on an idle machine
		t.Errorf("the end took %v", took)
	}
}

// If standard error is the journal's stream, log lines must have the journal's priorities.
// Otherwise they must have times.
func TestTheLogHasThePrioritiesOfTheJournal(t *testing.T) {
	for _, tt := range []struct{ name, format, journal, want string }{
		{"elsewhere", "auto", "0:0", `(?m)^time=\S+ level=ERROR msg="the configuration was not reloaded`},
		{"the journal", "auto", "", `(?m)^<3>the configuration was not reloaded; the previous one stays in use error=`},
		{"JSON for the journal", "json", "", `(?m)^<3>\{"time":"[^"]+","level":"ERROR","msg":"the configuration was not reloaded`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file, err := os.Create(filepath.Join(dir, "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			info, err := file.Stat()
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); tt.journal == "" {
				tt.journal = fmt.Sprintf("%d:%d", st.Dev, st.Ino)
			}
			m := newServiceManager(t, 0)
			path := filepath.Join(dir, "c.yaml")
			text := "log: {format: " + tt.format + "}\n" + strings.ReplaceAll(oneFile, "DIR", dir)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(daemonCommand(t), "--config", path)
			cmd.Env = append(append(os.Environ(), m.env...), "JOURNAL_STREAM="+tt.journal)
			cmd.Stderr = file
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			m.expect("(?s)READY=1\n.*")
			os.WriteFile(path, []byte("pipelines: 1"), 0o600)
			cmd.Process.Signal(syscall.SIGHUP)
			m.expect("(?s)READY=1\n.*failed.*")
			cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(file.Name())
			if err != nil || !regexp.MustCompile(tt.want).Match(got) {
				t.Errorf("got %q, want %s", got, tt.want)
			}
		})
	}
}
