package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// A tally counts log records by message.
type tally struct {
	slog.Handler
	mu  sync.Mutex
	all map[string]int
}

func (l *tally) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level >= slog.LevelInfo {
		l.all[r.Message]++
	}
	return nil
}

func (l *tally) Enabled(context.Context, slog.Level) bool { return true }
func (l *tally) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *tally) WithGroup(string) slog.Handler            { return l }

// hostile starts a daemon with two pipelines: app, for hostile peers, and another. The function
// calm checks that the other pipeline still passes lines on.
func hostile(t *testing.T, input, limits string) (d *Daemon, log *tally, calm func()) {
	t.Helper()
	dir := t.TempDir()
	conf := configuration(t, dir, quietSymbols+limits+`
pipelines:
  app: {input: `+input+`, filter: {module_lines: none}, output: {file: DIR/app.log}}
  calm: {input: {listen: "unix:DIR/calm"}, output: {peer: true}}
`)
	log = &tally{all: make(map[string]int)}
	d, err := New(conf, Options{Log: slog.New(log)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	t.Cleanup(func() {
		begin := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("the end took %v", took)
		}
		if n := d.house.webs.room.open(); n != 0 {
			t.Errorf("%d connections are counted after the end", n)
		}
		if n := d.house.contexts.bytes; n != 0 {
			t.Errorf("%d bytes are counted after the end", n)
		}
	})
	own := dialed(t, d, "unix:"+filepath.Join(dir, "calm"))
	calm = func() {
		t.Helper()
		io.WriteString(own, "calm\n")
		got := make([]byte, 5)
		if _, err := io.ReadFull(own, got); err != nil || string(got) != "calm\n" {
			t.Fatalf("the other pipeline: got %q, %v", got, err)
		}
	}
	calm()
	t.Cleanup(func() { // runs before the cleanup registered above
		calm()
		for message, n := range log.all {
			if n > 2 {
				t.Errorf("%d times: %s", n, message)
			}
		}
	})
	return d, log, calm
}

// appLog returns the output of the pipeline app.
func appLog(t *testing.T, d *Daemon) string {
	t.Helper()
	text, err := os.ReadFile(d.conf.Pipelines["app"].Output.File)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// One peer may have three quarters of the connections. Further connections must be closed at once.
// When a connection ends, the peer must get its seat back.
func TestConnectionsBeyondTheLimitAreClosed(t *testing.T) {
	d, log, calm := hostile(t, `{listen: "tcp:127.0.0.1:0"}`, "limits: {connections: 256}")
	var open []net.Conn
	for range fuzztest.LongOr(10_000, 1000) {
		c := dialed(t, d, anyPort)
		open = append(open, c)
	}
	deadline := time.Now().Add(2 * time.Second)
	var served atomic.Int64
	var all sync.WaitGroup
	for _, c := range open {
		all.Go(func() {
			c.SetReadDeadline(deadline)
			if _, err := c.Read(make([]byte, 1)); isTimeout(err) {
				served.Add(1)
				io.WriteString(c, "served\n")
			} else {
				c.Close()
			}
		})
	}
	all.Wait()
	calm()
	if served := served.Load(); served != 192 {
		t.Errorf("%d connections are served, want 192", served)
	}
	await(t, d.conf.Pipelines["app"].Output.File, strings.Repeat("served\n", 192))
	for _, c := range open {
		c.Close()
	}
	awaitConnections(t, d, 1)
	send1 := dialed(t, d, anyPort)
	io.WriteString(send1, "again\n")
	await(t, d.conf.Pipelines["app"].Output.File, strings.Repeat("served\n", 192)+"again\n")
	if n := log.all["a connection is closed: limits.connections is reached; raise the limit, or close other connections"]; n != 1 {
		t.Errorf("the limit was logged %d times: %v", n, log.all)
	}
}

func TestEndlessLinesOfConnectionsAreCut(t *testing.T) {
	fuzztest.WithoutRace(t)
	const each, peers = 4 << 20, 16
	d, _, calm := hostile(t, `{listen: "tcp:127.0.0.1:0"}`, "limits: {line: 512KiB, context_bytes: 2MiB}")
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var all sync.WaitGroup
	for range peers {
		c := dialed(t, d, anyPort)
		all.Go(func() {
			for range each / block {
				if _, err := c.Write(bytes.Repeat([]byte("x"), block)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	calm()
	runtime.GC()
	runtime.ReadMemStats(&now)
	if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > 40<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	text := ""
	testenv.Until(t, "all lines are written", func() bool {
		text = appLog(t, d)
		return strings.Count(text, "x") >= peers*(each-block)
	})
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if len(line) > 512<<10 {
			t.Fatalf("a line has %d bytes", len(line))
		}
	}
}

func TestStrangeStreamsArePassedOn(t *testing.T) {
	d, log, calm := hostile(t, `{listen: "tcp:127.0.0.1:0", framing: octets}`, "")
	for i, text := range []string{
		"999999999999999 <13>lie-0\n", "-7 <13>lie-1\n", "x7 <13>lie-2\n", "0 <13>lie-3\n", "900000 <13>lie-4", "3 <13>lie-5\n", "\x00\x00\x00lie-6\n", "18446744073709551617 <13>lie-7\n",
	} {
		c := dialed(t, d, anyPort)
		if i%2 == 0 {
			io.WriteString(c, text)
		} else {
			for j := range text { // a byte at a time
				io.WriteString(c, text[j:j+1])
			}
		}
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	}
	reset := dialed(t, d, anyPort)
	io.WriteString(reset, "12 <13>reset-")
	reset.(*net.TCPConn).SetLinger(0)
	reset.Close()
	calm()
	awaitConnections(t, d, 1)
	text := appLog(t, d)
	for i := range 8 {
		if want := fmt.Sprintf("lie-%d\n", i); !strings.Contains(strings.ReplaceAll(text, "<13\n>", "<13>"), want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	if n := log.all["a message does not begin with its length, as framing: octets requires; the text is read as a line"]; n != 1 {
		t.Errorf("the lies were logged %d times: %v", n, log.all)
	}
}

func TestBadHandshakes(t *testing.T) {
	dir := t.TempDir()
	conf, pool := certificate(t, dir, "device")
	d, log, calm := hostile(t, fmt.Sprintf(`{listen: "tcp:127.0.0.1:0", tls: {certificate: %q, key: %q}}`, conf.Certificate, conf.Key), "limits: {connections: 64}")
	for i := range 40 {
		c := dialed(t, d, anyPort)
		switch i % 4 {
		case 0:
			io.WriteString(c, "GET / HTTP/1.1\r\n\r\n")
		case 1:
			c.Write(append([]byte{22, 3, 1, 0xff, 0xff}, bytes.Repeat([]byte{0}, 1000)...))
		case 2:
			c.(*net.TCPConn).SetLinger(0)
			c.Close()
		case 3: // sends nothing: closed after handshakeTime
			continue
		}
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	}
	calm()
	c, err := tls.Dial("tcp", socketOf(t, d, anyPort).String(), &tls.Config{RootCAs: pool, ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "good\n")
	await(t, d.conf.Pipelines["app"].Output.File, "good\n")
	// the silent connections, the current connection, and the connection of calm
	awaitConnections(t, d, 12)
	if n := log.all["a connection is closed: the TLS handshake has failed"]; n != 1 {
		t.Errorf("the handshakes were logged %d times: %v", n, log.all)
	}
}

func TestDatagramFloods(t *testing.T) {
	d, _, calm := hostile(t, `{listen: "udp:127.0.0.1:0"}`, "limits: {contexts: 100}")
	var all sync.WaitGroup
	for range 4 {
		c := dialed(t, d, anyUDP)
		all.Go(func() {
			for i := range 2000 {
				c.Write(bytes.Repeat([]byte{0, 'x', 0xff, '\n'}, i*8%16000+1))
			}
		})
	}
	all.Wait()
	calm()
	c := dialed(t, d, anyUDP)
	testenv.Until(t, "the input takes datagrams", func() bool {
		c.Write([]byte("the end\n"))
		return strings.Contains(appLog(t, d), "the end\n")
	})
}

// A parked session of a stream with six modules may take at most 5 KB.
func TestParkedSessionsAreSmall(t *testing.T) {
	fuzztest.WithoutRace(t)
	n := fuzztest.LongOr(10_000, 2000)
	d, _ := started(t, configuration(t, t.TempDir(), quietSymbols+`
limits: {contexts: 20000}
pipelines:
  app: {input: {listen: "tcp:127.0.0.1:0"}, filter: {module_lines: none}, output: {file: /dev/null}}
`), Options{})
	var text strings.Builder
	text.WriteString("{{{reset}}}\n")
	for i := range 6 {
		fmt.Fprintf(&text, "{{{module:%d:/usr/lib/x86_64-linux-gnu/libmodule-%[1]d.so.6:elf:aabbccddeeff00112233445566778899aabbccd%[1]d}}}\n", i)
		for j := range 3 {
			fmt.Fprintf(&text, "{{{mmap:%#x:0x1000:load:%d:rx:%#x}}}\n", 0x7f0000000000+uint64(i<<20+j<<12), i, j<<12)
		}
	}
	p := d.pipelines["app"]
	heap := func() int64 {
		p.memory.saving.Lock() // a save would hold all contexts a second time
		defer p.memory.saving.Unlock()
		// Ending goroutines of earlier tests and timers leave garbage in the shared heap, so the
		// test takes the minimum of several measurements. Only the second collection empties pools.
		least := int64(math.MaxInt64)
		for same := 0; same < 3; same++ {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if now := int64(m.HeapAlloc); now < least {
				least, same = now, 0
			}
		}
		return least
	}
	park := func() {
		t.Helper()
		// a session whose timer is printing kept lines cannot be parked
		testenv.Until(t, "all sessions are parked", func() bool {
			p.rest(time.Now().Add(time.Hour))
			d.house.contexts.mu.Lock()
			defer d.house.contexts.mu.Unlock()
			return d.house.contexts.awake.Len() == 0
		})
	}
	open := func(name, text string, n int) (all []*session) {
		for i := range n {
			s := p.memory.enter(fmt.Sprintf("%s.%d", name, i), nil, true)
			if _, err := s.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		return all
	}
	all := open("first", text.String()+"{{{bt:0:0x7f0000000010:pc}}}\n", awakeMost) // allocates what the daemon needs only once
	park()
	before := heap()
	all = append(all, open("next", text.String(), n)...)
	d.house.contexts.mu.Lock()
	awake := d.house.contexts.awake.Len()
	d.house.contexts.mu.Unlock()
	if most := int64(awakeMost) * 200_000; awake > awakeMost || heap()-before > most+int64(n)*5000 {
		t.Errorf("%d sessions are awake, and all take %d MB", awake, (heap()-before)/1e6)
	}
	park()
	if each := (heap() - before) / int64(n); each > 5000 {
		t.Errorf("%d bytes each, %d are counted", each, d.house.contexts.bytes/int64(n))
	}
	if context, _ := all[n].saved(); !strings.Contains(string(context), "libmodule-5.so.6") {
		t.Errorf("the context that would be saved is %s", context)
	}
	for _, s := range all {
		p.memory.leave(s)
	}
}
