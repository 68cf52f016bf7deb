package follow

import (
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// next opens the next file: the oldest unread sibling younger than the file in before, or else the
// file with the followed name. It returns nil if no such file exists, or the search is pending. It
// returns the error of discover.
func (s *source) next(before lineage.Predecessor) (*generation, error) {
	err := s.discover(before)
	if len(s.ahead) == 0 || s.search.pending {
		return nil, err
	}
	g := s.ahead[0]
	s.ahead = slices.Delete(s.ahead, 0, 1)
	return g, err
}

// discover opens the unread files younger than the file in before, and the file with the followed
// name. It appends them to s.ahead, the oldest first. Open files may be renamed or removed. Closed
// rotated files with late lines are reopened and appended to s.old. If the search must be repeated,
// discover sets s.search.pending. The error is the reason why the file with the followed name
// cannot be read.
func (s *source) discover(before lineage.Predecessor) error {
	for try := 0; ; try++ {
		g, err := s.f.disk.openGeneration(s.path)
		beside, later := s.search.siblings(s.search.family)
		if later != nil { // g stays open until the siblings can be searched
			s.search.pending, s.attention = true, true
			s.wait(s.fresh(g))
			return err
		}
		unseen, pending := s.search.lineage.Successors(s.f.disk.ctx, opener{&s.search}, beside.Family, before, g.content(), contentsOf(s.held()), contentsOf(s.old))
		// a file that was renamed during the search may be missing in unseen
		if !s.search.settled(g, beside) {
			for _, u := range unseen {
				u.Close()
			}
			if closeAll([]*generation{g}); try < maxTries {
				continue
			}
			s.search.pending, s.attention = true, true
			return nil
		}
		// while a search is pending, the next one must see changes of the files
		if s.search.pending = pending; !pending {
			s.search.family = beside
		}
		s.rename(beside.Files)
		s.rename(beside.Archives)
		claimed, late := s.search.lineage.Take(opener{&s.search}, beside.Family, g.content(), unseen)
		for _, l := range started(late) {
			l.out = s.out
			s.old = append(s.old, l)
		}
		for _, u := range started(claimed) {
			s.wait(u)
		}
		s.search.notifyOutdated()
		s.search.sortAhead(&s.files, g, beside)
		s.wait(s.fresh(g))
		s.search.resolve(g, s.held())
		return err
	}
}

// wait appends g to s.ahead, the unread files, unless g is nil.
func (s *source) wait(g *generation) {
	if g != nil {
		s.ahead = append(s.ahead, g)
		s.arrivals.take(g.id)
		if s.out != nil {
			s.arrivals.changed = time.Now()
		}
	}
}

// fresh returns g, the file with the followed name, if it is unread. Otherwise it closes g and
// returns nil. If an open rotated file has the name again, fresh closes g and returns that file.
func (s *source) fresh(g *generation) *generation {
	if g == nil {
		return nil
	}
	for i, old := range s.held() {
		if old.id != g.id {
			continue
		}
		g.Close()
		old.name = s.path
		if i >= len(s.old) { // the file still has the followed name, or has it again
			return nil
		}
		s.old = slices.Delete(s.old, i, i+1)
		return old
	}
	from, read := s.search.lineage.Known(g)
	if read && g.seek(from) != nil { // the record of g stays: the next look continues at its offset
		g.Close()
		s.attention = true
		return nil
	}
	if !s.search.claim(g) {
		return nil
	}
	g.hole = g.id == s.truncatedID
	return g
}
