package buildid

import (
	"path"
	"path/filepath"
	"strings"
)

// A PrefixMap replaces the prefix Old of a path by New.
type PrefixMap struct{ Old, New string }

// PrefixMaps is a list of maps in order of precedence: the first with a matching prefix applies.
type PrefixMaps []PrefixMap

// Replace applies the first map that matches path. It reports whether there is one; otherwise it
// returns path unchanged.
func (maps PrefixMaps) Replace(path string) (string, bool) {
	for _, m := range maps {
		if rest, ok := strings.CutPrefix(path, m.Old); ok {
			return m.New + rest, true
		}
	}
	return path, false
}

// Place returns the path on this machine of a file that a program, or a report about one, calls
// name: the mapped name if a map matches, else name below sysroot if that is not empty, else name
// itself.
func (maps PrefixMaps) Place(name, sysroot string) string {
	name, mapped := maps.Replace(name)
	if sysroot != "" && !mapped {
		name, mapped = filepath.Join(sysroot, filepath.FromSlash(path.Clean("/"+name))), true
	}
	if mapped { // the operator's own path: a relative one starts at the current folder
		if abs, err := filepath.Abs(name); err == nil {
			return abs
		}
	}
	return name
}
