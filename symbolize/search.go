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

// errBusy is returned if no search can be started, since maxQueued tasks run or wait.
var errBusy = errors.New("too many searches")

// find starts a search for e's file in a goroutine. It fails if too many searches wait or the
// Symbolizer is closed. e.mu is held and e has no task.
func (s *Symbolizer) find(e *entry) error {
	s.cache.mu.RLock()
	defer s.cache.mu.RUnlock()
	if s.cache.closed {
		return ErrClosed
	}
	select {
	case s.queue <- struct{}{}:
	default:
		return errBusy
	}
	t := &task{firstFile, make(chan struct{}), make(chan struct{})}
	if e.state == answering {
		t.purpose = betterFile
	}
	e.task = t
	s.cache.counts.searches.Add(1)
	local := sync.OnceFunc(func() { close(t.local) })
	free := sync.OnceFunc(func() { <-s.slots })
	x := &search{s: s, e: e, names: slices.Clone(e.names), avoid: e.broken, servers: sync.OnceFunc(func() {
		free() // servers may hang: searches on this machine must not wait for them
		local()
		e.mu.Lock()
		s.warmer.unpark(e) // a file found so far may answer before the servers do
		e.mu.Unlock()
	})}
	s.tasks.Go(func() {
		s.slots <- struct{}{}
		x.run()
		free()
		<-s.queue

		e.mu.Lock()
		x.publish()
		came := e.came()
		e.endTask(&s.warmer)
		local()
		e.mu.Unlock()
		s.o.tell(e, came)
		s.cache.relieve()
	})
	return nil
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

// A search looks for e's file. It asks the finders in order, then follows a debug link, then asks
// the servers. It keeps the best file. One goroutine uses it.
type search struct {
	s       *Symbolizer
	e       *entry
	names   []string // names of the module
	avoid   broken   // a file whose debug information is set aside
	servers func()   // called before each server is asked; only the first call acts

	link     debugLink // first link found in a file without debug information
	followed bool      // the link was followed

	module   *module // the best file found and not yet given to e; nil if none
	lent     bool    // e got a file from this search already
	attempts []buildid.Attempt
	miss     error  // the first error of a finder that was not a plain miss
	fault    error  // fault of the first file found that cannot be used
	path     string // path of the file with that fault
}

// run searches until it has a file with debug information, or has asked all finders and servers.
func (x *search) run() {
	if len(x.names) == 0 {
		x.names = []string{""}
	}
	for _, finder := range x.s.o.Finders {
		if x.ask(finder, x.lend()) {
			return
		}
	}
	for _, server := range x.s.o.Servers {
		if x.followLink() {
			return
		}
		has := x.lend()
		x.servers()
		if x.ask(server, has) {
			return
		}
	}
	x.followLink()
}

// ask calls finder with each name of the module, until it finds a file with debug information;
// ended is true then. If has is set, e already has a file, and finder is asked only for a better
// one.
func (x *search) ask(finder Finder, has bool) (ended bool) {
	s := x.s
	for _, name := range x.names {
		if s.ctx.Err() != nil {
			return false
		}
		var file *buildid.File
		// finders read the headers of files that may be hostile
		err := guard(func() (err error) {
			q := buildid.Query{ID: x.e.key.id, Kind: buildid.Debug, Name: name, Better: has, Whole: s.cache.memory.whole()}
			file, err = finder.Find(s.ctx, q, x.note)
			return err
		})
		if err == nil {
			if x.consider(file) {
				return true
			}
			continue
		}
		if _, unusable := errors.AsType[*buildid.UnusableError](err); x.miss == nil && (unusable || !errors.Is(err, fs.ErrNotExist)) {
			x.miss = err
		}
	}
	return false
}

// consider opens file, which a finder has returned, and keeps it if it is the best file so far. It
// reports whether the file has debug information.
func (x *search) consider(file *buildid.File) bool {
	path, where := file.Path(), file.Where()
	m, err := x.open(file)
	if err != nil {
		if x.fault == nil {
			x.fault, x.path = err, path
		}
		return false
	}
	x.supplement(m)
	if m.dw == nil && x.link.Name == "" && m.link.Name != "" {
		x.link = debugLink{m.link, path}
	}
	// as in LLVM, a program that is named by its path uses its own symbols
	m.oldTable = x.s.o.Reaching && x.e.key.id.IsZero() && (x.module != nil || x.lent)
	x.keep(m)
	if m.dw != nil {
		return true
	}
	content := "holds " + m.holds.String()
	if m.fault != nil {
		content = m.fault.Error()
	}
	x.note(buildid.Attempt{Where: path, Reason: "found by " + where + ", " + content + "; the search continued"})
	return false
}

// open opens file, and drops its debug information if x.avoid applies to it.
func (x *search) open(file *buildid.File) (*module, error) {
	path := file.Path()
	m, err := openModule(file, &x.s.o)
	if err != nil {
		x.note(buildid.Attempt{Where: path, Reason: "found, but unusable: " + err.Error()})
		return nil, err
	}
	if x.avoid.applies(path) {
		m.drop(x.avoid.fault)
	}
	return m, nil
}

func (x *search) note(a buildid.Attempt) {
	a.Where, a.Reason = clip(a.Where, maxSaid), clip(a.Reason, maxSaid)
	if len(x.attempts) < maxAttempts && !slices.Contains(x.attempts, a) {
		x.attempts = append(x.attempts, a)
	}
}

// lend makes e answer from the best file so far, which has no debug information, while the search
// continues: the next finder may be a slow server. has reports whether e has a file now.
func (x *search) lend() (has bool) {
	e := x.e
	came := false
	defer func() { x.s.o.tell(e, came) }()
	e.mu.Lock()
	defer e.mu.Unlock()
	if x.module == nil || x.s.ctx.Err() != nil {
		return e.module != nil
	}
	if e.module != nil {
		if !x.module.betterThan(e.module) {
			return true
		}
		x.s.cache.shut(e)
	}
	e.has(x.module)
	x.module, x.lent = nil, true
	x.s.cache.account(e)
	came = e.came()
	return true
}

// keep makes m the module of the search unless the search has a better module, and closes the worse
// module.
func (x *search) keep(m *module) {
	worse := m
	if x.module == nil || m.betterThan(x.module) {
		worse, x.module = x.module, m
	}
	if worse != nil {
		x.module.borrow(worse)
		worse.close()
	}
}

// publish stores the outcome of the search in e, unless e has a file at least as good; e.mu is
// held. The recorded fault of an earlier file stays until another file is in use.
func (x *search) publish() {
	s, e := x.s, x.e
	e.attempts = x.attempts
	defer s.cache.account(e)
	if e.module == nil && x.module == nil {
		if !x.lent { // otherwise the lent file broke meanwhile, or was closed to save memory
			x.publishMiss()
		}
		return
	}
	if e.module != nil && (x.module == nil || !x.module.betterThan(e.module)) {
		if x.module != nil {
			x.module.close()
		}
		e.better(time.Now())
		return
	}
	m := x.module
	m.borrow(e.module)
	s.cache.shut(e)
	e.has(m)
	e.fault = ""
	if m.fault != nil {
		e.fault = m.fault.Error()
	}
	if m.dw == nil {
		e.better(time.Now())
	} else {
		e.pace = 0
	}
}

// publishMiss records in e why the search found no file; e.mu is held and e has no file.
func (x *search) publishMiss() {
	e := x.e
	switch {
	case x.s.ctx.Err() != nil: // questions get ErrClosed from now on
	case x.fault != nil:
		fault := &FaultError{Path: x.path, Err: x.fault}
		e.fault = fault.Error()
		e.retry = time.Now().Add(e.strike())
		x.s.cache.counts.faults.Add(1)
		e.lacks(setAside, fault)
	default:
		e.again(x.miss != nil)
		e.lacks(missing, &NotFoundError{ID: e.key.id, Name: e.name(), Err: x.miss})
	}
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
