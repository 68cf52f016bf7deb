package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// The committed files must equal the generator's output for the library version in go.mod.
func TestCopyIsTheLibraryWithABudget(t *testing.T) {
	made, err := copies()
	if errors.Is(err, errNoLibrary) {
		testenv.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		if got, err := os.ReadFile(filepath.Join("..", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator makes (%v): go generate ./internal/demangle", name, err)
		}
	}
}

func TestPatchesFitLineByLine(t *testing.T) {
	const patch = "what it is for\n\n--- a/f.go\n+++ b/f.go\n@@ -1,2 +1,3 @@\n+zero\n one\n-two\n+TWO\n@@ -4 +5 @@\n-four\n+FOUR\n--- a/f_test.go\n+++ b/f_test.go\n@@ -1 +1 @@\n-not\n+here\n--- /dev/null\n+++ b/g.go\n@@ -0,0 +1 @@\n+new\n"
	for _, test := range []struct{ name, text, want string }{
		{"fits", "one\ntwo\nthree\nfour\n", `map["f.go":"zero\none\nTWO\nthree\nFOUR\n" "g.go":"new\n"] <nil>`},
		{"another line", "one\ntwo\nthree\nfive\n", `map["f.go":"zero\none\nTWO\nthree\nfive\n" "g.go":""] f.go: the hunk at line 5 does not fit the text`},
		{"a line later", "none\none\ntwo\nthree\nfour\n", `map["f.go":"none\none\ntwo\nthree\nfour\n" "g.go":""] f.go: the hunk at line 1 does not fit the text`},
		{"too short", "one\n", `map["f.go":"one\n" "g.go":""] f.go: the hunk at line 1 does not fit the text`},
	} {
		source := map[string]string{"f.go": test.text, "g.go": ""}
		err := apply(source, patch)
		if got := fmt.Sprintf("%q %v", source, err); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.want)
		}
	}
}
