package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestAddressesAreRead(t *testing.T) {
	for _, tt := range []struct {
		in        string
		datagrams bool
		want      string // result, or the error
	}{
		{"tcp:127.0.0.1:5170", false, "tcp:127.0.0.1:5170"},
		{"127.0.0.1:5170", false, "tcp:127.0.0.1:5170"},
		{":5170", false, "tcp::5170"},
		{"[::1]:5170", false, "tcp:[::1]:5170"},
		{"unix:/run/a.sock", false, "unix:/run/a.sock"},
		{"systemd:app", false, "systemd:app"},
		{"udp:127.0.0.1:514", true, "udp:127.0.0.1:514"},
		{"unixgram:/run/log", true, "unixgram:/run/log"},
		{"systemd:app", true, "systemd:app"},
		{"udp:127.0.0.1:514", false, `"udp:127.0.0.1:514" is not an address: write tcp:HOST:PORT, unix:PATH or systemd:NAME`},
		{"127.0.0.1:514", true, `"127.0.0.1:514" is not an address: write udp:HOST:PORT, unixgram:PATH or systemd:NAME`},
		{"5170", false, `"5170" is not an address: write tcp:HOST:PORT, unix:PATH or systemd:NAME`},
		{"tcp:5170", false, `"tcp:5170": address 5170: missing port in address; write tcp:HOST:PORT, an IPv6 host in brackets`},
		{"unix:", false, `"unix:": the path of a socket is missing (abstract names, which have no owner and no mode, are not supported)`},
		{"unix:@app", false, `"unix:@app": the path of a socket is missing (abstract names, which have no owner and no mode, are not supported)`},
		{"systemd:", false, `"systemd:": the name of a socket is missing: write systemd:NAME with the FileDescriptorName= of the socket unit`},
	} {
		a, err := parseAddress(tt.in, tt.datagrams)
		got := a.String()
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
	if _, err := parseAddress("unix:/"+strings.Repeat("a", 103), false); err == nil {
		t.Error("a path of 104 bytes is taken")
	}
}

func TestOtherMachinesNeedTLSOrPermission(t *testing.T) {
	const remedy = " is open to other machines; listen on 127.0.0.1 or on a unix socket, set certificate and key in tls, or set allow_remote: true"
	for _, tt := range []struct {
		address string
		access  admission
		want    string
	}{
		{"tcp:127.0.0.1:0", admission{}, ""},
		{"tcp:[::1]:0", admission{}, ""},
		{"tcp:localhost:0", admission{}, ""},
		{"unix:/run/a", admission{}, ""},
		{"tcp::0", admission{}, "tcp::0" + remedy},
		{"tcp:0.0.0.0:0", admission{}, "tcp:0.0.0.0:0" + remedy},
		{"tcp:log.example:0", admission{}, "tcp:log.example:0" + remedy},
		{"tcp::0", admission{allowRemote: true}, ""},
		{"tcp::0", admission{tls: &TLS{}}, ""},
		{"udp::0", admission{}, "udp::0 is open to other machines, which can forge datagrams; listen on 127.0.0.1, or set allow_remote: true"},
	} {
		a, err := parseAddress(tt.address, strings.HasPrefix(tt.address, "udp"))
		if err == nil {
			err = a.mayListen(tt.access)
		}
		if got := errorText(err); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.address, got, tt.want)
		}
	}
	for _, local := range []net.Addr{&net.TCPAddr{IP: net.IPv6zero}, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1)}} {
		if err := mayAccept("systemd:app", local, admission{}); err == nil {
			t.Errorf("an inherited socket on %v is taken", local)
		}
	}
	if err := mayAccept("systemd:app", &net.UnixAddr{Name: "/run/app"}, admission{}); err != nil {
		t.Error(err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestFilesInThePlaceOfASocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	address := "unix:" + path
	open := func() (listeners, error) { return newPorts(nil).listen(address, admission{mode: 0o600}) }

	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(path); err != nil || runtime.GOOS == "linux" && info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("got %v, %v; want a socket of mode 0600", info.Mode(), err)
	}
	if _, err := open(); errorText(err) != "listen on "+address+": another process listens on this socket: choose another path, or stop that process" {
		t.Errorf("in use: got %v", err)
	}
	first.Close()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Close: %v", err)
	}

	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	stale.Close()
	second, err := open()
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	second.Close()
	if got, err := os.ReadFile(path); string(got) != "precious" {
		t.Errorf("Close has removed a file that is not the socket: %v", err)
	}
	if _, err := open(); errorText(err) != "listen on "+address+": the file at this path is not a socket, and is not replaced: remove the file, or choose another path" {
		t.Errorf("another file: got %v", err)
	}
}

func TestListenersAreHandedOver(t *testing.T) {
	p := newPorts(nil)
	before, err := p.listen("tcp:127.0.0.1:0", admission{})
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		_, err := before[0].Accept()
		accepted <- err
	}()
	address := before[0].Addr().String()
	after, err := p.listen("tcp:127.0.0.1:0", admission{})
	if err != nil {
		t.Fatal(err)
	}
	before.Close()
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the first Accept: got %v", err)
	}
	for range 3 { // the connections wait in the socket, since no input accepts them
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "x")
	}
	for range 3 {
		c, err := after[0].Accept()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(io.LimitReader(c, 1)); string(got) != "x" {
			t.Errorf("got %q, %v", got, err)
		}
		c.Close()
	}
	after.Close()
	if c, err := net.Dial("tcp", address); err == nil {
		c.Close()
		t.Error("the socket is open after its last use")
	}
	if n := len(p.open); n != 0 {
		t.Errorf("%d ports are open", n)
	}
}

func TestCertificatesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	conf, first := certificate(t, dir, "first")
	p := newPorts(nil)
	all, err := p.listen("tcp:127.0.0.1:0", admission{tls: conf})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	go func() {
		for {
			c, err := all[0].Accept()
			if err != nil {
				return
			}
			go io.Copy(c, c)
		}
	}()
	dial := func(pool *x509.CertPool) (*tls.Conn, error) {
		return tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", all[0].Addr().String(), &tls.Config{RootCAs: pool, ServerName: "localhost"})
	}
	old, err := dial(first)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	_, second := certificate(t, dir, "second")
	if _, err := dial(second); err == nil {
		t.Error("the files are read before a reload")
	}
	commit, err := p.reread([]*TLS{conf})
	if err != nil {
		t.Fatal(err)
	}
	commit()
	if c, err := dial(second); err != nil {
		t.Error(err)
	} else {
		c.Close()
	}
	if err := os.WriteFile(conf.Key, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.reread([]*TLS{conf}); err == nil {
		t.Error("a damaged key is taken")
	}
	io.WriteString(old, "echo")
	got := make([]byte, 4)
	if _, err := io.ReadFull(old, got); err != nil || string(got) != "echo" {
		t.Errorf("the connection before: got %q, %v", got, err)
	}
}

// certificate writes a self-signed certificate for localhost, and its key.
func certificate(t *testing.T, dir, name string) (*TLS, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	conf := &TLS{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for path, block := range map[string]*pem.Block{conf.Certificate: {Type: "CERTIFICATE", Bytes: der}, conf.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(made)
	return conf, pool
}

func TestALateConnectionBeginsTLSOnce(t *testing.T) {
	conf, _ := certificate(t, t.TempDir(), "one")
	p := newPorts(nil)
	all, err := p.listen("tcp:127.0.0.1:0", admission{tls: conf})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	peer, err := net.Dial("tcp", all[0].Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for range 2 {
		c, err := all[0].Accept()
		if err != nil {
			t.Fatal(err)
		}
		outer, ok := c.(*tls.Conn)
		if !ok {
			t.Fatalf("%T is not TLS", c)
		}
		if _, twice := outer.NetConn().(*tls.Conn); twice {
			t.Fatal("TLS within TLS")
		}
		all[0].port.leave(c)
	}
}

func TestCertificatesThatCannotBeUsedAreNamed(t *testing.T) {
	dir := t.TempDir()
	conf, _ := certificate(t, dir, "first")
	for _, tt := range []struct {
		conf TLS
		want string
	}{
		{TLS{}, "tls: set certificate and key to the names of PEM files"},
		{TLS{Certificate: conf.Certificate, Key: dir + "/none"}, fmt.Sprintf("tls: certificate %s with key %s/none: open %s/none: no such file or directory", conf.Certificate, dir, dir)},
		{TLS{conf.Certificate, conf.Key, conf.Key}, "tls: client_ca: " + conf.Key + " contains no PEM certificate"},
	} {
		if _, err := tt.conf.load(nil); errorText(err) != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
}
