package cli

import (
	"strings"
	"testing"
)

func TestLayoutOfFlags(t *testing.T) {
	type values struct {
		on   bool
		word string
		list []string
	}
	var b strings.Builder
	for _, f := range []Flag[values]{
		{Name: "tree", Metavar: "WHOM", Preset: "none", Text: "short", Field: func(v *values) any { return &v.word }},
		{Name: "quiet", Short: "q", Text: "no diagnostics", Field: func(v *values) any { return &v.on }},
		{Name: "color", Metavar: "WHEN", Alone: "always", Text: "colours", Field: func(v *values) any { return &v.word }},
		{Name: "debug-file-directory", Metavar: "DIR", Text: "fits", Field: func(v *values) any { return &v.list }},
		{Name: "debug-file-directory", Metavar: "DIR", Text: "too long for the rest of the line, by far, as anybody can see", Field: func(v *values) any { return &v.word }},
		{Name: "output", Metavar: "FORM", Text: "text", More: "and a second sentence that makes this longer than a line is wide", Field: func(v *values) any { return &v.word }},
	} {
		flagLine(&b, f.Spelling(), f.FullText()+f.remarks())
	}
	want := `      --tree WHOM          short (default none)
  -q, --quiet              no diagnostics
      --color[=WHEN]       colours
      --debug-file-directory DIR  fits (repeatable)
      --debug-file-directory DIR
                           too long for the rest of the line, by far, as anybody
                           can see
      --output FORM        text; and a second sentence that makes this longer
                           than a line is wide
`
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A comma inside a flag's value must be in the code; a comma after the value must not.
func TestValuesWithCommasAreCode(t *testing.T) {
	const want = "`--dialects=auto,stack-words`, or (`--gate=Leak_*,InvalidFree`)."
	if got := markdownLine(strings.ReplaceAll(want, "`", "")); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
