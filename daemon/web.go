package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of HTTP. A body has no timeout, since a stream may be quiet, except for an upload of a
// journal, whose sender has all of it at hand. A peer that is gone is found by TCP's keep-alive.
const (
	headerTimeout  = 10 * time.Second // for the header of a request, from its first byte
	idleTimeout    = 2 * time.Minute  // between two requests of a connection
	maxHeader      = 12 << 10         // bytes of the header; net/http adds 4 KiB
	maxStreams     = 16               // requests at once of an HTTP/2 connection
	refusedAtOnce  = 64               // connections beyond the limit that still get an answer
	webStopTimeout = 500 * time.Millisecond
)

// webs are the HTTP servers of all pipelines, one for each address. Many goroutines may use them.
type webs struct {
	log  *slog.Logger
	room *room

	stopping atomic.Bool  // all requests are refused
	swap     sync.RWMutex // held by a reload while it swaps paths, so that no request finds none

	mu  sync.Mutex
	all map[string]*web // by address
}

// A web is the HTTP server of one address, on which pipelines have paths.
type web struct {
	address string
	of      *webs
	listen  net.Listener
	server  *http.Server

	users int  // guarded by of.mu
	runs  bool // guarded by of.mu

	mu     sync.Mutex
	routes map[string]*httpInput // by path
}

func newWebs(log *slog.Logger, r *room) *webs {
	return &webs{log: log, room: r, all: make(map[string]*web)}
}

// open returns the server of the address for one more user, who calls release. listen is called if
// the address has no server yet.
func (s *webs) open(address string, secure *tls.Config, listen func() (net.Listener, error)) (*web, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.all[address]
	if w == nil {
		l, err := listen()
		if err != nil {
			return nil, err
		}
		l = roomy{l, s.room}
		if secure != nil {
			l = tls.NewListener(l, secure)
		}
		w = &web{address: address, of: s, listen: l, routes: make(map[string]*httpInput)}
		w.server = &http.Server{
			Handler:           w,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
			ErrorLog:          slog.NewLogLogger(quiet{s.log.Handler()}, slog.LevelDebug),
			ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		}
		s.all[address] = w
	}
	w.users++
	return w, nil
}

// quiet is a handler of records about single connections, which hostile peers could cause without
// end: they are for debugging.
type quiet struct{ slog.Handler }

// connKey is the key of a request's connection in its context.
type connKey struct{}

// release ends a use of w. The last one stops the server.
func (w *web) release() {
	w.of.mu.Lock()
	w.users--
	last, runs := w.users == 0, w.runs
	if last {
		delete(w.of.all, w.address)
	}
	w.of.mu.Unlock()
	switch {
	case last && runs:
		ctx, cancel := context.WithTimeout(context.Background(), webStopTimeout)
		defer cancel()
		if w.server.Shutdown(ctx) != nil {
			w.server.Close()
		}
	case last:
		w.listen.Close()
	}
}

// take gives the path to h, and starts the server if that has not happened.
func (w *web) take(path string, h *httpInput) error {
	w.mu.Lock()
	if other := w.routes[path]; other != nil {
		w.mu.Unlock()
		return fmt.Errorf("the path %s of %s is that of the pipeline %s; give one of them another path", path, w.address, other.p.name)
	}
	w.routes[path] = h
	w.mu.Unlock()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if !w.runs {
		w.runs = true
		go func() {
			if err := w.server.Serve(w.listen); !errors.Is(err, http.ErrServerClosed) {
				w.of.log.Error("the HTTP listener has failed", "address", w.address, "error", err)
			}
		}()
	}
	return nil
}

// leave takes the path from h.
func (w *web) leave(path string, h *httpInput) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.routes[path] == h {
		delete(w.routes, path)
	}
}

// route returns the input of a path, with the use of it that its done ends; nil if there is none.
func (w *web) route(path string) *httpInput {
	w.of.swap.RLock()
	defer w.of.swap.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	h := w.routes[path]
	if h == nil || !h.begin() {
		return nil
	}
	return h
}

// ServeHTTP passes a request to the pipeline that has its path.
func (w *web) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	to.Header().Set("X-Content-Type-Options", "nosniff")
	if c, ok := r.Context().Value(connKey{}).(net.Conn); ok && isRefused(c) {
		refuse(to, http.StatusTooManyRequests, "limits.connections connections are open; close some, raise the limit, or try again later")
		return
	}
	if w.of.stopping.Load() {
		refuse(to, http.StatusServiceUnavailable, "symfilterd is stopping; send the request again later")
		return
	}
	h := w.route(r.URL.Path)
	if h == nil {
		refuse(to, http.StatusNotFound, "no pipeline has this path; POST to the path of an input http or journal_upload of the configuration")
		return
	}
	defer h.requests.Done()
	h.serve(to, r)
}

// refuse answers a request that is not served. The connection is closed: the body is not read.
func refuse(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Connection", "close")
	if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	for _, name := range []string{"Trailer", "Content-Encoding"} {
		h.Del(name)
	}
	w.WriteHeader(status)
	io.WriteString(w, strings.TrimSuffix(text, "\n")+"\n")
}

// A room bounds the connections of all listeners.
type room struct {
	most    func() int
	used    atomic.Int64
	refused atomic.Int64 // open connections beyond the limit
}

// roomy counts the connections of a listener, and marks those beyond the limit.
type roomy struct {
	net.Listener
	room *room
}

// Accept returns the next connection. One beyond the limit is marked, so that its request is
// answered; if there are too many of those, it is closed.
func (l roomy) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		count := &l.room.used
		if count.Add(1) > int64(l.room.most()) {
			count.Add(-1)
			count = &l.room.refused
			if count.Add(1) > refusedAtOnce {
				count.Add(-1)
				c.Close()
				continue
			}
		}
		return &counted{Conn: c, count: count, refused: count == &l.room.refused}, nil
	}
}

// A counted connection leaves its count when it is closed.
type counted struct {
	net.Conn
	count   *atomic.Int64
	refused bool
	once    sync.Once
}

// Close closes the connection.
func (c *counted) Close() error {
	c.once.Do(func() { c.count.Add(-1) })
	return c.Conn.Close()
}

// isRefused reports whether c is a connection beyond the limit.
func isRefused(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	k, ok := c.(*counted)
	return ok && k.refused
}
