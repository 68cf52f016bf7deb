//go:build linux

package integration

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A changeRecord is a record of --diff in JSON.
type changeRecord struct {
	Record        string
	Function      string
	Object        string
	Note          string
	Before, After changeSide
}

type changeSide struct {
	Self, Inclusive map[string]int64
	Total           map[string]int64
}

// compared returns the records of --diff in JSON, and the exit status.
func compared(t *testing.T, args ...string) (all []changeRecord, total changeRecord, code int) {
	t.Helper()
	out, err := producers.output(t, exec.Command(command, append([]string{"callgrind", "--diff", "--output=json"}, args...)...))
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, `{"v":1,"record":"limit",`) {
			continue
		}
		var r changeRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		switch r.Record {
		case "change":
			all = append(all, r)
		case "comparison":
			total = r
		}
	}
	return all, total, code
}

// A changed holds four profiles of a program: before and after a change to it, each unstripped and
// stripped.
type changed struct {
	before, after         string // profiles of the unstripped program
	bareBefore, bareAfter string
	debug                 string // folder of the unstripped programs
}

// change builds two versions of a program, and profiles each unstripped and stripped. The programs'
// paths have equal lengths, since the costs of the dynamic loader depend on them.
func change(t *testing.T, source string, before, after []string, flags ...string) changed {
	t.Helper()
	dir := t.TempDir()
	c := changed{debug: filepath.Join(dir, "full")}
	profileOf := func(name string, build []string) (full, bare string) {
		at := filepath.Join(dir, name, "prog")
		twin := filepath.Join(c.debug, name)
		for _, d := range []string{filepath.Dir(at), c.debug} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		sources := strings.Fields(source)
		for i, s := range sources {
			sources[i] = filepath.Join(checkout, "integration", "testdata", "callgrind", s)
		}
		run(t, nil, build[0], slices.Concat(build[1:], sources, []string{"-Wl,--build-id", "-o", at})...)
		full = callgrindFiles(t, flags, at)[0]
		if err := os.Rename(at, twin); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "strip", "-o", at, twin)
		return full, callgrindFiles(t, flags, at)[0]
	}
	c.before, c.bareBefore = profileOf("old", before)
	c.after, c.bareAfter = profileOf("new", after)
	return c
}

// stableKey returns the name that a function also has in another build.
func stableKey(name string) string {
	name, _, _ = strings.Cut(name, " [clone ")
	if regexp.MustCompile(`^(\S+\+)?0x[0-9a-f]+('\d+)?$`).MatchString(name) {
		return "(functions without names)"
	}
	name = regexp.MustCompile(`('\d+)+$`).ReplaceAllString(name, "")
	name, _, _ = strings.Cut(name, "@")
	return regexp.MustCompile(`(\.(isra|part|constprop|cold)(\.\d+)*)+$`).ReplaceAllString(name, "")
}

// changesOf returns the changes of own costs by name.
func changesOf(all []changeRecord) map[string]int64 {
	sum := map[string]int64{}
	for _, r := range all {
		if n := r.After.Self["Ir"] - r.Before.Self["Ir"]; n != 0 {
			sum[closedName(stableKey(r.Function))] += n
		}
	}
	for name, n := range sum {
		if n == 0 {
			delete(sum, name)
		}
	}
	return sum
}

var changedPrograms = []struct {
	name, source  string
	before, after []string
	flags         []string
	long          bool // with TEST_LONG only
}{
	{"a change of C++", "change.cc", with(gxx, "-O1"), with(gxx, "-O1", "-DAFTER"), instr, false},
	{"another optimization", "shape.c prof.c", with(with(gcc, "-O1"), calls...), with(with(gcc, "-O3"), calls...), instr, true},
	{"recursion and callers", "change.cc", with(gxx, "-O1"), with(gxx, "-O0", "-DAFTER"), []string{"--separate-recs=3"}, true},
}

// The changes must equal the differences between the two profiles, and the changes that pprof
// -diff_base reports for these profiles as stacks.
func TestDifferencesAreThoseOfPprof(t *testing.T) {
	need(t, "valgrind", "gcc", "g++", "go", "strip")
	for _, p := range changedPrograms {
		if p.long && !long() {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := change(t, p.source, p.before, p.after, p.flags...)
			all, total, _ := compared(t, c.before, c.after)
			got := changesOf(all)

			want := map[string]int64{}
			for i, file := range []string{c.before, c.after} {
				one := readProfile(t, run(t, nil, command, "callgrind", "--output=json", file))
				for _, f := range one.functions {
					want[closedName(stableKey(f.name()))] += f.Self["Ir"] * int64(2*i-1)
				}
				if side := []map[string]int64{total.Before.Total, total.After.Total}[i]; !cmp.Equal(side, one.total) {
					t.Errorf("total of side %d: %v, want %v", i, side, one.total)
				}
			}
			for name, n := range want {
				if n == 0 {
					delete(want, name)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("changes of own costs (-the two profiles, +together):\n%s", d)
			}
			flat, cum := pprofChanges(t, c.before, c.after)
			if d := cmp.Diff(flat, got); d != "" {
				t.Errorf("changes of own costs (-pprof -diff_base, +ours):\n%s", d)
			}
			for _, r := range all { // the program's own functions
				name := strings.HasPrefix(r.Function, "ledger::") || r.Function == "main"
				if n := r.After.Inclusive["Ir"] - r.Before.Inclusive["Ir"]; name && n != cum[r.Function] {
					t.Errorf("inclusive change of %s: %d, want %d as in pprof -diff_base", r.Function, n, cum[r.Function])
				}
			}
			if len(got) < 4 {
				t.Errorf("only %d functions changed: %v", len(got), got)
			}
		})
	}
}

// pprofChanges returns the changes of own and of inclusive costs in go tool pprof, by name.
func pprofChanges(t *testing.T, before, after string) (flat, cum map[string]int64) {
	t.Helper()
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "before.pb.gz"), filepath.Join(dir, "after.pb.gz")}
	for i, in := range []string{before, after} {
		run(t, nil, command, "callgrind", "--output=pprof:"+files[i], in)
	}
	out := run(t, nil, "go", "tool", "pprof", "-top", "-sample_index=Ir", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0", "-unit=count", "-diff_base="+files[0], files[1])
	flat, cum = map[string]int64{}, map[string]int64{}
	row := regexp.MustCompile(`(?m)^ *(-?\d+) +-?[\d.]+% +-?[\d.]+% +(-?\d+) +-?[\d.]+%  (.*?)( \(inline\))?$`)
	for _, m := range row.FindAllStringSubmatch(out, -1) {
		for i, sum := range []map[string]int64{flat, cum} {
			n, err := strconv.ParseInt(m[1+i], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if key := closedName(stableKey(m[3])); n != 0 {
				if sum[key] += n; sum[key] == 0 {
					delete(sum, key)
				}
			}
		}
	}
	if len(flat) == 0 {
		t.Fatalf("no changes in\n%s", out)
	}
	return flat, cum
}

// A stripped program's profile must have the costs of its unstripped twin. The changes between two
// stripped programs must equal the changes between their twins.
func TestStrippingChangesNoCosts(t *testing.T) {
	need(t, "valgrind", "g++", "strip")
	c := change(t, "change.cc", with(gxx, "-O1"), with(gxx, "-O1", "-DAFTER"), instr...)
	own := func(all []changeRecord) map[string]int64 { // costs of the program's own functions
		kept := slices.DeleteFunc(slices.Clone(all), func(r changeRecord) bool { return filepath.Base(r.Object) != "prog" })
		return changesOf(kept)
	}
	symbols := []string{"-s", c.debug}
	twins, _, _ := compared(t, append(symbols, c.before, c.bareBefore)...)
	if d := cmp.Diff(map[string]int64{}, own(twins)); d != "" {
		t.Errorf("changes between a program and its stripped twin (-want, +got):\n%s", d)
	}
	full, _, _ := compared(t, append(symbols, c.before, c.after)...)
	bare, _, _ := compared(t, append(symbols, c.bareBefore, c.bareAfter)...)
	if d := cmp.Diff(own(full), own(bare)); d != "" {
		t.Errorf("changes (-unstripped, +stripped):\n%s", d)
	}
	notes := map[string]string{}
	for _, r := range bare {
		if strings.HasPrefix(r.Function, "ledger::") && r.Note != "" {
			notes[r.Function] = r.Note
		}
	}
	want := map[string]string{"ledger::audit(ledger::Entry const*, int)": "(new)", "ledger::verify(ledger::Entry const*, int)": "(gone)"}
	if d := cmp.Diff(want, notes); d != "" {
		t.Errorf("notes (-want, +got):\n%s", d)
	}

	// recursion must be counted once on both sides, and --limit must find the functions
	depth := slices.IndexFunc(bare, func(r changeRecord) bool { return strings.HasPrefix(r.Function, "ledger::depth") })
	if depth < 0 || bare[depth].Before.Inclusive["Ir"] != bare[depth].Before.Self["Ir"] {
		t.Errorf("ledger::depth: %+v, want equal own and inclusive costs", bare[max(depth, 0)])
	}
	for _, g := range []struct {
		limit string
		code  int
	}{
		{"ledger::total(ledger::Entry const*, int):Ir=+1%", 4},
		{"ledger::total:Ir=+1000%", 0},
		{"ledger::depth.self:Ir=-20%", 0},
		{"ledger::depth.self:Ir=-30%", 4},
		{"_ZN6ledger5leastIiEET_PKS1_iS1_:Ir=+0%", 0},
		{"ledger::verify:Ir=0", 0},
		{"ledger::nothing:Ir=0", 4},
		{"[prog]:Ir=+1%", 4},
	} {
		if _, _, code := compared(t, append(symbols, "--limit", g.limit, c.bareBefore, c.bareAfter)...); code != g.code {
			t.Errorf("--limit %s: exit status %d, want %d", g.limit, code, g.code)
		}
	}

	// a truncated profile, as of a killed process
	cut := filepath.Join(t.TempDir(), "cut.out")
	if text := readFile(t, c.bareAfter); os.WriteFile(cut, []byte(text[:len(text)/2]), 0o644) != nil {
		t.Fatal("cannot write", cut)
	}
	if _, _, code := compared(t, append(symbols, c.bareBefore, cut)...); code != 4 {
		t.Errorf("with a profile that was cut: exit status %d, want 4", code)
	}
}

func TestDifferencesAreThoseOfCgDiff(t *testing.T) {
	need(t, "valgrind", "cg_diff", "g++")
	dir := t.TempDir()
	var files []string
	for i, flag := range []string{"-DBEFORE", "-DAFTER"} {
		prog, out := filepath.Join(dir, []string{"old", "new"}[i]), filepath.Join(dir, "cachegrind."+[]string{"old", "new"}[i])
		run(t, nil, "g++", "-g", "-O1", flag, filepath.Join("testdata", "callgrind", "change.cc"), "-o", prog)
		cmd := exec.Command("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file="+out, prog)
		if out, err := producers.combined(t, cmd); err != nil {
			t.Fatalf("valgrind: %v\n%s", err, out)
		}
		files = append(files, out)
	}
	all, _, _ := compared(t, files...)
	want := map[string]int64{}
	name := ""
	for line := range strings.Lines(run(t, nil, "cg_diff", files[0], files[1])) {
		line = strings.TrimSuffix(line, "\n")
		if fn, ok := strings.CutPrefix(line, "fn="); ok {
			name = closedName(stableKey(fn))
		} else if fields := strings.Fields(line); name != "" && len(fields) == 2 && fields[0] == "0" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if want[name] += n; want[name] == 0 {
				delete(want, name)
			}
		}
	}
	if d := cmp.Diff(want, changesOf(all)); d != "" {
		t.Errorf("changes of own costs (-cg_diff, +ours):\n%s", d)
	}
	if len(want) < 4 {
		t.Errorf("cg_diff has only %v", want)
	}
}
