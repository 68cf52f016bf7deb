package profile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	runtimepprof "runtime/pprof"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"
)

// described returns a profile that pprof's library has read, as a text to compare: stacks with
// their values, labels, functions and mapped files.
func described(p *pprof.Profile) (all []string) {
	for _, m := range p.Mapping {
		all = append(all, fmt.Sprintf("mapping %x-%x %x %s %s", m.Start, m.Limit, m.Offset, m.File, m.BuildID))
	}
	slices.Sort(all)
	all = append(all, fmt.Sprintf("period %d %s, time %d, %d, comments %q", p.Period, p.PeriodType.Type, p.TimeNanos, p.DurationNanos, p.Comments))
	for _, s := range p.Sample {
		var b strings.Builder
		for i, v := range s.Value {
			fmt.Fprintf(&b, "%s/%s %d, ", p.SampleType[i].Type, p.SampleType[i].Unit, v)
		}
		for _, key := range slices.Sorted(maps.Keys(s.NumLabel)) {
			fmt.Fprintf(&b, "%s %v, ", key, s.NumLabel[key])
		}
		for _, key := range slices.Sorted(maps.Keys(s.Label)) {
			fmt.Fprintf(&b, "%s %q, ", key, s.Label[key])
		}
		for _, l := range s.Location {
			fmt.Fprintf(&b, "\n  %x", l.Address)
			if l.Mapping != nil {
				fmt.Fprintf(&b, " %s", l.Mapping.File)
			}
			for _, line := range l.Line {
				if line.Function != nil {
					fmt.Fprintf(&b, " %s %s:%d", line.Function.Name, line.Function.Filename, line.Line)
				}
			}
		}
		all = append(all, b.String())
	}
	return all
}

// cpuProfile returns a CPU profile of gperftools.
func cpuProfile(order binary.AppendByteOrder, size int, stacks ...[]uint64) []byte {
	var b []byte
	put := func(words ...uint64) {
		for _, w := range words {
			if size == 4 {
				b = order.AppendUint32(b, uint32(w))
			} else {
				b = order.AppendUint64(b, w)
			}
		}
	}
	put(0, 3, 0, 10000, 0)
	for _, s := range stacks {
		put(s[0], uint64(len(s)-1))
		put(s[1:]...)
	}
	put(0, 1, 0)
	return append(b, "00001000-00002000 r-xp 00001000 fe:00 1 /opt/app\n00003000-00004000 r-xp 00000000 fe:00 2 /opt/lib.so\n"...)
}

// The output in pprof's format must be the profile that pprof's own library reads from the input.
func TestProfilesAreReadAsByPprof(t *testing.T) {
	ours := func(b *bytes.Buffer, p *pprof.Profile) {
		if err := p.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	lines := "1: 2066 [3: 6198] @ 0x1011 0x1021 0x3031\n2: 700000 [2: 700000] @ 0x1021\n0: 0 [1: 5] @ 0x3001\n\nMAPPED_LIBRARIES:\n" +
		"00001000-00002000 r-xp 00001000 fe:00 1 /opt/app\n00003000-00004000 r-xp 00001000 fe:00 2 /opt/lib.so\n"
	stacks := [][]uint64{{3, 0x1010, 0x1021, 0x1031}, {1, 0x3010, 0x3031}, {4, 0x1040, 0x1041, 0x1051}, {1, 0x1051}}
	app := &pprof.Mapping{ID: 7, Start: 0x1000, Limit: 0x2000, Offset: 0x1000, File: "/opt/app", BuildID: "c0ffee"}
	f := &pprof.Function{ID: 1 << 40, Name: "f(int)", SystemName: "_Z1fi", Filename: "a.c", StartLine: 3}
	named := &pprof.Location{ID: 1, Mapping: app, Address: 0x1010, Line: []pprof.Line{{Function: f, Line: 7, Column: 2}}, IsFolded: true}
	raw := &pprof.Location{ID: 1 << 60, Address: 0x5010}
	tests := map[string]func(b *bytes.Buffer){
		"heap":          func(b *bytes.Buffer) { b.WriteString("heap profile: 3: 3 [6: 9] @ heapprofile\n" + lines) },
		"heap, sampled": func(b *bytes.Buffer) { b.WriteString("heap profile: 3: 3 [6: 9] @ heap_v2/524288\n" + lines) },
		"heap of Go":    func(b *bytes.Buffer) { b.WriteString("heap profile: 3: 3 [6: 9] @ heap/1048576\n" + lines) },
		"heap in use": func(b *bytes.Buffer) {
			b.WriteString("heap profile: 1: 5 [1: 5] @ growthz\n1: 5 [1: 5] @ 0x1011 0x1021\nMAPPED_LIBRARIES:\n00001000-00002000 r-xp 00001000 fe:00 1 /opt/app\n")
		},
		"64 bits":          func(b *bytes.Buffer) { b.Write(cpuProfile(binary.LittleEndian, 8, stacks...)) },
		"64 bits, swapped": func(b *bytes.Buffer) { b.Write(cpuProfile(binary.BigEndian, 8, stacks...)) },
		"32 bits":          func(b *bytes.Buffer) { b.Write(cpuProfile(binary.LittleEndian, 4, stacks...)) },
		"32 bits, swapped": func(b *bytes.Buffer) { b.Write(cpuProfile(binary.BigEndian, 4, stacks...)) },
		"Go's runtime": func(b *bytes.Buffer) {
			runtime.GC()
			runtimepprof.Lookup("allocs").WriteTo(b, 0)
		},
		"labels": func(b *bytes.Buffer) {
			ours(b, &pprof.Profile{
				SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}, {Type: "samples", Unit: "count"}},
				PeriodType: &pprof.ValueType{Type: "cpu", Unit: "nanoseconds"}, Period: 9, TimeNanos: 8, DurationNanos: 7,
				Comments: []string{"one", "two"}, DropFrames: "x", KeepFrames: "y", DefaultSampleType: "cpu",
				Mapping: []*pprof.Mapping{app}, Function: []*pprof.Function{f}, Location: []*pprof.Location{named, raw},
				Sample: []*pprof.Sample{
					{Location: []*pprof.Location{named, raw, named}, Value: []int64{-3, 1 << 62}, Label: map[string][]string{"thread": {"main", "2"}},
						NumLabel: map[string][]int64{"bytes": {5, 0}, "time": {1}}, NumUnit: map[string][]string{"time": {"ms"}, "bytes": {"", "kB"}}},
					{Location: []*pprof.Location{}, Value: []int64{1, 1}},
				},
			})
		},
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			var in bytes.Buffer
			write(&in)
			want, err := pprof.ParseData(in.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got, err := pprof.ParseData([]byte(printed(t, in.Bytes(), Pprof, View{}, Options{})))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(described(want), described(got)); d != "" {
				t.Errorf("pprof's library (-), ours (+):\n%s", d)
			}
		})
	}
}
