package symbolize

import (
	"context"
	"debug/elf"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// layout returns all program headers of the file that answers for the module with this build ID or
// name. fixed reports whether the module's load address is its link address (ET_EXEC). The segments
// of a separate debug file have no bytes. layout waits for the file as code does. The caller must
// not change the segments.
func (s *Symbolizer) layout(ctx context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error) {
	err = s.examine(ctx, id, name, func(obj *object.File) {
		segments, fixed = obj.Segments(), obj.Type == elf.ET_EXEC
	})
	return segments, fixed, err
}

// examine calls do with the file that answers for the module with this build ID or name. It waits
// for the file as code does. do must not call s, and must not keep the file. A separate debug file
// has no code.
func (s *Symbolizer) examine(ctx context.Context, id buildid.ID, name string, do func(*object.File)) error {
	q, err := s.acquire(ctx, Location{ID: id, Name: name})
	if err != nil {
		return err
	}
	q.examines = true
	panicked := true
	defer func() {
		if panicked { // the caller may recover and ask again
			q.end(nil)
		}
	}()
	if obj := q.m.obj; obj != nil {
		err = object.Guard(func() { do(obj) })
	}
	panicked = false
	return q.end(err)
}
