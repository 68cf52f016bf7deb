package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Default paths of the inputs. systemd-journal-upload appends its own path to the configured URL.
const (
	filterPath = "/v1/filter"
	uploadPath = "/upload"
)

// An httpInput is an input that owns paths of an HTTP server, for logs or journals.
type httpInput struct {
	p     *pipeline
	web   *web
	paths []string
	site  *site
	end   func(*session) error // called after the last request of a run; may be nil
	ready chan struct{}        // closed when the first run has its paths, or failed to get them
	once  sync.Once

	mu       sync.Mutex
	ctx      context.Context // context of the run; nil if the input is not running
	requests sync.WaitGroup
	keys     map[string]bool // keys of the requests in progress
}

// webPaths returns the address and paths of an HTTP input. The address of other inputs is empty.
func (c *Input) webPaths() (address string, paths []string) {
	switch {
	case c.HTTP != "" && c.Path == "":
		return c.HTTP, []string{filterPath}
	case c.HTTP != "":
		return c.HTTP, []string{c.Path}
	case c.Journal == "":
		return "", nil
	case strings.HasSuffix(c.Path, uploadPath):
		return c.Journal, []string{c.Path}
	case c.Path == "" || c.Path == "/":
		return c.Journal, []string{uploadPath}
	}
	return c.Journal, []string{c.Path, strings.TrimSuffix(c.Path, "/") + uploadPath}
}

func openHTTP(p *pipeline, c Input) (runner, error) {
	h := &httpInput{p: p, keys: make(map[string]bool), ready: make(chan struct{})}
	h.site = &site{
		owner: "the pipeline " + p.name, hosts: func() []string { return p.stage.Load().conf.Input.Hosts },
		begin: h.begin, end: h.done, serve: h.filter,
	}
	if c.Journal != "" {
		j := &journalInput{h: h}
		h.site.serve, h.end = j.upload, j.end
	}
	address, paths := c.webPaths()
	for _, path := range paths {
		if !strings.HasPrefix(path, "/") {
			return nil, fmt.Errorf("path: %q must begin with /, like %s", path, filterPath)
		}
	}
	h.paths = paths
	web, err := p.house.webs.open(address, admission{tls: c.TLS, allowRemote: c.AllowRemote, mode: c.Mode})
	if err != nil {
		return nil, err
	}
	h.web = web
	return h, nil
}

func (h *httpInput) run(ctx context.Context) (err error) {
	h.mu.Lock()
	h.ctx = ctx
	h.mu.Unlock()
	if err := h.p.memory.open(contextsPath(h.p.state)); err != nil {
		h.p.log.Error("cannot save the contexts of peers", "error", err)
	}
	defer h.p.memory.close()
	var background sync.WaitGroup
	defer background.Wait()
	ended := make(chan struct{})
	defer close(ended)
	background.Go(func() { h.p.memory.saveUntil(ended) })
	defer h.once.Do(func() { close(h.ready) })
	defer func() {
		for _, path := range h.paths {
			h.web.leave(path, h.site)
		}
		h.mu.Lock()
		h.ctx = nil
		h.mu.Unlock()
		h.requests.Wait()
		if h.end != nil {
			err = errors.Join(err, h.end(nil))
		}
	}()
	for _, path := range h.paths {
		if err := h.web.take(path, h.site); err != nil {
			return err
		}
	}
	h.once.Do(func() { close(h.ready) })
	<-ctx.Done()
	return nil
}

func (h *httpInput) close() error {
	h.web.release()
	return nil
}

// begin begins a request, which ends with done. It returns false if the input is not running.
func (h *httpInput) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil {
		return false
	}
	h.requests.Add(1)
	h.p.counts.connections.Add(1)
	return true
}

func (h *httpInput) done() {
	h.p.counts.connections.Add(-1)
	h.requests.Done()
}

// running returns a context that is done at the end of the input's run.
func (h *httpInput) running() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx == nil { // the run ended after the request had begun
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		return ctx
	}
	return h.ctx
}

// hold reserves a key for a request. It returns false if another request has it.
func (h *httpInput) hold(key string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys[key] {
		return false
	}
	h.keys[key] = true
	return true
}

func (h *httpInput) drop(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.keys, key)
}
