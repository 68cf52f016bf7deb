package collector

import "github.com/symfilter/symfilter/internal/marks"

const (
	noMark = -1 // the offset of a mark in a text without a mark

	// Short texts are collected and searched together when they have scanMost bytes. A text of at
	// least scanAlone bytes is searched alone. A search takes about 100 ns, and 5 ns more for every
	// 100 bytes.
	scanMost  = 32 << 10
	scanAlone = 2 << 10
)

// A scan finds the first mark in each text of a batch. At a mark an element may begin, or a frame
// of a raw backtrace may be near.
type scan struct {
	marks []int32 // for each text, the offset of its first mark, or noMark
	found bool    // one of the texts has a mark

	lines []byte // texts not yet searched, a line end after each
	ends  []int32
	first int // index of the first text
}

func (s *scan) add(text []byte) {
	if len(text) >= scanAlone {
		s.search()
		at := int32(noMark)
		if i, _ := marks.Find(text); i < len(text) {
			at, s.found = int32(i), true
		}
		s.marks = append(s.marks, at)
		s.first = len(s.marks)
		return
	}
	s.marks = append(s.marks, noMark)
	s.lines = append(append(s.lines, text...), '\n')
	s.ends = append(s.ends, int32(len(s.lines)))
	if len(s.lines) >= scanMost {
		s.search()
	}
}

// search finds the marks of the texts that were added.
func (s *scan) search() {
	for i, from := 0, 0; from < len(s.lines); {
		n, _ := marks.Find(s.lines[from:])
		at := from + n
		if at >= len(s.lines) {
			break
		}
		for int(s.ends[i]) <= at {
			i++
		}
		if i > 0 {
			from = int(s.ends[i-1])
		} else {
			from = 0
		}
		s.marks[s.first+i], s.found = int32(at-from), true
		from = int(s.ends[i])
		i++
	}
	s.lines, s.ends, s.first = s.lines[:0], s.ends[:0], len(s.marks)
}

func (s *scan) forget() {
	*s = scan{marks: s.marks[:0], lines: s.lines[:0], ends: s.ends[:0]}
}
