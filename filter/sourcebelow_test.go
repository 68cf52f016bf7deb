package filter

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/symbolize"
)

// numberedSource returns lines that look like markup and like a frame.
func numberedSource(_ symbolize.Location, f *symbolize.Frame) symbolize.Snippet {
	s := symbolize.Snippet{First: f.Line, Verified: true}
	for range 2 {
		s.Lines = append(s.Lines, fmt.Appendf(nil, "\t%s {{{bt:0:0x1000:pc}}} #1 0x55d0c0de1234 in f (/bin/true+0x1234) (BuildId: c3f1b7c55)\x1b[1m\xff", f.File))
	}
	return s
}

// snippetLine matches a printed line whose end is a source line of numberedSource, a caret or an
// ellipsis. It also matches the text before the bar.
var snippetLine = regexp.MustCompile(`(?m)^.* \|(         *\^| {9}\S.*| \.\.\.)\r?\n`)

// In every dialect, source lines must only be added: without them, the output must equal the output
// without Paths.Source. A second run over the output must change nothing.
func TestSourceLinesAreOnlyAdded(t *testing.T) {
	added := 0
	logs := logtest.Samples(t, "../internal/dialect/testdata/*.txtar")
	for _, archive := range logtest.Archives(t, "testdata/script/*.txtar") {
		logs = append(logs, string(archive.Files[0].Data))
	}
	const module = "a.out+0x40017a) (BuildId: a0a1a2a3a4a5a6a7)"
	logs = append(logs,
		"==7==ERROR: AddressSanitizer: SEGV\n    #0 0x50017a  (/opt/"+module+"\n    #1 0x50017a  (/opt/"+module+"\nSUMMARY: AddressSanitizer: SEGV (/opt/"+module+"\n",
		"\x1b[31m10:00 ERR\x1b[0m #0 0x50017a in f (/opt/"+module+" x\r\n\x1b[31m10:00 ERR\x1b[0m #1 0x50017a in f (/opt/"+module+"\r\n")
	for i, log := range logs {
		o := resolvingDialects(t)
		o.Dialects.Whole = true
		want, _ := filterString(t, o, log, nil)
		o.Paths.Source = numberedSource
		got, _ := filterString(t, o, log, nil)
		if cut, _ := filterString(t, o, log, rand.New(rand.NewPCG(uint64(i), 7))); cut != got {
			t.Errorf("blocks change what comes out:\n%s", cmp.Diff(cut, got))
		}
		if twice, _ := filterString(t, o, got, nil); twice != got {
			t.Errorf("a filtered log changes:\n%s", cmp.Diff(got, twice))
		}
		added += strings.Count(got, `{{\x7bbt:0:0`)
		if without := snippetLine.ReplaceAllString(got, ""); without != want {
			t.Errorf("without source lines:\n%s", cmp.Diff(without, want))
		}
		for _, c := range []byte("\x1b\xff") {
			if !strings.Contains(log, string([]byte{c})) && strings.IndexByte(got, c) >= 0 {
				t.Errorf("byte %#x of a source file is printed", c)
			}
		}
	}
	if added == 0 {
		t.Error("no source line is printed")
	}
}
