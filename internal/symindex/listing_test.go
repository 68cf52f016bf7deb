package symindex

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestListingsKnowWhatADirectoryLacks(t *testing.T) {
	d := Dir{Path: filepath.Join(t.TempDir(), "indexes")}
	if err := os.Mkdir(d.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	source := func(i int) Source { return Source{ID: fmt.Appendf(nil, "%08d", i)} }
	put := func(i int) {
		t.Helper()
		if err := os.WriteFile(d.file(source(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	var l Listing
	check := func(when string, i int, want bool) {
		t.Helper()
		if got := l.Lacks(d, source(i)); got != want {
			t.Errorf("%s: Lacks(%d) = %v, want %v", when, i, got, want)
		}
	}
	for range listAfter {
		check("before the directory is listed", 2, false)
	}
	check("listed", 2, true)
	check("listed", 1, false)
	put(2)
	check("another process has made it", 2, true)
	l.Has(d, source(3))
	check("this process has made it", 3, false)
	l.listed = l.listed.Add(-listAgain - time.Nanosecond)
	for range listAfter {
		check("a second later", 2, false)
	}
	check("listed again", 2, false)
	check("listed again", 3, true)

	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	l = Listing{asked: listAfter}
	check("missing directory", 1, false)
	if err := os.WriteFile(d.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l = Listing{asked: listAfter}
	check("a file in its place", 1, false)
}
