package debuginfod

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// A peer is a connection whose other end seems to have the address that its name was resolved to.
type peer struct {
	net.Conn
	addr net.Addr
}

func (p peer) RemoteAddr() net.Addr { return p.addr }

// A zone resolves names as the test wants, with one address for each lookup in turn, the last for ever; whatever the address,
// the connection goes to the server of the test that has the name's port.
type zone struct {
	mu    sync.Mutex
	names map[string][]string
}

func (z *zone) lookup(name string) string {
	z.mu.Lock()
	defer z.mu.Unlock()
	all := z.names[name]
	if len(all) > 1 {
		z.names[name] = all[1:]
	}
	if len(all) == 0 {
		return name
	}
	return all[0]
}

// use makes c resolve names by z, and trust the certificate of s.
func (z *zone) use(c *Client, s *httptest.Server) {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	dial := func(control dialControl) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, address string) (net.Conn, error) {
			host, port, _ := net.SplitHostPort(address)
			resolved := net.JoinHostPort(z.lookup(host), port)
			if control != nil {
				if err := control(network, resolved, nil); err != nil {
					return nil, &net.OpError{Op: "dial", Net: network, Err: err}
				}
			}
			conn, err := new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
			if err != nil {
				return nil, err
			}
			ap, err := netip.ParseAddrPort(resolved)
			return peer{conn, net.TCPAddrFromAddrPort(ap)}, err
		}
	}
	c.direct.DialContext, c.guarded.DialContext = dial(nil), dial(refusePrivate)
	c.direct.TLSClientConfig.RootCAs, c.guarded.TLSClientConfig.RootCAs = pool, pool
	c.direct.TLSClientConfig.ServerName, c.guarded.TLSClientConfig.ServerName = "example.com", "example.com"
}

func TestRedirectPolicy(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 0)
	tests := []struct {
		name     string
		from, to string   // scheme://host
		resolves []string // the address of "moves" at each lookup; other names: their own
		want     string   // the note; empty: the file is found
	}{
		{"public to public", "https://a.test", "https://b.test", nil, ""},
		{"up to https", "http://a.test", "https://b.test", nil, ""},
		{"down to http", "https://a.test", "http://b.test", nil, "redirects from https to http: refused"},
		{"to loopback", "https://a.test", "https://127.0.0.1", nil, "redirects to 127.0.0.1:PORT, which is on a private network: refused"},
		{"to IPv6 loopback", "https://a.test", "https://[::1]", nil, "redirects to [::1]:PORT, which is on a private network: refused"},
		{"to a cloud's metadata", "http://a.test", "http://169.254.169.254", nil, "redirects to 169.254.169.254:PORT, which is on a private network: refused"},
		{"to a private network", "https://a.test", "https://10.1.2.3", nil, "redirects to 10.1.2.3:PORT, which is on a private network: refused"},
		{"to a unique local address", "https://a.test", "https://[fd00::1]", nil, "redirects to [fd00::1]:PORT, which is on a private network: refused"},
		{"to loopback in disguise", "https://a.test", "https://[::ffff:127.0.0.1]", nil, "redirects to [::ffff:127.0.0.1]:PORT, which is on a private network: refused"},
		{"to a name of a private host", "https://a.test", "https://moves.test", []string{"192.168.0.1"}, "redirects to 192.168.0.1:PORT, which is on a private network: refused"},
		{"to a name that moves inside", "https://moves.test", "https://moves.test", []string{"203.0.113.7", "192.168.0.1"}, "redirects to 192.168.0.1:PORT, which is on a private network: refused"},
		{"inside the operator's network", "http://10.0.0.1", "http://10.0.0.2", nil, ""},
		{"from inside to the public", "http://10.0.0.1", "https://b.test", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/there" {
					sends(good)(w, r)
					return
				}
				http.Redirect(w, r, tt.to+"/there", http.StatusFound)
			}
			plain, secure := httptest.NewServer(http.HandlerFunc(h)), httptest.NewTLSServer(http.HandlerFunc(h))
			defer plain.Close()
			defer secure.Close()
			ports := map[string]string{"http": plain.Listener.Addr().String(), "https": secure.Listener.Addr().String()}
			with := func(u string) string {
				scheme, host, _ := strings.Cut(u, "://")
				_, port, _ := net.SplitHostPort(ports[scheme])
				return scheme + "://" + host + ":" + port
			}
			tt.to = with(tt.to)
			c := newClient(t, Options{}, with(tt.from))
			z := &zone{names: map[string][]string{"a.test": {"203.0.113.1"}, "b.test": {"2001:db8::1"}, "moves.test": tt.resolves}}
			z.use(c, secure)
			got, notes, err := find(t, c, buildid.Query{ID: id}, with(tt.from), "S", tt.to[strings.LastIndexByte(tt.to, ':'):], ":PORT")
			if tt.want == "" {
				if err != nil || !bytes.Equal(got, good) {
					t.Errorf("got %d bytes, %v, %q", len(got), err, notes)
				}
				return
			}
			if diff := cmp.Diff(notes, []string{"S: " + tt.want}); diff != "" || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v, notes (-got +want):\n%s", err, diff)
			}
		})
	}
}

// Behind a proxy only the names of hosts are known here, and the proxy itself may be on a private network.
func TestRedirectsBehindAProxy(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 0)
	for to, want := range map[string]string{
		"http://b.test":    "",
		"http://127.0.0.1": "redirects to 127.0.0.1, which is on a private network: refused",
		"http://intranet":  "redirects to intranet, which is on a private network: refused",
	} {
		proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/there" {
				sends(good)(w, r)
				return
			}
			http.Redirect(w, r, to+"/there", http.StatusFound)
		})
		c := newClient(t, Options{}, "http://a.test")
		u, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		c.direct.Proxy, c.guarded.Proxy = http.ProxyURL(u), http.ProxyURL(u)
		_, notes, err := find(t, c, buildid.Query{ID: id})
		var wants []string
		if want != "" {
			wants = []string{"http://a.test: " + want}
		}
		if diff := cmp.Diff(notes, wants); diff != "" || (err == nil) != (want == "") {
			t.Errorf("to %s: %v, notes (-got +want):\n%s", to, err, diff)
		}
	}
}

// The transport that follows the redirects of public servers dials no private address, whatever the name was.
func TestGuardSeesTheAddressThatIsDialed(t *testing.T) {
	s := serve(t, status(200))
	c := newClient(t, Options{})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		u, err := url.Parse(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = net.JoinHostPort(host, u.Port())
		req, err := http.NewRequest("GET", u.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.guarded.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		var private *privateError
		if !errors.As(err, &private) {
			t.Errorf("%s: got %v, want it refused", host, err)
		}
	}
	if got := s.requests(); got != nil {
		t.Errorf("requests: %q", got)
	}
}

func TestIsPrivate(t *testing.T) {
	tests := map[string]bool{
		"127.0.0.1": true, "127.255.0.1": true, "::1": true, "0.0.0.0": true, "::": true, "0.1.2.3": true,
		"10.0.0.1": true, "172.16.0.1": true, "172.32.0.1": false, "192.168.1.1": true, "100.64.0.1": true, "100.128.0.1": false,
		"169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true, "fd12::1": true, "fec0::1": true,
		"224.0.0.1": true, "ff02::1": true, "255.255.255.255": true,
		"::ffff:10.0.0.1": true, "64:ff9b::a00:1": true, "64:ff9b::808:808": false,
		"8.8.8.8": false, "2001:4860:4860::8888": false, "203.0.113.1": false,
	}
	for text, want := range tests {
		if got := isPrivate(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	if !isPrivate(netip.Addr{}) {
		t.Error("no address: got false")
	}
	for host, want := range map[string]bool{"localhost": true, "a.localhost.": true, "db": true, "printer.local": true, "10.0.0.1": true, "h.example": false, "8.8.8.8": false} {
		if got := isPrivateHost(host); got != want {
			t.Errorf("%s: got %v, want %v", host, got, want)
		}
	}
}

func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	id := testID(1)
	h := sends(elfFile(id, 0))
	unknown := httptest.NewUnstartedServer(h)
	unknown.Config.ErrorLog = quiet()
	unknown.StartTLS()
	defer unknown.Close()
	old := httptest.NewUnstartedServer(h)
	old.Config.ErrorLog = quiet()
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	defer old.Close()
	for name, tt := range map[string]struct {
		s     *httptest.Server
		trust bool
		want  string
	}{
		"of an unknown authority": {unknown, false, "its certificate is not valid for it: "},
		"for another name":        {unknown, true, "its certificate is not valid for it: "},
		"with TLS 1.1":            {old, true, ""},
	} {
		c := newClient(t, Options{}, tt.s.URL)
		if tt.trust {
			pool := x509.NewCertPool()
			pool.AddCert(tt.s.Certificate())
			c.direct.TLSClientConfig.RootCAs = pool
			if tt.s == unknown {
				c.direct.TLSClientConfig.ServerName = "other.test"
			}
		}
		_, notes, err := find(t, c, buildid.Query{ID: id}, tt.s.URL, "S")
		if err == nil || errors.Is(err, fs.ErrNotExist) || len(notes) != 1 || !strings.HasPrefix(notes[0], "S: "+tt.want) {
			t.Errorf("%s: got %v, %q; want %q", name, err, notes, tt.want)
		}
	}
}

func TestHeadersOfARequest(t *testing.T) {
	t.Parallel()
	id := testID(1)
	var mu sync.Mutex
	var got []http.Header
	record := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			got = append(got, r.Header.Clone())
			mu.Unlock()
			h(w, r)
		}
	}
	other := serve(t, record(sends(elfFile(id, 0))))
	s := serve(t, record(sendsTo(other.URL)))
	u, _ := url.Parse(s.URL)
	u.User = url.UserPassword("me", "secret1")
	file := put(t, t.TempDir(), "headers", []byte("X-Token: secret2\n \t\nX-Two:a\r\nx-two: b\n"), 0o600)
	c := newClient(t, Options{HeadersFile: file, Version: "1.2", MaxSize: 4711}, u.String())
	_, notes, err := find(t, c, buildid.Query{ID: id})
	if err != nil {
		t.Fatalf("%v, %q", err, notes)
	}
	ours := http.Header{"User-Agent": {fmt.Sprintf("symfilter/1.2 (%s/%s)", runtime.GOOS, runtime.GOARCH)},
		"Accept-Encoding": {"identity"}, "X-Debuginfod-Maxsize": {"4711"}}
	first := ours.Clone()
	first["Authorization"] = []string{"Basic bWU6c2VjcmV0MQ=="}
	first["X-Token"], first["X-Two"] = []string{"secret2"}, []string{"a", "b"}
	if diff := cmp.Diff(got, []http.Header{first, ours}); diff != "" {
		t.Error("to the server, and to another that it redirects to (-got +want):\n" + diff)
	}

	// It is read again when it changes; a value is never shown.
	got = nil
	age(t, put(t, filepath.Dir(file), "headers", []byte("X-Token: secret3\n"), 0o600), 0, -time.Minute)
	find(t, c, buildid.Query{ID: testID(2)})
	if len(got) == 0 || got[0].Get("X-Token") != "secret3" || got[0].Get("X-Two") != "" {
		t.Errorf("after a change: got %v", got)
	}
	age(t, put(t, filepath.Dir(file), "headers", []byte("X-Token secret4\n"), 0o600), 0, -2*time.Minute)
	_, notes, err = find(t, c, buildid.Query{ID: testID(3)}, c.Servers()[0].URL, "S")
	want := []string{`S: not asked: DEBUGINFOD_HEADERS_FILE: line 1 is no header: want "Name: value"`}
	if diff := cmp.Diff(notes, want); diff != "" || strings.Contains(fmt.Sprint(err, notes), "secret") {
		t.Errorf("%v, notes (-got +want):\n%s", err, diff)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, notes, err = find(t, c, buildid.Query{ID: testID(3)}); err == nil || len(notes) != 1 || !strings.Contains(notes[0], "DEBUGINFOD_HEADERS_FILE") {
		t.Errorf("without the file: got %v, %q", err, notes)
	}
}

func TestParseHeaders(t *testing.T) {
	tests := []struct {
		text, want string // want: the error, or the header as it is printed
	}{
		{"", "map[]"},
		{"A: b", "map[A:[b]]"},
		{"a-b:c:d \r\n\n   \nA-B:", "map[A-B:[c:d ]]"},
		{"secret", `line 1 is no header: want "Name: value"`},
		{"A: b\n: secret", `line 2 is no header: want "Name: value"`},
		{"A b: secret", `line 1 is no header: want "Name: value"`},
		{"A: sec\x00ret", `line 1 is no header: want "Name: value"`},
		{"Ä: secret", `line 1 is no header: want "Name: value"`},
		{"host: secret", "line 1: Host is not for the operator to set"},
		{"Transfer-Encoding: chunked", "line 1: Transfer-Encoding is not for the operator to set"},
	}
	for _, tt := range tests {
		h, err := parseHeaders(tt.text)
		got := fmt.Sprint(map[string][]string(h))
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestNoNetworkByDefault(t *testing.T) {
	s := serve(t, status(404))
	o, err := OptionsFromEnv(func(name string) string { return map[string]string{"DEBUGINFOD_CACHE_PATH": t.TempDir()}[name] })
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Client{"no servers": newClient(t, o), "offline": newClient(t, Options{Offline: true}, s.URL)} {
		control := func(string, string, ...any) { t.Errorf("%s: something is dialed", name) }
		refuse := func(context.Context, string, string) (net.Conn, error) { control("", ""); return nil, ErrClosed }
		c.direct.DialContext, c.guarded.DialContext = refuse, refuse
		if _, err := c.Find(t.Context(), buildid.Query{ID: testID(1)}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want a miss", name, err)
		}
		if _, err := c.Section(t.Context(), testID(1), ".debug_line"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want a miss", name, err)
		}
		c.Probe(t.Context(), s.URL, testID(1))
	}
}

// Only the build ID gets into a URL or a path, and what is part of the kernel is not asked for at all.
func TestNamesOfModulesGoNowhere(t *testing.T) {
	t.Parallel()
	id := testID(1)
	s := serve(t, status(404))
	c := newClient(t, Options{}, s.URL)
	for _, name := range []string{"[vdso]", "linux-vdso.so.1", "/x/linux-gate.so.1", "[vsyscall]"} {
		_, notes, err := find(t, c, buildid.Query{ID: id, Name: name})
		if !errors.Is(err, fs.ErrNotExist) || len(notes) != 1 {
			t.Errorf("%s: got %v, %q", name, err, notes)
		}
	}
	if got := s.requests(); got != nil {
		t.Errorf("requests for the kernel's: %q", got)
	}
	find(t, c, buildid.Query{ID: id, Name: "../../../../etc/passwd\x00%2e%2e"})
	if diff := cmp.Diff(s.requests(), []string{debugPath(id), "/buildid/" + id.String() + "/executable"}); diff != "" {
		t.Error("requests (-got +want):\n" + diff)
	}
	if _, err := c.Find(t.Context(), buildid.Query{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an ID: got %v, want a miss", err)
	}
	for _, section := range []string{"", ".", "..", "../debuginfo", "a b", ".x\n", strings.Repeat("x", 256), ".d\xc3\xa4"} {
		if _, err := c.Section(t.Context(), id, section); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("section %q: got %v, want a miss", section, err)
		}
	}
	if got := len(s.requests()); got != 2 {
		t.Errorf("got %d requests, want none for the sections", got-2)
	}
}
