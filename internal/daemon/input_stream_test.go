package daemon

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	quietSymbols = "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\n"
	// frame is the output for the frame in crash, if only the modules and maps in crash are known.
	frame = "    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\n"
)

// crashContext is the part of crash with the modules and maps. crashFrames is the rest.
var crashContext, crashFrames = func() (string, string) {
	context, frames, _ := strings.Cut(crash, "{{{bt")
	return context, "{{{bt" + frames
}()

// socketOf returns the local address of the socket that d has opened for address.
func socketOf(t *testing.T, d *Daemon, address string) net.Addr {
	t.Helper()
	p := d.house.ports
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[address] == nil {
		t.Fatalf("%s is not open", address)
	}
	return localAddress(p.open[address].raw)
}

// dialed connects to a listener of the daemon.
func dialed(t *testing.T, d *Daemon, address string) net.Conn {
	t.Helper()
	a := socketOf(t, d, address)
	c, err := net.Dial(a.Network(), a.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(20 * time.Second))
	return c
}

const anyPort = "tcp:127.0.0.1:0"

func TestConnectionsAreFiltered(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, input, send, want string }{
		{"lines", "{listen: LISTEN}", crash, "before\n" + frame + "after\n"},
		{"a last line without an end", "{listen: LISTEN}", "one\ntwo", "one\ntwo\n"},
		{"octets", "{listen: LISTEN, framing: octets}", "9 <13>a\nb\nc8 <13>next", "<13>a\nb\nc\n<13>next\n"},
		{"auto", "{listen: LISTEN, framing: auto}", "6 <13>a\n7 <13>b\n\n", "<13>a\n<13>b\n\n"},
		{"not unpacked", "{listen: LISTEN}", "\x1f\x8b\x08\x00 no bomb\n", "\x1f\x8b\x08\x00 no bomb\n"},
	} {
		for _, listen := range []string{anyPort, "unix:" + filepath.Join(dir, "s")} {
			t.Run(tt.name+" by "+listen[:4], func(t *testing.T) {
				out := filepath.Join(t.TempDir(), "out.log")
				text := quietSymbols + "pipelines:\n  app: {input: " + strings.Replace(tt.input, "LISTEN", `"`+listen+`"`, 1) +
					", filter: {module_lines: none}, output: {file: " + out + "}}\n"
				d, stop := started(t, configuration(t, dir, text), Options{})
				c := dialed(t, d, listen)
				io.WriteString(c, tt.send)
				c.Close()
				await(t, out, tt.want)
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A peer that has closed its sending side must still get all its lines.
func TestThePeerIsAnswered(t *testing.T) {
	d, _ := started(t, configuration(t, t.TempDir(), quietSymbols+`
pipelines:
  app: {input: {listen: "tcp:127.0.0.1:0"}, filter: {module_lines: none}, output: {peer: true}}
`), Options{})
	c := dialed(t, d, anyPort)
	io.WriteString(c, crash+"no end")
	c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(c)
	if want := "before\n" + frame + "after\nno end\n"; string(got) != want || err != nil {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

// At its end, the daemon must write all lines that it has read, even an unfinished last line.
func TestWhatWasReadIsWrittenAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	d, stop := started(t, configuration(t, dir, quietSymbols+`
pipelines:
  app: {input: {listen: "tcp:127.0.0.1:0"}, output: {file: DIR/out.log}}
`), Options{})
	c := dialed(t, d, anyPort)
	io.WriteString(c, "one\ntwo\nthr")
	await(t, filepath.Join(dir, "out.log"), "one\ntwo\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
	await(t, filepath.Join(dir, "out.log"), "one\ntwo\nthr\n")
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// Reloads change the output, then the input, then make the peer the output, and then a file again.
// The connection must keep its context over each reload, and an unfinished line over the first two.
func TestConnectionsLiveOverReloads(t *testing.T) {
	dir := t.TempDir()
	conf := func(input, output string) *Config {
		return configuration(t, dir, quietSymbols+"pipelines:\n  app: {input: {listen: \"tcp:127.0.0.1:0\""+input+
			"}, filter: {module_lines: none}, output: {"+output+"}}\n")
	}
	out := func(name string) string { return filepath.Join(dir, name) }
	d, stop := started(t, conf("", "file: DIR/1.log"), Options{})
	c := dialed(t, d, anyPort)
	io.WriteString(c, crashContext)
	await(t, out("1.log"), "before\n")
	half, rest := crashFrames[:10], crashFrames[10:]
	io.WriteString(c, "read\n"+half)
	await(t, out("1.log"), "before\nread\n")
	reload := func(c *Config) {
		t.Helper()
		if err := d.Reload(c); err != nil {
			t.Fatal(err)
		}
	}
	reload(conf("", "file: DIR/2.log"))
	io.WriteString(c, rest)
	await(t, out("2.log"), frame+"after\n")

	io.WriteString(c, "read\n"+half)
	await(t, out("2.log"), frame+"after\nread\n")
	reload(conf(", framing: auto", "file: DIR/3.log"))
	io.WriteString(c, rest)
	await(t, out("3.log"), frame+"after\n")

	reload(conf(", framing: auto", "peer: true"))
	io.WriteString(c, crashFrames)
	got := make([]byte, len(frame+"after\n"))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != frame+"after\n" {
		t.Errorf("the peer got %q, %v", got, err)
	}
	reload(conf(", framing: auto", "file: DIR/4.log"))
	io.WriteString(c, crashFrames)
	await(t, out("4.log"), frame+"after\n")
	if n := d.house.webs.room.open(); n != 1 {
		t.Errorf("%d connections are counted, want 1", n)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := d.house.webs.room.open(); n != 0 {
		t.Errorf("%d connections are counted after the end", n)
	}
}

func TestAPeerThatDoesNotReadStopsItselfOnly(t *testing.T) {
	dir := t.TempDir()
	text := quietSymbols + `
pipelines:
  app: {input: {listen: "tcp:127.0.0.1:0"}, filter: {module_lines: none}, output: {peer: true}}
`
	d, stop := started(t, configuration(t, dir, text), Options{})
	deaf := dialed(t, d, anyPort)
	deaf.(*net.TCPConn).SetReadBuffer(4096)
	lines := []byte(strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000))
	deaf.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
	sent := 0
	for {
		n, err := deaf.Write(lines)
		if sent += n; err != nil {
			break
		}
		if sent > 256<<20 {
			t.Fatal("256 MiB were read from a peer that reads no answers")
		}
	}
	echo := func() {
		t.Helper()
		c := dialed(t, d, anyPort)
		io.WriteString(c, "hear\n")
		got := make([]byte, 5)
		if _, err := io.ReadFull(c, got); err != nil || string(got) != "hear\n" {
			t.Errorf("got %q, %v", got, err)
		}
		c.Close()
	}
	echo()
	begin := time.Now()
	if err := d.Reload(configuration(t, dir, strings.ReplaceAll(text, "none}, output", "short}, output"))); err != nil {
		t.Error(err)
	}
	echo()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the end took %v", took)
	}
}

func TestTLSOfConnections(t *testing.T) {
	dir := t.TempDir()
	conf, pool := certificate(t, dir, "device")
	text := quietSymbols + fmt.Sprintf(`
pipelines:
  app: {input: {listen: "tcp:0.0.0.0:0", tls: {certificate: %q, key: %[2]q, client_ca: %[1]q}}, output: {file: DIR/out.log}}
  other: {input: {listen: "tcp:127.0.0.1:0"}, output: {file: DIR/other.log}}
`, conf.Certificate, conf.Key)
	d, _ := started(t, configuration(t, dir, text), Options{})
	address := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: socketOf(t, d, "tcp:0.0.0.0:0").(*net.TCPAddr).Port}
	own, err := tls.LoadX509KeyPair(conf.Certificate, conf.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		conf *tls.Config
		ok   bool
	}{
		{"with a certificate", &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{own}}, true},
		{"without one", &tls.Config{RootCAs: pool, ServerName: "localhost"}, false},
		{"TLS 1.1", &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false},
	} {
		c, err := tls.Dial("tcp", address.String(), tt.conf)
		if err == nil {
			c.SetDeadline(time.Now().Add(20 * time.Second))
			io.WriteString(c, tt.name+"\n")
			c.CloseWrite()
			if _, err = c.Read(make([]byte, 1)); err == io.EOF {
				err = nil
			}
			c.Close()
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: got %v", tt.name, err)
		}
	}
	plain, err := net.Dial("tcp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	plain.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(plain, "plain text\n")
	if _, err := io.Copy(io.Discard, plain); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("plain text: %v", err)
	}
	await(t, filepath.Join(dir, "out.log"), "with a certificate\n")
	c := dialed(t, d, anyPort)
	io.WriteString(c, "untouched\n")
	await(t, filepath.Join(dir, "other.log"), "untouched\n")
}

// The daemon must not send a TLS session ticket. If a peer closes without reading it, the
// connection is reset, and the peer's last lines are lost.
func TestTLSPeersThatReadNothingLoseNoLine(t *testing.T) {
	dir := t.TempDir()
	conf, pool := certificate(t, dir, "device")
	text := quietSymbols + fmt.Sprintf(`
pipelines:
  app: {input: {listen: "tcp:127.0.0.1:0", tls: {certificate: %q, key: %q}}, output: {file: DIR/out.log}}
`, conf.Certificate, conf.Key)
	d, _ := started(t, configuration(t, dir, text), Options{})
	tickets := tls.NewLRUClientSessionCache(1)
	c, err := tls.Dial("tcp", socketOf(t, d, anyPort).String(), &tls.Config{
		RootCAs: pool, ServerName: "localhost", ClientSessionCache: tickets,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "line\n")
	await(t, filepath.Join(dir, "out.log"), "line\n")
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
	if _, came := tickets.Get("localhost"); came {
		t.Error("a session ticket came")
	}
}

func TestPeersOfUnixSocketsAreUsers(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, want := peerName(s), fmt.Sprint(os.Getuid()); got != want && got != "local" {
		t.Errorf("got %s, want %s", got, want)
	}
}
