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

// A Client finds files on debuginfod servers and keeps them in the cache. It fetches a file once,
// however many callers wait for it. It is safe for concurrent use. Call Close after use.
type Client struct {
	o       Options
	timeout time.Duration
	agent   string
	servers []*server
	cache   *diskCache
	headers headersFile
	rate    askRate

	direct  *http.Transport               // transport to the operator's servers
	guarded [loopback + 1]*http.Transport // for redirects, by the scope of the servers so far

	ctx     context.Context
	cancel  context.CancelCauseFunc
	running sync.WaitGroup
	// slots for downloads at the same time; the index is the number of servers that a request has
	// passed
	slots [MaxForwarded + 1]chan struct{}

	mu      sync.Mutex
	closed  bool
	flights map[key]*flight

	recalled map[buildid.ID]struct{} // IDs whose misses were believed; at most maxHeld
}

// New returns a Client. It makes no request and opens no file. It fails only for invalid Options.
func New(o Options) (*Client, error) {
	if o.MaxSize < 0 || o.MaxTime < 0 || o.CacheMax < 0 {
		return nil, errors.New("debuginfod: a limit in Options is negative")
	}
	if o.CacheDir == "" {
		o.CacheDir = cacheDir(os.Getenv)
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
		cache:   newCache(o.CacheDir),
		servers: parseURLs(o.URLs),
		headers: headersFile{path: o.HeadersFile},
		direct:  newTransport(nil),
		flights: map[key]*flight{},
	}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	for from := range c.guarded {
		c.guarded[from] = newTransport(scope(from).refuse())
	}
	for i := range c.slots {
		c.slots[i] = make(chan struct{}, maxFlights)
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c, nil
}

// A Server is one of the operator's servers.
type Server struct {
	URL     string // without user and password
	Refused string // reason why the server is never asked; empty if it may be asked
}

// Servers returns the servers in the order of the Options.
func (c *Client) Servers() []Server {
	var all []Server
	for _, s := range c.servers {
		all = append(all, Server{s.name, s.refused})
	}
	return all
}

// Close ends all downloads at once and waits for the end of the client's goroutines. Files that
// were returned stay open.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.running.Wait()
	if len(c.servers) == 0 {
		return nil // the calls below would initialize HTTP/2, which takes time
	}
	c.direct.CloseIdleConnections()
	for _, t := range c.guarded {
		t.CloseIdleConnections()
	}
	return nil
}

// Find returns the file for q, from the cache or a server; the caller closes it. It calls note,
// which may be nil, for each place without the file. If ctx ends, Find returns at once, but the
// download continues for other callers. If servers are asked, the error wraps [fs.ErrNotExist] only
// if every server answered that it has no such file.
func (c *Client) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if note == nil {
		note = func(buildid.Attempt) {}
	}
	if q.ID.IsZero() {
		return nil, fmt.Errorf("debuginfod: no build ID: %w", fs.ErrNotExist)
	}
	if isVDSO(q.Name) {
		note(buildid.Attempt{Where: "debuginfod", Reason: "not requested: the vDSO is part of the kernel, and no server has it"})
		return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, fs.ErrNotExist)
	}
	if c.o.Offline || len(c.servers) == 0 {
		return c.cache.find(ctx, q, note)
	}
	var failed error
	for _, k := range keys(q) {
		k.forwarded = forwarded(ctx)
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
				break // no server answered: none is asked for the executable either
			}
		}
	}
	if failed != nil {
		return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, failed)
	}
	return nil, fmt.Errorf("debuginfod: build ID %s: %w", q.ID, fs.ErrNotExist)
}

// A failedError reports a search in which at least one server failed, so the file may exist.
type failedError struct {
	reason string
	missed bool // a server answered that it has no such file
}

func (e *failedError) Error() string { return e.reason }

// find returns k's file from the cache or a flight.
func (c *Client) find(ctx context.Context, k key, name string, note func(buildid.Attempt)) (*buildid.File, error) {
	f, l, err := c.lookUp(k)
	switch {
	case f != nil:
		return f, nil
	case c.believed(l):
		note(c.remembered(k, l))
		return nil, fs.ErrNotExist
	case l.wrong:
		note(buildid.Attempt{Where: filepath.Join(c.cache.dir, k.path()), Reason: l.reason + "; requested again"})
	case err != nil:
		note(buildid.Attempt{Where: c.cache.where(), Reason: "not used: " + lastError(err).Error()})
	case strings.HasPrefix(l.reason, "not used"):
		note(buildid.Attempt{Where: filepath.Join(c.cache.dir, k.path()), Reason: l.reason})
	}
	return c.join(ctx, k, name, note)
}

// lookUp searches the cache for k. It returns an error only if the whole cache cannot be used.
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

// remembered returns the Attempt that reports a miss from the cache. It also adds k's build ID to
// c.recalled, up to maxHeld IDs.
func (c *Client) remembered(k key, l look) buildid.Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recalled == nil {
		c.recalled = map[buildid.ID]struct{}{}
	}
	if len(c.recalled) < maxHeld {
		c.recalled[k.id] = struct{}{}
	}
	return buildid.Attempt{Where: filepath.Join(c.cache.dir, k.path()), Reason: l.missReason()}
}

// rememberedIDs returns the number of build IDs, at most maxHeld, for which a cached miss was used
// in place of a request.
func (c *Client) rememberedIDs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.recalled)
}

// isVDSO reports whether name is a name of the vDSO, or of another mapping that the kernel adds to
// each process.
func isVDSO(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasPrefix(base, "linux-vdso") || strings.HasPrefix(base, "linux-gate") ||
		base == "[vdso]" || base == "[vsyscall]" || base == "[vvar]"
}
