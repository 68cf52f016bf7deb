//go:build linux

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// debuginfod serves the debug files of the repository.
func debuginfod(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/buildid/"), "/debuginfo")
		if !ok || len(id) < 3 || strings.ContainsAny(id, "/.") {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, filepath.Join(checkout, "testdata", "debug", ".build-id", id[:2], id[2:]+".debug"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A balancer gives each request to the next gateway in turn.
type balancer struct {
	mu       sync.Mutex
	gateways []string
	turn     int
	given    map[string]int
}

func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.turn++
	to := b.gateways[b.turn%len(b.gateways)]
	b.given[to]++
	b.mu.Unlock()
	(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: to}) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				w.WriteHeader(http.StatusServiceUnavailable) // the sender tries again
			}
		},
	}).ServeHTTP(w, r)
}

func (b *balancer) set(gateways ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gateways = gateways
}

// An edge locates frames. Gateways behind a round-robin balancer name the frames by debug files
// from a server. Gateways are added and killed in mid-stream, but no process may lose a name.
func TestGatewaysComeAndGo(t *testing.T) {
	const streams = 60
	dir := t.TempDir()
	server := debuginfod(t)
	lines := linesOf(t, "testdata/crash.log")
	var outs []string
	gateway := func() (string, *collector) {
		address, out := testenv.FreeAddress(t), filepath.Join(dir, fmt.Sprintf("out-%d.json", len(outs)))
		outs = append(outs, out)
		config, err := os.ReadFile(filepath.Join(checkout, "collector", "dist", "gateway.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Replace(string(config), "    path: ${env:OUT}\n", "    path: ${env:OUT}\n    flush_interval: 50ms\n", 1)
		return address, startCollector(t, text, "LISTEN="+address, "DEBUGINFOD="+server, "CACHE="+filepath.Join(dir, fmt.Sprint("cache-", len(outs))), "OUT="+out)
	}
	a, first := gateway()
	b, second := gateway()
	round := &balancer{given: make(map[string]int)}
	round.set(a, b)
	proxy := httptest.NewServer(round)
	defer proxy.Close()
	config, err := os.ReadFile(filepath.Join(checkout, "collector", "dist", "edge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	each := func(lines []string, first bool) {
		for i := range streams {
			text := lines
			if first {
				text = append([]string{fmt.Sprint("process ", i)}, lines...)
			}
			appendTo(t, filepath.Join(dir, "logs", fmt.Sprintf("%d.log", i)), text...)
		}
	}
	named := func() (n int) {
		for _, r := range recordsIn(t, outs...) {
			if strings.Contains(r.body, "ledger.cc:27:16 (libledger.so") {
				n++
			}
		}
		return n
	}
	each(lines[4:34], true)
	edge := startCollector(t, string(config), "LOGS="+filepath.Join(dir, "logs", "*.log"), "STATE="+filepath.Join(dir, "state"), "GATEWAY="+proxy.URL)
	eventually(t, "two gateways have named the first frames", func() bool { return named() >= streams }, edge.log)
	c, _ := gateway()
	round.set(a, b, c)
	each(lines[33:34], false)
	eventually(t, "three gateways have named the next frames", func() bool { return named() >= 2*streams }, edge.log)
	// two gateways are killed while records are on their way, and the edge sends these records
	// again
	each(lines[33:34], false)
	first.kill()
	second.kill()
	each(lines[33:34], false)
	round.set(c)
	per := func() map[string]int {
		all := make(map[string]int)
		for _, r := range recordsIn(t, outs...) {
			if strings.Contains(r.body, "ledger.cc:27:16 (libledger.so") {
				all[r.file]++
			}
		}
		return all
	}
	// at least once: a record whose acknowledgement was lost with its gateway may come twice
	eventually(t, "the last gateway has named the last frames", func() bool {
		all := per()
		for _, n := range all {
			if n < 4 {
				return false
			}
		}
		return len(all) == streams
	}, edge.log)
	for _, r := range recordsIn(t, outs...) {
		if strings.Contains(r.body, "0x00007ffff7fbd917 (libledger.so+") || strings.Contains(r.body, "no module") {
			t.Errorf("%s has lost a name: %s", r.file, r.body)
		}
	}
	for _, g := range []string{a, b, c} {
		if round.given[g] == 0 {
			t.Errorf("a gateway got nothing: %v", round.given)
		}
	}
}

// Each configuration of the distribution must be valid for its Collector.
func TestExamplesAreValid(t *testing.T) {
	dir := t.TempDir()
	dist := filepath.Join(checkout, "collector", "dist")
	k8s, err := os.ReadFile(filepath.Join(dist, "k8s.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, config, ok := strings.Cut(string(k8s), "  agent.yaml: |\n")
	config, _, end := strings.Cut(config, "---\n")
	if !ok || !end {
		t.Fatal("k8s.yaml has no agent.yaml")
	}
	inner := filepath.Join(dir, "k8s.yaml")
	if err := os.WriteFile(inner, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"LOGS=/var/log/*.log", "STATE=" + dir, "DEBUGINFOD=http://127.0.0.1:8002", "CACHE=" + dir, "BACKEND=127.0.0.1:4317", "GATEWAY=http://127.0.0.1:4318", "LISTEN=127.0.0.1:4318", "POD_IP=127.0.0.1", "OUT=" + filepath.Join(dir, "out")}
	for _, file := range []string{filepath.Join(dist, "agent.yaml"), filepath.Join(dist, "edge.yaml"), filepath.Join(dist, "gateway.yaml"), inner} {
		if out, err := validate(file, env); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(file), err, out)
		}
	}
	profiles := filepath.Join(dist, "profiles.yaml")
	if out, err := validate(profiles, env, gateOfProfiles); err != nil {
		t.Errorf("profiles.yaml: %v\n%s", err, out)
	}
	if out, err := validate(profiles, env); err == nil || !strings.Contains(out, "service.profilesSupport") {
		t.Errorf("profiles.yaml needs no feature gate any more: %v\n%s", err, out)
	}
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte(strings.Replace(config, "      symfilter:\n", "      symfilter:\n        mode: guess\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := validate(bad, env); err == nil || !strings.Contains(out, "mode") {
		t.Errorf("a wrong configuration is accepted: %v\n%s", err, out)
	}
}

// gateOfProfiles lets a Collector run pipelines of profiles.
const gateOfProfiles = "--feature-gates=+service.profilesSupport"

// validate runs the Collector's own check of a configuration, and returns its output.
func validate(file string, env []string, flags ...string) (string, error) {
	cmd := exec.Command(otelcol, append([]string{"validate", "--config", file}, flags...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	return string(out), err
}
