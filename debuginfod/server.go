package debuginfod

import (
	"fmt"
	"net/url"
	"sync"
	"time"
)

// A server is one of the operator's URLs, with its state.
type server struct {
	prefix  string // the URL as given, without slashes at its end
	name    string // name for messages: without user and password
	url     *url.URL
	user    *url.Userinfo
	refused string // reason why the server is never asked; empty if it may be asked

	contact sync.Once // guards the call of FirstContact
	trouble sync.Once // guards the call of FirstFailure

	mu       sync.Mutex
	breaker  breaker
	verdicts map[key]verdict
}

// A verdict is a server's final answer about one file. The server is not asked about the file again
// before the time in until.
type verdict struct {
	miss   bool // the server has no such file; if false, the file that it sent cannot be used
	reason string
	at     time.Time // time of the server's answer
	until  time.Time
}

// verdictOn returns the valid verdict about k, if any, at the time now.
func (s *server) verdictOn(k key, now time.Time) (verdict, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.verdicts[k]
	if ok && !now.Before(v.until) {
		delete(s.verdicts, k)
		ok = false
	}
	return v, ok
}

// remember stores v. Beyond maxVerdicts, it removes expired verdicts, or a random one if none has
// expired.
func (s *server) remember(k key, v verdict, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.verdicts) >= maxVerdicts {
		for k, v := range s.verdicts {
			if !now.Before(v.until) {
				delete(s.verdicts, k)
			}
		}
		for k := range s.verdicts {
			if len(s.verdicts) < maxVerdicts {
				break
			}
			delete(s.verdicts, k)
		}
	}
	s.verdicts[k] = v
}

// A breaker pauses requests to a server after breakAfter failures in a row, and until the end of a
// long Retry-After. After a pause one request may try the server; if it fails too, the pause
// doubles. A breaker is not safe for concurrent use.
type breaker struct {
	failures int           // number of failures in a row
	pause    time.Duration // length of the last pause
	until    time.Time     // no request before this time
	trying   bool          // the trial request after a pause is running
}

// allow reports whether a request may be made at the time now. If so, the caller must report its
// outcome by good, bad or abandoned.
func (b *breaker) allow(now time.Time) bool {
	switch {
	case now.Before(b.until):
		return false
	case b.failures < breakAfter:
		return true
	case b.trying:
		return false
	}
	b.trying = true
	return true
}

func (b *breaker) good()      { *b = breaker{} }
func (b *breaker) abandoned() { b.trying = false }

func (b *breaker) bad(now time.Time, retryAfter time.Duration) {
	b.trying = false
	if b.failures++; b.failures >= breakAfter {
		b.pause = min(max(2*b.pause, breakFirst), breakMost)
		b.until = now.Add(b.pause)
	}
	if retryAfter > retryAfterMax {
		if until := now.Add(min(retryAfter, breakMost)); until.After(b.until) {
			b.until = until
		}
	}
}

// allow reports whether the breaker allows a request. If it refuses the request, the returned
// string is the reason.
func (s *server) allow(now time.Time) (said string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.breaker.allow(now) {
		return "", true
	}
	if wait := s.breaker.until.Sub(now); wait > 0 {
		return fmt.Sprintf("not asked: the last request failed; the next one is possible in %v", wait.Round(time.Second)), false
	}
	return "not asked: the last request failed, and another one is in progress", false
}

// outcome reports the outcome of a request to the breaker. f is nil if the server sent the whole
// file, or answered that it has none.
func (s *server) outcome(f *failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f == nil:
		s.breaker.good()
	case f.canceled || f.blameless:
		s.breaker.abandoned()
	default:
		s.breaker.bad(time.Now(), f.retryAfter)
	}
}
