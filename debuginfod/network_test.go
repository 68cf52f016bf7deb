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
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// A peer is a connection that reports addr as its remote address: the address to which a zone
// resolved the host.
type peer struct {
	net.Conn
	addr net.Addr
}

func (p peer) RemoteAddr() net.Addr { return p.addr }

// A zone resolves names to a test's addresses. Each lookup of a name returns its next address;
// further lookups repeat the last one. All connections go to the test's server on this machine, at
// the requested port.
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

// use makes c resolve names with z, and trust the certificate of s.
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
	c.direct.DialContext = dial(nil)
	for from, t := range c.guarded {
		t.DialContext = dial(scope(from).refuse())
	}
	for _, t := range transports(c) {
		t.TLSClientConfig.RootCAs, t.TLSClientConfig.ServerName = pool, "example.com"
	}
}

func transports(c *Client) []*http.Transport { return append(c.guarded[:], c.direct) }

func TestRedirectPolicy(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 0)
	tests := []struct {
		name     string
		from, to string   // scheme://host
		resolves []string // the address of "moves" at each lookup; other names have one address each
		want     string   // the note; empty if the file is found
	}{
		{"public to public", "https://a.test", "https://b.test", nil, ""},
		{"up to https", "http://a.test", "https://b.test", nil, ""},
		{"down to http", "https://a.test", "http://b.test", nil, "redirects from https to http: refused"},
		{"to loopback", "https://a.test", "https://127.0.0.1", nil, "redirects to 127.0.0.1:PORT, which is this machine: refused"},
		{"to IPv6 loopback", "https://a.test", "https://[::1]", nil, "redirects to [::1]:PORT, which is this machine: refused"},
		{"to no address", "https://a.test", "https://0.0.0.0", nil, "redirects to 0.0.0.0:PORT, which is this machine: refused"},
		{"to a cloud's metadata", "http://a.test", "http://169.254.169.254", nil, "redirects to 169.254.169.254:PORT, which is a link-local address: refused"},
		{"to a private network", "https://a.test", "https://10.1.2.3", nil, "redirects to 10.1.2.3:PORT, which is on a private network: refused"},
		{"to a unique local address", "https://a.test", "https://[fd00::1]", nil, "redirects to [fd00::1]:PORT, which is on a private network: refused"},
		{"to loopback in disguise", "https://a.test", "https://[::ffff:127.0.0.1]", nil, "redirects to [::ffff:127.0.0.1]:PORT, which is this machine: refused"},
		{"to a name of a private host", "https://a.test", "https://moves.test", []string{"192.168.0.1"}, "redirects to 192.168.0.1:PORT, which is on a private network: refused"},
		{"to a name that moves inside", "https://moves.test", "https://moves.test", []string{"203.0.113.7", "192.168.0.1"}, "redirects to 192.168.0.1:PORT, which is on a private network: refused"},
		{"inside the operator's network", "http://10.0.0.1", "http://10.0.0.2", nil, ""},
		{"from inside to the public", "http://10.0.0.1", "https://b.test", nil, ""},
		{"from inside to a unique local address", "http://10.0.0.1", "http://[fd00::1]", nil, ""},
		{"from inside to loopback", "http://10.0.0.1", "http://127.0.0.1", nil, "redirects to 127.0.0.1:PORT, which is this machine: refused"},
		{"from inside to a name of loopback", "http://10.0.0.1", "http://moves.test", []string{"127.0.0.1"}, "redirects to 127.0.0.1:PORT, which is this machine: refused"},
		{"from inside to a cloud's metadata", "http://10.0.0.1", "http://169.254.169.254", nil, "redirects to 169.254.169.254:PORT, which is a link-local address: refused"},
		{"from inside to a name of metadata", "http://10.0.0.1", "http://moves.test", []string{"169.254.169.254"}, "redirects to 169.254.169.254:PORT, which is a link-local address: refused"},
		{"from inside to metadata, mapped", "http://10.0.0.1", "http://[::ffff:169.254.169.254]", nil, "redirects to [::ffff:169.254.169.254]:PORT, which is a link-local address: refused"},
		{"from inside to metadata by NAT64", "http://10.0.0.1", "http://[64:ff9b::169.254.169.254]", nil, "redirects to [64:ff9b::169.254.169.254]:PORT, which is a link-local address: refused"},
		{"from inside to metadata by the site's NAT64", "http://10.0.0.1", "http://[64:ff9b:1::169.254.169.254]", nil, "redirects to [64:ff9b:1::169.254.169.254]:PORT, which is a link-local address: refused"},
		{"from inside to metadata by 6to4", "http://10.0.0.1", "http://[2002:a9fe:a9fe::1]", nil, "redirects to [2002:a9fe:a9fe::1]:PORT, which is a link-local address: refused"},
		{"from inside to IPv6 link-local", "http://10.0.0.1", "http://[fe80::1]", nil, "redirects to [fe80::1]:PORT, which is a link-local address: refused"},
		{"from loopback to loopback", "http://127.0.0.1", "http://127.0.0.2", nil, ""},
		{"from loopback to a private network", "http://127.0.0.1", "http://10.0.0.1", nil, ""},
		{"from loopback to a cloud's metadata", "http://127.0.0.1", "http://169.254.169.254", nil, "redirects to 169.254.169.254:PORT, which is a link-local address: refused"},
		{"from link-local to loopback", "http://169.254.0.1", "http://127.0.0.1", nil, "redirects to 127.0.0.1:PORT, which is this machine: refused"},
		{"from link-local to itself", "http://169.254.0.1", "http://169.254.0.1", nil, "redirects to 169.254.0.1:PORT, which is a link-local address: refused"},
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

// Behind a proxy, the client knows only the names of hosts, and must judge redirects by them. The
// proxy itself may be on a private network.
func TestRedirectsBehindAProxy(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 0)
	for to, want := range map[string]string{
		"http://b.test":    "",
		"http://127.0.0.1": "redirects to 127.0.0.1, which is this machine: refused",
		"http://intranet":  "redirects to intranet, which is on a private network: refused",
		// A proxy that uses the C library to resolve names accepts all of these as addresses.
		"http://169.254.169.254.":  "redirects to 169.254.169.254., which is a link-local address: refused",
		"http://127.0.0.1..":       "redirects to 127.0.0.1.., which is this machine: refused",
		"http://[fe80::1%25lo.]":   "redirects to [fe80::1%lo.], which is a link-local address: refused",
		"http://0251.0376.169.254": "redirects to 0251.0376.169.254, which is an address in an unusual form: refused",
		"http://2852039166":        "redirects to 2852039166, which is an address in an unusual form: refused",
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
		for _, t := range transports(c) {
			t.Proxy = http.ProxyURL(u)
		}
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

// Every server in a chain of redirects limits the next redirect: after a server on the public
// network, no redirect may lead to a private network.
func TestRedirectsOfAChainAreThoseOfItsNarrowestServer(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 0)
	for _, tt := range []struct {
		chain []string // hosts: the operator's server, and where each redirects to
		want  string
	}{
		{[]string{"10.0.0.1", "203.0.113.1", "10.0.0.2"}, "redirects to 10.0.0.2:PORT, which is on a private network: refused"},
		{[]string{"127.0.0.1", "203.0.113.1", "127.0.0.2"}, "redirects to 127.0.0.2:PORT, which is this machine: refused"},
		{[]string{"127.0.0.1", "10.0.0.1", "127.0.0.2"}, "redirects to 127.0.0.2:PORT, which is this machine: refused"},
		{[]string{"10.0.0.1", "10.0.0.2", "192.168.0.3", "203.0.113.1"}, ""},
		{[]string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, ""},
	} {
		var port string
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			hop, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/hop"))
			if hop+1 == len(tt.chain) {
				sends(good)(w, r)
				return
			}
			sendsTo(fmt.Sprintf("http://%s:%s/hop%d", tt.chain[hop+1], port, hop+1))(w, r)
		})
		_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
		server := "http://" + tt.chain[0] + ":" + port
		c := newClient(t, Options{}, server)
		certified := httptest.NewTLSServer(nil)
		(&zone{}).use(c, certified)
		certified.Close()
		got, notes, err := find(t, c, buildid.Query{ID: id}, server, "S", ":"+port, ":PORT")
		if tt.want == "" {
			if err != nil || !bytes.Equal(got, good) {
				t.Errorf("%s: got %d bytes, %v, %q", tt.chain, len(got), err, notes)
			}
			continue
		}
		if diff := cmp.Diff(notes, []string{"S: " + tt.want}); diff != "" {
			t.Errorf("%s: %v, notes (-got +want):\n%s", tt.chain, err, diff)
		}
	}
}

// A transport for redirects from a scope must not dial an address that the scope may not lead to,
// whatever the host's name.
func TestGuardSeesTheAddressThatIsDialed(t *testing.T) {
	s := serve(t, status(200))
	c := newClient(t, Options{})
	for from, guarded := range c.guarded {
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
			resp, err := guarded.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			var refused *redirectError
			if errors.As(err, &refused) != (scope(from) != loopback) {
				t.Errorf("%s from scope %d: got %v", host, from, err)
			}
		}
	}
	if got := len(s.requests()); got != 2 {
		t.Errorf("got %d requests, want the 2 from loopback", got)
	}
}

func TestScopeOf(t *testing.T) {
	for want, all := range map[scope][]string{
		loopback: {"127.0.0.1", "127.255.0.1", "::1", "0.0.0.0", "::", "0.1.2.3", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "::127.0.0.1", "2002:7f00:1::"},
		private: {"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "fec0::1", "224.0.1.1", "255.255.255.255", "::ffff:10.0.0.1",
			"64:ff9b::a00:1", "64:ff9b:1::a00:1", "2002:a00:1::1", "::10.0.0.1", "192.0.0.1", "198.19.0.1", "ff05::1"},
		linkLocal: {"169.254.169.254", "169.254.0.0", "fe80::1", "fe80::1%eth0", "febf::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe",
			"2002:a9fe:a9fe::", "::169.254.169.254", "ff02::1", "224.0.0.1"},
		public: {"8.8.8.8", "2001:4860:4860::8888", "203.0.113.1", "172.32.0.1", "100.128.0.1", "64:ff9b::808:808", "169.253.0.1", "2002:808:808::"},
	} {
		for _, text := range all {
			if got := scopeOf(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s: got %v, want %v", text, got, want)
			}
		}
	}
	if got := scopeOf(netip.Addr{}); got != linkLocal {
		t.Errorf("no address: got %v", got)
	}
	for host, want := range map[string]scope{"localhost": loopback, "a.localhost.": loopback, "db": private, "printer.local": private, "10.0.0.1": private,
		"169.254.169.254": linkLocal, "metadata.google.internal": private, "h.example": public, "8.8.8.8": public, "8.8.8.8.": public,
		"169.254.169.254.": linkLocal, "127.0.0.1.": loopback, "10.0.0.1..": private, "LocalHost.": loopback, "fe80::1%eth0.": linkLocal,
		"127.1": disguised, "0x7f.0.0.1": disguised, "0251.0376.0251.0376": disguised, "2130706433": disguised, "0X7F000001": disguised,
		"127.0.0.0x1.": disguised, "1.2.3.4.5": disguised, "a.0x": disguised, "１２７.0.0.1": disguised, "a。test": disguised, "": disguised, ".": disguised,
		"7.example": public, "0x7f.example": public, "xn--bcher-kva.example": public} {
		if got := scopeOfHost(host); got != want {
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
		"of an unknown authority": {unknown, false, "its certificate is not valid: "},
		"for another name":        {unknown, true, "its certificate is not valid: "},
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

	// The file is read again after a change; its values are never shown.
	got = nil
	age(t, put(t, filepath.Dir(file), "headers", []byte("X-Token: secret3\n"), 0o600), 0, -time.Minute)
	find(t, c, buildid.Query{ID: testID(2)})
	if len(got) == 0 || got[0].Get("X-Token") != "secret3" || got[0].Get("X-Two") != "" {
		t.Errorf("after a change: got %v", got)
	}
	age(t, put(t, filepath.Dir(file), "headers", []byte("X-Token secret4\n"), 0o600), 0, -2*time.Minute)
	_, notes, err = find(t, c, buildid.Query{ID: testID(3)}, c.Servers()[0].URL, "S")
	want := []string{`S: not asked: DEBUGINFOD_HEADERS_FILE: line 1 is not a header: want "Name: value"`}
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
		text, want string // want is the error, or the printed header
	}{
		{"", "map[]"},
		{"A: b", "map[A:[b]]"},
		{"a-b:c:d \r\n\n   \nA-B:", "map[A-B:[c:d ]]"},
		{"secret", `line 1 is not a header: want "Name: value"`},
		{"A: b\n: secret", `line 2 is not a header: want "Name: value"`},
		{"A b: secret", `line 1 is not a header: want "Name: value"`},
		{"A: sec\x00ret", `line 1 is not a header: want "Name: value"`},
		{"Ä: secret", `line 1 is not a header: want "Name: value"`},
		{"host: secret", "line 1: Host cannot be set"},
		{"Transfer-Encoding: chunked", "line 1: Transfer-Encoding cannot be set"},
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
		for _, t := range transports(c) {
			t.DialContext = refuse
		}
		if _, err := c.Find(t.Context(), buildid.Query{ID: testID(1)}, nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want a miss", name, err)
		}
		if _, err := c.Section(t.Context(), testID(1), ".debug_line"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v, want a miss", name, err)
		}
		c.probe(t.Context(), s.URL, testID(1))
	}
}

// Only the build ID may get into a URL or a path, never the name of a module. No server may be
// asked for the vDSO.
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
