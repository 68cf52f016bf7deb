package callgrind

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/symbolize"
)

// pprofText returns a profile in pprof's format as text, and the text after it.
func pprofText(t *testing.T, out string) string {
	t.Helper()
	in := strings.NewReader(out)
	z, err := gzip.NewReader(in)
	if err != nil {
		return out
	}
	z.Multistream(false)
	p, err := profile.Parse(z)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return p.String() + "default: " + p.DefaultSampleType + "\n" + string(rest)
}

// Stacks that exceed the memory must have less detail. The costs of functions and calls must stay
// exact.
func TestStacksHaveTheDetailForWhichThereIsMemory(t *testing.T) {
	const functions, lines, addresses = 100, 20, 10
	var in strings.Builder
	in.WriteString("positions: instr line\nevents: Ir\nob=/bin/prog\nfl=a.c\n")
	for f := range functions {
		fmt.Fprintf(&in, "fn=f%03d\n", f)
		for l := range lines {
			for a := range addresses {
				fmt.Fprintf(&in, "%#x %d 1\n", ((f*lines)+l)*addresses+a+1, f*lines+l+1)
			}
		}
		if f+1 < functions {
			fmt.Fprintf(&in, "cfn=f%03d\ncalls=1 0 0\n* * %d\n", f+1, (functions-f-1)*lines*addresses)
		}
	}
	for _, test := range []struct {
		budget             int64 // bytes
		locations, samples int
		message            string
	}{
		{48 << 20, functions * lines * addresses, functions * lines * addresses, ""},
		{10 << 20, functions * lines, functions * lines, "the stacks have no addresses, for lack of memory (--max-memory)\n"},
		{4 << 20, functions, functions, "the stacks have neither lines nor addresses, for lack of memory (--max-memory)\n"},
	} {
		var out bytes.Buffer
		messages := ""
		r := NewReport(&out, Options{ReportOptions: symbolize.ReportOptions{Diagnose: func(s string) { messages += s + "\n" }, NoPaths: true, Memory: report.NewBudget(test.budget, nil)}, Output: Pprof})
		if _, err := io.WriteString(r, in.String()); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := profile.Parse(&out)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Location) != test.locations || len(p.Sample) != test.samples {
			t.Errorf("%d MiB: %d locations, %d samples; want %d and %d", test.budget>>20, len(p.Location), len(p.Sample), test.locations, test.samples)
		}
		if messages != test.message {
			t.Errorf("%d MiB: messages %q, want %q", test.budget>>20, messages, test.message)
		}
		self := map[string]int64{}
		for _, s := range p.Sample {
			name := s.Location[0].Line[0].Function.Name
			self[name] += s.Value[0]
			if depth := fmt.Sprintf("f%03d", len(s.Location)-1); depth != name {
				t.Errorf("%d MiB: a stack of %s has %d frames", test.budget>>20, name, len(s.Location))
			}
		}
		for f := range functions {
			if n := self[fmt.Sprintf("f%03d", f)]; n != lines*addresses {
				t.Errorf("%d MiB: f%03d costs %d", test.budget>>20, f, n)
			}
		}
	}
}

// When the costs of lines fill their share of the memory, further costs must be counted by function
// only. There must still be room for calls between functions, and for stacks.
func TestStacksHaveCallersAfterAFloodOfPlaces(t *testing.T) {
	const functions, addresses, callees = 400, 400, 60
	var in strings.Builder
	in.WriteString("positions: instr\nevents: Ir\nob=/bin/prog\nfl=a.c\n")
	for f := range functions {
		fmt.Fprintf(&in, "fn=f%03d\n", f)
		for a := range addresses {
			fmt.Fprintf(&in, "%#x 1\n", f*addresses+a+1)
		}
	}
	for f := range functions {
		fmt.Fprintf(&in, "fn=f%03d\n", f)
		for c := f + 1; c < min(f+1+callees, functions); c++ {
			fmt.Fprintf(&in, "cfn=f%03d\ncalls=1 0\n%#x 1\n", c, f*addresses+c+1)
		}
	}
	for _, compared := range []bool{false, true} {
		messages, size := "", int64(12<<20)
		if compared {
			size *= 2
		}
		o := Options{ReportOptions: symbolize.ReportOptions{Diagnose: func(s string) { messages += s + "\n" }, NoPaths: true, Memory: report.NewBudget(size, nil)}, Output: Pprof}
		write := func(r *Report) {
			if _, err := io.WriteString(r, in.String()); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if compared {
			c := NewComparison(io.Discard, o)
			write(c.Before)
			write(c.After)
			err = c.Close()
		} else {
			r := NewReport(io.Discard, o)
			write(r)
			err = r.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(messages, "further costs are counted by function only") || strings.Contains(messages, "have no callers") || strings.Contains(messages, "summed as one") {
			t.Errorf("compared: %v: messages:\n%s", compared, messages)
		}
	}
}

// FuzzStacks checks that the stacks of a profile, in each form, add up to the costs of its lines,
// and that no profile takes too long.
func FuzzStacks(f *testing.F) {
	for _, dir := range []string{"records", "reports"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(names) == 0 {
			f.Fatalf("%d seeds, %v", len(names), err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(a.Files[0].Data)
		}
	}
	o := testOptions(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		defer fuzztest.Watch(t, in)()
		write := func(output Output) []byte {
			var out bytes.Buffer
			o := o
			o.Output = output
			r := NewReport(&out, o)
			if _, err := r.Write(in); err != nil {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return out.Bytes()
		}
		printed := write(Pprof)
		if len(printed) == 0 { // not a profile
			return
		}
		p, err := profile.ParseData(printed)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.CheckValid(); err != nil {
			t.Error(err)
		}
		if again := write(Pprof); !bytes.Equal(printed, again) {
			t.Error("the stacks differ when they are printed again")
		}
		sums := make([]int64, len(p.SampleType))
		for _, s := range p.Sample {
			for i, n := range s.Value {
				sums[i] = stacks.Plus(sums[i], n)
			}
		}
		want := make([]int64, len(sums))
		reader := newReader(func(rec *record) error {
			if rec.Kind == costRecord {
				for i, n := range rec.Costs[:min(len(rec.Costs), len(want))] {
					want[i] = stacks.Plus(want[i], n)
				}
			}
			return nil
		}, nil, nil)
		reader.Write(in)
		reader.Close()
		for i := range want {
			_, scale := stackValue(reader.Events()[i].Name)
			want[i] *= scale
		}
		if d := cmp.Diff(want, sums); d != "" && !large.Match(in) {
			t.Errorf("sums (-lines, +stacks):\n%s", d)
		}
		for line := range bytes.Lines(write(Folded)) {
			if !foldedLine.Match(line) {
				t.Errorf("%q is not a folded stack", line)
			}
		}
		if !json.Valid(write(Speedscope)) {
			t.Error("speedscope's form is not JSON")
		}
		fuzztest.Growth(t, in, func(in []byte) {
			r := NewReport(io.Discard, Options{Output: Pprof})
			r.Write(in)
			r.Close()
		})
	})
}

// foldedLine matches a line of folded stacks, whose names may contain blanks.
var foldedLine = regexp.MustCompile(`^[^\n]+ -?\d+\n$`)

// The order of a profile must not change its stacks: between equal costs, the names and files of
// functions decide.
func TestStacksDoNotDependOnTheOrderOfAProfile(t *testing.T) {
	const head = "events: Ir\n"
	parts := []string{
		"ob=/bin/prog\nfl=a.c\nfn=main\n1 1\ncfn=left\ncalls=1 2\n1 50\ncfn=right\ncalls=1 3\n1 50\n",
		"ob=/bin/prog\nfl=a.c\nfn=left\n2 0\ncfn=both\ncalls=1 4\n2 50\n",
		"ob=/bin/prog\nfl=a.c\nfn=right\n3 0\ncfn=both\ncalls=1 4\n3 50\n",
		"ob=/bin/prog\nfl=a.c\nfn=both\n4 0\ncob=/lib/b.so\ncfi=b.c\ncfn=x\ncalls=1 5\n4 50\ncob=/lib/c.so\ncfi=b.c\ncfn=y\ncalls=1 6\n4 50\n",
		"ob=/lib/b.so\nfl=b.c\nfn=x\n5 50\n",
		"ob=/lib/c.so\nfl=b.c\nfn=y\n6 50\n",
	}
	write := func() string {
		var out bytes.Buffer
		r := NewReport(&out, Options{ReportOptions: symbolize.ReportOptions{NoPaths: true}, Output: Pprof})
		if _, err := io.WriteString(r, head+strings.Join(parts, "")); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		return pprofText(t, out.String())
	}
	want := write()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		if d := cmp.Diff(want, write()); d != "" {
			t.Fatalf("-first +shuffled\n%s", d)
		}
	}
}
