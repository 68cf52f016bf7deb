package filter

import (
	"io"
	"strings"
	"testing"
)

// DumpFile must not be called after it has returned false, since each call costs a copy of the
// context.
func TestNoDumpIsBuiltInVain(t *testing.T) {
	const wanted = 3
	got := 0
	f := New(io.Discard, Options{DumpFile: func(Dump) bool { got++; return got < wanted }})
	io.WriteString(f, "{{{module:0:a.out:elf:a0a1}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x0}}}\n"+strings.Repeat("{{{dumpfile:core:x}}}\n", 10))
	if got != wanted {
		t.Errorf("%d dump files were built, want %d", got, wanted)
	}
}
