package sgr

import "testing"

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		seq, params string
		ok          bool
	}{
		{"\x1b[m", "", true},
		{"\x1b[1;32m", "1;32", true},
		{"\x1b[38:2::1:2:3m", "38:2::1:2:3", true},
		{"", "", false},
		{"\x1b[1", "", false},
		{"\x1b[1mm", "", false},
		{"\x1b[1 m", "", false},
		{"\x1b[2K", "", false},
		{"\x1b[?1m", "", false},
		{"[1m", "", false},
	} {
		params, ok := parse([]byte(tt.seq))
		if string(params) != tt.params || ok != tt.ok {
			t.Errorf("%q: got %q %v, want %q %v", tt.seq, params, ok, tt.params, tt.ok)
		}
		if s := (State{Attrs: Bold}); !ok && s.Apply([]byte(tt.seq)) != s {
			t.Errorf("%q is no sequence, and changes the state", tt.seq)
		}
	}
}
