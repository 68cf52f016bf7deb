package rtrace

import (
	"debug/elf"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
)

func segment(flags elf.ProgFlag, offset, addr, size uint64) object.Segment {
	return object.Segment{Type: elf.PT_LOAD, Flags: flags, Offset: offset, Addr: addr, FileSize: size, MemSize: size}
}

// fits must find the mapped part of a file by the size of the mapping.
func TestMappingsAreOfSegments(t *testing.T) {
	const r, rx, rw = elf.PF_R, elf.PF_R | elf.PF_X, elf.PF_R | elf.PF_W
	separate := []object.Segment{segment(r, 0, 0, 0x1234), segment(rx, 0x2340, 0x2340, 0x3000), segment(r, 0x6000, 0x6000, 0x800), segment(rw, 0x7000, 0x8000, 0x100)}
	tests := []struct {
		name     string
		loads    []object.Segment
		fixed    bool
		from, to uint64
		want     []uint64
	}{
		{"code behind the headers", separate, false, 0x7f00_0000_2000, 0x7f00_0000_6000, []uint64{0x2000}},
		{"the last address instead of the end", separate, false, 0x7f00_0000_2000, 0x7f00_0000_5fff, []uint64{0x2000}},
		{"another size", separate, false, 0x7f00_0000_2000, 0x7f00_0000_5000, nil},
		{"no page", separate, false, 0x7f00_0000_2100, 0x7f00_0000_6100, nil},
		{"all is executable", separate, false, 0x7f00_0000_0000, 0x7f00_0000_7000, []uint64{0}},
		{"the whole image", separate, false, 0x7f00_0000_0000, 0x7f00_0000_9000, []uint64{0}},
		{"the whole image, to its last address", separate, false, 0x7f00_0000_0000, 0x7f00_0000_8fff, []uint64{0}},
		{"the whole image with memory that is not of the file", append(slices.Clone(separate[:3]), object.Segment{Type: elf.PT_LOAD, Flags: rw, Offset: 0x7000, Addr: 0x8000, FileSize: 0x100, MemSize: 0x2100}), false, 0x7f00_0000_0000, 0x7f00_0000_b000, []uint64{0}},
		{"a part of the image", separate, false, 0x7f00_0000_1000, 0x7f00_0000_9000, nil},
		{"more than the whole image", separate, false, 0x7f00_0000_0000, 0x7f00_0000_a000, nil},
		{"what does not follow in the file is no mapping", append(slices.Clone(separate), segment(r, 0x8000, 0xa000, 0x100)), false, 0x7f00_0000_0000, 0x7f00_0000_9000, nil},
		{"a whole image that was not moved", []object.Segment{segment(r, 0, 0x400000, 0x800), segment(rx, 0x1000, 0x401000, 0x10), segment(rw, 0x2000, 0x403000, 0x10)}, true, 0x400000, 0x404000, []uint64{0x400000}},
		{"a whole image that was not moved, and elsewhere", []object.Segment{segment(r, 0, 0x400000, 0x800), segment(rx, 0x1000, 0x401000, 0x10), segment(rw, 0x2000, 0x403000, 0x10)}, true, 0x500000, 0x504000, nil},
		{"the headers have no code", separate, false, 0x7f00_0000_0000, 0x7f00_0000_2000, nil},
		{"code at the beginning", []object.Segment{segment(rx, 0, 0, 0x5010), segment(rw, 0x5f00, 0x6f00, 0x200)}, false, 0xb7e0_0000, 0xb7e0_6000, []uint64{0}},
		{"pages of 16 KiB", []object.Segment{segment(rx, 0x5000, 0x15000, 0x3000)}, false, 0x4000_4000, 0x4000_8000, []uint64{0x14000}},
		{"pages of 64 KiB", []object.Segment{segment(rx, 0x5000, 0x15000, 0x3000)}, false, 0x4001_0000, 0x4002_0000, []uint64{0x10000}},
		{"two of one size", []object.Segment{segment(rx, 0x1000, 0x1000, 0x10), segment(rx, 0x5000, 0x9000, 0x10)}, false, 0x1000_0000, 0x1000_1000, []uint64{0x1000, 0x9000}},
		{"not moved", []object.Segment{segment(rx, 0x1000, 0x401000, 0x10)}, true, 0x401000, 0x402000, []uint64{0x401000}},
		{"not moved, and elsewhere", []object.Segment{segment(rx, 0x1000, 0x401000, 0x10)}, true, 0x501000, 0x502000, nil},
		{"at the end of the address space", separate, false, 0xffff_ffff_ffff_2000, 0xffff_ffff_ffff_6000, []uint64{0x2000}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := &file{Object: &report.Object{Fixed: tt.fixed}, parts: tt.loads}
			if got := f.fits(tt.from, tt.to); !slices.Equal(got, tt.want) {
				t.Errorf("got %#x, want %#x", got, tt.want)
			}
		})
	}
}

// A new mapping must replace the mappings in its range. Parts of old mappings outside of the range
// must remain. For earlier epochs, find must return the replaced mappings.
func TestMappingsReplaceEachOther(t *testing.T) {
	const rx = elf.PF_R | elf.PF_X
	var o Options
	s := newSpace(&o, &report.Once{})
	for name, size := range map[string]uint64{"/a": 0x4000, "/b": 0x1000} {
		s.files[name] = &file{Object: &report.Object{Name: name, Path: name}, parts: []object.Segment{segment(rx, 0, 0, size)}}
	}
	show := func(epoch int) (all []string) {
		for addr := uint64(0x1000); addr <= 0x7000; addr += 0x800 {
			word := "-"
			if m := s.find(addr, epoch); m != nil {
				word = m.path
				if m.placed {
					word = fmt.Sprintf("%s+%#x", m.path, addr-m.bias())
				}
			}
			all = append(all, word)
		}
		return all
	}
	add := func(path string, from, to uint64) { s.addMapping(path, from, to) }
	check := func(what string, epoch int, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, show(epoch)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	add("/a", 0x2000, 0x3000)
	add("/a", 0x4000, 0x6000)
	check("pieces", 0, "-", "-", "/a", "/a", "-", "-", "/a", "/a", "/a", "/a", "-", "-", "-")
	add("/a", 0x3000, 0x4000)
	check("a segment in three pieces", 0, "-", "-", "/a+0x0", "/a+0x800", "/a+0x1000", "/a+0x1800", "/a+0x2000", "/a+0x2800", "/a+0x3000", "/a+0x3800", "-", "-", "-")
	add("/a", 0x3000, 0x4000)
	check("a piece again", 0, "-", "-", "/a+0x0", "/a+0x800", "/a+0x1000", "/a+0x1800", "/a+0x2000", "/a+0x2800", "/a+0x3000", "/a+0x3800", "-", "-", "-")
	before := s.epoch
	add("/b", 0x3000, 0x4000)
	check("another file in the middle", 0, "-", "-", "/a+0x0", "/a+0x800", "/b+0x0", "/b+0x800", "/a+0x2000", "/a+0x2800", "/a+0x3000", "/a+0x3800", "-", "-", "-")
	add("[heap]", 0x1000, 0x2800)
	check("what is no file", 0, "[heap]", "[heap]", "[heap]", "/a+0x800", "/b+0x0", "/b+0x800", "/a+0x2000", "/a+0x2800", "/a+0x3000", "/a+0x3800", "-", "-", "-")
	check("before", before, "-", "-", "/a+0x0", "/a+0x800", "/a+0x1000", "/a+0x1800", "/a+0x2000", "/a+0x2800", "/a+0x3000", "/a+0x3800", "-", "-", "-")
	s.reset()
	check("another process", 0, "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-")
	check("before the process", before, "-", "-", "/a+0x0", "/a+0x800", "/a+0x1000", "/a+0x1800", "/a+0x2000", "/a+0x2800", "/a+0x3000", "/a+0x3800", "-", "-", "-")
}
