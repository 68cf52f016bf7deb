package buildid

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// A program is an ELF file of a few hundred bytes: a build ID note unless id is empty, and sections
// of 8 bytes each.
type program struct {
	id       string // hex
	sections []string
	noCode   bool // .text has no bytes in the file, as in a separate debug file
}

func (p program) bytes(t testing.TB) []byte {
	t.Helper()
	le := binary.LittleEndian
	var note []byte
	if p.id != "" {
		raw := mustParse(t, p.id).Bytes()
		note = le.AppendUint32(le.AppendUint32(le.AppendUint32(nil, 4), uint32(len(raw))), 3)
		note = append(append(note, "GNU\x00"...), raw...)
		for len(note)%4 != 0 {
			note = append(note, 0)
		}
	}
	const header, segment = 64, 56
	names := []byte("\x00.shstrtab\x00")
	sections := []elf.Section64{{}, {Name: 1, Type: uint32(elf.SHT_STRTAB)}}
	body := bytes.Clone(note)
	for _, name := range p.sections {
		s := elf.Section64{Name: uint32(len(names)), Type: uint32(elf.SHT_PROGBITS), Off: uint64(header + segment + len(body)), Size: 8}
		if name == ".text" {
			s.Flags = uint64(elf.SHF_ALLOC | elf.SHF_EXECINSTR)
			if p.noCode {
				s.Type = uint32(elf.SHT_NOBITS)
			}
		}
		sections = append(sections, s)
		names = append(append(names, name...), 0)
		body = append(body, "8 bytes."...)
	}
	sections[1].Off, sections[1].Size = uint64(header+segment+len(body)), uint64(len(names))
	body = append(body, names...)

	var out bytes.Buffer
	head := elf.Header64{
		Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: 1,
		Phoff: header, Shoff: uint64(header + segment + len(body)),
		Ehsize: header, Phentsize: segment, Phnum: 1, Shentsize: 64, Shnum: uint16(len(sections)), Shstrndx: 1,
	}
	copy(head.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	binary.Write(&out, le, head)
	binary.Write(&out, le, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: header + segment, Filesz: uint64(len(note)), Align: 4})
	out.Write(body)
	binary.Write(&out, le, sections)
	return out.Bytes()
}

func mustParse(t testing.TB, hex string) ID {
	t.Helper()
	id, err := Parse([]byte(hex))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// put writes a file and the folders above it.
func put(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}
