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

// listed returns the dump files in the list at path.
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
		before   int // dump files in the list before the test
		bytes    int // bytes of these dump files
		add      int
		want     int
		saidOnce string
	}{
		{0, 0, 3, 3, ""},
		{maxDumps - 2, 0, 2, 2, ""},
		{maxDumps - 2, 0, 4, 2, fmt.Sprintf("lists only the first %d dump files\n", maxDumps)},
		{1, maxDumpBytes - 1000, 1, 1, ""},
		{1, maxDumpBytes - 100, 2, 0, "lists only the first 1 dump file\n"},
	} {
		var said bytes.Buffer
		path := filepath.Join(t.TempDir(), "dumps")
		d := newDumpList(path, &diagnostics{w: &said})
		d.n = test.before
		d.json = append(d.json, make([]byte, test.bytes)...)
		for range test.add {
			d.add(filter.Dump{Name: "a", Type: strings.Repeat("b", 50)})
		}
		d.saveIfDirty()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Count(data, []byte(`"name": "a"`)); got != test.want {
			t.Errorf("%+v: %d listed", test, got)
		}
		if got, _ := strings.CutPrefix(said.String(), "symfilter: "+path+" "); got != test.saidOnce {
			t.Errorf("%+v: said %q", test, got)
		}
	}
}

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
