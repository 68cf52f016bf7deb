package collector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/symfilter/symfilter/collector/internal/metadata"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/seldom"
	"github.com/symfilter/symfilter/symbolize"
)

// An eviction is the reason for dropping, or not keeping, the context of a process.
type eviction uint8

const (
	evictedIdle    eviction = iota // no record for idle_timeout
	evictedLimit                   // a limit was reached, and the process had been idle longest
	evictedRefused                 // a limit was reached, and no other process could be dropped
	evictions
)

var evictionNames = [evictions]string{"idle", "limit", "refused"}

// telemetry counts what the processors of one configuration have done, and logs their problems.
// Many goroutines may use it.
type telemetry struct {
	shared  *shared
	log     *zap.Logger
	builder *metadata.TelemetryBuilder // nil until register

	filtered, lateRecords, storageErrors atomic.Int64
	contexts, contextBytes               atomic.Int64
	evicted                              [evictions]atomic.Int64
	outcomes                             [filter.Origins][filter.Results]atomic.Int64
	locations                            [locationResults]atomic.Int64

	mu       sync.Mutex
	requests map[request]int64 // requests to debuginfod servers, by server and outcome
	received map[string]int64  // bytes, by server

	toldStorage, toldLimit, toldModule seldom.Limiter
}

type request struct{ server, outcome string }

func newTelemetry(s *shared, log *zap.Logger) *telemetry {
	return &telemetry{shared: s, log: log, requests: make(map[request]int64), received: make(map[string]int64)}
}

// register makes the instruments, which read the counts.
func (t *telemetry) register(set component.TelemetrySettings) (err error) {
	b, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return err
	}
	t.builder = b
	of := func(name, value string) metric.MeasurementOption {
		return metric.WithAttributeSet(newSet(name, value))
	}
	one := func(n *atomic.Int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(n.Load())
			return nil
		}
	}
	errs := []error{
		b.RegisterProcessorSymfilterFilteredRecordsCallback(one(&t.filtered)),
		b.RegisterProcessorSymfilterLateRecordsCallback(one(&t.lateRecords)),
		b.RegisterProcessorSymfilterStorageErrorsCallback(one(&t.storageErrors)),
		b.RegisterProcessorSymfilterContextsCallback(one(&t.contexts)),
		b.RegisterProcessorSymfilterContextBytesCallback(one(&t.contextBytes)),
		b.RegisterProcessorSymfilterContextsEvictedCallback(observeEach("reason", evictionNames[:], t.evicted[:])),
		b.RegisterProcessorSymfilterElementsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for origin := range t.outcomes {
				for result := range t.outcomes[origin] {
					o.Observe(t.outcomes[origin][result].Load(), metric.WithAttributeSet(attribute.NewSet(
						attribute.String("tag", filter.Origin(origin).String()), attribute.String("result", filter.Result(result).String()))))
				}
			}
			return nil
		}),
		b.RegisterProcessorSymfilterLocationsCallback(observeEach("result", locationResultNames[:], t.locations[:])),
		b.RegisterProcessorSymfilterDebuginfodRequestsCallback(func(_ context.Context, o metric.Int64Observer) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			for r, n := range t.requests {
				o.Observe(n, metric.WithAttributeSet(attribute.NewSet(attribute.String("server", r.server), attribute.String("outcome", r.outcome))))
			}
			return nil
		}),
		b.RegisterProcessorSymfilterDebuginfodReceivedCallback(func(_ context.Context, o metric.Int64Observer) error {
			t.mu.Lock()
			defer t.mu.Unlock()
			for server, n := range t.received {
				o.Observe(n, of("server", server))
			}
			return nil
		}),
	}
	if symbols := t.shared.symbols; symbols != nil {
		errs = append(errs,
			b.RegisterProcessorSymfilterCacheRequestsCallback(func(_ context.Context, o metric.Int64Observer) error {
				s := symbols.Cache.Stats()
				o.Observe(s.Hits, of("result", "hit"))
				o.Observe(s.Misses, of("result", "miss"))
				return nil
			}),
			b.RegisterProcessorSymfilterMemoryCallback(func(_ context.Context, o metric.Int64Observer) error {
				s := symbols.Symbolizer.Stats()
				o.Observe(s.HeapBytes, of("of", "heap"))
				o.Observe(s.MappedBytes, of("of", "mapped"))
				o.Observe(s.WorkBytes, of("of", "work"))
				o.Observe(symbols.Cache.Stats().Bytes, of("of", "rendered"))
				return nil
			}),
			b.RegisterProcessorSymfilterMemoryLimitCallback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(int64(t.shared.cfg.Symbols.MaxMemory))
				return nil
			}),
			b.RegisterProcessorSymfilterModulesCallback(func(_ context.Context, o metric.Int64Observer) error {
				observeModules(o, of, symbols.Symbolizer.Stats())
				return nil
			}),
		)
	}
	return errors.Join(errs...)
}

// observeEach returns a callback that observes each count with the attribute for its name.
func observeEach(attribute string, names []string, counts []atomic.Int64) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		for i, name := range names {
			o.Observe(counts[i].Load(), metric.WithAttributeSet(newSet(attribute, name)))
		}
		return nil
	}
}

func newSet(name, value string) attribute.Set {
	return attribute.NewSet(attribute.String(name, value))
}

func observeModules(o metric.Int64Observer, of func(name, value string) metric.MeasurementOption, s symbolize.Stats) {
	for _, state := range []struct {
		name string
		n    int64
	}{
		{"answering", s.Answering}, {"searching", s.Searching}, {"missing", s.Missing},
		{"set_aside", s.SetAside}, {"idle", s.Idle}, {"busy", s.Busy},
	} {
		o.Observe(state.n, of("state", state.name))
	}
}

func (t *telemetry) unregister() {
	if t.builder != nil {
		t.builder.Shutdown()
	}
}

// asked records the duration of a lookup by the symbolizer.
func (t *telemetry) asked(took time.Duration) {
	t.builder.ProcessorSymfilterLookupDuration.Record(context.Background(), took.Seconds())
}

// observe counts a request to a debuginfod server. The configuration lists the servers, and
// thus bounds their number.
func (t *telemetry) observe(r debuginfod.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requests[request{r.Server, string(r.Outcome)}]++
	t.received[r.Server] += r.Bytes
}

// add counts the addresses of a batch.
func (t *telemetry) add(o *filter.Outcomes) {
	for origin := range o {
		for result, n := range o[origin] {
			if n != 0 {
				t.outcomes[origin][result].Add(n)
			}
		}
	}
}

// addLocations counts the locations of a batch of profiles.
func (t *telemetry) addLocations(results *[locationResults]int64) {
	for result, n := range results {
		if n != 0 {
			t.locations[result].Add(n)
		}
	}
}

// notify logs that a debug file is not used.
func (t *telemetry) notify(message string) { t.log.Warn(message) }

// storageFailed counts a failed operation of the storage, and logs it at most once a minute.
// The batch continues: an unsaved context matters only if the Collector restarts.
func (t *telemetry) storageFailed(what string, err error) {
	t.storageErrors.Add(1)
	if n, ok := t.toldStorage.May(time.Now()); ok {
		t.log.Warn("the storage of contexts has failed: "+what, zap.Error(err), zap.Int64("times", n))
	}
}

// drop counts a process that loses its context or gets none, under the given reason. It also logs a
// reached limit, at most once a minute.
func (t *telemetry) drop(why eviction) {
	t.evicted[why].Add(1)
	if why == evictedIdle {
		return
	}
	if n, ok := t.toldLimit.May(time.Now()); ok {
		t.log.Warn("max_contexts or max_context_bytes is reached: frames of dropped processes have no module; raise the limit, or name fewer attributes in key",
			zap.Int64("contexts", t.contexts.Load()), zap.Int64("bytes", t.contextBytes.Load()), zap.Int64("times", n))
	}
}

// noModule logs frames without their modules, once for each process and at most once a minute.
func (t *telemetry) noModule(key string, frames int64) {
	if n, ok := t.toldModule.May(time.Now()); ok {
		t.log.Warn("frames have no module: records of their process went through another Collector, were lost, or came before this Collector started; "+
			"run the processor where the log is read, or route the records by its key", zap.String("key", key), zap.Int64("frames", frames), zap.Int64("processes", n))
	}
}
