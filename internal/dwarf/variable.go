package dwarf

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"unsafe"

	"debug/elf"

	"github.com/symfilter/symfilter/internal/object"
)

// A Variable is a static variable, with its part at the requested address.
type Variable struct {
	Name       []byte // see Frame.Name
	HasLinkage bool
	Addr       uint64
	Size       uint64 // bytes; 0: not known
	// part of the variable at the requested address, such as ".refs", "[3].refs" or "[3]+0x4"; ""
	// for the variable's start, or if the part is unknown
	Member string

	Declared Declaration // set after WithDetails
}

// An Extent is a variable's symbol in a symbol table. The zero value means no symbol.
type Extent struct {
	Name       []byte
	Addr, Size uint64
}

// varSections describes the sections with variables.
type varSections struct {
	file *object.File // the file with the sections
	dear bool         // .debug_info is compressed, and larger than maxStaticInflate

	// equal to file if that is an object file, a .dwo file or a package; otherwise nil. In such a
	// file, each type unit may have its own section
	unlinked *object.File
}

// A dataRange has the addresses of a section that may hold variables.
type dataRange struct{ lo, hi uint64 }

func varSectionsOf(f *object.File) varSections {
	return varSections{file: f, dear: f.HeapCost(sectionNames[secInfo]) > maxStaticInflate}
}

// ranges returns the ranges of the sections that may hold variables.
func (v *varSections) ranges() (all []dataRange) {
	if v.file == nil {
		return nil
	}
	for _, s := range v.file.Sections() {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_EXECINSTR == 0 && s.Size > 0 && s.Addr+s.Size > s.Addr {
			all = append(all, dataRange{s.Addr, s.Addr + s.Size})
		}
	}
	return all
}

// hold reports whether a variable may be at addr.
func (v *variables) hold(addr uint64) bool {
	for _, r := range v.ranges {
		if r.lo <= addr && addr < r.hi {
			return true
		}
	}
	return false
}

// variables holds the variables of a file found so far.
type variables struct {
	d      *Data
	found  bool
	starts []static
	ranges []dataRange
	units  map[uint64][]variableEntry // by offset of the unit with their addresses
	held   int64                      // bytes of heap of units and typeUnits

	signed      []signature
	signedOK    bool
	typeUnits   map[uint64]*unit // parsed units of .debug_types, by offset
	definitions []definition
	defined     bool

	types  []byte // .debug_types, joined
	joined bool
}

// A static is an address at which a variable may start. unit is the offset in .debug_info of the
// unit that describes the variable.
type static struct {
	addr, unit uint64
}

// A variableEntry is a variable of a unit, or of its split unit.
type variableEntry struct {
	addr  uint64
	entry uint32
}

// variables returns d.vars, which the first call makes.
func (d *Data) variables() *variables {
	if d.vars == nil {
		d.vars = &variables{d: d, ranges: d.sec.vars.ranges()}
	}
	return d.vars
}

func (v *variables) footprint() int64 {
	if v == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*v)) + v.held + sizeOf(v.starts) + sizeOf(v.ranges) + sizeOf(v.signed) + sizeOf(v.types)
}

// Variable returns the static variable that contains addr, with the member at addr. If sym has a
// name, Variable returns only the variable of that symbol, with the symbol's size. ok is false if
// nothing is known. Errors are the same as for Lookup.
//
// The first call for a file scans the whole of .debug_info, at several GB/s. Later calls parse the
// units that may have a variable at the address, usually one.
func (d *Data) Variable(addr uint64, sym Extent) (v Variable, ok bool, err error) {
	d.begin()
	if d.sec.vars.dear {
		return v, false, nil
	}
	alt := d.links.supplementary()
	var altHeld int64
	if alt != nil {
		altHeld = alt.Footprint()
		alt.tick, alt.work, alt.err = d.tick, maxVariableWork, nil
	}
	vars := d.variables()
	if !vars.found {
		vars.found = true
		vars.starts = vars.findStatics()
	}
	d.work = min(d.work, maxVariableWork)
	if best := vars.bestVariable(addr, sym); best.unit != nil {
		vars.inVariableUnit(best.unit, func(hu *unit) {
			if v, ok = hu.describe(best.entry, addr, sym); ok && d.detailed {
				v.Declared = best.unit.declaration(hu, best.entry)
			}
		})
	}
	if alt != nil {
		d.links.held += alt.Footprint() - altHeld
		if d.err == nil {
			d.err = alt.err
		}
	}
	d.trim()
	return v, ok, d.firstErr(nil)
}

// VariablesAreDear reports whether Variable never finds a variable, because it would have to
// inflate a large section.
func (d *Data) VariablesAreDear() bool { return d.sec.vars.dear }

// inVariableUnit calls do with the unit that has the entries of u's variables: its split unit, or u
// itself.
func (v *variables) inVariableUnit(u *unit, do func(hu *unit)) {
	d := v.d
	u.used = d.tick
	hu := d.links.enterSplit(u)
	do(hu)
	d.count(u)
	d.links.leaveSplit(u, hu)
}

// A variableChoice is the entry of a variable. Its score is the result of agree for this entry.
type variableChoice struct {
	unit  *unit
	entry uint32
	score int
}

// bestVariable returns the variable of sym. Among the variables at sym's address, it prefers sym's
// name, then sym's size, then the order in .debug_info. Without an equal name, the size must be
// equal: the compiler may have merged several variables into one symbol. Without a symbol,
// bestVariable returns the first variable at the highest address not above addr.
func (v *variables) bestVariable(addr uint64, sym Extent) (best variableChoice) {
	d := v.d
	starts := v.starts
	start := sym.Addr
	if len(sym.Name) == 0 {
		i := sort.Search(len(starts), func(i int) bool { return starts[i].addr > addr })
		if i == 0 {
			return best
		}
		start = starts[i-1].addr
	}
	i := sort.Search(len(starts), func(i int) bool { return starts[i].addr >= start })
	tried := 0
	for n := 0; n < maxAliases && i < len(starts) && starts[i].addr == start; n, i = n+1, i+1 {
		u := d.unitAt(starts[i].unit)
		if u == nil || d.work == 0 {
			continue
		}
		v.inVariableUnit(u, func(hu *unit) {
			list := u.variables(hu)
			at := sort.Search(len(list), func(i int) bool { return list[i].addr >= start })
			for _, v := range list[at:] {
				if tried++; v.addr != start || tried > maxAliases {
					return
				}
				score := 1
				if len(sym.Name) > 0 {
					score = hu.agree(v.entry, sym)
				}
				if score > best.score {
					best = variableChoice{u, v.entry, score}
				}
			}
		})
		if best.score >= 3 || best.score > 0 && len(sym.Name) == 0 {
			break
		}
	}
	return best
}

// agree returns what an entry has in common with a symbol at its address: 0 nothing, 1 the size, 2
// the name, 3 both.
func (u *unit) agree(entry uint32, sym Extent) (score int) {
	d := u.d
	w := d.variables().newTypeWalk()
	defer w.charge(d)
	info := w.variable(typeAt{u, entry})
	if size, ok := w.size(info.typ, 0); ok && size == sym.Size {
		score++
	}
	name := sym.Name
	if bytes.Equal(info.linkage, name) || bytes.Equal(info.name, name) {
		return score + 2
	}
	// GCC names a static variable of a function counter.0, and Clang names it function.counter. A
	// mangled name contains the variable's plain name.
	for part := range bytes.SplitSeq(name, []byte(".")) {
		if len(part) > 0 && (bytes.Equal(info.name, part) || bytes.Equal(info.linkage, part)) {
			return score + 2
		}
	}
	if len(info.name) > 0 && bytes.HasPrefix(name, []byte("_Z")) && bytes.Contains(name, info.name) {
		return score + 2
	}
	return score
}

func (u *unit) describe(entry uint32, addr uint64, sym Extent) (v Variable, ok bool) {
	d := u.d
	w := d.variables().newTypeWalk()
	defer w.charge(d)
	info := w.variable(typeAt{u, entry})
	v = Variable{Name: info.name, Addr: sym.Addr, Size: sym.Size}
	if len(info.linkage) > 0 && d.names != AllDeclared {
		v.Name, v.HasLinkage = info.linkage, true
	}
	if len(sym.Name) == 0 {
		v.Addr = info.addr
		if v.Size, ok = w.size(info.typ, 0); !ok || addr-v.Addr >= v.Size || len(v.Name) == 0 {
			return Variable{}, false
		}
	}
	limit := v.Size
	if limit == 0 {
		limit, _ = w.size(info.typ, 0)
	}
	w.language(u)
	v.Member = w.member(info.typ, addr-v.Addr, limit)
	return v, true
}

// findStatics returns the addresses of possible variables, with their units. It returns nil if the
// sections are too large. Compilers write the address of a static variable in two ways. One is an
// expression of one operation, DW_OP_addr: findStatics searches for its bytes without reading the
// entries. The other is an index into .debug_addr: findStatics takes all addresses of data in that
// section. Bytes that only look like such an expression are rejected when the unit is parsed.
func (v *variables) findStatics() []static {
	d := v.d
	info, addrs := d.sec.get(secInfo), d.sec.get(secAddr)
	if len(info)+len(addrs) > maxStaticScan || !d.spend((len(info)+len(addrs))/scanCost) {
		return nil
	}
	var head unit
	if _, ok := head.parseHeader(d, info, 0); !ok {
		return nil
	}
	size := int(head.enc.addrSize)
	starts := v.staticsInPlace(info, size)
	if len(addrs) >= size {
		starts = append(starts, v.staticsByIndex(addrs, size)...)
	}
	slices.SortFunc(starts, func(a, b static) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.unit, b.unit))
	})
	return slices.Clip(slices.Compact(starts))
}

func (v *variables) staticsInPlace(info []byte, size int) []static {
	d := v.d
	var starts []static
	needle := []byte{byte(size + 1), opAddr}
	units := d.unitOffsets()
	at := 0 // index of the unit with position p
	for p := 0; len(starts) < maxStatics; {
		n := bytes.Index(info[p:], needle)
		if n < 0 {
			break
		}
		p += n + 2
		if len(info)-p < size {
			break
		}
		addr := loadAddr(info[p:], size, d.big)
		if !v.hold(addr) {
			p-- // not the address of a variable: another match may begin here
			continue
		}
		for at+1 < len(units) && units[at+1] <= uint64(p) {
			at++
		}
		if at < len(units) && units[at] <= uint64(p) {
			starts = append(starts, static{addr, units[at]})
		}
	}
	return starts
}

func (v *variables) staticsByIndex(addrs []byte, size int) []static {
	d := v.d
	bases := v.addrBases()
	var starts []static
	at := -1
	for p := 0; p+size <= len(addrs) && len(starts) < maxStatics; p += size {
		addr := loadAddr(addrs[p:], size, d.big)
		if !v.hold(addr) {
			continue
		}
		for at+1 < len(bases) && bases[at+1].addr <= uint64(p) {
			at++
		}
		for i := at; i >= 0 && bases[i].addr == bases[at].addr && at-i < maxAliases; i-- {
			starts = append(starts, static{addr, bases[i].unit})
		}
	}
	return starts
}

func (v *variables) addrBases() []static {
	d := v.d
	info, abbrev := d.sec.get(secInfo), d.sec.get(secAbbrev)
	var bases []static
	var u unit
	var last abbrevKey
	var lastCode uint64
	for _, off := range d.unitOffsets() {
		if _, ok := u.parseHeader(d, info, off); !ok || !u.isCompile() || !d.spend(1) {
			continue
		}
		root := cursorAt(u.data, uint64(u.root), d.big)
		code := root.uleb()
		if root.bad || code == 0 {
			continue
		}
		if key := (abbrevKey{u.abbrevOff, u.enc}); key != last || code != lastCode {
			last, lastCode = key, code
			d.space().abbrevs.parse(cursorAt(abbrev, u.abbrevOff, d.big), u.enc, code)
			if !d.spend(d.space().abbrevs.tried) {
				break
			}
		}
		if u.parseRoot(&d.space().abbrevs) {
			bases = append(bases, static{u.addrBase, off})
		}
	}
	slices.SortFunc(bases, func(a, b static) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.unit, b.unit))
	})
	return bases
}

func loadAddr(b []byte, size int, big bool) uint64 {
	switch {
	case size == 8:
		return load64(b, big)
	case big:
		return uint64(binary.BigEndian.Uint32(b))
	}
	return uint64(binary.LittleEndian.Uint32(b))
}

// variables returns the variables of u, whose entries are in hu.
func (u *unit) variables(hu *unit) []variableEntry {
	d := u.d
	vars := d.variables()
	if list, ok := vars.units[u.off]; ok {
		return list
	}
	list := slices.Clip(hu.scanVariables())
	slices.SortStableFunc(list, func(a, b variableEntry) int { return cmp.Compare(a.addr, b.addr) })
	if vars.units == nil {
		vars.units = make(map[uint64][]variableEntry)
	}
	vars.units[u.off] = list
	vars.held += sizeOf(list) + int64(unsafe.Sizeof(list)) + 32
	return list
}

// scanVariables walks over the unit's entries and returns the variables with a fixed address, also
// in functions.
func (u *unit) scanVariables() []variableEntry {
	var list []variableEntry
	limit := min(maxDIEs, u.d.work)
	w := u.walkFrom(u.root, isVariable, leapVariables, limit)
	for len(list) < maxUnitVariables && w.next() {
		c := w.attributes()
		addr, ok := u.variableAddr(&c, w.decl)
		if c.bad {
			break
		}
		if w.pos = c.pos; ok {
			list = append(list, variableEntry{addr, uint32(w.entry)})
		}
	}
	u.d.spend(limit - w.left)
	return list
}

// variableAddr reads the attributes of a variable and returns its address, if that is fixed.
func (u *unit) variableAddr(c *cursor, a *abbrev) (addr uint64, ok bool) {
	if !u.d.spend(int(a.numSpecs)) {
		c.fail()
	}
	specs := u.abbrevs.attrs(a)
	for range a.numSpecs {
		s := specs.next()
		if s.attr != attrLocation {
			c.value(s.form, s.implicit, u.enc)
			continue
		}
		if block, isBlock := c.block(s.form); isBlock {
			addr, ok = u.fixedAddr(block)
		} else {
			c.value(s.form, s.implicit, u.enc)
		}
	}
	return addr, ok
}

// fixedAddr returns the address of an expression, if it is constant.
func (u *unit) fixedAddr(expr []byte) (addr uint64, ok bool) {
	c := cursor{buf: expr, big: u.d.big}
	switch c.u8() {
	case opAddr:
		addr, ok = c.word(u.enc.addrSize), true
	case opAddrx, opGNUAddrIndex:
		addr, ok = u.indexedAddr(c.uleb())
	}
	if ok && c.left() > 0 {
		if c.u8() != opPlusUconst {
			return 0, false
		}
		addr += c.uleb()
	}
	return addr, ok && !c.bad && c.left() == 0
}

// block reads a block. isBlock is false, and nothing is read, if form is not the form of a block.
func (c *cursor) block(form uint16) (b []byte, isBlock bool) {
	var n uint64
	switch form {
	case formBlock1:
		n = uint64(c.u8())
	case formBlock2:
		n = uint64(c.u16())
	case formBlock4:
		n = uint64(c.u32())
	case formBlock, formExprloc:
		n = c.uleb()
	default:
		return nil, false
	}
	return c.take(n), true
}
