package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// A Client finds files on debuginfod servers and keeps them in the cache. It may be used by many goroutines. Each file is fetched by one
// goroutine of the client's own at a time, whoever waits for it.
type Client struct {
	o       Options
	timeout time.Duration
	agent   string
	servers []*server
	cache   *Cache
	headers headersFile
	rate    askRate

	direct  *http.Transport               // to the servers of the operator
	guarded [loopback + 1]*http.Transport // to where servers of a scope redirect, by that scope

	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	slots   chan struct{}

	mu      sync.Mutex
	closed  bool
	flights map[key]*flight
}

// New returns a client. It asks nobody and touches no file yet. An error is about Options that cannot be meant.
func New(o Options) (*Client, error) {
	if o.MaxSize < 0 || o.MaxTime < 0 || o.CacheMax < 0 {
		return nil, errors.New("debuginfod: a limit is negative")
	}
	if o.CacheDir == "" {
		o.CacheDir = CacheDir(os.Getenv)
	}
	if o.MaxTime == 0 {
		o.MaxTime = defaultMaxTime
	}
	if o.MaxSize == 0 {
		o.MaxSize = defaultMaxSize
	}
	if o.RetryLimit == 0 {
		o.RetryLimit = defaultRetries
	}
	c := &Client{
		o:       o,
		timeout: o.Timeout,
		agent:   userAgent(o.Version),
		cache:   NewCache(o.CacheDir),
		servers: parseURLs(o.URLs),
		headers: headersFile{path: o.HeadersFile},
		direct:  newTransport(nil),
		slots:   make(chan struct{}, maxFlights),
		flights: map[key]*flight{},
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	for from := range c.guarded {
		c.guarded[from] = newTransport(scope(from).refuse())
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c, nil
}

// Server is a server of the operator's.
type Server struct {
	URL     string // without user and password
	Refused string // why it is never asked; empty: it may be
}

// Servers returns the servers in the order of the Options.
func (c *Client) Servers() []Server {
	var all []Server
	for _, s := range c.servers {
		all = append(all, Server{s.name, s.refused})
	}
	return all
}

// Cache returns the client's cache.
func (c *Client) Cache() *Cache { return c.cache }

// Close ends all downloads at once and waits until nothing of the client runs. Files that were found stay open.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.running.Wait()
	c.direct.CloseIdleConnections()
	for _, t := range c.guarded {
		t.CloseIdleConnections()
	}
	return nil
}

// Find returns the file that q asks for, from the cache or a server. When ctx ends it returns at once; the download goes on if others wait
// for it. The error wraps [fs.ErrNotExist] when every server said that it has no such file, and only then.
func (c *Client) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if note == nil {
		note = func(buildid.Attempt) {}
	}
	if q.ID.IsZero() {
		return nil, fmt.Errorf("debuginfod: no build ID: %w", fs.ErrNotExist)
	}
	if isVDSO(q.Name) {
		note(buildid.Attempt{Where: "debuginfod", Said: "not asked: this is part of the kernel, which no server has"})
		return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, fs.ErrNotExist)
	}
	if c.o.Offline || len(c.servers) == 0 {
		return c.cache.Find(ctx, q, note)
	}
	var failed error
	for _, k := range keys(q) {
		f, err := c.find(ctx, k, q.Name, note)
		if err == nil {
			return f, nil
		}
		if ctx.Err() != nil || errors.Is(err, ErrClosed) {
			return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, err)
		}
		if !errors.Is(err, fs.ErrNotExist) && failed == nil {
			failed = err
			if f, ok := err.(*failedError); ok && !f.missed {
				break // nobody answered, so nobody is asked for the executable either
			}
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, failed)
	}
	return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, fs.ErrNotExist)
}

// A failedError says that a file was not found and may exist.
type failedError struct {
	said   string
	missed bool // some server said that it has no such file
}

func (e *failedError) Error() string { return e.said }

// find returns k's file from the cache or by a flight.
func (c *Client) find(ctx context.Context, k key, name string, note func(buildid.Attempt)) (*buildid.File, error) {
	f, l, err := c.lookUp(k)
	switch {
	case f != nil:
		return f, nil
	case l.miss:
		note(c.remembered(k, l))
		return nil, fs.ErrNotExist
	case l.wrong:
		note(buildid.Attempt{Where: filepath.Join(c.cache.dir, k.path()), Said: l.said + "; asked for again"})
	case err != nil:
		note(buildid.Attempt{Where: c.cache.where(), Said: "not used: " + lastError(err).Error()})
	case strings.HasPrefix(l.said, "not used"):
		note(buildid.Attempt{Where: filepath.Join(c.cache.dir, k.path()), Said: l.said})
	}
	return c.join(ctx, k, name, note)
}

// lookUp looks into the cache. The error is about the cache as a whole.
func (c *Client) lookUp(k key) (*buildid.File, look, error) {
	root, err := c.cache.open()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, look{}, err
	}
	defer root.Close()
	f, l := c.cache.look(root, k)
	return f, l, nil
}

func (c *Client) remembered(k key, l look) buildid.Attempt {
	return buildid.Attempt{Where: filepath.Join(c.cache.dir, k.path()),
		Said: fmt.Sprintf("no server had such a file %v ago; not asked again yet", l.age.Round(time.Second))}
}

// isVDSO reports whether name is what programs call the code that the kernel maps into each process.
func isVDSO(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(base, "linux-vdso") || strings.HasPrefix(base, "linux-gate") ||
		base == "[vdso]" || base == "[vsyscall]" || base == "[vvar]"
}
