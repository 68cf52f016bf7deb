package daemon

import (
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
)

// measures are the daemon's counters. They are safe for concurrent use.
type measures struct {
	tallies
	lookups  prometheus.Histogram
	requests *prometheus.CounterVec // by server and outcome
	received *prometheus.CounterVec // bytes, by server

	reloadError atomic.Pointer[error] // error of the last reload; nil if it succeeded
	// time of the last successful load, in Unix nanoseconds
	reloaded atomic.Int64
}

// lookupBuckets are upper bounds in seconds. Short lookups search symbol tables, longer lookups
// parse line tables, and the longest lookups download files.
var lookupBuckets = []float64{10e-6, 100e-6, 1e-3, 10e-3, 100e-3, 1, 10, 60}

func newMeasures() *measures {
	return &measures{
		lookups: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "symfilter_lookup_duration_seconds",
			Help:    "Time of uncached lookups in debug files, including waits for the files.",
			Buckets: lookupBuckets,
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "symfilter_debuginfod_requests_total",
			Help: "Requests to debuginfod servers that have ended, by server and outcome.",
		}, []string{"server", "outcome"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "symfilter_debuginfod_received_bytes_total",
			Help: "Bytes of answers received from debuginfod servers, by server.",
		}, []string{"server"}),
	}
}

func (m *measures) observe(r debuginfod.Request) {
	m.requests.WithLabelValues(r.Server, string(r.Outcome)).Inc()
	m.received.WithLabelValues(r.Server).Add(float64(r.Bytes))
}

// nameServers updates the series after a change of the debuginfod client: before is the old client,
// now the new one. It adds series for the servers of now, and removes the series of servers that
// only before has. So the configuration bounds the number of series.
func (m *measures) nameServers(before, now *debuginfod.Client) {
	stay := make(map[string]bool)
	if now != nil {
		for _, s := range now.Servers() {
			stay[s.URL] = true
			m.received.WithLabelValues(s.URL)
			for _, o := range []debuginfod.Outcome{debuginfod.Found, debuginfod.NotThere, debuginfod.Failed, debuginfod.Canceled} {
				m.requests.WithLabelValues(s.URL, string(o))
			}
		}
	}
	if before == nil {
		return
	}
	for _, s := range before.Servers() {
		if !stay[s.URL] {
			m.requests.DeletePartialMatch(prometheus.Labels{"server": s.URL})
			m.received.DeleteLabelValues(s.URL)
		}
	}
}

func (d *Daemon) registry() *prometheus.Registry {
	r := prometheus.NewRegistry()
	m := d.house.measures
	r.MustRegister(m.lookups, m.requests, m.received, &collector{d, newSeriesList()})
	return r
}

// A series is a metric whose values are read at each scrape.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newSeries(kind prometheus.ValueType, name, help string, labels ...string) series {
	return series{prometheus.NewDesc("symfilter_"+name, help, labels, nil), kind}
}

type seriesList struct {
	buildInfo                                                       series
	inputLines, inputBytes, inputLost, inputLag, inputConnections   series
	inputLosses, inputLostDatagrams                                 series
	outputBytes, outputErrors, outputBlocked, outputLost            series
	elements, contexts, evicted, modules, cache                     series
	memory, memoryLimit                                             series
	checkpointAge, checkpointErrors, reloadSuccessful, reloadedTime series
}

func newSeriesList() *seriesList {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	return &seriesList{
		buildInfo: newSeries(gauge, "build_info", "The value is 1; the labels are the versions of symfilterd and of Go.", "version", "goversion"),

		inputLines:         newSeries(counter, "input_lines_total", "Lines read, by pipeline.", "input"),
		inputBytes:         newSeries(counter, "input_bytes_total", "Bytes read, by pipeline.", "input"),
		inputLost:          newSeries(counter, "input_lost_bytes_total", "Bytes that were lost before they were read, if their number is known, by pipeline.", "input"),
		inputLosses:        newSeries(counter, "input_losses_total", "How often input was lost before it was read, including losses of unknown size, by pipeline.", "input"),
		inputLostDatagrams: newSeries(counter, "input_lost_datagrams_total", "Datagrams that the kernel dropped because they arrived too fast, by pipeline; their size is unknown.", "input"),
		inputLag:           newSeries(gauge, "input_lag_bytes", "Bytes of followed files that were not read yet, by pipeline.", "input"),
		inputConnections:   newSeries(gauge, "input_connections", "Open connections, by pipeline; an HTTP connection counts only while a request is unanswered.", "input"),

		outputBytes:   newSeries(counter, "output_bytes_total", "Bytes written, by pipeline.", "output"),
		outputErrors:  newSeries(counter, "output_errors_total", "Failed writes, by pipeline.", "output"),
		outputBlocked: newSeries(counter, "output_blocked_seconds_total", "Time that lines waited for the output, by pipeline.", "output"),
		outputLost:    newSeries(counter, "output_lost_bytes_total", "Bytes that a peer had not received when a reload replaced it, and that the new output could not accept, by pipeline.", "output"),

		elements: newSeries(counter, "elements_total", "Addresses in logs, by the tag of their element (raw: a frame without markup) and by result.", "tag", "result"),
		contexts: newSeries(gauge, "contexts", "Processes and streams whose modules and maps are remembered."),
		evicted:  newSeries(counter, "contexts_evicted_total", "Contexts that were dropped, by reason.", "reason"),
		modules:  newSeries(gauge, "modules", "Modules that were looked up, by the state of their debug files.", "state"),
		cache:    newSeries(counter, "cache_requests_total", "Lookups in the cache of rendered frames, by result.", "result"),

		memory:      newSeries(gauge, "memory_bytes", "Memory of debug files and rendered frames, by use.", "of"),
		memoryLimit: newSeries(gauge, "memory_limit_bytes", "Memory that debug files and rendered frames may take together."),

		checkpointAge:    newSeries(gauge, "checkpoint_age_seconds", "Age of the oldest output that no checkpoint records yet, for followed files."),
		checkpointErrors: newSeries(counter, "checkpoint_errors_total", "Failed attempts to write a checkpoint."),
		reloadSuccessful: newSeries(gauge, "config_last_reload_successful", "Whether the last reload of the configuration was successful."),
		reloadedTime:     newSeries(gauge, "config_last_reload_success_timestamp_seconds", "Unix time of the last successful load of the configuration."),
	}
}

type collector struct {
	d *Daemon
	*seriesList
}

// Describe implements [prometheus.Collector]. It describes no metrics, since their set depends on
// the configuration.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(to chan<- prometheus.Metric) {
	m, view := c.d.house.measures, c.d.view.Load()
	send := func(s series, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(s.desc, s.kind, value, labels...)
	}
	count := func(s series, value int64, labels ...string) { send(s, float64(value), labels...) }

	count(c.buildInfo, 1, c.d.house.options.Version, runtime.Version())
	followed, now := m.followed(), time.Now()
	for _, p := range view.pipelines {
		in, n := p.stage.Load().conf.Input, &p.counts
		count(c.inputLines, n.inLines.Load(), p.name)
		count(c.inputBytes, n.inBytes.Load(), p.name)
		count(c.inputLost, n.inLost.Load(), p.name)
		count(c.inputLosses, n.inLosses.Load(), p.name)
		if strings.HasPrefix(in.Listen, "udp:") || strings.HasPrefix(in.Listen, "systemd:") {
			count(c.inputLostDatagrams, n.inLostDatagrams.Load(), p.name)
		}
		if len(in.Files) > 0 {
			count(c.inputLag, followed.lag[p.name], p.name)
		} else if !in.Stdin {
			count(c.inputConnections, n.connections.Load(), p.name)
		}
		blocked, _, _ := n.writes.state(now)
		failed, _ := p.stage.Load().attempts()
		count(c.outputBytes, n.outBytes.Load(), p.name)
		count(c.outputErrors, n.outErrors.Load()+failed, p.name)
		send(c.outputBlocked, blocked.Seconds(), p.name)
		count(c.outputLost, n.outLost.Load(), p.name)
	}
	for i := range filter.Origins {
		for k := range filter.Results {
			count(c.elements, m.outcomes[i][k].Load(), i.String(), k.String())
		}
	}
	count(c.contexts, m.contexts.Load())
	for e := range evictions {
		count(c.evicted, m.evicted[e].Load(), e.String())
	}
	c.collectSymbols(view.symbols, count)

	send(c.checkpointAge, followed.checkpointAge.Seconds())
	count(c.checkpointErrors, followed.checkpointErrors)
	successful := int64(1)
	if m.reloadError.Load() != nil {
		successful = 0
	}
	count(c.reloadSuccessful, successful)
	send(c.reloadedTime, float64(m.reloaded.Load())/float64(time.Second))
}

func (c *collector) collectSymbols(s *symbols, count func(s series, value int64, labels ...string)) {
	now, cache := s.Symbolizer.Stats(), s.Cache.Stats()
	for _, of := range []struct {
		state string
		n     int64
	}{
		{"answering", now.Answering}, {"searching", now.Searching}, {"missing", now.Missing},
		{"set_aside", now.SetAside}, {"idle", now.Idle}, {"busy", now.Busy},
	} {
		count(c.modules, of.n, of.state)
	}
	count(c.cache, cache.Hits, "hit")
	count(c.cache, cache.Misses, "miss")
	for _, of := range []struct {
		use string
		n   int64
	}{{"parsed", now.HeapBytes}, {"sections", now.MappedBytes}, {"work", now.WorkBytes}, {"frames", cache.Bytes}} {
		count(c.memory, of.n, of.use)
	}
	count(c.memoryLimit, now.Budget+cache.Budget)
}
