package dwarf

import (
	"cmp"
	"slices"
	"sort"
	"unsafe"
)

// A functionTable holds the functions of a unit that have code.
type functionTable struct {
	scanned bool
	leapt   bool // the scan skipped entries by DW_AT_sibling
	rescan  bool // the scan was repeated without skipping

	// list holds the functions of the first scan, with ranges in main, then the functions of the
	// repeated scan, with ranges in rest. rest is searched only if main does not cover an address.
	// So no answer depends on whether the scan was already repeated.
	list []function
	main functionSet
	rest *functionSet // nil until the scan was repeated

	// calls that lookups have read so far, and the ranges of these calls: in starts for tidy
	// functions, in spans for untidy ones
	calls  []call
	spans  []span
	starts []callStart

	rare *rareCalls // nil until a lookup needs one of its tables
}

// rareCalls are tables that few lookups need. They are allocated separately: a program may have
// thousands of small modules, each with a unit.
type rareCalls struct {
	bases []uint32 // index of each function's first call, for Walk

	gathered bool    // all is complete
	all      []reach // see callAmong
}

// rarely returns the table's rareCalls.
func (f *functionTable) rarely() *rareCalls {
	if f.rare == nil {
		f.rare = new(rareCalls)
	}
	return f.rare
}

func (r *rareCalls) footprint() int64 {
	if r == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*r)) + sizeOf(r.bases) + sizeOf(r.all)
}

// sets returns the sets of ranges: main and, after scanAgain, rest.
func (f *functionTable) sets() []*functionSet {
	if f.rest == nil {
		return []*functionSet{&f.main}
	}
	return []*functionSet{&f.main, f.rest}
}

// A function is a DW_TAG_subprogram with code. Its last fields locate the calls inlined into it,
// once these are parsed.
type function struct {
	base     uint64 // address that the starts of the function's calls are relative to
	entry    uint32
	parsed   bool
	coldPart bool // see coldPartPrefix
	layout   layout
	// calls and numCalls select the function's part of functionTable.calls: the function itself,
	// then the calls inlined into it
	calls    uint32
	numCalls uint32
	// places and numPlaces select the ranges of these calls: in functionTable.starts if the layout
	// is tidy, otherwise in functionTable.spans
	places    uint32
	numPlaces uint32
}

func (f *functionTable) footprint() int64 {
	n := sizeOf(f.list) + f.main.footprint() + sizeOf(f.calls) + sizeOf(f.spans) + sizeOf(f.starts) + f.rare.footprint()
	if f.rest != nil {
		n += int64(unsafe.Sizeof(*f.rest)) + f.rest.footprint()
	}
	return n
}

// A functionSet holds the ranges of functions in the order of their entries. After coldUnitLookups
// lookups, it sorts them into clusters.
type functionSet struct {
	spans    []span
	clusters []cluster
	sorted   bool
	looks    uint8
}

// A cluster is a stretch of addresses without a gap. first and n select its ranges in
// functionSet.spans, in the order of their entries. Nearly all clusters have one range.
type cluster struct {
	lo, hi uint64
	first  uint32
	n      uint32
}

func (s *functionSet) footprint() int64 { return sizeOf(s.spans) + sizeOf(s.clusters) }

// find returns the index in functionTable.list of the function that covers addr, or -1.
func (s *functionSet) find(addr uint64) int {
	if !s.sorted {
		if s.looks < coldUnitLookups {
			s.looks++
			if i := pick(s.spans, addr); i >= 0 {
				return int(s.spans[i].id)
			}
			return -1
		}
		s.sort()
	}
	i := sort.Search(len(s.clusters), func(i int) bool { return s.clusters[i].lo > addr })
	if i == 0 || addr >= s.clusters[i-1].hi {
		return -1
	}
	c := s.clusters[i-1]
	spans := s.spans[c.first : c.first+c.n]
	if i := pick(spans, addr); i >= 0 {
		return int(spans[i].id)
	}
	return -1
}

// sort sorts the ranges, and groups overlapping ranges into clusters. Ranges of different clusters
// do not overlap, so pick needs only the ranges of one cluster.
func (s *functionSet) sort() {
	s.sorted = true
	slices.SortFunc(s.spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	for i := 0; i < len(s.spans); {
		c := cluster{lo: s.spans[i].lo, hi: s.spans[i].hi, first: uint32(i), n: 1}
		for i++; i < len(s.spans) && s.spans[i].lo < c.hi; i++ {
			c.hi = max(c.hi, s.spans[i].hi)
			c.n++
		}
		if c.n > 1 {
			slices.SortFunc(s.spans[c.first:c.first+c.n], func(a, b span) int { return cmp.Compare(a.order, b.order) })
		}
		s.clusters = append(s.clusters, c)
	}
	s.clusters = slices.Clip(s.clusters)
}

// functionAt returns the index in u.funcs.list of the function that covers addr, or -1.
func (u *unit) functionAt(addr uint64) int {
	f := &u.funcs
	u.scan()
	if i := f.main.find(addr); i >= 0 {
		return i
	}
	u.scanAgain()
	if f.rest == nil {
		return -1
	}
	return f.rest.find(addr)
}

// scan finds the functions of the unit, once. It skips the children of most entries with a
// DW_AT_sibling: see scanFunctions.
func (u *unit) scan() {
	if f := &u.funcs; !f.scanned {
		f.scanned = true
		f.main.spans = u.scanFunctions(false)
	}
}

// scanAgain finds, once, the functions that scan skipped: GCC puts the entry of a lambda below the
// function around it.
func (u *unit) scanAgain() {
	if f := &u.funcs; f.leapt && !f.rescan {
		f.rescan = true
		f.rest = &functionSet{spans: u.scanFunctions(true)}
	}
}

// Initial capacity for the functions of a unit: fewFunctions, plus one for each functionBytes of
// entries. Most units need less. Since a unit may have any size, manyFunctions (1 MiB) bounds the
// capacity.
const (
	fewFunctions  = 200
	functionBytes = 2 << 10
	manyFunctions = 1 << 14
)

// scanFunctions walks over the unit's entries, appends the functions to u.funcs.list and returns
// their ranges. Unless full is set, it skips the children of functions, classes and most other
// entries with a DW_AT_sibling. If full is set, it adds only functions that are not in the list
// yet.
func (u *unit) scanFunctions(full bool) []span {
	d := u.d
	f := &u.funcs
	known := f.list
	s := d.space()
	n := min(fewFunctions+len(u.data)/functionBytes, manyFunctions)
	spans, list := room(s.spans, n), room(s.functions, n)
	leap := leapFunctions
	if full {
		leap = 0
	}
	limit := min(maxDIEs, d.work)
	w := u.walkFrom(u.root, isFunction, leap, limit)
	for w.next() {
		c := w.attributes()
		e := u.readEntry(&c, w.decl)
		if c.bad {
			w.fault = "function"
			break
		}
		w.pos = c.pos
		if !full || !hasFunction(known, uint32(w.entry)) {
			before := len(spans)
			spans = u.appendPC(spans, e.lowPC, e.highPC, e.ranges, uint32(len(known)+len(list)))
			if len(spans) > before {
				list = append(list, function{entry: uint32(w.entry), coldPart: u.isColdPart(w.decl, &e)})
			}
		}
		if w.decl.children && !full && e.sibling > uint64(w.pos) && e.sibling <= uint64(len(u.data)) {
			w.leapTo(int(e.sibling))
		}
	}
	if w.fault != "" && w.fault != endsEarly {
		u.damaged("entry at %#x: %s", w.entry, w.fault)
	}
	f.leapt = f.leapt || w.leapt
	d.spend(limit - w.left)
	d.read += int64(len(u.data))
	f.list = slices.Concat(known, list)
	s.spans, s.functions = spans, list
	return slices.Clone(spans)
}

func hasFunction(list []function, entry uint32) bool {
	_, found := slices.BinarySearchFunc(list, entry, func(f function, e uint32) int { return cmp.Compare(f.entry, e) })
	return found
}

// An entryData holds the attributes of a function or inlined call that lookups use.
type entryData struct {
	lowPC, highPC, ranges            value
	sibling                          uint64 // 0: none
	callFile, callLine, callColumn   uint32
	name, linkage, origin, specified value
}

func (u *unit) readEntry(c *cursor, a *abbrev) entryData {
	var e entryData
	if !u.d.spend(int(a.numSpecs)) {
		c.fail()
	}
	specs := u.abbrevs.attrs(a)
	for range a.numSpecs {
		s := specs.next()
		v := c.value(s.form, s.implicit, u.enc)
		switch s.attr {
		case attrLowPC:
			e.lowPC = v
		case attrHighPC:
			e.highPC = v
		case attrRanges:
			e.ranges = v
		case attrSibling:
			if s.form == uint16(a.sibForm) {
				e.sibling = v.u
			}
		case attrCallFile:
			e.callFile = clamp(v.u)
		case attrCallLine:
			e.callLine = clamp(v.u)
		case attrCallColumn:
			e.callColumn = clamp(v.u)
		case attrName:
			e.name = v
		case attrLinkageName, attrMIPSLinkageName:
			e.linkage = v
		case attrAbstractOrigin:
			e.origin = v
		case attrSpecification:
			e.specified = v
		}
	}
	return e
}

// clamp returns a line, column or file number, or 0 (unknown) if it is out of range.
func clamp(v uint64) uint32 {
	if v > 1<<32-1 {
		return 0
	}
	return uint32(v)
}
