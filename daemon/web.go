package daemon

import (
	"context"
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

	"github.com/symfilter/symfilter/internal/seldom"
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
	log   *slog.Logger
	ports *ports
	room  *room
	full  seldom.Limiter // messages about connections beyond the limit

	stopping atomic.Bool  // all requests are refused
	swap     sync.RWMutex // held by a reload while it swaps paths, so that no request finds none

	mu  sync.Mutex
	all map[string]*web // by address and TLS
}

// A web is the HTTP server of one address, on which pipelines have paths.
type web struct {
	key    string // in webs.all
	of     *webs
	listen listeners
	server *http.Server

	users int  // guarded by of.mu
	runs  bool // guarded by of.mu

	mu     sync.Mutex
	routes map[string]*httpInput // by path
	seats  map[net.Conn]seat     // of open connections
}

func newWebs(log *slog.Logger, p *ports, r *room) *webs {
	return &webs{log: log, ports: p, room: r, all: make(map[string]*web)}
}

// open returns the server of an input's address for one more user, which calls release. If a reload
// has changed TLS, it returns another server, which takes the port over.
func (s *webs) open(address string, c *Input) (*web, error) {
	key := address
	if c.TLS != nil {
		key = fmt.Sprint(address, *c.TLS)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.all[key]
	if w == nil {
		all, err := s.ports.listen(address, access{tls: c.TLS, allowRemote: c.AllowRemote, protocols: []string{"h2", "http/1.1"}, mode: c.Mode})
		if err != nil {
			return nil, err
		}
		w = &web{key: key, of: s, listen: all, routes: make(map[string]*httpInput), seats: make(map[net.Conn]seat)}
		w.server = &http.Server{
			Handler:           w,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // hostile peers can cause these without end
			ConnContext:       w.seated,
			ConnState:         w.leaves,
		}
		s.all[key] = w
	}
	w.users++
	return w, nil
}

// release ends a use of w. The last one stops the server.
func (w *web) release() {
	w.of.mu.Lock()
	w.users--
	last, runs := w.users == 0, w.runs
	if last {
		delete(w.of.all, w.key)
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
	if other := w.routes[path]; other != nil && other != h {
		w.mu.Unlock()
		return fmt.Errorf("the path %s is that of the pipeline %s; give one of them another path", path, other.p.name)
	}
	w.routes[path] = h
	w.mu.Unlock()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for _, l := range w.listen {
		if w.runs {
			break
		}
		go func() {
			if err := w.server.Serve(&seats{l, w}); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				w.of.log.Error("an HTTP listener has failed", "address", l.Addr(), "error", err)
			}
		}()
	}
	w.runs = true
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
	if s, ok := r.Context().Value(seat{}).(seat); ok && s.refused {
		refuse(to, http.StatusTooManyRequests, "limits.connections connections are open; close some, raise the limit, or try again later")
		return
	}
	if w.of.stopping.Load() {
		refuse(to, http.StatusServiceUnavailable, "symfilterd is stopping; send the request again later")
		return
	}
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// it may have had a Content-Length, too, which net/http hides: RFC 9112, section 6.1
		to.Header().Set("Connection", "close")
	}
	h := w.route(r.URL.Path)
	if h == nil {
		refuse(to, http.StatusNotFound, "no pipeline has this path; POST to the path of an input http or journal_upload of the configuration")
		return
	}
	defer h.requests.Done()
	h.p.counts.connections.Add(1)
	defer h.p.counts.connections.Add(-1)
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

// take takes a seat for a connection. One beyond the limit is refused by an answer; ok is false if
// there are too many of those, too.
func (r *room) take() (s seat, ok bool) {
	if r.used.Add(1) <= int64(r.most()) {
		return seat{of: &r.used}, true
	}
	r.used.Add(-1)
	if r.refused.Add(1) <= refusedAtOnce {
		return seat{of: &r.refused, refused: true}, true
	}
	r.refused.Add(-1)
	return seat{}, false
}

// A seat is that of a connection in a room.
type seat struct {
	of      *atomic.Int64
	refused bool
	peer    string // as other inputs name it
}

// seats is a listener whose connections have seats.
type seats struct {
	net.Listener
	w *web
}

// Accept returns the next connection that has a seat.
func (l *seats) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s, ok := l.w.of.room.take()
		if s.refused || !ok {
			l.w.of.logFull(c)
		}
		if ok {
			s.peer = peerName(c)
			l.w.mu.Lock()
			l.w.seats[c] = s
			l.w.mu.Unlock()
			return c, nil
		}
		c.Close()
	}
}

// logFull logs that a connection is beyond the limit.
func (s *webs) logFull(c net.Conn) {
	if n, ok := s.full.May(time.Now()); ok {
		s.log.Warn("an HTTP connection is refused: limits.connections are open; raise it, or close others", "limit", s.room.most(), "peer", c.RemoteAddr(), "times", n)
	}
}

// seated returns the context of a connection, which has its seat.
func (w *web) seated(ctx context.Context, c net.Conn) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	return context.WithValue(ctx, seat{}, w.seats[c])
}

// leaves gives the seat of a connection back when it is closed.
func (w *web) leaves(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	w.mu.Lock()
	s, ok := w.seats[c]
	delete(w.seats, c)
	w.mu.Unlock()
	if ok {
		s.of.Add(-1)
	}
}
