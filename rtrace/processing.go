package rtrace

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"slices"

	"github.com/symfilter/symfilter/internal/report"
)

// Processing selects the records to print. Its fields are the options of sp-rtrace-postproc, with
// the same meanings. If any field is set, temporary comments are dropped. The header of the output
// records the steps Depth, Leaks and Compress.
//
// The result is as if the steps were done in this order: Depth, Resources, Addresses, Include,
// Exclude, Contexts, Leaks, Compress. Leaks and Compress keep calls until the end of the report,
// and Addresses until the end of their backtrace. The other steps keep nothing.
type Processing struct {
	// Depth is the number of frames printed of each backtrace; nil prints all.
	Depth *int

	// Resources selects calls by the types of their resources, as a mask of the bits in the
	// report; 0 selects all. A call without a type has the first type in the report's list. A
	// call with a type outside of the list is also selected.
	Resources uint64

	// Addresses selects calls whose backtrace has an address in one of these ranges; nil selects
	// all.
	Addresses []Range

	// Include selects calls by index; nil selects all. Exclude removes calls by index, unless
	// Include is set.
	Include, Exclude Indexes

	// Contexts selects the calls made in one of these contexts, as a mask of bits. 0 selects
	// calls outside of contexts; nil selects all.
	Contexts *uint64

	// Leaks selects allocations that were not freed. A resource is identified by its type and ID.
	// If the type counts references, a resource is free after as many frees as allocations. For
	// other types, repeated allocations of an ID are different resources. The report then ends with
	// the leaks of each type.
	Leaks bool

	// Compress groups calls with the same backtrace. Sort is the order of the groups.
	Compress bool
	Sort     Order
}

// active reports whether any step is selected.
func (p *Processing) active() bool {
	return p.Depth != nil || p.Resources != 0 || p.Addresses != nil || p.Include != nil || p.Exclude != nil || p.Contexts != nil || p.keeps()
}

// keeps reports whether calls are kept until the end of the report.
func (p *Processing) keeps() bool { return p.Leaks || p.Compress }

// An Order is an order of the groups that Compress makes.
type Order uint8

// The orders of groups: by total size, or by number of calls.
const (
	BySizeAscending Order = iota
	BySize
	ByCountAscending
	ByCount
)

// A Range is a range of addresses. To is exclusive.
type Range struct{ From, To uint64 }

// Indexes is a set of indexes of calls.
type Indexes map[uint64]struct{}

// ReadIndexes reads the number at the beginning of each line. It skips lines without a number. It
// fails if r fails, if a line is longer than 64 KiB, or if there are more than 4 Mi indexes.
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
			return nil, fmt.Errorf("read indexes: more than %d different indexes are given", maxIndexes)
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read indexes: %w", err)
	}
	return all, nil
}

// A processor applies a Processing to the records of a report.
type processor struct {
	*Processing
	out         func(*record) error
	rereader    *recordReader // reads kept lines, and passes their records to out
	space       *space        // address space of the process
	diagnostics *report.Once

	begun   bool   // a record was read
	lineEnd string // line end of the report: "\n" or "\r\n"
	types   resourceTypes

	// The calls that share the current backtrace.
	open       bool // a call was read
	wanted     bool // one of the calls is selected
	lastWanted bool // the last call is selected
	group      group

	kept kept
	lost int64 // calls left out for lack of memory, of all reports so far
}

// A resourceType is a type of resource in the report's list.
type resourceType struct {
	name, description string
	mask              uint64
	counts            bool
}

// A group collects calls that share a backtrace, if a step needs the whole backtrace.
type group struct {
	calls   []*call
	text    []byte // lines of the last call and its arguments
	lines   []byte
	hashes  [2]maphash.Hash
	frames  int
	matches bool // a frame is in one of Addresses
	cut     bool // frames beyond maxTrace were left out
	epoch   int
}

func newProcessor(o *Options, s *space, t *report.Once, out func(*record) error) *processor {
	r := &processor{Processing: &o.Processing, out: out, rereader: newReader(out), space: s, diagnostics: t}
	r.rereader.compressed, r.rereader.headed = true, true
	r.lineEnd = "\n"
	r.kept.share = report.NewShare(o.Memory)
	r.kept.reset()
	r.group.hashes[0].SetSeed(maphash.MakeSeed())
	r.group.hashes[1].SetSeed(maphash.MakeSeed())
	return r
}

// collects reports whether calls wait for the end of their backtrace.
func (p *processor) collects() bool { return p.keeps() || p.Addresses != nil }

func (p *processor) addRecord(rec *record) error {
	begun := p.begun
	p.begun = true
	switch rec.Kind {
	case headerRecord:
		if begun {
			if err := p.end(); err != nil {
				return err
			}
		}
		p.types = p.types[:0]
		p.header(rec)
	case commentRecord:
		if rec.Temporary {
			return nil
		}
		if p.keeps() && p.kept.begun {
			p.kept.comment(p, rec)
			return nil
		}
	case mapRecord, attachmentRecord:
		return p.pass(rec)
	case contextRecord:
		if p.Contexts != nil && *p.Contexts&rec.Mask == 0 {
			return p.endGroup()
		}
		return p.pass(rec)
	case resourceRecord:
		p.types.add(rec)
		if p.Resources != 0 && p.Resources&rec.Mask == 0 {
			return p.endGroup()
		}
		return p.pass(rec)
	case allocRecord, freeRecord:
		return p.call(rec)
	case argumentRecord:
		return p.argument(rec)
	case frameRecord:
		return p.frame(rec)
	case blankRecord:
		if p.open {
			return p.blank(rec)
		}
		if p.keeps() && p.kept.begun {
			return nil
		}
	}
	return p.out(rec)
}

// lineEnds are the possible line ends, shortest first.
var lineEnds = [...]string{"\n", "\r\n"}

// pass ends the current backtrace, and passes on the record after it.
func (p *processor) pass(rec *record) error {
	if err := p.endGroup(); err != nil {
		return err
	}
	return p.out(rec)
}

// resourceTypes are the types of resources, in the order of the report.
type resourceTypes []resourceType

// add adds the type that a record declares, unless the list is full or has a type of this name.
func (all *resourceTypes) add(rec *record) {
	if len(*all) < maxTypes && all.named(string(rec.Name)) == nil {
		*all = append(*all, resourceType{string(rec.Name), string(rec.Description), rec.Mask, rec.RefCount})
	}
}

// named returns the type with this name, or nil.
func (all resourceTypes) named(name string) *resourceType {
	if i := slices.IndexFunc(all, func(t resourceType) bool { return t.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// ofCall returns the type of a call's resource, or nil.
func (all resourceTypes) ofCall(rec *record) *resourceType {
	if rec.Type != nil {
		return all.named(string(rec.Type))
	}
	if len(all) > 0 {
		return &all[0]
	}
	return nil
}

// wants reports whether Resources, Include, Exclude and Contexts select a call.
func (p *processor) wants(rec *record) bool {
	if p.Resources != 0 {
		if t := p.types.ofCall(rec); t != nil && t.mask&p.Resources == 0 {
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

func (p *processor) call(rec *record) error {
	if !rec.Joined {
		if err := p.endGroup(); err != nil {
			return err
		}
	}
	p.open = true
	p.lastWanted = p.wants(rec)
	p.wanted = p.wanted || p.lastWanted
	p.kept.begun = true
	if end := rec.end(); len(end) > 0 {
		p.lineEnd = lineEnds[len(end)-1]
	}
	p.kept.index = rec.Index
	switch {
	case !p.lastWanted:
		return nil
	case p.collects():
		p.collect(rec)
		return nil
	}
	return p.out(rec)
}

func (p *processor) argument(rec *record) error {
	switch {
	case p.open && !p.lastWanted:
		return nil
	case p.open && p.collects():
		if len(p.group.text)+len(rec.Raw) > maxTrace {
			p.diagnostics.Report(fmt.Sprintf("a call has more than %d bytes of arguments: the rest is left out", maxTrace))
			return nil
		}
		p.group.text = append(p.group.text, rec.Raw...)
		return nil
	}
	return p.out(rec)
}

func (p *processor) frame(rec *record) error {
	if p.open && !p.wanted {
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
			p.diagnostics.Report(fmt.Sprintf("a backtrace has more than %d bytes of frames: the rest is left out", maxTrace))
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
	g.hashes[0].Write(b[:])
	g.hashes[1].Write(b[:])
	return nil
}

// blank handles an empty line, which ends the current backtrace. The empty line is passed on only
// if a call of the backtrace was selected.
func (p *processor) blank(rec *record) error {
	left := p.wanted
	if p.collects() {
		return p.endGroup()
	}
	p.open, p.wanted = false, false
	if !left {
		return nil
	}
	return p.out(rec)
}

// collect adds a call to the group. If the memory for kept calls is used up, collect only counts
// the call as left out.
func (p *processor) collect(rec *record) {
	passes := rec.Kind == freeRecord && p.Leaks && !p.kept.unordered // a free that needs no memory
	if !passes && !p.kept.fits(int64(len(rec.Raw))+callOverhead) {
		p.lastWanted = false
		p.kept.leftOut++
		return
	}
	p.endCall()
	p.group.text = append(p.group.text, rec.Raw...)
	c := &call{
		index: rec.Index, time: timeOf(rec.Time), id: rec.ID, size: rec.Size, alloc: rec.Kind == allocRecord,
	}
	if t := p.types.ofCall(rec); t != nil {
		c.kind, c.counts = t.name, t.counts
	} else {
		c.kind = string(rec.Type)
	}
	p.group.calls = append(p.group.calls, c)
}

// endCall moves the collected lines of a call into the last call of the group, and counts their
// memory.
func (p *processor) endCall() {
	if n := len(p.group.calls); n > 0 {
		c := p.group.calls[n-1]
		c.lines = string(p.group.text)
		p.kept.used += c.cost()
	}
	p.group.text = p.group.text[:0]
}

// endGroup processes the collected calls of a backtrace.
func (p *processor) endGroup() error {
	g := &p.group
	p.endCall()
	defer func() {
		clear(g.calls)
		g.calls, g.lines = g.calls[:0], g.lines[:0]
		g.hashes[0].Reset()
		g.hashes[1].Reset()
		g.frames, g.matches, g.cut = 0, false, false
		p.open, p.wanted = false, false
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
		p.kept.addGroup(p, g)
		return nil
	}
	for _, c := range g.calls {
		p.kept.used -= c.cost()
		p.rereader.Write([]byte(p.whole(c.lines)))
	}
	p.rereader.Write([]byte(p.whole(string(g.lines))))
	_, err := p.rereader.Write([]byte(p.lineEnd)) // the empty line that ends a backtrace
	return err
}

// end passes on the kept calls at the end of a report.
func (p *processor) end() error {
	err := p.endGroup()
	if err == nil && p.keeps() {
		err = p.kept.print(p)
	}
	if n := p.kept.leftOut; n > 0 {
		p.lost += int64(n)
		p.diagnostics.Report(fmt.Sprintf("%d calls exceed the %d MiB of memory allowed and are left out (--max-memory)", n, p.kept.mebibytes()))
	}
	p.kept.reset()
	return err
}

// timeOf returns a time of the day in nanoseconds, or 0 if text is not a time.
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
