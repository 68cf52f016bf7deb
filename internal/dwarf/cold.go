package dwarf

import (
	"runtime/debug"
	"slices"
)

// A coldRun runs a whole line program to find the row of one address. Unless keep is set, it keeps
// no rows, which is much cheaper for one lookup. It records the position of each sequence in the
// program: the next lookup runs only one sequence.
//
// A coldRun reads only the line program, and writes only its own fields. So another goroutine may
// run it while the lookup's goroutine reads the functions of the unit.
type coldRun struct {
	m    lineRun
	addr uint64
	best lineHit
	seqs []sequence // in the order of the program
	keep bool       // keep all rows, and do not set best
	rows []lineRow
	fits bool // at most maxRows rows

	join     func() // waits for the other goroutine; nil if there is none
	panicked any    // value that the other goroutine recovered
}

// release drops the references to the file, which may be closed after the lookup.
func (c *coldRun) release() { *c = coldRun{} }

const (
	// smallest line program, in bytes, that may run in another goroutine: a shorter program takes
	// less time than waking another processor, 0.1 ms
	apartProgram = 32 << 10
	// apartProgram for the first lookup in a file, which also has to create the thread
	firstProgram = 256 << 10
	// a unit's rows are kept after 1/rerunShare of its line program was run again for single
	// addresses: keeping rows takes two to three times as long
	rerunShare = 2
	// recorded sequences, 24 bytes each: 1.5 MiB. Large units have about 2,000 sequences
	maxSequences = 1 << 16
)

// beginCold prepares a run for addr. It returns nil if the lookup's budget is used up.
func (u *unit) beginCold(addr uint64) *coldRun {
	if !u.d.spend(u.lines.programSteps()) {
		return nil
	}
	return u.prepareCold(addr)
}

// beginKeeping is beginCold for a run that keeps the rows. It returns nil if mayKeep returns false.
func (u *unit) beginKeeping(addr uint64) *coldRun {
	if !u.mayKeep() {
		return nil
	}
	c := u.prepareCold(addr)
	c.keep = true
	return c
}

func (u *unit) prepareCold(addr uint64) *coldRun {
	s := u.d.space()
	c := &s.cold
	c.m.begin(u.d, u)
	c.keep = false
	c.addr, c.best, c.rows, c.seqs, c.join, c.panicked = addr, lineHit{}, s.rows, s.seqs[:0], nil, nil
	return c
}

// run finds the row of c.addr and all sequences. If keep is set, it collects all rows instead of
// one.
func (c *coldRun) run() {
	m := &c.m
	if c.keep {
		c.rows, c.seqs, c.fits = m.collect(c.rows, c.seqs)
		return
	}
	c.seqs = room(c.seqs, fewSequences+(len(m.prog)-m.pos)/sequenceBytes)
	lo, hi := uint64(0), ^uint64(0)
	for m.running() {
		start := m.pos
		near := m.nearest(c.addr)
		if m.lo == m.hi {
			continue
		}
		if m.hi > c.addr && m.hi < hi {
			c.best, lo, hi = near, m.lo, m.hi
		}
		if len(c.seqs) <= maxSequences {
			c.seqs = append(c.seqs, sequence{m.lo, m.hi, uint32(start - m.start), uint32(m.pos - start)})
		}
	}
	if lo > c.addr {
		c.best = lineHit{}
	}
}

// start runs the program, in another goroutine if it is long and Beside was called. The file must
// stay open until wait has returned.
func (c *coldRun) start() {
	beside, least := c.m.d.beside, apartProgram
	if c.m.d.tick == 1 {
		least = firstProgram
	}
	if len(c.m.prog)-c.m.start < least || beside == nil {
		c.run()
		return
	}
	c.join = beside(func() {
		defer func() { c.panicked = recover() }() // end passes the panic on
		// the program may be in a mapped file that shrinks
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		c.run()
	})
}

func (c *coldRun) wait() {
	if c.join != nil {
		c.join()
		c.join = nil
	}
}

// end is called after run. It returns the row of c.addr, and stores the sequences, or all rows if
// keep is set, in the unit. It passes on a panic of run.
func (c *coldRun) end() lineHit {
	if c.panicked != nil {
		panic(c.panicked)
	}
	m := &c.m
	m.d.space().seqs = c.seqs
	if c.keep {
		u := m.u
		u.storeRows(m, c.rows, c.seqs, c.fits)
		if !u.lines.decoded {
			return lineHit{}
		}
		return u.lineFromRows(c.addr)
	}
	m.finish()
	if t := m.t; !t.decoded && !t.listed && m.pos-m.start <= maxRows && len(c.seqs) <= maxSequences {
		t.seqs, t.listed = slices.Clone(c.seqs), true
	}
	return c.best
}

// covering returns the sequence with the lowest end above addr. If that sequence starts above addr,
// covering returns an empty sequence.
func (t *lineTable) covering(addr uint64) sequence {
	best := sequence{hi: ^uint64(0)}
	for i := range t.seqs {
		if s := &t.seqs[i]; s.hi > addr && s.hi < best.hi {
			best = *s
		}
	}
	if best.lo > addr {
		return sequence{}
	}
	return best
}

// lineFromProgram returns the row of addr. It runs the opcodes of s, the sequence that covers addr.
func (u *unit) lineFromProgram(s sequence, addr uint64) lineHit {
	d := u.d
	if s.n == 0 || !d.spend(len(u.lines.seqs)/4+int(s.n)/4) {
		return lineHit{}
	}
	var m lineRun
	m.begin(d, u)
	m.start += int(s.first)
	m.pos = m.start
	m.prog = m.prog[:m.start+int(s.n)]
	near := m.nearest(addr)
	m.finish()
	return near
}

// innermostAndRow returns the results of hu.innermost for the address of c, and the row that c
// finds. hu is the unit with the functions of u. c may run in another goroutine meanwhile.
func (u *unit) innermostAndRow(hu *unit, c *coldRun) (at int, calls []call, row lineHit) {
	c.start()
	defer c.wait() // also if innermost panics
	at, calls = hu.innermost(c.addr)
	c.wait()
	return at, calls, c.end()
}
