package daemon

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// raw sends a request on a new connection. It returns the status and body of each response, and
// then the word closed for the end of the connection.
func raw(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(c, request); err != nil {
		return "closed"
	}
	c.(*net.TCPConn).CloseWrite()
	var got []string
	b := bufio.NewReader(c)
	for {
		r, err := http.ReadResponse(b, nil)
		if err != nil {
			return strings.Join(append(got, "closed"), ", ")
		}
		body, err := io.ReadAll(r.Body)
		text := fmt.Sprintf("%d %q", r.StatusCode, body)
		if err != nil {
			text += " cut"
		}
		got = append(got, text)
	}
}

// Proxies and servers may disagree on the meaning of unclear requests (request smuggling). The
// server must refuse them, or read them as RFC 9112 requires. Then it must close the connection.
func TestRequestsOfUnclearMeaningAreRefused(t *testing.T) {
	_, url, dir := serving(t, peerPipeline+"  app: {input: {http: \"ADDR\", path: /app}, output: {file: DIR/out.log}}\n")
	addr := strings.TrimPrefix(url, "http://")
	const post, host, chunked = "POST /v1/filter HTTP/1.1\r\n", "Host: localhost\r\n", "Transfer-Encoding: chunked\r\n"
	const hidden = "POST /app HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nsmuggled\n"
	for _, test := range []struct{ name, request, want string }{
		{"a length and chunks: the chunks, and no other request", post + host + chunked + "Content-Length: 4\r\n\r\n0\r\n\r\n" + hidden, `200 "", closed`},
		{"two lengths", post + host + "Content-Length: 2\r\nContent-Length: 3\r\n\r\na\n\n", `400 "400 Bad Request", closed`},
		{"a list of lengths", post + host + "Content-Length: 2, 3\r\n\r\na\n\n", `400 "400 Bad Request", closed`},
		{"a negative length", post + host + "Content-Length: -1\r\n\r\n", `400 "400 Bad Request", closed`},
		{"a length with a sign", post + host + "Content-Length: +2\r\n\r\na\n", `400 "400 Bad Request", closed`},
		{"a huge length", post + host + "Content-Length: 99999999999999999999\r\n\r\n", `400 "400 Bad Request", closed`},
		{"another coding before chunks", post + host + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", `501 "Unsupported transfer encoding", closed`},
		{"chunks with a blank", post + host + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", `400 "400 Bad Request: invalid header name", closed`},
		{"chunks with a tab", post + host + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n", `200 "", closed`},
		{"chunks of HTTP/1.0", "POST /v1/filter HTTP/1.0\r\n" + chunked + "\r\n0\r\n\r\n", `411 "the request has no body; send the log as the body, with a Content-Length or chunked: curl -T FILE URL\n", closed`},
		{"a chunk that is no number", post + host + chunked + "\r\nxyz\r\n\r\n", `400 "the body ends too early, or is not valid: invalid byte in chunk length; send the request again\n", closed`},
		{"a huge chunk", post + host + chunked + "\r\nfffffffffffffffff\r\na\n", `400 "the body ends too early, or is not valid: http chunk length too large; send the request again\n", closed`},
		{"a negative chunk", post + host + chunked + "\r\n-1\r\na\n", `400 "the body ends too early, or is not valid: invalid byte in chunk length; send the request again\n", closed`},
		{"a chunk without its end", post + host + chunked + "\r\n2\r\na\nX\r\n0\r\n\r\n", `400 "the body ends too early, or is not valid: malformed chunked encoding; send the request again\n", closed`},
		{"a long extension of a chunk", post + host + chunked + "\r\n2;" + strings.Repeat("a", 20<<10) + "\r\na\n\r\n0\r\n\r\n", `400 "the body ends too early, or is not valid: header line too long; send the request again\n", closed`},
		{"a body that is cut", post + host + "Content-Length: 10\r\n\r\na\n", `200 "a\n" cut, closed`},
		{"a folded header", post + host + "A: b\r\n c\r\nContent-Length: 2\r\n\r\na\n", `200 "a\n", closed`},
		{"a header that begins folded", post + " c: d\r\n" + host + "Content-Length: 2\r\n\r\na\n", `400 "400 Bad Request", closed`},
		{"NUL in a header", post + host + "A: \x00\r\nContent-Length: 2\r\n\r\na\n", `400 "400 Bad Request", closed`},
		{"NUL in a name", post + host + "A\x00: b\r\nContent-Length: 2\r\n\r\na\n", `400 "400 Bad Request", closed`},
		{"no host", post + "Content-Length: 2\r\n\r\na\n", `400 "400 Bad Request: missing required Host header", closed`},
		{"two hosts", post + host + host + "Content-Length: 2\r\n\r\na\n", `400 "400 Bad Request", closed`},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", `404 "no pipeline has the path \"*\"; POST to /app or /v1/filter\n", closed`},
		{"a change to HTTP/2", post + host + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 2\r\n\r\na\n", `200 "a\n", closed`},
		{"a huge header", post + host + "A: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", `431 "431 Request Header Fields Too Large", closed`},
		{"many headers", post + host + strings.Repeat("A: b\r\n", 10<<10) + "\r\n", `431 "431 Request Header Fields Too Large", closed`},
		{"a huge line", "POST /" + strings.Repeat("a", 64<<10) + " HTTP/1.1\r\n" + host + "\r\n", `431 "431 Request Header Fields Too Large", closed`},
		{"a path with dots", "POST /v1/../app HTTP/1.1\r\n" + host + "Content-Length: 2\r\n\r\na\n", `404 "no pipeline has the path \"/v1/../app\"; POST to /app or /v1/filter\n", closed`},
		{"a proxy's request", "CONNECT a:1 HTTP/1.1\r\n" + host + "\r\n", `421 "\"a:1\" is not a name of this listener; to allow this name, add it to the key hosts of this listener in the configuration\n", closed`},
		{"a proxy's request to this machine", "CONNECT localhost:1 HTTP/1.1\r\n" + host + "\r\n", `404 "no pipeline has the path \"\"; POST to /app or /v1/filter\n", closed`},
		{"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", `400 "400 Bad Request", closed`},
		{"requests one after the other", strings.Repeat(post+host+"Content-Length: 2\r\n\r\na\n", 3), `200 "a\n", 200 "a\n", 200 "a\n", closed`},
		{"a request without a body, and another one", post + host + "\r\n" + hidden, `411 "the request has no body; send the log as the body, with a Content-Length or chunked: curl -T FILE URL\n", closed`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, raw(t, addr, test.request)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if got, err := os.ReadFile(filepath.Join(dir, "out.log")); len(got) > 0 || err != nil {
		t.Errorf("the other pipeline has %q, %v", got, err)
	}
}

func TestConnectionsBeyondTheLimitAreAnswered(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	started(t, configuration(t, dir, "limits: {connections: 2}\n"+webConfig(addr, peerPipeline)), Options{})
	var held []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n")
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		held = append(held, c)
	}
	const request = "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\nb\n"
	want := `429 "limits.connections is reached, or this peer has three quarters of the connections; close connections, raise the limit, or try again later\n", closed`
	for range 3 {
		if got := raw(t, addr, request); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	var idle []net.Conn
	for range 3 * refusedAtOnce {
		if c, err := net.Dial("tcp", addr); err == nil {
			idle = append(idle, c)
		}
	}
	closed := 0
	for _, c := range idle {
		c.SetReadDeadline(time.Now().Add(2 * time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err == io.EOF {
			closed++
		}
		defer c.Close()
	}
	if closed < refusedAtOnce {
		t.Errorf("%d of %d idle connections beyond the limit are closed", closed, len(idle))
	}
	for _, c := range append(held, idle...) {
		c.Close()
	}
	testenv.Until(t, "there is room after all connections have ended", func() bool {
		return raw(t, addr, request) == `200 "b\n", closed`
	})
}

func TestPeersThatStandStillStopNobodyElse(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	_, stop := started(t, configuration(t, dir, webConfig(addr, peerPipeline)), Options{})
	still, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer still.Close()
	full, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	io.WriteString(still, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n")
	io.WriteString(full, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
	full.SetWriteDeadline(time.Now().Add(time.Second))
	line := bytes.Repeat([]byte("aaaaaaaaaaaaaaa\n"), 4<<10)
	for err = nil; err == nil; { // until the answer fills the buffers of both sides
		_, err = full.Write(line)
	}
	if got := raw(t, addr, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nb\n"); got != `200 "b\n", closed` {
		t.Errorf("got %s", got)
	}
	begin := time.Now()
	if err := stop(); err != nil || time.Since(begin) > time.Minute {
		t.Errorf("the end took %v, %v", time.Since(begin), err)
	}
}

func TestHTTP2IsStreamedBothWays(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	text := webConfig(addr, "  service: {input: {http: \"ADDR\", tls: {certificate: DIR/cert.pem, key: DIR/key.pem}}, output: {peer: true}}\n")
	var d *Daemon
	for _, name := range []string{"first", "second"} {
		_, pool := certificate(t, dir, name)
		if d == nil {
			d, _ = started(t, configuration(t, dir, text), Options{})
		} else if err := d.Reload(configuration(t, dir, text)); err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: true}
		client := &http.Client{Transport: transport}
		r, w := io.Pipe()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		request, err := http.NewRequestWithContext(ctx, "POST", "https://"+addr+"/v1/filter", r)
		if err != nil {
			t.Fatal(err)
		}
		go func() { io.WriteString(w, "first\n") }()
		got, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(got.Body)
		for _, line := range []string{"first\n", "second\n"} {
			if line != "first\n" {
				io.WriteString(w, line)
			}
			if answer, err := lines.ReadString('\n'); answer != line || got.ProtoMajor != 2 {
				t.Fatalf("got %q, %v by HTTP/%d, want %q", answer, err, got.ProtoMajor, line)
			}
		}
		w.Close()
		io.Copy(io.Discard, lines)
		if got.Trailer.Get(resolvedHeader) != "0" {
			t.Errorf("got trailers %v", got.Trailer)
		}
		got.Body.Close()
		cancel()
		transport.CloseIdleConnections()
	}
	if got := raw(t, addr, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\n\r\n"); got != `400 "Client sent an HTTP request to an HTTPS server.\n", closed` {
		t.Errorf("without TLS: got %s", got)
	}
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	testenv.OnlyLong(t) // takes ten seconds
	_, url, _ := serving(t, peerPipeline)
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\n")
	for range 30 {
		io.WriteString(c, "A: b\r\n")
		c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
	t.Error("a connection without a whole header is open for 30 s")
}

func TestGoneClientsLeaveNothing(t *testing.T) {
	d, url, _ := serving(t, peerPipeline)
	for _, request := range []string{
		"POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\na\n",
		"POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n",
		"POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("a\n", 1<<20),
	} {
		c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request)
		if line, err := bufio.NewReader(c).ReadString('\n'); line != "HTTP/1.1 200 OK\r\n" {
			t.Fatalf("got %q, %v", line, err)
		}
		c.Close()
	}
	p := d.pipelines["service"]
	var sessions int
	ended := testenv.Wait(func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		sessions = len(p.sessions)
		return sessions == 0 && d.house.webs.room.open() == 0 && p.counts.connections.Load() == 0
	})
	if !ended {
		t.Errorf("%d sessions, %d connections and %d requests are left", sessions, d.house.webs.room.open(), p.counts.connections.Load())
	}
}

func TestLogsAreFilteredOnAUnixSocket(t *testing.T) {
	dir := t.TempDir()
	started(t, configuration(t, dir, webConfig("unix:DIR/http", peerPipeline)), Options{})
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(dir, "http"))
	}}
	request, err := http.NewRequest("POST", "http://symfilterd/v1/filter", strings.NewReader(crash))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plainText+resolved+counts1, answerOf(t, &http.Client{Transport: transport}, request)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestClientsNeedACertificateOfTheClientCA(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	conf, pool := certificate(t, dir, "both")
	own, err := tls.LoadX509KeyPair(conf.Certificate, conf.Key)
	if err != nil {
		t.Fatal(err)
	}
	started(t, configuration(t, dir, webConfig(addr,
		"  service: {input: {http: \"ADDR\", tls: {certificate: DIR/cert.pem, key: DIR/key.pem, client_ca: DIR/cert.pem}}, output: {peer: true}}\n")), Options{})
	for _, certificates := range [][]tls.Certificate{nil, {own}} {
		transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: certificates}}
		got, err := (&http.Client{Transport: transport}).Post("https://"+addr+"/v1/filter", "text/plain", strings.NewReader("a\n"))
		if err == nil {
			got.Body.Close()
		}
		if (err == nil) != (len(certificates) > 0) {
			t.Errorf("with %d certificates: got %v", len(certificates), err)
		}
	}
}
