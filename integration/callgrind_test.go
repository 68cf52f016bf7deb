//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A profiled describes a program that the tests run under Callgrind twice at one path: unstripped
// and stripped.
type profiled struct {
	name   string
	source string
	build  []string // the compiler and its flags
	tool   []string // flags of Callgrind
	// the profile has no addresses, so a function is identified by its entry
	lines     bool
	tails     bool // some calls are jumps
	misplaced bool // Valgrind assigns lines of some functions to the preceding file
	callers   bool // functions are distinguished by their callers
	racy      bool // the waiting time differs between runs
	long      bool // with TEST_LONG only
	minimum   int  // minimum number of compared functions
}

var (
	calls       = []string{"-fno-optimize-sibling-calls"}
	instr       = []string{"--dump-instr=yes"}
	eachThread  = []string{"--separate-threads=yes", "--combine-dumps=yes"}
	profileTool = []string{"--tool=callgrind"}
)

var profiledPrograms = []profiled{
	{name: "pie", source: "prof.c", build: with(with(gcc, "-O2"), calls...), tool: with(instr, "--collect-jumps=yes"), minimum: 15},
	{name: "tails", source: "prof.c", build: with(gcc, "-O2"), tool: with(instr, "--dump-line=no", "--cache-sim=yes"), tails: true, minimum: 15},
	{name: "lines", source: "prof.c", build: with(with(gcc, "-O1"), calls...), lines: true, minimum: 12},
	{name: "threads", source: "threads.cpp", build: with(with(gxx, "-O1"), calls...), tool: with(instr, eachThread...), racy: true, minimum: 13},

	{name: "fixed", source: "prof.c", build: with(with(gcc, "-O1", "-no-pie"), calls...), tool: instr, long: true, minimum: 15},
	{name: "O0", source: "prof.c", build: with(gcc, "-O0"), tool: with(instr, "--cache-sim=yes", "--branch-sim=yes"), long: true, misplaced: true, minimum: 15},
	{name: "O3", source: "prof.c", build: with(gcc, "-O3"), tool: with(instr, "--collect-jumps=yes"), tails: true, long: true, minimum: 15},
	{name: "callers", source: "prof.c", build: with(with(gcc, "-O1"), calls...), tool: with(instr, "--separate-callers=2"), long: true, callers: true, minimum: 15},
	{name: "clang", source: "prof.c", build: with([]string{"clang-19", "-gdwarf-4", "-O2"}, calls...), tool: with(instr, "--collect-jumps=yes"), long: true, misplaced: true, minimum: 15},
	{name: "parts", source: "prof.c", build: with(with(gcc, "-O1"), calls...), tool: with(instr, "--dump-every-bb=5000", "--combine-dumps=yes"), long: true, minimum: 15},
	{name: "mangled", source: "threads.cpp", build: with(with(gxx, "-O2"), calls...), tool: with(instr, "--demangle=no"), racy: true, long: true, minimum: 10},
	{name: "threads_O0", source: "threads.cpp", build: with(gxx, "-O0"), tool: with(instr, "--demangle=no"), racy: true, long: true, minimum: 100},
	{name: "threads_fixed", source: "threads.cpp", build: with(with(gxx, "-O2", "-no-pie"), calls...), tool: with(instr, "--collect-jumps=yes"), racy: true, long: true, minimum: 10},
}

func TestProfilesOfStrippedProgramsSayWhatTheirTwinsSay(t *testing.T) {
	need(t, "valgrind", "callgrind_annotate", "gcc", "g++", "clang-19", "strip", "llvm-symbolizer-19")
	for _, p := range profiledPrograms {
		if p.long && !long() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			p.run(t)
		})
	}
}

// objects are the names of a tested program and its libraries.
var objects = []string{"prog", "libshape.so", "plugin.so"}

func (p *profiled) run(t *testing.T) {
	dir := t.TempDir()
	full, at, tree := filepath.Join(dir, "full"), filepath.Join(dir, "at"), filepath.Join(dir, "tree")
	for _, d := range []string{full, at, tree} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(checkout, "integration", "testdata", "callgrind")
	build := func(name string, argv ...string) {
		run(t, nil, argv[0], append(argv[1:], "-Wl,--build-id", "-o", filepath.Join(at, name))...)
		id := strings.TrimSpace(regexp.MustCompile(`Build ID: (\w+)`).FindStringSubmatch(run(t, nil, "readelf", "-n", filepath.Join(at, name)))[1])
		link := filepath.Join(tree, ".build-id", id[:2], id[2:]+".debug")
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(full, name), link); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{filepath.Join(at, "prog")}
	if strings.HasSuffix(p.source, ".c") {
		build("libshape.so", with(p.build, "-shared", "-fPIC", filepath.Join(source, "shape.c"))...)
		build("plugin.so", with(p.build, "-shared", "-fPIC", filepath.Join(source, "plugin.c"))...)
		build("prog", with(p.build, filepath.Join(source, p.source), "-L"+at, "-lshape", "-Wl,-rpath,$ORIGIN")...)
		args = append(args, filepath.Join(at, "plugin.so"))
	} else {
		build("prog", with(p.build, filepath.Join(source, p.source))...)
	}
	want, bare := filepath.Join(dir, "full.out"), filepath.Join(dir, "bare.out")
	p.profile(t, want, args)
	for _, name := range objects {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			continue
		}
		if err := os.Rename(filepath.Join(at, name), filepath.Join(full, name)); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "strip", "-o", filepath.Join(at, name), filepath.Join(full, name))
	}
	p.profile(t, bare, args)

	truth := readProfile(t, run(t, nil, command, "--output=json", "-s", full, want))
	got := readProfile(t, run(t, nil, command, "--output=json", "-s", full, bare))
	p.compare(t, got, truth, at)
	for _, r := range []*profile{truth, got} {
		r.check(t)
	}
	for _, name := range []string{want, bare} {
		checkParts(t, name, readProfile(t, run(t, nil, command, "--output=json", name)))
	}

	// with --sysroot, symfilter must not open the files of the program
	raw := readProfile(t, run(t, nil, command, "--output=json", "--sysroot="+tree, want))
	if len(raw.parts) == 1 {
		compareAnnotated(t, raw, want)
		p.compareAgain(t, bare, want, full, source)
	}
	if !p.lines {
		comparePlaces(t, got, run(t, nil, command, "--output=markup", bare), tree)
	}
	compareTable(t, got, run(t, nil, command, "callgrind", "--threshold=100", "-s", full, bare))
}

// Cachegrind's profiles have the format of Callgrind's, but no calls, objects or addresses.
func TestProfilesOfCachegrindAddUpAsInCallgrindAnnotate(t *testing.T) {
	need(t, "valgrind", "callgrind_annotate", "cg_annotate", "gcc")
	dir := t.TempDir()
	prog, out := filepath.Join(dir, "prog"), filepath.Join(dir, "out")
	run(t, nil, "gcc", "-g", "-O1", "-o", prog, filepath.Join("testdata", "callgrind", "shape.c"), filepath.Join("testdata", "callgrind", "prof.c"))
	cmd := exec.Command("valgrind", "--tool=cachegrind", "--cachegrind-out-file="+out, prog)
	if out, err := producers.combined(t, cmd); err != nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
	p := readProfile(t, run(t, nil, command, "--output=json", out))
	p.check(t)
	compareAnnotated(t, p, out)
	if !slices.ContainsFunc(p.functions, func(f profileRecord) bool { return f.name() == "even" }) {
		t.Error("there is no even")
	}
	again := filepath.Join(dir, "again")
	if err := os.WriteFile(again, []byte(run(t, nil, command, "--output=callgrind", out)), 0o644); err != nil {
		t.Fatal(err)
	}
	sorted := func(profile string) []string { // files and functions of equal cost have no order
		lines := strings.Split(strings.ReplaceAll(run(t, nil, "cg_annotate", profile), profile, "PROFILE"), "\n")
		slices.Sort(lines)
		return lines
	}
	if d := cmp.Diff(sorted(out), sorted(again)); d != "" {
		t.Errorf("cg_annotate of the profile, and of the profile with names (-before, +after):\n%s", d)
	}
}

func (p *profiled) profile(t *testing.T, out string, args []string) {
	t.Helper()
	cmd := exec.Command("valgrind", slices.Concat(profileTool, p.tool, []string{"--callgrind-out-file=" + out}, args)...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	if out, err := producers.combined(t, cmd); err != nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
}

// A profile holds the records that symfilter prints for a profile with --output=json, by kind.
type profile struct {
	parts     []profileRecord
	total     map[string]int64
	functions []profileRecord
	places    []profileRecord
}

type profileRecord struct {
	Record          string
	Function, ID    any
	Linkage, Object string
	File            string
	Line            int
	Address         address
	Unknown         bool
	Approximate     bool
	Cycle           int
	Calls           int64
	Self, Inclusive map[string]int64
	Total, Lines    map[string]int64
	Files           []struct {
		File string
		Self map[string]int64
	}
	Callers, Callees []struct {
		Function  string
		Inclusive map[string]int64
	}
	Source string
	Frames []jsonFrame
}

func readProfile(t *testing.T, out string) *profile {
	t.Helper()
	p := &profile{}
	for line := range strings.Lines(out) {
		var r profileRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch r.Record {
		case "part":
			p.parts = append(p.parts, r)
		case "profile":
			p.total = r.Total
		case "function":
			p.functions = append(p.functions, r)
		case "location":
			p.places = append(p.places, r)
		}
	}
	if p.total == nil {
		t.Fatalf("no profile in\n%.2000s", out)
	}
	return p
}

func (r *profileRecord) name() string { return r.Function.(string) }

// check checks that the costs of a profile's functions, places and parts add up, and that none
// exceeds the total.
func (p *profile) check(t *testing.T) {
	t.Helper()
	sum, places, parts, lines := map[string]int64{}, map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, f := range p.functions {
		for e, n := range f.Self {
			sum[e] += n
			if f.Inclusive[e] > p.total[e] || f.Inclusive[e] < 0 {
				t.Errorf("%v costs %d %s with all that it calls, of %d", f.Function, f.Inclusive[e], e, p.total[e])
			}
		}
		for _, c := range slices.Concat(f.Callers, f.Callees) {
			for e, n := range c.Inclusive {
				if n > p.total[e] {
					t.Errorf("%v and %s: %d %s, of %d", f.Function, c.Function, n, e, p.total[e])
				}
			}
		}
	}
	for _, l := range p.places {
		for e, n := range l.Self {
			places[e] += n
		}
	}
	for _, r := range p.parts {
		for e, n := range r.Total {
			parts[e] += n
		}
		for e, n := range r.Lines { // Callgrind's own summary may be higher
			lines[e] += n
		}
	}
	if d := cmp.Diff(p.total, parts); d != "" {
		t.Errorf("the parts do not add up (-total, +sum):\n%s", d)
	}
	for what, s := range map[string]map[string]int64{"functions": sum, "places": places} {
		if d := cmp.Diff(lines, s); d != "" {
			t.Errorf("the %s do not add up (-lines of the parts, +sum):\n%s", what, d)
		}
	}
}

// checkParts compares the costs of each part with its line "totals:" in the profile.
func checkParts(t *testing.T, name string, p *profile) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var want [][]string
	for _, m := range regexp.MustCompile(`(?m)^totals: (.*)$`).FindAllSubmatch(data, -1) {
		want = append(want, strings.Fields(string(m[1])))
	}
	names := strings.Fields(string(regexp.MustCompile(`(?m)^events: (.*)$`).FindSubmatch(data)[1]))
	var got [][]string
	for _, part := range p.parts {
		var row []string
		for _, e := range names {
			row = append(row, strconv.FormatInt(part.Lines[e], 10))
		}
		got = append(got, row)
	}
	for i := range min(len(want), len(got)) { // trailing zeros are omitted
		for len(want[i]) < len(got[i]) {
			want[i] = append(want[i], "0")
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("parts (-totals:, +sums):\n%s", d)
	}
}

// closedName returns a name as newer demanglers write it.
func closedName(fn string) string {
	for strings.Contains(fn, "> >") {
		fn = strings.ReplaceAll(fn, "> >", ">>")
	}
	return regexp.MustCompile(` \[clone (\.[^\]]*)\]`).ReplaceAllString(fn, " ($1)")
}

// key returns the name of a function with its object. If jumps hide levels of recursion, all levels
// have the same key.
func (p *profiled) key(f *profileRecord) string {
	fn := closedName(f.name())
	// a deleting destructor calls the destructor, whose demangled name is the same: for Valgrind
	// this is recursion
	if p.tails || strings.HasSuffix(p.source, ".cpp") {
		fn = regexp.MustCompile(`'\d+$`).ReplaceAllString(fn, "")
	}
	return path.Base(f.Object) + " " + fn
}

// compare compares the stripped program's functions with its twin's.
func (p *profiled) compare(t *testing.T, got, want *profile, at string) {
	t.Helper()
	type cost struct {
		Self      map[string]int64
		Inclusive string
		Calls     int64
	}
	rows := func(r *profile, skip map[string]bool) map[string]cost {
		all := map[string]cost{}
		for _, f := range r.functions {
			if path.Dir(f.Object) != at || f.Unknown && strings.HasPrefix(f.name(), "0x") {
				continue
			}
			key := p.key(&f)
			c := cost{Self: maps.Clone(f.Self), Inclusive: fmt.Sprint(f.Inclusive), Calls: f.Calls}
			if skip[key] || p.racy {
				c.Inclusive, c.Calls = "", 0
			}
			for e, n := range all[key].Self {
				c.Self[e] += n
			}
			all[key] = c
		}
		return all
	}
	skip := map[string]bool{} // functions that are targets of jumps
	if p.tails || p.lines {
		for _, r := range []*profile{got, want} {
			for _, f := range r.functions {
				if f.Approximate || strings.Contains(f.name(), "'") {
					skip[p.key(&f)] = true
				}
			}
		}
	}
	g, w := rows(got, skip), rows(want, skip)
	if p.lines { // without addresses, jumps between functions are not visible
		for key := range w {
			if _, ok := g[key]; !ok {
				delete(w, key)
			}
		}
	}
	if d := cmp.Diff(w, g, p.about()); d != "" {
		t.Errorf("functions (-as it is, +stripped):\n%s", d)
	}
	if len(g) < p.minimum {
		t.Errorf("%d functions were compared, want %d: %v", len(g), p.minimum, slices.Sorted(maps.Keys(g)))
	}
}

// annotated returns the costs in callgrind_annotate's table by file:function. The totals are
// "PROGRAM TOTALS".
func annotated(t *testing.T, name string, flags ...string) map[string][]int64 {
	t.Helper()
	cmd := exec.Command("callgrind_annotate", append(flags, "--threshold=100", "--auto=no", "--show-percs=no", name)...)
	cmd.Dir = t.TempDir() // callgrind_annotate removes the name of this folder from file names
	out, err := producers.combined(t, cmd)
	if err != nil {
		t.Fatalf("callgrind_annotate: %v\n%s", err, out)
	}
	all := map[string][]int64{}
	row := regexp.MustCompile(`^ *((?:[\d,.]+ +)+) (.*)$`)
	for line := range strings.Lines(string(out)) {
		m := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		var costs []int64
		for _, f := range strings.Fields(m[1]) {
			n, _ := strconv.ParseInt(strings.ReplaceAll(f, ",", ""), 10, 64)
			costs = append(costs, n)
		}
		key := m[2]
		if i := strings.LastIndex(key, " ["); i >= 0 && strings.HasSuffix(key, "]") {
			key = key[:i]
		}
		all[key] = costs
	}
	if len(all) < 10 {
		t.Fatalf("callgrind_annotate has %d functions:\n%.2000s", len(all), out)
	}
	return all
}

// compareAnnotated compares the functions' own costs in each file with callgrind_annotate's, and
// the inclusive costs of functions outside of cycles.
func compareAnnotated(t *testing.T, p *profile, name string) {
	t.Helper()
	events := strings.Fields(regexp.MustCompile(`(?m)^events: (.*)$`).FindStringSubmatch(readFile(t, name))[1])
	row := func(costs map[string]int64) (all []int64) {
		for _, e := range events {
			all = append(all, costs[e])
		}
		return all
	}
	sum := func(m map[string][]int64, key string, costs []int64) {
		if m[key] == nil {
			m[key] = make([]int64, len(costs))
		}
		for i, n := range costs {
			m[key][i] += n
		}
	}
	file := func(s string) string {
		if s == "" {
			return "???"
		}
		return s
	}
	spelled := func(f *profileRecord) string {
		if f.Linkage != "" {
			return f.Linkage
		}
		return f.name()
	}
	self, inclusive := map[string][]int64{}, map[string][]int64{}
	edges := map[string][]string{}
	for i := range p.functions {
		f := &p.functions[i]
		for _, in := range f.Files {
			sum(self, file(in.File)+":"+spelled(f), row(in.Self))
		}
		sum(inclusive, file(f.File)+":"+spelled(f), row(f.Inclusive))
		for _, c := range f.Callees {
			edges[f.name()] = append(edges[f.name()], c.Function)
		}
	}
	want := annotated(t, name)
	total := want["PROGRAM TOTALS"]
	if d := cmp.Diff(total, row(p.total)); d != "" {
		t.Errorf("totals (-callgrind_annotate, +ours):\n%s", d)
	}
	delete(want, "PROGRAM TOTALS")
	for key, costs := range want { // also lists files in which a function has no cost
		if !slices.ContainsFunc(costs, func(n int64) bool { return n != 0 }) {
			delete(want, key)
			if !slices.ContainsFunc(self[key], func(n int64) bool { return n != 0 }) {
				delete(self, key)
			}
		}
	}
	if d := cmp.Diff(want, self); d != "" {
		t.Errorf("own costs (-callgrind_annotate, +ours):\n%s", d)
	}
	compared := 0
	for key, costs := range annotated(t, name, "--inclusive=yes") {
		_, fn, _ := strings.Cut(key, ":")
		got := inclusive[key]
		if got == nil || reaches(edges, fn, fn) || strings.Contains(fn, "'") {
			continue
		}
		compared++
		if d := cmp.Diff(costs, got); d != "" {
			t.Errorf("%s with what it calls (-callgrind_annotate, +ours):\n%s", key, d)
		}
	}
	if text := readFile(t, name); compared < 100 && strings.Contains(text, "\ncalls=") && !strings.Contains(text, "'main'") {
		t.Errorf("only %d inclusive costs were compared", compared)
	}
}

// reaches reports whether one function calls another, directly or indirectly.
func reaches(edges map[string][]string, from, to string) bool {
	seen := map[string]bool{}
	todo := []string{from}
	for len(todo) > 0 {
		fn := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, next := range edges[fn] {
			if next == to {
				return true
			}
			if !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return false
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// compareAgain compares profiles that symfilter has written with --output=callgrind, as
// callgrind_annotate shows them. The stripped program's costs must equal those of its unstripped
// twin. In the profile of the twin, symfilter must not change the costs.
func (p *profiled) compareAgain(t *testing.T, bare, want, full, source string) {
	t.Helper()
	again := func(name string, flags ...string) string {
		out := name + ".again"
		if err := os.WriteFile(out, []byte(run(t, nil, command, append(flags, "--output=callgrind", name)...)), 0o644); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, flags := range [][]string{nil, {"--inclusive=yes"}} {
		truth := annotated(t, want, flags...)
		if d := cmp.Diff(truth, annotated(t, again(want, "--sysroot="+source), flags...)); d != "" {
			t.Errorf("callgrind_annotate %v of a profile as it is (-before, +after):\n%s", flags, d)
		}
		if p.lines || flags != nil && (p.tails || p.racy) {
			continue // not in the profile
		}
		got := annotated(t, again(bare, "-s", full), flags...)
		ours := func(all map[string][]int64) map[string][]int64 {
			kept := map[string][]int64{}
			for key, costs := range all {
				if !strings.HasPrefix(key, source) {
					continue
				}
				fn := closedName(key)
				if p.misplaced {
					_, fn, _ = strings.Cut(fn, ":")
				}
				fn = regexp.MustCompile(`([CD])1E(v|$)`).ReplaceAllString(fn, "${1}2E$2") // the same code
				if p.tails {
					fn = regexp.MustCompile(`'\d+$`).ReplaceAllString(fn, "")
				}
				if kept[fn] == nil {
					kept[fn] = make([]int64, len(costs))
				}
				for i, n := range costs {
					kept[fn][i] += n
				}
			}
			return kept
		}
		if p.withoutLines() {
			continue
		}
		if d := cmp.Diff(ours(truth), ours(got), p.about()); d != "" {
			t.Errorf("callgrind_annotate %v (-as it is, +stripped):\n%s", flags, d)
		}
	}
}

// about returns a comparison of costs. For a racy program, two costs may differ by 4 plus 2 % of
// the greater one.
func (p *profiled) about() cmp.Option {
	return cmp.Comparer(func(a, b int64) bool {
		return a == b || p.racy && max(a-b, b-a) <= 4+max(a, b)/50
	})
}

func (p *profiled) withoutLines() bool { return slices.Contains(p.tool, "--dump-line=no") }

// comparePlaces compares the functions that llvm-symbolizer finds for a profile's markup with the
// functions in the profile's JSON.
func comparePlaces(t *testing.T, p *profile, markup, tree string) {
	t.Helper()
	pc := regexp.MustCompile(`(?m)^(?:  )?\{\{\{pc:0x([0-9a-f]+):pc\}\}\}`)
	marked := pc.ReplaceAllString(markup, "@$1 $0")
	out := run(t, []byte(marked), "sh", "-c", `llvm-symbolizer-19 --filter-markup --debug-file-directory="$0" --debug-file-directory=/usr/lib/debug 2>/dev/null`, tree)
	modules := map[string]string{}
	for _, m := range regexp.MustCompile(`\{\{\{module:(\d+):([^:]*):`).FindAllStringSubmatch(markup, -1) {
		modules[m[1]] = m[2]
	}
	type place struct {
		object string
		addr   address
	}
	got := map[place]string{}
	for _, m := range regexp.MustCompile(`(?m)^@([0-9a-f]+) +([^\[\n]*)\[`).FindAllStringSubmatch(out, -1) {
		n, _ := strconv.ParseUint(m[1], 16, 64)
		got[place{modules[strconv.FormatUint(n>>40, 10)], address(n & (1<<40 - 1))}] = m[2]
	}
	compared := 0
	for _, l := range p.places {
		if l.Source != "symbols" {
			continue
		}
		fn, ok := got[place{path.Base(l.Object), l.Address}]
		want := l.Frames[len(l.Frames)-1]
		if !ok || want.File == "" { // libraries without debug files for llvm-symbolizer
			continue
		}
		compared++
		if plainName(fn) != plainName(want.Function) && fn != want.Linkage && !strings.Contains(want.Function, "[") && !strings.Contains(want.Function, ", >") {
			t.Errorf("%s+%#x: llvm-symbolizer has %q, want %q", path.Base(l.Object), uint64(l.Address), fn, want.Function)
		}
	}
	if compared < 50 {
		t.Errorf("llvm-symbolizer has only %d of the places", compared)
	}
}

// compareTable compares the table with the functions in JSON.
func compareTable(t *testing.T, p *profile, table string) {
	t.Helper()
	joined := regexp.MustCompile(`\n +([^\s\d-])`).ReplaceAllString(table, "  $1")
	rows := map[string]int{}
	for line := range strings.Lines(joined) {
		rows[strings.Join(strings.Fields(line), " ")]++
	}
	spaced := func(f *profileRecord) string {
		where := ""
		if f.File != "" {
			where = " " + f.File
		} else if f.Line > 0 {
			where = " ???"
		}
		if f.Line > 0 {
			where += ":" + strconv.Itoa(f.Line)
		}
		if f.Object != "" && f.Object != "???" {
			where += " [" + path.Base(f.Object) + "]"
		}
		mark := ""
		if f.Approximate {
			mark = "~"
		}
		cycle := ""
		if f.Cycle > 0 {
			cycle = fmt.Sprintf(" <cycle %d>", f.Cycle)
		}
		return mark + strings.Join(strings.Fields(f.name()), " ") + cycle + where
	}
	for i := range p.functions {
		f := &p.functions[i]
		want := spaced(f)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(rows)), func(row string) bool { return strings.HasSuffix(row, " "+want) }) {
			t.Errorf("not in the table: %s", want)
			return
		}
	}
	if !bytes.Contains([]byte(table), []byte("function")) {
		t.Errorf("no table:\n%s", table)
	}
}
