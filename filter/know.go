package filter

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/dialect"
)

// KnowModule lets f know the build ID of the module with this name or path, which the frames of raw
// backtraces around the current line name without it.
func KnowModule(f *Filter, name string, id buildid.ID) {
	if f.tracer != nil {
		f.tracer.reader.AddModule(dialect.ModuleFact{Name: name, ID: id})
	}
}
