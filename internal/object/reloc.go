package object

import (
	"debug/elf"
	"fmt"
	"strings"
)

// In object files (ET_REL), addresses in debug sections, and references between debug sections, are
// relocations. They are applied as in llvm-symbolizer: every section stays at its header's address,
// 0, except sections that placeSections moved.

func (h *headers) relocates(name string, s *Section) bool {
	return h.Type == elf.ET_REL && strings.HasPrefix(name, ".debug_") && s.Flags&elf.SHF_ALLOC == 0 && h.relocs[s] != nil
}

// relocated returns a copy of s with relocations applied. It skips relocations of unknown kinds,
// without a symbol, or outside of the section.
func (d *sectionData) relocated(s *Section, legacy bool) (k kept) {
	if err := d.inFile("section", s); err != nil {
		return kept{err: err}
	}
	if legacy || s.Flags&elf.SHF_COMPRESSED != 0 {
		k = d.inflate(s, legacy, false)
	} else {
		k = d.read(s)
	}
	if k.err != nil {
		return k
	}
	if k.err = d.relocate(k.data, s.Addr, d.relocs[s]); k.err != nil {
		k.data = nil
	}
	return k
}

// relocate applies the relocations in r to data, which is at addr.
func (d *sectionData) relocate(data []byte, addr uint64, r *Section) error {
	raw, release, err := d.once(r)
	defer release()
	if err != nil {
		return fmt.Errorf("relocations: %w", err)
	}
	if uint64(r.Link) >= uint64(len(d.sections)) || d.sections[r.Link].Type != elf.SHT_SYMTAB {
		return &FormatError{"relocations", "no symbol table"}
	}
	symbols, release, err := d.once(&d.sections[r.Link])
	defer release()
	if err != nil {
		return fmt.Errorf("relocations: %w", err)
	}
	kinds := relocationsOf(d.Machine)
	size := d.pick(relSize32, relSize64)
	if r.Type == elf.SHT_RELA {
		size = d.pick(relaSize32, relaSize64)
	}
	for n := 0; len(raw) >= size && n < maxRelocations; n, raw = n+1, raw[size:] {
		x := d.relocationAt(raw, r.Type == elf.SHT_RELA)
		if x.kind >= uint64(len(kinds)) {
			continue
		}
		how := kinds[x.kind]
		if value, ok := d.relocationSymbol(symbols, x.symbol); ok && how.bytes != 0 && within(x.off, uint64(how.bytes), uint64(len(data))) {
			d.apply(data[x.off:x.off+uint64(how.bytes)], how, r.Type == elf.SHT_REL, value, x.addend, addr+x.off)
		}
	}
	return nil
}

// once returns the bytes of a section without keeping them. They are valid until release. The
// caller must call release, even after an error.
func (d *sectionData) once(s *Section) (data []byte, release func(), err error) {
	if err := d.inFile("section "+s.Name, s); err != nil {
		return nil, func() {}, err
	}
	if data, ok := d.held(s.Offset, s.Size); ok {
		return data, func() {}, nil
	}
	k := d.read(s)
	return k.data, func() { d.room.release(k.arena) }, k.err
}

// A fieldRelocation is an entry of a relocation section.
type fieldRelocation struct {
	off    uint64 // offset of the field in its section
	symbol uint64
	kind   uint64
	addend uint64
}

func (h *header) relocationAt(b []byte, hasAddend bool) (x fieldRelocation) {
	if !h.is64 {
		info := h.u32(b[4:])
		x = fieldRelocation{off: uint64(h.u32(b)), symbol: uint64(info >> 8), kind: uint64(info & 0xff)}
		if hasAddend {
			x.addend = uint64(int64(int32(h.u32(b[8:]))))
		}
		return x
	}
	info := h.u64(b[8:])
	x.off = h.u64(b)
	switch {
	case h.Machine != elf.EM_MIPS:
		x.symbol, x.kind = info>>32, info&0xffffffff
	case h.big: // MIPS has up to three kinds, in a fixed byte order; debug sections need the first
		x.symbol, x.kind = info>>32, info&0xff
	default:
		x.symbol, x.kind = info&0xffffffff, info>>56
	}
	if hasAddend {
		x.addend = h.u64(b[16:])
	}
	return x
}

// relocationSymbol returns the address of the symbol at index: its value, plus its section's
// address if the file defines the symbol. ok is false if the table has no such symbol.
func (h *headers) relocationSymbol(table []byte, index uint64) (addr uint64, ok bool) {
	size := uint64(h.pick(symSize32, symSize64))
	if index >= uint64(len(table))/size {
		return 0, false
	}
	b := table[index*size:]
	var shndx uint16
	if h.is64 {
		shndx, addr = h.u16(b[6:]), h.u64(b[8:])
	} else {
		shndx, addr = h.u16(b[14:]), uint64(h.u32(b[4:]))
	}
	if i := elf.SectionIndex(shndx); i != elf.SHN_UNDEF && i < elf.SHN_LORESERVE && uint64(i) < uint64(len(h.sections)) {
		addr += h.sections[i].Addr
	}
	return addr, true
}

// A relocation describes how a relocation entry of one type changes its field.
type relocation struct {
	bytes uint8 // bytes of the field; 0: no change
	does  relocationKind
}

type relocationKind uint8

const (
	set      relocationKind = iota // the field becomes the address
	relative                       // the field becomes the address less the field's address
	add                            // the address is added to the field
	subtract                       // the address is subtracted from the field
	setLow6                        // as set, for the low six bits
	sub6                           // as subtract, for the low six bits
)

// apply changes one field. If implicit is set (SHT_REL), the present value of the field is the
// addend, for the kinds set and relative.
func (h *headers) apply(field []byte, how relocation, implicit bool, value, addend, place uint64) {
	var held uint64
	switch len(field) {
	case 1:
		held = uint64(field[0])
	case 2:
		held = uint64(h.u16(field))
	case 4:
		held = uint64(h.u32(field))
	case 8:
		held = h.u64(field)
	}
	if implicit && how.does <= relative {
		addend = held
	}
	v := value + addend
	switch how.does {
	case relative:
		v -= place
	case add:
		v = held + v
	case subtract:
		v = held - v
	case setLow6:
		v = held&^0x3f | v&0x3f
	case sub6:
		v = held&^0x3f | (held-v)&0x3f
	}
	switch len(field) {
	case 1:
		field[0] = byte(v)
	case 2:
		h.Order.PutUint16(field, uint16(v))
	case 4:
		h.Order.PutUint32(field, uint32(v))
	case 8:
		h.Order.PutUint64(field, v)
	}
}

// relocationTables lists the effects of relocations in debug sections, from the machines' ABIs.
var relocationTables = []struct {
	machine elf.Machine
	kinds   []relocation // by number
}{
	{elf.EM_X86_64, []relocation{
		elf.R_X86_64_64:       {8, set},
		elf.R_X86_64_DTPOFF64: {8, set},
		elf.R_X86_64_32:       {4, set},
		elf.R_X86_64_32S:      {4, set},
		elf.R_X86_64_DTPOFF32: {4, set},
		elf.R_X86_64_PC64:     {8, relative},
		elf.R_X86_64_PC32:     {4, relative},
	}},
	{elf.EM_386, []relocation{
		elf.R_386_32:   {4, set},
		elf.R_386_PC32: {4, relative},
	}},
	{elf.EM_AARCH64, []relocation{
		elf.R_AARCH64_ABS64:  {8, set},
		elf.R_AARCH64_ABS32:  {4, set},
		elf.R_AARCH64_ABS16:  {2, set},
		elf.R_AARCH64_PREL64: {8, relative},
		elf.R_AARCH64_PREL32: {4, relative},
		elf.R_AARCH64_PREL16: {2, relative},
	}},
	{elf.EM_ARM, []relocation{
		elf.R_ARM_ABS32: {4, set},
		elf.R_ARM_REL32: {4, relative},
	}},
	// a pair of ADD and SUB sets the difference of two labels: the linker may shorten the code
	// between them
	{elf.EM_RISCV, []relocation{
		elf.R_RISCV_64:       {8, set},
		elf.R_RISCV_32:       {4, set},
		elf.R_RISCV_SET32:    {4, set},
		elf.R_RISCV_SET16:    {2, set},
		elf.R_RISCV_SET8:     {1, set},
		elf.R_RISCV_SET6:     {1, setLow6},
		elf.R_RISCV_32_PCREL: {4, relative},
		elf.R_RISCV_ADD64:    {8, add},
		elf.R_RISCV_ADD32:    {4, add},
		elf.R_RISCV_ADD16:    {2, add},
		elf.R_RISCV_ADD8:     {1, add},
		elf.R_RISCV_SUB64:    {8, subtract},
		elf.R_RISCV_SUB32:    {4, subtract},
		elf.R_RISCV_SUB16:    {2, subtract},
		elf.R_RISCV_SUB8:     {1, subtract},
		elf.R_RISCV_SUB6:     {1, sub6},
	}},
	{elf.EM_LOONGARCH, []relocation{
		elf.R_LARCH_64:       {8, set},
		elf.R_LARCH_32:       {4, set},
		elf.R_LARCH_64_PCREL: {8, relative},
		elf.R_LARCH_32_PCREL: {4, relative},
		elf.R_LARCH_ADD64:    {8, add},
		elf.R_LARCH_ADD32:    {4, add},
		elf.R_LARCH_ADD16:    {2, add},
		elf.R_LARCH_ADD8:     {1, add},
		elf.R_LARCH_SUB64:    {8, subtract},
		elf.R_LARCH_SUB32:    {4, subtract},
		elf.R_LARCH_SUB16:    {2, subtract},
		elf.R_LARCH_SUB8:     {1, subtract},
		elf.R_LARCH_SUB6:     {1, sub6},
	}},
	{elf.EM_MIPS, []relocation{
		elf.R_MIPS_64:   {8, set},
		elf.R_MIPS_32:   {4, set},
		elf.R_MIPS_PC32: {4, relative},
	}},
	{elf.EM_SPARC, sparcRelocations},
	{elf.EM_SPARC32PLUS, sparcRelocations},
	{elf.EM_SPARCV9, sparcRelocations},
	{elf.EM_PPC, []relocation{
		elf.R_PPC_ADDR32: {4, set},
		elf.R_PPC_REL32:  {4, relative},
	}},
	{elf.EM_BPF, []relocation{
		bpfAbs64: {8, set},
		bpfAbs32: {4, set},
	}},
	{elf.EM_PPC64, []relocation{
		elf.R_PPC64_ADDR64: {8, set},
		elf.R_PPC64_ADDR32: {4, set},
		elf.R_PPC64_REL64:  {8, relative},
		elf.R_PPC64_REL32:  {4, relative},
	}},
	{elf.EM_S390, []relocation{
		elf.R_390_64:   {8, set},
		elf.R_390_32:   {4, set},
		elf.R_390_PC64: {8, relative},
		elf.R_390_PC32: {4, relative},
	}},
}

// sparcRelocations are the relocations of all SPARC machines.
var sparcRelocations = []relocation{
	elf.R_SPARC_64:     {8, set},
	elf.R_SPARC_UA64:   {8, set},
	elf.R_SPARC_32:     {4, set},
	elf.R_SPARC_UA32:   {4, set},
	elf.R_SPARC_DISP64: {8, relative},
	elf.R_SPARC_DISP32: {4, relative},
}

// relocationsOf returns a machine's relocations by number.
func relocationsOf(m elf.Machine) []relocation {
	for i := range relocationTables {
		if relocationTables[i].machine == m {
			return relocationTables[i].kinds
		}
	}
	return nil
}

// relocations of BPF, which debug/elf does not name
const (
	bpfAbs64 = 2
	bpfAbs32 = 3
)
