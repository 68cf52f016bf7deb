package dwarf

import "unsafe"

// An abbrev is a declaration of .debug_abbrev (DWARF 5, 7.5.3), compiled for skipping the entries that use it.
type abbrev struct {
	code     uint64
	fixed    int32  // bytes of all attributes, or -1 when that varies
	sibAt    uint32 // bytes before DW_AT_sibling, behind sibSteps steps
	steps    uint32 // first of numSteps in the table's steps
	specs    uint32 // first of numSpecs in the table's specs
	numSpecs uint16
	numSteps uint16
	sibSteps uint16
	sibForm  uint16 // 0: no DW_AT_sibling that could be used
	tag      uint16
	children bool
	flags    abbrevFlags
}

type abbrevFlags uint8

const (
	// leap: the entry's children are of no interest to a walk that looks for functions, and DW_AT_sibling says where they end.
	leap abbrevFlags = 1 << iota
	// leapCalls is the same for a walk that looks for inlined calls.
	leapCalls
	// isFunction: a subprogram with code.
	isFunction
	// isCall: an inlined call or a function, which may stand below another function.
	isCall
)

// An attrSpec is an attribute of a declaration.
type attrSpec struct {
	attr, form uint16
	implicit   int32 // index into the table's implicit values
}

// A step skips a part of an entry: fixed bytes, then one attribute of a form whose size varies, 0 for none.
type step struct {
	fixed uint16
	form  uint16
}

// An abbrevTable is what the units of one .debug_abbrev offset and one encoding use.
type abbrevTable struct {
	list     []abbrev // in the order of declaration
	first    uint64   // the code of list[0]; dense: list[i] has the code first+i
	byCode   map[uint64]uint32
	specs    []attrSpec
	steps    []step
	implicit []int64
	enc      encoding
	tried    int  // declarations and attributes read, used or not
	broken   bool // declarations ended in damage; those before it are there
}

// get returns the declaration of a code, or nil.
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

func (t *abbrevTable) attrs(a *abbrev) []attrSpec {
	return t.specs[a.specs : a.specs+uint32(a.numSpecs)]
}

func (t *abbrevTable) footprint() int64 {
	return int64(unsafe.Sizeof(*t)) + sizeOf(t.list) + sizeOf(t.specs) + sizeOf(t.steps) + sizeOf(t.implicit) + int64(len(t.byCode))*32
}

// parseAbbrevs reads declarations until the table ends, or until the one of code only when that is not 0.
func parseAbbrevs(c cursor, e encoding, only uint64) *abbrevTable {
	t := &abbrevTable{enc: e}
	for len(t.list) < maxAbbrevs {
		code := c.uleb()
		if code == 0 || c.bad {
			t.broken = c.bad
			return t
		}
		a := abbrev{code: code, specs: uint32(len(t.specs)), steps: uint32(len(t.steps))}
		a.tag = uint16(min(c.uleb(), 0xffff))
		a.children = c.u8() != 0
		if !t.parseSpecs(&c, &a) {
			t.broken = true
			return t
		}
		t.tried += 1 + int(a.numSpecs)
		if only != 0 {
			if code != only {
				t.specs, t.steps, t.implicit = t.specs[:0], t.steps[:0], t.implicit[:0]
				continue
			}
			t.list, t.first = append(t.list, a), code
			return t
		}
		t.add(a)
	}
	t.broken = true
	return t
}

func (t *abbrevTable) add(a abbrev) {
	switch {
	case len(t.list) == 0:
		t.first = a.code
	case t.byCode == nil && a.code != t.first+uint64(len(t.list)):
		t.byCode = make(map[uint64]uint32, len(t.list)+1)
		for i := range t.list {
			t.byCode[t.list[i].code] = uint32(i)
		}
	}
	if t.byCode != nil {
		if _, dup := t.byCode[a.code]; dup {
			return // the first holds
		}
		t.byCode[a.code] = uint32(len(t.list))
	}
	t.list = append(t.list, a)
}

// parseSpecs reads the attributes of a declaration and compiles the way over them.
func (t *abbrevTable) parseSpecs(c *cursor, a *abbrev) bool {
	fixed := 0 // bytes since the last step
	hasPC := false
	varies := false
	for {
		attr, form := c.uleb(), c.uleb()
		if c.bad {
			return false
		}
		if attr == 0 && form == 0 {
			break
		}
		if a.numSpecs == maxSpecs || form > 0xffff {
			return false
		}
		s := attrSpec{attr: uint16(min(attr, 0xffff)), form: uint16(form)}
		if form == formImplicitConst {
			s.implicit = int32(len(t.implicit))
			t.implicit = append(t.implicit, c.sleb())
		}
		switch s.attr {
		case attrLowPC, attrRanges:
			hasPC = true
		case attrSibling:
			switch form {
			case formRef1, formRef2, formRef4, formRef8, formRefUdata:
				a.sibForm, a.sibSteps, a.sibAt = s.form, a.numSteps, uint32(fixed)
			}
		}
		switch n := formSize(s.form, t.enc); n {
		case sizeUnknown:
			return false
		case sizeVaries:
			t.steps = append(t.steps, step{uint16(fixed), s.form})
			a.numSteps++
			fixed, varies = 0, true
		default:
			fixed += n // at most maxSpecs*16
		}
		t.specs = append(t.specs, s)
		a.numSpecs++
	}
	a.fixed = int32(fixed)
	if varies {
		a.fixed = -1
		if fixed > 0 {
			t.steps = append(t.steps, step{uint16(fixed), 0})
			a.numSteps++
		}
	}
	a.classify(hasPC)
	return true
}

func (a *abbrev) classify(hasPC bool) {
	canLeap := a.children && a.sibForm != 0
	switch a.tag {
	case tagSubprogram:
		if hasPC {
			a.flags |= isFunction | isCall
		} else if canLeap {
			a.flags |= leap | leapCalls
		}
	case tagInlinedSubroutine:
		a.flags |= isCall
	case tagCompileUnit, tagPartialUnit, tagSkeletonUnit, tagNamespace, tagModule:
		if canLeap {
			a.flags |= leapCalls
		}
	case tagLexicalBlock:
	default:
		if canLeap {
			a.flags |= leap | leapCalls
		}
	}
}

// skip moves behind the attributes of an entry whose abbrev is a. It returns -1 when they reach beyond b.
func (t *abbrevTable) skip(b []byte, p int, a *abbrev, big bool) int {
	if a.fixed >= 0 {
		p += int(a.fixed)
		if p > len(b) {
			return -1
		}
		return p
	}
	return t.runSteps(b, p, t.steps[a.steps:a.steps+uint32(a.numSteps)], big)
}

// sibling returns the position that DW_AT_sibling names, or -1 when it is damaged or does not lead forward.
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
		to = c.value(a.sibForm, 0, t.enc).u
		if c.bad {
			return -1
		}
	}
	if to <= uint64(start) || to > uint64(len(b)) {
		return -1
	}
	return int(to)
}

// runSteps skips attributes. It returns -1 when they reach beyond b.
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
