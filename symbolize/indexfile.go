package symbolize

import (
	"context"
	"errors"
	"fmt"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dwarf"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/symindex"
)

// IndexOptions configure IndexFile. Only Dir must be set.
type IndexOptions struct {
	Dir      string                 // directory of indexes, as Options.IndexDir
	Budget   int64                  // bytes of all indexes in Dir; 0: 4 GiB
	Workers  int                    // goroutines that walk over one file; 0: 1
	Again    bool                   // replaces even a good index
	Progress func(units, total int) // called repeatedly with the units done and all; may be nil
}

// An Indexed describes an index that was made or found.
type Indexed struct {
	ID    buildid.ID
	Size  int64 // bytes of the index
	Units int   // units of the file
	Found bool  // a good index existed, and none was made
}

// ErrNotIndexed reports that a file cannot have an index: it has no build ID, no debug information,
// or parts of its debug information in other files.
var ErrNotIndexed = errors.New("not indexed")

// IndexFile makes the index of the ELF file at path. For a file that cannot have one, the error
// wraps ErrNotIndexed and gives the reason.
func IndexFile(ctx context.Context, path string, o IndexOptions) (done Indexed, err error) {
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
		if done.ID, err = buildid.Read(file, file.Size()); err != nil {
			return fmt.Errorf("%w: %w", ErrNotIndexed, err)
		}
		source, ok := sourceOf(file, done.ID)
		if !ok {
			return fmt.Errorf("%w: not a regular file", ErrNotIndexed)
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
			return fmt.Errorf("%w: %w", ErrNotIndexed, err)
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
		return fmt.Errorf("%w: %w", ErrNotIndexed, err)
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

// sourceOf returns the state of file that its index must match; ok is false if it cannot have an
// index.
func sourceOf(file *buildid.File, id buildid.ID) (symindex.Source, bool) {
	if id.IsZero() {
		return symindex.Source{}, false
	}
	modified, ok := contentsOf(file).Modified()
	return symindex.Source{ID: id.Bytes(), Size: file.Size(), ModTime: modified}, ok
}
