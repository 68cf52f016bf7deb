//go:build linux

package integration

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// promtool returns the path of Prometheus' checker of metrics and rules, fetched by fetch-promtool.
func promtool(t *testing.T) string {
	t.Helper()
	testenv.OnlyLong(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, ".cache", "symfilter-promtool", "promtool")
	need(t, path)
	return path
}

// Prometheus' linter must accept the metrics of a running daemon.
func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	tool := promtool(t)
	d := startDaemon(t, `
state: DIR/state
symbols: {debuginfod_urls: ["http://127.0.0.1:9"], cache_directory: DIR/cache}
pipelines:
  app: {input: {files: ["DIR/*.log"]}, output: {file: DIR/out}}
  web: {input: {http: "unix:DIR/web", path: /v1/filter}, output: {peer: true}}
`)
	d.ready()
	status, text := d.get("/metrics")
	if status != http.StatusOK || !strings.Contains(text, "symfilter_build_info{") {
		t.Fatalf("got %d %s", status, text)
	}
	check := exec.Command(tool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// Each alert of the examples must fire in its test. No alert may fire for a working daemon.
func TestAlertsOfTheExamplesFire(t *testing.T) {
	tool := promtool(t)
	for _, args := range [][]string{{"check", "rules", "--lint-fatal", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(tool, args...)
		cmd.Dir = "../examples/daemon"
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
