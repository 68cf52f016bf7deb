package symbolize

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The names in the installed C++ standard library are shown as LLVM shows them.
func TestNamesOfRealBinariesAreShownAsLLVMShowsThem(t *testing.T) {
	path := strings.TrimSpace(string(run(t, "g++", "-print-file-name=libstdc++.so.6")))
	names := mangledNames(t, path)
	if len(names) < 1000 {
		t.Fatalf("%s has only %d C++ names", path, len(names))
	}
	differ := 0
	for i, want := range filtered(t, names, "llvm-cxxfilt-19") {
		if got := demangled(names[i], false); got != want {
			if differ++; differ <= 5 {
				t.Errorf("%s\n got %q\nwant %q", names[i], got, want)
			}
		}
	}
	t.Logf("%d of %d names differ", differ, len(names))
}

// The libraries of LLVM, built by clang, use all features of C++ templates. LLVM's demangler has
// bugs, so the test compares only names that GNU's demangler prints alike.
func TestNamesAreThoseOnWhichLLVMAndGNUAgree(t *testing.T) {
	step := 20 // one of 20 names is compared
	if os.Getenv("TEST_LONG") == "1" {
		step = 1
	}
	tool(t, "c++filt")
	var names []string
	for _, pattern := range []string{"/usr/lib/*/libLLVM*.so.*", "/usr/lib/llvm-*/lib/libclang-cpp.so.*"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			all := mangledNames(t, path)
			for i := 0; i < len(all); i += step {
				names = append(names, all[i])
			}
		}
	}
	if len(names) < 1000 {
		t.Fatalf("LLVM's libraries have only %d names", len(names))
	}
	llvm, gnu := filtered(t, names, "llvm-cxxfilt-19"), filtered(t, names, "c++filt")
	agreed := 0
	for i, name := range names {
		if llvm[i] != gnu[i] {
			continue
		}
		agreed++
		if got := demangled(name, false); got != llvm[i] {
			t.Errorf("%s\n got %q\nwant %q", name, got, llvm[i])
		}
	}
	t.Logf("%d names, on %d of which the demanglers agree", len(names), agreed)
}

// mangledNames returns the C++ names among the dynamic symbols of a file, each once, without
// versions.
func mangledNames(t *testing.T, path string) []string {
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
	return slices.Compact(names)
}

// filtered returns the output of a demangler for each name.
func filtered(t *testing.T, names []string, demangler string) []string {
	cmd := exec.Command(tool(t, demangler))
	cmd.Stdin = strings.NewReader(strings.Join(names, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	shown := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(shown) != len(names) {
		t.Fatalf("%s: %d answers to %d names", demangler, len(shown), len(names))
	}
	return shown
}
