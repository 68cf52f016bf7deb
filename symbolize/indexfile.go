package symbolize

import (
	"context"
	"errors"
	"fmt"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// indexFile makes the index of the ELF file at path, unless a good one exists and o.Again is not
// set. For a file that cannot have an index, the error wraps access.ErrNotIndexed and has the
// reason.
func indexFile(ctx context.Context, path string, o access.IndexOptions) (done access.Indexed, err error) {
	file, err := buildid.OpenRegular(path, "")
	if err != nil {
		return done, err
	}
	defer file.Close()
	err = guard(func() error {
		obj, err := object.Open(file, file.Size(), file.OS())
		if err != nil {
			return err
		}
		defer obj.Close()
		id, err := buildid.Read(file, file.Size())
		if err != nil {
			return fmt.Errorf("%w: %w", access.ErrNotIndexed, err)
		}
		done.ID = id.String()
		source, ok := sourceOf(file, id)
		if !ok {
			return fmt.Errorf("%w: not a regular file", access.ErrNotIndexed)
		}
		dir := symindex.Dir{Path: o.Dir, Budget: o.Budget}
		if !o.Again {
			if x, err := dir.Open(source); err == nil {
				defer x.Close()
				done.Found, done.Size = true, x.Size()
				return x.Check()
			}
		}
		dw, err := dwarf.New(obj, dwarf.Links{})
		if errors.Is(err, dwarf.ErrNoDebugInfo) {
			return fmt.Errorf("%w: %w", access.ErrNotIndexed, err)
		}
		if err != nil {
			return err
		}
		obj.Inflate(lookupSections...)
		x := newIndexer(obj, dw)
		if err := x.plan(); err != nil {
			return notIndexed(err)
		}
		x.workers, x.done = max(1, o.Workers), o.Progress
		done.Units = len(x.units)
		done.Size, err = x.put(ctx, dir, source)
		return notIndexed(err)
	})
	return done, err
}

func notIndexed(err error) error {
	if errors.Is(err, errLaterPart) || errors.Is(err, dwarf.ErrNotWhole) {
		return fmt.Errorf("%w: %w", access.ErrNotIndexed, err)
	}
	return err
}

// put writes the index of source and renames it into place in dir.
func (x *indexer) put(ctx context.Context, dir symindex.Dir, source symindex.Source) (size int64, err error) {
	p, err := dir.Create(source)
	if err != nil {
		return 0, err
	}
	defer p.Abort()
	if err := x.write(ctx, p.Writer); err != nil {
		return 0, err
	}
	return p.Commit()
}

// sourceOf returns the state of file that its index must match. It returns false if the file cannot
// have an index.
func sourceOf(file *buildid.File, id buildid.ID) (symindex.Source, bool) {
	if id.IsZero() {
		return symindex.Source{}, false
	}
	modified, ok := contentsOf(file).Modified()
	return symindex.Source{ID: id.Bytes(), Size: file.Size(), ModTime: modified}, ok
}
