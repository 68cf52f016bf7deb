package buildid

import (
	"path"
	"path/filepath"
	"strings"
)

// A PrefixMap replaces the prefix Old of a path by New.
type PrefixMap struct{ Old, New string }

// PrefixMaps are tried in order; the first whose prefix matches counts.
type PrefixMaps []PrefixMap

// Replace returns path as the first map that matches has it, and whether there
// is one.
func (maps PrefixMaps) Replace(path string) (string, bool) {
	for _, m := range maps {
		if rest, ok := strings.CutPrefix(path, m.Old); ok {
			return m.New + rest, true
		}
	}
	return path, false
}

// Place returns where on this machine the file is that a program, or a report
// about one, calls name: as a map has it, else below sysroot if that is not
// empty, else where its name says.
func (maps PrefixMaps) Place(name, sysroot string) string {
	name, mapped := maps.Replace(name)
	if sysroot != "" && !mapped {
		name, mapped = filepath.Join(sysroot, filepath.FromSlash(path.Clean("/"+name))), true
	}
	if mapped { // it is the operator who says what a relative one is relative to
		if abs, err := filepath.Abs(name); err == nil {
			return abs
		}
	}
	return name
}
