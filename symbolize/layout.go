package symbolize

import (
	"context"
	"debug/elf"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// A Layout is how the file of a module is loaded.
type Layout struct {
	Segments []object.Segment // all program headers; those of a separate debug file have no bytes
	Fixed    bool             // its load address is its link address (ET_EXEC)
}

// LayoutOf returns the program headers of the module with this build ID or name, from the file that
// answers for it. It waits like Code. The caller must not change the result.
func LayoutOf(ctx context.Context, s *Symbolizer, id buildid.ID, name string) (to Layout, err error) {
	q, err := s.acquire(ctx, Location{ID: id, Name: name})
	if err != nil {
		return to, err
	}
	if obj := q.m.obj; obj != nil {
		to = Layout{obj.Segments(), obj.Type == elf.ET_EXEC}
	}
	q.end(nil)
	return to, nil
}
