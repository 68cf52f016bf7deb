package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The packages include CHANGELOG.md, which must not call the released version unreleased.
func TestTheListOfChangesNamesTheVersion(t *testing.T) {
	for _, c := range []struct {
		heading, version string
		ok               bool
	}{
		{"## 0.9.0", "v0.9.0", true},
		{"## 0.9.0 (2026-11-30)", "v0.9.0", true},
		{"## 0.9.0 (unreleased)", "v0.9.0", false},
		{"## 0.9.0 (unreleased)", "v0.9.0-rc.1", true},
		{"## 0.9.0", "v0.9.1", false},
		{"## 0.9.10", "v0.9.1", false},
		{"### 0.9.0", "v0.9.0", false},
	} {
		checkout := t.TempDir()
		if err := os.WriteFile(filepath.Join(checkout, "CHANGELOG.md"), []byte("# Changelog\n\n"+c.heading+"\n\n## 0.8.0\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := inChangelog(checkout, c.version); (err == nil) != c.ok {
			t.Errorf("%s below %q: %v", c.version, c.heading, err)
		}
	}
}

func TestARefusedReleaseWritesNothing(t *testing.T) {
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "SHA256SUMS"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ output, target, want string }{
		{used, "linux/amd64", "is not empty; name another one"},
		{filepath.Join(t.TempDir(), "new"), "plan9/amd64", `target "plan9/amd64" is unknown; the targets are linux/amd64, `},
	} {
		err := release(t.TempDir(), c.output, []string{c.target}, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.output, c.target, err, c.want)
		}
	}
	if entries, err := os.ReadDir(used); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}
