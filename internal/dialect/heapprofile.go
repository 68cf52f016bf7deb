package dialect

import "bytes"

// A heap profile by gperftools or jemalloc is a list of allocations with the addresses of their
// calls, followed by the maps of the process:
//
//	heap profile:      3:     3000 [     3:     3000] @ heapprofile
//	     1:     1000 [     1:     1000] @ 0x55d0c0a013cb 0x7f31c2a01154
//
//	MAPPED_LIBRARIES:
//
// Other programs read such profiles, so the lines stay unchanged, and the answers follow the maps.
// All addresses are return addresses.
var heap = Dialect{
	Name: "heap", Who: "heap profiles of gperftools and jemalloc",
	Needs:  "the maps at the end of the profile",
	Sample: "     1:     1000 [     1:     1000] @ 0x55d0c0a013cb 0x7f31c2a01154",
}

const maxHeapFrames = 256 // addresses in a line; gperftools has at most 32, jemalloc 128

func matchHeap(r *Reader, l *Line, at int) bool {
	b := l.Text
	if blanksBefore(b, at) == 0 || b[blanksBefore(b, at)-1] != '@' {
		return false
	}
	for n := 0; at < len(b); n++ {
		addr, end, ok := prefixedHex(b, at)
		if !ok || n == maxHeapFrames || end < len(b) && b[end] != ' ' {
			return false
		}
		f := l.frame()
		f.Kind, f.Value, f.Addr, f.Call, f.Footnote = Runtime, addr, addr, Return, true
		at = blanksAfter(b, end)
	}
	return len(bytes.TrimRight(b, " \t")) > 0
}
