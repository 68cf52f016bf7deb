package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/places"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// useless returns the places that the user named and that could not help, each as a part of a
// sentence, except those that were reported at the beginning. roots describe the symbol paths.
// asked reports whether a module has the build ID.
func (c *config) useless(roots []buildid.Root, asked func(buildid.ID) bool) (all []string) {
	for i, p := range c.places() {
		if p.flag == systemPlace || p.flag == imagePlace || p.problem() != nil {
			continue
		}
		var problems []string
		if i < len(roots) { // the places that are searched for build IDs are the first ones
			problems = rootProblems(&roots[i])
			if id := roots[i].ID; len(problems) == 0 && !id.IsZero() && !asked(id) {
				problems = []string{"has build ID " + id.String() + ", which no module here has"}
			}
		} else if err := p.contents(context.Background()); err != nil {
			problems = []string{err.Error()}
		}
		const most = 2 // problems of a place that are listed
		text := strings.Join(problems[:min(len(problems), most)], ", and ")
		if more := len(problems) - most; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		if text != "" {
			all = append(all, p.flag+" "+p.path+" "+text)
		}
	}
	return all
}

// misfiled returns why the file at the path for a module's build ID, in a folder that the user
// named, cannot be used. It is empty if there is no such file.
func (c *config) misfiled(r *symbolize.Report) string {
	hex := r.ID.String()
	if r.Fault != "" || r.Path != "" || len(hex) < 4 {
		return "" // reported on its own, or another file was found, or the path does not exist
	}
	for _, a := range r.Attempts {
		below := func(dir string) bool {
			return strings.HasPrefix(a.Where, filepath.Clean(dir)+string(filepath.Separator))
		}
		if a.Reason != buildid.NoSuchFile && strings.Contains(a.Where, hex[2:]) && slices.ContainsFunc(slices.Concat(c.trees, c.debugDirs), below) {
			return a.Where + ": " + a.Reason
		}
	}
	return ""
}

// rootProblems returns the faults of files and folders below a symbol path.
func rootProblems(r *buildid.Root) (all []string) {
	atAll := false
	for _, f := range r.Faults {
		if filepath.Clean(f.Where) == filepath.Clean(r.Path) {
			atAll = true
			all = append(all, "cannot be used: "+f.Reason)
		} else {
			all = append(all, "holds "+f.Where+", which cannot be used: "+f.Reason)
		}
	}
	switch info, err := os.Stat(r.Path); {
	case r.Files > 0 || atAll:
	case err == nil && !info.IsDir() && !strings.EqualFold(filepath.Ext(r.Path), ".zip"):
		all = append(all, "has no build ID, by which it would be found")
	default:
		all = slices.Insert(all, 0, "holds no ELF file with a build ID")
	}
	return all
}

var (
	errNoTree = errors.New("has no .build-id folder")
	errNoIDs  = errors.New("has no folders of build IDs: neither .build-id nor 00 to ff")
)

// contents returns why no debug file will be found at p, or nil. p has no problem, and is not a
// symbol path.
func (p place) contents(ctx context.Context) error {
	switch p.flag {
	case "--ids-txt":
		if err := buildid.NewIDsFile(p.path).Check(ctx); err != nil {
			return fmt.Errorf("cannot be used: %w", wording.Cause(err))
		}
	case "--build-id-dir", "--debug-file-directory", systemPlace:
		if !places.IsTree(p.path) {
			if p.flag == "--build-id-dir" {
				return errNoIDs
			}
			return errNoTree
		}
		tree := filepath.Join(p.path, ".build-id")
		if _, err := os.Stat(tree + "/."); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("holds %s, which cannot be used: %w", tree, wording.Cause(err))
		}
	}
	return nil
}

// cutOff returns an error with the size of the ELF file at path if its end is missing, or nil.
func cutOff(path string) (err error) {
	file, err := buildid.OpenRegular(path, "")
	if err != nil {
		return wording.Cause(err)
	}
	defer file.Close()
	fault := object.Guard(func() {
		var obj *object.File
		if obj, err = object.Open(file, file.Size(), nil); err != nil {
			return
		}
		defer obj.Close()
		if whole, cut := obj.CutOff(); cut {
			err = fmt.Errorf("is cut off: it has %d bytes of at least %d; copy or download it again", file.Size(), whole)
		}
	})
	return errors.Join(err, fault)
}

// folders examines the places that flags name.
func (x *examination) folders(ctx context.Context) {
	c := x.c
	x.head("folders and files")
	ctx, cancel := context.WithTimeout(ctx, patienceOfDoctor)
	defer cancel()
	searched := c.searchPaths()
	paths := buildid.NewSymbolPath(searched...)
	defer paths.Close()
	roots, slow := paths.Roots(ctx)
	for i, p := range c.places() {
		err := p.problem()
		switch {
		case p.flag == systemPlace && (errors.Is(err, os.ErrNotExist) || err == nil && p.contents(ctx) == errNoTree):
			x.none("%s: no debug packages are installed", p.path)
		case err != nil:
			x.wrong("%s (%s): %v", p.path, p.flag, wording.Cause(err))
		case i < len(roots):
			x.root(p, &roots[i])
		case i < len(searched):
			x.wrong("%s (%s): not examined: %v", p.path, p.flag, slow)
		default:
			if err := p.contents(ctx); err != nil {
				x.wrong("%s (%s) %v", p.path, p.flag, err)
			} else {
				x.good("%s (%s)", p.path, p.flag)
			}
		}
	}
}

// root examines a symbol path.
func (x *examination) root(p place, r *buildid.Root) {
	problems := rootProblems(r)
	if p.flag == imagePlace { // it needs no build ID
		problems = nil
	}
	if !r.ID.IsZero() {
		if err := cutOff(r.Path); err != nil {
			problems = append(problems, err.Error())
		}
	}
	for _, problem := range problems {
		x.wrong("%s (%s) %s", p.path, p.flag, problem)
	}
	switch {
	case len(problems) > 0:
	case !r.ID.IsZero():
		x.good("%s (%s) has build ID %s", p.path, p.flag, r.ID)
	case p.flag == imagePlace:
		x.good("%s (%s)", p.path, p.flag)
	default:
		x.good("%s (%s) holds %s", p.path, p.flag, wording.Count(int64(r.Files), "ELF file with a build ID", "ELF files with build IDs"))
	}
}
