package symbolize

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/symfilter/symfilter/internal/object"
)

// Compressed debug information is inflated at the first lookup that needs it, since most modules
// that a log lists have no frame in that log. If it has more than memory.inline bytes, a goroutine
// inflates it. Meanwhile, questions wait as for a search, or are answered from symbols.

// inflate inflates the packed debug sections of e's module for a lookup. goesOn is true if a
// goroutine continues the inflation. If there is no memory for the sections, the module answers
// from symbols for some time. e.mu is held.
func (s *Symbolizer) inflate(e *entry) (goesOn bool) {
	m := e.module
	u := m.unpack()
	if size := u.size(); e.evicted.Load() > 0 {
		if e.crowded += size; e.crowded > maxCrowded {
			e.crowded -= size
			e.denied = betterMax
			s.deny(e, size, errCrowded)
			return false
		}
	}
	if u.size() <= s.cache.memory.inline {
		u.run(s.cache.takeNow, s.cache.takeNow)
		if u.err() == nil {
			s.inflated(e, u)
			return false
		}
		u.drop()
		u = m.unpack() // a goroutine must wait for memory, since e.mu is held here
	}
	s.cache.mu.RLock()
	defer s.cache.mu.RUnlock()
	if s.cache.closed {
		return false
	}
	select {
	case s.queue <- struct{}{}:
	default:
		return false // still packed: a later question tries again
	}
	done := make(chan struct{})
	e.task = &task{inflation, done, done} // no server is asked, since the file was found
	p := &pin{held: true}
	m.pin = p
	spills := m.obj.Spills()
	s.tasks.Go(func() {
		s.cache.memory.running <- struct{}{}
		a := s.cache.admit(s.ctx, e)
		take := a.await
		if spills {
			take = a.spare
		}
		u.run(take, a.await)
		<-s.cache.memory.running
		<-s.queue

		e.mu.Lock()
		if e.module == m {
			s.inflated(e, u)
		} else {
			u.drop()
		}
		came := e.came()
		e.endTask(&s.warmer)
		e.mu.Unlock()
		p.release()
		s.o.tell(e, came)
		s.cache.relieve()
	})
	return true
}

// An unpacking inflates sections of a module and of its supplementary file, if any.
type unpacking []*object.Unpacking

// unpack prepares the inflation of the sections that lookups in m need. Nothing is inflated before
// run.
func (m *module) unpack() unpacking {
	u := unpacking{m.obj.Unpack(lookupSections...)}
	if m.alt != nil {
		u = append(u, m.alt.obj.Unpack(altSections...))
	}
	return u
}

func (u unpacking) size() (n int64) {
	for _, file := range u {
		n += file.Size()
	}
	return n
}

// run inflates the sections. take grants memory for sections that could be inflated into a spill
// file instead, and must grants all other memory. A supplementary file is never inflated into a
// spill file.
func (u unpacking) run(take, must func(int64) error) {
	for _, file := range u {
		if file.Run(take, must); file.Err() != nil {
			return
		}
		take = must
	}
}

// err returns why there was no memory for run, or nil.
func (u unpacking) err() error {
	for _, file := range u {
		if err := file.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (u unpacking) drop() {
	for _, file := range u {
		file.Drop()
	}
}

func (u unpacking) keep() error {
	err := u.err()
	if err != nil {
		u.drop()
		return err
	}
	for _, file := range u {
		err = errors.Join(err, file.Keep())
	}
	return err
}

// inflated makes e's module use the sections that u has inflated. If u had no memory for them,
// inflated calls deny. e.mu is held.
func (s *Symbolizer) inflated(e *entry, u unpacking) {
	m := e.module
	size := u.size()
	if err := u.keep(); err != nil {
		if s.ctx.Err() == nil {
			s.deny(e, size, err)
		}
		return
	}
	m.packed, m.inflated = false, true
	m.inflatedAt, m.lookupsThen = time.Now(), m.lookups
	e.denied = 0
	s.cache.account(e)
}

// errCrowded reports that the files of several modules repeatedly take each other's memory.
var errCrowded = errors.New("other files also need the memory, so parts were inflated repeatedly")

// deny stops using the debug information of e's module for a time, for lack of memory; e.mu is
// held.
func (s *Symbolizer) deny(e *entry, size int64, err error) {
	e.denied = min(max(2*e.denied, betterMin), betterMax)
	m := e.module
	m.drop(fmt.Errorf("the compressed debug information needs %d MiB of memory: %w; answering from symbols only for %v; %s", size>>20, err, e.denied, s.o.helps()))
	e.retry = time.Now().Add(e.denied)
	e.broken = broken{m.path, m.fault, e.retry}
	s.notify(e)
}

// helps returns advice for a user whose memory limit is too low.
func (o *Options) helps() string {
	help := "decompress the file on disk (objcopy --decompress-debug-sections), or raise the limit"
	if o.spillInMemory {
		help += fmt.Sprintf("; %s is itself in memory, so nothing is inflated into it: name a directory on a disk", o.SpillDir)
	}
	return help
}

// affordable sets packed if sections must be inflated before a lookup. It returns an error if they
// would take more memory than is ever granted, and cannot be inflated into a file.
func (m *module) affordable(o *Options) error {
	var cost int64
	for _, name := range lookupSections {
		cost += m.obj.HeapCost(name)
	}
	m.packed = cost > 0
	if limit := o.MaxMemory - o.MaxMemory/spareShare; cost > limit && !m.obj.Spills() {
		return fmt.Errorf("the compressed debug information needs %d MiB of memory, but the limit is %d; %s; answering from symbols only", cost>>20, limit>>20, o.helps())
	}
	return nil
}

// awaitsUnpacking reports whether e's module must be inflated before it can answer from debug
// information; e.mu is held.
func (e *entry) awaitsUnpacking() bool {
	m := e.module
	return m.packed && m.dw != nil && m.index == nil
}

// sourcesAwaitUnpacking reports whether e's module must be inflated before it can answer a question
// about a source file. No index answers such questions. e.mu is held.
func (e *entry) sourcesAwaitUnpacking() bool {
	m := e.module
	return m.packed && m.dw != nil
}

// variablesAwaitUnpacking reports whether e's module must be inflated before it can answer a
// question about a variable. No index answers such questions. It returns false if the debug
// information would be too large to find variables: see dwarf.Data.VariablesAreDear. e.mu is held.
func (e *entry) variablesAwaitUnpacking() bool {
	m := e.module
	return m.packed && m.dw != nil && !m.dw.VariablesAreDear()
}

// unpacked inflates the sections that q needs, and waits for the inflation until ctx is done.
// awaits reports whether the entry's sections must be inflated first. unpacked returns q, or a new
// question if it had to unlock the entry.
func (s *Symbolizer) unpacked(ctx context.Context, q question, l Location, awaits func(*entry) bool) (question, error) {
	for awaits(q.e) && !q.e.unpacking() && s.inflate(q.e) {
		q.e.mu.Unlock()
		var err error
		if q, err = s.acquire(ctx, l); err != nil {
			return q, err
		}
	}
	return q, nil
}
