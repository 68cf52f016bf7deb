package daemon

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A ficklePeer reads some lines of each connection, and then resets the connection.
type ficklePeer struct {
	each  int           // lines read from a connection; 0: all
	lines chan string   // received lines, without line ends
	begun chan struct{} // has an element for each connection
}

func (f *ficklePeer) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		f.begun <- struct{}{}
		r := bufio.NewReader(c)
		// lines that the buffer holds count as received: the output may have forgotten them
		for n := 0; f.each == 0 || n < f.each || holdsLine(r); n++ {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			f.lines <- strings.TrimSuffix(line, "\n")
		}
		if t, ok := c.(*net.TCPConn); ok {
			t.SetLinger(0)
		}
		c.Close()
	}
}

func holdsLine(r *bufio.Reader) bool {
	b, _ := r.Peek(r.Buffered())
	return bytes.IndexByte(b, '\n') >= 0
}

// tail sends the lines of a growing file to f.lines.
func (f *ficklePeer) tail(t *testing.T, path string) {
	file, err := os.Open(path)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	var line []byte
	for b := make([]byte, 1<<16); t.Context().Err() == nil; {
		n, err := file.Read(b)
		for _, c := range b[:n] {
			if line = append(line, c); c == '\n' {
				f.lines <- string(line[:len(line)-1])
				line = line[:0]
			}
		}
		if err == io.EOF {
			time.Sleep(time.Millisecond)
		}
	}
}

func newFicklePeer(each int) *ficklePeer {
	return &ficklePeer{each: each, lines: make(chan string, 1<<20), begun: make(chan struct{}, 1<<10)}
}

func openedConnection(t *testing.T, c Output) *connectOutput {
	t.Helper()
	o, err := newConnectOutput(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.close() })
	return o
}

// expect waits for n numbered lines, each at least once: a line may be repeated on another
// connection.
func (f *ficklePeer) expect(t *testing.T, n int) {
	t.Helper()
	late := time.After(time.Minute)
	for next := 0; next < n; {
		select {
		case line := <-f.lines:
			got := -1
			if _, err := fmt.Sscanf(line, "line %d.", &got); err != nil || got > next || line != numbered(got) {
				t.Fatalf("got %q after line %d", line, next-1)
			}
			next = max(next, got+1)
		case <-late:
			t.Fatalf("line %d has not come", next)
		}
	}
}

func numbered(n int) string { return fmt.Sprintf("line %d.%s", n, strings.Repeat("x", n%100)) }

// At first nobody listens at the peer's address; later the peer resets its connections. The output
// must still deliver all lines. On a unix socket, it must send the last lines again even if no
// other write follows. Over TCP this is impossible: the system reports acknowledged bytes, which
// the peer may not have read.
func TestConnectionsSendAgainWhatAPeerMayNotHave(t *testing.T) {
	const lines = 20000
	path := filepath.Join(t.TempDir(), "socket")
	peer := newFicklePeer(6000)
	o := openedConnection(t, Output{Connect: "unix:" + path})
	from := new(session)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var b []byte
		for n := range lines {
			b = append(append(b, numbered(n)...), '\n')
			if len(b) > 4000 || n == lines-1 {
				put(t, o, from, string(b))
				b = b[:0]
			}
		}
	}()
	testenv.Until(t, "the peer is away", func() bool {
		failed, err := o.attempts()
		return failed > 0 && err != nil
	})
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go peer.serve(l)
	peer.expect(t, lines)
	<-done
	if len(peer.begun) < 2 {
		t.Error("one connection was enough: nothing was sent again")
	}
}

func TestUnreadBytesOfConnectionsAreKnown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := openedConnection(t, Output{Connect: "unix:" + path})
	put(t, o, new(session), "a line\n")
	if n, ok := o.unread(); n < 7 || !ok {
		t.Errorf("%d bytes are unread, %v", n, ok)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	if n, ok := o.unread(); n != 0 || !ok {
		t.Errorf("after they are read, %d bytes are unread, %v", n, ok)
	}
}

func TestConnectionsByTLS(t *testing.T) {
	serve := func(authority string) (address, file string, peer *ficklePeer) {
		files, _ := certificate(t, t.TempDir(), authority)
		pair, err := tls.LoadX509KeyPair(files.Certificate, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		peer = newFicklePeer(0)
		go peer.serve(l)
		return "localhost:" + strings.TrimPrefix(l.Addr().String(), "127.0.0.1:"), files.Certificate, peer
	}
	address, good, peer := serve("good")
	o := openedConnection(t, Output{Connect: "tcp:" + address, TLS: &TLS{ClientCA: good}})
	put(t, o, new(session), numbered(0)+"\n")
	peer.expect(t, 1)

	address, _, _ = serve("other")
	refused := openedConnection(t, Output{Connect: "tcp:" + address, TLS: &TLS{ClientCA: good}})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if n, err := refused.write(ctx, new(session), []byte("secret\n")); n != 0 || err == nil {
		t.Errorf("a peer with another certificate gets %d bytes, %v", n, err)
	}
	if _, err := newConnectOutput(Output{Connect: "tcp:" + address, TLS: &TLS{ClientCA: filepath.Join(t.TempDir(), "none.pem")}}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file of authorities that does not exist is taken")
	}
}

func TestReloadsToAnotherPeerLoseNoLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, err := net.Listen("unix", filepath.Join(dir, "first"))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	var lines strings.Builder
	for n := range 100 {
		lines.WriteString(numbered(n) + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := quietSymbols + "pipelines:\n  all: {input: {files: [DIR/in]}, output: {connect: 'unix:DIR/first'}}\n"
	d, _ := started(t, configuration(t, dir, text), Options{})
	c, err := first.Accept()
	if err != nil {
		t.Fatal(err)
	}
	awaitSeries(t, d, "output_bytes_total{output=all}")
	first.Close()
	c.Close() // before the peer has read anything
	awaitSeries(t, d, "output_errors_total{output=all}")
	second, err := net.Listen("unix", filepath.Join(dir, "second"))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	peer := newFicklePeer(0)
	go peer.serve(second)
	if err := d.Reload(configuration(t, dir, strings.Replace(text, "first", "second", 1))); err != nil {
		t.Fatal(err)
	}
	peer.expect(t, 100)
}

// After a reload to another output, undelivered lines must come once and before later lines, even
// if a second reload follows.
func TestReloadsPassOnWhatADeadPeerIsOwed(t *testing.T) {
	const lines = 6000
	for name, reloads := range map[string][]string{
		"to a file":                            {"file: DIR/out"},
		"to another peer":                      {"connect: 'unix:DIR/second'"},
		"to a peer that is away and to a file": {"connect: 'unix:DIR/none'", "file: DIR/out"},
		"to a full disk and to another peer":   {"file: /dev/full", "connect: 'unix:DIR/second'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "owed") // a socket's path has at most 107 bytes
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			first, err := net.Listen("unix", filepath.Join(dir, "first"))
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			in, out := net.Pipe()
			conf := func(output string) *Config {
				return configuration(t, dir, quietSymbols+"pipelines:\n  all: {input: {stdin: true}, output: {"+output+"}}\n")
			}
			d, _ := started(t, conf("connect: 'unix:DIR/first'"), Options{Stdin: in})
			written := make(chan struct{})
			defer func() {
				out.Close()
				<-written
			}()
			go func() {
				defer close(written)
				var b []byte
				for n := range lines { // more than the system buffers, so that the first output gets a part of a line
					if b = append(b, numbered(n)+"\n"...); n%1000 == 999 {
						out.Write(b)
						b = b[:0]
					}
				}
			}()
			c, err := first.Accept()
			if err != nil {
				t.Fatal(err)
			}
			writes := &d.view.Load().pipelines[0].counts.writes
			testenv.Until(t, "a write to the peer is stuck", func() bool {
				_, stalled, _ := writes.state(time.Now())
				return stalled >= 50*time.Millisecond
			})
			first.Close()
			c.Close() // before the peer has read anything
			awaitSeries(t, d, "output_errors_total{output=all}")
			second, err := net.Listen("unix", filepath.Join(dir, "second"))
			if err != nil {
				t.Fatal(err)
			}
			defer second.Close()
			peer := newFicklePeer(0)
			go peer.serve(second)
			for _, output := range reloads {
				if err := d.Reload(conf(output)); err != nil {
					t.Fatal(err)
				}
			}
			<-written
			if last := reloads[len(reloads)-1]; strings.HasPrefix(last, "file") {
				go peer.tail(t, filepath.Join(dir, "out"))
			}
			for n := range lines {
				if line := <-peer.lines; line != numbered(n) {
					t.Fatalf("got %q for line %d", line, n)
				}
			}
		})
	}
}
