package marks

import (
	"testing"

	"golang.org/x/sys/cpu"
)

// askAVX2 must agree with golang.org/x/sys/cpu. If AVX2 is not detected, no other test fails, but a
// log takes four times as long.
func TestAVX2IsSeen(t *testing.T) {
	if got, want := askAVX2(), cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT; got != want {
		t.Errorf("got %v, golang.org/x/sys/cpu has %v", got, want)
	}
}
