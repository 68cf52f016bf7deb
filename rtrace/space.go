package rtrace

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/symfilter/symfilter/report"
)

// A mapping is where the code of a file was in the address space.
type mapping struct {
	from, to uint64 // to is not in it
	path     string
	file     *file  // nil: it is none, as [vdso]
	placed   bool   // it is known which part of the file it is
	rel      uint64 // the link-time address of from
	since    int    // the epochs in which it holds
	until    int    // the last of them; 0: it still does
}

// bias is the difference between addresses in the process and in the file.
func (m *mapping) bias() uint64 { return m.from - m.rel }

// A space is the address space of the process that a report is of.
type space struct {
	teller  *teller
	maps    []*mapping // those that hold, by address
	gone    []*mapping // those that others replaced, as far as they are kept
	objects *report.Objects
	files   map[string]*file
	last    *mapping // that was asked for
	epoch   int      // begins at 1; each replacement begins another
}

func newSpace(o *Options, t *teller) *space {
	return &space{teller: t, objects: report.NewObjects(&o.Options, maxFiles, false), files: make(map[string]*file), epoch: 1}
}

// reset forgets the mappings: another process begins. What is known of files
// stays.
func (s *space) reset() {
	for _, m := range s.maps {
		s.bury(m)
	}
	s.maps, s.last = nil, nil
	s.epoch++
	for _, f := range s.files {
		f.shown = false
	}
}

// bury keeps a mapping that holds no longer, for frames of before.
func (s *space) bury(m *mapping) {
	m.until = s.epoch
	if len(s.gone) >= maxGone {
		s.gone = slices.Delete(s.gone, 0, maxGone/2)
	}
	s.gone = append(s.gone, m)
}

// add takes a map of the report, and returns the mapping; nil if it is known
// already, or there are too many.
func (s *space) add(path string, from, to uint64) *mapping {
	m := &mapping{from: from, to: to, path: path}
	if strings.HasPrefix(path, "/") {
		m.file = s.file(path)
	}
	known := false
	if i := s.after(from); i < len(s.maps) {
		old := s.maps[i]
		if old.path == path && old.from == from && old.to == to {
			return nil
		}
		known = old.path == path && old.placed && old.from <= from && to <= old.to
	}
	s.join(m)
	if known && !m.placed { // a piece of what was joined before
		return nil
	}
	first, end := s.after(m.from), 0
	for end = first; end < len(s.maps) && s.maps[end].from < m.to; end++ {
	}
	replaced := slices.ContainsFunc(s.maps[first:end], func(old *mapping) bool {
		return old.path != path || old.placed && m.placed && old.bias() != m.bias()
	})
	for _, old := range s.maps[first:end] {
		s.bury(old)
	}
	if replaced {
		s.epoch++
	}
	s.last = nil
	if len(s.maps)-(end-first)+3 > maxMaps {
		s.teller.tell(fmt.Sprintf("more than %d files are mapped at once: frames in those that follow stay as they are", maxMaps))
		s.maps = slices.Delete(s.maps, first, end)
		return nil
	}
	m.since = s.epoch
	now := []*mapping{m}
	if first < end { // of the first and the last, a part may stay
		if old := s.maps[first]; old.from < m.from {
			head := *old
			head.to, head.since, head.until = m.from, s.epoch, 0
			now = []*mapping{&head, m}
		}
		if old := s.maps[end-1]; old.to > m.to {
			tail := *old
			tail.rel += m.to - old.from
			tail.from, tail.since, tail.until = m.to, s.epoch, 0
			now = append(now, &tail)
		}
	}
	s.maps = slices.Replace(s.maps, first, end, now...)
	return m
}

// join finds out which part of its file a mapping is. One that is none may be
// with its neighbours: a segment of which the process changed the protection is
// mapped in pieces.
func (s *space) join(m *mapping) {
	f := m.file
	if f == nil || f.Err != nil || s.place(m) {
		return
	}
	wide := *m
	for range maxPieces {
		before, behind := s.after(wide.from-1), s.after(wide.to)
		switch {
		case wide.from > 0 && s.continues(before, m) && s.maps[before].to == wide.from:
			wide.from = s.maps[before].from
		case s.continues(behind, m) && s.maps[behind].from == wide.to:
			wide.to = s.maps[behind].to
		default:
			return
		}
		if s.place(&wide) {
			*m = wide
			return
		}
	}
}

// continues reports whether the i-th mapping is another piece of what m is.
func (s *space) continues(i int, m *mapping) bool {
	return i < len(s.maps) && s.maps[i].path == m.path && !s.maps[i].placed
}

// place finds out which segment a mapping is.
func (s *space) place(m *mapping) bool {
	fits := m.file.fits(m.from, m.to)
	if len(fits) == 0 {
		return false
	}
	m.placed, m.rel = true, fits[0]
	if len(fits) > 1 { // of several that are as large, the one that lies where others of the file do
		at := s.after(m.from)
		for _, old := range s.maps[max(0, at-maxPieces):min(len(s.maps), at+maxPieces)] {
			for _, rel := range fits {
				if old.file == m.file && old.placed && old.bias() == m.from-rel && old.rel != rel {
					m.rel = rel
				}
			}
		}
	}
	return true
}

// after returns the index of the first mapping that ends behind addr.
func (s *space) after(addr uint64) int {
	return sort.Search(len(s.maps), func(i int) bool { return s.maps[i].to > addr })
}

// find returns the mapping that has addr in an epoch; 0 is the present one.
func (s *space) find(addr uint64, epoch int) *mapping {
	if epoch != 0 && epoch != s.epoch {
		return s.findThen(addr, epoch)
	}
	if m := s.last; m != nil && addr-m.from < m.to-m.from {
		return m
	}
	if i := s.after(addr); i < len(s.maps) && s.maps[i].from <= addr {
		s.last = s.maps[i]
		return s.last
	}
	return nil
}

// findThen is find for an epoch that is over.
func (s *space) findThen(addr uint64, epoch int) *mapping {
	for _, m := range slices.Backward(s.gone) { // the last that held then: a piece may have become a whole
		if addr-m.from < m.to-m.from && m.since <= epoch && epoch <= m.until {
			return m
		}
	}
	if i := s.after(addr); i < len(s.maps) && s.maps[i].from <= addr && s.maps[i].since <= epoch {
		return s.maps[i]
	}
	return nil
}

// file returns the file that a report calls name.
func (s *space) file(name string) *file {
	f := s.files[name]
	if f == nil {
		f = newFile(s.objects.Named(name))
		if f.Err != report.ErrTooMany {
			s.files[f.Name] = f
		}
	}
	return f
}

// A site is where a frame is.
type site struct {
	at  *mapping // nil: not known
	rel uint64   // what is looked up, in its file
}

// site returns where a frame is. A return address is behind the call: it is
// looked up one byte before.
func (s *space) site(rec *Record) site {
	if rec.Addr == 0 {
		return site{}
	}
	m := s.find(rec.Addr-1, rec.epoch)
	switch {
	case m == nil:
		return site{}
	case m.file == nil:
		return site{at: m}
	case m.file.Err != nil:
		s.teller.tell(m.file.Fault().Error() + "; its frames stay as they are")
		return site{at: m}
	case !m.placed:
		s.teller.tell(fmt.Sprintf("%s: this is not the file that ran: %d bytes of it were mapped as code, and it has %d; its frames stay as they are", m.file.Path, m.to-m.from, m.file.size()))
		return site{at: m}
	}
	return site{m, rec.Addr - 1 - m.bias()}
}

// usable reports whether the place in the file is known.
func (s site) usable() bool { return s.at != nil && s.at.placed }
