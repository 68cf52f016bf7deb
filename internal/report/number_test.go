package report

import "testing"

func TestHex(t *testing.T) {
	for _, tt := range []struct {
		digits string
		n      uint64
		ok     bool
	}{
		{"0", 0, true},
		{"1aF", 0x1af, true},
		{"ffffffffffffffff", 1<<64 - 1, true},
		{"", 0, false},
		{"00000000000000001", 0, false},
		{"0x1", 0, false},
		{"1g", 0, false},
		{"-1", 0, false},
	} {
		if n, ok := Hex([]byte(tt.digits)); n != tt.n || ok != tt.ok {
			t.Errorf("%q: got %#x, %v, want %#x, %v", tt.digits, n, ok, tt.n, tt.ok)
		}
	}
}
