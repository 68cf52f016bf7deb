package stacks

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// heapProfile returns a profile with a value in every field.
func heapProfile() *Profile {
	p := &Profile{
		Values:     []ValueType{{"objects", "count"}, {"space", "bytes"}},
		Default:    "space",
		Comments:   []string{"made by hand", "of two mappings"},
		DocURL:     "https://example.org/doc",
		DropFrames: "drop.*",
		KeepFrames: "keep.*",
		Time:       1700000000000000000,
		Duration:   5,
		PeriodType: ValueType{"space", "bytes"},
		Period:     524288,
	}
	app := p.AddMapping(Mapping{Start: 0x400000, Limit: 0x500000, File: "/opt/app", BuildID: "eecd1387"}.Symbolized())
	lib := p.AddMapping(Mapping{Start: 0x7f0000000000, Limit: 0x7f0000010000, Offset: 0x1000, File: "/usr/lib/libx.so"})
	main := p.AddFunction(Function{Name: "main", File: "main.cc", Line: 3})
	push := p.AddFunction(Function{Name: "Vec::push(int; int)", LinkName: "_ZN3Vec4pushEii", File: "vec.h", Line: 40})
	inMain := p.AddLocation(Location{Mapping: app, Address: 0x401000, Lines: []Line{{push, 41, 7}, {main, 5, 0}}})
	again := p.AddLocation(Location{Mapping: app, Address: 0x401010, Lines: []Line{{push, 42, 7}, {main, 5, 0}}, Folded: true})
	raw := p.AddLocation(Location{Mapping: lib, Address: 0x7f0000000234})
	nowhere := p.AddLocation(Location{Address: 0x10})
	p.AddSample(Sample{Stack: []uint32{raw, inMain}, Values: []int64{1, 100}, Labels: []Label{{Key: "kind", Text: "large"}, {Key: "bytes", Number: 100, Unit: "bytes"}}})
	p.AddSample(Sample{Stack: []uint32{raw, again}, Values: []int64{2, 200}})
	p.AddSample(Sample{Stack: []uint32{again}, Values: []int64{0, -7}})
	p.AddSample(Sample{Stack: []uint32{nowhere, again}, Values: []int64{1, 1}})
	p.AddSample(Sample{Values: []int64{1, 5}})
	return p
}

func TestPprofHasAllOfAProfile(t *testing.T) {
	var out bytes.Buffer
	if err := heapProfile().WritePprof(&out); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.CheckValid(); err != nil {
		t.Error(err)
	}
	app := &profile.Mapping{ID: 1, Start: 0x400000, Limit: 0x500000, File: "/opt/app", BuildID: "eecd1387", HasFunctions: true, HasFilenames: true, HasLineNumbers: true, HasInlineFrames: true}
	lib := &profile.Mapping{ID: 2, Start: 0x7f0000000000, Limit: 0x7f0000010000, Offset: 0x1000, File: "/usr/lib/libx.so"}
	main := &profile.Function{ID: 1, Name: "main", Filename: "main.cc", StartLine: 3}
	push := &profile.Function{ID: 2, Name: "Vec::push(int; int)", SystemName: "_ZN3Vec4pushEii", Filename: "vec.h", StartLine: 40}
	inMain := &profile.Location{ID: 1, Mapping: app, Address: 0x401000, Line: []profile.Line{{Function: push, Line: 41, Column: 7}, {Function: main, Line: 5}}}
	again := &profile.Location{ID: 2, Mapping: app, Address: 0x401010, Line: []profile.Line{{Function: push, Line: 42, Column: 7}, {Function: main, Line: 5}}, IsFolded: true}
	raw := &profile.Location{ID: 3, Mapping: lib, Address: 0x7f0000000234}
	nowhere := &profile.Location{ID: 4, Address: 0x10}
	want := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "objects", Unit: "count"}, {Type: "space", Unit: "bytes"}},
		DefaultSampleType: "space",
		Sample: []*profile.Sample{
			{Location: []*profile.Location{raw, inMain}, Value: []int64{1, 100}, Label: map[string][]string{"kind": {"large"}}, NumLabel: map[string][]int64{"bytes": {100}}, NumUnit: map[string][]string{"bytes": {"bytes"}}},
			{Location: []*profile.Location{raw, again}, Value: []int64{2, 200}},
			{Location: []*profile.Location{again}, Value: []int64{0, -7}},
			{Location: []*profile.Location{nowhere, again}, Value: []int64{1, 1}},
			{Value: []int64{1, 5}},
		},
		Mapping:       []*profile.Mapping{app, lib},
		Location:      []*profile.Location{inMain, again, raw, nowhere},
		Function:      []*profile.Function{main, push},
		Comments:      []string{"made by hand", "of two mappings"},
		DocURL:        "https://example.org/doc",
		DropFrames:    "drop.*",
		KeepFrames:    "keep.*",
		TimeNanos:     1700000000000000000,
		DurationNanos: 5,
		PeriodType:    &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:        524288,
	}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !app.HasInlineFrames || got.Mapping[0].BuildID != "eecd1387" || !got.Mapping[0].HasInlineFrames || got.Mapping[1].HasFunctions {
		t.Errorf("mappings: %+v, %+v", *got.Mapping[0], *got.Mapping[1])
	}
	if got.DefaultSampleType != "space" || got.Function[0].StartLine != 3 || !got.Location[1].IsFolded {
		t.Errorf("default %q, function %+v, location %+v", got.DefaultSampleType, *got.Function[0], *got.Location[1])
	}
}

func TestPprofShowsTheFirstValueByDefault(t *testing.T) {
	var out bytes.Buffer
	p := &Profile{Values: []ValueType{{"Ir", "count"}, {"Dr", "count"}}}
	if err := p.WritePprof(&out); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	if got.DefaultSampleType != "Ir" {
		t.Errorf("the default is %q", got.DefaultSampleType)
	}
}

func TestFoldedStacks(t *testing.T) {
	for _, test := range []struct {
		name  string
		value int
		want  string
	}{
		{"objects", 0, `
[empty stack] 1
main;Vec::push(int: int);0x10 1
main;Vec::push(int: int);libx.so+0x1234 3
`},
		{"space", 1, `
[empty stack] 5
main;Vec::push(int: int) -7
main;Vec::push(int: int);0x10 1
main;Vec::push(int: int);libx.so+0x1234 300
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := heapProfile().WriteFolded(&out, test.value); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want[1:], out.String()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestSamplesOfEqualStacksAreAddedUp(t *testing.T) {
	p := &Profile{Values: []ValueType{{"n", "count"}}}
	for _, v := range []int64{3, 4, math.MaxInt64} {
		p.AddSample(Sample{Stack: []uint32{1}, Values: []int64{v}, Labels: []Label{{Key: "b"}, {Key: "a"}}})
		p.AddSample(Sample{Stack: []uint32{1}, Values: []int64{v}, Labels: []Label{{Key: "a"}, {Key: "b"}}})
		p.AddSample(Sample{Stack: []uint32{1, 1}, Values: []int64{1}})
		p.AddSample(Sample{Stack: []uint32{1}, Values: []int64{1}})
	}
	want := []Sample{
		{[]uint32{1}, []int64{math.MaxInt64}, []Label{{Key: "a"}, {Key: "b"}}},
		{[]uint32{1, 1}, []int64{3}, nil},
		{[]uint32{1}, []int64{3}, nil},
	}
	if diff := cmp.Diff(want, p.Samples); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestNamesDoNoHarmOnATerminal(t *testing.T) {
	p := &Profile{Values: []ValueType{{"n", "count"}}}
	f := p.AddFunction(Function{Name: "f;\n\x1b[2J\u202e\u009b\xff 1", File: "\x1b\u0085.c", Line: 1})
	p.AddSample(Sample{Stack: []uint32{p.AddLocation(Location{Lines: []Line{{Function: f}}})}, Values: []int64{7}})
	var out strings.Builder
	if err := p.WriteFolded(&out, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`f:\x0a\x1b[2J\u202e\u009b\xff 1 7`+"\n", out.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	out.Reset()
	if err := p.WriteSpeedscope(&out, "\x1b"); err != nil {
		t.Fatal(err)
	}
	_, frames, _ := strings.Cut(out.String(), `"name":"\u001b","shared":`)
	frames, _, _ = strings.Cut(frames, `,"profiles"`)
	if diff := cmp.Diff(`{"frames":[{"name":"f;\n\u001b[2J\u202e\u009b`+"\ufffd"+` 1","file":"\u001b\u0085.c","line":1}]}`, frames); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
