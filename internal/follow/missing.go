package follow

import (
	"context"
	"fmt"

	"github.com/symfilter/symfilter/internal/lineage"
)

// moved searches for the current file g, which was closed and is no longer at its path. After
// maxMissing failed searches, it reports a loss, and drops g. Errors come from a sink or from ctx.
func (s *source) moved(ctx context.Context, g *generation) error {
	err := s.discover(lineage.Predecessor{Content: g})
	if !s.search.pending {
		s.missing++
	}
	if s.missing <= maxMissing {
		s.attention = true
		return s.failed(ctx, g, err)
	}
	s.missing = 0
	s.lose(Event{Message: fmt.Sprintf("was closed, since too many files are followed (see ulimit -n), and then removed; the bytes after the first %d are lost", g.look)})
	s.retire(g)
	return nil
}
