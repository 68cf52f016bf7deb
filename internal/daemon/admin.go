package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Bounds of the admin listener, whose answers are small.
const (
	adminConnections = 32
	adminHeader      = 8 << 10          // bytes of a request's header
	adminRead        = 5 * time.Second  // for a whole request
	adminWrite       = 15 * time.Second // for an answer, after the request's header
	adminScrapes     = 4                // requests for /metrics at once
)

// An admin is the listener for health and metrics.
type admin struct {
	listeners listeners
	server    *http.Server
	room      *room
	seats     seated
}

// openAdmin opens the listener of c. The listener answers only after serve.
func (d *Daemon) openAdmin(c Admin) (*admin, error) {
	all, err := d.house.ports.listen(c.Listen, admission{tls: c.TLS, allowRemote: c.AllowRemote, protocols: []string{"http/1.1"}})
	if err != nil {
		return nil, err
	}
	a := &admin{listeners: all, room: &room{most: func() int { return adminConnections }}}
	a.server = &http.Server{
		Handler: d.answers, ReadTimeout: adminRead, WriteTimeout: adminWrite, MaxHeaderBytes: adminHeader,
		ErrorLog:    slog.NewLogLogger(d.house.log.Handler(), slog.LevelDebug),
		ConnContext: a.seats.context, ConnState: a.seats.state,
	}
	a.server.SetKeepAlivesEnabled(false) // an idle client would occupy a seat
	return a, nil
}

func (a *admin) serve(log *slog.Logger) {
	for _, l := range a.listeners {
		go func() {
			if err := a.server.Serve(&seats{l, a.room, func(net.Conn) {}, &a.seats}); !errors.Is(err, http.ErrServerClosed) {
				log.Error("the admin listener has ended", "error", err)
			}
		}()
	}
}

// close ends serve. Unfinished answers get a second to complete.
func (a *admin) close() {
	defer a.listeners.Close() // serve may never have been called
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if a.server.Shutdown(ctx) != nil {
		a.server.Close()
	}
}

// newAnswers returns the handler of the admin listener. All its paths are read-only.
func (d *Daemon) newAnswers() http.Handler {
	metrics := promhttp.HandlerFor(d.registry(), promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(d.house.log.Handler(), slog.LevelError),
		MaxRequestsInFlight: adminScrapes,
	})
	who := &askers{warn: d.house.log.Warn}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		// /healthz allows any host name and any number of requests: a service manager restarts a
		// daemon that does not answer.
		if r.URL.Path != "/healthz" && !who.allow(w, r, d.view.Load().admin) {
			return
		}
		answer := metrics.ServeHTTP
		switch r.URL.Path {
		case "/metrics":
		case "/healthz":
			answer = d.health
		case "/readyz":
			answer = d.readiness
		default:
			http.Error(w, "paths are /healthz, /readyz and /metrics", http.StatusNotFound)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
			return
		}
		if r.URL.Path == "/healthz" {
			answer(w, r)
			return
		}
		serve(w, r, fmt.Sprintf("the limit of %d connections is reached, or this peer has three quarters of the connections; try again later", adminConnections), answer)
	})
}

// health responds with 200 if all filters make progress. Otherwise it responds with 503, and names
// a pipeline whose filter is stuck until a restart.
func (d *Daemon) health(w http.ResponseWriter, _ *http.Request) {
	answer := struct {
		Healthy bool   `json:"healthy"`
		Stuck   string `json:"stuck,omitempty"` // name of a pipeline whose filter is stuck
	}{Stuck: d.stuck(d.stuckAfter())}
	answer.Healthy = answer.Stuck == ""
	writeJSON(w, answer.Healthy, answer)
}

// readiness reports whether the daemon processes all lines, and lists the current problems.
func (d *Daemon) readiness(w http.ResponseWriter, _ *http.Request) {
	answer := struct {
		Ready    bool      `json:"ready"`
		Sandbox  string    `json:"sandbox,omitempty"`
		Problems []problem `json:"problems,omitempty"`
	}{Problems: d.problems(time.Now()), Sandbox: d.house.box.String()}
	answer.Ready = isReady(answer.Problems)
	writeJSON(w, answer.Ready, answer)
}

func writeJSON(w http.ResponseWriter, good bool, v any) {
	w.Header().Set("Content-Type", "application/json")
	if !good {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(v) // fails only if the client has disconnected
}
