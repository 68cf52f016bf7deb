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
	err = Examine(ctx, s, id, name, func(obj *object.File) {
		to = Layout{obj.Segments(), obj.Type == elf.ET_EXEC}
	})
	return to, err
}

// Examine calls examine with the file that answers for the module with this build ID or name. It
// waits for the file like Code. examine must not call s, and must not keep the file. A separate
// debug file has no code.
func Examine(ctx context.Context, s *Symbolizer, id buildid.ID, name string, examine func(*object.File)) error {
	q, err := s.acquire(ctx, Location{ID: id, Name: name})
	if err != nil {
		return err
	}
	panicked := true
	defer func() {
		if panicked { // the caller may go on, and ask again
			q.end(nil)
		}
	}()
	if obj := q.m.obj; obj != nil {
		err = object.Guard(func() { examine(obj) })
	}
	panicked = false
	return q.end(err)
}
