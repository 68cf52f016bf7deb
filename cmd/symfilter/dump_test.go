package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/filter"
)

// listed returns the dump files of a list in a file.
func listed(t *testing.T, path string) (dumps []filter.Dump) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &dumps); err != nil {
		t.Fatalf("%v in %q", err, data)
	}
	return dumps
}

func TestDumpListIsBounded(t *testing.T) {
	for _, test := range []struct {
		before   int    // dump files listed already
		name     string // of each dump
		add      int
		want     int
		saidOnce string
	}{
		{0, "a", 3, 3, ""},
		{maxDumps - 2, "a", 2, 2, ""},
		{maxDumps - 2, "a", 4, 2, fmt.Sprintf("lists the first %d dump files only\n", maxDumps)},
		{0, strings.Repeat("a", maxDumpBytes/2), 3, 1, "lists the first 1 dump file only\n"},
	} {
		var said bytes.Buffer
		path := filepath.Join(t.TempDir(), "dumps")
		d := newDumpList(path, &diagnostics{w: &said})
		d.n = test.before
		for range test.add {
			d.add(filter.Dump{Name: test.name})
		}
		d.json = bytes.Replace(d.json, []byte("[,"), []byte("["), 1) // where only their number was told
		d.saveIfDirty()
		if got := len(listed(t, path)); got != test.want {
			t.Errorf("%d dump files with names of %d bytes: %d listed, want %d", test.add, len(test.name), got, test.want)
		}
		if got, _ := strings.CutPrefix(said.String(), "symfilter: "+path+" "); got != test.saidOnce {
			t.Errorf("%d dump files with names of %d bytes: said %q, want %q", test.add, len(test.name), got, test.saidOnce)
		}
	}
}

// A file that is there keeps its permissions.
func TestDumpListKeepsPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dumps")
	if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	newDumpList(path, &diagnostics{w: os.Stderr})
	after, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := after.Mode(), before.Mode(); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "[]\n" {
		t.Errorf("got %q (%v), want %q", data, err, "[]\n")
	}
}
