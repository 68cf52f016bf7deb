package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// useless returns the user's places that could not help to resolve a module, each as a part of a
// sentence. It leaves out places that were reported at the start. roots describe the symbol paths.
// asked reports whether a module of the log has the given build ID.
func (s *Search) useless(roots []root, asked func(buildid.ID) bool) (all []string) {
	for i, p := range s.Places() {
		if p.Flag == systemPlace || p.Flag == imageFlag || p.problem() != nil {
			continue
		}
		var problems []string
		if i < len(roots) { // the first places are Scanned
			problems = rootProblems(&roots[i])
			if id := roots[i].ID; len(problems) == 0 && !id.IsZero() && !asked(id) {
				problems = []string{"has build ID " + id.String() + ", which no module in the log has"}
			}
		} else if err := p.contents(context.Background()); err != nil {
			problems = []string{err.Error()}
		}
		const most = 2 // problems listed for one place
		text := strings.Join(problems[:min(len(problems), most)], ", and ")
		if more := len(problems) - most; more > 0 {
			text += fmt.Sprintf(", and %d more", more)
		}
		if text != "" {
			all = append(all, p.Flag+" "+p.Path+" "+text)
		}
	}
	return all
}

// misfiled returns why a file at the path for a module's build ID, in a folder of the user, cannot
// be used. It returns "" if there is no such file.
func (s *Search) misfiled(r *symbolize.Report) string {
	hex := r.ID.String()
	if r.Fault != "" || r.Path != "" || len(hex) < 4 {
		return "" // reported separately, or another file was found, or the ID is too short for one
	}
	missing := access.BuildID(nil).(interface{ IsMissing(a buildid.Attempt) bool })
	for _, a := range r.Attempts {
		below := func(dir string) bool {
			return strings.HasPrefix(a.Where, filepath.Clean(dir)+string(filepath.Separator))
		}
		if !missing.IsMissing(a) && strings.Contains(a.Where, hex[2:]) && slices.ContainsFunc(slices.Concat(s.BuildIDDirs, s.DebugDirs), below) {
			return a.Where + ": " + a.Reason
		}
	}
	return ""
}

// A root describes the files below a path of a [buildid.SymbolPath].
type root struct {
	Path   string
	Files  int               // ELF files with a build ID
	ID     buildid.ID        // build ID of the file at Path; zero: none, or Path is a folder
	Faults []buildid.Attempt // unreadable files and folders, at or below Path
}

// rootsOf describes the paths of p in their order. After an error, some are missing.
func rootsOf(ctx context.Context, p *buildid.SymbolPath) (all []root, err error) {
	walked := access.BuildID(p).(interface {
		Roots(ctx context.Context, visit func(path string, files int, id buildid.ID, faults []buildid.Attempt)) error
	})
	err = walked.Roots(ctx, func(path string, files int, id buildid.ID, faults []buildid.Attempt) {
		all = append(all, root{path, files, id, faults})
	})
	return all, err
}

// checkList returns why the list of build IDs at path cannot be read or names no file, or nil.
func checkList(ctx context.Context, path string) error {
	return access.BuildID(buildid.NewIDsFile(path)).(interface {
		Check(ctx context.Context) error
	}).Check(ctx)
}

// rootProblems returns the problems of a symbol path, each as a part of a sentence.
func rootProblems(r *root) (all []string) {
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
		all = append(all, "has no build ID, by which debug files are found")
	default:
		all = slices.Insert(all, 0, "holds no ELF file with a build ID")
	}
	return all
}

var (
	errNoTree = errors.New("has no .build-id folder")
	errNoIDs  = errors.New("has no folder .build-id, and no folders 00 to ff")
)

// contents returns why p cannot provide debug files, or nil. It must be called only if problem has
// returned nil. For symbol paths, which rootsOf describes, it returns nil.
func (p Place) contents(ctx context.Context) error {
	switch p.Flag {
	case idsFileFlag:
		if err := checkList(ctx, p.Path); err != nil {
			return fmt.Errorf("cannot be used: %w", wording.Cause(err))
		}
	case buildIDDirFlag, debugDirFlag, systemPlace:
		if !isTree(p.Path) {
			if p.Flag == buildIDDirFlag {
				return errNoIDs
			}
			return errNoTree
		}
		tree := filepath.Join(p.Path, ".build-id")
		if _, err := os.Stat(tree + "/."); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("holds %s, which cannot be used: %w", tree, wording.Cause(err))
		}
	}
	return nil
}

// cutOff returns an error if the ELF file at path is truncated or cannot be read.
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
			err = fmt.Errorf("is cut off: the file has %d of at least %d bytes; copy or download the file again", file.Size(), whole)
		}
	})
	return errors.Join(err, fault)
}
