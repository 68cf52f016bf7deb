package profile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
)

// maxDepth bounds the frames of a stack. gperftools records 254 in a CPU profile and 32 in a heap
// profile; jemalloc records 128.
const maxDepth = 1 << 16

// The heap profile of gperftools, which Go also writes with debug=1:
//
//	heap profile:     13:     6688 [    13:     6688] @ heap_v2/524288
//	     1:     2066 [     1:     2066] @ 0x7f337c6a2630 0x7f337c6a2d21
//
//	MAPPED_LIBRARIES:
//	7f48fa7b9000-7f48fa90e000 r-xp 00022000 fe:00 1234    /usr/lib/libc.so.6
//
// Each line has the number and size of the blocks in use, then of all allocations.

var heapMark = []byte("heap profile:")

func isHeap(head []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(head, "\r\n\t "), heapMark) }

func readHeap(data []byte, r *resolver) (document, error) {
	d := newRawStacks(r.m)
	data = bytes.TrimLeft(data, "\r\n\t ")
	line, data := nextLine(data)
	h, ok := parseHeapHeader(line)
	if !ok {
		return nil, fmt.Errorf("the first line has no valid counts of allocations: %.80q", line)
	}
	d.p.PeriodType, d.p.Period = stacks.ValueType{Name: "space", Unit: "bytes"}, max(h.rate, 1)
	d.p.DropFrames, d.p.KeepFrames = allocatorFrames, keptRuntimeFrames
	objects, space := "objects", "space" // names that viewers know
	// Allocations come before the blocks in use, since viewers show the last type.
	if h.allocated {
		d.p.Values = []stacks.ValueType{{Name: "alloc_objects", Unit: "count"}, {Name: "alloc_space", Unit: "bytes"}}
		objects, space = "inuse_objects", "inuse_space"
	}
	d.p.Values = append(d.p.Values, stacks.ValueType{Name: objects, Unit: "count"}, stacks.ValueType{Name: space, Unit: "bytes"})
	d.p.Default = space
	var addrs []uint64
	mapped := false
	for len(data) > 0 && !mapped {
		if line, data = nextLine(data); bytes.Contains(line, mapsMark) {
			mapped = true
			break
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		s, rest, ok := parseHeapCounts(line)
		if ok {
			addrs, ok = parseAddresses(addrs[:0], rest)
		}
		if !ok {
			if len(data) == 0 {
				r.note("the profile is cut off within its last line; the stacks before it were read")
				break
			}
			return nil, fmt.Errorf("a line is not a stack: %.80q", line)
		}
		for i := range addrs {
			addrs[i]-- // from the return address into the call
		}
		var values [4]int64
		n := 0
		if h.allocated {
			values[0], values[1] = unsample(s[2], s[3], h.rate)
			n = 2
		}
		values[n], values[n+1] = unsample(s[0], s[1], h.rate)
		if err := d.add(addrs, values[:n+2], blockSize(s[:])...); err != nil {
			return nil, err
		}
	}
	if !mapped {
		r.note("the profile has no list of mapped files (MAPPED_LIBRARIES), so it may be cut off, and its addresses cannot be resolved")
	}
	return d, d.finish(data)
}

// blockSize returns a label with the mean size of a sample's blocks in use. If no block is in
// use, the label has the mean size of all allocations. Without allocations there is no label.
func blockSize(counts []int64) []stacks.Label {
	for i := 0; i < len(counts); i += 2 {
		if n, size := counts[i], counts[i+1]; n != 0 {
			return []stacks.Label{{Key: "bytes", Number: size / n, Unit: "bytes"}}
		}
	}
	return nil
}

// A heapHeader is the first line of a heap profile.
type heapHeader struct {
	rate      int64 // mean bytes between two samples; with 0 or 1, all allocations were recorded
	allocated bool  // all allocations are counted, and differ from the blocks in use
}

func parseHeapHeader(line []byte) (h heapHeader, ok bool) {
	s, kind, ok := parseHeapCounts(line[len(heapMark):])
	if !ok {
		return h, false
	}
	name, number, _ := bytes.Cut(bytes.TrimSpace(kind), []byte{'/'})
	h.allocated = (s[2] != s[0] && s[2] != 0) || (s[3] != s[1] && s[3] != 0)
	switch string(name) {
	case "heapprofile", "growthz", "growth", "fragmentationz", "fragmentation":
		return h, true
	case "heap_v2", "heapz_v2", "heap":
		h.rate, ok = parseCount(number)
		if string(name) == "heap" { // Go writes twice its rate
			h.rate /= 2
		}
		return h, ok && h.rate >= 0
	}
	return h, false
}

// parseHeapCounts parses the four numbers of a line, and returns the text after the @.
func parseHeapCounts(line []byte) (s [4]int64, rest []byte, ok bool) {
	s, rest, ok = parseCounts(line)
	if !ok {
		return s, nil, false
	}
	rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest, " \t"), []byte{'@'})
	return s, rest, ok
}

// parseCounts parses four numbers such as 13: 6688 [13: 6688], and returns the text after them.
func parseCounts(counts []byte) (s [4]int64, rest []byte, ok bool) {
	for i, end := range []string{":", "[", ":", "]"} {
		var word []byte
		if word, counts, ok = bytes.Cut(counts, []byte(end)); !ok {
			return s, nil, false
		}
		if s[i], ok = parseCount(bytes.TrimSpace(word)); !ok {
			return s, nil, false
		}
	}
	return s, counts, true
}

func parseCount(word []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(word), 10, 64)
	return n, err == nil
}

// parseAddresses appends the addresses of a line to dst.
func parseAddresses(dst []uint64, words []byte) ([]uint64, bool) {
	for word := range bytes.FieldsSeq(words) {
		addr, ok := report.Hex(bytes.TrimPrefix(word, []byte("0x")))
		if !ok || len(dst) == maxDepth {
			return dst, false
		}
		dst = append(dst, addr)
	}
	return dst, true
}

// nextLine returns the first line of data, without blanks around it, and the rest.
func nextLine(data []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(data, []byte{'\n'})
	return bytes.TrimSpace(line), rest
}

// The CPU profile of gperftools is a list of words, of 4 or 8 bytes in the order of the machine:
//
//	0, 3, 0, microseconds between samples, 0
//	number of samples, number of addresses, addresses with the leaf first
//	…
//	0, 1, 0
//
// The list of mapped files follows as text. The first address of a stack is the program counter at
// a signal; the others are return addresses.

// words reads a list of words.
type words struct {
	order binary.ByteOrder
	size  int // 4 or 8 bytes
	data  []byte
}

// next returns the next word, or false at the end.
func (w *words) next() (uint64, bool) {
	if len(w.data) < w.size {
		return 0, false
	}
	var n uint64
	if w.size == 4 {
		n = uint64(w.order.Uint32(w.data))
	} else {
		n = w.order.Uint64(w.data)
	}
	w.data = w.data[w.size:]
	return n, true
}

// cpuHeader reads the header of a CPU profile, and returns the period in microseconds.
func cpuHeader(data []byte) (w words, period uint64, ok bool) {
	for _, w = range []words{{binary.LittleEndian, 8, data}, {binary.BigEndian, 8, data}, {binary.LittleEndian, 4, data}, {binary.BigEndian, 4, data}} {
		var head [5]uint64
		ok = true
		for i := range head {
			if head[i], ok = w.next(); !ok {
				break
			}
		}
		if period = head[3]; ok && head[0] == 0 && head[1] == 3 && head[2] == 0 && period > 0 && period < 1<<40 && head[4] == 0 {
			return w, period, true
		}
	}
	return w, 0, false
}

func isCPU(head []byte) bool {
	_, _, ok := cpuHeader(head)
	return ok
}

func readCPU(data []byte, r *resolver) (document, error) {
	w, period, ok := cpuHeader(data)
	if !ok {
		return nil, errors.New("not the format's header")
	}
	d := newRawStacks(r.m)
	nanos := int64(period) * 1000
	d.p.PeriodType, d.p.Period = stacks.ValueType{Name: "cpu", Unit: "nanoseconds"}, nanos
	d.p.Values = []stacks.ValueType{{Name: "samples", Unit: "count"}, d.p.PeriodType}
	d.p.Default = d.p.PeriodType.Name
	d.p.DropFrames = profilerFrames
	cut := true
	var addrs []uint64
	for {
		number, ok1 := w.next()
		depth, ok2 := w.next()
		if !ok1 || !ok2 {
			break
		}
		if depth > uint64(len(w.data)/w.size) {
			break
		}
		if depth == 0 || depth > maxDepth {
			return nil, fmt.Errorf("damaged: a stack has %d addresses, not 1 to %d", depth, maxDepth)
		}
		addrs = addrs[:0]
		for range depth {
			addr, _ := w.next()
			addrs = append(addrs, addr)
		}
		if number == 0 && depth == 1 && addrs[0] == 0 {
			cut = false
			break
		}
		for i := range addrs[1:] {
			addrs[i+1]--
		}
		if len(addrs) > 1 && addrs[0] == addrs[1]+1 { // repeated leaf: from signal and stack
			addrs = append(addrs[:1], addrs[2:]...)
		}
		count := int64(min(number, uint64(1)<<40))
		if err := d.add(addrs, []int64{count, stacks.Times(count, nanos)}); err != nil {
			return nil, err
		}
	}
	if cut {
		r.note("the profile is cut off: its end mark and its list of mapped files are missing; the stacks before it were read")
		w.data = nil
	}
	return d, d.finish(w.data)
}
