package symbolize

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// find starts to look for e's file, in a goroutine, and reports whether there
// was room for one; e.mu is held and nobody else is finding.
func (s *Symbolizer) find(e *entry) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		e.err = ErrClosed
		e.done = closedChan()
		return true
	}
	select {
	case s.queue <- struct{}{}:
	default:
		return false
	}
	e.finding, e.first = true, e.module == nil
	e.done, e.local = make(chan struct{}), make(chan struct{})
	reached := e.local
	local := sync.OnceFunc(func() { close(reached) })
	free := sync.OnceFunc(func() { <-s.slots })
	names, avoid := slices.Clone(e.names), e.broken
	s.finding.Go(func() {
		s.slots <- struct{}{}
		f := s.search(e, names, avoid, func() {
			free() // servers may hang: they keep nobody from looking on this machine
			local()
		})
		free()
		<-s.queue

		e.mu.Lock()
		f.publish(s, e)
		e.finding, e.first, e.reopens = false, false, false
		close(e.done)
		local()
		e.mu.Unlock()
		s.relieve()
	})
	return true
}

// room waits until another search can be started, or ctx is done.
func (s *Symbolizer) room(ctx context.Context) error {
	select {
	case s.queue <- struct{}{}:
		<-s.queue
		return nil
	case <-ctx.Done():
		return ErrPending
	case <-s.ctx.Done():
		return ErrClosed
	}
}

func closedChan() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// found is the outcome of a search.
type found struct {
	module   *module // nil: none that can be used, or lent
	lent     bool    // the entry answers from a module already
	attempts []buildid.Attempt
	miss     error // the first error of a finder that was not a plain miss
	fault    error // what was wrong with the first file that was found and cannot be used
	path     string
	link     debugLink // of the first file without debug information that has one
}

// publish makes f what e knows, unless e has a file that is as good; e.mu is
// held. What was wrong with a file that was in use is known until there is
// another.
func (f *found) publish(s *Symbolizer, e *entry) {
	e.attempts = f.attempts
	if f.lent && f.module == nil && e.module == nil { // it broke, or was closed to save memory
		s.account(e)
		return
	}
	e.err = nil
	switch {
	case e.module != nil && (f.module == nil || !f.module.betterThan(e.module)):
		if f.module != nil {
			f.module.close()
		}
		e.better(time.Now())
	case f.module != nil:
		f.module.borrow(e.module)
		s.shut(e)
		e.module, e.fault = f.module, ""
		if f.module.fault != nil {
			e.fault = f.module.fault.Error()
		}
		if f.module.dw == nil {
			e.better(time.Now())
		} else {
			e.pace = 0
		}
	case s.ctx.Err() != nil:
		e.err = ErrClosed
	case f.fault != nil:
		fault := &FaultError{Path: f.path, Err: f.fault}
		e.fault, e.err = fault.Error(), fault
		e.retry = time.Now().Add(e.strike())
	default:
		e.err = &NotFoundError{ID: e.key.id, Name: e.name(), Err: f.miss}
		e.again(f.miss != nil)
	}
	s.account(e)
}

// lend gives e the best file so far, which has no debug information, to answer
// from while the finders behind are asked: one of them may be a slow server. It
// reports whether e has a file now.
func (f *found) lend(s *Symbolizer, e *entry) (has bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f.module == nil || s.ctx.Err() != nil {
		return e.module != nil
	}
	if e.module != nil {
		if !f.module.betterThan(e.module) {
			return true
		}
		s.shut(e)
	}
	e.module, f.module, f.lent = f.module, nil, true
	e.err = nil
	s.account(e)
	return true
}

// search asks the finders for e's file in order, then follows a debug link, then
// asks the servers, and keeps the best. It leaves alone the debug information of
// the file to avoid, and calls servers before it asks the first of those.
func (s *Symbolizer) search(e *entry, names []string, avoid broken, servers func()) (f found) {
	if len(names) == 0 {
		names = []string{""}
	}
	note := func(a buildid.Attempt) {
		a.Where, a.Said = clip(a.Where, maxSaid), clip(a.Said, maxSaid)
		if len(f.attempts) < maxAttempts && !slices.Contains(f.attempts, a) {
			f.attempts = append(f.attempts, a)
		}
	}
	id := e.key.id
	followed := false
	follow := func() (done bool) { // what a stripped file names lies on this machine
		if followed || f.link.Name == "" {
			return false
		}
		followed = true
		m := s.follow(f.link, id, avoid, note)
		if m == nil {
			return false
		}
		done = m.dw != nil
		f.keep(m)
		return done
	}
	for i, finder := range slices.Concat(s.o.Finders, s.o.Servers) {
		if i >= len(s.o.Finders) && follow() {
			return f
		}
		has := f.lend(s, e)
		if i >= len(s.o.Finders) {
			servers()
		}
		for _, name := range names {
			if s.ctx.Err() != nil {
				break
			}
			var file *buildid.File
			err := guard(func() (err error) { // finders read the headers of whatever lies there
				file, err = finder.Find(s.ctx, buildid.Query{ID: id, Kind: buildid.Debug, Name: name, Better: has}, note)
				return err
			})
			if err != nil {
				var unusable *buildid.UnusableError
				if f.miss == nil && (!errors.Is(err, fs.ErrNotExist) || errors.As(err, &unusable)) {
					f.miss = err
				}
				continue
			}
			path, where := file.Path(), file.Where()
			m, err := openModule(file, &s.o)
			if err != nil {
				note(buildid.Attempt{Where: path, Said: "found, but unusable: " + err.Error()})
				if f.fault == nil {
					f.fault, f.path = err, path
				}
				continue
			}
			if path == avoid.path && time.Now().Before(avoid.until) {
				m.dw, m.fault = nil, avoid.fault
			}
			s.supplement(m, note)
			if m.dw == nil && f.link.Name == "" && m.link.Name != "" {
				f.link = debugLink{m.link, path}
			}
			f.keep(m)
			if m.dw != nil {
				return f
			}
			said := "holds " + m.holds.String()
			if m.fault != nil {
				said = m.fault.Error()
			}
			note(buildid.Attempt{Where: path, Said: "found by " + where + ", " + said + "; looked on"})
		}
	}
	follow()
	return f
}

// keep makes m the module unless there is a better one, and closes the other.
func (f *found) keep(m *module) {
	worse := m
	if f.module == nil || m.betterThan(f.module) {
		worse, f.module = f.module, m
	}
	if worse != nil {
		f.module.borrow(worse)
		worse.close()
	}
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
