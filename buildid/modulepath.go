package buildid

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// A ModulePath finds a module where the log says that it was loaded from. The log is hostile: it can make the finder
// open any file that the process may read, so this finder is for commands that one user runs, not for services that read
// the logs of others. What it opens it uses only if the note in it is the ID asked for.
type ModulePath struct{}

// Find returns the file at q.Name, if that is an absolute path, with or without "..", of a regular file, and
// the note in the file holds q.ID. It is the module itself, whatever q.Kind asks for, and may be stripped.
func (ModulePath) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "module name", query: q, note: note}
	switch {
	case q.Name == "":
		s.tell(s.where, "the module has no name")
	case len(q.Name) > maxPath:
		s.tell(s.where, fmt.Sprintf("a name of %d bytes is no path", len(q.Name)))
	case strings.IndexByte(q.Name, 0) >= 0:
		s.tell(q.Name, "a name with a NUL is no path")
	case elsewhere(q.Name):
		s.tell(q.Name, "a path to another machine or a device is not opened")
	case !filepath.IsAbs(q.Name):
		s.tell(q.Name, "not an absolute path")
	case q.ID.IsZero():
		s.tell(q.Name, "without a build ID no file can be checked")
	default:
		if f := s.tryVerified(q.Name); f != nil {
			return f, nil
		}
	}
	return nil, s.miss()
}

// elsewhere reports whether the path, which a log or a file names, leads to another machine or to a device: on Windows \\host\share\… does, and asking
// for it would tell that host the user's name.
func elsewhere(path string) bool {
	return strings.HasPrefix(filepath.ToSlash(filepath.VolumeName(path)), "//")
}
