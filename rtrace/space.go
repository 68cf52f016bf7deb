package rtrace

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
)

// A mapping is an address range of the process with a mapped file.
type mapping struct {
	from, to uint64 // the range is [from, to)
	path     string
	file     *file  // nil if path is not a file, such as [vdso]
	placed   bool   // the mapped part of the file is known
	rel      uint64 // link-time address of from
	since    int    // the first epoch of the mapping
	until    int    // the last epoch of the mapping; 0 if it is still present
}

// bias returns the load bias: addresses in the process minus addresses in the file.
func (m *mapping) bias() uint64 { return m.from - m.rel }

// A space is the address space of the process in a report.
type space struct {
	diagnostics *report.Once
	maps        []*mapping // present mappings, sorted by address
	gone        []*mapping // the last replaced mappings
	objects     *report.Objects
	files       map[string]*file
	last        *mapping // the last mapping that find returned
	epoch       int      // from 1; increased by each replacement
}

func newSpace(o *Options, t *report.Once) *space {
	return &space{diagnostics: t, objects: report.NewObjects(o.report(), maxFiles, false), files: make(map[string]*file), epoch: 1}
}

// reset removes all mappings for a new process. It keeps the opened files.
func (s *space) reset() {
	for _, m := range s.maps {
		s.retire(m)
	}
	s.maps, s.last = nil, nil
	s.epoch++
	for _, f := range s.files {
		f.shown = false
	}
}

// retire keeps a replaced mapping, for frames of earlier epochs.
func (s *space) retire(m *mapping) {
	m.until = s.epoch
	if len(s.gone) >= maxGone {
		s.gone = slices.Delete(s.gone, 0, maxGone/2)
	}
	s.gone = append(s.gone, m)
}

// addMapping adds a map of the report, and returns the mapping. It returns nil if the mapping
// exists, or if the process has maxMaps mappings.
func (s *space) addMapping(path string, from, to uint64) *mapping {
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
	if known && !m.placed { // a piece of a mapping that was joined before
		return nil
	}
	first, end := s.after(m.from), 0
	for end = first; end < len(s.maps) && s.maps[end].from < m.to; end++ {
	}
	replaced := slices.ContainsFunc(s.maps[first:end], func(old *mapping) bool {
		return old.path != path || old.placed && m.placed && old.bias() != m.bias()
	})
	for _, old := range s.maps[first:end] {
		s.retire(old)
	}
	if replaced {
		s.epoch++
	}
	s.last = nil
	if len(s.maps)-(end-first)+3 > maxMaps {
		s.diagnostics.Report(fmt.Sprintf("more than %d files are mapped at once: frames in further files remain unresolved", maxMaps))
		s.maps = slices.Delete(s.maps, first, end)
		return nil
	}
	m.since = s.epoch
	now := []*mapping{m}
	if first < end { // parts of the first and the last mapping may remain
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

// join finds the part of the file that m maps. If no part has the size of m, join merges m with its
// neighbours: the kernel splits a segment's mapping if the process changes the protection of a
// part.
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

// continues reports whether the i-th mapping may be another piece of the same segment as m.
func (s *space) continues(i int, m *mapping) bool {
	return i < len(s.maps) && s.maps[i].path == m.path && !s.maps[i].placed
}

// place sets the link-time address of a mapping if the size of the mapping fits a part of its file.
// Otherwise it returns false.
func (s *space) place(m *mapping) bool {
	fits := m.file.fits(m.from, m.to)
	if len(fits) == 0 {
		return false
	}
	m.placed, m.rel = true, fits[0]
	// several segments fit: take the load bias of the file's other mappings
	if len(fits) > 1 {
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

// after returns the index of the first mapping that ends after addr.
func (s *space) after(addr uint64) int {
	return sort.Search(len(s.maps), func(i int) bool { return s.maps[i].to > addr })
}

// find returns the mapping that contained addr in an epoch, or nil. Epoch 0 is the present.
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

// findThen returns the mapping that contained addr in an earlier epoch.
func (s *space) findThen(addr uint64, epoch int) *mapping {
	// newest first: in one epoch, both a piece and the joined mapping may contain addr
	for _, m := range slices.Backward(s.gone) {
		if addr-m.from < m.to-m.from && m.since <= epoch && epoch <= m.until {
			return m
		}
	}
	if i := s.after(addr); i < len(s.maps) && s.maps[i].from <= addr && s.maps[i].since <= epoch {
		return s.maps[i]
	}
	return nil
}

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

// A site is the mapping that contains a frame's address, and the address in the mapped file.
type site struct {
	at  *mapping // nil if no mapping contains the address
	rel uint64   // address to look up, in the file
}

// site returns the site of a frame. The site's address is one less than the frame's return address,
// so that the address is in the call.
func (s *space) site(rec *record) site {
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
		s.diagnostics.Report(m.file.Fault().Error() + "; frames in this file remain unresolved")
		return site{at: m}
	case !m.placed:
		code, image := m.file.sizes()
		s.diagnostics.Report(fmt.Sprintf("%s: not the file that ran: %d bytes were mapped, but the code has %d and the whole image %d; frames in this file remain unresolved", m.file.Path, m.to-m.from, code, image))
		return site{at: m}
	}
	return site{m, rec.Addr - 1 - m.bias()}
}

func (s site) usable() bool { return s.at != nil && s.at.placed }
