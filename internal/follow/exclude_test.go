package follow

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestExcludedPaths(t *testing.T) {
	for pattern, test := range map[string]struct{ matches, others string }{
		"*.debug.log":   {"/var/log/a.debug.log /a.debug.log", "/var/log/a.log /x.debug.log/a"},
		"debug":         {"/var/log/debug", "/var/debug/a.log"},
		"/var/log/*.1":  {"/var/log/a.1", "/var/log/b/a.1 /var/a.1"},
		"/var/log/b":    {"/var/log/b /var/log/b/c/a.log", "/var/log/bb /var/log/a.log"},
		"/var/log/b/":   {"/var/log/b/a.log", "/var/log/b.log"},
		"/var/*/b/*.gz": {"/var/log/b/a.gz /var/tmp/b/c.gz/d", "/var/log/b/a.log"},
		"/":             {"/a /b/c", ""},
	} {
		e, err := newExclusions([]string{"other", pattern})
		if err != nil {
			t.Fatal(err)
		}
		for list, want := range map[string]bool{test.matches: true, test.others: false} {
			for path := range strings.FieldsSeq(list) {
				if e.match(path) != want {
					t.Errorf("%s: %s is excluded: %v, want %v", pattern, path, !want, want)
				}
			}
		}
	}
	for _, bad := range []string{"", "[", "a/["} {
		if _, err := newExclusions([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestExcludedFilesAreNotFollowed(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		for _, name := range []string{"a.log", "b.debug.log", "named", "old.log"} {
			write(t, at(name), name+"\n")
		}
		o.Names = []string{at("*.log"), at("named"), at("a.log")}
		o.Exclude = []string{"*.debug.log", at("named"), at("old.*")}
		l := newLog()
		r := begin(t, l, o)
		r.expect(at("a.log"), "a.log\n")
		write(t, at("c.debug.log"), "c\n")
		write(t, at("d.log"), "d\n")
		r.expect(at("d.log"), "d\n")
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if len(l.out) != 2 {
			t.Errorf("%d files were opened, want 2", len(l.out))
		}
		l.expectMessages(t, "")
	})
	_, err := New(Options{Names: []string{"/a.log"}, Exclude: []string{"*.log"}, Open: newLog().open})
	if err == nil || err.Error() != "all names of files to follow are excluded" {
		t.Errorf("with nothing left: %v", err)
	}
}
