//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A profiledTwin is testdata/profile/shop.cc and its library, built with debug information, and the
// stripped copies of both. The stripped program runs. The debug files, made by objcopy
// --only-keep-debug, have no offsets of segments.
type profiledTwin struct {
	dir   string // folder of the stripped files
	whole string // folder of the files with debug information
	debug string // --debug-file-directory
	ids   map[string]string
}

func newProfiledTwin(t *testing.T, compiler string, flags ...string) *profiledTwin {
	t.Helper()
	need(t, compiler, "strip", "objcopy", "readelf", "llvm-symbolizer-19")
	dir := t.TempDir()
	w := &profiledTwin{filepath.Join(dir, "run"), filepath.Join(dir, "whole"), filepath.Join(dir, "debug"), map[string]string{}}
	for _, d := range []string{w.dir, w.whole, w.debug} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(checkout, "integration", "testdata", "profile")
	flags = append([]string{"-g", "-O1", "-Wl,--build-id"}, flags...)
	library := filepath.Join(w.whole, "libshelf.so")
	run(t, nil, compiler, append(slices.Clone(flags), "-fPIC", "-shared", "-o", library, filepath.Join(source, "shelf.cc"))...)
	run(t, nil, compiler, append(slices.Clone(flags), "-o", filepath.Join(w.whole, "shop"), filepath.Join(source, "shop.cc"), "-L", w.whole, "-lshelf", "-Wl,-rpath,"+w.dir)...)
	for _, name := range []string{"shop", "libshelf.so"} {
		file := filepath.Join(w.whole, name)
		run(t, nil, "strip", "-o", filepath.Join(w.dir, name), file)
		id := buildIDOf(t, file)
		w.ids[name] = id
		folder := filepath.Join(w.debug, ".build-id", id[:2])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "objcopy", "--only-keep-debug", file, filepath.Join(folder, id[2:]+".debug"))
	}
	return w
}

// record runs the stripped program and returns the path of the profile that it writes.
func (w *profiledTwin) record(t *testing.T, env []string, pattern string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(w.dir, "shop"), args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := producers.combined(t, cmd); err != nil {
		t.Fatalf("shop: %v\n%s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(w.dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("shop wrote no %s, %v", pattern, err)
	}
	return found[0]
}

// profiled parses the output of symfilter profile --output=pprof with pprof's library.
func (w *profiledTwin) profiled(t *testing.T, args ...string) *pprof.Profile {
	t.Helper()
	return parsePprof(t, run(t, nil, command, append([]string{"profile", "--output=pprof", "--debug-file-directory", w.debug}, args...)...))
}

func parsePprof(t *testing.T, data string) *pprof.Profile {
	t.Helper()
	p, err := pprof.ParseData([]byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A profilePlace is a link-time address in a file.
type profilePlace struct {
	file string
	addr uint64
}

// compare fails the test if a location in the twin's files has other names than llvm-symbolizer-19
// finds in the files with debug information. It returns the number of locations and of inlined
// calls.
func (w *profiledTwin) compare(t *testing.T, p *pprof.Profile) (locations, inlined int) {
	t.Helper()
	want := map[profilePlace][]string{}
	asked := map[string][]profilePlace{} // by file
	placeOf := func(l *pprof.Location) (at profilePlace, ok bool) {
		if l.Mapping == nil || w.ids[filepath.Base(l.Mapping.File)] == "" {
			return at, false
		}
		at.file = filepath.Join(w.whole, filepath.Base(l.Mapping.File))
		at.addr = linkAddress(t, at.file, l.Address-l.Mapping.Start+l.Mapping.Offset)
		return at, true
	}
	for _, l := range p.Location {
		if at, ok := placeOf(l); ok {
			asked[at.file] = append(asked[at.file], at)
		}
	}
	for file, places := range asked {
		var in strings.Builder
		for _, at := range places {
			fmt.Fprintf(&in, "%#x\n", at.addr)
		}
		out := run(t, []byte(in.String()), "llvm-symbolizer-19", "--output-style=JSON", "--obj="+file)
		for i, line := range strings.Split(strings.TrimSpace(out), "\n") {
			var answer struct {
				Symbol []struct {
					FunctionName, FileName string
					Line                   int64
				}
			}
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			for _, s := range answer.Symbol {
				want[places[i]] = append(want[places[i]], fmt.Sprintf("%s %s:%d", s.FunctionName, s.FileName, s.Line))
			}
		}
	}
	for _, l := range p.Location {
		at, ok := placeOf(l)
		if !ok {
			continue
		}
		locations++
		inlined += max(0, len(l.Line)-1)
		var got []string
		for _, line := range l.Line {
			got = append(got, fmt.Sprintf("%s %s:%d", line.Function.Name, line.Function.Filename, line.Line))
		}
		if d := cmp.Diff(want[at], got); d != "" {
			t.Errorf("%s+%#x: llvm-symbolizer-19 (-), symfilter (+):\n%s", filepath.Base(at.file), at.addr, d)
		}
		if m := l.Mapping; !m.HasFunctions || !m.HasFilenames || !m.HasLineNumbers || !m.HasInlineFrames || m.BuildID != w.ids[filepath.Base(m.File)] {
			t.Errorf("a viewer would look up %s again: %+v", m.File, m)
		}
	}
	return locations, inlined
}

// linkAddress returns the link-time address of an offset in a file.
func linkAddress(t *testing.T, file string, offset uint64) uint64 {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr
		}
	}
	t.Fatalf("%s: no code at offset %#x", file, offset)
	return 0
}

// unnamed returns p without functions, but with build IDs, as some profilers write it. The paths of
// the files do not exist.
func unnamed(p *pprof.Profile, ids map[string]string) []byte {
	p = p.Copy()
	for _, l := range p.Location {
		l.Line = nil
	}
	p.Function = nil
	for _, m := range p.Mapping {
		m.HasFunctions, m.HasFilenames, m.HasLineNumbers, m.HasInlineFrames = false, false, false, false
		if id := ids[filepath.Base(m.File)]; id != "" {
			m.File, m.BuildID = "/nonexistent/"+filepath.Base(m.File), id
		}
	}
	var b bytes.Buffer
	p.Write(&b)
	return b.Bytes()
}

// top returns the functions that go tool pprof lists for a profile written by symfilter.
func top(t *testing.T, file string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append(append([]string{"tool", "pprof", "-top"}, args...), file)...)
	cmd.Env = append(os.Environ(), "PPROF_BINARY_PATH=/nonexistent", "PPROF_TOOLS=/nonexistent")
	out, err := producers.output(t, cmd)
	if err != nil {
		t.Fatalf("go tool pprof: %v\n%s", err, out)
	}
	return string(out)
}

// In profiles of real profilers, frames of a stripped program and its library must get the names of
// the unstripped twins. The names come from the file at the mapped path, from debug files found by
// build ID, or from a debuginfod server.
func TestProfilesOfStrippedProgramsHaveTheNamesOfTheirTwins(t *testing.T) {
	for _, b := range []struct {
		name, compiler string
		flags          []string
		long           bool
	}{
		{name: "g++", compiler: "g++"},
		{name: "g++ -no-pie", compiler: "g++", flags: []string{"-no-pie"}, long: true},
		{name: "g++ in one segment", compiler: "g++", flags: []string{"-O3", "-Wl,-z,noseparate-code"}, long: true},
		{name: "clang++ with lld", compiler: "clang++-19", flags: []string{"-fuse-ld=lld", "-O2"}, long: true},
		{name: "clang++ with lld -no-pie", compiler: "clang++-19", flags: []string{"-fuse-ld=lld", "-no-pie"}, long: true},
	} {
		if b.long && !long() {
			continue
		}
		t.Run(b.name, func(t *testing.T) { newProfiledTwin(t, b.compiler, b.flags...).compareProfiles(t) })
	}
}

func (w *profiledTwin) compareProfiles(t *testing.T) {
	for _, tt := range []struct {
		name, library, env, pattern string
		args                        []string
		kind                        string
		functions                   []string // functions that go tool pprof lists first; the value is the default one
	}{
		{name: "heap profile of tcmalloc", library: "libtcmalloc.so.4", env: "HEAPPROFILE=%s/tc", pattern: "tc.*.heap",
			kind: "heap profile of gperftools", functions: []string{"fresh", "main"}},
		{name: "CPU profile of gperftools", library: "libprofiler.so.0", env: "CPUPROFILE=%s/cpu.prof", pattern: "cpu.prof", args: []string{"60000000"},
			kind: "CPU profile of gperftools", functions: []string{"count", "(anonymous namespace)::work(unsigned long)"}},
		{name: "heap profile of jemalloc", library: "libjemalloc.so.2", env: "MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:9,prof_prefix:%s/je", pattern: "je.*.heap",
			kind: "heap profile of jemalloc", functions: []string{"fresh", "main"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			library := testenv.Find(t, "/usr/lib/*/"+tt.library)
			file := w.record(t, []string{"LD_PRELOAD=" + library, fmt.Sprintf(tt.env, w.dir)}, tt.pattern, tt.args...)
			if text := run(t, nil, command, "profile", "-q", file); !strings.HasPrefix(text, tt.kind+": "+file+"\n") {
				t.Errorf("got\n%s", text)
			}
			p := w.profiled(t, "-q", file)
			if n, inlined := w.compare(t, p); n < 6 || inlined < 1 {
				t.Errorf("%d locations were compared, with %d inlined calls", n, inlined)
			}
			named := filepath.Join(t.TempDir(), "named.pb.gz")
			run(t, nil, command, "profile", "-q", "--debug-file-directory", w.debug, "--output=pprof:"+named, file)
			listed := top(t, named)
			text := run(t, nil, command, "profile", "-q", "--debug-file-directory", w.debug, file)
			for _, f := range tt.functions {
				if !strings.Contains(listed, f) || !strings.Contains(text, "  "+f) {
					t.Errorf("%s is not listed by go tool pprof:\n%s\nor not in the text:\n%s", f, listed, text)
				}
			}
			compareTop(t, listed, text)
			if long() && tt.library == "libjemalloc.so.2" {
				compareJeprof(t, p, filepath.Join(w.dir, "shop"), file)
			}

			raw := filepath.Join(t.TempDir(), "raw.pb.gz")
			if err := os.WriteFile(raw, unnamed(p, w.ids), 0o644); err != nil {
				t.Fatal(err)
			}
			if again := w.profiled(t, "-q", raw); !cmp.Equal(names(p, w.ids), names(again, w.ids)) {
				t.Errorf("by path (-), by build ID (+):\n%s", cmp.Diff(names(p, w.ids), names(again, w.ids)))
			}
		})
	}
}

// compareJeprof fails the test if the total of jeprof is less than symfilter's, or exceeds it by a
// byte or more per stack: jeprof scales samples in floating point, and rounds only the sum.
func compareJeprof(t *testing.T, p *pprof.Profile, program, file string) {
	t.Helper()
	out := run(t, nil, "jeprof", "--text", "--show_bytes", program, file)
	var want, got int64
	if _, err := fmt.Sscanf(out, "Total: %d B", &want); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	for _, s := range p.Sample {
		got += s.Value[len(s.Value)-1]
	}
	if got > want || want-got >= int64(len(p.Sample)) {
		t.Errorf("jeprof: %d bytes in use, symfilter: %d", want, got)
	}
}

// names returns the names at the locations in files with a build ID in ids.
func names(p *pprof.Profile, ids map[string]string) (all []string) {
	for _, l := range p.Location {
		if l.Mapping == nil || ids[filepath.Base(l.Mapping.File)] == "" {
			continue
		}
		text := fmt.Sprintf("%#x", l.Address)
		for _, line := range l.Line {
			text += fmt.Sprintf(" %s %s:%d", line.Function.Name, line.Function.Filename, line.Line)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// compareTop fails the test unless symfilter's table has the program's functions with the same
// inclusive values as the table of go tool pprof.
func compareTop(t *testing.T, listed, text string) {
	t.Helper()
	rows := func(table string) (all []string) {
		for line := range strings.Lines(table) {
			words := strings.Fields(line)
			if len(words) < 6 || !strings.HasSuffix(words[1], "%") {
				continue
			}
			if i := slices.Index([]string{"fresh", "box", "main", "count"}, words[5]); i >= 0 {
				all = append(all, words[3]+" "+words[5])
			}
		}
		slices.Sort(all)
		return all
	}
	want := rows(listed)
	if d := cmp.Diff(want, rows(text)); d != "" || len(want) == 0 {
		t.Errorf("go tool pprof (-), symfilter (+):\n%s", d)
	}
}
