//go:build linux

package endtoend

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/internal/testenv"
)

// ledgerProfile returns a batch of one sample in a library whose debug file the repository has.
func ledgerProfile(service string) pprofile.Profiles {
	p := pprofile.NewProfiles()
	b := tables{p.Dictionary()}
	b.begin()
	m := b.mapping("/usr/lib/libledger.so", "eecd138796b4297ca7ee7bb08854e1173fee4bff", 0x7f0000001000, 0x7f0000002000, 0x1000)
	stack := pprofile.NewStack()
	stack.LocationIndices().Append(b.location(m, 0x7f0000001917), b.location(m, 0x7f0000001a25))
	resource := p.ResourceProfiles().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	s := resource.ScopeProfiles().AppendEmpty().Profiles().AppendEmpty().Samples().AppendEmpty()
	s.SetStackIndex(b.stack(stack))
	s.Values().Append(1)
	return p
}

// edgeOfProfiles is the configuration of a Collector that passes profiles on through a queue of
// four batches on disk. When the queue is full, senders wait.
func edgeOfProfiles(listen, state, gateway string) string {
	return "extensions:\n  file_storage:\n    directory: " + state + "\n    create_directory: true\n" +
		"receivers:\n  otlp:\n    protocols:\n      http:\n        endpoint: " + listen + "\n" +
		"exporters:\n  otlp_http:\n    endpoint: http://" + gateway + "\n    sending_queue:\n      storage: file_storage\n      queue_size: 4\n      block_on_overflow: true\n" +
		"    retry_on_failure:\n      initial_interval: 100ms\n      max_interval: 500ms\n      max_elapsed_time: 0s\n" +
		"service:\n  extensions:\n    - file_storage\n  pipelines:\n    profiles:\n      receivers:\n        - otlp\n      exporters:\n        - otlp_http\n"
}

// Gateways and an edge are killed or stopped while profiles arrive, and more profiles arrive than
// the queue of the edge holds. Each profile must arrive at least once, with its names.
func TestNoProfileIsLost(t *testing.T) {
	dir := t.TempDir()
	listen, gateway := testenv.FreeAddress(t), testenv.FreeAddress(t)
	var outs []string
	startGateway := func() *collector {
		out := filepath.Join(dir, fmt.Sprintf("out-%d.json", len(outs)))
		outs = append(outs, out)
		return startCollector(t, profilesConfig(gateway, out, filepath.Join(checkout, "testdata", "debug")))
	}
	startEdge := func() *collector {
		return startCollector(t, edgeOfProfiles(listen, filepath.Join(dir, "state"), gateway))
	}
	var sending sync.WaitGroup
	sent := 0
	begin := func(n int) { // like a client, sends each profile until it is accepted
		for range n {
			p := ledgerProfile(fmt.Sprint("service ", sent))
			sent++
			sending.Go(func() {
				for end := time.Now().Add(2 * time.Minute); !send(t, listen, p) && time.Now().Before(end); {
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
	}
	arrived := func() (n int) {
		services := make(map[string]bool)
		for _, p := range profilesIn(t, outs...) {
			for _, r := range p.ResourceProfiles().All() {
				service, _ := r.Resource().Attributes().Get("service.name")
				services[service.Str()] = true
			}
		}
		return len(services)
	}
	all := func() bool { return arrived() == sent }
	g, edge := startGateway(), startEdge()
	begin(10)
	eventually(t, "the first profiles have come", all, edge.log)

	begin(10)
	g.kill()
	begin(10)
	edge.kill()
	edge = startEdge()
	g = startGateway()
	eventually(t, "profiles sent to killed Collectors have come", all, edge.log)

	begin(10)
	g.stop()
	begin(10)
	startGateway()
	// stop the edge after the start of the gateway: senders that wait for room in the queue delay
	// the stop
	edge.stop()
	edge = startEdge()
	eventually(t, "profiles sent to stopped Collectors have come", all, edge.log)
	sending.Wait()
	for _, p := range profilesIn(t, outs...) {
		var calls []string
		for _, f := range p.Dictionary().FunctionTable().All() {
			calls = append(calls, p.Dictionary().StringTable().At(int(f.NameStrindex())))
		}
		for _, want := range []string{"ledger::Book::total(unsigned int) const", "ledger::Book::close()"} {
			if !strings.Contains(strings.Join(calls, "\n"), want) {
				t.Errorf("a profile lacks %s: %q", want, calls)
			}
		}
	}
}

// stop ends the Collector with SIGTERM, and waits until it has ended.
func (c *collector) stop() {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("a Collector that is stopped: %v\n%s", err, c.log)
	}
}
