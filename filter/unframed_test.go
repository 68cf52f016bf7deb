package filter

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A run without debug files locates frames; a second run, without the module elements, names them.
// The output must equal the output of a single run with debug files and module elements, except
// where want differs.
func TestWhatWasLocatedIsNamedLater(t *testing.T) {
	data, err := os.ReadFile("../testdata/crash.log")
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Join(strings.SplitAfter(string(data), "\n")[4:32], "")
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../testdata/debug")}})
	defer s.Close()
	none := symbolize.New(symbolize.Options{})
	defer none.Close()
	with := Options{Symbolizer: s, Patience: Patience{Local: time.Minute}}
	for _, test := range []struct{ name, text, want string }{
		{"code", "at {{{pc:0x00007ffff7fbd917:pc}}}", ""},
		{"return address", "at {{{pc:0x00007ffff7fbd91b:ra}}} of x", ""},
		{"code that only a symbol names", "at {{{pc:0x555555556125:pc}}}", ""},
		{"variable", "last shelf {{{data:0x0000555555558120}}}", ""},
		{"member", "last shelf in {{{data:0x0000555555558158}}}, then", ""},
		{"two on a line", "{{{data:0x0000555555558158}}} by {{{pc:0x00007ffff7fbd917:pc}}}", ""},
		{"directly after other text", "pc={{{pc:0x00007ffff7fbd917:pc}}},data=[{{{data:0x0000555555558158}}}]", ""},
		{"frame in a sentence", "at {{{bt:1:0x00007ffff7fbd917:pc}}} of {{{data:0x0000555555558158}}}", ""},
		{"frame", "{{{bt:1:0x00007ffff7fbd917:pc}}}", ""},
		{"symbol", "hook {{{symbol:_ZN9inventory7on_exitEv}}} not run", ""},
		{"no such file", "at {{{pc:0x00007ffff7df3249:pc}}} of it", ""},
		{"no module", "at {{{pc:0x10}}}, {{{data:0x10}}}", ""},
		{
			"code as data: its file and line are known, too", "hook {{{data:0x00007ffff7fbd917}}}",
			"hook Pool<ledger::Order, 64ul>::next(unsigned long) const[/src/inventory/pool.h:33] inlined into " +
				"long ledger::(anonymous namespace)::sum<Pool<ledger::Order, 64ul>>(Pool<ledger::Order, 64ul> const&, unsigned int)[/src/inventory/ledger.cc:13] inlined into " +
				"ledger::Book::total(unsigned int) const[/src/inventory/ledger.cc:27]\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			located := appended(Options{Symbolizer: none, Dialects: Dialects{None: true}}, modules, test.text+"\n")
			want := test.want
			if want == "" {
				want = appended(with, modules, test.text+"\n")
			}
			if diff := cmp.Diff(want, appended(with, "", located)); diff != "" {
				t.Errorf("located as %q (-one run +two):\n%s", located, diff)
			}
			raw := with
			raw.Dialects.KeepRaw = true
			if got := appended(raw, "", located); strings.Contains(test.text, "pc:0x00007ffff7fbd917") && !strings.Contains(got, "libledger.so+0x1917") {
				t.Errorf("kept raw: %q", got)
			}
			raw.Dialects = Dialects{Elements: true}
			if got := appended(raw, "", located); !strings.Contains(test.text, "{bt") && got != located {
				t.Errorf("as elements: %q, want %q", got, located)
			}
			if got := outcome(with, located); !strings.Contains(test.text, "symbol:") && got.Resolved+got.Unresolved != strings.Count(located, "(BuildId: ") {
				t.Errorf("%q: %+v, want one address for each build ID", located, got)
			}
		})
	}
}

// appended returns the output of Lines for text, in a Context with the modules.
func appended(o Options, modules, text string) string {
	l, c := NewLines(o), new(Context)
	l.Append(nil, c, []byte(modules))
	out, _ := l.Append(nil, c, []byte(text))
	return string(out)
}

func outcome(o Options, text string) Outcome {
	_, got := NewLines(o).Append(nil, new(Context), []byte(text))
	return got
}
