package judge

import (
	"debug/elf"

	"github.com/symfilter/symfilter/internal/dialect"
)

const maxLoads = 16 // load addresses of one module in a trace

// span returns the lowest address of the file's segments, and the address after the highest.
func (m *Image) span() (low, high uint64) {
	for _, s := range m.Segments {
		if s.Type == elf.PT_LOAD && s.MemSize > 0 {
			high = max(high, s.Addr+s.MemSize)
		}
	}
	return m.lowest(), high
}

// elsewhere reports whether f's address is too far from the module's other frames for one process.
// The log then shows two load addresses of the module: the program was restarted, or runs several
// times.
func (v *verdict) elsewhere(f *Frame) bool {
	if f.Kind != dialect.Runtime || f.Addr == 0 || v.image.Err != nil || v.image.Fixed || v.first.Addr == 0 && !v.biased {
		return false
	}
	low, high := v.image.span()
	switch {
	case high <= low:
		return false
	case v.biased:
		return f.Addr-v.bias-low >= high-low
	}
	distance := f.Addr - v.first.Addr
	return min(distance, -distance) >= high-low
}

// mixesLoads reports whether a frame of an earlier process follows frames of a later one. It
// updates loads, the highest load number of each module so far.
func mixesLoads(loads map[string]int, v *verdict) bool {
	latest := loads[v.first.Module]
	loads[v.first.Module] = max(latest, v.load)
	return v.load < latest
}
