package marks

import (
	"testing"

	"golang.org/x/sys/cpu"
)

// AVX2 is detected. Without it every other test passes, but a log takes four times as long.
func TestAVX2IsSeen(t *testing.T) {
	if got, want := askAVX2(), cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT; got != want {
		t.Errorf("got %v, golang.org/x/sys/cpu has %v", got, want)
	}
}
