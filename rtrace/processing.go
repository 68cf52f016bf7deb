package rtrace

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/symfilter/symfilter/report"
)

// Processing says what is left of a report: the options of sp-rtrace-postproc,
// with the meanings that they have there. With any of them, temporary comments
// are dropped, and the header says what was done.
//
// They are done in this order, whatever the order in which they were given:
// Depth, Resources, Addresses, Include, Exclude, Contexts, Leaks, Compress. The
// last two keep calls until the report ends; the others need no memory.
type Processing struct {
	// Depth is how many frames of each backtrace are left; nil: all.
	Depth *int

	// Resources are the types of resources whose calls are left, as a mask of
	// the bits that the report gives them; 0: all. A call without a type is of
	// the first that the report lists; where it lists none, the call is left.
	Resources uint64

	// Addresses are those of which one must be in the backtrace of a call.
	Addresses []Range

	// Include are the indexes of the calls that are left, Exclude those of calls
	// that are not; nil: all are left. Where both are there, Include counts.
	Include, Exclude Indexes

	// Contexts are the contexts in one of which a call must have been made, as a
	// mask of bits; 0: in none; nil: all are left.
	Contexts *uint64

	// Leaks leaves what was allocated and not freed. A resource is known by its
	// type and ID. Where a type counts, the resource is freed when it was freed
	// as often as it was allocated; of other types, an ID that is allocated
	// again is another resource. At the end comes what was leaked of each type.
	Leaks bool

	// Compress groups calls that have the same backtrace, and Sort says in which
	// order the groups come.
	Compress bool
	Sort     Order

	// Budget bounds what Leaks and Compress keep; nil is report.DefaultMaxMemory for this report
	// alone. What does not fit is left out, with a diagnostic.
	Budget *report.Budget
}

// active reports whether anything is to be done.
func (p *Processing) active() bool {
	return p.Depth != nil || p.Resources != 0 || p.Addresses != nil || p.Include != nil || p.Exclude != nil || p.Contexts != nil || p.keeps()
}

// keeps reports whether calls are kept until the report ends.
func (p *Processing) keeps() bool { return p.Leaks || p.Compress }

// An Order is one of groups.
type Order uint8

// The orders.
const (
	BySizeAscending Order = iota
	BySize
	ByCountAscending
	ByCount
)

// A Range is one of addresses: To is not in it.
type Range struct{ From, To uint64 }

// Indexes are those of calls.
type Indexes map[uint64]struct{}

// ReadIndexes reads indexes of calls: the number that each line begins with.
// Other lines are passed over.
func ReadIndexes(r io.Reader) (Indexes, error) {
	all := make(Indexes)
	scan := bufio.NewScanner(r)
	for scan.Scan() {
		word, _ := cutWord(trim(scan.Bytes()))
		n := 0
		for n < len(word) && '0' <= word[n] && word[n] <= '9' {
			n++
		}
		index, ok := decimal(word[:n])
		if !ok {
			continue
		}
		if all[index] = struct{}{}; len(all) > maxIndexes {
			return nil, fmt.Errorf("read indexes: more than %d", maxIndexes)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read indexes: %w", err)
	}
	return all, nil
}

// A processor does what a Processing says to the records of a report.
type processor struct {
	*Processing
	out    func(*Record) error
	again  *Reader // of lines that were kept; it hands them to out
	space  *space  // of the process
	teller *teller

	begun   bool           // a record has come
	lineEnd string         // of the report: "\n" or "\r\n"
	types   []resourceType // of the report, in its order

	// The calls that share the backtrace at work.
	open  bool // there is one
	left  bool // one of them is left
	last  bool // the last call is
	group group

	kept kept
}

// A resourceType is one that a report lists.
type resourceType struct {
	name, description string
	mask              uint64
	counts            bool
}

// A group is what is collected of calls that share a backtrace, where it must be
// known whole.
type group struct {
	calls   []*call
	text    []byte // of the last call and its arguments
	lines   []byte // of the frames
	sums    [2]maphash.Hash
	frames  int
	matches bool // one of the frames has an address that is asked for
	cut     bool // frames did not fit
	epoch   int
}

func newProcessor(p *Processing, s *space, t *teller, out func(*Record) error) *processor {
	r := &processor{Processing: p, out: out, again: NewReader(out), space: s, teller: t}
	r.again.compressed, r.again.headed = true, true
	r.lineEnd = "\n"
	r.kept.reset(p)
	r.group.sums[0].SetSeed(maphash.MakeSeed())
	r.group.sums[1].SetSeed(maphash.MakeSeed())
	return r
}

// collects reports whether calls are collected until their backtrace is whole.
func (p *processor) collects() bool { return p.keeps() || p.Addresses != nil }

// record takes a record of the report.
func (p *processor) record(rec *Record) error {
	begun := p.begun
	p.begun = true
	switch rec.Kind {
	case Header:
		if begun {
			if err := p.end(); err != nil {
				return err
			}
		}
		p.types = p.types[:0]
		p.header(rec)
	case Comment:
		if rec.Temporary {
			return nil
		}
		if p.keeps() && p.kept.begun {
			p.kept.comment(p, rec)
			return nil
		}
	case Map, Attachment:
		return p.pass(rec)
	case Context:
		if p.Contexts != nil && *p.Contexts&rec.Mask == 0 {
			return p.endGroup()
		}
		return p.pass(rec)
	case Resource:
		if len(p.types) < maxTypes && p.typeOf(rec.Name) == nil {
			p.types = append(p.types, resourceType{string(rec.Name), string(rec.Description), rec.Mask, rec.RefCount})
		}
		if p.Resources != 0 && p.Resources&rec.Mask == 0 {
			return p.endGroup()
		}
		return p.pass(rec)
	case Alloc, Free:
		return p.call(rec)
	case Argument:
		return p.argument(rec)
	case Frame:
		return p.frame(rec)
	case Blank:
		if p.open {
			return p.blank(rec)
		}
		if p.keeps() && p.kept.begun {
			return nil
		}
	}
	return p.out(rec)
}

// lineEnds are the ends that lines have, by their length.
var lineEnds = [...]string{"\n", "\r\n"}

// pass hands a record on that ends the backtrace at work.
func (p *processor) pass(rec *Record) error {
	if err := p.endGroup(); err != nil {
		return err
	}
	return p.out(rec)
}

// typeOf returns the type of this name; nil if the report has not listed it.
func (p *processor) typeOf(name []byte) *resourceType {
	if i := slices.IndexFunc(p.types, func(t resourceType) bool { return t.name == string(name) }); i >= 0 {
		return &p.types[i]
	}
	return nil
}

// typeOfCall returns the type of the resource of a call, nil if it is not known.
func (p *processor) typeOfCall(rec *Record) *resourceType {
	if rec.Type != nil {
		return p.typeOf(rec.Type)
	}
	if len(p.types) > 0 {
		return &p.types[0]
	}
	return nil
}

// wants reports whether a call is left, as far as its own line says.
func (p *processor) wants(rec *Record) bool {
	if p.Resources != 0 {
		if t := p.typeOfCall(rec); t != nil && t.mask&p.Resources == 0 {
			return false
		}
	}
	if p.Include != nil {
		if _, ok := p.Include[rec.Index]; !ok {
			return false
		}
	} else if _, ok := p.Exclude[rec.Index]; ok {
		return false
	}
	if p.Contexts != nil {
		if *p.Contexts == 0 {
			return rec.Contexts == 0
		}
		return rec.Contexts&*p.Contexts != 0
	}
	return true
}

func (p *processor) call(rec *Record) error {
	if !rec.Joined {
		if err := p.endGroup(); err != nil {
			return err
		}
	}
	p.open = true
	p.last = p.wants(rec)
	p.left = p.left || p.last
	p.kept.begun = true
	if end := rec.end(); len(end) > 0 {
		p.lineEnd = lineEnds[len(end)-1]
	}
	p.kept.index = rec.Index
	switch {
	case !p.last:
		return nil
	case p.collects():
		p.collect(rec)
		return nil
	}
	return p.out(rec)
}

func (p *processor) argument(rec *Record) error {
	switch {
	case p.open && !p.last:
		return nil
	case p.open && p.collects():
		if len(p.group.text)+len(rec.Raw) > maxTrace {
			p.teller.tell(fmt.Sprintf("a call has more than %d bytes of arguments: the rest of them is left out", maxTrace))
			return nil
		}
		p.group.text = append(p.group.text, rec.Raw...)
		return nil
	}
	return p.out(rec)
}

func (p *processor) frame(rec *Record) error {
	if p.open && !p.left {
		return nil
	}
	if p.Depth != nil && rec.Frame >= uint64(max(0, *p.Depth)) {
		return nil
	}
	if !p.open || !p.collects() {
		return p.out(rec)
	}
	g := &p.group
	if len(g.lines)+len(rec.Raw) > maxTrace {
		if !g.cut {
			p.teller.tell(fmt.Sprintf("a backtrace is longer than %d bytes: the rest of it is left out", maxTrace))
		}
		g.cut = true
		return nil
	}
	if g.frames == 0 {
		g.epoch = p.space.epoch
	}
	g.frames++
	for _, r := range p.Addresses {
		g.matches = g.matches || r.From <= rec.Addr && rec.Addr < r.To
	}
	g.lines = append(g.lines, rec.Raw...)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], rec.Addr)
	g.sums[0].Write(b[:])
	g.sums[1].Write(b[:])
	return nil
}

// blank ends a backtrace.
func (p *processor) blank(rec *Record) error {
	left := p.left
	if p.collects() {
		return p.endGroup()
	}
	p.open, p.left = false, false
	if !left {
		return nil
	}
	return p.out(rec)
}

// collect adds a call to the group.
func (p *processor) collect(rec *Record) {
	passes := rec.Kind == Free && p.Leaks && !p.kept.later // it is not kept
	if !passes && !p.kept.fits(int64(len(rec.Raw))+callOverhead) {
		p.last = false
		p.kept.leftOut++
		return
	}
	p.endCall()
	p.group.text = append(p.group.text, rec.Raw...)
	c := &call{
		index: rec.Index, time: timeOf(rec.Time), id: rec.ID, size: rec.Size, alloc: rec.Kind == Alloc,
	}
	if t := p.typeOfCall(rec); t != nil {
		c.kind, c.counts = t.name, t.counts
	} else {
		c.kind = string(rec.Type)
	}
	p.group.calls = append(p.group.calls, c)
}

// endCall keeps the lines of the last call of the group.
func (p *processor) endCall() {
	if n := len(p.group.calls); n > 0 {
		c := p.group.calls[n-1]
		c.lines = string(p.group.text)
		p.kept.used += c.cost()
	}
	p.group.text = p.group.text[:0]
}

// endGroup does what is left to do with the calls that share a backtrace.
func (p *processor) endGroup() error {
	g := &p.group
	p.endCall()
	defer func() {
		clear(g.calls)
		g.calls, g.lines = g.calls[:0], g.lines[:0]
		g.sums[0].Reset()
		g.sums[1].Reset()
		g.frames, g.matches, g.cut = 0, false, false
		p.open, p.left = false, false
	}()
	if len(g.calls) == 0 {
		return nil
	}
	if p.Addresses != nil && !g.matches {
		for _, c := range g.calls {
			p.kept.used -= c.cost()
		}
		return nil
	}
	if p.keeps() {
		p.kept.add(p, g)
		return nil
	}
	for _, c := range g.calls {
		p.kept.used -= c.cost()
		p.again.Write([]byte(p.whole(c.lines)))
	}
	p.again.Write([]byte(p.whole(string(g.lines))))
	_, err := p.again.Write([]byte(p.lineEnd)) // the end of a call and its backtrace
	return err
}

// end hands on all that is kept: the report ends here.
func (p *processor) end() error {
	err := p.endGroup()
	if err == nil && p.keeps() {
		err = p.kept.print(p)
	}
	if n := p.kept.leftOut; n > 0 {
		p.teller.tell(fmt.Sprintf("%d calls do not fit into %d MiB of memory: they are left out (--max-memory)", n, p.kept.mebibytes()))
	}
	p.kept.reset(p.Processing)
	return err
}

// timeOf returns a time of the day in nanoseconds; 0 if text is none.
func timeOf(text []byte) (t uint64) {
	n, unit := uint64(0), uint64(0)
	for _, c := range text {
		switch {
		case c == ':':
			t = (t + n) * 60
			n = 0
		case c == '.' && unit == 0:
			t = (t + n) * 1e9
			n, unit = 0, 1e8
		case c < '0' || c > '9':
		case unit > 0:
			t += uint64(c-'0') * unit
			if unit /= 10; unit == 0 {
				return t
			}
		default:
			n = min(n*10+uint64(c-'0'), 1e6)
		}
	}
	if unit == 0 {
		t = (t + n) * 1e9
	}
	return t
}
