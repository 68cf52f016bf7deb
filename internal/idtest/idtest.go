// Package idtest reads the build IDs of files for tests.
package idtest

import (
	"os"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// Of returns the build ID of a file, which must have one.
func Of(t testing.TB, path string) buildid.ID {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	id, err := buildid.Read(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	return id
}
