package filter

import (
	"strings"

	"github.com/symfilter/symfilter/dialect"
)

// KnowPackages lets f know the build IDs in text, which is the field COREDUMP_PACKAGE_JSON of an entry
// of systemd-coredump in the journal: those of the modules that the frames of raw backtraces around
// the current line name. Other text has no effect.
func KnowPackages(f *Filter, text []byte) {
	if f.tracer != nil {
		f.tracer.reader.AddPackages(text)
	}
}

// KnowProgram lets f know the path of the program that the frames of raw backtraces around the current
// line are of.
func KnowProgram(f *Filter, path string) {
	if strings.HasPrefix(path, "/") && f.tracer != nil {
		f.tracer.reader.AddModule(dialect.ModuleFact{Name: path, Main: true})
	}
}
