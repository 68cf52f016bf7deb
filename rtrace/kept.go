package rtrace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/report"
)

// kept is what Leaks and Compress keep of a report.
type kept struct {
	begun bool   // a call has come
	index uint64 // of the last one

	first, end *call // in the order in which they are printed
	traces     map[traceKey]*trace
	table      map[resource]*call // allocated, and not freed
	later      bool               // calls do not come in their order: what is freed is found out at the end
	comments   []comment

	share   report.Share
	used    int64 // bytes
	leftOut int   // calls that did not fit
}

// A call is one of a report, with its arguments.
type call struct {
	lines   string
	trace   *trace
	index   uint64
	time    uint64
	id      uint64
	size    int64
	kind    string // of the resource
	alloc   bool
	counts  bool
	dropped bool
	count   int // how often it was allocated, less how often it was freed

	next, before *call
}

func (c *call) cost() int64 { return int64(len(c.lines)) + callOverhead }

// A resource is known by its type and ID.
type resource struct {
	kind string
	id   uint64
}

// A trace is a backtrace that calls share.
type trace struct {
	lines string
	key   traceKey
	uses  int

	calls []*call // when they are grouped
	size  int64
}

func (t *trace) cost() int64 { return int64(len(t.lines)) + traceOverhead }

// traceKey stands for the addresses of a backtrace. Two hashes with seeds that
// nobody knows are as good as these themselves.
type traceKey struct {
	sums   [2]uint64
	frames int
	epoch  int // of the mappings that the addresses mean
}

// A comment is printed before the first call with a larger index than that of
// the call which it stood behind.
type comment struct {
	line  string
	index uint64
}

func (k *kept) reset(p *Processing) {
	k.share.Release()
	*k = kept{traces: make(map[traceKey]*trace), table: make(map[resource]*call), share: report.NewShare(p.Budget)}
}

// fits reports whether there is room for so many bytes more.
func (k *kept) fits(size int64) bool { return k.share.Reserve(k.used + size) }

// mebibytes returns the budget, for messages.
func (k *kept) mebibytes() int64 { return k.share.Budget.Most() >> 20 }

// comment keeps a comment.
func (k *kept) comment(p *processor, rec *Record) {
	if size := int64(len(rec.Raw)) + commentOverhead; k.fits(size) {
		k.used += size
		k.comments = append(k.comments, comment{string(rec.Raw), k.index})
	} else {
		p.teller.tell(fmt.Sprintf("comments do not fit into %d MiB of memory: the rest of them is left out (--max-memory)", k.mebibytes()))
	}
}

// add keeps the calls of a group with their backtrace, if that fits.
func (k *kept) add(p *processor, g *group) {
	if p.Leaks && !k.later {
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
	key := traceKey{sums: [2]uint64{g.sums[0].Sum64(), g.sums[1].Sum64()}, frames: g.frames, epoch: g.epoch}
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

// drop forgets a call. One that is freed by another of its own group has no
// place yet.
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

// pair reports whether a call is left when it is held against those before it:
// one that frees is not, nor one that allocates again what counts. It drops what
// the call frees.
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

// sort brings calls into the order of their times and indexes.
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

// print hands on what is left.
func (k *kept) print(p *processor) error {
	if k.later {
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
			p.again.Write([]byte(p.whole(c.lines)))
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
	return p.again.err
}

// printComments hands on the comments that come before a call.
func (k *kept) printComments(p *processor, index uint64) {
	n := 0
	for n < len(k.comments) && k.comments[n].index < index {
		p.again.Write([]byte(p.whole(k.comments[n].line)))
		n++
	}
	k.comments = k.comments[n:]
}

// printTrace hands on a backtrace and the empty line behind it.
func (k *kept) printTrace(p *processor, t *trace) error {
	p.again.epoch = t.key.epoch
	p.again.Write([]byte(p.whole(t.lines)))
	p.again.Write([]byte(p.lineEnd))
	p.again.epoch = 0
	return p.again.err
}

// printGroups hands on calls by their backtraces.
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
			p.again.Write([]byte(p.whole(c.lines)))
		}
		fmt.Fprintf(p.again, "# allocation summary: %d block(s) with total size %d%s", len(t.calls), t.size, p.lineEnd)
		if err := k.printTrace(p, t); err != nil {
			return err
		}
	}
	return nil
}

// printLeaks hands on what was leaked of each type of resources.
func (k *kept) printLeaks(p *processor) {
	type sum struct {
		blocks int
		size   int64
	}
	sums := make(map[string]sum)
	if len(p.types) == 0 { // all that there is
		sums[""] = sum{}
	}
	for c := k.first; c != nil; c = c.next {
		s := sums[c.kind]
		sums[c.kind] = sum{s.blocks + 1, s.size + c.size}
	}
	print := func(kind string) {
		fmt.Fprintf(p.again, "# %d block(s) leaked with total size of %d bytes%s", sums[kind].blocks, sums[kind].size, p.lineEnd)
		delete(sums, kind)
	}
	for i := range p.types {
		if t := &p.types[i]; p.Resources == 0 || p.Resources&t.mask != 0 {
			fmt.Fprintf(p.again, "# Resource - %s (%s):%s", t.name, t.description, p.lineEnd)
			print(t.name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(sums)) { // that the report does not list
		if kind != "" {
			fmt.Fprintf(p.again, "# Resource - %s:%s", kind, p.lineEnd)
		}
		print(kind)
	}
}

// whole returns lines with an end to the last one: the report may have ended
// without, and more follows now.
func (p *processor) whole(lines string) string {
	if n := len(lines); n > 0 && lines[n-1] != '\n' {
		return lines + p.lineEnd
	}
	return lines
}
