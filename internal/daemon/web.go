package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/seldom"
)

// Limits of HTTP. The body of a log has no timeout, since a stream may be quiet: TCP's keep-alive
// detects lost peers. uploadIdle bounds the pauses in an uploaded journal.
const (
	headerTimeout  = 10 * time.Second // for a request's header, from its first byte
	idleTimeout    = 2 * time.Minute  // between two requests on a connection
	maxHeader      = 12 << 10         // bytes of the header; net/http adds 4 KiB
	maxStreams     = 16               // concurrent requests of an HTTP/2 connection
	namedPaths     = 8                // paths named in a response
	webStopTimeout = 500 * time.Millisecond
)

// webs are the HTTP servers of all pipelines, one for each address. A webs is safe for concurrent
// use.
type webs struct {
	log   *slog.Logger
	ports *ports
	room  *room
	full  seldom.Limiter

	askers askers

	stopping atomic.Bool // all requests are refused
	// held by a reload while it swaps paths: every request must find its path
	swap sync.RWMutex

	mu  sync.Mutex
	all map[string]*web // by address and TLS
}

// A site owns paths of a web. A site is an input of a pipeline, or the service.
type site struct {
	owner string          // for messages, such as: the pipeline NAME
	hosts func() []string // values of the hosts key
	begin func() bool     // begins a request; false: the site is not running
	end   func()          // ends a request
	serve func(http.ResponseWriter, *http.Request)
}

// A web is the HTTP server at one address. Each path belongs to a site. A path of the form /NAME/
// includes all paths below it.
type web struct {
	key     string // key in webs.all
	address string
	of      *webs
	listen  listeners
	server  *http.Server

	users int  // guarded by of.mu
	runs  bool // guarded by of.mu

	mu     sync.Mutex
	routes map[string]*site // by path
	seats  seated
}

func newWebs(log *slog.Logger, p *ports, r *room) *webs {
	return &webs{log: log, ports: p, room: r, all: make(map[string]*web), askers: askers{warn: log.Warn}}
}

// open returns the server at an address, and counts one more use, which release must end. After a
// reload that changes TLS, a new server uses the port.
func (s *webs) open(address string, a admission) (*web, error) {
	key := address
	if a.tls != nil {
		key = fmt.Sprint(address, *a.tls)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.all[key]
	if w == nil {
		a.protocols = []string{"h2", "http/1.1"}
		all, err := s.ports.listen(address, a)
		if err != nil {
			return nil, err
		}
		w = &web{key: key, address: address, of: s, listen: all, routes: make(map[string]*site)}
		w.server = &http.Server{
			Handler:           w,
			ReadHeaderTimeout: headerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeader,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
			// not above the debug level, since hostile peers could cause any number of messages
			ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
			ConnContext: w.seats.context,
			ConnState:   w.seats.state,
		}
		s.all[key] = w
	}
	w.users++
	return w, nil
}

// release ends a use of w. The last release stops the server.
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

// take gives the path to s, and starts the server if necessary.
func (w *web) take(path string, s *site) error {
	w.mu.Lock()
	if other := w.routes[path]; other != nil && other != s {
		w.mu.Unlock()
		return fmt.Errorf("the path %s belongs to %s; give one of them another path", path, other.owner)
	}
	w.routes[path] = s
	w.mu.Unlock()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for _, l := range w.listen {
		if w.runs {
			break
		}
		go func() {
			if err := w.server.Serve(&seats{l, w.of.room, w.of.logFull, &w.seats}); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				w.of.log.Error("an HTTP listener has failed", "address", l.Addr(), "error", err)
			}
		}()
	}
	w.runs = true
	return nil
}

// leave takes the path away from s, if s owns it.
func (w *web) leave(path string, s *site) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.routes[path] == s {
		delete(w.routes, path)
	}
}

// paths returns the first namedPaths paths in alphabetical order, and a note about the number of
// further paths. hosts are the values of the hosts keys of all sites.
func (w *web) paths() (paths, hosts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(w.routes)) {
		hosts = append(hosts, w.routes[path].hosts()...)
		if len(paths) < namedPaths {
			paths = append(paths, path)
		}
	}
	if n := len(w.routes) - len(paths); n > 0 {
		paths = append(paths, fmt.Sprintf("one of %d other paths", n))
	}
	return paths, hosts
}

// route returns the site that owns the path, and counts a new request to it. It returns nil if no
// running site owns the path.
func (w *web) route(path string) *site {
	w.of.swap.RLock()
	defer w.of.swap.RUnlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.routes[path]
	if _, below, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/"); s == nil && ok {
		s = w.routes[strings.TrimSuffix(path, below)]
	}
	if s == nil || !s.begin() {
		return nil
	}
	return s
}

// ServeHTTP passes a request to the site that owns its path.
func (w *web) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	to.Header().Set("X-Content-Type-Options", "nosniff")
	serve(to, r, "limits.connections is reached, or this peer has three quarters of the connections; close connections, raise the limit, or try again later", w.answer)
}

// answer handles a request of a connection with a seat.
func (w *web) answer(to http.ResponseWriter, r *http.Request) {
	if w.of.stopping.Load() {
		refuse(to, http.StatusServiceUnavailable, "symfilterd is stopping; send the request again later")
		return
	}
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		// net/http may hide a Content-Length in the request: RFC 9112, section 6.1
		to.Header().Set("Connection", "close")
	}
	paths, hosts := w.paths()
	if !w.of.askers.allow(to, r, callers{w.address, hosts}) {
		return
	}
	s := w.route(r.URL.Path)
	if s == nil {
		refuse(to, http.StatusNotFound, fmt.Sprintf("no pipeline has the path %.80q; POST to %s", r.URL.Path, listed(paths, "or")))
		return
	}
	defer s.end()
	s.serve(to, r)
}

// refuse sends the response of a refused request. It closes the connection, since the body is not
// read.
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

// A seats is an HTTP listener whose connections have seats in a room.
type seats struct {
	net.Listener
	room *room
	full func(net.Conn) // called with a refused connection
	all  *seated
}

// Accept returns the next connection. If no seat is free, serve refuses the connection's requests.
func (l *seats) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	s := l.room.take(c, peerName(c))
	if s.refused {
		l.full(c)
	}
	l.all.put(c, s)
	return c, nil
}

// A seated maps the open connections of an HTTP server to their seats.
type seated struct {
	mu     sync.Mutex
	byConn map[net.Conn]*seat
}

func (a *seated) put(c net.Conn, s *seat) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byConn == nil {
		a.byConn = make(map[net.Conn]*seat)
	}
	a.byConn[c] = s
}

// context adds the seat of a connection to its context.
func (a *seated) context(ctx context.Context, c net.Conn) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return context.WithValue(ctx, seat{}, a.byConn[c])
}

// state releases the seat of a closed connection.
func (a *seated) state(c net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	a.mu.Lock()
	s := a.byConn[c]
	delete(a.byConn, c)
	a.mu.Unlock()
	if s != nil {
		s.leave()
	}
}

// serve calls answer if the connection of the request has a seat. It refuses the requests of a
// refused connection with the text full. It aborts a request if another connection has taken the
// seat.
func serve(w http.ResponseWriter, r *http.Request, full string, answer http.HandlerFunc) {
	s, ok := r.Context().Value(seat{}).(*seat)
	switch {
	case !ok: // a test's server
	case s.refused:
		refuse(w, http.StatusTooManyRequests, full)
		return
	case !s.begin():
		panic(http.ErrAbortHandler)
	default:
		defer s.end()
	}
	answer(w, r)
}

func (s *webs) logFull(c net.Conn) {
	if n, ok := s.full.May(time.Now()); ok {
		s.log.Warn("an HTTP connection is refused: limits.connections is reached; raise the limit, or close other connections", "limit", s.room.most(), "peer", c.RemoteAddr(), "times", n)
	}
}
