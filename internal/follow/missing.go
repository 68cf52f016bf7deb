package follow

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// hurries reports whether new files appear quickly and no events announce them.
func (s *source) hurries() bool {
	return s.silentFS && s.out != nil && time.Since(s.changed) < hurryTime
}

// makeRoom closes the files of the source if too many are open. Removed files stay open, since they
// could not be found again.
func (s *source) makeRoom() {
	if !s.f.disk.crowded() {
		return
	}
	for _, g := range s.held() {
		// else it would be unpacked again
		if !g.unlinked && (g.contents == nil || g.contents.r == nil) {
			g.Close()
		}
	}
}

// countMissed reports the number of files that had the name for so short a time that they could not
// be opened. It waits for eventDelay first: events of opened files may be late, and files may be
// opened before their events arrive.
func (s *source) countMissed() {
	missed := s.created.Load() - s.taken
	if missed > 0 && s.isUnopened() {
		missed--
	}
	switch {
	case missed == 0 || len(s.ahead) > 0 || s.gaps:
		s.noticed = time.Time{}
	case s.noticed.IsZero():
		s.noticed = time.Now()
		s.attention = true
	case time.Since(s.noticed) < eventDelay:
		s.attention = true
	default:
		s.taken += missed
		s.noticed = time.Time{}
		switch {
		case missed <= 0 || s.out == nil:
		case missed == 1:
			s.lose(Event{Message: "a file with this name was gone before it could be opened; its lines are lost"})
		default:
			s.lose(Event{Message: fmt.Sprintf("%d files with this name were gone before they could be opened; their lines are lost", missed)})
		}
	}
}

// isUnopened reports whether the name leads to a file that the source does not read, because it
// cannot be opened now or is another source's: it is not lost.
func (s *source) isUnopened() bool {
	id, info, err := lookAt(s.path)
	return err == nil && info.Mode().IsRegular() && !slices.ContainsFunc(s.held(), func(g *generation) bool { return g.id == id })
}

// moved searches for the current file, which was closed and is no longer at its path. It returns
// only errors of a sink.
func (s *source) moved(ctx context.Context, g *generation) error {
	err := s.discover(lineage.Predecessor{Content: g})
	if !s.gaps {
		s.missing++
	}
	if s.missing <= maxMissing {
		s.attention = true
		return s.failed(ctx, g, err)
	}
	s.missing = 0
	s.lose(Event{Message: fmt.Sprintf("was removed while it was closed because too many files are read (see ulimit -n); its bytes after the first %d are lost", g.look)})
	s.retire(g)
	return nil
}
