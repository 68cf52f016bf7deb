//go:build linux

package integration

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// One peer opens many more slow connections than the limit. Requests of another peer must be
// answered at once. Further requests of the first peer must be refused until one of its connections
// is closed. The daemon must close connections that have sent at most a part of a header, but keep
// connections that are sending a body.
func TestSlowConnectionsShutNobodyOut(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		gives      bool // the peer's own requests are answered after a while
	}{
		{"without a request", "", true},
		{"in the header", "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\n", true},
		{"in the body", "POST /v1/filter HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := testenv.FreeAddress(t)
			d := startDaemon(t, "limits: {connections: 16}\npipelines: {web: {input: {http: '"+address+"'}, output: {peer: true}}}\n")
			d.ready()
			for range 200 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				io.WriteString(c, tt.sent) // fails if the connection was already closed, like the oldest refused ones
			}
			if got := askedFrom(t, "127.0.0.2", address); got != http.StatusOK {
				t.Errorf("another peer is answered %d", got)
			}
			if status, _ := d.get("/healthz"); status != http.StatusOK {
				t.Errorf("/healthz: got %d", status)
			}
			if !tt.gives {
				for range 10 {
					if got := askedFrom(t, "127.0.0.1", address); got != http.StatusTooManyRequests {
						t.Errorf("the peer is answered %d", got)
					}
				}
				return
			}
			until(t, "the peer is answered", func() bool {
				got := askedFrom(t, "127.0.0.1", address)
				if got != http.StatusOK && got != http.StatusTooManyRequests {
					t.Fatalf("the peer is answered %d", got)
				}
				return got == http.StatusOK
			})
		})
	}
}

// askedFrom sends a request from a local address, and returns the status.
func askedFrom(t *testing.T, from, address string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext,
	}}
	r, err := client.Post("http://"+address+"/v1/filter", "text/plain", strings.NewReader("line\n"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode == http.StatusOK && string(text) != "line\n" {
		t.Errorf("%s is answered %d %q, %v", from, r.StatusCode, text, err)
	}
	return r.StatusCode
}
