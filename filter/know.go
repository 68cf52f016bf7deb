package filter

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/dialect"
)

// KnowModule lets f know the build ID, in hexadecimal digits, of the module with this name or path,
// which the frames of raw backtraces around the current line name without it. Digits that are not a
// build ID have no effect.
func KnowModule(f *Filter, name, digits string) {
	if id, err := buildid.Parse([]byte(digits)); err == nil && f.tracer != nil {
		f.tracer.reader.AddModule(dialect.ModuleFact{Name: name, ID: id})
	}
}
