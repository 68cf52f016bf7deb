// Command reduce makes the fixture of a log of a kernel from its vmlinux:
//
//	go run reduce.go VMLINUX LOG OUT
//
// OUT has the symbol table of VMLINUX, its build ID, and the debug information of the functions in the
// log alone, all without code. llvm-dwarfutil drops the debug information of other functions: it keeps
// that of the sections of code, so it is given a copy with one section for each function of the log.
// For each frame llvm-symbolizer must have the same answer in both files.
package main

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const tools = "-19" // version of llvm-dwarfutil and others

var frame = regexp.MustCompile(`([\w.$]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)( \[)?`)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: reduce VMLINUX LOG OUT")
		os.Exit(2)
	}
	if err := reduce(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "reduce:", err)
		os.Exit(1)
	}
}

type span struct{ from, to uint64 }

func reduce(vmlinux, log, out string) error {
	text, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	image, err := os.ReadFile(vmlinux)
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := file.Symbols()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "reduce")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)

	if file.Machine == elf.EM_ARM {
		for i := range symbols {
			if elf.ST_TYPE(symbols[i].Info) == elf.STT_FUNC {
				symbols[i].Value &^= 1 // the mark of Thumb code
			}
		}
	}
	functions, kept, questions := inLog(symbols, string(text))
	split := filepath.Join(dir, "split")
	if err := os.WriteFile(split, splitText(file, image, functions), 0o600); err != nil {
		return err
	}
	list := filepath.Join(dir, "symbols")
	if err := os.WriteFile(list, []byte(strings.Join(kept, "\n")), 0o600); err != nil {
		return err
	}
	small, bare := filepath.Join(dir, "small"), filepath.Join(dir, "bare")
	if err := run("llvm-dwarfutil", "--linker=parallel", "-j", "1", split, small); err != nil {
		return err
	}
	if err := run("llvm-objcopy", "--only-keep-debug", "--remove-section=.debug_*", "--remove-section=.BTF*", "--strip-all", "--strip-symbol=$a", "--strip-symbol=$d", "--strip-symbol=$t", "--keep-symbols="+list, vmlinux, bare); err != nil {
		return err
	}
	var options []string
	reduced, err := elf.Open(small)
	if err != nil {
		return err
	}
	defer reduced.Close()
	for _, s := range reduced.Sections {
		if strings.HasPrefix(s.Name, ".debug_") && s.Name != ".debug_frame" && s.Name != ".debug_loc" && s.Name != ".debug_loclists" {
			data, err := s.Data()
			if err != nil {
				return err
			}
			name := filepath.Join(dir, s.Name)
			if err := os.WriteFile(name, data, 0o600); err != nil {
				return err
			}
			options = append(options, "--add-section="+s.Name+"="+name)
		}
	}
	if err := run("llvm-objcopy", append(options, bare, out)...); err != nil {
		return err
	}
	if err := blank(out); err != nil {
		return err
	}
	return compare(vmlinux, out, questions)
}

// inLog returns the functions with names in a log, the names of these and of what follows them, and
// the addresses of the frames.
func inLog(symbols []elf.Symbol, log string) (functions []span, kept []string, questions string) {
	starts := make([]uint64, 0, len(symbols))
	of := make(map[string][]uint64)
	at := make(map[uint64][]string)
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && s.Section < elf.SHN_LORESERVE {
			starts = append(starts, s.Value)
			of[s.Name] = append(of[s.Name], s.Value)
			at[s.Value] = append(at[s.Value], s.Name)
		}
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	var b strings.Builder
	for _, m := range frame.FindAllStringSubmatch(log, -1) {
		offset, _ := strconv.ParseUint(m[2], 16, 64)
		for _, start := range of[m[1]] {
			i, _ := slices.BinarySearch(starts, start+1)
			if i == len(starts) {
				continue
			}
			functions = append(functions, span{start, starts[i]})
			kept = append(kept, at[start]...)
			kept = append(kept, at[starts[i]]...)
			fmt.Fprintf(&b, "%#x\n%#x\n", start+offset, start+max(offset, 1)-1)
		}
	}
	slices.SortFunc(functions, func(a, b span) int {
		if a.from != b.from {
			return int(int64(a.from - b.from))
		}
		return int(int64(a.to - b.to))
	})
	return slices.Compact(functions), kept, b.String()
}

// splitText returns image with a section of code for each function instead of its own.
func splitText(file *elf.File, image []byte, functions []span) []byte {
	is64 := file.Class == elf.ELFCLASS64
	size, shoff, shnum := 64, 0x28, 0x3c
	if !is64 {
		size, shoff, shnum = 40, 0x20, 0x30
	}
	word := func(b []byte, at int) uint64 {
		if is64 {
			return binary.LittleEndian.Uint64(b[at:])
		}
		return uint64(binary.LittleEndian.Uint32(b[at:]))
	}
	put := func(b []byte, at int, v uint64) {
		if is64 {
			binary.LittleEndian.PutUint64(b[at:], v)
		} else {
			binary.LittleEndian.PutUint32(b[at:], uint32(v))
		}
	}
	at := int(word(image, shoff))
	headers := slices.Clone(image[at : at+size*len(file.Sections)])
	flagsAt, addrAt, offsetAt, sizeAt := 8, 16, 24, 32
	if !is64 {
		addrAt, offsetAt, sizeAt = 12, 16, 20
	}
	for i, s := range file.Sections {
		h := headers[i*size : (i+1)*size]
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		for _, f := range functions {
			if s.Addr <= f.from && f.from < s.Addr+s.Size {
				added := slices.Clone(h)
				put(added, addrAt, f.from)
				put(added, sizeAt, min(f.to, s.Addr+s.Size)-f.from)
				put(added, offsetAt, s.Offset+f.from-s.Addr)
				headers = append(headers, added...)
			}
		}
		h = headers[i*size : (i+1)*size]
		put(h, flagsAt, uint64(s.Flags&^elf.SHF_EXECINSTR))
	}
	out := slices.Clone(image)
	if s := file.Section(".debug_abbrev"); s != nil {
		dropTypes(out[s.Offset : s.Offset+s.Size])
	}
	for i, s := range file.Sections {
		h := headers[i*size : (i+1)*size]
		switch s.Name {
		case ".debug_info":
			n := dropUnits(file, out[s.Offset:s.Offset+s.Size], functions)
			put(h, sizeAt, uint64(n))
		case ".debug_aranges": // llvm-dwarfutil makes it from the rest
			put(h, sizeAt, 0)
		}
	}
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
	put(out, shoff, uint64(len(out)))
	binary.LittleEndian.PutUint16(out[shnum:], uint16(len(headers)/size))
	return append(out, headers...)
}

// dropUnits moves the units with functions to the beginning of info, a .debug_info, and returns their
// size.
func dropUnits(file *elf.File, info []byte, functions []span) (size int) {
	data, err := file.DWARF()
	if err != nil {
		return len(info)
	}
	used := make(map[int]bool) // by offset of a unit's first entry
	r := data.Reader()
	for unit, _ := r.Next(); unit != nil; unit, _ = r.Next() {
		ranges, _ := data.Ranges(unit)
		for _, f := range functions {
			for _, of := range ranges {
				if f.from < of[1] && of[0] < f.to {
					used[int(unit.Offset)] = true
				}
			}
		}
		r.SkipChildren()
	}
	for at := 0; at < len(info); {
		length := 4 + int(binary.LittleEndian.Uint32(info[at:]))
		header := 11
		if binary.LittleEndian.Uint16(info[at+4:]) >= 5 {
			header = 12
		}
		if used[at+header] {
			copy(info[size:], info[at:at+length])
			size += length
		}
		at += length
	}
	return size
}

// blank clears the bytes of an ELF file that belong to nothing, which llvm-objcopy has left.
func blank(name string) error {
	image, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	out := make([]byte, len(image))
	keep := func(from, size uint64) { copy(out[from:from+size], image[from:]) }
	keep(0, 64)
	headers, size := uint64(binary.LittleEndian.Uint32(image[0x20:])), uint64(40)
	if file.Class == elf.ELFCLASS64 {
		headers, size = binary.LittleEndian.Uint64(image[0x28:]), 64
	}
	keep(headers, size*uint64(len(file.Sections)))
	for _, s := range file.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_NULL {
			keep(s.Offset, s.FileSize)
		}
	}
	keep(64, min(uint64(len(file.Progs))*56, 1<<10))
	return os.WriteFile(name, out, 0o644)
}

// dropTypes makes the types of variables and functions in a .debug_abbrev the siblings of these, which
// llvm-dwarfutil does not follow, so that it does not keep the types.
func dropTypes(b []byte) {
	number := func() (n uint64) {
		for shift := 0; len(b) > 0; shift += 7 {
			c := b[0]
			b = b[1:]
			n |= uint64(c&0x7f) << shift
			if c < 0x80 {
				break
			}
		}
		return n
	}
	for len(b) > 0 {
		if number() == 0 { // code
			continue
		}
		number() // tag
		b = b[1:]
		for len(b) > 0 {
			at := b
			attribute, form := number(), number()
			if dwarf.Attr(attribute) == dwarf.AttrType {
				at[0] = byte(dwarf.AttrSibling)
			}
			if form == formImplicitConst {
				number()
			}
			if attribute == 0 && form == 0 {
				break
			}
		}
	}
}

const formImplicitConst = 0x21

// compare reports whether llvm-symbolizer has the same answers for addresses in both files.
func compare(full, reduced, questions string) error {
	var answers [2]string
	for i, name := range []string{full, reduced} {
		command := exec.Command("llvm-symbolizer"+tools, "--obj="+name)
		command.Stdin = strings.NewReader(questions)
		answer, err := command.Output()
		if err != nil {
			return err
		}
		answers[i] = string(answer)
	}
	was, is := strings.Split(answers[0], "\n\n"), strings.Split(answers[1], "\n\n")
	other := 0
	for i, question := range strings.Fields(questions) {
		if was[i] != is[i] {
			if other++; other <= 3 {
				fmt.Fprintf(os.Stderr, "%s: %s\n-- reduced:\n%s\n", question, was[i], is[i])
			}
		}
	}
	if other > 0 {
		return fmt.Errorf("%d of %d addresses have another answer in the reduced file", other, len(strings.Fields(questions)))
	}
	return nil
}

func run(program string, args ...string) error {
	command := exec.Command(program+tools, args...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
