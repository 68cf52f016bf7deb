package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run must refuse to replace one of its own inputs or outputs. The rest of a replaced output
// would go to a file without a name.
func TestFilesThatAreReplacedAreNoOthersOfTheRun(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	in, out, errs := open("in"), open("out"), open("err")
	open("log")
	for from, to := range map[string]string{"link": "out", "here": "."} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	const dumps, state = "--dumpfile-output ", "--state "
	for _, tt := range []struct {
		dumps, state string
		files        []string
		want         string
	}{
		{"new", "other", []string{"log"}, ""},
		{"log", "", []string{"other", "log"}, dumps + "log is also an input"},
		{"here/log", "", []string{"log"}, dumps + "here/log is also an input"},
		{"in", "", nil, dumps + "in is also an input"},
		{"in", "", []string{"-"}, dumps + "in is also an input"},
		{"in", "", []string{"log"}, ""},
		{"out", "", []string{"log"}, dumps + "out is also the output"},
		{"link", "", []string{"log"}, dumps + "link is also the output"},
		{"err", "", []string{"log"}, dumps + "err is also the file for messages"},
		{"", "out", []string{"log"}, state + "out is also the output"},
		{"", "err", []string{"log"}, state + "err is also the file for messages"},
		{"new", "new", []string{"log"}, dumps + "new is also the file of --state"},
		{"new", "here/new", []string{"log"}, dumps + "new is also the file of --state"},
	} {
		c := newConfig()
		path := func(name string) string {
			if name == "" || name == "-" {
				return name
			}
			return filepath.Join(dir, name)
		}
		c.dumps, c.follow.state = fileName(path(tt.dumps)), fileName(path(tt.state))
		var files []string
		for _, name := range tt.files {
			files = append(files, path(name))
		}
		got := ""
		if err := c.checkWritten(files, standard{in: in, out: out, err: errs}); err != nil {
			got, _, _ = strings.Cut(strings.ReplaceAll(err.Error(), dir+"/", ""), ";")
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%+v: want (-), got (+):\n%s", tt, diff)
		}
	}
	c := newConfig()
	c.dumps = fileName(os.DevNull)
	if err := c.checkWritten(nil, standard{in: null, out: null, err: null}); err != nil {
		t.Errorf("a device, which is not replaced: %v", err)
	}
}
