package filter

import (
	"strings"

	"github.com/symfilter/symfilter/internal/dialect"
)

// KnowPackages adds the build IDs in text, the field COREDUMP_PACKAGE_JSON of an entry of
// systemd-coredump in the journal, to the facts for the raw backtraces around the current line.
// Other text has no effect.
func KnowPackages(f *Filter, text []byte) {
	if f.tracer != nil {
		f.tracer.reader.AddPackages(text)
	}
}

// KnowProgram sets the path of the program for the raw backtraces around the current line.
func KnowProgram(f *Filter, path string) {
	if strings.HasPrefix(path, "/") && f.tracer != nil {
		f.tracer.reader.AddModule(dialect.ModuleFact{Name: path, Main: true})
	}
}
