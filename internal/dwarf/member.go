package dwarf

import (
	"math/bits"
	"strconv"
)

// A member path is written as in the source: fields with a dot, elements with their index. Parts
// without a name are left out: a member of an anonymous struct or union, or of a base class, looks
// like a member of the whole. Several members may fit: in a union, or in bytes of a base class that
// a derived class reuses. The path takes the first member without padding at the byte. A byte in
// the middle of a value, or in padding, is written as a distance from the nearest named part:
// "[3]+0x4". Pointers end a path.

// A variableInfo holds the attributes of a variable. They come from the variable's entry and from
// the declaration or origin to which that entry refers.
type variableInfo struct {
	name, linkage []byte
	typ           typeAt
	addr          uint64
}

func (w *typeWalk) variable(t typeAt) (info variableInfo) {
	var e typeEntry
	for range maxChain {
		if !w.read(t, &e) {
			break
		}
		if len(info.name) == 0 {
			info.name = w.text(t, e.name)
		}
		if len(info.linkage) == 0 {
			info.linkage = w.text(t, e.linkage)
		}
		if info.typ.u == nil {
			info.typ = w.follow(t, e.typ)
		}
		if info.addr == 0 && e.location != nil {
			info.addr, _ = t.u.fixedAddr(e.location)
		}
		next := e.specified
		if !next.ok() {
			next = e.origin
		}
		if !next.ok() {
			break
		}
		t = w.follow(t, next)
	}
	return info
}

// language sets w.fortran or w.rust if u is in Fortran or Rust, which write member paths
// differently. The codes are from DWARF 5, 7.12, and later additions.
func (w *typeWalk) language(u *unit) {
	var e typeEntry
	if !w.read(typeAt{u, u.root}, &e) {
		return
	}
	switch e.language.u {
	case 0x07, 0x08, 0x0e, 0x22, 0x23: // Fortran 77, 90, 95, 2003, 2008
		w.fortran = true
	case 0x1c:
		w.rust = true
	}
}

// member returns the path to the byte at off in an object of type t with limit bytes; "" if off is
// 0, or if the path is not known.
func (w *typeWalk) member(t typeAt, off, limit uint64) string {
	if off == 0 {
		return ""
	}
	w.path = w.path[:0]
	rest, _ := w.walk(t, off, limit, 0)
	if len(w.path) == 0 || w.tooLong || w.left == 0 {
		return ""
	}
	if rest > 0 {
		w.path = append(w.path, "+0x"...)
		w.path = strconv.AppendUint(w.path, rest, 16)
	}
	return string(w.path)
}

// resolve follows t through typedefs and qualifiers, and from a declaration to its definition. It
// reads the entry there into e.
func (w *typeWalk) resolve(t typeAt, e *typeEntry) (typeAt, bool) {
	for range maxTypeDepth {
		if !w.read(t, e) {
			break
		}
		switch e.tag {
		case tagTypedef, tagConstType, tagVolatileType, tagRestrictType, tagAtomicType, tagPackedType, tagImmutableType, tagTemplateAlias:
			t = w.follow(t, e.typ)
			continue
		}
		if e.signature.ok() {
			t = w.follow(t, e.signature)
			continue
		}
		if e.declaration {
			if t = w.complete(t, e); t.u == nil {
				break
			}
			continue
		}
		return t, true
	}
	return typeAt{}, false
}

func (w *typeWalk) size(t typeAt, depth int) (n uint64, ok bool) {
	var e typeEntry
	if depth > maxTypeDepth {
		w.tooLong = true
		return 0, false
	}
	if t, ok = w.resolve(t, &e); !ok {
		return 0, false
	}
	if e.byteSize.isConst() {
		return e.byteSize.u, true
	}
	switch e.tag {
	case tagPointerType, tagReferenceType, tagRvalueRefType:
		return uint64(t.u.enc.addrSize), true
	case tagEnumerationType, tagSubrangeType:
		return w.size(w.follow(t, e.typ), depth+1)
	case tagArrayType:
		var a arrayShape
		if w.shape(t, &e, &a, depth) && !a.open {
			hi, n := bits.Mul64(a.total, a.stride)
			return n, hi == 0
		}
	}
	return 0, false
}

// An arrayShape holds the element type, the dimensions and the order of the elements of an array.
type arrayShape struct {
	elem   typeAt
	stride uint64 // bytes from one element to the next
	total  uint64 // elements
	open   bool   // the first dimension has no known end
	column bool   // the first index varies fastest
	n      int
	dims   [maxDimensions]dimension
}

type dimension struct {
	lower int64
	count uint64
}

// shape reads the dimensions of an array. It returns false if the element at an offset cannot be
// determined.
func (w *typeWalk) shape(t typeAt, e *typeEntry, a *arrayShape, depth int) bool {
	if !w.spend(16) { // an arrayShape takes memory until the walk ends
		return false
	}
	a.elem = w.follow(t, e.typ)
	a.total = 1
	a.column = w.fortran
	if e.ordering.ok() {
		a.column = e.ordering.u == 1
	}
	good := true
	w.children(t, e, func(child typeAt, ce *typeEntry) bool {
		if ce.tag != tagSubrangeType && ce.tag != tagEnumerationType {
			return true
		}
		if a.n == maxDimensions {
			good = false
			return false
		}
		d, known := w.dimension(ce)
		if ce.byteStride.ok() || ce.bitStride.ok() {
			good = false // the elements are not contiguous
			return false
		}
		if !known || d.count == 0 {
			// An array without an end is a flexible array member of C, or GNU's zero-length array:
			// the end of the enclosing object bounds it.
			if good = a.n == 0; !good {
				return false
			}
			a.open = true
		}
		a.dims[a.n] = d
		a.n++
		if !a.open || a.n > 1 {
			var hi uint64
			if hi, a.total = bits.Mul64(a.total, d.count); hi != 0 {
				good = false
				return false
			}
		}
		return true
	})
	if !good || a.n == 0 || a.open && a.column {
		return false
	}
	switch {
	case e.byteStride.isConst():
		a.stride = e.byteStride.u
	case e.bitStride.isConst() && e.bitStride.u%8 == 0:
		a.stride = e.bitStride.u / 8
	case e.byteStride.ok() || e.bitStride.ok():
		return false
	default:
		a.stride, _ = w.size(a.elem, depth+1)
	}
	return a.stride > 0
}

// dimension reads one dimension of an array. known is false if the number of elements is not fixed.
func (w *typeWalk) dimension(e *typeEntry) (d dimension, known bool) {
	if w.fortran {
		d.lower = 1
	}
	if e.lower.isConst() {
		d.lower = signed(e.lower)
	}
	switch {
	case e.tag == tagEnumerationType: // the index type of Pascal and Ada
		return d, false
	case e.count.isConst():
		d.count = e.count.u
	case e.upper.isConst() && !e.count.ok():
		d.count = uint64(max(signed(e.upper)-d.lower+1, 0))
	default:
		return d, false
	}
	return d, true
}

// signed returns v as a signed number. The upper bound of an array without elements is -1:
// compilers write it in four or eight bytes.
func signed(v value) int64 {
	if v.form == formData4 && v.u == 1<<32-1 {
		return -1
	}
	return int64(v.u)
}

// walk appends the path from an object of type t with limit bytes to its byte at off. rest is the
// number of bytes from the path's last part to the byte. exact is false if no named part contains
// the byte.
func (w *typeWalk) walk(t typeAt, off, limit uint64, depth int) (rest uint64, exact bool) {
	var e typeEntry
	t, ok := w.resolve(t, &e)
	if !ok || off >= limit || w.tooLong || w.left == 0 {
		return off, false
	}
	if depth > maxTypeDepth || len(w.path) > maxMemberPath {
		w.tooLong = true
		return off, false
	}
	switch e.tag {
	case tagStructureType, tagClassType, tagUnionType, tagInterfaceType:
		return w.walkMembers(t, &e, off, limit, depth)
	case tagArrayType:
		return w.walkArray(t, &e, off, limit, depth)
	}
	size, ok := w.size(t, depth)
	return off, !ok || off < size
}

func (w *typeWalk) walkArray(t typeAt, e *typeEntry, off, limit uint64, depth int) (rest uint64, exact bool) {
	var a arrayShape
	if !w.shape(t, e, &a, depth) {
		return off, false
	}
	i := off / a.stride
	if !a.open && i >= a.total {
		return off, false
	}
	var index [maxDimensions]uint64
	left := i
	for k := range a.n {
		at := a.n - 1 - k
		if a.column {
			at = k
		}
		if a.open && at == 0 {
			index[at] = left
			break
		}
		n := max(a.dims[at].count, 1)
		index[at], left = left%n, left/n
	}
	for k := range a.n {
		before, after := "[", "]"
		if w.fortran {
			before, after = ",", ""
			if k == 0 {
				before = "("
			}
			if k == a.n-1 {
				after = ")"
			}
		}
		w.path = append(w.path, before...)
		w.path = strconv.AppendInt(w.path, a.dims[k].lower+int64(index[k]), 10)
		w.path = append(w.path, after...)
	}
	return w.walk(a.elem, off-i*a.stride, min(a.stride, limit-i*a.stride), depth+1)
}

// A partial keeps the first path that leads into padding, for the case that no named part contains
// the byte.
type partial struct {
	path []byte
	rest uint64
}

// try searches a part of an object for the byte at off, and appends the path in that part to
// w.path. The part starts at the offset at; name is nil if the part has no name. done reports
// whether a named part contains the byte. If not, w.path is unchanged, and p keeps the first path
// into padding.
func (w *typeWalk) try(p *partial, name []byte, t typeAt, off, at, limit uint64, depth int) (rest uint64, done bool) {
	base := len(w.path)
	w.appendName(name)
	rest, exact := w.walk(t, off-at, limit, depth+1)
	if exact && len(w.path) > base {
		return rest, true
	}
	if len(w.path) > base && p.path == nil {
		p.path, p.rest = append([]byte(nil), w.path[base:]...), rest
	}
	w.path = w.path[:base]
	return 0, false
}

func (w *typeWalk) appendName(name []byte) {
	switch {
	case len(name) == 0:
		return
	case len(name) > maxVariableName:
		w.tooLong = true
		return
	case w.fortran:
		w.path = append(w.path, '%')
	default:
		w.path = append(w.path, '.')
	}
	if w.rust && len(name) > 2 && name[0] == '_' && name[1] == '_' && name[2] >= '0' && name[2] <= '9' {
		name = name[2:] // a field of a tuple: the source writes a number
	}
	w.path = append(w.path, name...)
}

func (w *typeWalk) walkMembers(t typeAt, e *typeEntry, off, limit uint64, depth int) (rest uint64, exact bool) {
	var p partial
	var open struct { // an array without an end
		child typeAt
		name  []byte
		typ   typeAt
		at    uint64
	}
	w.children(t, e, func(child typeAt, ce *typeEntry) bool {
		switch ce.tag {
		case tagMember, tagInheritance:
		case tagVariantPart:
			rest, exact = w.walkVariants(&p, child, ce, off, limit, depth)
			return !exact
		default:
			return true
		}
		if ce.declaration { // a static member
			return true
		}
		at, ok := memberOffset(ce)
		if ce.bitSize.isConst() && ce.bitSize.u > 0 {
			first, last, ok := bitField(t, ce, w)
			if ok && first <= off && off <= last && ce.name.ok() {
				w.appendName(w.text(child, ce.name))
				rest, exact = off-first, true
			}
			return !exact
		}
		if !ok || at > off {
			return true
		}
		typ := w.follow(child, ce.typ)
		size, known := w.size(typ, depth+1)
		var name []byte
		if ce.tag == tagMember {
			name = w.text(child, ce.name)
		}
		switch {
		case off-at < size:
			rest, exact = w.try(&p, name, typ, off, at, min(size, limit-at), depth)
		case !known || size == 0:
			var te typeEntry
			if _, ok := w.resolve(typ, &te); ok && te.tag == tagArrayType && (open.child.u == nil || at >= open.at) {
				open.child, open.name, open.typ, open.at = child, name, typ, at
			}
		}
		return !exact && !w.tooLong && w.left > 0
	})
	if exact {
		return rest, true
	}
	if open.child.u != nil && p.path == nil {
		if rest, done := w.try(&p, open.name, open.typ, off, open.at, limit-open.at, depth); done {
			return rest, true
		}
	}
	if p.path != nil {
		w.path = append(w.path, p.path...)
		return p.rest, false
	}
	return off, false
}

// walkVariants follows the variant of a Rust enum that has a member at off. If several variants
// have a member at off, it follows none of them: only the running program determines the variant.
func (w *typeWalk) walkVariants(p *partial, t typeAt, e *typeEntry, off, limit uint64, depth int) (rest uint64, exact bool) {
	base := len(w.path)
	var found []byte
	n := 0
	w.children(t, e, func(variant typeAt, ve *typeEntry) bool {
		if ve.tag != tagVariant {
			return true
		}
		w.children(variant, ve, func(child typeAt, ce *typeEntry) bool {
			at, ok := memberOffset(ce)
			if ce.tag != tagMember || !ok || at > off || limit <= at {
				return true
			}
			var q partial
			if r, done := w.try(&q, w.text(child, ce.name), w.follow(child, ce.typ), off, at, limit-at, depth); done {
				n++
				rest = r
				found = append(found[:0], w.path[base:]...)
				w.path = w.path[:base]
			}
			return n < 2
		})
		return n < 2 && w.left > 0
	})
	if n != 1 {
		return 0, false
	}
	w.path = append(w.path, found...)
	return rest, true
}

// memberOffset returns the offset in bytes of a member in its type, if that is fixed.
func memberOffset(e *typeEntry) (n uint64, ok bool) {
	switch {
	case e.place.isConst():
		return e.place.u, true
	case e.dataBitOffset.isConst():
		return e.dataBitOffset.u / 8, true
	case e.placeExpr != nil:
		c := cursor{buf: e.placeExpr}
		switch c.u8() {
		case opPlusUconst:
			n = c.uleb()
		case opConstu:
			n = c.uleb()
			ok = c.u8() == opPlus
			return n, ok && !c.bad && c.left() == 0
		default:
			return 0, false
		}
		return n, !c.bad && c.left() == 0
	case e.place.ok():
		return 0, false // a location list
	}
	return 0, true // a member of a union, or the first member
}

// bitField returns the first and the last byte with bits of a bit-field.
func bitField(t typeAt, e *typeEntry, w *typeWalk) (first, last uint64, ok bool) {
	n := e.bitSize.u
	start, _ := memberOffset(e)
	if start > 1<<40 || n > 1<<16 || e.dataBitOffset.u > 1<<43 || e.bitOffset.u > 1<<16 {
		return 0, 0, false
	}
	start *= 8
	switch {
	case e.dataBitOffset.isConst():
		start = e.dataBitOffset.u
	case e.bitOffset.isConst(): // before DWARF 4: from the most significant bit of the storage
		if t.u.d.big {
			start += e.bitOffset.u
			break
		}
		storage := e.byteSize.u
		if !e.byteSize.isConst() {
			if storage, ok = w.size(w.follow(t, e.typ), 0); !ok {
				return 0, 0, false
			}
		}
		if start += 8 * min(storage, 1<<16); start < e.bitOffset.u+n {
			return 0, 0, false
		}
		start -= e.bitOffset.u + n
	}
	return start / 8, (start + n - 1) / 8, true
}
