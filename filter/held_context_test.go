package filter

import (
	"fmt"
	"io"
	"testing"
)

// Only processes with modules or maps may be counted. A new limit must take effect in the middle of
// a log.
func TestHeldProcessesAreCounted(t *testing.T) {
	key, err := ProcessKey(`^\[(\d+)\]`)
	if err != nil {
		t.Fatal(err)
	}
	f := New(io.Discard, Options{ProcessKey: key})
	io.WriteString(f, "plain\n[1] {{{not}}} \n")
	if n, bytes := innerOf(f).Weigh(); n != 0 || bytes != 0 {
		t.Errorf("plain text: %d processes, %d bytes", n, bytes)
	}
	for i := range 10 {
		fmt.Fprintf(f, "[%d] {{{module:0:a.so:elf:aabbccdd}}}\n[%d] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n", i, i)
	}
	n, bytes := innerOf(f).Weigh()
	if want := int64(10 * contextBytes); n != 10 || bytes < want || bytes > 2*want {
		t.Errorf("%d processes, %d bytes; want 10, %d and up to twice as many", n, bytes, want)
	}
	innerOf(f).SetLimits(Limits{Processes: 8})
	io.WriteString(f, "[11] {{{module:0:a.so:elf:aabbccdd}}}\n")
	if n, _ := innerOf(f).Weigh(); n > 8 {
		t.Errorf("%d processes after the limit became 8", n)
	}
}
