package dwarf

import (
	"slices"
	"testing"
)

func TestLoneMapsAreMaps(t *testing.T) {
	var m unitMap
	check := func(want ...uint64) {
		t.Helper()
		var got []uint64
		for u := range m.all() {
			got = append(got, u.off)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || m.len() != len(want) {
			t.Errorf("got %d of %d, want %d", got, m.len(), want)
		}
		for off := range uint64(4) {
			if u := m.get(off); (u != nil) != slices.Contains(want, off) || u != nil && u.off != off {
				t.Errorf("%d: got %v, want one of %d", off, u, want)
			}
		}
	}
	check()
	m.put(&unit{off: 0})
	check(0)
	m.put(&unit{off: 1})
	m.put(&unit{off: 2})
	check(0, 1, 2)
	m.drop(0)
	m.drop(2)
	check(1)
	m.put(&unit{off: 3})
	check(1, 3)
}
