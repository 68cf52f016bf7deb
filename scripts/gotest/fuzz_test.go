package main

import (
	"os"
	"testing"
)

// buildFuzzed must skip packages without fuzz targets. If a package does not compile, the other
// packages must still be built.
func TestBinariesOfFuzzTargetsAreBuiltInOrder(t *testing.T) {
	var got []string
	for b := range buildFuzzed([]testPackage{
		{path: "./none"},
		{path: "./missing", fuzz: []string{"FuzzA"}},
		{path: "unsafe/too", fuzz: []string{"FuzzB"}},
	}, t.TempDir()) {
		if _, err := os.Stat(b.binary); err == nil || b.err == nil || len(b.output) == 0 {
			t.Errorf("%s: built, %v, %q", b.path, b.err, b.output)
		}
		got = append(got, b.path)
	}
	if len(got) != 2 || got[0] != "./missing" || got[1] != "unsafe/too" {
		t.Errorf("got %q", got)
	}
}
