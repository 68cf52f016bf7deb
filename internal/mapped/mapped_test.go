package mapped

import (
	"debug/elf"
	"testing"

	"github.com/symfilter/symfilter/internal/object"
)

// Segments of a program that was linked by GNU ld and by lld.
var (
	gnuLoads = []object.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Addr: 0, Offset: 0, FileSize: 0x6f8, MemSize: 0x6f8},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0x1000, Offset: 0x1000, FileSize: 0x2100, MemSize: 0x2100},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Addr: 0x5db8, Offset: 0x4db8, FileSize: 0x280, MemSize: 0x300},
	}
	lldLoads = []object.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Addr: 0, Offset: 0, FileSize: 0x9b4, MemSize: 0x9b4},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0x19c0, Offset: 0x9c0, FileSize: 0x300, MemSize: 0x300},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Addr: 0x2cc0, Offset: 0xcc0, FileSize: 0x280, MemSize: 0x300},
	}
)

func debugOnly(loads []object.Segment) (all []object.Segment) {
	for _, l := range loads {
		l.FileSize = 0
		if l.Offset == 0 {
			l.FileSize = 0x30c // headers and notes
		}
		l.Offset = 0
		all = append(all, l)
	}
	return all
}

func TestAddressesInMappings(t *testing.T) {
	const start = 0x7f0000000000
	for _, tt := range []struct {
		name         string
		loads        []object.Segment
		size, offset uint64 // of the mapping
		joined       bool
		fits         bool
		addr, want   uint64 // 0: not looked up
	}{
		{"code of GNU ld", gnuLoads, 0x3000, 0x1000, false, true, start + 0x10, 0x1010},
		{"beyond the code", gnuLoads, 0x3000, 0x1000, false, true, start + 0x2100, 0},
		{"after the mapping", gnuLoads, 0x3000, 0x1000, false, true, start + 0x3000, 0},
		{"before the mapping", gnuLoads, 0x3000, 0x1000, false, true, start - 1, 0},
		{"code of lld", lldLoads, 0x1000, 0, false, true, start + 0x9d0, 0x19d0},
		{"another size", gnuLoads, 0x2000, 0x1000, false, false, start + 0x10, 0x1010},
		{"another offset", gnuLoads, 0x3000, 0x2000, false, false, start, 0x2000},
		{"a part of the code, joined", gnuLoads, 0x2000, 0x1000, true, false, start, 0x1000},
		{"the file, joined", gnuLoads, 0x5000, 0, true, true, start + 0x1010, 0x1010},
		{"more than the file, joined", gnuLoads, 0x9000, 0, true, false, start + 0x1010, 0x1010},
		{"no code", gnuLoads[:1], 0x1000, 0, false, false, start, 0},
		{"a debug file", debugOnly(gnuLoads), 0x3000, 0x1000, false, false, start + 0x10, 0x1010},
		{"a debug file of one segment", debugOnly([]object.Segment{{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, FileSize: 0x1d34, MemSize: 0x1d34}}), 0x2000, 0, false, false, start + 0x9d0, 0x9d0},
		{"a debug file of lld", debugOnly(lldLoads), 0x1000, 0, false, false, start + 0x9d0, 0x19d0},
		{"a debug file, and a part of the code", debugOnly(gnuLoads), 0x1000, 0x1000, false, false, start + 0x10, 0x1010},
		{"a debug file, and the whole file", debugOnly(gnuLoads), 0x6000, 0, true, false, start + 0x1010, 0x1010},
		{"a debug file, and another part", debugOnly(gnuLoads), 0x1000, 0x2000, false, false, start + 0x10, 0},
		{"nothing", nil, 0x1000, 0x1000, false, false, start, 0},
	} {
		m := Range{start, start + tt.size, tt.offset}
		f := NewFile(tt.loads, false)
		if got := f.Fits(m, tt.joined); got != tt.fits {
			t.Errorf("%s: Fits is %v, want %v", tt.name, got, tt.fits)
		}
		if got, err := f.Relative(m, tt.addr); got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%s: got %#x, %v, want %#x", tt.name, got, err, tt.want)
		}
	}
	// as in vmlinux of Linux 6.1 for x86-64
	kernel := []object.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0xffffffff81000000, Offset: 0x200000, FileSize: 0x1600000, MemSize: 0x1600000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Addr: 0xffffffff82600000, Offset: 0x1800000, FileSize: 0x800000, MemSize: 0x800000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Addr: 0, Offset: 0x2000000, FileSize: 0x34000, MemSize: 0x34000}, // of each processor
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Addr: 0xffffffff83034000, Offset: 0x2034000, FileSize: 0x400000, MemSize: 0x600000},
	}
	for _, tt := range []struct {
		name          string
		loads         []object.Segment
		start, offset uint64
		addr, want    uint64
	}{
		{"a kernel", kernel, 0xffffffff81000000, 0xffffffff81000000, 0xffffffff81300040, 0xffffffff81300040},
		{"without an offset", kernel, 0xffffffff81000000, 0, 0xffffffff81300040, 0xffffffff81300040},
		{"moved by KASLR", kernel, 0xffffffff9c000000, 0xffffffff9c000000, 0xffffffff9c300040, 0xffffffff81300040},
		{"at its start", kernel, 0xffffffff9c000000, 0, 0xffffffff9e034010, 0xffffffff83034010},
		{"its data", kernel, 0xffffffff9c000000, 0, 0xffffffff9d600010, 0},
		{"a debug file", debugOnly(kernel), 0xffffffff9c000000, 0, 0xffffffff9c300040, 0xffffffff81300040},
		{"a program", gnuLoads, 0xffffffff9c000000, 0, 0xffffffff9c001010, 0},
	} {
		f := NewFile(tt.loads, false)
		if got, err := f.Relative(Range{tt.start, tt.start + 0x3000000, tt.offset}, tt.addr); got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("%s: got %#x, %v, want %#x", tt.name, got, err, tt.want)
		}
	}
	var f File
	if got, err := f.Relative(Range{}, 0x1234); got != 0x1234 || err != nil {
		t.Errorf("without a start: got %#x, %v", got, err)
	}
}
