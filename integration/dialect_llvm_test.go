//go:build linux

package integration

import (
	"path/filepath"
	"testing"
)

// Stack dumps of LLVM must be resolved in both forms. With llvm-symbolizer, LLVM's library prints
// paths and offsets; without it, base names and addresses of the process.
func TestStackDumpsOfLLVMAreResolved(t *testing.T) {
	t.Parallel()
	libraries, _ := filepath.Glob("/usr/lib/*/libLLVM.so.19.1")
	if len(libraries) == 0 {
		need(t, "/usr/lib/libLLVM.so.19.1")
	}
	w := newTraceTwin(t, "llvmcrash", twinBuild{link: libraries})
	calls := []string{"fall", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	withSymbolizer := w.output(t, []string{"LLVM_SYMBOLIZER_PATH=llvm-symbolizer-19"})
	w.wantChain(t, w.frames(t, withSymbolizer), calls...)
	without := w.output(t, []string{"LLVM_DISABLE_SYMBOLIZATION=1"})
	w.wantChain(t, w.frames(t, without, "--symbol-path", w.dir), calls...)

	other := newTraceTwin(t, "llvmcrash", twinBuild{flags: []string{"-O0"}, link: libraries})
	w.answersNothing(t, withSymbolizer, other)
	w.answersNothing(t, without, other, "--symbol-path", other.dir)
}
