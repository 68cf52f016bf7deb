package filter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/markup"
)

var testID, _ = buildid.Parse([]byte("a0a1a2a3a4a5a6a7"))

// A log written by a markup.Writer must have the same output as the text and elements that it was
// made from. The Writer escapes text that looks like markup.
func TestMarkupOfALogIsThatLog(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for seed := range uint64(100) {
		g := logtest.NewGenerator(seed)
		var text, written strings.Builder
		f, w := New(&text, o), markup.NewWriter(&written)
		for _, s := range []markup.Sink{f, w} {
			g := logtest.NewGenerator(seed)
			s.Element(markup.Module{Name: "a.out", BuildID: testID})
			s.Element(markup.MMap{Addr: 0x500000, Size: 0x2000, Rel: 0x400000})
			s.Text([]byte("\n"))
			for range 50 {
				if err := s.Text([]byte(logtest.Pick(g, g.Text, g.Presented, g.Broken)())); err != nil {
					t.Fatal(err)
				}
				if g.IntN(3) == 0 {
					s.Text([]byte("\n"))
				}
				if g.IntN(3) == 0 {
					s.Element(logtest.Pick[markup.Element](g, markup.Symbol{Name: "_Z1fv"}, markup.BT{Frame: 3, Addr: 0x50017a}, markup.DumpFile{Type: "a", Name: "b"}))
				}
			}
		}
		f.Close()
		w.Close()
		got, _ := filterString(t, o, written.String(), g.Rand)
		if d := cmp.Diff(got, text.String()); d != "" {
			t.Fatalf("seed %d: (-filtered again +sink)\n%s", seed, d)
		}
	}
}
