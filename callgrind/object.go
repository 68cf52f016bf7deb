package callgrind

import (
	"fmt"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// objects are the files of a profile's objects.
type objects struct {
	*report.Asker
	r      *Reader
	files  *report.Objects
	byName map[Name]*objectFile
}

// An objectFile is the file of an object, as it is on this machine.
type objectFile struct {
	*report.Object

	asked   int   // addresses
	outside int   // of them, not in its code
	failed  error // the first failure of the symbolizer
}

func newObjects(o *report.Options, r *Reader) objects {
	return objects{Asker: report.NewAsker(o), r: r, files: report.NewObjects(o, maxObjects, false), byName: make(map[Name]*objectFile)}
}

// of returns the file of an object, and starts to look for its debug file; nil if it can have none.
func (all *objects) of(n Name) *objectFile {
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

// frames appends what is known of addr to dst, innermost first.
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

// tell reports files that are missing, or of other builds than those that ran.
func (all *objects) tell(o *Options, unresolved []report.Unresolved) {
	for _, u := range unresolved {
		if u.Err != nil && u.ID.IsZero() {
			o.Report(fmt.Sprintf("%s: %v; %s without a name in it", u.Path, u.Err, functions(u.Frames)))
		}
	}
	told := 0
	for _, n := range slices.Sorted(maps.Keys(all.byName)) {
		if f := all.byName[n]; f != nil && f.outside > 0 && told < maxTold {
			told++
			o.Report(fmt.Sprintf("%s: %d of %d addresses are not in its code; it is another build than the one that ran", f.Path, f.outside, f.asked))
		}
	}
}

func functions(n int64) string {
	if n == 1 {
		return "1 function"
	}
	return fmt.Sprintf("%d functions", n)
}
