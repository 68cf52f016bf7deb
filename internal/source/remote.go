package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// servers is the state of requests to Options.Server. Finder.mu guards it.
type servers struct {
	flights  map[fileKey]*flight
	misses   map[buildid.ID]*buildMisses
	hopeless bool      // the last wait ended without a file
	minute   time.Time // start of the current minute
	waited   time.Duration
}

// buildMisses counts the successive requests for source files of one build that servers did not
// have.
type buildMisses struct {
	row   int // in a row
	until time.Time
}

// A flight is a request for a file.
type flight struct {
	done chan struct{}
	data []byte // set when done is closed, like err
	err  error
}

func (s *servers) init() {
	s.flights = make(map[fileKey]*flight)
	s.misses = make(map[buildid.ID]*buildMisses)
}

var (
	errSoon       = errors.New("symfilter will ask again")
	errLate       = fmt.Errorf("the servers have not sent the file yet: %w", errSoon)
	errNoBuild    = errors.New("servers not asked: they have no sources of this build")
	errUnaskable  = errors.New("servers not asked: they need a build ID and an absolute path")
	errManyFlying = fmt.Errorf("servers not asked yet, since other files are being fetched: %w", errSoon)
)

// remote returns the file from the servers. If the wait ends first, the request continues.
func (f *Finder) remote(l symbolize.Location, file string, known *compiled) (*text, error) {
	if l.ID.IsZero() || file[0] != '/' {
		return nil, errUnaskable
	}
	k := fileKey{id: l.ID, file: file}
	f.mu.Lock()
	fl, err := f.begin(k)
	wait := time.Duration(0)
	if err == nil {
		wait = f.maxWait(time.Now())
	}
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if !fl.await(f, wait) {
		return nil, errLate
	}
	f.mu.Lock()
	delete(f.servers.flights, k)
	f.mu.Unlock()
	if fl.err != nil {
		return nil, fl.err
	}
	return checked(fl.data, "the server's "+file, known)
}

// begin returns the request in progress for the file k, or starts a request. The caller holds f.mu.
func (f *Finder) begin(k fileKey) (*flight, error) {
	s := &f.servers
	if fl := s.flights[k]; fl != nil {
		return fl, nil
	}
	if m := s.misses[k.id]; m != nil && m.row >= maxMisses {
		if time.Now().Before(m.until) {
			return nil, errNoBuild
		}
		m.row = 0
	}
	if len(s.flights) >= maxFetches {
		for k, fl := range s.flights { // answers that no caller has collected
			select {
			case <-fl.done:
				delete(s.flights, k)
			default:
			}
		}
		if len(s.flights) >= maxFetches {
			return nil, errManyFlying
		}
	}
	if f.ctx.Err() != nil {
		return nil, f.ctx.Err()
	}
	fl := &flight{done: make(chan struct{})}
	s.flights[k] = fl
	f.fetches.Go(func() {
		data, err := f.o.Server.Source(f.ctx, k.id, k.file, nil)
		if err == nil && len(data) > maxFile {
			data, err = nil, errors.New("the server's file is too large")
		}
		fl.data, fl.err = data, err
		f.mu.Lock()
		s.arrived(k.id, err)
		f.mu.Unlock()
		close(fl.done)
	})
	return fl, nil
}

func (s *servers) arrived(id buildid.ID, err error) {
	switch {
	case err == nil:
		s.hopeless = false
		delete(s.misses, id)
	case isMissing(err):
		m := s.misses[id]
		if m == nil {
			if len(s.misses) >= maxBuilds {
				clear(s.misses)
			}
			m = new(buildMisses)
			s.misses[id] = m
		}
		m.row++
		m.until = time.Now().Add(noBuildFor)
	}
}

// maxWait returns how long a question may wait for servers at time now. The caller holds f.mu.
func (f *Finder) maxWait(now time.Time) time.Duration {
	s := &f.servers
	if s.hopeless {
		return 0
	}
	if f.o.PerMinute == 0 {
		return f.o.Patience
	}
	if now.Sub(s.minute) >= time.Minute {
		s.minute, s.waited = now, 0
	}
	return max(0, min(f.o.Patience, f.o.PerMinute-s.waited))
}

// await waits at most wait for the end of the flight. It reports whether the flight has ended.
func (fl *flight) await(f *Finder, wait time.Duration) bool {
	select {
	case <-fl.done:
		return true
	default:
	}
	if wait == 0 {
		return false
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(f.ctx, wait)
	defer cancel()
	ended := false
	select {
	case <-fl.done:
		ended = true
	case <-ctx.Done():
	}
	f.mu.Lock()
	f.servers.waited += time.Since(began)
	f.servers.hopeless = !ended
	f.mu.Unlock()
	return ended
}
