package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/testenv"
)

// strange is the output for the frame in crash, if its module is unknown.
const strange = "    #0    0x0000000000001004 (no module)\n"

// send sends text on a new connection, and waits for the end of its session.
func send(t *testing.T, d *Daemon, address, text string) {
	t.Helper()
	c := dialed(t, d, address)
	io.WriteString(c, text)
	c.(interface{ CloseWrite() error }).CloseWrite()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
	awaitConnections(t, d, 0)
}

func awaitConnections(t *testing.T, d *Daemon, n int64) {
	t.Helper()
	got := int64(-1)
	if !testenv.Wait(func() bool { got = d.house.webs.room.open(); return got == n }) {
		t.Fatalf("%d connections are open, want %d", got, n)
	}
}

const devices = quietSymbols + `
state: DIR/state
pipelines:
  app: {input: {listen: "tcp:127.0.0.1:0"}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`

func TestDevicesThatConnectAgainAreResolved(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.log")
	conf := configuration(t, dir, devices)
	d, stop := started(t, conf, Options{})
	send(t, d, anyPort, crashContext)
	send(t, d, anyPort, crashFrames)
	await(t, out, "before\n"+frame+"after\n")
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	d, stop = started(t, conf, Options{})
	send(t, d, anyPort, crashFrames)
	want := "before\n" + frame + "after\n" + frame + "after\n"
	await(t, out, want)
	d.house.contexts.expire(time.Now().Add(time.Duration(conf.Limits.Idle) + time.Second))
	send(t, d, anyPort, crashFrames)
	await(t, out, want+strange+"after\n")
	if n := d.house.measures.evicted[evictedIdle].Load(); n != 1 {
		t.Errorf("%d contexts were idle, want 1", n)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

func TestContextsOfOpenConnectionsAreSaved(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, devices), Options{})
	c := dialed(t, d, anyPort)
	io.WriteString(c, crashContext)
	saved := filepath.Join(dir, "state", "app.contexts")
	var text []byte
	testenv.Until(t, "the context is saved", func() bool {
		text, _ = os.ReadFile(saved)
		return strings.Contains(string(text), "aabbccdd")
	})
	other := t.TempDir()
	if err := os.Mkdir(filepath.Join(other, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "state", "app.contexts"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	next, _ := started(t, configuration(t, other, devices), Options{})
	send(t, next, anyPort, crashFrames)
	await(t, filepath.Join(other, "out.log"), frame+"after\n")
}

// Without a key, no context may be kept for a peer with two connections at once. A later connection
// might continue the context of the wrong process, and its frames would get wrong names. With a
// key, the connections must share one context.
func TestSeveralConnectionsOfAPeer(t *testing.T) {
	keyed := strings.ReplaceAll("[1] "+strings.ReplaceAll(crashContext, "\n", "\n[1] "), "[1] \n", "")
	keyed = strings.TrimSuffix(keyed, "[1] ")
	for _, tt := range []struct{ name, key, context, frames, want string }{
		{"without a key", "", crashContext, crashFrames, strange},
		{"with a key", `, key: '^\[(\d+)\]'`, keyed, "[1] " + crashFrames, "[1] " + strings.TrimLeft(frame, " ")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			conf := configuration(t, dir, strings.Replace(devices, `:0"}`, `:0"`+tt.key+`}`, 1))
			d, _ := started(t, conf, Options{})
			first, second := dialed(t, d, anyPort), dialed(t, d, anyPort)
			awaitConnections(t, d, 2)
			io.WriteString(first, tt.context)
			io.WriteString(second, "second\n")
			testenv.Until(t, "a line of the second connection", func() bool { // both connections are open
				got, _ := os.ReadFile(filepath.Join(dir, "out.log"))
				return strings.Contains(string(got), "second\n")
			})
			first.Close()
			awaitConnections(t, d, 1)
			second.Close()
			awaitConnections(t, d, 0)
			send(t, d, anyPort, tt.frames)
			got, err := os.ReadFile(filepath.Join(dir, "out.log"))
			if err != nil || !strings.HasSuffix(strings.Join(strings.Fields(string(got)), " "), strings.Join(strings.Fields(tt.want+"after\n"), " ")) {
				t.Errorf("got %q, %v; want %q at its end", got, err, tt.want)
			}
		})
	}
}

func TestSavedContextsThatCannotBeUsed(t *testing.T) {
	for name, content := range map[string]string{
		"nothing":    ``,
		"no object":  `[]`,
		"version":    `{"v":1,"peers":[]}`,
		"no peer":    `{"v":2,"peers":[{"used":1,"context":{}}]}`,
		"no context": `{"v":2,"peers":[{"peer":"a","used":1}]}`,
		"long name":  `{"v":2,"peers":[{"peer":"` + strings.Repeat("a", maxPeerName+1) + `","used":1,"context":{}}]}`,
	} {
		d, err := New(configuration(t, t.TempDir(), strings.Replace(devices, "state: DIR/state", "", 1)), Options{Log: noLog})
		if err != nil {
			t.Fatal(err)
		}
		m := d.pipelines["app"].memory
		err = m.restore([]byte(content))
		if !errors.Is(err, checkpoint.ErrDamaged) && !errors.Is(err, checkpoint.ErrTorn) && !errors.Is(err, checkpoint.ErrVersion) {
			t.Errorf("%s: got %v", name, err)
		}
		if n := len(m.peers); n != 0 {
			t.Errorf("%s: %d peers", name, n)
		}
		d.end()
	}
}

// At the limit, contexts without a connection must be dropped first. After that, lines of a new
// stream must be filtered, but its context must not be kept.
func TestNewStreamsDropNoLiveContext(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.log")
	d, _ := started(t, configuration(t, dir, quietSymbols+`
limits: {contexts: 2}
pipelines:
  app: {input: {listen: "unix:DIR/s"}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`), Options{})
	address := "unix:" + filepath.Join(dir, "s")
	want := ""
	say := func(c net.Conn, text, added string) {
		t.Helper()
		io.WriteString(c, text)
		want += added
		await(t, out, want)
	}
	c := d.house.contexts
	kept := dialed(t, d, address)
	say(kept, crashContext, "before\n")
	kept.Close()
	awaitConnections(t, d, 0)
	c.mu.Lock()
	n := c.kept.Len()
	c.mu.Unlock()
	if n != 1 {
		t.Fatalf("%d contexts are kept, want 1", n)
	}
	one := dialed(t, d, address) // continues the kept context: the peer is the same user
	say(one, crashFrames, frame+"after\n")
	two := dialed(t, d, address)
	say(two, crashContext+crashFrames, "before\n"+frame+"after\n")
	three := dialed(t, d, address)
	say(three, "plain\n", "plain\n")
	say(three, crashContext, "before\n")
	say(three, crashFrames, strange+"after\n")
	say(one, crashFrames, frame+"after\n")
	say(two, crashFrames, frame+"after\n")
	two.Close()
	awaitConnections(t, d, 2)
	say(three, crashContext+crashFrames, "before\n"+frame+"after\n") // there is room again
	say(three, crashFrames, frame+"after\n")
	if n := d.house.measures.evicted[evictedLimit].Load(); n != 1 {
		t.Errorf("%d contexts were dropped, want 1: that of the third stream", n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n != 2 {
		t.Errorf("%d contexts are counted, want 2", c.n)
	}
}

func TestBytesOfContextsAreBounded(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out.log")
	d, stop := started(t, configuration(t, dir, quietSymbols+`
limits: {context_bytes: 64KiB}
pipelines:
  app: {input: {listen: "unix:DIR/s"}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`), Options{})
	c := dialed(t, d, "unix:"+filepath.Join(dir, "s"))
	small := dialed(t, d, "unix:"+filepath.Join(dir, "s"))
	io.WriteString(small, crashContext)
	await(t, out, "before\n")
	for i := range 1000 {
		fmt.Fprintf(c, "{{{module:%d:%s.so:elf:aabbccdd}}}\n{{{mmap:%#x:0x1000:load:%d:rx:0}}}\n", i, strings.Repeat("n", 100), 0x10000+i*0x1000, i)
	}
	io.WriteString(c, "end\n")
	await(t, out, "before\nend\n")
	io.WriteString(small, crashFrames)
	await(t, out, "before\nend\n"+frame+"after\n")
	d.house.contexts.mu.Lock()
	bytes := d.house.contexts.bytes
	d.house.contexts.mu.Unlock()
	if bytes > 64<<10 || d.house.measures.evicted[evictedLimit].Load() == 0 {
		t.Errorf("%d bytes of contexts, %d were dropped", bytes, d.house.measures.evicted[evictedLimit].Load())
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if d.house.contexts.n != 0 || d.house.contexts.bytes < 0 {
		t.Errorf("after the end %d contexts with %d bytes are counted", d.house.contexts.n, d.house.contexts.bytes)
	}
}
