package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"sync"
	"time"

	"github.com/symfilter/symfilter/internal/batch"
	"github.com/symfilter/symfilter/internal/mozilla"
	"github.com/symfilter/symfilter/internal/symbolicator"
)

// Timeouts of the service's requests.
const (
	apiRead  = 30 * time.Second // for the body of a request
	apiWrite = time.Minute      // for an answer
)

// An api is the running service, which looks up addresses for other programs.
type api struct {
	conf    Service
	house   *house
	web     *web
	site    *site
	symbols *symbols
	depot   *depot // nil unless conf.Debuginfod

	ctx      context.Context // done when the daemon ends, or after the last request of a closed api
	end      context.CancelFunc
	requests sync.WaitGroup
	mu       sync.Mutex
	closed   bool
}

type protocol struct {
	asks string // describes the body of a request in messages
	// answer processes the body of a request, and returns a function that writes the answer.
	answer func(ctx context.Context, s *batch.Symbols, body io.Reader, h http.Header) (func(io.Writer) error, error)
}

func jsonProtocol(answer func(context.Context, *batch.Symbols, io.Reader) (func(io.Writer) error, error)) *protocol {
	return &protocol{"as JSON", func(ctx context.Context, s *batch.Symbols, body io.Reader, h http.Header) (func(io.Writer) error, error) {
		h.Set("Content-Type", "application/json")
		return answer(ctx, s, body)
	}}
}

func (s *Service) protocols() map[string]*protocol {
	all := make(map[string]*protocol)
	if s.Symbolize {
		all["/v1/symbolize"] = jsonProtocol(batch.Symbolize)
	}
	if s.Profile {
		all["/v1/profile"] = &protocol{"as a profile of pprof", nameProfile}
	}
	if s.Mozilla {
		all["/symbolicate/v5"] = jsonProtocol(mozilla.Symbolicate)
	}
	if s.Sentry {
		all["/symbolicate"] = jsonProtocol(symbolicator.Symbolicate)
	}
	return all
}

func (s *Service) paths() (all []string) {
	for path := range s.protocols() {
		all = append(all, path)
	}
	if s.Debuginfod {
		all = append(all, buildIDPath)
	}
	return all
}

// prepareAPI sets c.api to a new service for the configuration of c. It does nothing if c
// configures no service, or if the current service is unchanged.
func (d *Daemon) prepareAPI(c *change) (err error) {
	conf := c.conf.Service
	if conf.Listen == "" || d.api != nil && c.symbols == d.symbols && reflect.DeepEqual(conf, d.conf.Service) {
		return nil
	}
	if c.api, err = d.openAPI(conf, c.symbols.share()); err != nil {
		c.symbols.release()
	}
	return err
}

// openAPI opens the listener of c. If it succeeds, the api takes over the caller's reference to
// sym. The listener answers only after serve.
func (d *Daemon) openAPI(c Service, sym *symbols) (*api, error) {
	w, err := d.house.webs.open(c.Listen, admission{tls: c.TLS, allowRemote: c.AllowRemote, mode: c.Mode})
	if err != nil {
		return nil, err
	}
	a := &api{conf: c, house: d.house, web: w, symbols: sym}
	a.ctx, a.end = context.WithCancel(context.Background())
	protocols := c.protocols()
	a.site = &site{
		owner: "the service", hosts: func() []string { return c.Hosts }, begin: a.begin, end: a.requests.Done,
		serve: func(w http.ResponseWriter, r *http.Request) {
			if p := protocols[r.URL.Path]; p != nil {
				a.answer(w, r, p)
			} else {
				a.file(w, r)
			}
		},
	}
	if c.Debuginfod {
		if a.depot, err = openDepot(sym, d.house.depotName); err != nil {
			w.release()
			return nil, err
		}
	}
	return a, nil
}

// turnAPI replaces a changed service, and closes a service that c no longer configures. Running
// requests keep the old symbols.
func (d *Daemon) turnAPI(c *change) {
	if d.api != nil && (c.api != nil || c.conf.Service.Listen == "") {
		d.api.close()
		d.api = nil
	}
	if c.api != nil {
		d.api = c.api
		if err := d.api.serve(); err != nil {
			d.house.log.Error("the service cannot serve a path", "error", err)
		}
	}
}

func (a *api) serve() error {
	var errs []error
	for _, path := range a.conf.paths() {
		errs = append(errs, a.web.take(path, a.site))
	}
	return errors.Join(errs...)
}

// begin counts a new request. It returns false after close.
func (a *api) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.requests.Add(1)
	}
	return !a.closed
}

// close removes the service's paths, but lets running requests finish. ended is closed after the
// last request.
func (a *api) close() (ended chan struct{}) {
	for _, path := range a.conf.paths() {
		a.web.leave(path, a.site)
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		a.requests.Wait()
		a.web.release()
		if a.depot != nil {
			a.depot.close()
		}
		a.symbols.release()
		a.end()
	}()
	return ended
}

func (a *api) answer(w http.ResponseWriter, r *http.Request, p *protocol) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "send the request with POST, "+p.asks)
		return
	}
	body, done, err := unpacked(r, a.house.unpacking)
	if err != nil {
		refuseError(w, err)
		return
	}
	defer done()
	control := http.NewResponseController(w)
	control.SetReadDeadline(time.Now().Add(apiRead))
	defer context.AfterFunc(a.ctx, func() { control.SetReadDeadline(time.Now()) })()
	loan := a.house.ledger.open(peerOf(r))
	defer loan.close()
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(a.conf.Wait))
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	h := w.Header()
	write, err := p.answer(ctx, &batch.Symbols{
		Symbolizer: a.symbols.Symbolizer, Complete: a.symbols.Complete, Room: loan,
	}, &untimed{body, control}, h)
	if err != nil {
		a.refuse(w, err)
		return
	}
	h.Set("Cache-Control", "no-store")
	control.SetWriteDeadline(time.Now().Add(apiWrite))
	defer context.AfterFunc(a.ctx, func() { control.SetWriteDeadline(time.Now().Add(lingers)) })()
	if write(w) != nil { // the client must notice that the answer is incomplete
		panic(http.ErrAbortHandler)
	}
	control.SetWriteDeadline(time.Time{})
}

// An untimed is the body of a request. When the body has been read, it removes the connection's
// read deadline, which could otherwise expire before the answer.
type untimed struct {
	io.Reader
	control *http.ResponseController
}

func (u *untimed) Read(p []byte) (int, error) {
	n, err := u.Reader.Read(p)
	if err == io.EOF {
		u.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

func (a *api) refuse(w http.ResponseWriter, err error) {
	invalid, large, known := (*batch.InvalidError)(nil), (*batch.TooLargeError)(nil), (*refusal)(nil)
	switch {
	case errors.As(err, &known):
		refuseError(w, err)
	case errors.As(err, &invalid):
		refuse(w, http.StatusBadRequest, err.Error())
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, err.Error())
	case errors.Is(err, batch.ErrNoRoom):
		refuse(w, http.StatusServiceUnavailable, "limits.context_bytes leaves no memory for this request; send the request again later, or raise the limit")
	case a.ctx.Err() != nil:
		refuseError(w, errStopped)
	case errors.Is(err, os.ErrDeadlineExceeded):
		refuse(w, http.StatusRequestTimeout, "the body did not arrive in time; send the request again")
	default:
		refuse(w, http.StatusBadRequest, "the body ends too early, or is not valid; send the request again")
	}
}

// loanStep is the least number of bytes that a loan borrows at once, if they are available. A
// request takes memory for each address, in small parts.
const loanStep = 32 << 10

// A ledger counts the memory of all requests to the service: at most half of limits.context_bytes,
// since the logs need the other half. One peer may use a quarter of limits.context_bytes. A ledger
// is safe for concurrent use.
type ledger struct {
	contexts *contexts

	mu    sync.Mutex
	all   int64
	peers map[string]int64
}

func (l *ledger) open(peer string) *loan { return &loan{ledger: l, peer: peer} }

// borrow counts n more bytes for peer. It returns false if a limit is reached. A negative n
// releases bytes.
func (l *ledger) borrow(peer string, n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if most := int64(l.contexts.house.limits.Load().ContextBytes) / 2; n > 0 && (l.all+n > most || l.peers[peer]+n > most/2) {
		return false
	}
	if !l.contexts.lend(n) {
		return false
	}
	if l.peers == nil {
		l.peers = make(map[string]int64)
	}
	l.all += n
	if l.peers[peer] += n; l.peers[peer] == 0 {
		delete(l.peers, peer)
	}
	return true
}

// A loan is the memory of one request. It is a [batch.Room].
type loan struct {
	ledger *ledger
	peer   string

	mu    sync.Mutex
	taken int64 // bytes borrowed from the ledger
	free  int64 // bytes of taken that the request does not use
}

// Take implements [batch.Room].
func (l *loan) Take(n int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, more := range []int64{max(n, loanStep), n} {
		if l.free >= n {
			break
		}
		if l.ledger.borrow(l.peer, more) {
			l.taken += more
			l.free += more
		}
	}
	if l.free < n {
		return false
	}
	l.free -= n
	return true
}

func (l *loan) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ledger.borrow(l.peer, -l.taken)
	l.taken, l.free = 0, 0
}
