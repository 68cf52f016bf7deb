// Package prefixmap maps the paths in logs, reports and debug information to paths on this machine.
package prefixmap

import (
	"path"
	"path/filepath"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

// Maps is a list of maps in order of precedence: the first with a matching prefix applies.
type Maps []buildid.PrefixMap

// Replace applies the first map that matches path. If no map matches, it returns path and
// false.
func (maps Maps) Replace(path string) (string, bool) {
	for _, m := range maps {
		if rest, ok := strings.CutPrefix(path, m.Old); ok {
			return m.New + rest, true
		}
	}
	return path, false
}

// Place returns the path on this machine of a file that a program or a report names. If a map
// matches, Place returns the mapped name. Otherwise it returns name below sysroot, or name itself
// if sysroot is empty.
func (maps Maps) Place(name, sysroot string) string {
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
