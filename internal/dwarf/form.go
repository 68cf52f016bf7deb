package dwarf

// An encoding holds the DWARF version and the sizes of addresses and offsets. The sizes of
// attributes depend on them.
type encoding struct {
	version  uint16
	addrSize uint8 // bytes: 4 or 8
	offSize  uint8 // bytes: 4, or 8 in 64-bit DWARF
}

// maxAddr returns the highest address of addrSize bytes. Linkers write it for discarded code.
func (e encoding) maxAddr() uint64 {
	if e.addrSize == 4 {
		return 1<<32 - 1
	}
	return 1<<64 - 1
}

// A value is an attribute as read. The meaning of u depends on the form. For DW_FORM_string it is
// the string's position in the cursor's bytes; for blocks it is unused. The zero value is a missing
// attribute.
type value struct {
	u    uint64
	form uint16
}

func (v value) ok() bool { return v.form != 0 }

// isAddr reports whether v is an address or an index into .debug_addr.
func (v value) isAddr() bool {
	switch v.form {
	case formAddr, formAddrx, formAddrx1, formAddrx2, formAddrx3, formAddrx4, formGNUAddrIndex, formLLVMAddrx:
		return true
	}
	return false
}

// isConst reports whether v is a number.
func (v value) isConst() bool {
	switch v.form {
	case formData1, formData2, formData4, formData8, formSdata, formUdata, formImplicitConst:
		return true
	}
	return false
}

// results of formSize other than a number of bytes
const (
	sizeVaries  = -1
	sizeUnknown = -2
)

// formSize returns the bytes of an attribute of this form, sizeVaries if that depends on its
// contents, or sizeUnknown.
func formSize(form uint16, e encoding) int {
	switch form {
	case formFlagPresent, formImplicitConst:
		return 0
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		return 1
	case formData2, formRef2, formStrx2, formAddrx2:
		return 2
	case formStrx3, formAddrx3:
		return 3
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		return 4
	case formData8, formRef8, formRefSig8, formRefSup8:
		return 8
	case formData16:
		return 16
	case formAddr:
		return int(e.addrSize)
	case formRefAddr:
		if e.version == 2 {
			return int(e.addrSize) // in DWARF 2 the reference has the size of an address
		}
		return int(e.offSize)
	case formStrp, formSecOffset, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		return int(e.offSize)
	case formBlock, formBlock1, formBlock2, formBlock4, formExprloc, formString, formSdata, formUdata, formRefUdata,
		formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex, formIndirect, formLLVMAddrx:
		return sizeVaries
	}
	return sizeUnknown
}

// A sizeTable holds the results of formSize for the standard forms in one encoding.
type sizeTable [formAddrx4 + 1]int8

func (t *sizeTable) fill(e encoding) {
	for form := range t {
		t[form] = int8(formSize(uint16(form), e))
	}
}

func (t *sizeTable) of(form uint16, e encoding) int {
	if int(form) < len(t) {
		return int(t[form])
	}
	return formSize(form, e)
}

// value reads one attribute. implicit is the value of DW_FORM_implicit_const. An unknown form makes
// the cursor bad: the next attribute cannot be found.
func (c *cursor) value(form uint16, implicit int64, e encoding) value {
	if form == formIndirect {
		form = uint16(min(c.uleb(), 0xffff))
		if form == formIndirect || form == formImplicitConst {
			c.fail()
		}
	}
	v := value{form: form}
	switch form {
	case formData1, formFlag, formRef1, formStrx1, formAddrx1:
		v.u = uint64(c.u8())
	case formData2, formRef2, formStrx2, formAddrx2:
		v.u = uint64(c.u16())
	case formStrx3, formAddrx3:
		v.u = uint64(c.u24())
	case formData4, formRef4, formRefSup4, formStrx4, formAddrx4:
		v.u = uint64(c.u32())
	case formData8, formRef8, formRefSig8, formRefSup8:
		v.u = c.u64()
	case formAddr:
		v.u = c.word(e.addrSize)
	case formRefAddr:
		if e.version == 2 {
			v.u = c.word(e.addrSize)
		} else {
			v.u = c.word(e.offSize)
		}
	case formStrp, formSecOffset, formLineStrp, formStrpSup, formGNURefAlt, formGNUStrpAlt:
		v.u = c.word(e.offSize)
	case formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx, formGNUAddrIndex, formGNUStrIndex:
		v.u = c.uleb()
	case formLLVMAddrx: // an index in the lower half, an offset to add in the upper
		v.u = min(c.uleb(), 1<<32-1)
		v.u |= uint64(c.u32()) << 32
	case formSdata:
		v.u = uint64(c.sleb())
	case formImplicitConst:
		v.u = uint64(implicit)
	case formFlagPresent:
		v.u = 1
	case formString:
		v.u = uint64(c.pos)
		c.skipString()
	case formBlock1:
		c.take(uint64(c.u8()))
	case formBlock2:
		c.take(uint64(c.u16()))
	case formBlock4:
		c.take(uint64(c.u32()))
	case formBlock, formExprloc:
		c.take(c.uleb())
	case formData16:
		c.take(16)
	default:
		c.fail()
	}
	if c.bad {
		return value{}
	}
	return v
}
