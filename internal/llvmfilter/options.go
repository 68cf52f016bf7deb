package llvmfilter

import (
	"context"
	"time"

	"github.com/symfilter/symfilter/symbolize"
)

// Options correspond to the flags of llvm-symbolizer --filter-markup, except flags that configure
// the symbolizer. The zero value resolves no address.
type Options struct {
	// Symbolizer resolves addresses and demangles names. If it is nil, no file is found and
	// names stay mangled. To match LLVM, it needs symbolize.Options.Reaching, without
	// NoDemangle and NoInlines. --functions corresponds to its option Names.
	Symbolizer *symbolize.Symbolizer

	// Context ends all waiting for debug files. It may be nil.
	Context context.Context

	// Wait is how long the first lookup in a module waits for the search for its file. After that,
	// the file counts as missing until it is found. 0 means no limit.
	Wait time.Duration

	// NoDemangle shows linkage names for bt, pc and data elements. As in LLVM, the names of symbol
	// elements are still demangled.
	NoDemangle bool

	// Paths selects the form of source paths.
	Paths Paths

	// Color highlights the text that replaces elements, and keeps the colours of the log. Without
	// it, colours are removed.
	Color bool

	// DiagColor colours the diagnostics. LLVM does so if standard error is a terminal, whatever
	// --color is.
	DiagColor bool

	// InPlace writes the output before each diagnostic. If both writers are one terminal, the
	// diagnostic is then within the line, as in LLVM's output. Otherwise a diagnostic follows
	// the line, or later lines.
	InPlace bool
}

// Paths is a form of source paths.
type Paths uint8

// The forms of source paths, with the flags of llvm-symbolizer.
const (
	AbsolutePaths Paths = iota // as recorded, joined with the compilation directory
	RelativePaths              // without the compilation directory: --relativenames
	Basenames                  // without any directory: --basenames
)
