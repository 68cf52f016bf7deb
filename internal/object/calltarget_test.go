package object

import (
	"bytes"
	"os"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// The calls of a program lead to functions of it, and to functions of libraries by their names.
func TestTargetsOfCalls(t *testing.T) {
	testenv.OnlyOn(t, "linux")
	file, err := os.Open(testenv.Find(t, "/bin/sh"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(file, info.Size(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, ok := f.Section(".text")
	if !ok {
		t.Fatal("/bin/sh has no section .text")
	}
	inside, imports := 0, 0
	for addr := text.Addr; addr < text.Addr+text.Size; addr++ {
		if target, ok := f.CallTarget(addr); ok {
			if start, _, ok := f.UnwindRange(target); ok && start == target {
				inside++
			}
		}
		if name, ok := f.CalledImport(addr); ok && (bytes.Equal(name, []byte("__errno_location")) || bytes.Equal(name, []byte("write"))) {
			imports++
		}
	}
	if inside < 100 || f.Machine == 62 && imports == 0 { // EM_X86_64
		t.Errorf("%d calls of functions of the file, %d of libraries", inside, imports)
	}
}
