//go:build linux

package integration

import (
	"path/filepath"
	"testing"
)

// LLVM's library prints paths and offsets with llvm-symbolizer, and names of files and addresses of
// the process without it.
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
	for _, file := range []string{"llvmcrash", "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	for _, log := range [][]byte{withSymbolizer, without} {
		for _, f := range w.frames(t, log, "--symbol-path", w.dir, "--debug-file-directory", other.debug) {
			switch filepath.Base(f.Module) {
			case "llvmcrash", "libledger.so":
				if len(f.Frames) > 0 {
					t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
				}
			}
		}
	}
}
