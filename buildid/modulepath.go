package buildid

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// A ModulePath finds a module at its path in the log. The log is untrusted: it can make the finder
// open any file that the process may read. So a ModulePath suits commands that a user runs, not
// services that read the logs of other users. A file is used only if its note holds the ID. The
// zero value is ready for use.
type ModulePath struct{}

// Find returns the regular file at q.Name if its note holds q.ID. q.Name must be an absolute path;
// it may contain "..". The file is the module itself, whatever q.Kind is, and may be stripped.
func (ModulePath) Find(ctx context.Context, q Query, note func(Attempt)) (*File, error) {
	s := search{ctx: ctx, where: "module name", query: q, note: note}
	switch {
	case q.Name == "":
		s.noteMiss(s.where, "the module has no name")
	case len(q.Name) > maxPath:
		s.noteMiss(s.where, fmt.Sprintf("a name of %d bytes is too long for a path", len(q.Name)))
	case strings.IndexByte(q.Name, 0) >= 0 && !q.ID.IsZero():
		s.noteMiss(q.Name, "a name with a NUL byte is not a path")
	case elsewhere(q.Name):
		s.noteMiss(q.Name, "a path to another machine or a device is not opened")
	case !filepath.IsAbs(q.Name):
		s.noteMiss(q.Name, "not an absolute path")
	case q.ID.IsZero():
		name, _, _ := strings.Cut(q.Name, "\x00") // a NUL byte and the state of a file may follow
		s.noteMiss(name, "without a build ID no file can be checked")
	default:
		if f := s.tryVerified(q.Name); f != nil {
			return f, nil
		}
	}
	return nil, s.miss()
}

// elsewhere reports whether an untrusted path leads to another machine or to a device. On Windows,
// opening \\host\share\… would disclose the user's name to that host.
func elsewhere(path string) bool {
	return strings.HasPrefix(filepath.ToSlash(filepath.VolumeName(path)), "//")
}
