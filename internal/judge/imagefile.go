package judge

import (
	"bytes"
	"debug/elf"
	"path"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

const pageSize = dialect.PageSize

// An Image is a file on this machine that may be a module of a trace.
type Image struct {
	Path  string
	ID    buildid.ID // zero if the file has none
	State string     // if ID is zero: distinguishes successive files at Path
	File  *object.File
	Err   error // why there is no file; then only Path may be set

	// Segments are the program headers of the file. Fixed is set if its load address is its link
	// address. If only Segments and Fixed are known, File is nil: the build ID in the log
	// identifies the file, and the trace reads the rest during calls of Visit.
	Segments []object.Segment
	Fixed    bool

	// Visit, set if File is nil, opens the file, calls examine with it, and closes it. It does not
	// call examine while the file cannot be used.
	Visit func(examine Examination)

	// Given is set if the operator has named the file for the module. Base is the address of its
	// first page in the process, if the operator gave one.
	Given   bool
	Base    uint64
	HasBase bool

	// Guessed is set if the file was found only by its name. It then needs a stronger proof than a
	// file at a path: see guessedCalls.
	Guessed bool

	// Debug, which may be nil, opens the separate debug file, calls examine with it, and closes it.
	// A stripped file lacks the names of most functions. Debug does not call examine while the
	// debug file cannot be used.
	Debug func(examine Examination)

	// Hash, which may be nil, returns the file's SHA-256 in hexadecimal digits, or "" if the file
	// cannot be read. Forced is set if evidence in the log must not refute the file.
	Hash   func() string
	Forced bool

	// Younger is set if the file was changed after the log was written. Each stack then needs a
	// stronger proof: see youngerCalls and youngerLinks.
	Younger bool

	// ByName is set if the file is a library that was found by name in the folders of libraries.
	ByName bool

	names names
}

// ProgramName returns the name of the program in a process's title. The title may begin with a path
// or the name by which the program was called: "redis-server *:6379", "postgres: shop ledger
// [local] idle".
func ProgramName(title string) string {
	word, _, _ := strings.Cut(title, " ")
	return path.Base(strings.TrimSuffix(word, ":"))
}

// An Examination reads an open file. It must not keep the file.
type Examination func(*object.File)

// lowest returns the link address of the first loaded page.
func (m *Image) lowest() uint64 {
	low, found := uint64(0), false
	for _, s := range m.Segments {
		if s.Type == elf.PT_LOAD && s.MemSize > 0 && (!found || s.Addr < low) {
			low, found = s.Addr, true
		}
	}
	return low &^ (pageSize - 1)
}

// atOffset returns the address for an offset in the file, which must be in an executable segment.
func (m *Image) atOffset(offset uint64) (addr uint64, ok bool) {
	for _, s := range m.Segments {
		if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && offset-s.Offset < s.FileSize {
			return s.Addr + (offset - s.Offset), true
		}
	}
	return 0, false
}

// knownBias returns the load bias that the file itself or the operator fixes.
func (m *Image) knownBias() (bias uint64, ok bool) {
	switch {
	case m.Fixed:
		return 0, true
	case m.HasBase:
		return m.Base - m.lowest(), true
	}
	return 0, false
}

// biasOfMap returns the load bias of the file if the mapping belongs to it. It first compares a
// mapping of code with the code segments. In files linked by lld, the first page of such a mapping
// may also contain the end of the previous segment, which has another address.
func (m *Image) biasOfMap(entry *dialect.Map) (bias uint64, ok bool) {
	if entry.Code {
		if bias, ok = m.biasOfMapIn(entry, elf.PF_X); ok {
			return bias, true
		}
	}
	return m.biasOfMapIn(entry, 0)
}

// biasOfMapIn returns the load bias of the file if the mapping belongs to a loaded segment that has
// all these flags.
func (m *Image) biasOfMapIn(entry *dialect.Map, flags elf.ProgFlag) (bias uint64, ok bool) {
	for _, s := range m.Segments {
		if s.Type != elf.PT_LOAD || s.Flags&flags != flags {
			continue
		}
		first := s.Offset &^ (pageSize - 1)
		switch {
		case entry.FirstCode && s.Flags&elf.PF_X != 0:
			return entry.Start - s.Addr&^(pageSize-1), true
		case entry.FirstCode:
		case entry.Offset >= first && entry.Offset < s.Offset+s.FileSize:
			return entry.Start - (s.Addr - (s.Offset - first) + (entry.Offset - first)), true
		}
	}
	return 0, false
}

// biasOfText returns the load bias that puts the file's section .text at addr. ok is false if the
// bias is not a multiple of the page size.
func (m *Image) biasOfText(addr uint64) (bias uint64, ok bool) {
	if m.File == nil {
		return 0, false
	}
	s, ok := m.File.Section(".text")
	bias = addr - s.Addr
	return bias, ok && bias%pageSize == 0
}

// systemCalls returns the encodings of the system call instruction.
func systemCalls(m elf.Machine) []string {
	switch m {
	case elf.EM_X86_64:
		return []string{"\x0f\x05"}
	case elf.EM_386:
		return []string{"\xcd\x80", "\x0f\x34", "\x0f\x05"}
	case elf.EM_AARCH64:
		return []string{"\x01\x00\x00\xd4"}
	}
	return nil
}

func (m *Image) followsSystemCall(addr uint64) bool {
	for _, code := range systemCalls(m.File.Machine) {
		if bytes.HasPrefix(m.File.Loaded(addr-uint64(len(code))), []byte(code)) {
			return true
		}
	}
	return false
}

func (m *Image) isCode(addr uint64) bool { return m.File.ExecCovers(addr) }

// followsCall reports whether a call may end at addr. If the program that printed addr has
// subtracted from the return address, followsCall tries the usual differences. known is false if
// calls cannot be recognized there.
func (m *Image) followsCall(addr uint64, kind dialect.Call) (yes, known bool) {
	if kind != dialect.Adjusted {
		return m.File.CallEndsAt(addr)
	}
	// differences on RISC-V and Thumb: 2; AArch64 and Arm: 4; MIPS: 8; any machine: 1
	distances := []uint64{1, 2, 4, 8}
	switch m.File.Machine {
	case elf.EM_X86_64, elf.EM_386:
		distances = distances[:1]
	case elf.EM_XTENSA:
		distances = []uint64{dialect.ESPLess}
	case elf.EM_AARCH64, elf.EM_ARM, elf.EM_RISCV:
		distances = distances[:3] // after 8 bytes, another call may end
	}
	for _, d := range distances {
		if y, k := m.File.CallEndsAt(addr + d); k {
			yes, known = yes || y, true
		}
	}
	return yes, known
}

// trampoline returns the code to which a signal handler returns, or "" if unknown for the machine.
// This code makes the system call rt_sigreturn, has no symbol with a size, and follows no call.
func trampoline(m elf.Machine) string {
	switch m {
	case elf.EM_X86_64:
		return dialect.RestoreRT
	case elf.EM_AARCH64:
		return "\x68\x11\x80\xd2\x01\x00\x00\xd4"
	}
	return ""
}

func (m *Image) isTrampoline(addr uint64) bool {
	code := trampoline(m.File.Machine)
	return code != "" && bytes.HasPrefix(m.File.Loaded(addr), []byte(code))
}

// symbolAt reports whether the file has a symbol named s.Name that is s.Offset bytes before addr.
// known is false without a symbol of that name.
func (m *Image) symbolAt(s dialect.Symbol, addr uint64) (yes, known bool) {
	for _, sym := range m.symbols(s.Name) {
		known = true
		yes = yes || sym.Addr+uint64(s.Offset) == addr
	}
	return yes, known
}

// symbols returns the symbols with a name, which may be mangled, with or without a version, or
// demangled.
func (m *Image) symbols(name string) []object.Symbol {
	if m.File == nil || name == "" {
		return nil
	}
	if all := m.symbolsIn(m.File, name); len(all) > 0 || m.Debug == nil {
		return all
	}
	return m.debugSymbols(name)
}

// debugSymbols returns the symbols with a name in the debug file of m, without their names. It
// caches them: a stripped file lacks the same names in each trace.
func (m *Image) debugSymbols(name string) (all []object.Symbol) {
	debug := &Image{Path: m.Path + "\x00debug", ID: m.ID, State: m.State, Visit: m.Debug, names: m.names}
	key := about(debug).number(0).text(name).sum()
	memory := m.names.memory
	if memory == nil {
		return nil
	}
	if all, known := memory.shown.get(key, maxShown); known {
		return all
	}
	done := debug.visit(func(file *object.File) { all = slices.Clone(debug.symbolsIn(file, name)) })
	for i := range all {
		all[i].Name = nil
	}
	m.names.over, m.names.demangled = debug.names.over, debug.names.demangled
	if done && !m.names.over {
		memory.shown.put(key, all, maxShown)
	}
	return all
}

func (m *Image) symbolsIn(file *object.File, name string) []object.Symbol {
	if strings.ContainsAny(name, " (:<") {
		return m.shownSymbols(file, name)
	}
	all := m.symbolsNamed(file, name)
	if len(all) > 0 {
		return all
	}
	plain, _, _ := strings.Cut(name, "@")
	return m.symbolsNamed(file, plain)
}

// symbolsNamed returns the symbols of a file with a name, or none if the Quota is spent.
func (m *Image) symbolsNamed(file *object.File, name string) []object.Symbol {
	if cost := file.SearchCost(); cost > 0 && !m.names.spend(cost) {
		return nil
	}
	return file.SymbolsNamed(name)
}

// visitedSymbols returns the symbols with this name in a file that is open only during a visit. It
// removes the names from the symbols, because they are invalid after the visit.
func (m *Image) visitedSymbols(name string) (all []object.Symbol) {
	m.visit(func(file *object.File) { all = slices.Clone(m.symbolsIn(file, name)) })
	for i := range all {
		all[i].Name = nil
	}
	return all
}
