package asis

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A ByID finds the debug file of a program by path: it reads the program's build ID and passes it
// to Finder. Queries with a build ID are passed on unchanged.
type ByID struct{ Finder symbolize.Finder }

// Find reads the build ID of the file at q.Name, unless q has one, and calls Finder.
func (f ByID) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	if q.ID.IsZero() {
		if !filepath.IsAbs(q.Name) {
			return nil, fs.ErrNotExist
		}
		file, err := buildid.OpenRegular(q.Name, "the question")
		if err != nil {
			return nil, err
		}
		q.ID, err = buildid.Read(file, file.Size())
		file.Close()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
		}
	}
	return f.Finder.Find(ctx, q, note)
}
