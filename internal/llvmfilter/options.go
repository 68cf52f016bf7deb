package llvmfilter

import (
	"context"
	"time"

	"github.com/symfilter/symfilter/symbolize"
)

// Options are what llvm-symbolizer's flags change about --filter-markup, but
// for those that are about the symbolizer. The zero value finds nothing.
type Options struct {
	// Symbolizer answers the addresses and demangles names; nil knows no
	// file, and shows names as they are. LLVM's answers are those of one with
	// symbolize.Options.Reaching, and without NoDemangle and NoInlines;
	// --functions is its Names.
	Symbolizer *symbolize.Symbolizer

	// Context ends all waiting for debug files; nil never does.
	Context context.Context

	// Wait is how long an element waits for a debug file that is being
	// looked for; then it is one that was not found. 0: as long as it takes.
	Wait time.Duration

	// NoDemangle leaves the names of bt, pc and data as the linker knows
	// them. LLVM demangles those of symbol all the same.
	NoDemangle bool

	// Paths says what is shown of the paths of source files.
	Paths Paths

	// Color highlights what replaces elements, and keeps the colours of the
	// log; without it they are removed.
	Color bool

	// DiagColor colours what is said on the second writer: LLVM does if that
	// is a terminal, whatever --color says.
	DiagColor bool

	// InPlace writes what is printed before each diagnostic, so that both
	// writers being one terminal, it stands where it does in LLVM's output:
	// within the line. Else it comes behind the line, or a few.
	InPlace bool
}

// Paths says how much of a source file's path is shown.
type Paths uint8

// The flags of llvm-symbolizer.
const (
	AbsolutePaths Paths = iota // as recorded, joined with the compilation directory
	RelativePaths              // without the compilation directory: --relativenames
	Basenames                  // without any directory: --basenames
)
