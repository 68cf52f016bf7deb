package gopcln

import (
	"bytes"
	"debug/elf"
)

// Indexes of words in module data (runtime.moduledata). Module data is recognized by its first
// words, which point to the table and its parts.
const (
	moduleText   = 22 // start of the text, since Go 1.16
	moduleTrees  = 38 // start of the trees of inlined calls, Go 1.18 and 1.19
	moduleTrees2 = 40 // start of the trees since Go 1.20
	moduleWords  = 48 // words that are read
)

// A module holds the words of module data.
type module struct {
	text  uint64
	words [moduleWords]uint64
}

// findModule looks for the module data of the table at addr. Module data begins with a pointer to
// the table, then pointers to the table's parts. The pointers are in the file, or relocations write
// them.
func (t *Table) findModule(addr uint64) (m module, found bool) {
	if t.version < go116 {
		return m, false
	}
	tried := 0
	try := func(at uint64) bool {
		tried++
		m, found = t.moduleAt(at, addr)
		return found || tried >= maxCandidates
	}
	if s, ok := t.f.Section(".go.module"); ok && try(s.Addr) {
		return m, found
	}
	pattern := make([]byte, 0, 8)
	if t.ptr == 8 {
		pattern = t.appendWord(pattern, addr)
	} else {
		pattern = t.appendWord(pattern, addr)[:4]
	}
	for i, p := range t.f.Segments() {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 {
			continue
		}
		data := t.f.SegmentData(i)
		for from := 0; from < len(data); {
			n := bytes.Index(data[from:], pattern)
			if n < 0 {
				break
			}
			at := p.Addr + uint64(from+n)
			if at%t.ptr == 0 && try(at) {
				return m, found
			}
			from += n + 1
		}
	}
	var places []uint64
	t.f.RelativeRelocations(func(at, value uint64) bool {
		if value == addr {
			places = append(places, at)
		}
		return len(places) < maxCandidates
	})
	for _, at := range places {
		if m, found = t.moduleAt(at, addr); found {
			return m, true
		}
	}
	return module{}, false
}

func (t *Table) appendWord(b []byte, v uint64) []byte {
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	if t.ptr == 8 {
		t.order.PutUint64(b, v)
	} else {
		t.order.PutUint32(b, uint32(v))
	}
	return b
}

// moduleAt reads the module data at an address. ok is false if these data do not belong to the
// table at addr.
func (t *Table) moduleAt(at, addr uint64) (m module, ok bool) {
	data := t.f.Loaded(at)
	for i := range m.words {
		m.words[i], _ = t.word(data, uint64(i)*t.ptr)
	}
	end := at + moduleWords*t.ptr
	t.f.RelativeRelocations(func(where, value uint64) bool {
		if where >= at && where < end && (where-at)%t.ptr == 0 {
			m.words[(where-at)/t.ptr] = value
		}
		return true
	})
	// The first word is the address of the table. Five slices of three words follow. They begin
	// with the addresses of the table's parts, in the order of t.offsets.
	if m.words[0] != addr || uint64(len(data)) < (moduleText+1)*t.ptr {
		return m, false
	}
	for i, off := range t.offsets {
		if m.words[1+3*i]-addr != off {
			return m, false
		}
	}
	m.text = m.words[moduleText]
	return m, true
}

// findText finds the address to which function offsets are relative. It tries the address in module
// data, the address in the header (before Go 1.26), and the start of the code. It takes the first
// of these addresses with which the first and the last function are in code.
func (t *Table) findText(ofModule uint64, found bool, data []byte) bool {
	candidates := make([]uint64, 0, 3)
	if found {
		candidates = append(candidates, ofModule)
	}
	if inHeader, ok := t.word(data, 8+2*t.ptr); ok && inHeader != 0 {
		candidates = append(candidates, inHeader)
	}
	if s, ok := t.f.Section(".text"); ok {
		candidates = append(candidates, s.Addr)
	}
	for _, p := range t.f.Segments() {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && len(t.f.Sections()) <= 1 {
			candidates = append(candidates, p.Addr, p.Addr+0x1000) // after the headers of the file
		}
	}
	for _, text := range candidates {
		t.text = text
		first, ok := t.entry(0)
		last, ok2 := t.entry(t.functions)
		if ok && ok2 && last > first && t.f.ExecCovers(first) && t.f.ExecCovers(last-1) {
			return true
		}
	}
	return false
}

// findTrees finds the base address of the trees of inlined calls, and the layout of their entries.
// A sample of trees must fit both; otherwise Lookup returns no inlined calls.
func (t *Table) findTrees(m module, found bool) {
	samples := t.sampleTrees()
	if len(samples) == 0 {
		return
	}
	bases := []uint64{0} // Go 1.16 and 1.17 store the addresses of trees
	if t.version >= go118 {
		if !found {
			return
		}
		bases = append(bases[:0], m.words[moduleTrees2], m.words[moduleTrees])
		if t.version == go118 {
			bases = append(bases[:0], m.words[moduleTrees])
		}
		// a later version may have moved the start of the trees
		bases = append(bases, m.words[moduleText+10:]...)
	}
	layouts := []treeLayout{
		{size: 16, name: 4, parentPC: 8},   // since Go 1.20 or 1.21
		{size: 20, name: 12, parentPC: 16}, // before Go 1.20 or 1.21
		{size: 24, name: 12, parentPC: 16},
	}
	if t.version < go120 {
		layouts = layouts[1:2]
	}
	for _, base := range bases {
		if base == 0 && t.version >= go118 {
			continue
		}
		for _, l := range layouts {
			t.trees, t.layout = base, l
			if t.treesMakeSense(samples) {
				return
			}
		}
	}
	t.trees, t.layout = 0, treeLayout{}
}

// sampleTrees returns the first functions with inlined calls, at most maxTrees.
func (t *Table) sampleTrees() []function {
	var samples []function
	for i := uint64(0); i < min(t.functions, maxTreeSteps) && len(samples) < maxTrees; i++ {
		if fn, ok := t.function(i); ok && fn.hasTree && fn.inlining != 0 {
			samples = append(samples, fn)
		}
	}
	return samples
}

// treesMakeSense checks the first 65 entries in the tree of each sample. Each entry must have a
// name, and a position within the function.
func (t *Table) treesMakeSense(samples []function) bool {
	for _, fn := range samples {
		greatest := int32(-1)
		t.eachValue(fn, fn.inlining, func(_ uint64, value int32) bool {
			greatest = max(greatest, value)
			return true
		})
		if greatest < 0 {
			continue
		}
		for i := int32(0); i <= min(greatest, 64); i++ {
			name, parent, ok := t.call(fn, i)
			if !ok || parent >= fn.end-fn.start || !t.beginsName(name) {
				return false
			}
		}
	}
	return true
}

// beginsName reports whether off is the first byte of a name.
func (t *Table) beginsName(off uint32) bool {
	return uint64(off) < uint64(len(t.names)) && t.names[off] != 0 && (off == 0 || t.names[off-1] == 0)
}
