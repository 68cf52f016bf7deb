package bundle

import "testing"

// TestShapes checks that a printed line keeps the known numbers and names, fixed words and offsets.
// All other text must be masked.
func TestShapes(t *testing.T) {
	k := known{
		numbers: []uint64{0x7f31c2a01153, 0x1153, 139851234},
		frames:  []uint64{1},
		ids:     []string{"3a0a920c3f1b7c55"},
		names:   []string{"libledger.so"},
	}
	for line, want := range map[string]string{
		"#1 0x7f31c2a01153 (libledger.so+0x1153)":      "#1 0x7f31c2a01153 (libledger.so+0x1153)",
		"#12 pc 0000000000001153 /b/libledger.so":      "#00 pc 0000000000001153 /x/libledger.so",
		"mylibledger.so libledger.so.5 libledger.so.":  "xxxxxxxxxxx.xx xxxxxxxxx.xx.0 libledger.so.",
		"libledger.so-x libledger.so+x libledger.so+7": "xxxxxxxxx.xx-x xxxxxxxxx.xx+x libledger.so+7",
		"(BuildId: 3A0A920C) BuildIds 3a0a92 3a0a920d": "(BuildId: 3A0A920C) xxxxxxxx 0x0x00 0x0x000x",
		"sp 0x7f31c2b00000 key 0xdeadbeef0 at 0x1153":  "sp 0x7f31c2b00000 xxx 0x000000000 at 0x1153",
		`{"address": 139851234, "n": 139851235}`:       `{"address": 139851234, "n": 000000000}`,
		"f+0x1a/0x40 f + 0x1154 g+22 +491701234567":    "x+0x1a/0x40 x + 0x1154 x+22 +000000000000",
		"me+22@example.com +0x123456789":               "xx+00@xxxxxxx.xxx +0x000000000",
		"Müller 日本 \x1b[1m\x00\tend":                   "xxxxxx xx .[0x.\txxx",
		"0x0123456789abcdef0 0x 0xg \xff":              "0x0000000000xxxxxx0 0x 0xx x",
		"in at from unknown function IN":               "in at from unknown function xx",
	} {
		if got := string(k.appendShape(nil, line)); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", line, got, want)
		}
	}
}
