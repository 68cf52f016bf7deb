package object

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlacesSayWhichSectionAnswersAnAddress(t *testing.T) {
	const code = elf.SHF_ALLOC | elf.SHF_EXECINSTR
	text := func(name, bytes string) imageSection {
		return imageSection{Section{Name: name, Type: elf.SHT_PROGBITS, Flags: code}, bytes}
	}
	symbols := []imageSymbol{
		{"long", 0, 8, elf.STT_FUNC, elf.STB_GLOBAL, 1},
		{"longer", 0, 12, elf.STT_FUNC, elf.STB_GLOBAL, 2},
		{"short", 0, 4, elf.STT_FUNC, elf.STB_GLOBAL, 3},
		{"elsewhere", 0, 0, elf.STT_NOTYPE, elf.STB_GLOBAL, elf.SHN_UNDEF},
	}
	relocs := []reloc{
		{16, 3, uint32(elf.R_X86_64_64), 0},
		{0, 1, uint32(elf.R_X86_64_64), 0},
		{8, 2, uint32(elf.R_X86_64_64), 0},
		{8, 1, uint32(elf.R_X86_64_64), 0}, // the first holds
		{24, 4, uint32(elf.R_X86_64_64), 0},
		{32, 1, 250, 0}, // of an unknown kind
		{40, 9, uint32(elf.R_X86_64_64), 0},
	}
	build := func(second, third string) []byte {
		m := layouts[0]
		m.sections = append([]imageSection{
			text(".text.long", "12345678"), text(".text.longer", second), text(".text.short", third),
			{Section{Name: ".debug_line", Type: elf.SHT_PROGBITS}, string(make([]byte, 48))},
		}, m.symtab(t, elf.SHT_SYMTAB, 6, symbols)...)
		m.sections = append(m.sections, m.relocs(elf.SHT_RELA, 5, 4, relocs))
		return m.bytes(t)
	}
	overlapping := build("123456789012", "1234")
	for _, test := range []struct {
		name string
		file []byte
		want []Place
	}{
		{"sections that overlap", layouts[0].asObject(overlapping), []Place{{0, 0, 8}, {8, 8, 12}, {16, 12, 12}}},
		{"a file that was linked", overlapping, nil},
		{"one section that holds something", layouts[0].asObject(build("", "")), nil},
	} {
		f, err := openBytes(test.file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f.Places(".debug_line"), test.want); diff != "" {
			t.Errorf("%s: -got +want\n%s", test.name, diff)
		}
		if got := f.Places(".debug_info"); got != nil {
			t.Errorf("%s: Places(.debug_info) = %v, want none", test.name, got)
		}
		f.Close()
	}
}
