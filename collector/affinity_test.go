package collector

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/symfilter/symfilter/collector/internal/metadata"
)

// Edges that do not locate frames send all records of a process to one gateway, chosen by a hash of
// the process's key. If the gateways change, some processes move to other gateways, which lack
// their modules. The metric of elements must count each frame without a module. The test has its
// own hash, since the exporter load_balancing takes minutes to compile.
func TestLostAffinityIsCounted(t *testing.T) {
	const processes = 60
	lines := linesOf(t, "crash.log")
	var tels []*componenttest.Telemetry
	var sinks []*consumertest.LogsSink
	var gateways []consumer.Logs
	for range 3 {
		tel := componenttest.NewTelemetry()
		t.Cleanup(func() { tel.Shutdown(context.Background()) })
		set := processortest.NewNopSettings(metadata.Type)
		set.TelemetrySettings = tel.NewTelemetrySettings()
		sink := new(consumertest.LogsSink)
		p, err := NewFactory().CreateLogs(context.Background(), set, testConfig(), sink)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(context.Background(), componenttest.NewNopHost()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Shutdown(context.Background()) })
		tels, sinks, gateways = append(tels, tel), append(sinks, sink), append(gateways, p)
	}
	send := func(live int, lines ...string) {
		for i := range processes {
			process := fmt.Sprint("process ", i)
			h := fnv.New32a()
			h.Write([]byte(process))
			if err := gateways[h.Sum32()%uint32(live)].ConsumeLogs(context.Background(), batchOf(process, lines...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	counts := func() (named, lost, counted int64) {
		for i := range gateways {
			text := textOf(sinks[i])
			named += int64(strings.Count(text, "ledger.cc:27:16"))
			lost += int64(strings.Count(text, "0x00007ffff7fbd917 (no module)"))
			counted += metricsOf(t, tels[i])["elements{result=no_module,tag=bt}"]
		}
		return named, lost, counted
	}
	send(2, lines[4:34]...)
	if named, lost, counted := counts(); named != processes || lost != 0 || counted != 0 {
		t.Errorf("two gateways: %d named, %d lost, %d counted", named, lost, counted)
	}
	for _, live := range []int{3, 1} {
		_, before, _ := counts()
		send(live, lines[33])
		named, lost, counted := counts()
		if lost == before || counted != lost {
			t.Errorf("%d gateways: %d frames lost their names, %d before, and %d are counted", live, lost, before, counted)
		}
		t.Logf("%d gateways: %d of %d frames were lost, %d named so far", live, lost-before, processes, named)
	}
}
