package prefixmap

import "testing"

func TestPlace(t *testing.T) {
	maps := Maps{{Old: "/build/", New: "/srv/"}, {Old: "/build/lib", New: "/never"}, {Old: "/out", New: "/here"}}
	for _, tt := range []struct {
		name, sysroot string
		want          string
	}{
		{"/lib/a.so", "", "/lib/a.so"},
		{"/build/lib/a.so", "", "/srv/lib/a.so"},
		{"/output/a.so", "", "/hereput/a.so"},
		{"/lib/a.so", "/tree", "/tree/lib/a.so"},
		{"/../../etc/a.so", "/tree", "/tree/etc/a.so"},
		{"lib/a.so", "/tree", "/tree/lib/a.so"},
		{"/build/lib/a.so", "/tree", "/srv/lib/a.so"},
		{"a.so", "", "a.so"},
	} {
		if got := maps.Place(tt.name, tt.sysroot); got != tt.want {
			t.Errorf("%s below %q: got %s, want %s", tt.name, tt.sysroot, got, tt.want)
		}
	}
}
