package sgr

import "testing"

func TestColoursBecomeBasic(t *testing.T) {
	for _, tt := range []struct {
		color Color
		want  int
		ok    bool
	}{
		{Default, 0, false},
		{Black, 0, true},
		{Cyan, 6, true},
		{Cyan.Bright(), 14, true},
		{Indexed(1), 1, true},
		{Indexed(15), 15, true},
		{Indexed(16), 0, true},
		{Indexed(196), 9, true},  // 0xff0000
		{Indexed(231), 15, true}, // 0xffffff
		{Indexed(232), 0, true},
		{Indexed(244), 8, true}, // 0x808080
		{RGB(0x10, 0xf0, 0x20), 10, true},
		{RGB(0xc0, 0x05, 0x05), 1, true},
	} {
		if got, ok := tt.color.Basic(); got != tt.want || ok != tt.ok {
			t.Errorf("%#x: got %d, %v; want %d, %v", uint32(tt.color), got, ok, tt.want, tt.ok)
		}
	}
}
