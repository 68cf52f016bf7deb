package daemon

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/symfilter/symfilter/internal/testenv"
)

// metrics returns the values of /metrics by series, such as a{b=c}. The value of a histogram is its
// count.
func metrics(t *testing.T, d *Daemon) map[string]float64 {
	t.Helper()
	w := adminAnswer(t, d, "GET", "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d: %v", w.Code, err)
	}
	all := make(map[string]float64)
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			key := strings.TrimPrefix(name, "symfilter_")
			if labels != nil {
				key += "{" + strings.Join(labels, ",") + "}"
			}
			all[key] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// A moving is a running daemon, in which a test causes events that change metrics.
type moving struct {
	*Daemon
	t      *testing.T
	dir    string
	conf   string
	short  string   // folder for sockets: their paths have at most 107 bytes
	in     net.Conn // standard input
	stdout *os.File // reading end of standard output
	server *httptest.Server
}

func (m *moving) say(lines ...string) {
	if _, err := m.in.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		m.t.Error(err)
	}
}

func (m *moving) write(name, text string) {
	f, err := os.OpenFile(filepath.Join(m.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Error(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		m.t.Error(err)
	}
}

func (m *moving) dial(network, address string) net.Conn {
	c, err := net.Dial(network, address)
	if err != nil {
		m.t.Error(err)
		c, _ = net.Pipe()
	}
	return c
}

// Modules for the logs of these tests. Only the module in known has a debug file.
const (
	known   = "{{{reset}}}\n{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n{{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}"
	unknown = "{{{reset}}}\n{{{module:0:b.so:elf:bbbbbbbbbbbbbbbb}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0}}}"
)

const (
	movingHead = "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, build_id_directories: [../../filter/testdata/debug]}\n"
	movingIn   = "{stdin: true}, patience: {local: 1m, servers: 1m}"
	movingFile = movingHead + "pipelines: {app: {input: " + movingIn + ", output: {file: DIR/out.log}}}\n"
	movingLog  = movingHead + "state: DIR/state\npipelines:\n  app: {input: {files: [DIR/*.in]}, output: {file: DIR/out.log}}\n"
	fromServer = "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, debuginfod_urls: [SERVER]}\n" +
		"pipelines: {app: {input: {stdin: true}, patience: {servers: 1m}, output: {file: DIR/out.log}}}\n"
)

// Each event must change the listed metrics to the given values.
func TestEachMetricMoves(t *testing.T) {
	debug, err := os.ReadFile("../../filter/testdata/debug/.build-id/a0/a1a2a3a4a5a6a7.debug")
	if err != nil {
		t.Fatal(err)
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "a0a1a2a3a4a5a6a7/debuginfo"):
			w.Write(debug)
		case strings.Contains(r.URL.Path, "cc"):
			w.WriteHeader(http.StatusForbidden)
		default:
			http.NotFound(w, r)
		}
	}
	lines := func(lines ...string) func(m *moving) { return func(m *moving) { m.say(lines...) } }
	for _, tt := range []struct {
		name   string
		config string
		move   func(m *moving)
		// lines of the form SERIES BEFORE AFTER; the value after > is any larger value
		want string
	}{
		{"lines are read and written", movingFile, lines("one", "two"), "input_lines_total{input=app} 0 2\ninput_bytes_total{input=app} 0 8\noutput_bytes_total{output=app} 0 8\noutput_blocked_seconds_total{output=app} 0 >"},
		{"frames are resolved", movingFile, lines(known, "{{{bt:0:0x50017b:ra}}}", "{{{bt:1:0x50017b:ra}}}", "{{{bt:2:0x50018d:pc}}}", "{{{pc:0x50017b:ra}}}", "{{{data:0x5011dc}}}"),
			`elements_total{result=resolved,tag=bt} 0 2
elements_total{result=symbol_only,tag=bt} 0 1
elements_total{result=resolved,tag=pc} 0 1
elements_total{result=resolved,tag=data} 0 1
contexts 0 1
modules{state=answering} 0 1
lookup_duration_seconds 0 3
cache_requests_total{result=miss} 0 3
memory_bytes{of=parsed} 0 >
memory_bytes{of=frames} 0 >`},
		{"a frame comes again", movingFile, lines(known, "{{{bt:0:0x50017b:ra}}}", "{{{reset}}}", known, "{{{bt:0:0x50017b:ra}}}"), "cache_requests_total{result=hit} 0 1"},
		{"a raw frame is resolved", movingFile, lines("    #0 0x50017b  (/bin/a.out+0x40017b) (BuildId: a0a1a2a3a4a5a6a7)", "end", "end"), "elements_total{result=resolved,tag=raw} 0 1"},
		{"an address has no symbol", movingFile, lines(known, "{{{bt:0:0x500fff:pc}}}"), "elements_total{result=no_symbol,tag=bt} 0 1"},
		{"an address has no module", movingFile, lines("{{{bt:0:0x50017b:pc}}}"), "elements_total{result=no_module,tag=bt} 0 1"},
		{"a module has no file", movingFile, lines(unknown, "{{{bt:0:0x500100:pc}}}"), "elements_total{result=no_file,tag=bt} 0 1\nmodules{state=missing} 0 1"},
		{"a server sends a file", fromServer, lines(known, "{{{bt:0:0x50017b:ra}}}"),
			fmt.Sprintf("elements_total{result=resolved,tag=bt} 0 1\ndebuginfod_requests_total{outcome=found,server=SERVER} 0 1\ndebuginfod_received_bytes_total{server=SERVER} 0 %d", len(debug))},
		{"a server has no file", fromServer, lines(unknown, "{{{bt:0:0x500100:pc}}}"), "elements_total{result=no_file,tag=bt} 0 1\ndebuginfod_requests_total{outcome=not_there,server=SERVER} 0 >"},
		{"a server refuses", fromServer, lines(strings.ReplaceAll(unknown, "bbbb", "cccc"), "{{{bt:0:0x500100:pc}}}"), "elements_total{result=no_file,tag=bt} 0 1\ndebuginfod_requests_total{outcome=failed,server=SERVER} 0 >"},
		{"a line does not wait for a server", strings.ReplaceAll(fromServer, "1m", "0s"), lines(known, "{{{bt:0:0x50017b:ra}}}"), "elements_total{result=pending,tag=bt} 0 1"},
		{"a flood of keys comes in one stream", strings.Replace(movingFile, "{stdin: true}", "{stdin: true, key: '^(\\d+)'}", 1) + "limits: {contexts: 100}\n",
			func(m *moving) {
				for n := range 1000 {
					m.say(fmt.Sprintf("%d {{{reset}}}", n))
				}
			}, "contexts_evicted_total{reason=limit} 0 910\ncontexts 0 91"},
		{"a file is followed", movingLog, func(m *moving) { m.write("a.in", "one\n") }, "input_lines_total{input=app} 0 1"},
		{"a line has no end yet", movingLog, func(m *moving) { m.write("a.in", "one\ntwo") }, "input_lag_bytes{input=app} 0 3"},
		{"a file is cut before its line has an end", movingLog, func(m *moving) {
			m.write("a.in", "one\n"+strings.Repeat("x", 5000))
			m.await("input_lag_bytes{input=app}", 5000)
			testenv.Until(m.t, "the unfinished line was seen", m.sawUnfinished)
			if err := os.Truncate(filepath.Join(m.dir, "a.in"), 0); err != nil {
				m.t.Error(err)
			}
			m.write("a.in", "new\n")
		}, "input_lost_bytes_total{input=app} 0 5000\ninput_losses_total{input=app} 0 1"},
		{"a file goes while nobody follows it", movingLog, func(m *moving) {
			m.write("a.in", "one\n")
			m.await("output_bytes_total{output=app}", 4)
			m.reload(strings.Replace(m.conf, "*.in", "*.none", 1))
			if err := os.Remove(filepath.Join(m.dir, "a.in")); err != nil {
				m.t.Error(err)
			}
			m.write("a.in", "other\n")
			m.reload(m.conf)
		}, "input_losses_total{input=app} 0 1\ninput_lost_bytes_total{input=app} 0 0"},
		{"checkpoints cannot be written", movingLog, func(m *moving) {
			m.write("a.in", "one\n")
			m.await("output_bytes_total{output=app}", 4)
			if err := os.RemoveAll(filepath.Join(m.dir, "state")); err != nil {
				m.t.Error(err)
			}
			for i := 0; m.t.Context().Err() == nil; i++ { // until the file has to be rewritten
				m.write(fmt.Sprintf("%d.in", i%100), "one\n")
				time.Sleep(time.Millisecond)
			}
		}, "checkpoint_age_seconds 0 >\ncheckpoint_errors_total 0 >"},
		{"a request is open", strings.NewReplacer("{stdin: true}", "{http: 'unix:SHORT/web', path: /v1/filter}", "{file: DIR/out.log}", "{peer: true}").Replace(movingFile), func(m *moving) {
			c := m.dial("unix", filepath.Join(m.short, "web"))
			defer c.Close()
			fmt.Fprintf(c, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\none\n\r\n")
			<-m.t.Context().Done()
		}, "input_connections{input=app} 0 1\ninput_bytes_total{input=app} 0 4\noutput_bytes_total{output=app} 0 4"},
		{"the message of a journal is cut", strings.Replace(movingFile, "{stdin: true}", "{journal_upload: 'unix:SHORT/web'}", 1), func(m *moving) {
			c := m.dial("unix", filepath.Join(m.short, "web"))
			defer c.Close()
			entry := "__REALTIME_TIMESTAMP=1\nMESSAGE=" + strings.Repeat("x", 600<<10) + "\n\n"
			fmt.Fprintf(c, "POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/vnd.fdo.journal\r\nContent-Length: %d\r\n\r\n%s", len(entry), entry)
			<-m.t.Context().Done()
		}, "input_losses_total{input=app} 0 1\ninput_lost_bytes_total{input=app} 0 >"},
		{"a connection is open", strings.Replace(movingFile, "{stdin: true}", "{listen: 'unix:SHORT/s'}", 1), func(m *moving) {
			c := m.dial("unix", filepath.Join(m.short, "s"))
			defer c.Close()
			<-m.t.Context().Done()
		}, "input_connections{input=app} 0 1"},
		{"no connection of a peer comes for limits.idle", strings.Replace(movingFile, "{stdin: true}", "{listen: 'tcp:127.0.0.1:0'}", 1) + "limits: {idle: 1s}\n", func(m *moving) {
			c := dialed(m.t, m.Daemon, anyPort)
			fmt.Fprintln(c, known)
			c.Close()
		}, "contexts_evicted_total{reason=idle} 0 1"},
		{"datagrams come too fast", strings.NewReplacer("{stdin: true}", "{listen: 'udp:127.0.0.1:0'}", "{file: DIR/out.log}", "{stdout: text}").Replace(movingFile), func(m *moving) {
			c := dialed(m.t, m.Daemon, anyUDP)
			defer c.Close()
			for range 20_000 { // 20 MB: the output's pipe takes 64 KiB, and the socket at most some MiB
				c.Write(bytes.Repeat([]byte("x"), 1000))
			}
			go io.Copy(io.Discard, m.stdout)
			// the next datagram has the number of dropped datagrams
			for m.t.Context().Err() == nil {
				c.Write([]byte("x"))
				time.Sleep(time.Millisecond)
			}
		}, "input_lost_datagrams_total{input=app} 0 >"},
		{"the disk is full", strings.ReplaceAll(movingFile, "DIR/out.log", "/dev/full"), lines("one"), "output_errors_total{output=app} 0 >\noutput_blocked_seconds_total{output=app} 0 >"},
		{"a dead peer is replaced by a file in another form", strings.ReplaceAll(movingFile, "file: DIR/out.log", "connect: 'unix:SHORT/peer'"), func(m *moving) {
			l, err := net.Listen("unix", filepath.Join(m.short, "peer"))
			if err != nil {
				m.t.Error(err)
				return
			}
			m.say("one")
			if c, err := l.Accept(); err == nil {
				m.await("output_bytes_total{output=app}", 4)
				l.Close()
				c.Close()
			}
			m.await("output_errors_total{output=app}", more(0))
			m.reload(strings.Replace(m.conf, "connect: 'unix:"+m.short+"/peer'", "format: json, file: "+m.dir+"/out.log", 1))
		}, "output_lost_bytes_total{output=app} 0 4"},
		{"the output blocks", strings.ReplaceAll(movingFile, "file: DIR/out.log", "stdout: text"), lines(strings.Repeat("x\n", 100<<10)), "output_blocked_seconds_total{output=app} 0 >"},
		{"a reload fails", movingFile, func(m *moving) { m.reload(strings.Replace(m.conf, "out.log", "none/out.log", 1)) }, "config_last_reload_successful 1 0"},
		{"a reload after it does not", movingFile, func(m *moving) {
			m.reload(strings.Replace(m.conf, "out.log", "none/out.log", 1))
			m.reload(m.conf)
		}, "config_last_reload_success_timestamp_seconds LOADED >\nconfig_last_reload_successful 1 1"},
		{"the memory limit is configured", strings.Replace(movingFile, "{no_default", "{max_memory: 64MiB, no_default", 1),
			func(m *moving) { m.reload(strings.Replace(m.conf, "64MiB", "128MiB", 1)) }, "memory_limit_bytes 67108864 134217728"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var err error
			m := &moving{t: t, dir: t.TempDir(), server: httptest.NewServer(http.HandlerFunc(serve))}
			t.Cleanup(m.server.Close)
			if m.short, err = os.MkdirTemp("", "moving"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(m.short) })
			m.conf = strings.NewReplacer("DIR", m.dir, "SHORT", m.short, "SERVER", m.server.URL).Replace(tt.config)
			in, out := net.Pipe()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			m.in, m.stdout = out, read
			m.Daemon, _ = started(t, configuration(t, m.dir, m.conf), Options{Stdin: in, Stdout: write, Version: "v1"})
			done := make(chan struct{})
			t.Cleanup(func() { // runs before the daemon ends
				out.Close()
				read.Close()
				write.Close()
				<-done
			})
			before := metrics(t, m.Daemon)
			wants := strings.NewReplacer("SERVER", m.server.URL, "LOADED", fmt.Sprint(before["config_last_reload_success_timestamp_seconds"])).Replace(tt.want)
			go func() {
				defer close(done)
				tt.move(m)
			}()
			for want := range strings.Lines(wants) {
				f := strings.Fields(want)
				if from := wanted(t, f[1], 0); before[f[0]] != from {
					t.Errorf("%s is %v before, want %v", f[0], before[f[0]], from)
				}
				m.await(f[0], wanted(t, f[2], before[f[0]]))
			}
			if after := metrics(t, m.Daemon); !cmp.Equal(names(before), names(after)) {
				t.Errorf("the series change (-before +after)\n%s", cmp.Diff(names(before), names(after)))
			}
		})
	}
}

// A more is a value that a series must exceed.
type more float64

// wanted parses the value that a series must reach. The text > matches any value larger than
// before.
func wanted(t *testing.T, text string, before float64) any {
	t.Helper()
	if text == ">" {
		return more(before)
	}
	var v float64
	if _, err := fmt.Sscan(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// await waits until a series matches a value.
func (m *moving) await(series string, want any) {
	m.t.Helper()
	var got float64
	for range 2000 {
		var known bool
		if got, known = metrics(m.t, m.Daemon)[series]; !known {
			m.t.Errorf("there is no %s", series)
			return
		}
		switch want := want.(type) {
		case more:
			if got > float64(want) {
				return
			}
		case int:
			if got == float64(want) {
				return
			}
		case float64:
			if got == want {
				return
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	m.t.Errorf("%s stays at %v, want %v %[3]T", series, got, want)
}

// reload reloads the configuration like SIGHUP.
func (m *moving) reload(text string) {
	m.Refresh(func() (*Config, error) { return Parse([]byte(text)) })
}

// sawUnfinished reports whether the follower has read the unfinished line. The metric input_lag
// does not show this: it is computed from the file's size.
func (m *moving) sawUnfinished() bool {
	t := &m.house.measures.tallies
	t.mu.Lock()
	defer t.mu.Unlock()
	for f := range t.followers {
		return f.Stats().ReadBytes == 4
	}
	return false
}

func names(all map[string]float64) []string { return slices.Sorted(maps.Keys(all)) }

// Dashboards and alerts of users depend on these names.
func TestMetricsHaveTheseSeries(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, debuginfod_urls: ["http://127.0.0.1:9"]}
pipelines:
  app: {input: {files: [DIR/*.in]}, output: {file: DIR/out.log}}
  web: {input: {http: "127.0.0.1:0", path: /v1/filter}, output: {peer: true}}
`), Options{Version: "v1.2.3"})
	var got bytes.Buffer
	for _, name := range names(metrics(t, d)) {
		name, labels, _ := strings.Cut(name, "{")
		var keys []string
		for l := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), ",") {
			key, _, _ := strings.Cut(l, "=")
			keys = append(keys, key)
		}
		line := strings.TrimSpace(name+" "+strings.Join(keys, ",")) + "\n"
		if !bytes.HasSuffix(got.Bytes(), []byte("\n"+line)) && got.String() != line {
			got.WriteString(line)
		}
	}
	const want = `build_info goversion,version
cache_requests_total result
checkpoint_age_seconds
checkpoint_errors_total
config_last_reload_success_timestamp_seconds
config_last_reload_successful
contexts
contexts_evicted_total reason
debuginfod_received_bytes_total server
debuginfod_requests_total outcome,server
elements_total result,tag
input_bytes_total input
input_connections input
input_lag_bytes input
input_lines_total input
input_losses_total input
input_lost_bytes_total input
lookup_duration_seconds
memory_bytes of
memory_limit_bytes
modules state
output_blocked_seconds_total output
output_bytes_total output
output_errors_total output
output_lost_bytes_total output
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestSeriesOfServersAreThoseOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	const text = "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache, debuginfod_urls: ['http://user:password@127.0.0.1:9/a', 'http://127.0.0.1:9/b']}\npipelines: {app: {input: {stdin: true}, output: {file: DIR/out.log}}}\n"
	d, _ := started(t, configuration(t, dir, text), Options{Stdin: blocked(t)})
	servers := func() (all []string) {
		for name := range metrics(t, d) {
			if server, ok := strings.CutPrefix(name, "debuginfod_received_bytes_total{server="); ok {
				all = append(all, strings.TrimSuffix(server, "}"))
			}
		}
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff([]string{"http://127.0.0.1:9/a", "http://127.0.0.1:9/b"}, servers()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if err := d.Reload(configuration(t, dir, strings.Replace(text, "/b'", "/c'", 1))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"http://127.0.0.1:9/a", "http://127.0.0.1:9/c"}, servers()); diff != "" {
		t.Errorf("after a reload (-want +got)\n%s", diff)
	}
}
