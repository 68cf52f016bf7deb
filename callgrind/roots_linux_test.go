package callgrind

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A FIFO as a source root must be refused. To open it as a folder would wait until another process
// opens it for writing.
func TestAFIFOIsNoSourceRoot(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	o := Options{Source: true, SourceRoots: []string{fifo}, Threshold: 100}
	got := printed(t, []byte("events: Ir\nfl=/src/a.c\nfn=f\n1 10\n"), 1<<20, false, o)
	if !strings.Contains(got, "--source: ") || !strings.Contains(got, "not a directory") {
		t.Errorf("got\n%s", got)
	}
}
