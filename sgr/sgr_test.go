package sgr_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/sgr"
)

func esc(params string) []byte { return []byte("\x1b[" + params + "m") }

func TestApply(t *testing.T) {
	type state = sgr.State
	boldRed := state{Attrs: sgr.Bold, Foreground: sgr.Red}
	for _, tt := range []struct {
		name   string
		from   state
		params string
		want   state
	}{
		// Codes of the markup format.
		{"reset", boldRed, "0", state{}},
		{"bold", state{}, "1", state{Attrs: sgr.Bold}},
		{"black", state{}, "30", state{Foreground: sgr.Black}},
		{"red", state{}, "31", state{Foreground: sgr.Red}},
		{"green", state{}, "32", state{Foreground: sgr.Green}},
		{"yellow", state{}, "33", state{Foreground: sgr.Yellow}},
		{"blue", state{}, "34", state{Foreground: sgr.Blue}},
		{"magenta", state{}, "35", state{Foreground: sgr.Magenta}},
		{"cyan", state{}, "36", state{Foreground: sgr.Cyan}},
		{"white", state{}, "37", state{Foreground: sgr.White}},
		{"bold is kept across a colour change", boldRed, "34", state{Attrs: sgr.Bold, Foreground: sgr.Blue}},
		{"a colour is kept when bold begins", state{Foreground: sgr.Red}, "1", boldRed},

		// Combined.
		{"bold and green", state{}, "1;32", state{Attrs: sgr.Bold, Foreground: sgr.Green}},
		{"no parameter resets", boldRed, "", state{}},
		{"an empty parameter resets", boldRed, ";32", state{Foreground: sgr.Green}},
		{"an empty last parameter resets", state{}, "1;32;", state{}},
		{"reset in the middle", state{}, "1;0;32", state{Foreground: sgr.Green}},
		{"leading zeros", state{}, "01;031", boldRed},

		// Attributes.
		{"all attributes", state{}, "1;2;3;4;5;7;8;9", state{Attrs: sgr.Bold | sgr.Faint | sgr.Italic | sgr.Underline | sgr.Blink | sgr.Inverse | sgr.Conceal | sgr.Strike}},
		{"each ended", state{Attrs: 255}, "22;23;24;25;27;28;29", state{}},
		{"22 ends bold and faint, and no colour", state{Attrs: sgr.Bold | sgr.Faint, Foreground: sgr.Red}, "22", state{Foreground: sgr.Red}},
		{"rapid blinking", state{}, "6", state{Attrs: sgr.Blink}},
		{"doubly underlined", state{}, "21", state{Attrs: sgr.Underline}},
		{"curly underline", state{}, "4:3", state{Attrs: sgr.Underline}},
		{"underline ended by a sub-parameter", state{Attrs: sgr.Underline}, "4:0", state{}},
		{"an empty sub-parameter is 0", state{Attrs: sgr.Underline}, "4:", state{}},
		{"26 is no attribute's", state{Attrs: 255}, "26", state{Attrs: 255}},

		// More colours.
		{"bright foreground", state{}, "91", state{Foreground: sgr.Red.Bright()}},
		{"background", state{}, "44", state{Background: sgr.Blue}},
		{"bright background", state{}, "107", state{Background: sgr.White.Bright()}},
		{"default foreground", boldRed, "39", state{Attrs: sgr.Bold}},
		{"default background", state{Background: sgr.Red, Foreground: sgr.Blue}, "49", state{Foreground: sgr.Blue}},
		{"palette", state{}, "38;5;208;1", state{Attrs: sgr.Bold, Foreground: sgr.Indexed(208)}},
		{"palette background", state{}, "48;5;0", state{Background: sgr.Indexed(0)}},
		{"24 bits", state{}, "38;2;1;2;3;48;2;255;254;253", state{Foreground: sgr.RGB(1, 2, 3), Background: sgr.RGB(255, 254, 253)}},
		{"palette behind colons", state{}, "38:5:208;1", state{Attrs: sgr.Bold, Foreground: sgr.Indexed(208)}},
		{"24 bits behind colons", state{}, "38:2:1:2:3;4", state{Attrs: sgr.Underline, Foreground: sgr.RGB(1, 2, 3)}},
		{"24 bits behind colons and a colour space", state{}, "48:2::1:2:3", state{Background: sgr.RGB(1, 2, 3)}},
		{"24 bits behind colons with a tolerance", state{}, "48:2:0:1:2:3:4:5:6:7;1", state{Attrs: sgr.Bold, Background: sgr.RGB(1, 2, 3)}},
		{"empty arguments are 0", state{}, "38;2;;;9", state{Foreground: sgr.RGB(0, 0, 9)}},
		{"the underline's colour is no code of ours", state{}, "58;5;1;3", state{Attrs: sgr.Italic}},
		{"the underline's colour behind colons", state{}, "58:2::1:2:3;3", state{Attrs: sgr.Italic}},

		// Codes without a meaning.
		{"incomplete palette", boldRed, "38;5", boldRed},
		{"incomplete 24 bits", boldRed, "38;2;1;2", boldRed},
		{"incomplete 24 bits behind colons", boldRed, "38:2:1:2", boldRed},
		{"colour without arguments", boldRed, "38", boldRed},
		{"unknown colour space", boldRed, "38;9;1", boldRed},
		{"palette out of range", boldRed, "38;5;256", boldRed},
		{"24 bits out of range", boldRed, "38;2;1;2;256", boldRed},
		{"unknown code", boldRed, "53;10;1000", boldRed},
		{"huge number", boldRed, "99999999999999999999999999999999999999", boldRed},
		{"a number that would wrap around to 34", boldRed, "18446744073709551650", boldRed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.from.Apply(esc(tt.params))); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.params, diff)
			}
		})
	}
}

func TestAppendTransition(t *testing.T) {
	type state = sgr.State
	bold, blue := state{Attrs: sgr.Bold}, state{Foreground: sgr.Blue}
	boldBlue := bold.WithForeground(sgr.Blue)
	all := state{Attrs: 255, Foreground: sgr.RGB(255, 255, 255), Background: sgr.RGB(255, 255, 255)}
	for _, tt := range []struct {
		name     string
		from, to state
		want     string
	}{
		{"equal", boldBlue, boldBlue, ""},
		{"to the default", boldBlue, state{}, "0"},
		{"bold", state{}, bold, "1"},
		{"a colour", state{}, blue, "34"},
		{"both", state{}, boldBlue, "1;34"},
		{"a colour added to bold", bold, boldBlue, "34"},
		{"bold added to a colour", blue, boldBlue, "1"},
		{"another colour", boldBlue, bold.WithForeground(sgr.Cyan), "36"},
		{"bold ends", boldBlue, blue, "0;34"},
		{"the colour ends", boldBlue, bold, "0;1"},
		{"the background ends", state{Background: sgr.Red, Attrs: sgr.Bold}, bold, "0;1"},
		{"bold ends, the colour changes", boldBlue, state{Foreground: sgr.Red}, "0;31"},
		{"bright", state{}, state{Foreground: sgr.Red.Bright(), Background: sgr.White.Bright()}, "91;107"},
		{"more colours", state{}, state{Foreground: sgr.Indexed(208), Background: sgr.RGB(1, 2, 3)}, "38;5;208;48;2;1;2;3"},
		{"everything", state{Attrs: sgr.Bold}, all, "2;3;4;5;7;8;9;38;2;255;255;255;48;2;255;255;255"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := ""
			if tt.want != "" {
				want = string(esc(tt.want))
			}
			got := string(sgr.AppendTransition([]byte("x"), tt.from, tt.to))
			if got != "x"+want {
				t.Errorf("got %q, want %q", got, "x"+want)
			}
		})
	}
}

func TestTransitionsAllocateNothing(t *testing.T) {
	from := sgr.State{Attrs: sgr.Bold, Foreground: sgr.Red}
	buf, seq := make([]byte, 0, 64), esc("1;38;5;208")
	if n := testing.AllocsPerRun(100, func() {
		buf = sgr.AppendTransition(buf[:0], from, from.Apply(seq).WithForeground(sgr.Cyan))
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

// FuzzSGR derives two states from arbitrary parameters, and checks that the sequence of
// AppendTransition leads from the first to the second.
func FuzzSGR(f *testing.F) {
	for _, s := range []string{"", "0", "1;31", "22;39;49", "38;5;1", "38;2;1;2;3;4", "48:2::1:2:3", "4:0;58;5;1", "38;", ":::", "999999999"} {
		f.Add("1;34", s)
		f.Add(s, "0")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		watch(t, func() {
			from := sgr.State{}.Apply(esc(a))
			to := from.Apply(esc(b))
			seq := sgr.AppendTransition(nil, from, to)
			if got := from.Apply(seq); got != to {
				t.Errorf("from %+v by %q: got %+v, want %+v", from, seq, got, to)
			}
			if len(seq) > len("\x1b[0;1;2;3;4;5;7;8;9;38;2;255;255;255;48;2;255;255;255m") {
				t.Errorf("%q is too long", seq)
			}
			if (from == to) != (len(seq) == 0) {
				t.Errorf("from %+v to %+v: %q", from, to, seq)
			}
		})
	})
}

// watch fails the test if f takes too much time or memory.
func watch(t *testing.T, f func()) {
	t.Helper()
	defer fuzztest.Watch(t, t.Name())()
	f()
}
