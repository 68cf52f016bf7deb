package filter

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/symbolize"
)

var update = flag.Bool("update", false, "write what comes out into the scripts")

// TestScripts runs testdata/script/*.txtar, each of which shows one behaviour. The file "in" is the
// log, filtered with the options on the "options:" line of the comment; "out" is the expected
// output, and "diagnostics" are the expected diagnostics. The escapes \e, \a, \r, \0 and \xff are
// bytes; \ at the end of a line removes the line end.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	ar, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var in, wantOut, wantDiagnostics string
	for _, f := range ar.Files {
		switch f.Name {
		case "in":
			in = unescape(string(f.Data))
		case "out":
			wantOut = string(f.Data)
		case "diagnostics":
			wantDiagnostics = string(f.Data)
		default:
			t.Fatalf("%s: what is %q?", file, f.Name)
		}
	}
	o := scriptOptions(t, string(ar.Comment))
	out, diagnostics := filterString(t, o, in, nil)
	if *update {
		ar.Files = []txtar.File{{Name: "in", Data: ar.Files[0].Data}, {Name: "out", Data: []byte(escapeText(out))}}
		if diagnostics != "" {
			ar.Files = append(ar.Files, txtar.File{Name: "diagnostics", Data: []byte(diagnostics)})
		}
		if err := os.WriteFile(file, txtar.Format(ar), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(escapeText(out), wantOut); d != "" {
		t.Errorf("out (-got +want):\n%s", d)
	}
	if d := cmp.Diff(diagnostics, wantDiagnostics); d != "" {
		t.Errorf("diagnostics (-got +want):\n%s", d)
	}
	for seed := range uint64(20) {
		if got, _ := filterString(t, o, in, rand.New(rand.NewPCG(seed, 0))); got != out {
			t.Fatalf("chunking %d changes what comes out:\n%s", seed, cmp.Diff(got, out))
		}
	}
}

// filterString filters a log as one block or, if r is not nil, in blocks of random sizes.
func filterString(t *testing.T, o Options, in string, r *rand.Rand) (out, diagnostics string) {
	t.Helper()
	var b, s bytes.Buffer
	o.Diagnose = func(d Diagnostic) { fmt.Fprintf(&s, "%d:%d: %s\n", d.Line, d.Byte, d.Message) }
	f := New(&b, o)
	for rest := in; rest != ""; {
		n := len(rest)
		if r != nil {
			n = min(n, 1+r.IntN(1+r.IntN(40)))
		}
		if _, err := io.WriteString(f, rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	checkOutcomes(t, f.Stats())
	return b.String(), s.String()
}

// checkOutcomes fails the test unless the sums of s.Outcomes equal the totals of resolved,
// unresolved and pending addresses.
func checkOutcomes(t *testing.T, s Stats) {
	t.Helper()
	var resolved, unresolved, pending int64
	for _, n := range s.Outcomes {
		resolved += n[ResultResolved] + n[ResultSymbolOnly]
		pending += n[ResultPending]
		for _, n := range n[ResultNoSymbol:] {
			unresolved += n
		}
	}
	if resolved != s.Resolved || unresolved != s.Unresolved || pending != s.Pending {
		t.Errorf("outcomes of %d resolved addresses, %d unresolved ones, %d pending: got %+v", resolved, unresolved, pending, s)
	}
}

func scriptOptions(t *testing.T, comment string) Options {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	_, line, _ := strings.Cut(comment, "options:")
	line, _, _ = strings.Cut(line, "\n")
	for _, word := range strings.Fields(line) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "color":
			o.Color = map[string]Color{"always": ColorAlways, "never": ColorNever}[value]
		case "json":
			o.Output = JSON
		case "terminal":
			o.Terminal = true
		case "process-key":
			re, err := ProcessKey(value)
			if err != nil {
				t.Fatal(err)
			}
			o.ProcessKey = re
		case "omit-module-lines":
			o.ModuleLines = ModuleLinesNone
		case "module-lines":
			o.ModuleLines = map[string]ModuleLines{"full": ModuleLinesFull, "short": ModuleLinesShort, "none": ModuleLinesNone, "raw": ModuleLinesRaw}[value]
		case "width":
			fmt.Sscan(value, &o.Display.Width)
		case "fold":
			o.Display.Fold = true
			o.Display.Own = new(findings.Own)
		case "own", "system":
			own, err := findings.NewOwn([]findings.OwnRule{{Own: key == "own", Glob: value}})
			if err != nil {
				t.Fatal(err)
			}
			o.Display.Own = own
		case "short-names":
			o.Display.ShortNames = true
		case "clean-paths":
			o.Paths.Clean = true
		case "basenames":
			o.Paths.Basenames = true
		case "prefix-map":
			from, to, _ := strings.Cut(value, ":")
			o.Paths.Map = append(o.Paths.Map, buildid.PrefixMap{Old: from, New: to})
		default:
			t.Fatalf("option %q?", word)
		}
	}
	return o
}

var patient = Patience{Local: time.Minute, Servers: time.Minute}

// testSymbolizer returns a symbolizer with the debug files of testdata/debug.
func testSymbolizer(t testing.TB) *symbolize.Symbolizer {
	t.Helper()
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return s
}

var escapes = strings.NewReplacer(`\e`, "\x1b", `\r`, "\r", `\a`, "\a", `\0`, "\x00", `\xff`, "\xff", `\x9b`, "\x9b", `\x7f`, "\x7f", "\\\n", "")

func unescape(s string) string { return escapes.Replace(s) }

func escapeText(s string) string {
	s = strings.NewReplacer("\x1b", `\e`, "\r", `\r`, "\a", `\a`, "\x00", `\0`, "\xff", `\xff`).Replace(s)
	if s != "" && !strings.HasSuffix(s, "\n") {
		s += "\\\n"
	}
	return s
}
