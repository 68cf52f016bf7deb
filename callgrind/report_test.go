package callgrind

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// program is the ELF file of the scripts' /lib/prog.so. Its source is in the same folder. The
// function outer is at 0x1370, and local at 0x13b0.
const program = "../symbolize/testdata/arch/x86_64.elf"

// testOptions returns the options of the scripts, with a symbolizer that finds the file program.
func testOptions(t testing.TB) Options {
	t.Helper()
	path, err := filepath.Abs(filepath.FromSlash(program))
	if err != nil {
		t.Fatal(err)
	}
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{path}})}})
	t.Cleanup(func() { s.Close() })
	return Options{
		ReportOptions: symbolize.ReportOptions{
			Symbolizer: s,
			PrefixMap:  []buildid.PrefixMap{{Old: "/lib/prog.so", New: path}},
			Wait:       time.Minute,
		},
		Label: "profile",
	}
}

// printed writes a profile in blocks of the given size. It returns the output, followed by the
// diagnostics.
func printed(t testing.TB, profile []byte, block int, asMarkup bool, o Options) string {
	t.Helper()
	var out bytes.Buffer
	var diagnostics strings.Builder
	o.Diagnose = func(s string) { diagnostics.WriteString("! " + s + "\n") }
	write := func(w interface {
		Write([]byte) (int, error)
		Close() error
	}) {
		for p := profile; len(p) > 0; {
			n := min(block, len(p))
			if _, err := w.Write(p[:n]); err != nil {
				t.Fatal(err)
			}
			p = p[n:]
		}
		if err := w.Close(); err != nil {
			diagnostics.WriteString("error: " + err.Error() + "\n")
		}
	}
	if asMarkup {
		dst := markup.NewWriter(&out)
		write(NewMarkup(dst, o))
		dst.Close()
	} else {
		write(NewReport(&out, o))
	}
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String()+diagnostics.String(), filepath.ToSlash(dir), "ROOT")
}

// Each script in testdata/reports has a profile, and the outputs that it must give. The name of an
// output is the command's flags.
func TestReports(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("testdata", "reports", "*.txtar"))
	if err != nil || len(names) < 5 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range a.Files[1:] {
				for _, block := range []int{1 << 20, 13} {
					got := scripted(t, a.Files[0].Data, f.Name, block)
					if d := cmp.Diff(string(f.Data), got); d != "" {
						t.Errorf("%s, in blocks of %d (-want, +got):\n%s", f.Name, block, d)
					}
					a.Files[1+i].Data = []byte(got)
				}
			}
			if t.Failed() && os.Getenv("UPDATE") == "1" {
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// scripted returns the output of a profile for the flags in words.
func scripted(t *testing.T, profile []byte, words string, block int) string {
	t.Helper()
	o := scriptOptions(t, words)
	switch strings.Fields(words)[0] {
	case "table":
	case "json":
		out := printed(t, profile, block, false, o)
		checkSchema(t, out)
		return out
	case "callgrind":
		out := printed(t, profile, block, false, o)
		if again := printed(t, []byte(out), 1<<20, false, o); !strings.Contains(out, "!") && again != out {
			t.Errorf("printed again, it is\n%s\nnot\n%s", again, out)
		}
		return out
	case "markup":
		return printed(t, profile, block, true, o)
	case "speedscope":
		out := printed(t, profile, block, false, o)
		checkAgainst(t, "../internal/stacks/testdata/speedscope.schema.json", out)
		return out
	case "pprof":
		return pprofText(t, printed(t, profile, block, false, o))
	}
	out := printed(t, profile, block, false, o)
	return strings.ReplaceAll(out, "\x1b", "^")
}

// scriptOptions returns the options for the flags in words. The first word is the output.
func scriptOptions(t *testing.T, words string) Options {
	t.Helper()
	o := testOptions(t)
	all := strings.Fields(words)
	for _, w := range all[1:] {
		name, value, _ := strings.Cut(w, "=")
		switch name {
		case "--threshold":
			fmt.Sscan(value, &o.Threshold)
		case "--inclusive":
			o.Inclusive = true
		case "--source":
			o.Source = true
			path := filepath.FromSlash("../symbolize/testdata/arch") // relative: the layout depends on its length
			o.PrefixMap = append(o.PrefixMap, buildid.PrefixMap{Old: "/src", New: path})
		case "--tree":
			o.Tree = map[string]Tree{"caller": Callers, "calling": Calling, "both": Callers | Calling}[value]
		case "--show":
			o.Show = strings.Split(value, ",")
		case "--sort":
			o.Sort = strings.Split(value, ",")
		case "--diff":
		case "--limit":
			l, err := ParseLimit(value)
			if err != nil {
				t.Fatal(err)
			}
			o.Limits = append(o.Limits, l)
		case "--mod-funcname", "--mod-filename":
			s, err := ParseSubstitution(value)
			if err != nil {
				t.Fatal(err)
			}
			list := map[string]*[]Substitution{"--mod-funcname": &o.FunctionNames, "--mod-filename": &o.FileNames}[name]
			*list = append(*list, s)
		case "--part", "--thread":
			list := map[string]*[]int{"--part": &o.Parts, "--thread": &o.Threads}[name]
			for n := range strings.SplitSeq(value, ",") {
				*list = append(*list, 0)
				fmt.Sscan(n, &(*list)[len(*list)-1])
			}
		case "--basenames":
			o.Basenames = true
		case "--color":
			o.Color = true
		case "--no-symbols":
			o.Symbolizer = nil
		case "--elements":
			o.Elements = true
		default:
			t.Fatalf("no such flag: %s", w)
		}
	}
	switch all[0] {
	case "json":
		o.Output = JSON
	case "callgrind":
		o.Output = Profile
	case "pprof":
		o.Output = Pprof
	case "folded":
		o.Output = Folded
	case "speedscope":
		o.Output = Speedscope
	}
	return o
}

// checkSchema checks lines of JSON against the published schema.
func checkSchema(t testing.TB, out string) {
	t.Helper()
	checkAgainst(t, "report.schema.json", out)
}

// checkAgainst checks lines of JSON against a schema.
func checkAgainst(t testing.TB, file, out string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL(file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "!") || strings.HasPrefix(line, "error:") {
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

// The inclusive cost of a function must not exceed the total, even in a cycle of calls. Outside of
// all cycles, the calls determine it.
func TestNoFunctionCostsMoreThanAll(t *testing.T) {
	// main calls a, which calls itself and b; b calls a. Calls within this cycle contain each
	// other, so their costs are counted many times.
	profile := "events: Ir\nfn=main\n1 10\ncfn=a\ncalls=1 1\n2 90\nfn=a\n1 20\ncfn=a\ncalls=5 1\n2 300\ncfn=b\ncalls=5 1\n3 400\ncfn=leaf\ncalls=1 1\n4 7\n" +
		"fn=b\n1 30\ncfn=a\ncalls=4 1\n2 350\ncfn=leaf\ncalls=1 1\n3 3\nfn=leaf\n1 10\nfn=self\n1 30\ncfn=self\ncalls=100 1\n2 5000\n"
	o := testOptions(t)
	o.Output = JSON
	want := map[string][2]int64{"main": {10, 100}, "a": {20, 60}, "b": {30, 60}, "leaf": {10, 10}, "self": {30, 30}}
	got := map[string][2]int64{}
	for line := range strings.Lines(printed(t, []byte(profile), 1<<20, false, o)) {
		var r struct {
			Record, Function string
			Self, Inclusive  map[string]int64
		}
		if strings.Contains(line, `"function"`) && strings.Contains(line, `"inclusive"`) {
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			got[r.Function] = [2]int64{r.Self["Ir"], r.Inclusive["Ir"]}
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("self and inclusive costs (-want, +got):\n%s", d)
	}
}

// byPath is a finder of files without a build ID.
type byPath struct{}

func (byPath) Find(_ context.Context, q buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	if !q.ID.IsZero() {
		return nil, fs.ErrNotExist
	}
	return buildid.OpenRegular(q.Name, "test")
}

// Callgrind gives all callers of main the name (below main). The output must do so, too, even for
// parts without that name. If the profile has a name such as __libc_start_main, it was recorded
// with --show-below-main=yes, and the callers must keep their names.
func TestWhatCallsMainIsNamedAsByCallgrind(t *testing.T) {
	// a file without a build ID
	path, err := filepath.Abs(filepath.FromSlash("../internal/dwarf/testdata/tiny/gcc2.elf"))
	if err != nil {
		t.Fatal(err)
	}
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{byPath{}}})
	t.Cleanup(func() { s.Close() })
	o := Options{ReportOptions: symbolize.ReportOptions{Symbolizer: s, PrefixMap: []buildid.PrefixMap{{Old: "/bin/fixed", New: path}}, Wait: time.Minute}, Output: Profile}
	const nameless = "events: Ir\nob=/bin/fixed\nfl=???\nfn=0x00000000004010b0\n0 1\n"
	for _, c := range []struct{ name, profile, want string }{
		{"of Callgrind", "creator: callgrind-3.19.0\n" + nameless, "(below main)"},
		{"with the name in a later part", "creator: callgrind-3.19.0\n" + nameless + "part: 2\n" + nameless + "fn=(below main)\n0 1\n", "(below main)"},
		{"with --show-below-main=yes", "creator: callgrind-3.19.0\n" + nameless + "fn=__libc_start_main'2\n0 1\n", "_start"},
		{"of another", "creator: perf\n" + nameless, "_start"},
	} {
		out := printed(t, []byte(c.profile), 1<<20, false, o)
		_, rest, _ := strings.Cut(out, "fn=(1) ")
		if got, _, _ := strings.Cut(rest, "\n"); got != c.want {
			t.Errorf("%s: the function is %q, want %q in\n%s", c.name, got, c.want, out)
		}
	}
}

// A call of a stripped function must have the line at which the function begins. That includes
// profiles whose places have neither lines nor addresses.
func TestCallsOfLinelessProfilesHaveTheLineOfTheFunction(t *testing.T) {
	o := testOptions(t)
	o.Output = Profile
	out := printed(t, []byte("events: Ir\nob=/lib/prog.so\nfl=???\nfn=0x1370\n0 1\ncfn=0x13b0\ncalls=3 0\n0 9\nfn=0x13b0\n0 9\n"), 1<<20, false, o)
	if !strings.Contains(out, "\ncalls=3 18\n") {
		t.Errorf("no call of line 18 in\n%s", out)
	}
}
