package debuginfod

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/symfilter/symfilter/buildid"
)

// A contender is one server in the race for one file.
type contender struct {
	s     *server
	tries int
	back  *backoff.ExponentialBackOff

	final  bool      // not to be asked again: miss or fault is the outcome
	known  bool      // the outcome is a remembered answer
	miss   bool      // the server has no such file
	fault  *failure  // the reason of a failure
	missed time.Time // time of the server's answer that it has no such file; set with miss
	reason string    // text for the [buildid.Attempt]
}

func (c *contender) fail(f *failure) {
	c.final, c.fault, c.reason = true, f, f.reason
}

// An answer is a response with status 200 whose body begins as expected. The receiver closes it.
type answer struct {
	c      *contender
	resp   *http.Response
	body   *bufio.Reader
	wire   *counter
	zipped bool
	ctx    context.Context
	watch  *watch
	began  time.Time
	stop   func()
}

func (a *answer) close() {
	a.stop()
	a.resp.Body.Close()
}

// total returns the size of the inflated body in bytes, or -1 if the server does not state it.
func (a *answer) total() int64 {
	if !a.zipped && a.resp.ContentLength >= 0 {
		return a.resp.ContentLength
	}
	if n, err := strconv.ParseInt(a.resp.Header.Get("X-Debuginfod-Size"), 10, 64); err == nil && n >= 0 {
		return n
	}
	return -1
}

// A counter counts bytes from the network. It fails after more bytes than a file of maxSize needs:
// a stream of empty gzip members, which inflate to nothing, could otherwise be endless.
type counter struct {
	r       io.Reader
	w       *watch
	maxSize int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.w.bytes.Add(int64(n)) > c.maxSize+c.maxSize/packedShare+maxHeader {
		return n, tooBig(c.maxSize)
	}
	return n, err
}

// contenders returns one contender for each server. Refused servers, and servers with a remembered
// answer about k, have final contenders.
func (c *Client) contenders(k key) []*contender {
	var all []*contender
	now := time.Now()
	for _, s := range c.servers {
		e := &contender{s: s, back: backoff.NewExponentialBackOff()}
		e.back.InitialInterval, e.back.MaxInterval, e.back.Multiplier = retryFirst, retryMost, 2
		e.back.Reset()
		if s.refused != "" {
			e.fail(&failure{reason: s.refused})
		} else if v, ok := s.verdictOn(k, now); ok {
			if e.final, e.known, e.miss, e.missed, e.reason = true, true, v.miss, v.at, v.reason; !v.miss {
				e.fault = &failure{reason: v.reason}
			}
		}
		all = append(all, e)
	}
	return all
}

// race asks all contenders that are not final for path at the same time. It returns the first
// answer whose body begins with magic. If it returns nil, all contenders are final, or ctx is done.
func (c *Client) race(ctx context.Context, all []*contender, path, magic string) *answer {
	answers := make(chan *answer)
	cancels := map[*contender]context.CancelCauseFunc{}
	for _, e := range all {
		if e.final {
			continue
		}
		ctx, cancel := context.WithCancelCause(ctx)
		cancels[e] = cancel
		go func() { answers <- c.contend(ctx, e, path, magic) }()
	}
	var won *answer
	for range len(cancels) {
		a := <-answers
		switch {
		case a == nil:
		case won != nil:
			a.close()
			c.answered(a, &failure{canceled: true})
		default:
			won = a
			for e, cancel := range cancels {
				if e != a.c {
					cancel(errLost)
				}
			}
		}
	}
	for e, cancel := range cancels {
		if won == nil || e != won.c {
			cancel(nil)
			continue
		}
		stop := won.stop
		won.stop = func() { stop(); cancel(errLost) }
	}
	return won
}

// contend requests the file from one server, with retries, until the server sends an answer, e is
// final or ctx is done.
func (c *Client) contend(ctx context.Context, e *contender, path, magic string) *answer {
	for {
		if e.tries > 0 && !pause(ctx, e.wait()) {
			return nil
		}
		if said, ok := e.s.allow(time.Now()); !ok {
			e.fail(&failure{reason: said})
			return nil
		}
		began := time.Now()
		a, f := c.once(ctx, e, path, magic)
		e.tries++
		if a != nil {
			return a // the caller reports the outcome after it has read the body
		}
		e.s.outcome(f)
		c.observe(e.s, NotThere, f, 0, began)
		if f == nil || f.canceled {
			return nil
		}
		again := c.mayRetry(e, f)
		if !again || f.unreached {
			c.reportFailure(e.s, f)
		}
		if !again {
			e.fail(f)
			return nil
		}
		e.fault = f
	}
}

// answered reports the outcome of the closed answer a to its server's breaker and to
// Options.Observe.
func (c *Client) answered(a *answer, f *failure) {
	a.c.s.outcome(f)
	c.observe(a.c.s, Found, f, a.watch.bytes.Load(), a.began)
}

// observe passes a completed request to Options.Observe. good is its outcome if f is nil.
func (c *Client) observe(s *server, good Outcome, f *failure, bytes int64, began time.Time) {
	if c.o.Observe == nil {
		return
	}
	switch {
	case f != nil && f.canceled:
		good = Canceled
	case f != nil:
		good = Failed
	}
	c.o.Observe(Request{s.name, good, bytes, time.Since(began)})
}

// reportFailure calls Options.FirstFailure, once for each server, if f is a fault of the server or
// of this machine.
func (c *Client) reportFailure(s *server, f *failure) {
	if c.o.FirstFailure != nil && (!f.blameless || f.local) {
		s.trouble.Do(func() { c.o.FirstFailure(s.name, f.reason) })
	}
}

// mayRetry reports whether e's server may be asked again after the failure f.
func (c *Client) mayRetry(e *contender, f *failure) bool {
	return f.retry && e.tries <= c.o.RetryLimit && f.retryAfter <= retryAfterMax
}

// wait returns the time before the next retry.
func (e *contender) wait() time.Duration {
	d := e.back.NextBackOff()
	if e.fault != nil {
		d = max(d, e.fault.retryAfter)
	}
	return d
}

// pause waits for d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once makes one request. It returns an answer or a failure, or neither if the server has no such
// file.
func (c *Client) once(ctx context.Context, e *contender, path, magic string) (*answer, *failure) {
	began := time.Now()
	try, stop := context.WithCancelCause(ctx)
	w := newWatch(c.timeout, stop)
	undo := func() { w.stop(); stop(errLost) }
	resp, err := c.get(try, e.s, path)
	if err != nil {
		f := c.failed(try, err, began, false)
		undo()
		return nil, f
	}
	if resp.StatusCode != http.StatusOK {
		defer undo()
		defer resp.Body.Close()
		// A body after status 101 is the connection itself. Canceling a context does not end a read
		// from it, so it is not read.
		if resp.StatusCode != http.StatusSwitchingProtocols {
			late := time.AfterFunc(drainFor, func() { stop(errLost) })
			io.CopyN(io.Discard, resp.Body, maxHeader) // to reuse the connection
			late.Stop()
		}
		miss, f := refused(resp, c.o.MaxSize)
		if miss {
			e.final, e.miss, e.missed, e.reason = true, true, time.Now(), fmt.Sprintf("%d: no such file", resp.StatusCode)
		}
		return nil, f
	}
	a := &answer{c: e, resp: resp, ctx: try, watch: w, began: began, stop: undo}
	a.wire = &counter{resp.Body, w, c.o.MaxSize}
	if f := c.begin(a, magic); f != nil {
		a.close()
		return nil, f
	}
	return a, nil
}

// begin checks the header of a, and prepares to read the body, inflated. It fails unless the body
// begins with magic.
func (c *Client) begin(a *answer, magic string) *failure {
	var r io.Reader = a.wire
	switch encoding := strings.ToLower(a.resp.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return c.failed(a.ctx, err, a.began, true)
		}
		r, a.zipped = z, true
	default:
		return failuref("sent its answer in the encoding %.20q, which was not asked for", encoding)
	}
	if a.resp.ContentLength > c.o.MaxSize || a.total() > c.o.MaxSize {
		return tooBig(c.o.MaxSize)
	}
	a.body = bufio.NewReaderSize(r, 64<<10)
	head, err := a.body.Peek(len(magic))
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return c.failed(a.ctx, err, a.began, true)
	case len(head) == 0 && len(magic) > 0:
		return failuref("sent an empty file")
	case !bytes.Equal(head, []byte(magic)):
		kind, _, _ := strings.Cut(a.resp.Header.Get("Content-Type"), ";")
		return failuref("sent something other than an ELF file (%.40q)", kind)
	}
	return nil
}

// copyBody copies the body of a to w within the limits. It calls tell with the bytes copied so far,
// and returns their final number.
func (c *Client) copyBody(w io.Writer, a *answer, maxSize int64, tell func(bytes int64)) (int64, *failure) {
	buf := make([]byte, 128<<10)
	var n int64
	for {
		m, err := a.body.Read(buf)
		if n += int64(m); n > maxSize {
			return n, tooBig(maxSize)
		}
		if a.zipped && n > freeInflate && n/maxRatio > a.watch.bytes.Load() {
			return n, failuref("sent an answer that inflates to more than %d times its size", maxRatio)
		}
		if m > 0 {
			if _, err := w.Write(buf[:m]); err != nil {
				return n, &failure{reason: "the file could not be stored: " + lastError(err).Error(), blameless: true, local: true}
			}
			tell(n)
		}
		switch {
		case err == io.EOF:
			if total := a.total(); total >= 0 && n != total {
				return n, &failure{reason: fmt.Sprintf("sent %d of %d bytes", n, total), retry: true}
			}
			return n, nil
		case err != nil && errors.Is(err, io.ErrUnexpectedEOF) && a.total() >= 0:
			return n, &failure{reason: fmt.Sprintf("sent %d of %d bytes", n, a.total()), retry: true}
		case err != nil:
			return n, c.failed(a.ctx, err, a.began, true)
		}
	}
}

// misses returns the answers of the contenders without the file.
func misses(all []*contender) (some []serverMiss) {
	for _, e := range all {
		if e.miss {
			some = append(some, serverMiss{e.s.name, e.missed})
		}
	}
	return some
}

// verdicts stores the servers' final answers about k. It returns an Attempt for each contender that
// answered or failed.
func verdicts(all []*contender, k key, missFor time.Duration) []buildid.Attempt {
	var notes []buildid.Attempt
	now := time.Now()
	for _, e := range all {
		if !e.final && e.fault == nil {
			continue // canceled before it answered
		}
		said := e.reason
		if !e.final {
			said = e.fault.reason
		}
		notes = append(notes, buildid.Attempt{Where: e.s.name, Reason: said})
		switch {
		case e.s.refused != "" || e.known || !e.final:
		case e.miss:
			e.s.remember(k, verdict{true, e.reason, e.missed, e.missed.Add(missFor)}, now)
		case e.fault.verdict:
			e.s.remember(k, verdict{false, e.reason, now, now.Add(rememberWrong)}, now)
		}
	}
	return notes
}
