package profile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/report"
)

// printed returns the output of Read and Write, followed by the diagnostics.
func printed(t testing.TB, data []byte, form Output, v View, o Options) string {
	t.Helper()
	var notes strings.Builder
	o.Diagnose = func(s string) { fmt.Fprintf(&notes, "! %s\n", s) }
	p, err := Read(bytes.NewReader(data), o)
	if err != nil {
		return notes.String() + "error: " + err.Error() + "\n"
	}
	defer p.Close()
	var out bytes.Buffer
	if err := p.Write(&out, form, v); err != nil {
		fmt.Fprintf(&out, "error: %v\n", err)
	}
	return out.String() + notes.String()
}

// Each file of testdata has a profile, and the expected output if none of the mapped files exists.
func TestFormats(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range a.Files[1:] {
				form, show, _ := strings.Cut(f.Name, " ")
				v := View{Show: show}
				got := ""
				switch form {
				case "text":
					got = printed(t, a.Files[0].Data, Text, v, Options{})
				case "folded":
					got = printed(t, a.Files[0].Data, Folded, v, Options{})
				case "pprof":
					out := printed(t, a.Files[0].Data, Pprof, v, Options{})
					p, err := pprof.ParseData([]byte(out))
					if err != nil {
						t.Fatalf("%v in %q", err, out)
					}
					got = p.String() + "\n"
				}
				if d := cmp.Diff(string(f.Data), got); d != "" {
					t.Errorf("%s (-want, +got):\n%s\n%s", f.Name, d, got)
				}
			}
		})
	}
}

func compressed(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

// If lines of a function are in a header, they must be added to the function's row. A function of
// the same name in another file must have its own row.
func TestFunctionsOfSeveralFilesHaveOneRow(t *testing.T) {
	f := &pprof.Function{ID: 1, Name: "f", Filename: "f.c", StartLine: 3}
	part := &pprof.Function{ID: 2, Name: "f", Filename: "f.h"}
	other := &pprof.Function{ID: 3, Name: "f", Filename: "g.c", StartLine: 5}
	p := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "count"}}, Function: []*pprof.Function{f, part, other}}
	for i, fn := range p.Function {
		l := &pprof.Location{ID: uint64(i + 1), Line: []pprof.Line{{Function: fn, Line: 7}}}
		p.Location = append(p.Location, l)
		p.Sample = append(p.Sample, &pprof.Sample{Location: []*pprof.Location{l}, Value: []int64{int64(10 + i)}})
	}
	var data bytes.Buffer
	if err := p.Write(&data); err != nil {
		t.Fatal(err)
	}
	got := printed(t, data.Bytes(), Text, View{}, Options{})
	for _, row := range []string{
		"          21  63.6%  63.6%           21  63.6%  f  f.c\n",
		"          12  36.4% 100.0%           12  36.4%  f  g.c\n",
	} {
		if !strings.Contains(got, row) {
			t.Errorf("no row %q in\n%s", row, got)
		}
	}
}

// A profile that unpacks to more than its share of the memory must be refused, and its memory
// returned.
func TestProfilesStayWithinTheirMemory(t *testing.T) {
	heap := "heap profile: 1: 1 [1: 1] @ heapprofile\n" + strings.Repeat("1: 1 [1: 1] @ 0x1234\n", 1<<20)
	locations := append([]byte{0x0a, 0}, bytes.Repeat([]byte{0x22, 2, 0x08, 1}, 1<<20)...)
	samples := append([]byte{0x0a, 0}, bytes.Repeat([]byte{0x12, 2, 0x10, 1}, 1<<21)...)
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"stacks of text", []byte(heap), ErrTooLarge},
		{"unpacked text", compressed([]byte(heap)), ErrTooLarge},
		{"packed twice", compressed(compressed([]byte(heap))), ErrTooLarge},
		{"zeros", compressed(make([]byte, 64<<20)), ErrTooLarge},
		{"samples of four bytes", samples, ErrTooLarge},
		{"equal locations", locations, nil},
		{"empty", nil, ErrUnknown},
		{"text", []byte("hello\n"), ErrUnknown},
		{"cut compression", compressed([]byte(heap))[:1000], ErrCut},
		{"cut message", samples[:len(samples)-1], ErrCut},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const most = 32 << 20
			budget := report.NewBudget(most, nil)
			if tt.want == ErrCut {
				budget = report.NewBudget(1<<30, nil)
			}
			_, err := Read(bytes.NewReader(tt.data), Options{Options: report.Options{Memory: budget}})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got the error %v, want %v", err, tt.want)
			}
			if n := budget.Used(); n != 0 {
				t.Errorf("%d bytes are still taken", n)
			}
		})
	}
}

// Some forms of output need the stacks as a tree. If the tree does not fit into the budget, Write
// must refuse these forms. In other forms, it must print the stacks.
func TestTreesOfStacksStayWithinTheirMemory(t *testing.T) {
	var heap strings.Builder
	heap.WriteString("heap profile: 1: 1 [1: 1] @ heapprofile\n")
	for i := range 400 {
		heap.WriteString("1: 1 [1: 1] @")
		for k := range 1000 {
			fmt.Fprintf(&heap, " 0x%x", 1+(i*k+k*k)%997)
		}
		heap.WriteString("\n")
	}
	budget := report.NewBudget(16<<20, nil)
	p, err := Read(strings.NewReader(heap.String()), Options{Options: report.Options{Memory: budget}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for form, want := range map[Output]error{Folded: ErrTooLarge, Speedscope: ErrTooLarge, Text: nil, Pprof: nil} {
		var out bytes.Buffer
		if err := p.Write(&out, form, View{}); !errors.Is(err, want) || (out.Len() > 0) != (want == nil) {
			t.Errorf("form %d: %v, %d bytes", form, err, out.Len())
		}
	}
}
