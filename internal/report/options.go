package report

import (
	"strings"

	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/symbolize"
)

// Options are the options of all readers of reports. For files without a build ID, the finders of
// its Symbolizer must include [Files].
type Options symbolize.ReportOptions

// Place returns the path of the object file of this name in a report.
func (o *Options) Place(name string) string {
	return prefixmap.Maps(o.PrefixMap).Place(name, o.Sysroot)
}

// ShownFile returns the name of a source file as the report shows it: with the prefix map and
// Basenames applied.
func (o *Options) ShownFile(name string) string {
	name, _ = prefixmap.Maps(o.PrefixMap).Replace(name)
	if o.Basenames {
		name = name[strings.LastIndexAny(name, `/\`)+1:]
	}
	return name
}

// Report passes a diagnostic to Diagnose, if that is set.
func (o *Options) Report(message string) {
	if o.Diagnose != nil {
		o.Diagnose(message)
	}
}
