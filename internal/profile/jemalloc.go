package profile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// The heap profile of jemalloc:
//
//	heap_v2/524288
//	  t*: 13: 6688 [0: 0]
//	  t0: 13: 6688 [0: 0]
//	@ 0x7f337c6a2630 0x7f337c6a2d21
//	  t*: 1: 2066 [0: 0]
//	  t0: 1: 2066 [0: 0]
//
//	MAPPED_LIBRARIES:
//	7f48fa7b9000-7f48fa90e000 r-xp 00022000 fe:00 1234    /usr/lib/libc.so.6
//
// The header has the mean number of bytes between two samples. The lines t* have the sums of all
// threads: number and size of blocks in use, and of all allocations if opt.prof_accum is set.

var jemallocMark = []byte("heap_v2/")

func isJemalloc(head []byte) bool { return bytes.HasPrefix(head, jemallocMark) }

func readJemalloc(data []byte, r *resolver) (document, error) {
	line, data := nextLine(data)
	rate, ok := parseCount(line[len(jemallocMark):])
	if !ok || rate < 1 {
		return nil, fmt.Errorf("the first line has no valid sampling interval: %.80q", line)
	}
	d := newRawStacks(r.m)
	d.p.PeriodType, d.p.Period = stacks.ValueType{Name: "space", Unit: "bytes"}, rate
	d.p.DropFrames = jemallocFrames
	d.p.Default = "inuse_space"
	d.p.Values = []stacks.ValueType{
		{Name: "alloc_objects", Unit: "count"}, {Name: "alloc_space", Unit: "bytes"},
		{Name: "inuse_objects", Unit: "count"}, {Name: "inuse_space", Unit: "bytes"},
	}
	var addrs []uint64
	inStack, counted, mapped, accumulated := false, false, false, false
	for len(data) > 0 && !mapped {
		line, data = nextLine(data)
		switch {
		case len(line) == 0:
		case bytes.HasPrefix(line, mapsMark):
			mapped = true
		case line[0] == '@':
			if addrs, ok = parseAddresses(addrs[:0], line[1:]); !ok {
				return nil, fmt.Errorf("a line is not a stack: %.80q", line)
			}
			for i := range addrs {
				addrs[i]-- // from the return address into the call
			}
			inStack, counted = true, false
		case line[0] == 't' && bytes.IndexByte(line, ':') > 0:
			s, ok := parseThreadCounts(line)
			if !ok && len(data) == 0 {
				break // cut
			}
			if !ok {
				return nil, fmt.Errorf("a line has no counts: %.80q", line)
			}
			if !inStack || counted || line[1] != '*' {
				break // sums of the process, or of a thread
			}
			counted = true
			accumulated = accumulated || s[2] != 0 || s[3] != 0
			var values [4]int64
			values[0], values[1] = unsample(s[2], s[3], rate)
			values[2], values[3] = unsample(s[0], s[1], rate)
			if err := d.add(addrs, values[:], blockSize(s[:])...); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("a line is neither a stack nor its counts: %.80q", line)
		}
	}
	if !mapped {
		r.note("the profile has no list of mapped files (MAPPED_LIBRARIES), so it may be cut off, and its addresses cannot be resolved")
	}
	if err := d.finish(data); err != nil {
		return nil, err
	}
	d.dropAllocator()
	if !accumulated { // jemalloc counts all allocations only on demand
		d.p.Values = d.p.Values[2:]
		for i := range d.p.Samples {
			d.p.Samples[i].Values = d.p.Samples[i].Values[2:]
		}
	}
	return d, nil
}

// parseThreadCounts parses a line such as t*: 13: 6688 [0: 0]. The name of a thread may follow.
func parseThreadCounts(line []byte) (s [4]int64, ok bool) {
	_, counts, _ := bytes.Cut(line, []byte{':'})
	s, _, ok = parseCounts(counts)
	return s, ok
}

// dropAllocator removes the frames of jemalloc's library from the beginning of each stack, but
// never the last frame. The first frame is in the function that takes the backtrace. In a
// stripped library, the other frames up to malloc have no names.
func (r *rawStacks) dropAllocator() {
	inside := func(n uint32) bool {
		m := r.p.Locations[n-1].Mapping
		if m == 0 {
			return false
		}
		file := r.p.Mappings[m-1].File
		return strings.HasPrefix(file[strings.LastIndexByte(file, '/')+1:], "libjemalloc")
	}
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		for len(s.Stack) > 1 && inside(s.Stack[0]) {
			s.Stack = s.Stack[1:]
		}
	}
	r.dropUnused()
}

// dropUnused removes the locations that are in no stack, and renumbers the remaining ones.
func (r *rawStacks) dropUnused() {
	numbers := make([]uint32, len(r.p.Locations))
	var used []stacks.Location
	for i := range r.p.Samples {
		s := r.p.Samples[i].Stack
		for k, n := range s {
			if numbers[n-1] == 0 {
				used = append(used, r.p.Locations[n-1])
				numbers[n-1] = uint32(len(used))
			}
			s[k] = numbers[n-1]
		}
	}
	r.p.Locations = used
}
