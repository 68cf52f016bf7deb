package rtrace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/internal/report"
)

// kept holds the calls that Leaks and Compress keep until the end of a report.
type kept struct {
	begun bool   // a call was read
	index uint64 // index of the last call

	first, end *call // linked in the order of the output
	traces     map[traceKey]*trace
	table      map[resource]*call // calls whose resource is not freed yet
	unordered  bool               // calls are not sorted by time, so frees are matched at the end
	comments   []comment

	share   report.Share
	used    int64 // bytes of all kept calls and backtraces
	leftOut int   // calls left out for lack of memory
}

// A call holds one call of a report, with its arguments.
type call struct {
	lines   string
	trace   *trace
	index   uint64
	time    uint64
	id      uint64
	size    int64
	kind    string // type of the resource
	alloc   bool
	counts  bool
	dropped bool
	count   int // allocations minus frees of a resource that counts them

	next, before *call
}

func (c *call) cost() int64 { return int64(len(c.lines)) + callOverhead }

// A resource is identified by its type and ID.
type resource struct {
	kind string
	id   uint64
}

// A trace is a backtrace that several calls may share.
type trace struct {
	lines string
	key   traceKey
	uses  int

	calls []*call // calls with this backtrace, if they are grouped
	size  int64
}

func (t *trace) cost() int64 { return int64(len(t.lines)) + traceOverhead }

// A traceKey identifies a backtrace by two hashes of its addresses. The seeds are random, so nobody
// can write a report whose backtraces collide.
type traceKey struct {
	hashes [2]uint64
	frames int
	epoch  int // epoch of the mappings with the addresses
}

// A comment is a comment between calls, with the index of the preceding call. The comment is
// printed before the first call with a larger index.
type comment struct {
	line  string
	index uint64
}

func (k *kept) reset() {
	k.share.Release()
	*k = kept{traces: make(map[traceKey]*trace), table: make(map[resource]*call), share: report.NewShare(k.share.Budget)}
}

// fits reserves size more bytes of the memory budget. It returns false if fewer are left.
func (k *kept) fits(size int64) bool { return k.share.Reserve(k.used + size) }

// mebibytes returns the total budget in MiB, for messages.
func (k *kept) mebibytes() int64 { return k.share.Budget.Most() >> 20 }

func (k *kept) comment(p *processor, rec *record) {
	if size := int64(len(rec.Raw)) + commentOverhead; k.fits(size) {
		k.used += size
		k.comments = append(k.comments, comment{string(rec.Raw), k.index})
	} else {
		p.diagnostics.Report(fmt.Sprintf("comments exceed the %d MiB of memory allowed: further comments are left out (--max-memory)", k.mebibytes()))
	}
}

// addGroup keeps the calls of a group with their backtrace. For Leaks, it first matches frees
// with allocations, and keeps only allocations not freed.
func (k *kept) addGroup(p *processor, g *group) {
	if p.Leaks && !k.unordered {
		n := 0
		for _, c := range g.calls {
			if k.pair(c) {
				g.calls[n] = c
				n++
			} else {
				k.used -= c.cost()
			}
		}
		clear(g.calls[n:])
		g.calls = g.calls[:n]
	}
	g.calls = slices.DeleteFunc(g.calls, func(c *call) bool {
		if c.dropped {
			k.used -= c.cost()
		}
		return c.dropped
	})
	if len(g.calls) == 0 {
		return
	}
	key := traceKey{hashes: [2]uint64{g.hashes[0].Sum64(), g.hashes[1].Sum64()}, frames: g.frames, epoch: g.epoch}
	if g.frames == 0 {
		key.epoch = 0
	}
	t := k.traces[key]
	if t == nil {
		t = &trace{lines: string(g.lines), key: key}
		k.used += t.cost()
		k.traces[key] = t
	}
	for _, c := range g.calls {
		c.trace = t
		t.uses++
		k.link(c)
	}
}

func (k *kept) link(c *call) {
	c.before, c.next = k.end, nil
	if k.end != nil {
		k.end.next = c
	} else {
		k.first = c
	}
	k.end = c
}

// drop removes a call from the list. If the call is in the current group, and so not in the list
// yet, drop only marks it.
func (k *kept) drop(c *call) {
	if c.trace == nil {
		c.dropped = true
		return
	}
	if c.before != nil {
		c.before.next = c.next
	} else {
		k.first = c.next
	}
	if c.next != nil {
		c.next.before = c.before
	} else {
		k.end = c.before
	}
	k.used -= c.cost()
	if t := c.trace; t.uses == 1 {
		delete(k.traces, t.key)
		k.used -= t.cost()
	}
	c.trace.uses--
}

// pair matches a call with earlier calls, and reports whether the call is kept. A free is not kept:
// it drops the call that allocated its resource. If the type counts references, a repeated
// allocation is not kept either, and the resource is freed by the last free.
func (k *kept) pair(c *call) bool {
	key := resource{c.kind, c.id}
	known := k.table[key]
	switch {
	case c.alloc && known != nil && c.counts:
		known.count++
		return false
	case c.alloc:
		c.count = 1
		k.table[key] = c
		return true
	case known != nil:
		if known.count--; known.count <= 0 || !c.counts {
			delete(k.table, key)
			k.drop(known)
		}
	}
	return false
}

func (k *kept) sort() {
	var all []*call
	for c := k.first; c != nil; c = c.next {
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.index, b.index))
	})
	k.first, k.end = nil, nil
	for _, c := range all {
		k.link(c)
	}
}

// print passes on the remaining calls and comments, and the sums of leaks.
func (k *kept) print(p *processor) error {
	if k.unordered {
		k.sort()
		if p.Leaks {
			for c := k.first; c != nil; {
				next := c.next
				if !k.pair(c) {
					k.drop(c)
				}
				c = next
			}
		}
	}
	var err error
	if p.Compress {
		err = k.printGroups(p)
	} else {
		for c := k.first; c != nil && err == nil; c = c.next {
			k.printComments(p, c.index)
			p.rereader.Write([]byte(p.whole(c.lines)))
			err = k.printTrace(p, c.trace)
		}
	}
	if err != nil {
		return err
	}
	k.printComments(p, 1<<64-1)
	if p.Leaks {
		k.printLeaks(p)
	}
	return p.rereader.err
}

// printComments passes on the comments before the call with this index.
func (k *kept) printComments(p *processor, index uint64) {
	n := 0
	for n < len(k.comments) && k.comments[n].index < index {
		p.rereader.Write([]byte(p.whole(k.comments[n].line)))
		n++
	}
	k.comments = k.comments[n:]
}

// printTrace passes on a backtrace and an empty line after it.
func (k *kept) printTrace(p *processor, t *trace) error {
	p.rereader.epoch = t.key.epoch
	p.rereader.Write([]byte(p.whole(t.lines)))
	p.rereader.Write([]byte(p.lineEnd))
	p.rereader.epoch = 0
	return p.rereader.err
}

// printGroups passes on the calls grouped by backtrace.
func (k *kept) printGroups(p *processor) error {
	var groups []*trace
	for c := k.first; c != nil; c = c.next {
		t := c.trace
		if t.calls == nil {
			groups = append(groups, t)
		}
		t.calls = append(t.calls, c)
		t.size += c.size
	}
	slices.SortStableFunc(groups, func(a, b *trace) int {
		switch p.Sort {
		case BySize:
			return cmp.Compare(b.size, a.size)
		case ByCountAscending:
			return cmp.Compare(len(a.calls), len(b.calls))
		case ByCount:
			return cmp.Compare(len(b.calls), len(a.calls))
		}
		return cmp.Compare(a.size, b.size)
	})
	for _, t := range groups {
		for _, c := range t.calls {
			k.printComments(p, c.index)
			p.rereader.Write([]byte(p.whole(c.lines)))
		}
		fmt.Fprintf(p.rereader, "# allocation summary: %d block(s) with total size %d%s", len(t.calls), t.size, p.lineEnd)
		if err := k.printTrace(p, t); err != nil {
			return err
		}
	}
	return nil
}

// printLeaks passes on the summary of leaks for each type of resource.
func (k *kept) printLeaks(p *processor) {
	type sum struct {
		blocks int
		size   int64
	}
	sums := make(map[string]sum)
	if len(p.types) == 0 { // a report without a list of types has one sum
		sums[""] = sum{}
	}
	for c := k.first; c != nil; c = c.next {
		s := sums[c.kind]
		sums[c.kind] = sum{s.blocks + 1, s.size + c.size}
	}
	print := func(kind string) {
		fmt.Fprintf(p.rereader, "# %d block(s) leaked with total size of %d bytes%s", sums[kind].blocks, sums[kind].size, p.lineEnd)
		delete(sums, kind)
	}
	for i := range p.types {
		if t := &p.types[i]; p.Resources == 0 || p.Resources&t.mask != 0 {
			fmt.Fprintf(p.rereader, "# Resource - %s (%s):%s", t.name, t.description, p.lineEnd)
			print(t.name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(sums)) { // types missing in the report's list
		if kind != "" {
			fmt.Fprintf(p.rereader, "# Resource - %s:%s", kind, p.lineEnd)
		}
		print(kind)
	}
}

// whole returns lines, with a line end added if the last line lacks one.
func (p *processor) whole(lines string) string {
	if n := len(lines); n > 0 && lines[n-1] != '\n' {
		return lines + p.lineEnd
	}
	return lines
}
