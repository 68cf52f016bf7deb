package symbolize

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// A small file must be opened and read only once, however many questions there are. In a process
// with thousands of modules, reading each file twice would take as long as the lookups.
func TestASmallFileIsReadOnce(t *testing.T) {
	const n = 200
	dir := t.TempDir()
	ids, addr := smallModules(t, dir, n)
	info, err := os.Stat("../internal/object/testdata/whole.elf")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{IndexDir: t.TempDir()}, buildid.NewTree(dir))
	reads, bytes := readsSoFar(t)
	for range 2 {
		for _, id := range ids {
			for back := range uint64(3) {
				if _, err := s.Ask(context.Background(), nil, Location{ID: id, Addr: addr + back}, Policy{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	nowReads, nowBytes := readsSoFar(t)
	reads, bytes = nowReads-reads, nowBytes-bytes
	t.Logf("%d reads of %d bytes", reads, bytes)
	// the runtime and readsSoFar add a few small reads
	if want := n * info.Size(); reads < n || reads > n+n/4 || bytes < want || bytes > want+want/100 {
		t.Errorf("%d reads of %d bytes; want %d of %d", reads, bytes, n, want)
	}
}

// readsSoFar returns the number and the bytes of this process's read system calls.
func readsSoFar(t *testing.T) (calls, bytes int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if os.IsNotExist(err) {
		t.Skip("this kernel does not count reads")
	}
	if err != nil {
		t.Fatal(err)
	}
	var written, writes int64
	if _, err := fmt.Sscanf(string(b), "rchar: %d\nwchar: %d\nsyscr: %d\nsyscw: %d", &bytes, &written, &calls, &writes); err != nil {
		t.Fatalf("%v in %q", err, b)
	}
	return calls, bytes
}
