package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Paths of other processes must be recognised on the command line: the kernel hides other processes
// from a confined process.
func TestPathsOfOtherProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("Linux only: /proc")
	}
	links := t.TempDir()
	for name, target := range map[string]string{"other": "/proc/1/root", "tree": "other/usr", "own": "/proc/self/cwd", "log": "../log", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir("/proc")
	for path, want := range map[string]bool{
		"/proc/1234/cwd/usr/lib/debug": true,
		"/proc/1234/fd/1":              true,
		"/proc/*/cwd/*.log":            true,
		"/proc/[1-9]*/cwd/log":         true,
		"/srv/../proc/1/root":          true,
		"./1234/root":                  true,
		"/proc/self/fd/3":              false,
		"/proc/thread-self/fd/3":       false,
		"/proc/kmsg":                   false,
		"/proc":                        false,
		"/process/1":                   false,
		"/dev/fd/63":                   false,
		"1234":                         true,
		"1234/root":                    true,
		"log":                          false,
		"-":                            false,
		"":                             false,
		"/proc/self/maps":              false,
		links + "/other":               true,
		links + "/other/usr/lib/*.so":  true,
		links + "/tree/lib":            true,
		links + "/own/log":             false,
		links + "/log":                 false,
		links + "/loop":                false,
		links + "/none/lib":            false,
	} {
		if got := OfOtherProcess(path); got != want {
			t.Errorf("%q: %t, want %t", path, got, want)
		}
	}
}
