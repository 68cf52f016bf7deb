package valgrind

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// fixtures maps the objects of the scripts' reports to ELF files.
func fixtures(t testing.TB) []buildid.PrefixMap {
	t.Helper()
	var maps []buildid.PrefixMap
	for old, file := range map[string]string{
		"/lib/prog.so":  "../symbolize/testdata/arch/x86_64.elf",
		"/lib/other.so": "../internal/object/testdata/whole.elf",
		"/bin/fixed":    "../internal/dwarf/testdata/tiny/gcc2.elf",
	} {
		path, err := filepath.Abs(filepath.FromSlash(file))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
		maps = append(maps, buildid.PrefixMap{Old: old, New: path})
	}
	return maps
}

// markupOf returns the markup of a report that is written in blocks of this size.
func markupOf(t testing.TB, input []byte, block int, o Options) string {
	t.Helper()
	var out bytes.Buffer
	dst := markup.NewWriter(&out)
	w := NewMarkup(dst, o)
	for len(input) > 0 {
		n := min(block, len(input))
		if _, err := w.Write(input[:n]); err != nil {
			t.Fatal(err)
		}
		input = input[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The markup of each script's report, and the diagnostics, must be as in the script. If the result
// after ReadAhead is different, the script has that result, too.
func TestMarkupReadsLikeTheReport(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "markup", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			input := a.Files[0].Data
			if a.Files[0].Name == "quoted.xml" {
				input = unquoted(t, input)
			}
			var diagnostics []string
			o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: fixtures(t), Diagnose: func(s string) { diagnostics = append(diagnostics, s) }}}
			answer := func() string {
				text := markupOf(t, input, len(input), o)
				for _, s := range diagnostics {
					for _, m := range o.PrefixMap {
						s = strings.ReplaceAll(s, m.New, m.Old)
					}
					text += "diagnostic: " + s + "\n"
				}
				diagnostics = nil
				return text
			}
			got := []txtar.File{a.Files[0], {Name: "markup", Data: []byte(answer())}}
			if in := markupOf(t, input, 5, o); !strings.HasPrefix(string(got[1].Data), in) {
				t.Errorf("in blocks of 5 bytes (-whole +blocks):\n%s", cmp.Diff(string(got[1].Data), in))
			}
			diagnostics = nil
			if o.Ahead, err = ReadAhead(bytes.NewReader(input), o); err != nil {
				t.Fatal(err)
			}
			if ahead := answer(); ahead != string(got[1].Data) {
				got = append(got, txtar.File{Name: "ahead", Data: []byte(ahead)})
			}
			if slices.EqualFunc(a.Files, got, func(a, b txtar.File) bool { return a.Name == b.Name && bytes.Equal(a.Data, b.Data) }) {
				return
			}
			out := txtar.Format(&txtar.Archive{Comment: a.Comment, Files: got})
			if os.Getenv("UPDATE") == "1" {
				if err := os.WriteFile(name, out, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			t.Errorf("got another script (-want +got):\n%s", cmp.Diff(string(txtar.Format(a)), string(out)))
		})
	}
}

// The markup must contain all text of a report. Text that the report repeats may occur once.
func TestTextLosesNothing(t *testing.T) {
	scripts(t, func(t *testing.T, input []byte) {
		text := markupOf(t, input, len(input), Options{})
		plain := strings.ReplaceAll(text, ",", "") // without thousands separators
		needs := func(in string, what []byte) {
			for line := range bytes.Lines(what) {
				line = appendClean(nil, bytes.TrimSpace(line))
				if line := strings.ReplaceAll(string(line), "{{{", "{{{symbol:{{{}}}"); !strings.Contains(text, line) && !strings.Contains(plain, line) {
					t.Errorf("%s: %q is missing in\n%s", in, line, text)
				}
			}
		}
		r := NewReader(func(rec *Record) error {
			switch rec.Name {
			case "protocolversion", "protocoltool", document, "/" + document:
				return nil
			}
			needs(rec.Name, rec.Text)
			for _, it := range rec.Items {
				needs(rec.Name+" "+it.Name, it.Text)
			}
			for _, f := range rec.Frames {
				if f.RawIP == nil {
					needs("ip", fmt.Appendf(nil, " 0x%016x ", f.IP))
				}
				for _, what := range [][]byte{f.RawIP, base(f.Obj), f.Fn, f.Dir, f.File} {
					needs("frame", what)
				}
			}
			return nil
		})
		r.Write(input)
		r.Close()
	})
}

func TestCountsOfErrorsDoNotRepeatLongNames(t *testing.T) {
	const pair = "<errorcounts><pair><count>1</count><unique>0x1</unique></pair></errorcounts>"
	for size, want := range map[int]string{maxPlace: "Race in ffff", maxPlace + 1: "Race 0x1\n"} {
		input := "<valgrindoutput><error><unique>0x1</unique><kind>Race</kind><stack>"
		for ; size > 0; size -= min(size, 1000) {
			input += "<frame><ip>0x10</ip><fn>" + strings.Repeat("f", min(size, 1000)) + "</fn></frame>"
		}
		text := markupOf(t, []byte(input+"</stack></error>"+pair+"</valgrindoutput>"), 1<<20, Options{})
		if !strings.Contains(text, "  1  "+want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
}
