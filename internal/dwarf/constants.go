package dwarf

// Names from the DWARF 5 standard, section 7, and the GNU extensions.
const (
	tagLexicalBlock      = 0x0b
	tagCompileUnit       = 0x11
	tagInlinedSubroutine = 0x1d
	tagModule            = 0x1e
	tagSubprogram        = 0x2e
	tagNamespace         = 0x39
	tagPartialUnit       = 0x3c
	tagSkeletonUnit      = 0x4a

	attrSibling         = 0x01
	attrName            = 0x03
	attrStmtList        = 0x10
	attrLowPC           = 0x11
	attrHighPC          = 0x12
	attrCompDir         = 0x1b
	attrAbstractOrigin  = 0x31
	attrSpecification   = 0x47
	attrEntryPC         = 0x52
	attrRanges          = 0x55
	attrCallColumn      = 0x57
	attrDeclFile        = 0x3a
	attrDeclLine        = 0x3b
	attrDiscriminator   = 0x2136 // DW_AT_GNU_discriminator
	attrCallFile        = 0x58
	attrCallLine        = 0x59
	attrLinkageName     = 0x6e
	attrStrOffsetsBase  = 0x72
	attrAddrBase        = 0x73
	attrRnglistsBase    = 0x74
	attrDwoName         = 0x76
	attrMIPSLinkageName = 0x2007
	attrGNUDwoName      = 0x2130
	attrGNUDwoID        = 0x2131
	attrGNURangesBase   = 0x2132
	attrGNUAddrBase     = 0x2133

	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNUAddrIndex  = 0x1f01
	formGNUStrIndex   = 0x1f02
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
	formLLVMAddrx     = 0x2001 // DW_FORM_LLVM_addrx_offset, from clang's -minimize-addr-in-v5=Form

	unitType      = 0x02
	unitSkeleton  = 0x04
	unitSplit     = 0x05
	unitSplitType = 0x06

	// columns of the index of a package (.dwp), in versions 2 (GNU's) and 5
	sectInfo       = 1
	sectAbbrev     = 3
	sectStrOffsets = 6
	sectRnglists   = 8 // only in version 5: version 2 has DW_SECT_MACRO here

	rleEndOfList    = 0x00
	rleBaseAddressx = 0x01
	rleStartxEndx   = 0x02
	rleStartxLength = 0x03
	rleOffsetPair   = 0x04
	rleBaseAddress  = 0x05
	rleStartEnd     = 0x06
	rleStartLength  = 0x07

	lnsCopy             = 0x01
	lnsAdvancePC        = 0x02
	lnsAdvanceLine      = 0x03
	lnsSetFile          = 0x04
	lnsSetColumn        = 0x05
	lnsNegateStmt       = 0x06
	lnsSetBasicBlock    = 0x07
	lnsConstAddPC       = 0x08
	lnsFixedAdvancePC   = 0x09
	lnsSetPrologueEnd   = 0x0a
	lnsSetEpilogueBegin = 0x0b
	lnsSetISA           = 0x0c

	lneEndSequence      = 0x01
	lneSetAddress       = 0x02
	lneDefineFile       = 0x03
	lneSetDiscriminator = 0x04

	lnctPath           = 0x01
	lnctDirectoryIndex = 0x02
)
