package debuginfod

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

type dialControl = func(network, address string, c syscall.RawConn) error

// newTransport returns a transport that verifies certificates. No option or variable turns that
// off. control, if not nil, checks each address before it is dialed.
func newTransport(control dialControl) *http.Transport {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second, Control: control}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // begin inflates within our own bounds
		MaxIdleConnsPerHost:    maxFlights,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// A watch cancels a request if the server sends fewer than minProgress bytes in a period of length
// d.
type watch struct {
	bytes  atomic.Int64 // bytes of the answer's body, counted by its reader
	d      time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
	last   int64
}

// newWatch starts a watch. The caller stops it after reading the answer. With a d of 0 or less, the
// watch never cancels.
func newWatch(d time.Duration, cancel context.CancelCauseFunc) *watch {
	w := &watch{d: d, cancel: cancel}
	if d > 0 {
		w.timer = time.AfterFunc(d, w.tick)
	}
	return w
}

func (w *watch) tick() {
	n := w.bytes.Load()
	if n-w.last < minProgress {
		w.cancel(errSlow)
		return
	}
	w.last = n
	w.timer.Reset(w.d)
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// get requests the URL of s followed by path, and follows redirects. The error is a *failure, a
// *redirectError, or an error of the network.
func (c *Client) get(ctx context.Context, s *server, path string) (*http.Response, error) {
	operator, err := c.headers.headers()
	if err != nil {
		return nil, &failure{reason: "not asked: " + err.Error(), blameless: true, local: true}
	}
	if c.o.FirstContact != nil {
		s.contact.Do(func() { c.o.FirstContact(s.name) })
	}
	u := *s.url
	u.Path = strings.TrimRight(u.Path, "/") + path
	if u.RawPath != "" {
		u.RawPath = strings.TrimRight(u.RawPath, "/") + path
	}
	at, trusted := &u, true
	var from scope // limits the next redirect; see narrowest
	for hops := 0; ; hops++ {
		var peer scope
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { peer = scopeOfPeer(info.Conn.RemoteAddr()) }}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, err
		}
		c.setHeaders(req, s, operator, trusted)
		transport := c.direct
		if hops > 0 {
			transport = c.guarded[from]
		}
		proxy, err := proxyOf(transport, req)
		if err != nil {
			return nil, &failure{reason: "the proxy that the environment names cannot be used", blameless: true, local: true}
		}
		if proxy {
			if to := scopeOfHost(at.Hostname()); hops > 0 && !from.mayLead(to) {
				return nil, &redirectError{at.Host, to}
			}
			transport = c.direct // the dialer would check the proxy's address
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		if proxy {
			peer = scopeOfHost(at.Hostname())
		}
		if hops == 0 {
			from = peer
		}
		from = narrowest(from, peer)
		to := resp.Header.Get("Location")
		switch resp.StatusCode {
		case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		default:
			return resp, nil
		}
		resp.Body.Close()
		next, err := at.Parse(to)
		switch {
		case err != nil || to == "" || next.Host == "" || next.Scheme != "http" && next.Scheme != "https":
			return nil, failuref("redirects to a target other than an http or https URL: refused")
		case at.Scheme == "https" && next.Scheme != "https":
			return nil, failuref("redirects from https to http: refused")
		case hops == maxRedirects:
			return nil, failuref("redirects more than %d times", maxRedirects)
		}
		next.User = nil
		trusted = trusted && sameOrigin(at, next)
		at = next
	}
}

// setHeaders sets the headers of req. trusted means that no redirect has left the operator's scheme
// and host. Otherwise the operator's headers and password are left out.
func (c *Client) setHeaders(req *http.Request, s *server, operator http.Header, trusted bool) {
	req.Header.Set("User-Agent", c.agent)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("X-Debuginfod-Maxsize", strconv.FormatInt(c.o.MaxSize, 10))
	if chain := forwarded(req.Context()); chain != "" {
		req.Header.Set("X-Forwarded-For", chain)
	} else if c.o.Forwarded != "" {
		req.Header.Set("X-Forwarded-For", c.o.Forwarded)
	}
	if !trusted {
		return
	}
	if s.user != nil {
		password, _ := s.user.Password()
		req.SetBasicAuth(s.user.Username(), password)
	}
	maps.Copy(req.Header, operator)
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

func proxyOf(t *http.Transport, req *http.Request) (bool, error) {
	if t.Proxy == nil {
		return false, nil
	}
	u, err := t.Proxy(req)
	return u != nil, err
}

func userAgent(version string) string {
	if version == "" {
		version = "devel"
	}
	return fmt.Sprintf("symfilter/%s (%s/%s)", version, runtime.GOOS, runtime.GOARCH)
}

// refused classifies an answer with a status other than 200: a miss, or a failure with its reason.
func refused(resp *http.Response, maxSize int64) (miss bool, f *failure) {
	code := resp.StatusCode
	switch {
	case code == http.StatusNotFound || code == http.StatusGone:
		return true, nil
	case code == http.StatusNotAcceptable:
		return false, tooBig(maxSize)
	case code == http.StatusUnauthorized || code == http.StatusForbidden || code == http.StatusProxyAuthRequired:
		return false, failuref("%d: requires other credentials (DEBUGINFOD_HEADERS_FILE)", code)
	case code == http.StatusTooManyRequests:
		return false, &failure{reason: "429: asked too often", retry: true, retryAfter: retryAfter(resp.Header, time.Now())}
	case code >= 500:
		return false, &failure{reason: fmt.Sprintf("%d: cannot answer now", code), retry: code != http.StatusNotImplemented,
			retryAfter: retryAfter(resp.Header, time.Now())}
	}
	return false, failuref("answered %d, unlike a debuginfod server", code)
}

func tooBig(maxSize int64) *failure {
	return &failure{reason: fmt.Sprintf("the file exceeds %d bytes (DEBUGINFOD_MAXSIZE)", maxSize), verdict: true, blameless: true}
}

// retryAfter returns the time in a Retry-After header, in seconds or as a date: at most breakMost,
// and 0 without a valid header.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(max(n, 0), int64(breakMost/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return min(max(t.Sub(now), 0), breakMost)
	}
	return 0
}
