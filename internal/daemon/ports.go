package daemon

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/service"
)

// ports are the sockets of all inputs, the service and the admin listener. A reload opens new
// inputs before it ends old inputs. So a socket in both configurations stays open, and no waiting
// connection is refused. A ports is safe for concurrent use.
type ports struct {
	inherited *service.Sockets

	mu    sync.Mutex
	open  map[string]*port // by address; keys of inherited sockets also have a number
	certs map[*certificates]struct{}
}

func newPorts(inherited *service.Sockets) *ports {
	if inherited == nil {
		inherited = new(service.Sockets)
	}
	return &ports{inherited: inherited, open: make(map[string]*port), certs: make(map[*certificates]struct{})}
}

// A port is one socket that listens or receives datagrams.
type port struct {
	address   string // key in ports.open
	inherited bool   // from the service manager
	raw       socket
	release   func() // removes the socket's file; nil: no file
	uses      []*use // guarded by ports.mu
	turn      chan struct{}

	mu      sync.Mutex
	waiting *use       // use that waits in raw; nil: none
	late    []net.Conn // connections accepted after their use was closed

	heritage []*connection // connections of the previous stream input, for the next stream input
	dropped  uint32        // dropped datagrams already counted; owned by the use that waits in raw
	counting bool          // dropped is set
}

type socket interface {
	SetDeadline(time.Time) error
	Close() error
}

// A use connects an input to a port. Only one use at a time waits for connections or datagrams of
// the port's socket. The other uses wait for their turn.
type use struct {
	ports  *ports
	port   *port
	stream bool // the input takes over connections of the previous use
	closed chan struct{}
	once   sync.Once
}

// An admission decides which peers may connect, and whether with TLS.
type admission struct {
	tls         *TLS
	allowRemote bool
	protocols   []string // offered by ALPN
	mode        Mode     // mode of a unix socket; 0: defaultSocketMode
	stream      bool
}

// defaultSocketMode lets the daemon's user and group connect.
const defaultSocketMode Mode = 0o660

// listen returns the listeners of an address, which the caller closes. systemd:NAME has a listener
// for each socket of that name, other addresses have one listener. A socket that is already open,
// for another input or before a reload, is shared.
func (p *ports) listen(address string, a admission) (listeners, error) {
	opened, err := p.use(address, a, false)
	if err != nil {
		return nil, err
	}
	var certs *certificates
	if a.tls != nil {
		if certs, err = p.certificates(*a.tls, a.protocols); err != nil {
			closeUses(opened)
			return nil, err
		}
	}
	var all listeners
	for _, u := range opened {
		all = append(all, &listener{use: u, certs: certs})
	}
	return all, nil
}

// packets is like listen, for datagrams: udp:HOST:PORT, unixgram:PATH and systemd:NAME.
func (p *ports) packets(address string, a admission) (all []*packets, err error) {
	if a.tls != nil {
		return nil, fmt.Errorf("%s: tls is not available for datagrams; use tcp:, or leave tls out", address)
	}
	opened, err := p.use(address, a, true)
	if err != nil {
		return nil, err
	}
	for _, u := range opened {
		all = append(all, &packets{use: u})
	}
	return all, nil
}

// use opens the sockets of an address that are not open yet. It returns a use of each socket of the
// address.
func (p *ports) use(address string, a admission, datagrams bool) (all []*use, err error) {
	at, err := parseAddress(address, datagrams)
	if err == nil && at.network != "systemd" {
		err = at.mayListen(a)
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := []string{at.String()}
	if at.network == "systemd" {
		if keys, err = p.openInherited(at, datagrams); err != nil {
			return nil, err
		}
	} else if p.open[keys[0]] == nil {
		raw, release, err := at.listen(a)
		if err != nil {
			return nil, err
		}
		p.add(keys[0], raw, release)
	}
	for _, k := range keys {
		port := p.open[k]
		u := &use{ports: p, port: port, stream: a.stream, closed: make(chan struct{})}
		port.uses = append(port.uses, u)
		all = append(all, u)
		if at.network == "systemd" && err == nil {
			err = mayAccept(address, localAddress(port.raw), a)
		}
	}
	if err != nil {
		p.drop(all)
		return nil, err
	}
	return all, nil
}

// openInherited opens the service manager's sockets called at.name, and returns their keys. p.mu is
// held.
func (p *ports) openInherited(at address, datagrams bool) (keys []string, err error) {
	key := func(i int) string { return fmt.Sprintf("%v#%d,%t", at, i, datagrams) }
	for p.open[key(len(keys))] != nil {
		keys = append(keys, key(len(keys)))
	}
	if len(keys) > 0 {
		return keys, nil
	}
	var sockets []socket
	if datagrams {
		all, err := p.inherited.PacketConns(at.name)
		if err != nil {
			return nil, err
		}
		for _, c := range all {
			prepareDatagrams(c)
			sockets = append(sockets, c)
		}
	} else {
		all, err := p.inherited.Listeners(at.name)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			sockets = append(sockets, l.(socket))
		}
	}
	for i, s := range sockets {
		p.add(key(i), s, nil)
		p.open[key(i)].inherited = true
		keys = append(keys, key(i))
	}
	return keys, nil
}

// add adds an open socket. p.mu is held.
func (p *ports) add(key string, raw socket, release func()) {
	p.open[key] = &port{address: key, raw: raw, release: release, turn: make(chan struct{}, 1)}
}

// addresses returns the sorted addresses of the open sockets.
func (p *ports) addresses() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range p.open {
		local := localAddress(port.raw)
		all = append(all, local.Network()+":"+local.String())
	}
	slices.Sort(all)
	return all
}

func (p *ports) close() {
	p.mu.Lock()
	var all []*use
	for _, port := range p.open {
		all = append(all, port.uses...)
	}
	p.mu.Unlock()
	closeUses(all)
}

func closeUses(all []*use) {
	for _, u := range all {
		u.Close()
	}
}

// drop removes uses from their ports, and closes ports without a use. p.mu is held.
func (p *ports) drop(all []*use) {
	for _, u := range all {
		port := u.port
		i := slices.Index(port.uses, u)
		if i < 0 {
			continue
		}
		port.uses = slices.Delete(port.uses, i, i+1)
		if len(port.uses) > 0 {
			continue
		}
		delete(p.open, port.address)
		port.raw.Close()
		if port.release != nil {
			port.release()
		}
		port.mu.Lock()
		for _, c := range port.late {
			c.Close()
		}
		for _, c := range port.heritage {
			c.end()
		}
		port.late, port.heritage = nil, nil
		port.mu.Unlock()
	}
}

// Close ends the use. A wait in progress returns net.ErrClosed.
func (u *use) Close() error {
	u.once.Do(func() {
		close(u.closed)
		u.port.mu.Lock()
		if u.port.waiting == u {
			u.port.raw.SetDeadline(time.Unix(1, 0))
		}
		u.port.mu.Unlock()
		u.ports.mu.Lock()
		defer u.ports.mu.Unlock()
		u.ports.drop([]*use{u})
	})
	return nil
}

func (u *use) isClosed() bool {
	select {
	case <-u.closed:
		return true
	default:
		return false
	}
}

// heir reports whether another stream input uses the port, and can continue the connections.
func (u *use) heir() bool {
	u.ports.mu.Lock()
	defer u.ports.mu.Unlock()
	return slices.ContainsFunc(u.port.uses, func(o *use) bool { return o != u && o.stream && !o.isClosed() })
}

// wait waits for the turn, and then calls f, which waits for a connection or a datagram. It returns
// net.ErrClosed after Close.
func (u *use) wait(f func() error) error {
	p := u.port
	for {
		select {
		case p.turn <- struct{}{}:
		case <-u.closed:
			return net.ErrClosed
		}
		p.mu.Lock()
		if u.isClosed() {
			p.mu.Unlock()
			<-p.turn
			return net.ErrClosed
		}
		p.waiting = u
		err := p.raw.SetDeadline(time.Time{})
		p.mu.Unlock()
		if err == nil {
			err = f()
		}
		p.mu.Lock()
		p.waiting = nil
		p.mu.Unlock()
		<-p.turn
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			return err
		}
	}
}

type listeners []*listener

// Close closes all listeners.
func (all listeners) Close() error {
	for _, l := range all {
		l.Close()
	}
	return nil
}

// A listener accepts the connections of a port for one input. Close leaves pending connections to
// the port's next use.
type listener struct {
	*use
	certs *certificates // nil: no TLS
}

var _ net.Listener = (*listener)(nil)

// Accept returns the next connection. With TLS, it is a *tls.Conn before its handshake.
func (l *listener) Accept() (net.Conn, error) {
	var c net.Conn
	err := l.wait(func() (err error) {
		if c = l.port.takeLate(); c == nil {
			c, err = l.port.raw.(net.Listener).Accept()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if l.isClosed() {
		l.port.leave(c)
		l.ports.sweep(l.port)
		return nil, net.ErrClosed
	}
	if l.certs != nil {
		return l.certs.server(c), nil
	}
	return c, nil
}

// Addr returns the address of the socket.
func (l *listener) Addr() net.Addr { return localAddress(l.port.raw) }

// Close ends the use of the port and of the certificates.
func (l *listener) Close() error {
	if l.certs != nil {
		l.ports.mu.Lock()
		delete(l.ports.certs, l.certs)
		l.ports.mu.Unlock()
	}
	return l.use.Close()
}

// takeLate removes and returns a connection that leave has kept, or returns nil.
func (p *port) takeLate() (c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.late) > 0 {
		c, p.late = p.late[0], p.late[1:]
	}
	return c
}

// leave keeps a connection, without its TLS wrapper, for the next Accept.
func (p *port) leave(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = append(p.late, c)
}

// sweep closes the late connections of a closed port.
func (p *ports) sweep(port *port) {
	p.mu.Lock()
	gone := p.open[port.address] != port
	p.mu.Unlock()
	for c := (net.Conn)(nil); gone; c.Close() {
		if c = port.takeLate(); c == nil {
			return
		}
	}
}

// A packets receives the datagrams of a port for one input.
type packets struct{ *use }

func (p *packets) receive(b, control []byte) (d datagram, err error) {
	err = p.wait(func() (err error) {
		if d, err = receive(p.port.raw, b, control); d.counts {
			// an earlier process may have counted the datagrams dropped before the first datagram
			// from an inherited socket
			if p.port.counting || !p.port.inherited {
				d.lost = d.dropped - p.port.dropped // the counter wraps around
			}
			p.port.dropped, p.port.counting = d.dropped, true
		}
		return err
	})
	if err == nil || !p.isClosed() {
		return d, err
	}
	return d, net.ErrClosed
}

type datagram struct {
	n       int    // bytes
	cut     bool   // the datagram was longer than the buffer
	from    string // sender: an IP address, a path or a uid
	dropped uint32 // datagrams dropped by the kernel since the socket was made
	counts  bool   // dropped is known
	lost    uint32 // datagrams dropped since the previous datagram
}

func localAddress(s socket) net.Addr {
	switch s := s.(type) {
	case net.Listener:
		return s.Addr()
	case net.PacketConn:
		return s.LocalAddr()
	}
	return nil
}

// An address is a socket's address in a configuration.
type address struct {
	network string // tcp, unix, udp, unixgram or systemd
	name    string // HOST:PORT, a path, or the name of a socket
}

func (a address) String() string { return a.network + ":" + a.name }

func parseAddress(s string, datagrams bool) (address, error) {
	want, networks := "tcp:HOST:PORT, unix:PATH or systemd:NAME", []string{"tcp", "unix", "systemd"}
	if datagrams {
		want, networks = "udp:HOST:PORT, unixgram:PATH or systemd:NAME", []string{"udp", "unixgram", "systemd"}
	}
	network, name, ok := strings.Cut(s, ":")
	if !ok || !slices.Contains(networks, network) {
		if _, _, err := net.SplitHostPort(s); err != nil || datagrams {
			return address{}, fmt.Errorf("%q is not an address: write %s", s, want)
		}
		network, name = "tcp", s
	}
	a := address{network, name}
	switch network {
	case "tcp", "udp":
		if _, _, err := net.SplitHostPort(name); err != nil {
			return a, fmt.Errorf("%q: %w; write %s:HOST:PORT, an IPv6 host in brackets", s, err, network)
		}
	case "unix", "unixgram":
		switch {
		case name == "" || strings.HasPrefix(name, "@"):
			return a, fmt.Errorf("%q: the path of a socket is missing (abstract names, which have no owner and no mode, are not supported)", s)
		case len(name) > maxSocketPath:
			return a, fmt.Errorf("%q: the path has %d bytes; a socket's path may have at most %d", s, len(name), maxSocketPath)
		}
	case "systemd":
		if name == "" {
			return a, fmt.Errorf("%q: the name of a socket is missing: write systemd:NAME with the FileDescriptorName= of the socket unit", s)
		}
	}
	return a, nil
}

// maxSocketPath is the size of sun_path without the final NUL. The BSDs and macOS have the smallest
// sun_path, of 104 bytes.
const maxSocketPath = 103

// mayListen returns an error if other machines can reach the address, unless the admission allows
// remote peers or has TLS.
func (a address) mayListen(to admission) error {
	if a.network != "tcp" && a.network != "udp" {
		return nil
	}
	host, _, _ := net.SplitHostPort(a.name)
	ip := net.ParseIP(host)
	return remoteRefused(a.String(), host != "localhost" && (ip == nil || !ip.IsLoopback()), to)
}

// mayAccept is like mayListen, for an open socket with the address local.
func mayAccept(name string, local net.Addr, to admission) error {
	var ip net.IP
	switch l := local.(type) {
	case *net.TCPAddr:
		ip = l.IP
	case *net.UDPAddr:
		ip = l.IP
	default:
		return nil
	}
	return remoteRefused(fmt.Sprintf("%s (%v)", name, local), !ip.IsLoopback(), to)
}

func remoteRefused(name string, remote bool, to admission) error {
	switch {
	case !remote || to.allowRemote || to.tls != nil:
		return nil
	case strings.HasPrefix(name, "udp:"):
		return fmt.Errorf("%s is open to other machines, which can forge datagrams; listen on 127.0.0.1, or set allow_remote: true", name)
	}
	return fmt.Errorf("%s is open to other machines; listen on 127.0.0.1 or on a unix socket, set certificate and key in tls, or set allow_remote: true", name)
}
