package input

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/page"
	"github.com/symfilter/symfilter/internal/pagetest"
)

// A page must show time and level before each line of a record's texts.
func TestPagesOfRecords(t *testing.T) {
	const (
		in = `{"time":"2026-11-22T07:00:00Z","level":"error","msg":"a <b>","stack":"x\n\ny","n":1}
{"ts":1732270000.5,"msg":"number","level":"a\nb","date":"\u001b[31m"}
{"msg":"none"}
{"level":"info","t":1}
`
		want = `2026-11-22T07:00:00Z error a <b>
2026-11-22T07:00:00Z error x
2026-11-22T07:00:00Z error 
2026-11-22T07:00:00Z error y
number
none
{"level":"info","t":1}
`
	)
	got, _ := pageText(t, JSON, in, nil)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// pageText returns the text of a log's page, and the page.
func pageText(t *testing.T, format Format, in string, chunks *rand.Rand) (string, *pagetest.Page) {
	t.Helper()
	printer := page.New("log")
	out := envelope(t, format, filter.Options{Printer: printer}, in, chunks)
	p, err := pagetest.Parse(printer.AppendRest([]byte(out)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := p.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text, p
}

func TestNoFieldOfAnEnvelopeIsMarkup(t *testing.T) {
	for _, s := range []string{"<b>", `"><img>`, "'<script>", "&lt;", "</pre></main>", "\x01\x04", "\u202e<i>", "\xff<"} {
		quoted := strings.TrimPrefix(strings.TrimSuffix(strconv.Quote(s), `"`), `"`)
		for format, in := range map[Format]string{
			CRI:    "2026-11-22T07:00:00Z stdout F:" + s + " " + s + "\n",
			Docker: `{"log":"` + quoted + `\n","stream":"stdout","attrs":{"` + quoted + `":"` + quoted + `"},"time":"` + quoted + `"}` + "\n",
			JSON:   `{"msg":"` + quoted + `","` + quoted + `":"` + quoted + `"}` + "\n",
		} {
			printer := page.New(s)
			out := envelope(t, format, filter.Options{Printer: printer}, in, nil)
			p, err := pagetest.Parse(printer.AppendRest([]byte(out)))
			if err != nil {
				t.Errorf("%v, %q: %v", format, s, err)
			} else if text, err := p.Text(); err != nil || text == "" {
				t.Errorf("%v, %q: the text is %q, %v", format, s, text, err)
			}
		}
	}
}

// Each line of a page must have the time and the stream of its record. For CRI, the page's text
// must equal the text output.
func TestPagesOfContainers(t *testing.T) {
	const (
		stdout = "2026-11-22T07:00:00Z stdout "
		stderr = "2026-11-22T07:00:01Z stderr "
		in     = stdout + "F {{{module:0:a:elf:aa00}}}\n" + stdout + "F {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" +
			stderr + "F a <b>\n" + stdout + "F {{{bt:0:0x1100}}}\n" + stdout + "F {{{bt:1:0x1200}}}\n" + stderr + "F \n" + stdout + "P pla\n" + stdout + "F in\n" +
			stdout + "F {{{hexdict: A: 0x1100}}}\nbare\n"
		docker = `{"log":"{{{module:0:a:elf:aa00}}}\n","stream":"stdout","time":"2026-11-22T07:00:00Z"}
{"log":"{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n","stream":"stdout","time":"2026-11-22T07:00:00Z"}
{"log":"a <b>\n","stream":"stderr","time":"2026-11-22T07:00:01Z"}
{"log":"{{{bt:0:0x1100}}}\n","stream":"stdout","time":"2026-11-22T07:00:00Z"}
{"log":"{{{bt:1:0x1200}}}\n","stream":"stdout","time":"2026-11-22T07:00:00Z"}
{"log":"\n","stream":"stderr","time":"2026-11-22T07:00:01Z"}
{"log":"plain\n","stream":"stdout","time":"2026-11-22T07:00:00Z"}
{"log":"{{{hexdict: A: 0x1100}}}\n","stream":"stdout","time":"2026-11-22T07:00:00Z"}
bare
`
	)
	want := strings.Replace(envelope(t, CRI, filter.Options{}, in, nil), stdout+"P pla\n"+stdout+"F in\n", stdout+"F plain\n", 1)
	for _, tt := range []struct {
		format Format
		in     string
	}{{CRI, in}, {Docker, docker}} {
		for _, r := range []*rand.Rand{nil, rand.New(rand.NewPCG(1, 2))} {
			got, p := pageText(t, tt.format, tt.in, r)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%v: (-want +got)\n%s", tt.format, diff)
			}
			if n := len(p.Find("details", "b o")); n != 1 {
				t.Errorf("%v: %d backtraces, want 1", tt.format, n)
			}
		}
	}
}
