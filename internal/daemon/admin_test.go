package daemon

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// idle is a configuration with one pipeline, which waits for standard input.
const idle = `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  app: {input: {stdin: true}, output: {file: DIR/out.log}}
`

func adminAnswer(t *testing.T, d *Daemon, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	d.answers.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

// blocked returns a standard input that blocks each read until the test ends.
func blocked(t *testing.T) net.Conn {
	t.Helper()
	r, w := net.Pipe()
	t.Cleanup(func() { w.Close() })
	return r
}

func TestTheAdminListenerHasThreePathsAndChangesNothing(t *testing.T) {
	d, _ := started(t, configuration(t, t.TempDir(), idle), Options{Stdin: blocked(t)})
	testenv.Until(t, "the daemon has started", func() bool { return d.phase.Load() != int32(starting) })
	const notFound, notAllowed = "paths are /healthz, /readyz and /metrics\n", "only GET and HEAD\n"
	for _, tt := range []struct {
		method, path string
		status       int
		body         string // prefix of the body
	}{
		{"GET", "/healthz", 200, `{"healthy":true}` + "\n"},
		{"GET", "/readyz", 200, `{"ready":true}` + "\n"},
		{"GET", "/metrics", 200, "# HELP symfilter_build_info "},
		{"GET", "/metrics?name[]=x", 200, ""},
		{"HEAD", "/readyz", 200, ""},
		{"GET", "/", 404, notFound},
		{"GET", "/-/reload", 404, notFound},
		{"GET", "/debug/pprof/", 404, notFound},
		{"GET", "/metrics/", 404, notFound},
		{"GET", "//metrics", 404, notFound},
		{"POST", "/-/reload", 404, notFound},
		{"POST", "/metrics", 405, notAllowed},
		{"PUT", "/healthz", 405, notAllowed},
		{"DELETE", "/readyz", 405, notAllowed},
		{"OPTIONS", "/readyz", 405, notAllowed},
	} {
		got := adminAnswer(t, d, tt.method, tt.path)
		if got.Code != tt.status || !strings.HasPrefix(got.Body.String(), tt.body) || got.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: got %d %v %.100q, want %d %q", tt.method, tt.path, got.Code, got.Header(), got.Body, tt.status, tt.body)
		}
	}
}

func TestInputsThatCannotBeOpenedAreErrors(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, idle), Options{Stdin: blocked(t)})
	broken := configuration(t, dir, strings.Replace(idle, "stdin: true", "http: '192.0.2.1:0', path: /v1/filter, allow_remote: true", 1))
	if err := d.Reload(broken); err == nil || !strings.HasPrefix(err.Error(), "pipelines.app.input: ") {
		t.Errorf("a reload: got error %v", err)
	}
	if _, err := New(broken, Options{Log: noLog}); err == nil || !strings.HasPrefix(err.Error(), "pipelines.app.input: ") {
		t.Errorf("the start: got error %v", err)
	}
}

func TestTheAdminListenerIsForThisMachineAlone(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		admin string
		want  string // prefix of the error; empty: no error
	}{
		{"listen: '127.0.0.1:0'", ""},
		{"listen: 'unix:DIR/admin.sock'", ""},
		{"listen: ':0', allow_remote: true", ""},
		{"listen: ':0'", "1:9: admin.listen: "},
		{"listen: '0.0.0.0:0'", "1:9: admin.listen: "},
		{"listen: '192.0.2.1:0'", "1:9: admin.listen: "},
		{"listen: 'example.com:0'", "1:9: admin.listen: "},
		{"listen: '127.0.0.1'", "1:9: admin.listen: "},
	} {
		c, err := Parse([]byte(strings.ReplaceAll("admin: {"+tt.admin+"}\n"+idle, "DIR", dir)))
		if err == nil {
			var d *Daemon
			if d, err = New(c, Options{Log: noLog, Stdin: strings.NewReader("")}); err == nil {
				d.end()
			}
		}
		if (err == nil) != (tt.want == "") || err != nil && !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want %q", tt.admin, err, tt.want)
		}
	}
}

func TestHostileClientsOfTheAdminListenerAreCutOff(t *testing.T) {
	d, _ := started(t, configuration(t, t.TempDir(), "admin: {listen: '127.0.0.1:0'}\n"+idle), Options{Stdin: blocked(t)})
	address := d.admin.listeners[0].Addr().String()
	silent, err := net.Dial("tcp", address) // occupies a seat for adminRead
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, tt := range []struct{ name, request, want string }{
		{"a request", "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", `^HTTP/1\.1 200 OK\r\n`},
		{"a large header", "GET /readyz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", `^HTTP/1\.1 431 `},
		{"two lengths", "GET /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", `^HTTP/1\.1 400 `},
		{"a length and chunks", "GET /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", `^HTTP/1\.1 40[04] [^#]*$`},
		{"no HTTP", "\x16\x03\x01\x00\xa5\x01\r\n\r\n", `^HTTP/1\.1 400 `},
		{"an encoded path", "GET /%6detrics%2f..%2f HTTP/1.1\r\nHost: localhost\r\n\r\n", `^HTTP/1\.1 404 `},
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		c.Write([]byte(tt.request)) // fails if the server has closed the connection
		got := make([]byte, 4096)
		n, _ := c.Read(got)
		if !regexp.MustCompile(tt.want).Match(got[:n]) {
			t.Errorf("%s: got %q, want %s", tt.name, got[:n], tt.want)
		}
		c.Close()
	}
}

func TestConnectionsToTheAdminListenerEnd(t *testing.T) {
	d, _ := started(t, configuration(t, t.TempDir(), "admin: {listen: '127.0.0.1:0'}\n"+idle), Options{Stdin: blocked(t)})
	address := d.admin.listeners[0].Addr().String()
	for i := range 3 * adminConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			c.(*net.TCPConn).SetLinger(0)
		}
		c.Close()
	}
	client := http.Client{Timeout: time.Minute}
	got, err := client.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if got.Body.Close(); got.StatusCode != 200 {
		t.Errorf("got %s", got.Status)
	}
}

func TestTheAdminListenerHasTLSAndMoves(t *testing.T) {
	dir := t.TempDir()
	cert, pool := certificate(t, dir, "server")
	text := func(listen string) string {
		return "admin: {listen: '" + listen + "', tls: {certificate: " + cert.Certificate + ", key: " + cert.Key + "}}\n" + idle
	}
	d, _ := started(t, configuration(t, dir, text("127.0.0.1:0")), Options{Stdin: blocked(t)})
	get := func() (address, got string) {
		d.one.Lock()
		address = d.admin.listeners[0].Addr().String()
		d.one.Unlock()
		client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
		r, err := client.Get("https://" + address + "/healthz")
		if err != nil {
			return address, err.Error()
		}
		defer r.Body.Close()
		return address, r.Status
	}
	first, got := get()
	if got != "200 OK" {
		t.Errorf("got %s", got)
	}
	if r, err := http.Get("http://" + first + "/healthz"); err == nil {
		r.Body.Close()
		http.DefaultClient.CloseIdleConnections()
		if r.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: got %s", r.Status)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct{ listen, fails string }{
		{taken.Addr().String(), "admin: "},
		{"localhost:0", ""},
	} {
		err := d.Reload(configuration(t, dir, text(tt.listen)))
		if (err == nil) != (tt.fails == "") || err != nil && !strings.HasPrefix(err.Error(), tt.fails) {
			t.Errorf("a reload to %s: got error %v", tt.listen, err)
		}
		address, got := get()
		if got != "200 OK" || (address == first) != (err != nil) {
			t.Errorf("after a reload to %s: got %s from %s, before from %s", tt.listen, got, address, first)
		}
	}
	if c, err := net.Dial("tcp", first); err == nil {
		c.Close()
		t.Errorf("%s is still open", first)
	}
	if err := d.Reload(configuration(t, dir, idle)); err != nil || d.admin != nil {
		t.Errorf("the listener was taken out: got %v, error %v", d.admin, err)
	}
}
