//go:build linux

// Package endtoend tests the processor in a Collector with symfilter, and compares it with the
// command.
package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// otelcol and symfilter are the paths of the programs, which are built once for all tests. checkout
// is a link to the repository: configurations hold paths in it, and a link's path needs no quotes,
// whatever the repository's own path is.
var otelcol, symfilter, checkout string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "symfilter-collector-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	otelcol, symfilter = filepath.Join(dir, "otelcol"), filepath.Join(dir, "symfilter")
	checkout = filepath.Join(dir, "checkout")
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err == nil {
		err = os.Symlink(root, checkout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for _, build := range []struct{ in, out, pkg string }{
		{filepath.Join(root, "collector", "dist"), otelcol, "."},
		{root, symfilter, "./cmd/symfilter"},
	} {
		// two at a time: each compiler of the Collector's larger packages takes a GiB
		cmd := exec.Command("go", "build", "-p", "2", "-o", build.out, build.pkg)
		cmd.Dir = build.in
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "go build %s in %s: %v\n%s", build.pkg, build.in, err, out)
			return 1
		}
	}
	return m.Run()
}

// A collector is a running Collector.
type collector struct {
	t   *testing.T
	cmd *exec.Cmd
	log *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startCollector starts a Collector with a configuration, and waits until it is ready. Pipelines of
// profiles need a feature gate.
func startCollector(t *testing.T, config string, env ...string) *collector {
	t.Helper()
	var flags []string
	if strings.Contains(config, "    profiles:\n") {
		flags = append(flags, gateOfProfiles)
	}
	return startWith(t, config+"  telemetry:\n    metrics:\n      level: none\n", flags, env...)
}

// startWith is like startCollector, for a configuration with a section telemetry, and with flags.
func startWith(t *testing.T, config string, flags []string, env ...string) *collector {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, cmd: exec.Command(otelcol, append([]string{"--config", file}, flags...)...), log: new(syncBuffer)}
	c.cmd.Stderr, c.cmd.Stdout = c.log, c.log
	c.cmd.Env = append(os.Environ(), env...)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.kill)
	eventually(t, "the Collector is ready", func() bool { return strings.Contains(c.log.String(), "Everything is ready") }, c.log)
	return c
}

// kill ends the Collector with SIGKILL.
func (c *collector) kill() {
	if c.cmd.ProcessState == nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
	if c.t.Failed() {
		c.t.Log(c.log.String())
	}
}

// eventually polls a condition until it is true. The parameter what describes the condition.
func eventually(t *testing.T, what string, is func() bool, log fmt.Stringer) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 2 minutes: %s\n%s", what, log)
		}
	}
}

// A record is one log record that a file exporter has written.
type record struct {
	file string // log.file.path
	key  string // other attributes of the record and of its resource
	body string
}

type attributes []struct {
	Key   string
	Value struct{ StringValue string }
}

// recordsIn returns the complete records in the files of file exporters.
func recordsIn(t *testing.T, files ...string) (all []record) {
	t.Helper()
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var batch struct {
				ResourceLogs []struct {
					Resource  struct{ Attributes attributes }
					ScopeLogs []struct {
						LogRecords []struct {
							Body       struct{ StringValue string }
							Attributes attributes
						}
					}
				}
			}
			if !bytes.HasSuffix(line, []byte("\n")) {
				break
			}
			if err := json.Unmarshal(line, &batch); err != nil {
				t.Fatal(err)
			}
			for _, rl := range batch.ResourceLogs {
				for _, sl := range rl.ScopeLogs {
					for _, lr := range sl.LogRecords {
						r := record{body: lr.Body.StringValue}
						for _, a := range append(rl.Resource.Attributes, lr.Attributes...) {
							if a.Key == "log.file.path" {
								r.file = a.Value.StringValue
							} else {
								r.key += a.Key + "=" + a.Value.StringValue + " "
							}
						}
						all = append(all, r)
					}
				}
			}
		}
	}
	return all
}

// textsOf returns the bodies of the records of each file, one a line.
func textsOf(records []record) map[string]string {
	all := make(map[string]string)
	for _, r := range records {
		all[r.file] += r.body + "\n"
	}
	return all
}

// linesOf returns the lines of a log of the repository.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(checkout, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// appendTo appends lines to a file, and creates a missing file.
func appendTo(t *testing.T, file string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		t.Fatal(err)
	}
}
