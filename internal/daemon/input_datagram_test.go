package daemon

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

const anyUDP = "udp:127.0.0.1:0"

// A datagram with several lines must be filtered line by line. All datagrams from one IP address or
// socket must belong to one stream.
func TestDatagramsAreFiltered(t *testing.T) {
	dir := t.TempDir()
	for _, listen := range []string{anyUDP, "unixgram:" + filepath.Join(dir, "s")} {
		t.Run(listen[:4], func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.log")
			text := fmt.Sprintf(quietSymbols+"pipelines:\n  app: {input: {listen: %q}, filter: {module_lines: none}, output: {file: %q}}\n", listen, out)
			d, stop := started(t, configuration(t, dir, text), Options{})
			want := ""
			for _, tt := range []struct{ send, want string }{
				{crashContext, "before\n"},
				{strings.TrimSuffix(crashFrames, "\n"), frame + "after\n"},
				{"", ""},
				{"a\x00b", "a\x00b\n"},
				{strings.Repeat("x", 60_000), strings.Repeat("x", 60_000) + "\n"},
			} {
				dialed(t, d, listen).Write([]byte(tt.send)) // each from another port
				want += tt.want
				await(t, out, want)
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDroppedDatagramsAreCounted(t *testing.T) {
	testenv.OnlyOn(t, "linux") // only Linux reports dropped datagrams
	p := newPorts(nil)
	all, err := p.packets(anyUDP, admission{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	raw := all[0].port.raw.(*net.UDPConn)
	raw.SetReadBuffer(4096)
	c, err := net.Dial("udp", raw.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const sent = 100
	for range sent {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
	}
	buf, control := make([]byte, 2000), make([]byte, controlSize)
	received := 0
	lost := int64(0)
	for {
		raw.SetReadDeadline(time.Time{})
		if received > 0 && received+int(lost) >= sent {
			break
		}
		if received == 1 { // a datagram has the number of datagrams dropped before it
			c.Write([]byte("last"))
		}
		d, err := all[0].receive(buf, control)
		if err != nil {
			t.Fatal(err)
		}
		received++
		if lost += int64(d.lost); string(buf[:d.n]) == "last" {
			break
		}
	}
	if lost == 0 || received+int(lost) < sent {
		t.Errorf("received %d, lost %d of %d", received, lost, sent)
	}

	// drops that were counted for the previous input are not counted again
	again, err := p.packets(anyUDP, admission{})
	if err != nil {
		t.Fatal(err)
	}
	all[0].Close()
	c.Write([]byte("next"))
	if d, err := again[0].receive(buf, control); err != nil || d.lost != 0 {
		t.Errorf("the next input: lost %d, %v", d.lost, err)
	}
}

func TestForgedSendersAreBounded(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, quietSymbols+`
limits: {contexts: 20}
pipelines:
  udp: {input: {listen: "udp:127.0.0.1:0"}, filter: {module_lines: none}, output: {file: DIR/udp.log}}
  app: {input: {listen: "tcp:127.0.0.1:0"}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`), Options{})
	in := &datagrams{p: d.pipelines["udp"], senders: make(map[string]*sender)}
	for i := range 1000 {
		if err := in.give(fmt.Sprintf("192.0.2.%d", i), []byte(crashContext)); err != nil {
			t.Fatal(err)
		}
	}
	c := d.house.contexts
	c.mu.Lock()
	live, n, peers := len(in.senders), c.n, len(in.p.memory.peers)
	c.mu.Unlock()
	if live != 10 || n > 20 || peers > 20 {
		t.Errorf("%d senders, %d contexts, %d peers; want 10, and at most 20", live, n, peers)
	}
	conn := dialed(t, d, anyPort)
	io.WriteString(conn, crash)
	await(t, filepath.Join(dir, "out.log"), "before\n"+frame+"after\n")
	in.rest(time.Now().Add(time.Hour))
	if len(in.senders) != 0 {
		t.Errorf("%d senders are left", len(in.senders))
	}
}

func TestTheEndOfIdleSendersStopsNoOther(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, quietSymbols+`
pipelines:
  udp: {input: {listen: "udp:127.0.0.1:0"}, output: {file: DIR/udp.log}}
`), Options{})
	in := &datagrams{p: d.pipelines["udp"], senders: make(map[string]*sender)}
	const senders = 1000
	for i := range senders {
		if err := in.give(fmt.Sprintf("192.0.2.%d", i), []byte(crashContext)); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		in.rest(time.Now().Add(time.Hour))
	}()
	left := senders
	for left == senders {
		in.mu.Lock()
		left = len(in.senders)
		in.mu.Unlock()
	}
	if left == 0 {
		t.Error("all senders were ended at once")
	}
	<-ended
}

func TestSendersFailOneByOne(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, quietSymbols+`
pipelines:
  udp: {input: {listen: "udp:127.0.0.1:0"}, output: {file: DIR/udp.log}}
`), Options{})
	in := &datagrams{p: d.pipelines["udp"], senders: make(map[string]*sender)}
	broken := errors.New("broken")
	if err := in.give("a", []byte("first\n")); err != nil {
		t.Fatal(err)
	}
	s := in.senders["a"].session
	s.mu.Lock()
	s.err = broken
	s.mu.Unlock()
	if err := in.give("a", []byte("lost\n")); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if err := in.give("a", []byte("next\n")); err != nil {
		t.Error(err)
	}
	await(t, filepath.Join(dir, "udp.log"), "first\nnext\n")
}

// Parse does not know the type of a socket systemd:NAME, so the input itself must refuse the
// output.
func TestSendersOfDatagramsAreNotAnswered(t *testing.T) {
	c := configuration(t, t.TempDir(), quietSymbols+`
pipelines:
  udp: {input: {listen: "tcp:127.0.0.1:0"}, output: {peer: true}}
`)
	d, _ := started(t, c, Options{})
	if _, err := openDatagrams(d.pipelines["udp"], Input{Listen: anyUDP}); err == nil || !strings.Contains(err.Error(), "reads no answer") {
		t.Errorf("got %v", err)
	}
}

func TestLoggerSendsToEachSocket(t *testing.T) {
	testenv.Need(t, "logger")
	dir := t.TempDir()
	out := filepath.Join(dir, "out.log")
	for _, tt := range []struct{ name, input, address string }{
		{"octets", `{listen: "tcp:127.0.0.1:0", framing: octets}`, anyPort},
		{"lines", `{listen: "tcp:127.0.0.1:0"}`, anyPort},
		{"udp", `{listen: "udp:127.0.0.1:0"}`, anyUDP},
		{"unix", `{listen: "unix:DIR/s", framing: auto}`, "unix:" + filepath.Join(dir, "s")},
		{"unixgram", `{listen: "unixgram:DIR/g"}`, "unixgram:" + filepath.Join(dir, "g")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			os.Remove(out)
			d, stop := started(t, configuration(t, dir, quietSymbols+"pipelines:\n  app: {input: "+tt.input+
				", filter: {module_lines: none}, output: {file: DIR/out.log}}\n"), Options{})
			defer stop()
			args := []string{"--rfc3164", "--tag", "app"}
			switch at := socketOf(t, d, tt.address).(type) {
			case *net.TCPAddr:
				args = append(args, "--tcp", "--server", "127.0.0.1", "--port", fmt.Sprint(at.Port))
			case *net.UDPAddr:
				args = append(args, "--udp", "--server", "127.0.0.1", "--port", fmt.Sprint(at.Port))
			case *net.UnixAddr:
				args = append(args, "--socket", at.Name)
			}
			if tt.name == "octets" {
				args = append(args, "--octet-count")
			}
			cmd := exec.Command("logger", args...)
			cmd.Stdin = strings.NewReader("first\n" + crashContext + crashFrames)
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("logger %q: %v\n%s", args, err, text)
			}
			var got string
			testenv.Wait(func() bool {
				text, _ := os.ReadFile(out)
				got = string(text)
				return strings.Contains(got, "app: after\n")
			})
			for _, want := range []string{"app: first\n", "app: " + frame} {
				if !strings.Contains(got, want) {
					t.Errorf("got\n%swhich lacks %q", got, want)
				}
			}
		})
	}
}
