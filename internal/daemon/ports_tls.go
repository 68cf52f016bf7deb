package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync/atomic"
)

// certificates are a listener's certificates. A reload rereads their files. Open connections keep
// the old certificates.
type certificates struct {
	conf      TLS
	protocols []string
	now       atomic.Pointer[tls.Config]
	outer     *tls.Config
}

// certificates loads the files in conf. Until the listener is closed, each reload loads them again:
// see reread.
func (p *ports) certificates(conf TLS, protocols []string) (*certificates, error) {
	c := &certificates{conf: conf, protocols: protocols}
	now, err := conf.load(protocols)
	if err != nil {
		return nil, err
	}
	c.now.Store(now)
	c.outer = &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.now.Load(), nil },
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.certs[c] = struct{}{}
	return c, nil
}

// reread loads the files of the listeners' certificates again, if the new configuration still has
// them in named. The function commit puts them in use for new connections.
func (p *ports) reread(named []*TLS) (commit func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fresh := make(map[*certificates]*tls.Config)
	for c := range p.certs {
		if !slices.ContainsFunc(named, func(t *TLS) bool { return t != nil && *t == c.conf }) {
			continue // its listener is about to be closed
		}
		if fresh[c], err = c.conf.load(c.protocols); err != nil {
			return nil, err
		}
	}
	return func() {
		for c, now := range fresh {
			c.now.Store(now)
		}
	}, nil
}

// server returns the TLS server side of a connection.
func (c *certificates) server(conn net.Conn) *tls.Conn { return tls.Server(conn, c.outer) }

func (t TLS) load(protocols []string) (*tls.Config, error) {
	if t.Certificate == "" || t.Key == "" {
		return nil, errors.New("tls: set certificate and key to the names of PEM files")
	}
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: certificate %s with key %s: %w", t.Certificate, t.Key, err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: protocols,
		// an unread ticket would reset the connection of a peer that never reads, and lose its last
		// lines
		SessionTicketsDisabled: true,
	}
	if t.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(t.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("tls: client_ca: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("tls: client_ca: %s contains no PEM certificate", t.ClientCA)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}

// certificates returns the TLS of each listener in c. Some may be nil.
func (c *Config) certificates() []*TLS {
	all := []*TLS{c.Admin.TLS, c.Service.TLS}
	for _, p := range c.Pipelines {
		all = append(all, p.Input.TLS)
	}
	return all
}
