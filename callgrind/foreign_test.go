package callgrind

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// given collects the lines that a Report passes to Options.Foreign.
type given struct {
	bytes.Buffer
	closed int
}

func (g *given) Close() error { g.closed++; return nil }

// If a log is mistaken for a profile, no line may be lost. Lines that are not of a profile must be
// passed on unchanged, before the table, or at their position in markup.
func TestLinesThatAreNotOfAProfileAreGivenOn(t *testing.T) {
	const header = "# callgrind format\nevents: Ir\nfn=f\n"
	long := strings.Repeat("x", maxLine)
	tests := []struct{ name, in, want, diagnostics string }{
		{"words", header + "started\n1 5\n  two words\r\n", "started\n  two words\r\n", `line 4 is not a line of a profile and is printed as a line of a log: "started"` + "\n1 more line has the same defect as line 4\n"},
		{"the last without an end", header + "1 5\nstopped", "stopped\n", `line 5 is not a line of a profile and is printed as a line of a log: "stopped"` + "\n"},
		{"keys and values", header + "1 5\nlevel=info msg=x\ninfo: x\n2 1\nerror: y\n", "level=info msg=x\ninfo: x\nerror: y\n", `line 5 is not a line of a profile and is printed as a line of a log: "level=info msg=x"` + "\n2 more lines have the same defect as line 5\n"},
		{"a key that no header has", "# callgrind format\nlevel: info\nevents: Ir\nfn=f\n1 1\n", "level: info\n", `line 2 is not a line of a profile and is printed as a line of a log: "level: info"` + "\n"},
		{"times", header + "2026-11-22 02:56:30 started\n02:56:31 x\n12 lines read\n1 5\n", "2026-11-22 02:56:30 started\n02:56:31 x\n12 lines read\n", `line 4 is not a line of a profile and is printed as a line of a log: "2026-11-22 02:56:30 started"` + "\n" + `line 6 has "lines", which is not a cost and counts as 0` + "\n" + `line 6 has "read", which is not a cost and counts as 0` + "\nline 6 has more costs than the profile has events; the surplus costs are dropped\n2 more lines have the same defect as line 4\n"},
		{"a long one", header + "1 5\n" + long + "yyy\nend\n", long + "yyy\nend\n", `line 5 is not a line of a profile and is printed as a line of a log: "` + long[:60] + `"` + "\n1 more line has the same defect as line 5\n"},
		{"none", header + "1 5\n", "", ""},
	}
	for _, tt := range tests {
		for _, block := range []int{1, 7, 1 << 21} {
			if block < 7 && len(tt.in) > maxLine {
				continue
			}
			var table bytes.Buffer
			var lines given
			diagnostics := ""
			r := NewReport(&table, Options{ReportOptions: symbolize.ReportOptions{Diagnose: func(s string) { diagnostics += s + "\n" }}, Foreign: &lines})
			inPieces(t, r, tt.in, block)
			if table.Len() > 0 {
				t.Errorf("%s: the table is printed before the end", tt.name)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(lines.String(), tt.want); d != "" || lines.closed != 1 {
				t.Errorf("%s, in blocks of %d: closed %d times (-got +want)\n%.2000s", tt.name, block, lines.closed, d)
			}
			if d := cmp.Diff(diagnostics, tt.diagnostics); d != "" {
				t.Errorf("%s, in blocks of %d: diagnostics (-got +want)\n%.2000s", tt.name, block, d)
			}
			if !strings.Contains(table.String(), " f") {
				t.Errorf("%s: no function f in the table\n%s", tt.name, table.String())
			}
			if got := translated(t, tt.in, block); !strings.Contains(got, strings.TrimSuffix(tt.want, "\n")) && strings.Count(tt.want, "\n") == 1 {
				t.Errorf("%s: markup lacks %.60q:\n%.2000s", tt.name, tt.want, got)
			}
		}
	}
}

func inPieces(t *testing.T, w io.Writer, in string, block int) {
	t.Helper()
	for in != "" {
		n := min(block, len(in))
		if _, err := io.WriteString(w, in[:n]); err != nil {
			t.Fatal(err)
		}
		in = in[n:]
	}
}

// translated returns a profile rendered as markup.
func translated(t *testing.T, in string, block int) string {
	t.Helper()
	var b bytes.Buffer
	m := markup.NewWriter(&b)
	w := NewMarkup(m, Options{})
	inPieces(t, w, in, block)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m.Close()
	return b.String()
}

// Foreign lines must be passed on when they are read, and not be kept.
func TestLinesAreGivenOnAtOnce(t *testing.T) {
	var lines given
	r := NewReport(io.Discard, Options{Foreign: &lines})
	io.WriteString(r, "# callgrind format\nversion: 1\n")
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		io.WriteString(r, line)
		if !bytes.HasSuffix(lines.Bytes(), []byte(line)) {
			t.Fatalf("%q is not out", line)
		}
	}
	line := []byte("another line\n")
	if n := testing.AllocsPerRun(100, func() { r.Write(line); lines.Reset() }); n != 0 {
		t.Errorf("%v allocations for a line", n)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
