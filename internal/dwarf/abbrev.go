package dwarf

import (
	"slices"
	"unsafe"
)

// An abbrev is an abbreviation declaration of .debug_abbrev (DWARF 5, 7.5.3), compiled so that
// entries can be skipped fast. It takes 24 bytes: large programs have hundreds of thousands.
type abbrev struct {
	steps    uint32 // index in abbrevTable.steps of the first of numSteps steps
	specs    uint32 // position in abbrevTable.source of the first of numSpecs attributes
	fixed    int16  // bytes of all attributes, at most maxSpecs*16; -1 if the size varies
	sibAt    uint16 // bytes between the first sibSteps steps and DW_AT_sibling
	numSpecs uint16
	numSteps uint16
	sibSteps uint16
	tag      uint16
	sibForm  uint8 // form of DW_AT_sibling; 0 if the attribute is missing or cannot be used
	children bool
	flags    abbrevFlags
}

type abbrevFlags uint8

// Flags of a declaration. An entryWalk stops at entries with certain flags, and uses DW_AT_sibling
// to skip the children of entries with other flags.
const (
	isFunction abbrevFlags = 1 << iota // a subprogram with code
	// an inlined call, or a function, which may be nested in another function
	isCall
	isVariable
	isScope // a namespace, a class, or a function whose children cannot be skipped

	leapFunctions // no function except perhaps a lambda is below the entry: see scanAgain
	leapCalls     // no inlined call is below the entry
	leapVariables // no variable with an address is below the entry
	leapTypes     // the entry is not a unit: walks over scopes and types may skip its children
)

// An attrSpec is an attribute of a declaration.
type attrSpec struct {
	attr, form uint16 // 0xffff if the number is higher
	implicit   int64  // value of DW_FORM_implicit_const
}

// A step skips a part of an entry: fixed bytes, then one attribute of form, whose size varies. If
// form is 0, the step skips only the fixed bytes.
type step struct {
	fixed uint16
	form  uint16
}

// An abbrevTable holds the declarations at one .debug_abbrev offset, compiled for one encoding.
type abbrevTable struct {
	off    uint64   // offset in .debug_abbrev; 0 in a scratch
	list   []abbrev // in the order of declaration
	first  uint64   // the code of list[0]; list[i] has the code first+i if byCode is nil
	byCode map[uint64]uint32
	source []byte // .debug_abbrev from the first declaration on
	steps  []step
	enc    encoding
	tried  int  // declarations and attributes read, used or not
	broken bool // the declarations end in damage; list has the declarations before the damage
}

func (t *abbrevTable) get(code uint64) *abbrev {
	if t.byCode == nil {
		if i := code - t.first; i < uint64(len(t.list)) {
			return &t.list[i]
		}
		return nil
	}
	if i, ok := t.byCode[code]; ok {
		return &t.list[i]
	}
	return nil
}

// An attrSpecs reads the attributes of a declaration in place, since most are never needed:
//
//	specs := t.attrs(a)
//	for range a.numSpecs {
//		s := specs.next()
//	}
type attrSpecs struct {
	source []byte
	pos    int // position of the next attribute; -1 if the file changed after the table was parsed
}

func (t *abbrevTable) attrs(a *abbrev) attrSpecs { return attrSpecs{t.source, int(a.specs)} }

// next returns an attribute with form 0, which has no value, if the file was changed.
func (s *attrSpecs) next() (a attrSpec) {
	a, s.pos = readSpec(s.source, s.pos)
	return a
}

// readSpec reads the attribute at p. It returns the zero attrSpec after the last attribute. If the
// attribute is damaged, it returns the zero attrSpec and the position -1.
func readSpec(b []byte, p int) (attrSpec, int) {
	if p < 0 || p+1 >= len(b) {
		return attrSpec{}, -1
	}
	if b[p]|b[p+1] < 0x80 && b[p+1] != formImplicitConst {
		return attrSpec{attr: uint16(b[p]), form: uint16(b[p+1])}, p + 2
	}
	return readLongSpec(b, p)
}

// Bounds for numbers in .debug_abbrev. LEB128 allows any padding, and an attribute is read again
// for each entry that has it.
const (
	maxNumberBytes = 10 // bytes of a 64-bit number in LEB128
	maxSpecBytes   = 3 * maxNumberBytes
)

func readLongSpec(b []byte, p int) (s attrSpec, next int) {
	b = b[:min(len(b), p+maxSpecBytes)]
	attr, p := uleb(b, p)
	if p < 0 {
		return s, -1
	}
	form, p := uleb(b, p)
	if p < 0 {
		return s, -1
	}
	s.attr, s.form = uint16(min(attr, 0xffff)), uint16(min(form, 0xffff))
	if form == formImplicitConst {
		var v uint64
		v, p = signedOperand(b, p)
		if s.implicit = int64(v); p < 0 {
			return attrSpec{}, -1
		}
	}
	return s, p
}

func (t *abbrevTable) footprint() int64 {
	return int64(unsafe.Sizeof(*t)) + sizeOf(t.list) + sizeOf(t.steps) + int64(len(t.byCode))*32
}

// reset empties t for another encoding, but keeps its memory.
func (t *abbrevTable) reset(e encoding) {
	*t = abbrevTable{list: t.list[:0], steps: t.steps[:0], enc: e}
}

// clone returns a copy without spare memory.
func (t *abbrevTable) clone() *abbrevTable {
	c := *t
	c.list, c.steps = slices.Clone(t.list), slices.Clone(t.steps)
	return &c
}

// parse reads declarations to the end of the table. If only is not 0, it keeps only the declaration
// with that code, and stops after it.
func (t *abbrevTable) parse(c cursor, e encoding, only uint64) {
	t.reset(e)
	t.broken = true
	if c.bad {
		return
	}
	t.source = c.buf[c.pos:]
	b, p := t.source, 0
	var sizes sizeTable
	sizes.fill(e)
	for range maxAbbrevs {
		t.tried++
		var code, tag uint64
		head := b[:min(len(b), p+2*maxNumberBytes)]
		if code, p = operand(head, p); code == 0 { // end of the table, or damage
			t.broken = p < 0
			break
		}
		if tag, p = operand(head, p); p < 0 || p == len(b) || uint64(p) >= 1<<32-1 {
			break
		}
		children := b[p] != 0
		p++
		if only != 0 && code != only {
			if p = t.skimSpecs(b, p); p < 0 {
				break
			}
			continue
		}
		a := abbrev{tag: uint16(min(tag, 0xffff)), children: children, specs: uint32(p), steps: uint32(len(t.steps))}
		if p = t.parseSpecs(b, p, &a, &sizes); p < 0 {
			break
		}
		t.add(code, a)
		if only != 0 {
			t.broken = false
			break
		}
	}
}

func (t *abbrevTable) add(code uint64, a abbrev) {
	switch {
	case len(t.list) == 0:
		t.first = code
	case t.byCode == nil && code != t.first+uint64(len(t.list)):
		t.byCode = make(map[uint64]uint32, len(t.list)+1)
		for i := range t.list {
			t.byCode[t.first+uint64(i)] = uint32(i)
		}
	}
	if t.byCode != nil {
		if _, dup := t.byCode[code]; dup {
			return // the first declaration of a code wins
		}
		t.byCode[code] = uint32(len(t.list))
	}
	t.list = append(t.list, a)
}

// skimSpecs returns the position after the attributes of a declaration; -1 if they are damaged.
func (t *abbrevTable) skimSpecs(b []byte, p int) int {
	for {
		var s attrSpec
		if s, p = readSpec(b, p); p < 0 || s.attr|s.form == 0 {
			return p
		}
		t.tried++
	}
}

// parseSpecs reads the attributes of a declaration and compiles the steps that skip them. It
// returns the position after the attributes, or -1 if they are damaged, too many, or of unknown
// size.
func (t *abbrevTable) parseSpecs(b []byte, p int, a *abbrev, sizes *sizeTable) int {
	fixed := 0 // bytes since the last step
	hasPC := false
	varies := false
	for {
		var s attrSpec
		if s, p = readSpec(b, p); p < 0 {
			return -1
		}
		if s.attr|s.form == 0 {
			break
		}
		if t.tried++; a.numSpecs == maxSpecs {
			return -1
		}
		switch s.attr {
		case attrLowPC, attrRanges:
			hasPC = true
		case attrSibling:
			switch s.form {
			case formRef1, formRef2, formRef4, formRef8, formRefUdata:
				a.sibForm, a.sibSteps, a.sibAt = uint8(s.form), a.numSteps, uint16(fixed)
			}
		}
		switch n := sizes.of(s.form, t.enc); n {
		case sizeUnknown:
			return -1
		case sizeVaries:
			t.steps = append(t.steps, step{uint16(fixed), s.form})
			a.numSteps++
			fixed, varies = 0, true
		default:
			fixed += n // at most maxSpecs*16
		}
		a.numSpecs++
	}
	a.fixed = int16(fixed)
	if varies {
		a.fixed = -1
		if fixed > 0 {
			t.steps = append(t.steps, step{uint16(fixed), 0})
			a.numSteps++
		}
	}
	a.classify(hasPC)
	return p
}

func (a *abbrev) classify(hasPC bool) {
	var leaps abbrevFlags
	switch a.tag {
	case tagSubprogram:
		leaps = leapTypes
		if hasPC {
			a.flags = isFunction | isCall
		} else {
			leaps |= leapFunctions | leapCalls
		}
		if a.children && a.sibForm == 0 {
			a.flags |= isScope
		}
	case tagInlinedSubroutine:
		a.flags, leaps = isCall, leapTypes
	case tagCompileUnit, tagPartialUnit, tagSkeletonUnit:
		leaps = leapCalls
	case tagNamespace, tagModule:
		a.flags, leaps = isScope, leapCalls|leapTypes
	case tagLexicalBlock:
		leaps = leapTypes
	case tagVariable:
		a.flags, leaps = isVariable, leapFunctions|leapCalls|leapTypes
	case tagClassType, tagStructureType, tagUnionType, tagInterfaceType:
		a.flags, leaps = isScope, leapFunctions|leapCalls|leapVariables|leapTypes
	case tagEnumerationType, tagArrayType, tagSubroutineType:
		leaps = leapFunctions | leapCalls | leapVariables | leapTypes
	default:
		leaps = leapFunctions | leapCalls | leapTypes
	}
	if a.children && a.sibForm != 0 {
		a.flags |= leaps
	}
}

// sibling returns the position to which DW_AT_sibling refers. It returns -1 if the attribute is
// damaged or does not lead forward.
func (t *abbrevTable) sibling(b []byte, p int, a *abbrev, big bool) int {
	start := p
	if a.sibSteps > 0 {
		if p = t.runSteps(b, p, t.steps[a.steps:a.steps+uint32(a.sibSteps)], big); p < 0 {
			return -1
		}
	}
	p += int(a.sibAt)
	var to uint64
	if a.sibForm == formRef4 && len(b)-p >= 4 {
		to = uint64(load32(b[p:], big))
	} else {
		c := cursorAt(b, uint64(p), big)
		to = c.value(uint16(a.sibForm), 0, t.enc).u
		if c.bad {
			return -1
		}
	}
	if to <= uint64(start) || to > uint64(len(b)) {
		return -1
	}
	return int(to)
}

// runSteps skips attributes. It returns -1 if they reach beyond b.
func (t *abbrevTable) runSteps(b []byte, p int, steps []step, big bool) int {
	for _, s := range steps {
		p += int(s.fixed)
		if p > len(b) {
			return -1
		}
		switch s.form {
		case 0:
		case formUdata, formSdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
			for {
				if p >= len(b) {
					return -1
				}
				p++
				if b[p-1] < 0x80 {
					break
				}
			}
		case formString:
			for {
				if p >= len(b) {
					return -1
				}
				p++
				if b[p-1] == 0 {
					break
				}
			}
		case formExprloc, formBlock, formBlock1:
			if p >= len(b) {
				return -1
			}
			n := uint64(b[p])
			p++
			if n >= 0x80 && s.form != formBlock1 {
				if n, p = uleb(b, p-1); p < 0 {
					return -1
				}
			}
			if n > uint64(len(b)-p) {
				return -1
			}
			p += int(n)
		default:
			c := cursor{buf: b, pos: p, big: big}
			c.value(s.form, 0, t.enc)
			if c.bad {
				return -1
			}
			p = c.pos
		}
	}
	return p
}
