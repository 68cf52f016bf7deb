package debuginfod

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// A flight is the search of all servers for one file. All callers for the file share it. It is
// canceled when the last caller leaves.
type flight struct {
	cancel  context.CancelFunc
	done    chan struct{}
	waiters int  // guarded by Client.mu
	over    bool // guarded by Client.mu; the fields below are set

	file  *shared // holds one reference for each waiter
	notes []buildid.Attempt
	err   error
}

// join waits for the flight of k. It starts one if necessary. Close waits for the flight's
// goroutine.
func (c *Client) join(ctx context.Context, k key, name string, note func(buildid.Attempt)) (*buildid.File, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	f := c.flights[k]
	if f == nil {
		flying, cancel := context.WithCancel(c.ctx)
		f = &flight{cancel: cancel, done: make(chan struct{})}
		c.flights[k] = f
		c.running.Go(func() { c.fly(flying, f, k, name) })
	}
	f.waiters++
	c.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
		c.leave(k, f)
		return nil, context.Cause(ctx)
	}
	for _, a := range f.notes {
		note(a)
	}
	if f.file == nil {
		return nil, f.err
	}
	return f.file.file(c), nil
}

// leave removes one waiter from f. It cancels f when the last waiter leaves.
func (c *Client) leave(k key, f *flight) {
	c.mu.Lock()
	if f.over {
		file := f.file
		c.mu.Unlock()
		if file != nil {
			(&ref{c, file}).Close()
		}
		return
	}
	if f.waiters--; f.waiters == 0 {
		f.cancel()
		if c.flights[k] == f {
			delete(c.flights, k)
		}
	}
	c.mu.Unlock()
}

func (c *Client) fly(ctx context.Context, f *flight, k key, name string) {
	defer f.cancel()
	file, notes, err := c.fetch(ctx, k, name)

	c.mu.Lock()
	f.over, f.file, f.notes, f.err = true, file, notes, err
	if c.flights[k] == f {
		delete(c.flights, k)
	}
	unwanted := false
	if file != nil {
		file.refs = f.waiters
		unwanted = f.waiters == 0
	}
	close(f.done)
	c.mu.Unlock()

	if unwanted {
		file.close()
	}
	c.cache.boundMisses()
	if file != nil && c.ctx.Err() == nil {
		c.cache.clean(time.Now())
		if c.o.CacheMax > 0 {
			c.cache.trim(c.o.CacheMax, k.path())
		}
	}
}

// fetch fetches k from the first server that has it. It first waits for one of maxFlights slots
// and, unless the search is forwarded, for other processes that fetch k.
func (c *Client) fetch(ctx context.Context, k key, name string) (*shared, []buildid.Attempt, error) {
	slots := c.slots[passed(k.forwarded)]
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, nil, c.ended(ctx)
	}
	if k.forwarded != "" {
		ctx = WithForwarded(ctx, k.forwarded)
	} else {
		release, err := c.cache.lock(ctx, k, c.o.MaxTime)
		if err != nil {
			return nil, nil, c.ended(ctx)
		}
		defer release()
	}
	f, l, _ := c.lookUp(k) // another process may have fetched it while it held the lock
	switch {
	case f != nil:
		return &shared{f: f.OS(), size: f.Size(), path: f.Path(), where: f.Where()}, nil, nil
	case c.believed(l):
		return nil, []buildid.Attempt{c.remembered(k, l)}, fs.ErrNotExist
	case l.wrong:
		c.cache.forget(k)
	}

	ctx, cancel := context.WithTimeoutCause(ctx, c.o.MaxTime, errTotal)
	defer cancel()
	all := c.contenders(k)
	c.recall(all, l)
	if !c.admit(k.id, all) {
		return nil, verdicts(all, k, c.cache.missFor()), summary(all)
	}
	t := &progressReporter{c: c, p: Progress{ID: k.id, Kind: k.kind, Name: name, Total: -1}}
	t.tell()
	file, notes := c.fetchFrom(ctx, k, all, t)
	notes = append(notes, verdicts(all, k, c.cache.missFor())...)
	var err error
	switch {
	case file != nil:
	case c.ctx.Err() != nil || errors.Is(context.Cause(ctx), context.Canceled):
		err = c.ended(ctx)
	default:
		err = summary(all)
		if err == fs.ErrNotExist && k.source == "" && k.forwarded == "" {
			c.cache.rememberMiss(k, misses(all))
		}
	}
	t.end(err)
	return file, notes, err
}

// fetchFrom asks the contenders at the same time, and again after a bad file, until one sends the
// right file. It returns nil if none does.
func (c *Client) fetchFrom(ctx context.Context, k key, all []*contender, t *progressReporter) (*shared, []buildid.Attempt) {
	for {
		a := c.race(ctx, all, k.url(), k.magic())
		if a == nil {
			return nil, nil
		}
		file, notes, f := c.receive(a, k, t)
		a.close()
		c.answered(a, f)
		if f == nil {
			return file, notes
		}
		if f.canceled {
			return nil, nil
		}
		if a.c.fault = f; !c.mayRetry(a.c, f) {
			c.reportFailure(a.c.s, f)
			a.c.fail(f)
		}
	}
}

// receive writes the body of a to the cache. It verifies the file and gives it its name.
func (c *Client) receive(a *answer, k key, t *progressReporter) (*shared, []buildid.Attempt, *failure) {
	local := func(err error) *failure {
		return &failure{reason: "the file could not be stored: " + lastError(err).Error(), blameless: true, local: true}
	}
	s, err := c.cache.spool(k)
	if err != nil {
		s.abandon()
		return nil, nil, local(err)
	}
	t.begin(a.c.s.name, a.total())
	if _, f := c.copyBody(s, a, c.most(k), t.sent); f != nil {
		s.abandon()
		return nil, nil, f
	}
	if k.source != "" && s.n == 0 { // an empty file of the cache is a miss
		s.abandon()
		return nil, nil, &failure{reason: "sent an empty file", verdict: true}
	}
	if err := k.verify(s.f, s.n); err != nil {
		s.abandon()
		_, other := errors.AsType[*otherBuildError](err)
		whole := other || errors.Is(err, buildid.ErrNoID)
		return nil, nil, &failure{reason: "sent a wrong file: " + err.Error(), verdict: whole, retry: !whole}
	}
	modified, _ := http.ParseTime(a.resp.Header.Get("Last-Modified"))
	file, err := s.commit(modified, "debuginfod "+a.c.s.name)
	if err != nil {
		return nil, nil, local(err)
	}
	var notes []buildid.Attempt
	if s.loose != nil {
		notes = append(notes, buildid.Attempt{Where: c.cache.where(),
			Reason: "the file could not be stored: " + lastError(s.loose).Error()})
	}
	return file, notes, nil
}

// ended returns the error of a canceled flight.
func (c *Client) ended(ctx context.Context) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	return context.Cause(ctx)
}

// summary returns the error of a race without a winner: fs.ErrNotExist if all servers answered that
// they have no such file.
func summary(all []*contender) error {
	failed := slices.DeleteFunc(slices.Clone(all), func(e *contender) bool { return e.miss })
	if len(failed) == 0 {
		return fs.ErrNotExist
	}
	first, missed := failed[0], len(failed) < len(all)
	said := "was not asked in time"
	if first.fault != nil {
		said = first.fault.reason
	}
	err := &failedError{fmt.Sprintf("%s: %s", first.s.name, said), missed}
	if n := len(failed) - 1; n > 0 {
		err.reason += fmt.Sprintf(" (and %d more)", n)
	}
	return err
}

// A progressReporter calls Options.Progress. One goroutine at a time may use it.
type progressReporter struct {
	c    *Client
	p    Progress
	last time.Time
}

func (t *progressReporter) tell() {
	if t.c.o.Progress != nil {
		t.last = time.Now()
		t.c.o.Progress(t.p)
	}
}

func (t *progressReporter) begin(server string, total int64) {
	t.p.Server, t.p.Total, t.p.Bytes = server, total, 0
	t.sent(0)
}

func (t *progressReporter) sent(bytes int64) {
	if t.p.Bytes = bytes; time.Since(t.last) >= progressEvery {
		t.tell()
	}
}

func (t *progressReporter) end(err error) {
	t.p.Done, t.p.Err = true, err
	t.tell()
}
