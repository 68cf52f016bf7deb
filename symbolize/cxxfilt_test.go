package symbolize

import (
	"debug/elf"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// All names of the C++ standard library that is installed.
func TestNamesOfRealBinariesAreShownAsLLVMShowsThem(t *testing.T) {
	path := strings.TrimSpace(string(run(t, "g++", "-print-file-name=libstdc++.so.6")))
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	all, err := e.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		if strings.HasPrefix(s.Name, "_Z") {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) < 1000 {
		t.Fatalf("%s has only %d C++ names", path, len(names))
	}
	cmd := exec.Command(tool(t, "llvm-cxxfilt-19"))
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(want) != len(names) {
		t.Fatalf("%d answers to %d names", len(want), len(names))
	}
	differ := 0
	for i, name := range names {
		if got := demangled(name); got != want[i] {
			if differ++; differ <= 5 {
				t.Errorf("%s\n got %q\nwant %q", name, got, want[i])
			}
		}
	}
	t.Logf("%d of %d names differ", differ, len(names))
}
