package symbolize

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// With a spill directory, compressed debug information beyond the budget still answers, and leaves
// no file.
func TestCompressedDebugInformationBeyondTheBudgetIsSpilled(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("nothing is mapped here")
	}
	// enough names to exceed minSpill
	var names strings.Builder
	for i := range 30000 {
		names.WriteString("int a_variable_with_a_long_name_" + strings.Repeat("x", i%40) + string(rune('a'+i%26)) + "_" + strings.Repeat("y", i/26%40) + strings.Repeat("z", i/1040) + ";\n")
	}
	whole := build(t, "large", source+names.String())
	f := whole.variant(t, "--compress-debug-sections=zlib")
	dir := filepath.Join(t.TempDir(), "cache")
	addr := f.symbols(t)["entry"].Value
	want := code(open(t, Options{}, oneFile{whole, "whole"}), whole.at(addr))
	s := open(t, Options{MaxMemory: 64 << 10, SpillDir: dir}, oneFile{f, "compressed"})
	if got := code(s, f.at(addr)); got != want || !strings.Contains(got, "large.cc") {
		t.Errorf("got %q, want %q; %s", got, want, s.Report(f.id, "").Fault)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("in the directory: %v, %v; want nothing", left, err)
	}
}
