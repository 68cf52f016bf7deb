package follow

import (
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// copiesOf returns the copies of g's old contents after a truncation: see [lineage.Log.Copies].
// continued reports whether a copy has all bytes that were read. The copies are open, claimed and
// unread, the oldest first. read is the time at which g was last read to its end. held has all open
// files, and rotated has the open files before the current file. The only error is errLater.
func (s *search) copiesOf(g *generation, read time.Time, held, rotated []*generation) (copies []*generation, continued bool, err error) {
	for try := 0; ; try++ {
		beside, err := s.steady()
		if err != nil {
			s.attention = true
			return nil, false, err
		}
		now, err := s.f.disk.openGeneration(s.path)
		if err == nil {
			defer now.Close()
		}
		steps, again, err := s.lineage.Copies(s.f.disk.ctx, opener{s}, beside.Family, lineage.Truncated{Content: g, Read: read}, now.content(), contentsOf(held), contentsOf(rotated))
		if err != nil {
			return nil, false, errLater
		}
		s.family = beside
		continued = continued || again
		// a copy that was compressed during the search may be missing
		if s.f.o.Unpack == nil || try == maxTries || s.isCurrent(beside) {
			return started(steps), continued, nil
		}
		s.lineage.Discard(steps)
	}
}
