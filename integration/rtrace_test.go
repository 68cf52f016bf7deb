//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A tracer is a program that writes an sp-rtrace report about itself. The tests run its stripped
// copy.
type tracer struct {
	name   string
	source string
	build  []string
	plugin bool
	long   bool
	leaks  []string // the last lines printed by --leaks
}

var (
	leaksOfC   = []string{"# 1 block(s) leaked with total size of 99 bytes", "# 1 block(s) leaked with total size of 4096 bytes"}
	leaksOfCPP = []string{"# 3 block(s) leaked with total size of 9 bytes", "# 0 block(s) leaked with total size of 0 bytes"}
)

var tracers = []tracer{
	{name: "c", source: "app.c", build: with(gcc, "-O2"), plugin: true, leaks: []string{"# 3 block(s) leaked with total size of 131 bytes", leaksOfC[1]}},
	{name: "c_fixed", source: "app.c", build: with(gcc, "-O2", "-no-pie"), leaks: leaksOfC},
	{name: "cpp", source: "app.cpp", build: with(gxx, "-O2"), leaks: leaksOfCPP},
	{name: "cpp_fixed", source: "app.cpp", build: with(gxx, "-O2", "-no-pie"), leaks: leaksOfCPP},

	{name: "c_O0", source: "app.c", build: with(gcc, "-O0"), plugin: true, long: true, leaks: []string{"# 3 block(s) leaked with total size of 131 bytes", leaksOfC[1]}},
	{name: "c_clang", source: "app.c", build: []string{"clang-19", "-g", "-O2"}, plugin: true, long: true, leaks: []string{"# 3 block(s) leaked with total size of 131 bytes", leaksOfC[1]}},
	{name: "c_one_segment", source: "app.c", build: with(gcc, "-O2", "-Wl,-z,noseparate-code"), long: true, leaks: leaksOfC},
	{name: "cpp_O0", source: "app.cpp", build: with(gxx, "-O0"), long: true, leaks: leaksOfCPP},
	{name: "cpp_clang", source: "app.cpp", build: []string{"clang++-19", "-g", "-O1", "-no-pie"}, long: true, leaks: leaksOfCPP},
	{name: "cpp_static", source: "app.cpp", build: with(gxx, "-O2", "-static-pie"), long: true, leaks: leaksOfCPP},
}

// In every output form, each frame in the report of a stripped program must equal llvm-symbolizer's
// answer for the frame's address.
func TestFramesOfReportsAreThoseOfTheirPlaces(t *testing.T) {
	need(t, "gcc", "g++", "clang-19", "strip", "llvm-symbolizer-19")
	for _, tr := range tracers {
		if tr.long && !long() {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			tr.run(t)
		})
	}
}

func (tr *tracer) run(t *testing.T) {
	dir := t.TempDir()
	full, tree := filepath.Join(dir, "full"), filepath.Join(dir, "tree")
	for _, d := range []string{full, filepath.Join(dir, "bare"), tree} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := func(name, from string, argv ...string) string {
		source := filepath.Join(checkout, "integration", "testdata", "rtrace", from)
		bare := filepath.Join(dir, "bare", name)
		run(t, nil, argv[0], append(argv[1:], "-Wl,--build-id", "-o", filepath.Join(full, name), source)...)
		run(t, nil, "strip", "-o", bare, filepath.Join(full, name))
		id := strings.TrimSpace(regexp.MustCompile(`Build ID: (\w+)`).FindStringSubmatch(run(t, nil, "readelf", "-n", bare))[1])
		link := filepath.Join(tree, ".build-id", id[:2], id[2:]+".debug")
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(full, name), link); err != nil {
			t.Fatal(err)
		}
		return bare
	}
	argv := []string{build("my prog", tr.source, tr.build...)}
	if tr.plugin {
		argv = append(argv, build("plugin.so", "plugin.c", "gcc", "-g", "-O2", "-shared", "-fPIC"))
	}
	report := run(t, nil, argv[0], argv[1:]...)
	name := filepath.Join(dir, "report")
	if err := os.WriteFile(name, []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}

	records := parseTraces(t, run(t, nil, command, "--output=json", "-s", full, name))
	frames, inlined := tr.compareSymbolizer(t, records, full)
	if frames < 60 || inlined < 3 && !strings.Contains(tr.name, "O0") {
		t.Errorf("%d frames were compared, %d of them with inlined calls", frames, inlined)
	}
	compareTraceText(t, records, run(t, nil, command, "-s", full, name))
	compareTraceMarkup(t, records, run(t, nil, command, "--output=markup", "-s", full, name), tree)
	compareTraceReport(t, records, report, run(t, nil, command, "--output=rtrace", "-s", full, name))

	if got := run(t, nil, command, "--output=rtrace", "--sysroot="+tree, name); withoutModules(got) != report || !strings.Contains(got, " from ") {
		t.Errorf("nothing can be resolved: got\n%s\nwant what it was, with modules:\n%s", got, report)
	}
	leaks := strings.Split(strings.TrimSuffix(run(t, []byte(report), command, "rtrace", "--leaks", "--output=rtrace", "--sysroot="+tree), "\n"), "\n")
	want := []string{"# Resource - memory (memory in heap):", tr.leaks[0], "# Resource - segment (shared memory segment):", tr.leaks[1]}
	if got := leaks[len(leaks)-4:]; !slices.Equal(got, want) {
		t.Errorf("leaks: got %q, want %q", got, want)
	}
	if again := run(t, []byte(run(t, nil, command, "--output=rtrace", "-s", full, name)), command, "--output=rtrace", "-s", full); again != run(t, nil, command, "--output=rtrace", "-s", full, name) {
		t.Errorf("a report that was resolved is resolved to another:\n%s", again)
	}
}

// withoutModules removes the modules from frames without a name.
func withoutModules(report string) string {
	return regexp.MustCompile(`(?m)^(\t0x[0-9a-f]+) from .*$`).ReplaceAllString(report, "$1")
}

// A traceRecord is an object of a report in JSON.
type traceRecord struct {
	Record string
	Path   string
	From   address
	Frames []traceSite
}

type traceSite struct {
	Frame   uint64
	Address address
	Module  string
	Offset  address
	BuildID string `json:"build_id"`
	Source  string
	Frames  []jsonFrame
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func parseTraces(t *testing.T, out string) (all []traceRecord) {
	t.Helper()
	for line := range strings.Lines(out) {
		var r traceRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

func traceSites(records []traceRecord) (all []traceSite) {
	for _, r := range records {
		all = append(all, r.Frames...)
	}
	return all
}

// compareSymbolizer compares the frames with llvm-symbolizer's answers. The test itself computes
// the link-time addresses.
func (tr *tracer) compareSymbolizer(t *testing.T, records []traceRecord, full string) (frames, inlined int) {
	t.Helper()
	type mapped struct {
		path string
		bias address
	}
	type symbol struct {
		FunctionName, FileName string
		Line                   int
	}
	asked := make(map[string][]address) // places by file
	where := make(map[address]mapped)
	for _, r := range records {
		if r.Record == "map" && strings.HasPrefix(r.Path, "/") {
			where[r.From] = mapped{r.Path, r.From - codeOf(t, r.Path)}
		}
	}
	place := func(s traceSite) (file string, rel address) {
		best := address(0)
		for from := range where {
			if from <= s.Address && from > best {
				best = from
			}
		}
		m := where[best]
		file = m.path
		if path.Base(path.Dir(file)) == "bare" {
			file = filepath.Join(full, path.Base(file))
		} else if id := s.BuildID; len(id) > 2 { // the file is a library of the system
			if debug := "/usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug"; exists(debug) {
				file = debug
			}
		}
		return file, s.Address - 1 - m.bias
	}
	sites := traceSites(records)
	for _, s := range sites {
		file, rel := place(s)
		if !slices.Contains(asked[file], rel) {
			asked[file] = append(asked[file], rel)
		}
	}
	want := make(map[codePlace][]symbol)
	for file, rels := range asked {
		var in bytes.Buffer
		for _, rel := range rels {
			fmt.Fprintf(&in, "%#x\n", uint64(rel))
		}
		out := run(t, in.Bytes(), "llvm-symbolizer-19", "--output-style=JSON", "--obj="+file)
		i := 0
		for line := range strings.Lines(out) {
			var answer struct{ Symbol []symbol }
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			want[codePlace{file, rels[i]}] = answer.Symbol
			i++
		}
	}
	for _, s := range sites {
		file, rel := place(s)
		symbols := want[codePlace{file, rel}]
		if len(symbols) == 1 && symbols[0].FunctionName == "" && s.Source == "" {
			continue
		}
		frames++
		if len(s.Frames) > 1 {
			inlined++
		}
		if len(s.Frames) != len(symbols) {
			t.Errorf("%s+%#x: got %+v, want %+v", file, uint64(rel), s.Frames, symbols)
			continue
		}
		for i, w := range symbols {
			g := s.Frames[i]
			version := strings.IndexByte(w.FunctionName, '@')
			if version > 0 {
				w.FunctionName = w.FunctionName[:version]
			}
			if w.Line == 0 && g.File == "" { // for a local symbol llvm-symbolizer prints the object file
				w.FileName = ""
			}
			if plainName(g.Function) != plainName(w.FunctionName) || g.Line != w.Line || path.Clean(g.File) != path.Clean(w.FileName) || g.Inlined != (i < len(symbols)-1) {
				t.Errorf("%s+%#x: got %+v, want %+v", file, uint64(rel), g, w)
			}
		}
	}
	return frames, inlined
}

// codeOf returns the link-time address of the first page of a file's code.
func codeOf(t *testing.T, name string) address {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			return address(p.Vaddr &^ 0xfff)
		}
	}
	t.Fatalf("%s has no code", name)
	return 0
}

// A traceRow is one function of a frame: a frame with inlined calls has several.
type traceRow struct {
	function, file string
	line           int
}

func rowsOf(records []traceRecord) (all []traceRow) {
	for _, s := range traceSites(records) {
		for _, f := range s.Frames {
			all = append(all, traceRow{f.Function, path.Clean(f.File), f.Line})
		}
	}
	return all
}

func compareRows(t *testing.T, form string, got, want []traceRow) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("frame %d of the %s: got %+v, want that of the JSON, %+v", i, form, got[i], want[i])
			return
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d frames in the %s, %d in the JSON", len(got), form, len(want))
	}
}

// compareTraceText compares the frames in the text with those in JSON.
func compareTraceText(t *testing.T, records []traceRecord, text string) {
	t.Helper()
	var got []traceRow
	for _, f := range parseFrames(t, text) {
		if f.File == "" {
			f.Func, _, _ = strings.Cut(f.Func, "+0x")
		}
		got = append(got, traceRow{f.Func, path.Clean(f.File), f.Line})
	}
	compareRows(t, "text", got, rowsOf(records))
}

// compareTraceMarkup compares the functions that llvm-symbolizer finds for a report's markup with
// those in JSON.
func compareTraceMarkup(t *testing.T, records []traceRecord, markup, tree string) {
	t.Helper()
	if strings.Count(markup, "{{{reset}}}") != 1 {
		t.Errorf("%d resets in the markup of one process", strings.Count(markup, "{{{reset}}}"))
	}
	out := run(t, []byte(markup), "sh", "-c", `llvm-symbolizer-19 --filter-markup --debug-file-directory="$0" --debug-file-directory=/usr/lib/debug 2>/dev/null`, tree)
	got := make(map[codePlace]string)
	for _, f := range parseFrames(t, out) {
		if f.Inline == 0 {
			fn, _, _ := strings.Cut(f.Func, "+0x")
			fn, _, _ = strings.Cut(fn, "@")
			got[codePlace{f.Module, address(f.Rel)}] = fn
		}
	}
	compared := 0
	for _, s := range traceSites(records) {
		fn, ok := got[codePlace{path.Base(s.Module), s.Offset}]
		if !ok || len(s.Frames) == 0 {
			continue
		}
		compared++
		if want := s.Frames[len(s.Frames)-1].Function; plainName(fn) != plainName(want) {
			t.Errorf("%s+%#x: llvm-symbolizer has %q, want %q", s.Module, uint64(s.Offset), fn, want)
		}
	}
	if compared < 40 {
		t.Errorf("llvm-symbolizer has %d of the frames", compared)
	}
}

// compareTraceReport compares the frames of a resolved report with those in JSON, and its other
// lines with the original report.
func compareTraceReport(t *testing.T, records []traceRecord, report, resolved string) {
	t.Helper()
	var got []traceRow
	var rest strings.Builder
	last := ""
	frame := regexp.MustCompile(`^\t(0x[0-9a-f]+) in (.*?)(?: at (.*):(\d+)| from /.*)$`)
	sites := traceSites(records)
	left := 0 // remaining lines of the current frame
	for line := range strings.Lines(resolved) {
		m := frame.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			if strings.HasPrefix(line, "\t0x") {
				sites = sites[1:]
			}
			rest.WriteString(withoutModules(line))
			continue
		}
		if left == 0 {
			left = len(sites[0].Frames)
			sites = sites[1:]
			rest.WriteString("\t" + m[1] + "\n")
			last = m[1]
		}
		left--
		if m[1] != last {
			t.Errorf("%q: another address than that of the frame, %s", line, last)
		}
		name := m[2]
		n, _ := strconv.Atoi(m[4])
		got = append(got, traceRow{name, path.Clean(m[3]), n})
	}
	want := rowsOf(records)
	for i := range min(len(got), len(want)) {
		if got[i].function == want[i].function+"()" {
			got[i].function = want[i].function
		}
	}
	compareRows(t, "report", got, want)
	if was := strings.Replace(report, "backtrace depth=", "filter=resolve, backtrace depth=", 1); rest.String() != was {
		t.Errorf("the report but for its frames: got\n%s\nwant\n%s", rest.String(), was)
	}
}
