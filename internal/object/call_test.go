package object

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// An instruction is a line of a disassembly.
type instruction struct {
	addr uint64
	text string
}

var disassembled = regexp.MustCompile(`^\s*([0-9a-f]+):\s+([a-z.][^#;<]*)`)

// disassemble returns all instructions of a file, or skips the test.
func disassemble(t *testing.T, path string) (all []instruction) {
	t.Helper()
	out, err := exec.Command("llvm-objdump-19", "-d", "--no-show-raw-insn", "--no-print-imm-hex", path).Output()
	if err != nil {
		t.Skip("no llvm-objdump-19:", err)
	}
	for line := range strings.Lines(string(out)) {
		if m := disassembled.FindStringSubmatch(line); m != nil {
			addr, _ := strconv.ParseUint(m[1], 16, 64)
			all = append(all, instruction{addr, strings.Join(strings.Fields(m[2]), " ")})
		}
	}
	return all
}

// isCall matches a call as a disassembler prints it, for any of the machines.
var isCall = regexp.MustCompile(`^(call[lqw]?|bl|blr|blx|jal(r? (?:ra|\$|[0-9a-z]+$).*)?|jal[r ].*|c\.jalr?|bctrl|bclrl|brasl|bras|basr|bas|bal|jalr|jirl \$ra,.*)( |$)`)

func TestCallsEndWhereADisassemblerSeesThem(t *testing.T) {
	fuzztest.WithoutRace(t)
	paths, err := filepath.Glob("../../symbolize/testdata/arch/*.elf")
	if err != nil || len(paths) < 11 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".elf")
		t.Run(name, func(t *testing.T) {
			f := open(t, path)
			all := disassemble(t, path)
			calls := 0
			for i := 1; i < len(all); i++ {
				before := i - 1
				if strings.HasPrefix(name, "mips") {
					before-- // the delay slot
				}
				if before < 0 || all[i].addr-all[before].addr > 8 {
					continue // the start of a section
				}
				addr := all[i].addr
				if name == "thumb" {
					addr |= 1
				}
				want := isCall.MatchString(all[before].text)
				if got, known := f.CallEndsAt(addr); got != want || !known {
					t.Errorf("CallEndsAt(%#x) = %v, %v; behind %q", addr, got, known, all[before].text)
				}
				if want {
					calls++
				}
			}
			if calls < 2 {
				t.Errorf("%d calls in %d instructions, want that of a function and that through a pointer", calls, len(all))
			}
		})
	}
}

// On x86 no call may be missed, and only a few other addresses may be reported as return addresses.
func TestCallsOfX86(t *testing.T) {
	fuzztest.WithoutRace(t)
	files := machineFiles(t)
	random := rand.New(rand.NewPCG(3, 4))
	places, missed, wrong := 0, 0, 0
	for _, i := range random.Perm(len(files))[:3] {
		f := open(t, files[i])
		all := disassemble(t, files[i])
		for i := 1; i < len(all); i++ {
			if all[i].addr-all[i-1].addr > 15 {
				continue
			}
			want := strings.HasPrefix(all[i-1].text, "call")
			got, known := f.CallEndsAt(all[i].addr)
			places++
			switch {
			case want && !(got && known):
				missed++
				t.Logf("%#x: behind %q", all[i].addr, all[i-1].text)
			case got && !want:
				wrong++
			}
		}
	}
	t.Logf("%d places, %d missed, %d taken for a call", places, missed, wrong)
	if missed > 0 || wrong > places/500 {
		t.Errorf("%d places, %d missed, %d taken for a call", places, missed, wrong)
	}
}

func TestCallForms(t *testing.T) {
	tests := []struct {
		code string // hexadecimal, at 0x1000
		want bool
	}{
		{"e8fbffffff", true},             // call to itself
		{"e8fbffff7f", false},            // to an address without code
		{"ffd0", true},                   // call *%rax
		{"41ffd3", true},                 // call *%r11
		{"ff10", true},                   // call *(%rax)
		{"ff1500000000", true},           // call *0(%rip)
		{"ff142500000000", true},         // call *0
		{"ff14c8", true},                 // call *(%rax,%rcx,8)
		{"ff5008", true},                 // call *8(%rax)
		{"ff542408", true},               // call *8(%rsp)
		{"ff90aabbccdd", true},           // call *…(%rax)
		{"ff9424aabbccdd", true},         // call *…(%rsp)
		{"3eff90aabbccdd", true},         // with a prefix
		{"67e8f9ffffff", true},           // padded by the linker
		{"ffe0", false},                  // jmp *%rax
		{"ff20", false}, {"ff30", false}, // jmp, push
		{"90909090", false},
	}
	for _, tt := range tests {
		var code []byte
		for i := 0; i < len(tt.code); i += 2 {
			v, _ := strconv.ParseUint(tt.code[i:i+2], 16, 8)
			code = append(code, byte(v))
		}
		m := layouts[0]
		m.segments = []Segment{{Type: 1, Flags: 5, Offset: 0, Addr: 0x1000 - 0x100, FileSize: 0x1000, MemSize: 0x1000}}
		b := m.bytes(t)
		b = append(b, bytes.Repeat([]byte{0x90}, 0x100)...)
		whole := append(b[:0x100:0x100], code...)
		whole = append(whole, make([]byte, 0x100)...)
		// without section headers, which the test does not need
		clear(whole[eShoff : eShoff+8])
		clear(whole[eShnum : eShnum+4])
		f, err := openBytes(whole)
		if err != nil {
			t.Fatal(err)
		}
		if got, known := f.CallEndsAt(0x1000 + uint64(len(code))); got != tt.want || !known {
			t.Errorf("%s: %v, %v; want %v", tt.code, got, known, tt.want)
		}
		if _, known := f.CallEndsAt(0x100000); known {
			t.Errorf("%s: known where there is no code", tt.code)
		}
		f.Close()
	}
}

func TestSymbolsNamed(t *testing.T) {
	for _, path := range machineFiles(t)[:20] {
		f := open(t, path)
		by := make(map[string][]uint64)
		for _, table := range []*symbols{f.primary(), f.secondary()} {
			if len(table.raw) == 0 {
				continue
			}
			for i := range uint64(len(table.raw)) / table.entry {
				sym, name, shndx := table.at(i)
				if table.counts(&sym, name, shndx) {
					by[string(table.name(name))] = append(by[string(table.name(name))], sym.Addr)
				}
			}
		}
		searched := 0
		for name, addrs := range by {
			if searched++; searched > 50 {
				break
			}
			got := f.SymbolsNamed(name)
			distinct := make(map[uint64]bool)
			for _, addr := range addrs {
				distinct[addr] = true
			}
			if len(got) != len(distinct) {
				t.Errorf("%s: SymbolsNamed(%s): %d, want %d", path, name, len(got), len(distinct))
			}
			for i, sym := range got {
				if string(sym.Name) != name || !distinct[sym.Addr] || i > 0 && sym.Addr <= got[i-1].Addr {
					t.Errorf("%s: SymbolsNamed(%s) = %s %#x", path, name, sym.Name, sym.Addr)
				}
			}
		}
		if len(by) > 2*linearNames && !f.symbols.rarely().names.built {
			t.Errorf("%s: no list after %d searches", path, searched)
		}
		for _, name := range []string{"", "no such symbol", "\x00"} {
			if got := f.SymbolsNamed(name); len(got) != 0 {
				t.Errorf("%s: SymbolsNamed(%q): %d", path, name, len(got))
			}
		}
	}
}

// The table of names must not be built if many names overlap. In this file, each name is a suffix
// of one long name.
func TestOverlappingNamesAreNotListed(t *testing.T) {
	watch(t)
	m := layouts[0]
	m.sections = append([]imageSection(nil), symbolSections...)
	const count, length = 20000, 60000
	table := m.symtab(t, 2, 5, []imageSymbol{{strings.Repeat("x", length), 0x1000, 4, 2, 1, 1}})
	w := m.writer()
	w.Write(make([]byte, symSize64))
	for i := range uint32(count) {
		w.u32(1 + i%1000)
		w.Write([]byte{0x12, 0, 1, 0})
		w.word(0x1000, 4)
	}
	table[0].data = w.String()
	m.sections = append(m.sections, table...)
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := strings.Repeat("x", length-5)
	for range 2 * linearNames {
		if got := f.SymbolsNamed(name); len(got) != 1 {
			t.Fatalf("SymbolsNamed: %d", len(got))
		}
	}
	if !f.symbols.rarely().names.hostile {
		t.Error("the names were listed")
	}
}

// A name at the beginning of the string table must be found: the table need not begin with an empty
// name.
func TestANameAtTheBeginningIsFound(t *testing.T) {
	m := layouts[0]
	m.sections = append([]imageSection(nil), symbolSections...)
	table := m.symtab(t, 2, 5, []imageSymbol{{"\x01", 0x1000, 4, 2, 1, 1}})
	table[1].data = "f\x00"
	b := []byte(table[0].data)
	b[symSize64] = 0 // the name of the first symbol
	table[0].data = string(b)
	m.sections = append(m.sections, table...)
	f, err := openBytes(m.bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 2 * linearNames {
		if sym, ok := f.Symbol(0x1000); string(sym.Name) != "f" || !ok || len(f.SymbolsNamed("f")) != 1 {
			t.Fatalf("search %d: Symbol = %s, SymbolsNamed %v", i, sym.Name, f.SymbolsNamed("f"))
		}
	}
}

// CallEndsAt must return true exactly at the ends of the calls that avr-objdump prints.
func TestCallsOfAVR(t *testing.T) {
	f := open(t, "../../integration/testdata/firmware/recorded/avr.elf")
	text, _ := f.Section(".text")
	var calls []uint64
	for addr := text.Addr + 2; addr <= text.Addr+text.Size; addr++ {
		if yes, known := f.CallEndsAt(addr); yes || !known {
			calls = append(calls, addr)
		}
	}
	want := []uint64{0x10e, 0x156, 0x17e, 0x262, 0x270, 0x278, 0x28a, 0x292, 0x29c, 0x2a4, 0x2ae, 0x2b6, 0x2ba, 0x2c6}
	if !slices.Equal(calls, want) {
		t.Errorf("calls end at %#x, want %#x", calls, want)
	}
}

// The address that InCall returns must be before the delay slot: the line of the instruction in the
// slot may differ from the line of the call.
func TestAnAddressInACallOfMIPSIsBeforeTheDelaySlot(t *testing.T) {
	f := open(t, "../../integration/testdata/firmware/recorded/mips.elf")
	for addr, want := range map[uint64]uint64{
		0x801000a8: 0x801000a3, // after jal and its slot
		0x801000b0: 0x801000af,
	} {
		if got := f.InCall(addr); got != want {
			t.Errorf("InCall(%#x) = %#x, want %#x", addr, got, want)
		}
	}
}
