package rtrace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// fixtures maps the files in the scripts' reports to ELF files.
func fixtures(t testing.TB) []buildid.PrefixMap {
	t.Helper()
	var maps []buildid.PrefixMap
	for old, file := range map[string]string{
		"/lib/prog64.so": "../symbolize/testdata/arch/x86_64.elf",
		"/lib/prog32.so": "../symbolize/testdata/arch/i386.elf",
		"/lib/thumb.so":  "../symbolize/testdata/arch/thumb.elf",
		"/lib/old.so":    "../internal/object/testdata/whole.elf",
		"/bin/fixed":     "../internal/dwarf/testdata/tiny/gcc2.elf",
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

// byPath opens the file at the path of a query, if the query has no build ID.
type byPath struct{}

func (byPath) Find(_ context.Context, q buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	if !q.ID.IsZero() {
		return nil, fs.ErrNotExist
	}
	return buildid.OpenRegular(q.Name, "test")
}

func newSymbolizer(t testing.TB) *symbolize.Symbolizer {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.ModulePath{}, byPath{}}})
	t.Cleanup(func() { s.Close() })
	return s
}

// translation returns the writer that a script selects by the name of its output and the flags of
// the command.
func translation(t testing.TB, name string, w io.Writer, o Options) io.WriteCloser {
	t.Helper()
	words := strings.Fields(name)
	p := &o.Processing
	var orders = map[string]Order{"size": BySize, "size-asc": BySizeAscending, "count": ByCount, "count-asc": ByCountAscending}
	for _, word := range words[1:] {
		flag, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseUint(value, 16, 64)
		switch flag {
		case "--leaks":
			p.Leaks = true
		case "--compress":
			p.Compress = true
		case "--sort":
			o, ok := orders[value]
			if !ok {
				t.Fatal(name)
			}
			p.Sort = o
		case "--context":
			p.Contexts = &n
		case "--resource":
			p.Resources = n
		case "--depth":
			depth := int(n)
			p.Depth = &depth
		case "--call-address":
			from, to, is := strings.Cut(value, "-")
			a, _ := hex([]byte(from))
			b, _ := hex([]byte(to))
			if !is {
				b = a + 1
			}
			p.Addresses = append(p.Addresses, Range{a, b})
		case "--include":
			p.Include, err = ReadIndexes(strings.NewReader(strings.ReplaceAll(value, ",", "\n")))
		case "--exclude":
			p.Exclude, err = ReadIndexes(strings.NewReader(strings.ReplaceAll(value, ",", "\n")))
		case "--max-memory":
			o.Memory = report.NewBudget(int64(n), nil)
		case "--basenames":
			o.Basenames = true
		default:
			t.Fatalf("%q: no such flag %s", name, word)
		}
		if err != nil && (flag == "--context" || flag == "--resource" || flag == "--include" || flag == "--exclude") {
			t.Fatal(name, err)
		}
	}
	switch words[0] {
	case "rtrace":
		return NewReport(w, o)
	case "folded":
		o.Output = Folded
		return NewReport(w, o)
	case "findings":
		s := findings.New(nil)
		return &finding{newFinder(s, "report", nil, o), s, w}
	case "json":
		o.Output = JSON
		return NewReport(w, o)
	case "elements":
		o.Elements = true
	case "markup":
	default:
		t.Fatalf("%q: no such form", name)
	}
	dst := markup.NewWriter(w)
	return closer{NewMarkup(dst, o), dst}
}

// A finding collects the findings of a report, and prints them in Close.
type finding struct {
	io.WriteCloser
	s *findings.Collection
	w io.Writer
}

func (f *finding) Close() error {
	err := f.WriteCloser.Close()
	for i, p := range f.s.Processes() {
		fmt.Fprintf(f.w, "process %d: %s pid %s %q complete %v\n", i, p.Tool, p.PID, p.Command, p.Complete)
	}
	for _, x := range f.s.All() {
		fmt.Fprintf(f.w, "%s/%s %q :%d, %d bytes in %d blocks, seen %v\n", x.Tool, x.Kind, x.Message, x.Ordinal, x.Bytes, x.Blocks, x.Seen)
		for _, t := range x.Traces {
			for _, fr := range t.Frames {
				fmt.Fprintf(f.w, "    0x%x %s (%s) %s:%d %s+0x%x inlined %v own %v\n", fr.Address, fr.Func, fr.Linkage, fr.File, fr.Line, fr.Object, fr.Offset, fr.Inlined, fr.IsOwn)
			}
		}
	}
	if f.s.Left > 0 {
		fmt.Fprintf(f.w, "%d left out\n", f.s.Left)
	}
	return err
}

// closer closes a translator and its sink.
type closer struct {
	io.WriteCloser
	dst io.Closer
}

func (c closer) Close() error { return errors.Join(c.WriteCloser.Close(), c.dst.Close()) }

// translated returns the output for a report, followed by the diagnostics. name is the form of the
// output with the flags of the command. The report is written in blocks of the given size.
func translated(t testing.TB, name string, report []byte, block int, o Options) string {
	t.Helper()
	var out strings.Builder
	var diagnostics []string
	o.Diagnose = func(s string) { diagnostics = append(diagnostics, s) }
	w := translation(t, name, &out, o)
	for len(report) > 0 {
		n := min(block, len(report))
		if _, err := w.Write(report[:n]); err != nil {
			t.Fatal(err)
		}
		report = report[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range diagnostics {
		fmt.Fprintf(&out, "diagnostic: %s\n", s)
	}
	return out.String()
}

// The name of each expected output in a script is the output's form and the flags of the command.
func TestScripts(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL("report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{ReportOptions: symbolize.ReportOptions{Symbolizer: newSymbolizer(t), PrefixMap: fixtures(t), Wait: 1 << 40}}
	plain := func(s string) string {
		for _, m := range o.PrefixMap {
			s = strings.ReplaceAll(s, m.New, m.Old)
		}
		return s
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			report := a.Files[0].Data
			if a.Files[0].Name == "quoted" {
				s, err := strconv.Unquote("\"" + strings.ReplaceAll(strings.TrimSuffix(string(report), "\n"), "\n", "") + "\"")
				if err != nil {
					t.Fatal(err)
				}
				report = []byte(s)
			}
			got := []txtar.File{a.Files[0]}
			for _, f := range a.Files[1:] {
				text := plain(translated(t, f.Name, report, len(report), o))
				if blocks := plain(translated(t, f.Name, report, 5, o)); blocks != text {
					t.Errorf("%s in blocks of 5 bytes (-whole +blocks):\n%s", f.Name, cmp.Diff(text, blocks))
				}
				if strings.HasPrefix(f.Name, "json") {
					for line := range strings.Lines(text) {
						if strings.HasPrefix(line, "diagnostic: ") {
							continue
						}
						object, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
						if err != nil {
							t.Fatalf("%v in %s", err, line)
						}
						if err := schema.Validate(object); err != nil {
							t.Errorf("%v in %s", err, line)
						}
					}
				}
				if text == string(report) && string(f.Data) == "(the report)\n" {
					text = "(the report)\n"
				}
				got = append(got, txtar.File{Name: f.Name, Data: []byte(text)})
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
