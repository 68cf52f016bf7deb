package callgrind

import (
	"fmt"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// objects holds the object files of a profile.
type objects struct {
	*report.Asker
	r      *recordReader
	files  *report.Objects
	byName map[nameID]*objectFile
}

// An objectFile is an object of the profile with its file on this machine.
type objectFile struct {
	*report.Object

	asked   int   // addresses looked up
	outside int   // addresses outside of the code
	failed  error // the first failure of the symbolizer
}

func newObjects(o *report.Options, r *recordReader) objects {
	return objects{Asker: report.NewAsker(o), r: r, files: report.NewObjects(o, maxObjects, false), byName: make(map[nameID]*objectFile)}
}

// file returns the file of an object, and starts the search for its debug file. It returns nil for
// an object without a name.
func (all *objects) file(n nameID) *objectFile {
	f, ok := all.byName[n]
	if ok {
		return f
	}
	if name := all.r.Text(n); name != "" && name != unknown {
		f = &objectFile{Object: all.files.Named(name)}
		all.Prefetch(f.Object)
	}
	if len(all.byName) < maxFunctions {
		all.byName[n] = f
	}
	return f
}

// frames appends the frames at addr to dst, innermost first.
func (all *objects) frames(dst []symbolize.Frame, f *objectFile, addr uint64) []symbolize.Frame {
	if f == nil || f.Err != nil {
		return dst
	}
	f.asked++
	if !report.Covers(f.Code, addr) {
		f.outside++
		return dst
	}
	got := all.Frames(dst, f.Object, addr)
	if got.Err != nil && f.failed == nil {
		f.failed = got.Err
	}
	if len(got.Frames) > len(dst)+maxInline {
		got.Frames = got.Frames[:len(dst)+maxInline]
	}
	return got.Frames
}

// report emits diagnostics for files that are missing or from another build.
func (all *objects) report(o *Options, unresolved []symbolize.Unresolved) {
	for _, u := range unresolved {
		if u.Err != nil && u.ID.IsZero() {
			o.report().Report(fmt.Sprintf("%s: %v; this leaves %s without a name", u.Name, u.Err, functions(u.Frames)))
		}
	}
	reported := 0
	for _, n := range slices.Sorted(maps.Keys(all.byName)) {
		if f := all.byName[n]; f != nil && f.outside > 0 && reported < maxDiagnostics {
			reported++
			o.report().Report(fmt.Sprintf("%s: %d of %d addresses are outside of the file's code, so the file is not of the build that ran", f.Path, f.outside, f.asked))
		}
	}
}

func functions(n int64) string { return wording.Count(n, "function", "functions") }
