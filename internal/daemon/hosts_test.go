package daemon

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked returns the status of a request with this Host and these Origins.
func asked(t *testing.T, method, url, host string, origins ...string) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader("line\n"))
	if err != nil {
		t.Fatal(err)
	}
	r.Host, r.Close = host, true
	if len(origins) > 0 {
		r.Header["Origin"] = origins
	}
	r.Header.Set("Content-Type", "text/plain")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if refused := got.StatusCode == http.StatusForbidden || got.StatusCode == http.StatusMisdirectedRequest; refused && !strings.Contains(string(text), "hosts") {
		t.Errorf("%s %s as %q from %q: %d %q does not name the key", method, url, host, origins, got.StatusCode, text)
	}
	return got.StatusCode
}

// Requests of foreign web pages must be refused. A page may have a DNS name that resolves to the
// listener (DNS rebinding), or send requests across origins.
func TestPagesDoNotUseTheListeners(t *testing.T) {
	dir, addr, admin := t.TempDir(), freeAddress(t), freeAddress(t)
	out := filepath.Join(dir, "out")
	text := func(hosts string) string {
		return "admin: {listen: '" + admin + "'" + hosts + "}\npipelines: {app: {input: {http: '" + addr + "'" + hosts + "}, output: {file: '" + out + "'}}}\n"
	}
	d, _ := started(t, configuration(t, dir, text(", hosts: [Logs.Example]")), Options{})
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := strings.Cut(addr, ":")
	const good, foreign, elsewhere = 0, http.StatusForbidden, http.StatusMisdirectedRequest
	for _, tt := range []struct {
		host   string
		origin []string
		want   int
	}{
		{addr, nil, good},
		{"localhost", nil, good},
		{"LOCALHOST.:" + port, nil, good},
		{"app.localhost:1", nil, good},
		{"[::1]:" + port, nil, good},
		{"[::1]", nil, good},
		{"192.0.2.7", nil, good},
		{own, nil, good},
		{"logs.example", nil, good},
		{"LOGS.example.:8443", nil, good},
		{"evil.example", nil, elsewhere},
		{"evil.example:" + port, nil, elsewhere},
		{"logs.example.evil.example", nil, elsewhere},
		{"127.0.0.1.evil.example", nil, elsewhere},
		{"localhost.evil.example", nil, elsewhere},
		{"notlocalhost", nil, elsewhere},
		{"[evil.example]", nil, elsewhere},
		{"2130706433", nil, elsewhere}, // 127.0.0.1 for some resolvers, a host name for others
		{addr, []string{"http://" + addr}, good},
		{addr, []string{"https://logs.example"}, good},
		{"logs.example", []string{"https://logs.example:8443"}, good},
		{addr, []string{"http://evil.example"}, foreign},
		{addr, []string{"null"}, foreign},
		{addr, []string{""}, foreign},
		{addr, []string{"http://127.0.0.1:1"}, foreign},
		{addr, []string{"http://localhost:" + port}, foreign},
		{addr, []string{"file://"}, foreign},
		{addr, []string{"http://" + addr + ".evil.example"}, foreign},
		{addr, []string{"http://" + addr, "http://evil.example"}, foreign},
		{"evil.example", []string{"http://evil.example"}, elsewhere},
	} {
		for _, one := range []struct {
			method, url string
			served      int
		}{
			{"POST", "http://" + addr + "/v1/filter", http.StatusNoContent},
			{"POST", "http://" + addr + "/none", http.StatusNotFound},
			{"GET", "http://" + admin + "/metrics", http.StatusOK},
			{"GET", "http://" + admin + "/readyz", http.StatusOK},
			{"GET", "http://" + admin + "/healthz", http.StatusOK},
		} {
			want := tt.want
			if want == good || strings.HasSuffix(one.url, "/healthz") {
				want = one.served
			}
			if got := asked(t, one.method, one.url, tt.host, tt.origin...); got != want {
				t.Errorf("%s %s as %q from %q: got %d, want %d", one.method, one.url, tt.host, tt.origin, got, want)
			}
		}
	}
	lines, err := os.ReadFile(out)
	if n := strings.Count(string(lines), "line\n"); err != nil || n != 13 || len(lines) != 5*n {
		t.Errorf("the output has %q, %v", lines, err)
	}

	if err := d.Reload(configuration(t, dir, text(", hosts: [other.example]"))); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"logs.example": elsewhere, "other.example": http.StatusNotFound} {
		if got := asked(t, "POST", "http://"+addr+"/none", host); got != want {
			t.Errorf("after a reload, as %s: got %d, want %d", host, got, want)
		}
	}
	if got := asked(t, "GET", "http://"+admin+"/readyz", "other.example"); got != http.StatusOK {
		t.Errorf("after a reload, /readyz: got %d", got)
	}
}

// A TLS client has checked the certificate for the requested name, so this name needs no hosts key.
func TestNamesOfCertificatesAreTheListeners(t *testing.T) {
	dir, addr := t.TempDir(), freeAddress(t)
	cert, _ := certificate(t, dir, "server")
	started(t, configuration(t, dir, "pipelines: {app: {input: {http: '"+addr+"', tls: {certificate: "+cert.Certificate+", key: "+cert.Key+"}}, output: {peer: true}}}\n"), Options{})
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{ServerName: "server.example", InsecureSkipVerify: true}, // requests a name that the certificate lacks
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	for host, want := range map[string]int{"server.example": http.StatusOK, "evil.example": http.StatusMisdirectedRequest} {
		r, err := http.NewRequest("POST", "https://server.example/v1/filter", strings.NewReader("line\n"))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		got, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode != want {
			t.Errorf("%s: got %s, want %d", host, got.Status, want)
		}
	}
}
