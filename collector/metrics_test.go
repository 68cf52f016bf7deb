package collector

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/symfilter/symfilter/collector/internal/metadata"
)

const metricPrefix = "otelcol_processor_symfilter_"

// metricsOf returns the metrics of the processor: the value of each series, or the count of a
// histogram.
func metricsOf(t *testing.T, tel *componenttest.Telemetry) map[string]int64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := tel.Reader.Collect(context.Background(), &rm); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int64)
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			name, ok := strings.CutPrefix(m.Name, metricPrefix)
			if !ok {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					all[name+labels(point.Attributes)] = point.Value
				}
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					all[name+labels(point.Attributes)] = int64(point.Count)
				}
			}
		}
	}
	return all
}

func labels(set attribute.Set) string {
	if set.Len() == 0 {
		return ""
	}
	var all []string
	for _, kv := range set.ToSlice() {
		if kv.Key != "server" {
			all = append(all, string(kv.Key)+"="+kv.Value.AsString())
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

// The metrics must have the right values after some batches, a reached limit and a failed storage.
func TestMetrics(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	tel := componenttest.NewTelemetry()
	defer tel.Shutdown(context.Background())
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	c := storedConfig()
	c.Patience.Servers = 10 * time.Second
	c.MaxContexts = 2
	c.IdleTimeout = time.Second
	c.Symbols.DebuginfodURLs, c.Symbols.CacheDirectory = []string{server.URL}, t.TempDir()
	disk := newMemory()
	sink := new(consumertest.LogsSink)
	p, err := NewFactory().CreateLogs(context.Background(), set, c, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(context.Background(), disk); err != nil {
		t.Fatal(err)
	}
	defer p.Shutdown(context.Background())
	lines := linesOf(t, "crash.log")
	consume(t, p, batchOf("a", lines...))
	consume(t, p, batchOf("b", lines...))
	consume(t, p, batchOf("c", lines[4:32]...))
	consume(t, p, batchOf("none", lines[33]))
	disk.mu.Lock()
	disk.broken = true
	disk.mu.Unlock()
	consume(t, p, batchOf("a", "{{{reset}}}"))
	all := metricsOf(t, tel)
	for _, name := range []string{
		"cache_requests{result=hit}", "cache_requests{result=miss}", "context_bytes", "contexts", "contexts_evicted{reason=refused}",
		"debuginfod_requests{outcome=not_there}", "elements{result=resolved,tag=bt}", "elements{result=resolved,tag=data}", "elements{result=no_file,tag=bt}",
		"elements{result=no_module,tag=bt}", "filtered_records", "lookup_duration", "memory{of=heap}", "memory{of=rendered}", "memory_limit",
		"modules{state=answering}", "modules{state=missing}", "storage_errors",
	} {
		if all[name] <= 0 {
			t.Errorf("%s is %d", name, all[name])
		}
	}
	for name, want := range map[string]int64{"memory_limit": 512 << 20, "elements{result=no_module,tag=bt}": 1, "late_records": 0} {
		if all[name] != want {
			t.Errorf("%s is %d, want %d", name, all[name], want)
		}
	}
	if t.Failed() {
		t.Log(all)
	}
}

// Dropped processes, files from a server and late records must be counted.
func TestMetricsOfDroppedProcessesAndLateFiles(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/buildid/"), "/debuginfo")
		if !ok || len(id) < 3 {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, debugFiles+"/.build-id/"+id[:2]+"/"+id[2:]+".debug")
	}))
	defer server.Close()
	tel := componenttest.NewTelemetry()
	defer tel.Shutdown(context.Background())
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	c := testConfig()
	c.Patience = Patience{}
	c.EmitLate = true
	c.MaxContexts = 2
	c.Symbols.DebugFileDirectories = nil
	c.Symbols.DebuginfodURLs, c.Symbols.CacheDirectory = []string{server.URL}, t.TempDir()
	p := newLogsProcessor(set, c, new(consumertest.LogsSink), &factory{all: make(map[*Config]*shared)})
	if err := p.start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	defer p.shutdown(context.Background())
	lines := linesOf(t, "crash.log")
	for _, process := range []string{"a", "b"} {
		p.do(batchOf(process, lines...))
	}
	later := time.Now().Add(2 * liveFor)
	if s, _ := p.contexts.acquire([]byte("c"), later); s.temp {
		t.Error("c has no room")
	}
	p.contexts.expire(context.Background(), later.Add(c.IdleTimeout-liveFor))
	for all := metricsOf(t, tel); ; all = metricsOf(t, tel) { // the file arrives later
		if all["late_records"] > 0 {
			for name, want := range map[string]int64{"contexts_evicted{reason=limit}": 1, "contexts_evicted{reason=idle}": 1, "contexts_evicted{reason=refused}": 0} {
				if all[name] != want {
					t.Errorf("%s is %d, want %d", name, all[name], want)
				}
			}
			for _, name := range []string{"debuginfod_received{}", "debuginfod_requests{outcome=found}"} {
				if all[name] <= 0 {
					t.Errorf("%s is %d: %v", name, all[name], all)
				}
			}
			if kept, err := os.ReadDir(c.Symbols.CacheDirectory); err != nil || len(kept) == 0 {
				t.Errorf("cache_directory keeps nothing: %v", err)
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// metadata.yaml and the instruments must have the same metrics.
func TestMetricsHaveInstruments(t *testing.T) {
	code, err := os.ReadFile("internal/metadata/generated_telemetry.go")
	if err != nil {
		t.Fatal(err)
	}
	metrics := descriptionIn(t, ".").Telemetry.Metrics
	for name, m := range metrics {
		if !strings.Contains(string(code), "\"otelcol_"+name+"\",\n\t\tmetric.WithDescription(\""+m.Description+" [Development]\"),\n\t\tmetric.WithUnit(\""+m.Unit+"\")") {
			t.Errorf("no instrument has the name %s, its description and its unit", name)
		}
	}
	if n := strings.Count(string(code), "metric.WithDescription"); n != len(metrics) {
		t.Errorf("%d instruments, %d metrics in metadata.yaml", n, len(metrics))
	}
}
