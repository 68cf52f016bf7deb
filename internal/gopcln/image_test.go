package gopcln

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An image describes an ELF file without sections. The file has a segment of code, and a segment of
// data with a table of one version, the trees and the module data.
type image struct {
	version version
	big     bool
	is32    bool
	pie     bool // the addresses in the table are relocated
}

const (
	textAddr = 0x401000
	dataAddr = 0x500000
	dataOff  = 0x1000
)

type writer struct {
	bytes.Buffer
	order binary.AppendByteOrder
	ptr   int
}

func (w *writer) u16(v ...uint16) {
	for _, v := range v {
		w.Write(w.order.AppendUint16(nil, v))
	}
}

func (w *writer) u32(v ...uint32) {
	for _, v := range v {
		w.Write(w.order.AppendUint32(nil, v))
	}
}

func (w *writer) word(v ...uint64) {
	for _, v := range v {
		if w.ptr == 8 {
			w.Write(w.order.AppendUint64(nil, v))
		} else {
			w.u32(uint32(v))
		}
	}
}

func (w *writer) align(n int) {
	for w.Len()%n != 0 {
		w.WriteByte(0)
	}
}

func (m image) writer() *writer {
	w := &writer{order: binary.LittleEndian, ptr: 8}
	if m.big {
		w.order = binary.BigEndian
	}
	if m.is32 {
		w.ptr = 4
	}
	return w
}

// steps encodes a table of values. pairs are pairs of a value and the number of code bytes with
// this value.
func steps(pairs ...int) string {
	var b []byte
	last := -1
	for i := 0; i < len(pairs); i += 2 {
		delta := int32(pairs[i] - last)
		last = pairs[i]
		b = binary.AppendUvarint(b, uint64(uint32(delta<<1)^uint32(delta>>31)))
		b = binary.AppendUvarint(b, uint64(pairs[i+1]))
	}
	return string(append(b, 0))
}

// bytes returns the file. Its functions:
//
//	main.a  0x00-0x1f  a.go, lines 10 (16 bytes) and 12 (16 bytes)
//	main.b  0x20-0x3f  b.go, lines 20 (16 bytes), 21 (4 bytes) and 22 (8 bytes); 4 bytes of padding
//
// Since Go 1.16, line 21 is in main.outer, inlined into main.b, and line 22 in main.inner, inlined
// into main.outer.
func (m image) bytes() []byte {
	magic := map[version]uint32{go12: magicOf12, go116: magicOf116, go118: magicOf118, go120: magicOf120}[m.version]
	names := "\x00main.a\x00main.b\x00main.inner\x00main.outer\x00"
	files := "\x00a.go\x00b.go\x00"
	at := func(s, part string) uint32 { return uint32(strings.Index(s, part)) }
	values := "\x00"
	put := func(s string) uint32 { values += s; return uint32(len(values) - len(s)) }
	fileA, lineA := put(steps(0, 32)), put(steps(10, 16, 12, 16))
	fileB, lineB := put(steps(1, 28)), put(steps(20, 16, 21, 4, 22, 8))
	treeOf := put(steps(-1, 16, 0, 4, 1, 8))
	if m.version == go12 {
		// Files are numbered from 1.
		fileA, fileB = put(steps(1, 32)), put(steps(2, 28))
	}

	// Trees: entry 0 is main.outer, called from byte 4 of main.b; entry 1 is main.inner, called
	// from byte 16 of main.b, which is in main.outer.
	trees := m.writer()
	trees.WriteString("tree")
	trees.align(8)
	for i, name := range []string{"main.outer", "main.inner"} {
		parent := []uint32{4, 16}[i]
		if m.version == go120 {
			trees.u32(0, at(names, name), parent, 1)
		} else {
			trees.u32(0xffff0000, 1, 20, at(names, name), parent)
		}
	}

	table := m.writer()
	table.u32(magic)
	table.Write([]byte{0, 0, 1, byte(table.ptr)})
	const functions = 2
	table.word(functions)
	ptr := uint64(table.ptr)

	// The trees are placed after the table, whose size does not depend on their address.
	build := func(tableAddr, treesAddr uint64) ([]byte, [5]uint64, []uint64) {
		w := m.writer()
		w.Write(table.Bytes())
		var relocated []uint64
		address := func(v uint64) {
			if m.pie {
				relocated = append(relocated, uint64(w.Len()), v)
				v = 0
			}
			w.word(v)
		}
		function := func(base, i uint64) {
			start, name, file, line := uint64(0), at(names, "main.a"), fileA, lineA
			if i == 1 {
				start, name, file, line = 0x20, at(names, "main.b"), fileB, lineB
			}
			if m.version >= go118 {
				w.u32(uint32(start))
			} else {
				address(textAddr + start)
			}
			nvalues, ndata := uint32(0), byte(0)
			if i == 1 && m.version >= go116 {
				nvalues, ndata = 3, 4
			}
			w.u32(name, 0, 0, 0, file, line, nvalues)
			if m.version >= go116 {
				w.u32(0) // unit
			}
			if m.version >= go120 {
				w.u32(1) // first line
			}
			w.Write([]byte{0, 0, 0, ndata})
			if nvalues == 0 {
				return
			}
			w.u32(0, 0, treeOf)
			if m.version >= go118 {
				w.u32(^uint32(0), ^uint32(0), ^uint32(0), 8)
				return
			}
			for (uint64(w.Len())-base)%ptr != 0 {
				w.WriteByte(0)
			}
			w.word(0, 0, 0)
			address(treesAddr)
		}
		var offsets [5]uint64
		if m.version == go12 {
			index := uint64(w.Len())
			first := index + 5*ptr + 4
			first = (first + 7) &^ 7
			second := first + ptr + 32
			address(textAddr)
			w.word(first + 0)
			address(textAddr + 0x20)
			w.word(second)
			address(textAddr + 0x40)
			filesAt := second + ptr + 32
			w.u32(uint32(filesAt))
			// The offsets of names and values are relative to the start of the table, so names and
			// values are placed after the files.
			for uint64(w.Len()) < first {
				w.WriteByte(0)
			}
			namesAt := uint32(filesAt) + 12
			filesStr := namesAt + uint32(len(names))
			valuesAt := filesStr + uint32(len(files))
			one := func(start uint64, name string, file, line uint32) {
				address(textAddr + start)
				w.u32(namesAt+at(names, name), 0, 0, 0, valuesAt+file, valuesAt+line, 0, 0)
			}
			one(0, "main.a", fileA, lineA)
			one(0x20, "main.b", fileB, lineB)
			w.u32(2, filesStr+at(files, "a.go"), filesStr+at(files, "b.go"))
			w.WriteString(names + files + values)
			return w.Bytes(), offsets, relocated
		}
		w.word(2)
		if m.version >= go118 {
			w.word(0)
		}
		head := uint64(w.Len())
		body := m.writer()
		add := func(i int, s string) {
			body.align(8)
			offsets[i] = head + 5*ptr + uint64(body.Len())
			body.WriteString(s)
		}
		add(0, names)
		units := m.writer()
		units.u32(at(files, "a.go"), at(files, "b.go"))
		add(1, units.String())
		add(2, files)
		add(3, values)
		add(4, "")
		w.word(offsets[:]...)
		w.Write(body.Bytes())
		base := uint64(w.Len())
		indexWord := ptr
		if m.version >= go118 {
			indexWord = 4
		}
		first := (5*indexWord + 7) &^ 7
		second := first + indexWord + 36
		if m.version >= go120 {
			second += 4
		}
		second = (second + 7) &^ 7
		for i, start := range []uint64{0, 0x20, 0x40} {
			if m.version >= go118 {
				w.u32(uint32(start))
			} else {
				address(textAddr + start)
			}
			if i < 2 {
				off := []uint64{first, second}[i]
				if m.version >= go118 {
					w.u32(uint32(off))
				} else {
					w.word(off)
				}
			}
		}
		for i, off := range []uint64{first, second} {
			for uint64(w.Len())-base < off {
				w.WriteByte(0)
			}
			function(base, uint64(i))
		}
		return w.Bytes(), offsets, relocated
	}
	tableAddr := uint64(dataAddr) + 64
	once, _, _ := build(tableAddr, 0)
	treesOff := (64 + len(once) + 15) &^ 15
	whole, offsets, relocated := build(tableAddr, dataAddr+uint64(treesOff)+8)

	data := m.writer()
	data.Write(make([]byte, 64))
	data.Write(whole)
	data.align(16)
	data.Write(trees.Bytes())
	data.align(16)
	module := uint64(dataAddr) + uint64(data.Len())
	moduleWord := func(i int) uint64 {
		switch {
		case i == 0:
			return tableAddr
		case i < 16 && i%3 == 1:
			return tableAddr + offsets[i/3]
		case i == moduleText:
			return textAddr
		case i == moduleTrees2 && m.version == go120, i == moduleTrees && m.version == go118:
			return dataAddr + uint64(treesOff)
		}
		return 0
	}
	relas := m.writer()
	for i := range moduleWords {
		if v := moduleWord(i); m.pie && v != 0 {
			relas.word(module+uint64(i)*ptr, relativeOf(m), v)
			data.word(0)
		} else {
			data.word(v)
		}
	}
	for i := 0; i+1 < len(relocated); i += 2 {
		relas.word(tableAddr+relocated[i], relativeOf(m), relocated[i+1])
	}
	dynamic := uint64(data.Len())
	relaAddr := dataAddr + dynamic + 6*ptr
	data.word(uint64(elf.DT_RELA), relaAddr, uint64(elf.DT_RELASZ), uint64(relas.Len()), 0, 0)
	data.Write(relas.Bytes())

	out := m.writer()
	class, order := elf.ELFCLASS64, elf.ELFDATA2LSB
	if m.is32 {
		class = elf.ELFCLASS32
	}
	if m.big {
		order = elf.ELFDATA2MSB
	}
	out.WriteString("\x7fELF" + string([]byte{byte(class), byte(order), 1, 15: 0})[:12])
	kind, machine := elf.ET_EXEC, elf.EM_X86_64
	if m.pie {
		kind = elf.ET_DYN
	}
	if m.big {
		machine = elf.EM_S390
	}
	out.u16(uint16(kind), uint16(machine))
	out.u32(1)
	ehdr, phdr := 64, 56
	if m.is32 {
		ehdr, phdr = 52, 32
	}
	out.word(textAddr, uint64(ehdr), 0)
	out.u32(0)
	out.u16(uint16(ehdr), uint16(phdr), 3, 0, 0, 0)
	segment := func(kind elf.ProgType, flags elf.ProgFlag, off, addr, size uint64) {
		out.u32(uint32(kind))
		if !m.is32 {
			out.u32(uint32(flags))
		}
		out.word(off, addr, addr, size, size)
		if m.is32 {
			out.u32(uint32(flags))
		}
		out.word(1)
	}
	segment(elf.PT_LOAD, elf.PF_R|elf.PF_X, 0, textAddr, 0x100)
	segment(elf.PT_LOAD, elf.PF_R|elf.PF_W, dataOff, dataAddr, uint64(data.Len()))
	segment(elf.PT_DYNAMIC, elf.PF_R, dataOff+dynamic, dataAddr+dynamic, 6*ptr)
	out.Write(make([]byte, dataOff-out.Len()))
	out.Write(data.Bytes())
	return out.Bytes()
}

func relativeOf(m image) uint64 {
	if m.big {
		return uint64(elf.R_390_RELATIVE)
	}
	return uint64(elf.R_X86_64_RELATIVE)
}

func TestEachVersionIsRead(t *testing.T) {
	for _, v := range []version{go12, go116, go118, go120} {
		for _, m := range []image{{v, false, false, false}, {v, true, false, false}, {v, false, true, false}, {v, true, true, false}, {v, false, false, true}, {v, true, false, true}} {
			table, err := New(openBytes(t, m.bytes()))
			if err != nil {
				t.Errorf("%+v: %v", m, err)
				continue
			}
			got := lookups(table)
			want := map[uint64]string{
				0x0: "main.a a.go:10", 0x10: "main.a a.go:12", 0x1f: "main.a a.go:12",
				0x20: "main.b b.go:20", 0x30: "main.outer b.go:21 < main.b b.go:20", 0x34: "main.inner b.go:22 < main.outer b.go:21 < main.b b.go:20",
				0x3b: "main.inner b.go:22 < main.outer b.go:21 < main.b b.go:20", 0x3c: "", 0x40: "", ^uint64(0): "",
			}
			if v == go12 {
				want[0x30], want[0x34], want[0x3b] = "main.b b.go:21", "main.b b.go:22", "main.b b.go:22"
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%+v: (-want +got)\n%s", m, diff)
			}
			if table.Footprint() <= 0 {
				t.Errorf("%+v: Footprint() = %d", m, table.Footprint())
			}
		}
	}
}

// lookups returns the frames at some offsets in the text.
func lookups(t *Table) map[uint64]string {
	got := make(map[uint64]string)
	for _, off := range []uint64{0, 0x10, 0x1f, 0x20, 0x30, 0x34, 0x3b, 0x3c, 0x40, ^uint64(0)} {
		var all []string
		for _, f := range t.Lookup(nil, textAddr+off) {
			all = append(all, fmt.Sprintf("%s %s:%d", f.Name, f.File, f.Line))
		}
		got[off] = strings.Join(all, " < ")
	}
	return got
}
