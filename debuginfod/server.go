package debuginfod

import (
	"fmt"
	"net/url"
	"sync"
	"time"
)

// A server is one URL of the operator's, and what is known about it.
type server struct {
	prefix  string // as given, without the slash at its end
	name    string // for people: without user and password
	url     *url.URL
	user    *url.Userinfo
	refused string // why it is never asked; empty: it may be

	contact sync.Once // the first request

	mu       sync.Mutex
	breaker  breaker
	verdicts map[key]verdict
}

// A verdict is a final answer about one file, which need not be asked for again.
type verdict struct {
	miss  bool // the server has no such file; otherwise what it sent cannot be used
	said  string
	until time.Time
}

// known returns the verdict about k if there is one at the time now.
func (s *server) known(k key, now time.Time) (verdict, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.verdicts[k]
	if ok && !now.Before(v.until) {
		delete(s.verdicts, k)
		ok = false
	}
	return v, ok
}

// remember keeps v; where there are too many, the expired ones are forgotten, or any others.
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

// A breaker leaves a server alone that failed breakAfter times in a row. When its time is over one request may try; if that
// fails too, the time doubles. It is not for several goroutines.
type breaker struct {
	failures int           // in a row
	pause    time.Duration // of the last opening
	until    time.Time     // closed to requests before this
	trying   bool          // the one request is under way
}

// allow reports whether a request may be made at the time now. Its outcome must be told: [breaker.good], bad or abandoned.
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

// allow asks the breaker; where it says no, said is the note.
func (s *server) allow(now time.Time) (said string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.breaker.allow(now) {
		return "", true
	}
	if wait := s.breaker.until.Sub(now); wait > 0 {
		return fmt.Sprintf("not asked: it failed before and is left alone for another %v", wait.Round(time.Second)), false
	}
	return "not asked: it failed before and another request is trying it", false
}

// outcome tells the breaker how a request ended: nil is an answer that was received whole, whichever.
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
