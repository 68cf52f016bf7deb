package daemon

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/seldom"
)

const (
	// handshakeTime bounds a TLS handshake. A connection has no other timeout: a device may be
	// quiet for days, and TCP's keep-alive detects lost peers.
	handshakeTime = 10 * time.Second
	// time for responses to a peer after the input was stopped
	lastWrites = 2 * time.Second
	// pause after a failed accept or receive; the usual reason is too many open files
	acceptPause = 100 * time.Millisecond
)

// A stream reads lines from the connections of a TCP or unix socket. Each connection has its own
// session, unless a key makes a peer's connections share a session.
type stream struct {
	p         *pipeline
	conf      Input
	framing   framing
	listeners listeners

	refused, failed, malformed seldom.Limiter

	all sync.WaitGroup // connections
}

func openListen(p *pipeline, c Input) (runner, error) {
	network, name, _ := strings.Cut(c.Listen, ":")
	if network == "udp" || network == "unixgram" || network == "systemd" && p.house.ports.inherited.Datagrams(name) {
		return openDatagrams(p, c)
	}
	way, err := framingOf(c.Framing)
	if err != nil {
		return nil, err
	}
	s := &stream{p: p, conf: c, framing: way}
	a := admission{tls: c.TLS, allowRemote: c.AllowRemote, mode: c.Mode, stream: true}
	s.listeners, err = p.house.ports.listen(c.Listen, a)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *stream) close() error { return s.listeners.Close() }

func (s *stream) run(ctx context.Context) error {
	if err := s.p.memory.open(contextsPath(s.p.state)); err != nil {
		s.p.log.Error("cannot save the contexts of connections", "error", err)
	}
	defer s.p.memory.close()
	var background sync.WaitGroup
	defer background.Wait()
	ended := make(chan struct{})
	defer close(ended)
	background.Go(func() { s.p.memory.saveUntil(ended) })

	for _, l := range s.listeners {
		for _, c := range l.port.inherit() {
			s.all.Go(func() { s.serve(ctx, l, c) })
		}
		s.all.Go(func() { s.accept(ctx, l) })
	}
	<-ctx.Done()
	s.listeners.Close()
	s.all.Wait()
	return nil
}

func (s *stream) accept(ctx context.Context, l *listener) {
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if err == nil {
				l.port.leave(conn)
				l.ports.sweep(l.port)
			}
			return
		case err != nil:
			if n, ok := s.failed.May(time.Now()); ok {
				s.p.log.Error("a connection cannot be accepted; retrying", "error", err, "times", n)
			}
			select {
			case <-ctx.Done():
			case <-time.After(acceptPause):
			}
			continue
		}
		peer := peerName(conn)
		seat := s.p.house.webs.room.enter(peer)
		if seat == nil {
			if n, ok := s.refused.May(time.Now()); ok {
				s.p.log.Warn("a connection is closed: limits.connections is reached; raise the limit, or close other connections", "limit", s.p.house.limits.Load().Connections, "peer", peer, "times", n)
			}
			conn.Close()
			continue
		}
		s.all.Go(func() { s.serve(ctx, l, &connection{Conn: conn, peer: peer, seat: seat}) })
	}
}

// A connection is an open connection of an input. If a reload changes the input, the next input
// takes the connection over.
type connection struct {
	net.Conn
	peer string
	seat *seat
	rest []byte // read by the previous input, but not given to a session
	way  framing
	need int
	line bool
	old  bool // taken over from the previous input
}

func (c *connection) end() {
	c.Close()
	c.seat.leave()
}

// serve reads a connection until its end, or until ctx is done.
func (s *stream) serve(ctx context.Context, l *listener, c *connection) {
	s.p.counts.connections.Add(1)
	defer s.p.counts.connections.Add(-1)
	if s.read(ctx, l, c) && l.hand(c) {
		return
	}
	c.end()
}

// read reads a connection. It reports whether the next input continues the connection.
func (s *stream) read(ctx context.Context, l *listener, c *connection) (continues bool) {
	if t, ok := c.Conn.(*tls.Conn); ok && !c.old {
		shaking, cancel := context.WithTimeout(ctx, handshakeTime)
		err := t.HandshakeContext(shaking)
		cancel()
		if err != nil {
			if n, ok := s.failed.May(time.Now()); ok && ctx.Err() == nil {
				s.p.log.Warn("a connection is closed: the TLS handshake has failed", "peer", c.peer, "error", err, "times", n)
			}
			return false
		}
	}
	c.SetDeadline(time.Time{})
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.SetReadDeadline(time.Unix(1, 0))
		c.SetWriteDeadline(time.Now().Add(lastWrites))
		close(woken)
	})
	defer func() {
		if !stop() {
			<-woken
		}
	}()
	shared := s.conf.Key != "" && s.p.stage.Load().out != nil
	var out io.Writer
	if !shared {
		out = &peerWriter{p: s.p, conn: c.Conn, ctx: ctx}
	}
	session := s.p.memory.enter(c.peer, out, shared)
	err := s.lines(ctx, l, c, session, &continues)
	if e := s.p.memory.leave(session); err == nil {
		err = e
	}
	if t, ok := c.Conn.(*tls.Conn); ok && err != nil {
		t.NetConn().Close() // closing TLS would wait for a peer that does not read
	}
	if err != nil && ctx.Err() == nil {
		s.p.log.Debug("a connection has ended", "peer", c.peer, "error", err)
	}
	return continues && err == nil
}

// lines cuts what a connection sends into lines, and writes them to its session. It sets continues
// to true if the next input of the socket takes the connection over.
func (s *stream) lines(ctx context.Context, l *listener, c *connection, to io.Writer, continues *bool) error {
	f := &framer{framing: s.framing, end: true, most: int(s.p.house.limits.Load().Line), grow: s.p.house.contexts.borrow}
	f.malformed = func(text []byte) {
		if n, ok := s.malformed.May(time.Now()); ok {
			text = text[:min(len(text), 40)]
			s.p.log.Warn("a message does not begin with its length, as framing: octets requires; the text is read as a line", "peer", c.peer, "text", fmt.Sprintf("%q", text), "times", n)
		}
	}
	defer f.free()
	give := func(lines []byte) error {
		if len(lines) == 0 {
			return nil
		}
		_, err := to.Write(lines)
		return err
	}
	if c.old {
		if s.framing == c.way || s.framing == byEither {
			f.framing, f.need, f.line = c.way, c.need, c.line
		}
		for rest := c.rest; len(rest) > 0; {
			n := copy(f.room(), rest)
			rest = rest[n:]
			if err := give(f.take(n)); err != nil {
				return err
			}
		}
		c.rest = nil
	}
	for {
		n, err := c.Read(f.room())
		if n > 0 {
			if err := give(f.take(n)); err != nil {
				return err
			}
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil && isTimeout(err) && l.heir() {
			*continues = true
			c.old, c.rest = true, bytes.Clone(f.left())
			c.way, c.need, c.line = f.framing, f.need, f.line
			return nil
		}
		if e := give(f.rest()); e != nil || err == io.EOF || ctx.Err() != nil {
			return e
		}
		return err
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// hand gives a connection to the next input of the socket. It returns false if the socket has no
// other input.
func (l *listener) hand(c *connection) bool {
	l.ports.mu.Lock()
	defer l.ports.mu.Unlock()
	l.port.mu.Lock()
	defer l.port.mu.Unlock()
	if l.ports.open[l.port.address] != l.port {
		return false
	}
	l.port.heritage = append(l.port.heritage, c)
	return true
}

// inherit returns the connections that the previous input has left at the port, and removes them
// from the port.
func (p *port) inherit() (all []*connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, p.heritage = p.heritage, nil
	return all
}

// A peerWriter sends lines to a peer, as long as its pipeline has no other output.
type peerWriter struct {
	p    *pipeline
	conn net.Conn
	ctx  context.Context // context of the input

	interrupted atomic.Bool
}

// Write writes p. It waits while the peer does not read. It returns errReplaced if a reload has set
// another output.
func (w *peerWriter) Write(p []byte) (int, error) {
	if w.p.stage.Load().out != nil {
		return 0, errReplaced
	}
	if w.interrupted.Swap(false) { // interrupted by an earlier reload
		w.conn.SetWriteDeadline(time.Time{})
		if w.ctx.Err() != nil {
			w.conn.SetWriteDeadline(time.Now().Add(lastWrites))
		}
	}
	n, err := w.conn.Write(p)
	if err != nil && isTimeout(err) && w.p.stage.Load().out != nil {
		return n, errReplaced
	}
	return n, err
}

// interrupt ends a Write that waits for the peer.
func (w *peerWriter) interrupt() {
	w.interrupted.Store(true)
	w.conn.SetWriteDeadline(time.Unix(1, 0))
}

// peerName returns the peer's IP address; on a unix socket its uid, or "local" for an unknown uid.
// It omits the port, which differs for each connection.
func peerName(c net.Conn) string {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if u, ok := c.(*net.UnixConn); ok {
		if uid := peerUser(u); uid != "" {
			return uid
		}
		return "local"
	}
	if a, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		return a.Addr().Unmap().WithZone("").String()
	}
	return "unknown"
}
