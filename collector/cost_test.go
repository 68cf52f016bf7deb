package collector

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/symfilter/symfilter/collector/internal/metadata"
)

// startBare starts a processor without the Collector's wrapper, which counts and traces each batch.
func startBare(t testing.TB, c *Config) *logsProcessor {
	t.Helper()
	p := newLogsProcessor(nopSettings(), c, consumertest.NewNop(), &factory{all: make(map[*Config]*shared)})
	startUntilEnd(t, p.start, p.shutdown)
	return p
}

// startUntilEnd starts a processor, which is shut down at the end of the test.
func startUntilEnd(t testing.TB, start func(context.Context, component.Host) error, shutdown func(context.Context) error) {
	t.Helper()
	if err := start(context.Background(), componenttest.NewNopHost()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// nopSettings returns the settings of a processor in a Collector without telemetry.
func nopSettings() processor.Settings { return processortest.NewNopSettings(metadata.Type) }

// do filters a batch, in place.
func (p *logsProcessor) do(ld plog.Logs) { p.processLogs(context.Background(), ld) }

// recordLines returns a plain line, a frame, and a line of a raw trace with a build ID.
func recordLines(t testing.TB) map[string]string {
	all := linesOf(t, "crash.log")
	return map[string]string{
		"plain": all[0],
		"frame": all[slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, "{{{bt:0") })],
		"raw":   "    #1 0x7ffff7fbd917  (/opt/libledger.so+0x1917) (BuildId: eecd138796b4297ca7ee7bb08854e1173fee4bff)",
	}
}

// A record without a frame must allocate nothing. A record with a frame that was seen before may
// allocate its new text, and the value that holds the text.
func TestAllocationsOfARecord(t *testing.T) {
	const n = 1000
	most := map[string]float64{"plain": 0, "frame": 2, "raw": 2}
	for name, line := range recordLines(t) {
		p := startBare(t, testConfig())
		p.do(batchOf("a", linesOf(t, "crash.log")...))
		from := batchOf("a", slices.Repeat([]string{line}, n)...)
		batches := make([]plog.Logs, 12)
		for i := range batches {
			batches[i] = plog.NewLogs()
			from.CopyTo(batches[i])
		}
		p.do(batches[0])
		p.do(batches[1])
		next := 2
		// 30 more allocations for the batch
		if got := testing.AllocsPerRun(8, func() { p.do(batches[next]); next++ }); got > most[name]*n+30 {
			t.Errorf("%s: %.0f allocations for %d records, want at most %.0f a record", name, got, n, most[name])
		}
	}
}

// 10,000 idle processes whose logs had a frame may take at most 60 MiB.
func TestMemoryOfIdleContexts(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's memory is counted, too")
	}
	const n, most = 10_000, 60 << 20
	lines := linesOf(t, "crash.log")
	p := startBare(t, testConfig())
	p.do(batchOf("first", lines...))
	before := heap()
	for i := range n {
		p.do(batchOf(fmt.Sprint("a process with a name of some length, ", i), lines[4:35]...))
	}
	got := heap() - before
	t.Logf("%d bytes for %d contexts, counted as %d", got, n, p.shared.contextBytes.Load())
	if counted := p.shared.contextBytes.Load(); got > most || counted > most || counted < int64(got)/4 {
		t.Errorf("%d contexts take %d bytes, and are counted as %d; want at most %d", p.shared.contexts.Load(), got, counted, most)
	}
	if got := p.shared.contexts.Load(); got < n {
		t.Errorf("%d contexts, want %d", got, n)
	}
	runtime.KeepAlive(p)
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkRecords(b *testing.B) {
	for name, line := range recordLines(b) {
		b.Run(name, func(b *testing.B) {
			p := startBare(b, testConfig())
			p.do(batchOf("a", linesOf(b, "crash.log")...))
			in := slices.Repeat([]string{line}, 1000)
			from, ld := batchOf("a", in...), plog.NewLogs()
			b.ReportAllocs()
			for i := 0; i < b.N; i += len(in) {
				b.StopTimer()
				from.CopyTo(ld)
				b.StartTimer()
				p.do(ld)
			}
		})
	}
}
