//go:build linux

package endtoend

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/internal/stacks"
)

// wantSymbols compares the outermost calls of locations in the program with the symbols that perf
// finds for the same recording. For this, the build with symbols replaces the stripped program.
func (r *recording) wantSymbols(t *testing.T, s spinner, p pprofile.Profiles) {
	t.Helper()
	d := p.Dictionary()
	symbols := make(map[uint64]string)
	for i, places := range placesOf(d, regexp.MustCompile(".")) {
		if n := len(places); n > 0 {
			symbols[d.LocationTable().At(i).Address()] = places[n-1].FunctionName
		}
	}
	stripped := r.names
	if err := os.Rename(s.whole, s.program); err != nil {
		t.Fatal(err)
	}
	r.read(t)
	same, known := 0, 0
	for i, chain := range r.chains {
		for j, addr := range chain {
			if m := r.mapped(addr); m == nil || m.id != s.id || strings.HasSuffix(r.names[i][j], "@plt") {
				continue
			}
			if stripped[i][j] != "[unknown]" {
				known++
			}
			if j > 0 {
				addr--
			}
			if r.names[i][j] != symbols[addr] {
				t.Errorf("%#x: perf finds %s, and the Collector %q", addr, r.names[i][j], symbols[addr])
			}
			same++
		}
	}
	if same < 50 || known > same/10 {
		t.Errorf("perf finds %d symbols of %d frames without the build with symbols", known, same)
	}
}

// stacksOf returns a profile with names as weighted stacks.
func stacksOf(p pprofile.Profiles) *stacks.Profile {
	d := p.Dictionary()
	str := func(i int32) string { return d.StringTable().At(int(i)) }
	to := &stacks.Profile{Values: []stacks.ValueType{{Name: "samples", Unit: "count"}}}
	for _, m := range d.MappingTable().All() {
		to.Mappings = append(to.Mappings, stacks.Mapping{Start: m.MemoryStart(), Limit: m.MemoryLimit(), Offset: m.FileOffset(), File: str(m.FilenameStrindex())}.Symbolized())
	}
	for _, f := range d.FunctionTable().All() {
		to.Functions = append(to.Functions, stacks.Function{Name: str(f.NameStrindex()), LinkName: str(f.SystemNameStrindex()), File: str(f.FilenameStrindex())})
	}
	for _, l := range d.LocationTable().All() {
		location := stacks.Location{Mapping: uint32(l.MappingIndex()), Address: l.Address()}
		for _, line := range l.Lines().All() {
			location.Lines = append(location.Lines, stacks.Line{Function: uint32(line.FunctionIndex()), Line: line.Line(), Column: line.Column()})
		}
		to.Locations = append(to.Locations, location)
	}
	// stacks.Profile numbers its entries from 1, and 0 means none, so the empty first entries are
	// left out.
	to.Mappings, to.Functions, to.Locations = to.Mappings[1:], to.Functions[1:], to.Locations[1:]
	for _, s := range p.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().At(0).Samples().All() {
		sample := stacks.Sample{Values: s.Values().AsRaw()}
		for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
			sample.Stack = append(sample.Stack, uint32(l))
		}
		to.Samples = append(to.Samples, sample)
	}
	return to
}

// ownCosts counts the samples of p. own has the counts by the function of the innermost frame.
// traces has the counts by the functions of all frames, one a line, with "(inline)" after inlined
// calls. traces omits samples with a frame that has no function.
func ownCosts(p *stacks.Profile) (own map[string]int64, traces map[string]int64) {
	own, traces = make(map[string]int64), make(map[string]int64)
	for _, s := range p.Samples {
		var frames []string
		for _, at := range s.Stack {
			lines := p.Locations[at-1].Lines
			for i, line := range lines {
				name := p.Functions[line.Function-1].Name
				if len(frames) == 0 {
					own[name] += s.Values[0]
				}
				if i < len(lines)-1 {
					name += " (inline)"
				}
				frames = append(frames, name)
			}
			if len(lines) == 0 {
				frames = append(frames, "")
			}
		}
		if !slices.Contains(frames, "") {
			traces[strings.Join(frames, "\n")] += s.Values[0]
		}
	}
	return own, traces
}

// wantShown checks that pprof and speedscope show the functions of a profile with their samples,
// and that the hot functions are among them.
func wantShown(t *testing.T, dir string, p pprofile.Profiles, hot []string) {
	t.Helper()
	profile := stacksOf(p)
	own, traces := ownCosts(profile)
	file := filepath.Join(dir, "profile.pb.gz")
	write(t, file, profile.WritePprof)
	top := outputOf(t, "go", "tool", "pprof", "-symbolize=none", "-top", "-nodecount=100000", "-nodefraction=0", file)
	shown := make(map[string]int64)
	for _, m := range regexp.MustCompile(`(?m)^ +(\d+) +\S+% +\S+% +\d+ +\S+% +(.*?)(?: \(inline\))?$`).FindAllStringSubmatch(top, -1) {
		if n, err := strconv.ParseInt(m[1], 10, 64); err != nil {
			t.Fatal(err)
		} else if n > 0 && own[m[2]] > 0 {
			shown[m[2]] += n
		}
	}
	if diff := cmp.Diff(own, shown); diff != "" {
		t.Errorf("samples of functions (-profile +pprof):\n%s\n%s", diff, top)
	}
	for _, name := range hot {
		if !strings.Contains(top, "%  "+name+"\n") && !strings.Contains(top, "%  "+name+" (inline)\n") {
			t.Errorf("pprof does not show %s:\n%s", name, top)
		}
	}
	// pprof shows the file of a location without a function.
	unnamed := regexp.MustCompile(`(?m)^\[.*\]$|^<unknown>$`)
	listed := make(map[string]int64)
	for block := range strings.SplitSeq(outputOf(t, "go", "tool", "pprof", "-symbolize=none", "-traces", file), "-----------+-------------------------------------------------------\n") {
		if m := regexp.MustCompile(`(?s)^ *(\d+)   (.*)\n$`).FindStringSubmatch(block); m != nil {
			n, _ := strconv.ParseInt(m[1], 10, 64)
			listed[regexp.MustCompile(`\n +`).ReplaceAllString(m[2], "\n")] += n
		}
	}
	for trace := range listed {
		if traces[trace] == 0 && unnamed.MatchString(trace) {
			delete(listed, trace) // with a frame that has no function
		}
	}
	if diff := cmp.Diff(traces, listed); diff != "" {
		t.Errorf("samples of stacks (-profile +pprof):\n%s", diff)
	}
	write(t, filepath.Join(dir, "profile.json"), func(w io.Writer) error { return profile.WriteSpeedscope(w, "spin") })
	wantSpeedscope(t, filepath.Join(dir, "profile.json"), own)
}

// write creates a file with the content that a function writes.
func write(t *testing.T, name string, to func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(to(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// wantSpeedscope checks the functions at the leaves of a profile in speedscope's format.
func wantSpeedscope(t *testing.T, file string, own map[string]int64) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var scope struct {
		Shared   struct{ Frames []struct{ Name string } }
		Profiles []struct {
			Samples [][]int
			Weights []int64
		}
	}
	if err := json.Unmarshal(data, &scope); err != nil || len(scope.Profiles) != 1 {
		t.Fatalf("%v, %d profiles", err, len(scope.Profiles))
	}
	shown := make(map[string]int64)
	for i, sample := range scope.Profiles[0].Samples {
		if name := scope.Shared.Frames[sample[len(sample)-1]].Name; own[name] > 0 {
			shown[name] += scope.Profiles[0].Weights[i]
		}
	}
	if diff := cmp.Diff(own, shown); diff != "" {
		t.Errorf("samples of functions (-profile +speedscope):\n%s", diff)
	}
}
