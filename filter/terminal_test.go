package filter

import (
	"regexp"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
)

// onTerminal matches text that is harmless on a terminal: printable characters, TAB, line ends and
// colours.
var onTerminal = regexp.MustCompile(`^(?:[^\x00-\x1f\x7f\x{80}-\x{9f}\x{2028}\x{2029}\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2060}-\x{2069}\x{feff}\x{61c}\x{fffd}]|\x{fffd}|\t|\r?\n|\x1b\[[0-9;:]{0,64}m)*$`)

func checkTerminal(t *testing.T, s string) {
	t.Helper()
	if strings.ToValidUTF8(s, "") != s || !onTerminal.MatchString(s) {
		t.Fatalf("this reaches the terminal: %q", s)
	}
}

func TestTerminalSeesNoControls(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient, Terminal: true}
	for seed := range uint64(400) {
		g := logtest.NewGenerator(seed)
		var log strings.Builder
		for range 60 {
			log.WriteString(logtest.Pick(g, logtest.Pick(g, logtest.Hostile...), g.Text(), g.Presented(), g.Broken(), g.Contextual(), "\n", "\r\n",
				"{{{module:2:"+logtest.Pick(g, logtest.Hostile...)+":elf:cc}}}", "{{{symbol:"+logtest.Pick(g, logtest.Hostile...)+"}}}", "{{{other:"+logtest.Pick(g, logtest.Hostile...)+"}}}", "{{{hexdict:"+logtest.Pick(g, logtest.Hostile...)))
		}
		for i, color := range []Color{ColorAlways, ColorNever, ColorAlways, ColorNever} {
			if o.Color, o.Display = color, (Display{}); i >= 2 {
				o.Display = Display{Own: new(findings.Own), Width: 20 + g.IntN(80), Fold: true}
			}
			whole, _ := filterString(t, o, log.String(), nil)
			checkTerminal(t, whole)
			if cut, _ := filterString(t, o, log.String(), g.Rand); cut != whole {
				t.Fatalf("seed %d: blocks change what reaches the terminal: %q, %q", seed, cut, whole)
			}
		}
	}
}

// Lines that are too long to be interpreted are printed in parts. In these parts, too, control
// characters must be escaped for a terminal.
func TestTerminalSeesNoControlsOfLongLines(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := Options{Terminal: true, Color: ColorAlways}
	g := logtest.NewGenerator(1)
	line := strings.Repeat("é\x1b]0;title\a\u202e{{{pc:0x1}}}", 60000)
	want := ""
	for _, r := range []bool{false, true, true} {
		var b strings.Builder
		f := New(&b, o)
		for rest := line + "\nend\n"; rest != ""; {
			n := len(rest)
			if r {
				n = min(n, 1+g.IntN(100000))
			}
			f.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		f.Close()
		checkTerminal(t, b.String())
		if want == "" {
			want = b.String()
		} else if b.String() != want {
			t.Error("blocks change what reaches the terminal")
		}
	}
}

// FuzzTerminal checks that only text and colour reach a terminal.
func FuzzTerminal(f *testing.F) {
	f.Add([]byte(strings.Join(logtest.Hostile, "{{{symbol:x}}}")), true)
	f.Add([]byte(strings.Join(logtest.Hostile, "\n")), false)
	f.Add([]byte("{{{module:0:"+logtest.Hostile[0]+":elf:aa}}}\n{{{mmap:0x1000:0x1000:load:0:r:0x0}}}\n{{{bt:0:0x1000}}}"), true)
	s := testSymbolizer(f)
	f.Fuzz(func(t *testing.T, log []byte, colour bool) {
		if len(log) > 64<<10 {
			return
		}
		defer fuzztest.Watch(t, log)()
		o := Options{Symbolizer: s, Patience: patient, Terminal: true, Color: ColorNever}
		if colour {
			o.Color = ColorAlways
		}
		if len(log)%2 == 1 {
			o.Display = Display{Own: new(findings.Own), Width: 20 + len(log)%100, Fold: true}
		}
		out, _ := filterString(t, o, string(log), nil)
		checkTerminal(t, out)
		checkFlow(t, log, o)
	})
}
