//go:build linux

package endtoend

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A charted is a Collector of the Helm chart: its configuration, and its other flags.
type charted struct {
	config string
	flags  []string
}

// chartOf returns the Collectors in a file of rendered manifests, by the names of their workloads.
// The tests of collector/helm compare the manifests with the chart.
func chartOf(t *testing.T, file string) map[string]charted {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	configs, all := make(map[string]string), make(map[string]charted)
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		retrieved, err := confmap.NewRetrievedFromYAML([]byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		object, err := retrieved.AsConf()
		if err != nil {
			t.Fatal(err)
		}
		name := object.Get("metadata::name").(string)
		switch object.Get("kind") {
		case "ConfigMap":
			configs[name] = object.Get("data::collector.yaml").(string)
		case "DaemonSet", "Deployment":
			var c charted
			container := object.Get("spec::template::spec::containers").([]any)[0].(map[string]any)
			for _, arg := range container["args"].([]any) {
				if arg := arg.(string); arg != "--config=/etc/otelcol/collector.yaml" {
					c.flags = append(c.flags, arg)
				}
			}
			all[name] = c
		}
	}
	for name, c := range all {
		c.config = configs[name]
		all[name] = c
	}
	return all
}

// Each configuration of the chart must be valid for the Collector, with the flags that the chart
// sets.
func TestConfigurationsOfTheChartAreValid(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(checkout, "collector", "helm", "testdata", "*.values.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		file = strings.TrimSuffix(file, ".values.yaml") + ".yaml"
		all := chartOf(t, file)
		if len(all) == 0 {
			t.Errorf("%s has no Collector", file)
		}
		for name, c := range all {
			config := filepath.Join(t.TempDir(), name+".yaml")
			if err := os.WriteFile(config, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := validate(config, []string{"POD_IP=127.0.0.1", "TOKEN=secret"}, c.flags...); err != nil {
				t.Errorf("%s, %s: %v\n%s", filepath.Base(file), name, err, out)
			}
		}
	}
}

// startCharted starts a Collector of the chart, with free addresses of this machine in place of the
// pod's. changes are pairs of a text in the configuration, such as a path, and its replacement.
func startCharted(t *testing.T, c charted, changes ...string) *collector {
	t.Helper()
	for _, port := range []string{"13133", "4317", "4318"} {
		changes = append(changes, "[${env:POD_IP}]:"+port, testenv.FreeAddress(t))
	}
	_, metrics, err := net.SplitHostPort(testenv.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	changes = append(changes, "port: 8888", "port: "+metrics)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(c.config, changes[i]) && !strings.Contains(changes[i], "POD_IP") {
			t.Fatalf("no %s in\n%s", changes[i], c.config)
		}
	}
	return startWith(t, strings.NewReplacer(changes...).Replace(c.config), c.flags, "POD_IP=127.0.0.1")
}

// logOf appends lines to the log of a container, at the path and in the format of the kubelet. It
// returns the path.
func logOf(t *testing.T, pods, namespace, pod string, restart int, lines ...string) string {
	t.Helper()
	file := filepath.Join(pods, namespace+"_"+pod+"_00000000-0000-0000-0000-000000000001", "app", fmt.Sprintf("%d.log", restart))
	cri := make([]string, len(lines))
	for i, line := range lines {
		cri[i] = fmt.Sprintf("2026-03-01T10:00:%02d.000000000Z stdout F %s", i%60, line)
	}
	appendTo(t, file, cri...)
	return file
}

// startAgent starts the agent of the chart, and waits until it has seen the log of an existing pod.
// The agent reads only new lines of logs that exist at its start, and later logs from their
// beginning.
func startAgent(t *testing.T, c charted, pods string, changes ...string) *collector {
	t.Helper()
	logOf(t, pods, "kube-system", "before", 0, "a line from before")
	agent := startCharted(t, c, append(changes, "/var/log/pods", pods)...)
	eventually(t, "the agent has seen the first log", func() bool { return strings.Contains(agent.log.String(), "Started watching file") }, agent.log)
	return agent
}

// With the chart's defaults and an image of debug files, the agent must print the crash of a new
// pod with names. It must also do so after a restart of the container. The agent must not read its
// own log.
func TestACrashOfAPodHasItsNames(t *testing.T) {
	dir := t.TempDir()
	pods := filepath.Join(dir, "pods")
	agent := startAgent(t, chartOf(t, filepath.Join(checkout, "collector", "helm", "testdata", "default.yaml"))["symfilter-agent"], pods,
		"/var/lib/otelcol", filepath.Join(dir, "state"), "/symbols/image-0", filepath.Join(checkout, "testdata", "debug"))
	lines := linesOf(t, "testdata/crash.log")
	logOf(t, pods, "symfilter", "symfilter-agent-abcde", 0, "a line of the agent")
	for restart := range 2 {
		start := time.Now()
		file := logOf(t, pods, "shop", "cart-0", restart, append([]string{fmt.Sprint("start ", restart)}, lines...)...)
		var want []string
		for line := range strings.Lines(messagesOf(t, commandOn(t, file))) {
			if strings.Contains(line, ".cc:") {
				want = append(want, strings.TrimSuffix(line, "\n"))
			}
		}
		if len(want) < 5 {
			t.Fatalf("the command names too little: %q", want)
		}
		eventually(t, "the names of the crash are printed", func() bool {
			out := agent.log.String()
			for _, line := range want {
				if strings.Count(out, line+"\n")+strings.Count(out, line+" ") <= restart {
					return false
				}
			}
			return true
		}, agent.log)
		t.Logf("%d lines with names, %s after the first line of the log", len(want), time.Since(start).Round(time.Millisecond))
	}
	if out := agent.log.String(); strings.Contains(out, "a line of the agent") || strings.Contains(out, "a line from before") || !strings.Contains(out, "k8s.pod.name") && !strings.Contains(out, "cart-0") {
		t.Errorf("its own log is read, or the pod is not named:\n%s", out)
	}
}

// The agent of the chart must accept spans and profiles by OTLP, and add names to them.
func TestTheAgentOfTheChartNamesSpansAndProfiles(t *testing.T) {
	const id = "eecd138796b4297ca7ee7bb08854e1173fee4bff" // of libledger.so
	dir := t.TempDir()
	at := testenv.FreeAddress(t)
	agent := startCharted(t, chartOf(t, filepath.Join(checkout, "collector", "helm", "testdata", "default.yaml"))["symfilter-agent"],
		"/var/log/pods", filepath.Join(dir, "pods"), "/var/lib/otelcol", filepath.Join(dir, "state"), "/symbols/image-0", filepath.Join(checkout, "testdata", "debug"),
		"'[${env:POD_IP}]:4318'", at, "verbosity: normal", "verbosity: detailed")
	frame := "#0 0x7ffff7fbd917 (libledger.so+0x1917) (BuildId: " + id + ")"
	span := `{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708", "name": "order",
		"events": [{"name": "exception", "attributes": [{"key": "exception.stacktrace", "value": {"stringValue": "` + frame + `"}}]}]}]}]}]}`
	answer, err := http.Post("http://"+at+"/v1/traces", "application/json", strings.NewReader(span))
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("spans are answered by %s", answer.Status)
	}
	eventually(t, "the span has names", func() bool { return strings.Contains(agent.log.String(), "/src/inventory/ledger.cc:27:16") }, agent.log)
	profile := &recording{
		maps:   []perfMap{{file: "/usr/lib/libledger.so", id: id, start: 0x7ffff7fbd000, size: 0x1000, offset: 0x1000}},
		chains: [][]uint64{{0x7ffff7fbd917}},
	}
	if !send(t, at, profile.profiles("orders")) {
		t.Error("profiles are refused")
	}
	eventually(t, "the profile has names", func() bool { return strings.Contains(agent.log.String(), "_ZNK6ledger4Book5totalEj") }, agent.log)
}

// The agent of the chart locates frames, and its gateway names them. The gateway is killed while
// records are on their way, and another gateway replaces it. No record and no name may be lost.
func TestAGatewayOfTheChartIsKilled(t *testing.T) {
	const streams = 20
	dir := t.TempDir()
	pods, out := filepath.Join(dir, "pods"), filepath.Join(dir, "out.json")
	chart := chartOf(t, filepath.Join(checkout, "collector", "helm", "testdata", "gateway.yaml"))
	backendAt, gatewayAt := testenv.FreeAddress(t), testenv.FreeAddress(t)
	startCollector(t, backend(backendAt, out))
	gateway := func(n int) *collector {
		return startCharted(t, chart["symfilter-gateway"], "backend.observability.svc:4317", backendAt, "http://debuginfod.observability.svc:8002", debuginfod(t),
			"/symbols/claim", filepath.Join(checkout, "testdata", "debug"), "/var/lib/otelcol", filepath.Join(dir, fmt.Sprint("gateway-", n)), "'[${env:POD_IP}]:4317'", gatewayAt)
	}
	first := gateway(1)
	agent := startAgent(t, chart["symfilter-agent"], pods, "/var/lib/otelcol", filepath.Join(dir, "state"), "symfilter-gateway.symfilter.svc:4317", gatewayAt)
	lines := linesOf(t, "testdata/crash.log")
	each := func(lines ...string) {
		for i := range streams {
			logOf(t, pods, "shop", fmt.Sprintf("cart-%d", i), 0, append([]string{fmt.Sprint("pod ", i)}, lines...)...)
		}
	}
	named := func() map[string]int {
		all := make(map[string]int)
		for _, r := range recordsIn(t, out) {
			if strings.Contains(r.body, "ledger.cc:27:16 (libledger.so") {
				all[r.file]++
			}
		}
		return all
	}
	least := func(n int) func() bool {
		return func() bool {
			all := named()
			for _, have := range all {
				if have < n {
					return false
				}
			}
			return len(all) == streams
		}
	}
	each(lines[4:34]...)
	eventually(t, "the gateway has named the first frames", least(1), agent.log)
	each(lines[33])
	first.kill()
	each(lines[33])
	gateway(2)
	// at least once: a record whose acknowledgement was lost with the gateway may come twice
	eventually(t, "the second gateway has named the other frames", least(3), agent.log)
	for _, r := range recordsIn(t, out) {
		if strings.Contains(r.body, "0x00007ffff7fbd917 (libledger.so+") || strings.Contains(r.body, "no module") {
			t.Errorf("%s has lost a name: %s", r.file, r.body)
		}
	}
}
