package dwarf

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// Several goroutines may look up addresses of one file at once, each with its own Data. They share
// parsed units: a unit is lent to one reader at a time, which may parse more of it. One reader
// makes each table of the whole file, which is then immutable. Readers share nothing else.

// ErrNotAlone is the error of a lookup by a reader from [Data.Reader], if only the original Data
// may answer this lookup or return its error.
var ErrNotAlone = errors.New("only the original Data can answer this lookup, not a reader of it")

// A shelf holds the units and tables that the readers of a file share.
type shelf struct {
	clock atomic.Uint64 // number of lookups by all readers
	epoch atomic.Uint64 // changes when units are dropped
	held  atomic.Int64  // bytes of everything on the shelf

	mu      sync.Mutex // held for single operations on the maps; nothing is parsed meanwhile
	units   map[uint64]*unit
	abbrevs map[abbrevKey]*abbrevTable

	offsets  common[uint64]
	listed   common[unitRange]
	roots    common[unitRange]
	unlisted common[unitRange]
}

// sharing connects one reader to the units and tables that all readers of a file share.
type sharing struct {
	d           *Data
	shelf       *shelf           // shared with other readers; nil if this is the only reader
	lent        map[uint64]*unit // units that this reader has borrowed from the shelf
	epoch       uint64           // epoch of the shelf when lent was last cleared
	besideOther bool             // this reader was made by Reader
	leftOff     bool             // a lookup of this Reader met an error: see Reader
}

// Share prepares d for other readers. It must come before the first Lookup.
func (s *sharing) Share() {
	s.shelf = &shelf{units: make(map[uint64]*unit), abbrevs: make(map[abbrevKey]*abbrevTable)}
}

// Reader returns another reader of d's file, which another goroutine may use for Lookup while d is
// used. Reader must be called by the goroutine that uses d, and loads the sections that Lookup
// reads. A reader that is not in use may make further readers, in any goroutine. Without Share,
// Reader returns nil.
//
// A lookup of the new reader fails with ErrNotAlone if d would open a file or return an error in
// this lookup. After an error, the new reader drops the unit, so that d finds the same as without
// other readers. All later lookups of the new reader then fail with ErrNotAlone, too.
func (s *sharing) Reader() *Data {
	d := s.d
	if s.shelf == nil {
		return nil
	}
	var r *Data
	if s.besideOther {
		r = newData(d.sec)
		if d.links != nil {
			r.links = &links{d: r, alt: newData(*d.sec.alt)}
			r.links.alt.meter = r.meter
			r.sec.alt = &r.links.alt.sec
		}
	} else {
		r = d.Fork()
	}
	r.names, r.lazyNames, r.detailed, r.shelf, r.besideOther = d.names, d.lazyNames, d.detailed, s.shelf, true
	return r
}

// lookupShared is Lookup for one of several readers of a file: it borrows the unit from the shelf.
func (s *sharing) lookupShared(dst []Frame, addr uint64) (frames []Frame, err error) {
	d := s.d
	if epoch := s.shelf.epoch.Load(); s.epoch != epoch {
		s.epoch = epoch
		clear(s.lent)
	}
	start := len(dst)
	if s.leftOff {
		return dst, ErrNotAlone
	}
	off := d.offsetFor(addr)
	var u *unit
	if off != noUnit {
		u = s.borrow(off)
	}
	if u == nil {
		return s.alone(dst, start, d.firstErr(nil))
	}
	// the steps to find the unit and to make tables of the whole file are not taken from the unit's
	// budget
	d.work = maxWork
	whole, returned := false, false
	defer func() {
		if !returned || !whole && s.besideOther { // the unit may be in any state
			s.shelf.drop(u)
		}
		u.d = nil
		u.mu.Unlock()
	}()
	u.used = d.tick
	if s.besideOther && (u.err != nil || u.dwoName.ok()) {
		whole, returned = true, true
		return dst, ErrNotAlone
	}
	hu := d.links.enterSplit(u)
	frames = u.lookup(hu, dst, addr)
	d.count(u)
	d.links.leaveSplit(u, hu)
	err = d.firstErr(u)
	whole, returned = err == nil, true
	return s.alone(frames, start, err)
}

// alone returns the results of a lookup. It returns ErrNotAlone instead if this reader was made by
// Reader and has ever met an error.
func (s *sharing) alone(frames []Frame, start int, err error) ([]Frame, error) {
	if s.leftOff = s.leftOff || err != nil && s.besideOther; s.leftOff {
		return frames[:start], ErrNotAlone
	}
	return frames, err
}

// borrow returns the unit at off, locked. It parses a unit that is not on the shelf, and returns
// nil if that fails.
func (s *sharing) borrow(off uint64) *unit {
	for {
		u := s.lent[off]
		if u == nil {
			s.shelf.mu.Lock()
			u = s.shelf.units[off]
			s.shelf.mu.Unlock()
		}
		if u == nil {
			if u = s.d.parseUnit(off, part{}); u == nil {
				return nil
			}
			u = s.shelf.put(u)
		}
		u.mu.Lock()
		if !u.dropped {
			u.d = s.d
			if s.lent == nil {
				s.lent = make(map[uint64]*unit)
			}
			s.lent[off] = u
			return u
		}
		u.mu.Unlock()
		delete(s.lent, off)
	}
}

// put puts u on the shelf and returns it. If another reader has put a unit with u's offset there,
// put returns that unit instead.
func (s *shelf) put(u *unit) *unit {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.units[u.off]; old != nil {
		return old
	}
	u.held = u.footprint()
	s.held.Add(u.held)
	s.units[u.off] = u
	return u
}

func (s *shelf) abbrevsOf(key abbrevKey) *abbrevTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abbrevs[key]
}

// putAbbrevs puts t on the shelf and returns it. If another reader has put a table with this key
// there, putAbbrevs returns that table instead.
func (s *shelf) putAbbrevs(key abbrevKey, t *abbrevTable) *abbrevTable {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.abbrevs[key]; old != nil {
		return old
	}
	s.abbrevs[key] = t
	s.held.Add(t.footprint())
	return t
}

// drop takes a locked unit off the shelf.
func (s *shelf) drop(u *unit) {
	if u.dropped {
		return
	}
	u.dropped = true
	s.held.Add(-u.held)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.units, u.off)
	s.epoch.Add(1)
}

// idle returns the units that no reader has borrowed, each with the number of the lookup that last
// used it.
func (s *shelf) idle() map[*unit]uint64 {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.units))
	s.mu.Unlock()
	used := make(map[*unit]uint64, len(all))
	for _, u := range all {
		if u.mu.TryLock() {
			used[u] = u.used
			u.mu.Unlock()
		}
	}
	return used
}

// dropIdle drops a unit, unless a reader uses it. It returns the bytes freed.
func (s *shelf) dropIdle(u *unit) (freed int64) {
	if !u.mu.TryLock() {
		return 0
	}
	defer u.mu.Unlock()
	if !u.dropped {
		freed = u.held
		s.drop(u)
	}
	return freed
}

// dropTables drops everything on the shelf except the units.
func (s *shelf) dropTables() {
	if s == nil {
		return
	}
	s.mu.Lock()
	for key, t := range s.abbrevs {
		s.held.Add(-t.footprint())
		delete(s.abbrevs, key)
	}
	s.mu.Unlock()
	s.offsets.withdraw(s)
	s.listed.withdraw(s)
	s.roots.withdraw(s)
	s.unlisted.withdraw(s)
	s.epoch.Add(1)
}

func (s *shelf) footprint() int64 {
	if s == nil {
		return 0
	}
	return s.held.Load()
}

// A common is a table of the whole file that its readers share.
type common[T any] struct {
	making sync.Mutex // held by the reader that makes the table
	made   atomic.Pointer[[]T]
}

// withdraw removes the table from the shelf s.
func (t *common[T]) withdraw(s *shelf) {
	if v := t.made.Swap(nil); v != nil {
		s.held.Add(-sizeOf(*v))
	}
}

// of returns the table. If no reader has made the table yet, it calls make and shares the result.
// It does not share a nil table, nor a table that a Reader makes after an error.
func (t *common[T]) of(d *Data, make func() []T) []T {
	if v := t.made.Load(); v != nil {
		return *v
	}
	t.making.Lock()
	defer t.making.Unlock()
	if v := t.made.Load(); v != nil {
		return *v
	}
	v := make()
	if v == nil || d.besideOther && d.firstErr(nil) != nil {
		return v
	}
	d.shelf.held.Add(sizeOf(v))
	t.made.Store(&v)
	return v
}
