//go:build linux

package integration

import (
	"bufio"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A plainProfile holds the costs in a profile in Callgrind's format, by function name. Its reader
// shares no code with symfilter.
type plainProfile struct {
	self  map[string]int64    // by function
	arcs  map[[2]string]int64 // by caller and callee
	lines map[string]int64    // own costs by "function file:line"
}

// recursionLevel matches a function name to which Callgrind has added a ' and a caller or a level
// of recursion. A ' after a slash does not count: names of PHP closures contain the paths of their
// files.
var recursionLevel = regexp.MustCompile(`^([^/']*)'.*`)

// readPlain reads the costs of one event of a profile, and multiplies them by scale. It removes
// callers and levels of recursion from names. A function without a name gets the name
// OBJECT+0xADDRESS.
func readPlain(t *testing.T, path string, event int, scale int64) *plainProfile {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &plainProfile{self: map[string]int64{}, arcs: map[[2]string]int64{}, lines: map[string]int64{}}
	names := map[string]string{}
	resolve := func(kind, value string) string { // "(1) name" defines, "(1)" refers
		id, name, defines := strings.Cut(value, ") ")
		if !strings.HasPrefix(value, "(") || strings.HasPrefix(value, "(below") {
			return value
		}
		if id = kind + strings.TrimSuffix(id, ")"); defines {
			names[id] = name
		}
		return names[id]
	}
	function := func(object, name string) string {
		name = recursionLevel.ReplaceAllString(name, "$1")
		if n, err := strconv.ParseUint(strings.TrimPrefix(name, "0x"), 16, 64); err == nil && strings.HasPrefix(name, "0x") && object != "???" {
			return fmt.Sprintf("%s+%#x", filepath.Base(object), n)
		}
		return name
	}
	positions := 1
	var last []uint64
	var object, fn, file, calledObject, callee string
	call := false
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		key, value, _ := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "positions: "):
			positions = len(strings.Fields(line)) - 1
			last = make([]uint64, positions)
		case key == "ob":
			object = resolve("ob", value)
		case key == "fl" || key == "fi" || key == "fe":
			file = resolve("fl", value)
		case key == "fn":
			fn = function(object, resolve("fn", value))
			calledObject = object
		case key == "cob":
			calledObject = resolve("ob", value)
		case key == "cfi" || key == "cfl":
			resolve("fl", value)
		case key == "cfn":
			callee = function(calledObject, resolve("fn", value))
			calledObject = object
		case key == "calls":
			call = true
		case line != "" && strings.ContainsRune("0123456789+-*", rune(line[0])):
			words := strings.Fields(line)
			if last == nil {
				last = make([]uint64, positions)
			}
			for i, w := range words[:positions] {
				switch n, _ := strconv.ParseUint(strings.TrimLeft(w, "+-*"), 0, 64); w[0] {
				case '+':
					last[i] += n
				case '-':
					last[i] -= n
				case '*':
				default:
					last[i] = n
				}
			}
			n := int64(0)
			if costs := words[positions:]; event < len(costs) {
				if n, err = strconv.ParseInt(costs[event], 10, 64); err != nil {
					t.Fatalf("%v in %s", err, line)
				}
				n *= scale
			}
			if call {
				p.arcs[[2]string{fn, callee}] += n
			} else {
				p.self[fn] += n
				p.lines[fmt.Sprintf("%s %s:%d", fn, file, last[positions-1])] += n
			}
			call = false
		}
	}
	if err := in.Err(); err != nil || len(p.self) < 5 {
		t.Fatalf("%d functions, %v", len(p.self), err)
	}
	maps.DeleteFunc(p.self, func(_ string, n int64) bool { return n == 0 })
	maps.DeleteFunc(p.lines, func(_ string, n int64) bool { return n == 0 })
	maps.DeleteFunc(p.arcs, func(_ [2]string, n int64) bool { return n == 0 })
	return p
}

// inCycles returns the arcs of a call graph that belong to a cycle.
func inCycles(arcs map[[2]string]int64) map[[2]string]bool {
	next := map[string][]string{}
	for a := range arcs {
		next[a[0]] = append(next[a[0]], a[1])
	}
	reach := map[string]map[string]bool{}
	for from := range next {
		seen := map[string]bool{}
		for todo := []string{from}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for _, to := range next[at] {
				if !seen[to] {
					seen[to] = true
					todo = append(todo, to)
				}
			}
		}
		reach[from] = seen
	}
	all := map[[2]string]bool{}
	for a := range arcs {
		all[a] = reach[a[1]][a[0]]
	}
	return all
}

func pprofTool(t *testing.T, flags ...string) string {
	t.Helper()
	return run(t, nil, "go", slices.Concat([]string{"tool", "pprof", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", "-noinlines"}, flags)...)
}

// peeked returns the functions' self costs and the arcs' costs in the output of pprof -peek.
func peeked(t *testing.T, out string) (self map[string]int64, arcs map[[2]string]int64) {
	t.Helper()
	self, arcs = map[string]int64{}, map[[2]string]int64{}
	var callers []string
	var costs []int64
	node := ""
	for line := range strings.Lines(out) {
		left, right, ok := strings.Cut(strings.TrimRight(line, "\n"), "| ")
		words := strings.Fields(left)
		if strings.HasPrefix(line, "---") {
			callers, costs, node = nil, nil, ""
		}
		if !ok || len(words) == 0 || strings.Contains(left, "flat%") {
			continue
		}
		n := pprofNumber(t, words[0])
		name := strings.TrimSpace(right)
		switch {
		case !strings.HasPrefix(right, "  "):
			node = name
			if self[name] = n; n == 0 {
				delete(self, name)
			}
			for i, c := range callers {
				arcs[[2]string{c, name}] = costs[i]
			}
		case node == "":
			callers, costs = append(callers, name), append(costs, n)
		default:
			if have := arcs[[2]string{node, name}]; have != 0 && have != n {
				t.Errorf("pprof has %d and %d for calls from %s to %s", have, n, node, name)
			}
			arcs[[2]string{node, name}] = n
		}
	}
	return self, arcs
}

// pprofNumber parses a number with its unit as printed by pprof.
func pprofNumber(t *testing.T, word string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimRight(word, "nsB"), "."), 10, 64)
	if err != nil && word != "." {
		t.Fatal(err)
	}
	return n
}

// topped returns the self costs in the output of pprof -top, by function.
func topped(t *testing.T, out string) map[string]int64 {
	t.Helper()
	self := map[string]int64{}
	row := regexp.MustCompile(`(?m)^ *(\S+) +\S+% +\S+% +(\S+) +\S+%  (.*)$`)
	for _, m := range row.FindAllStringSubmatch(out, -1) {
		if n := pprofNumber(t, m[1]); n != 0 {
			self[m[3]] = n
		}
	}
	return self
}

// listed returns the self costs in the output of pprof -list, by "function file:line". The output
// has only files that exist.
func listed(t *testing.T, out string) map[string]int64 {
	t.Helper()
	lines := map[string]int64{}
	routine, file := "", ""
	head := regexp.MustCompile(`^ROUTINE =+ (.*) in (.*)$`)
	row := regexp.MustCompile(`^ *(\S+) +\S+ +(\d+):`)
	for line := range strings.Lines(out) {
		if m := head.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			routine, file = m[1], m[2]
		} else if m := row.FindStringSubmatch(line); m != nil {
			if n := pprofNumber(t, m[1]); n != 0 {
				lines[routine+" "+file+":"+m[2]] += n
			}
		}
	}
	return lines
}

func (p *plainProfile) total() (sum int64) {
	for _, n := range p.self {
		sum += n
	}
	return sum
}

// surplus adds up, over all functions, the cost of calls into a function that exceeds its own cost
// and the cost of its calls. The sum is 0 if the costs of the profile add up. Xdebug's costs do
// not, since it rounds them to 10 ns.
func (p *plainProfile) surplus() (sum int64) {
	in := map[string]int64{}
	for a, n := range p.arcs {
		in[a[1]] += n
		in[a[0]] -= n
	}
	for f, n := range in {
		sum += max(0, n-p.self[f])
	}
	return sum
}

// compareStacks fails the test unless go tool pprof shows the costs of the profile for its stacks.
// The cost of a call may be lower, by at most the surplus. At least the given number of calls
// (least) must be compared.
func compareStacks(t *testing.T, name string, p *plainProfile, least int, show ...string) {
	t.Helper()
	stacks := filepath.Join(t.TempDir(), "stacks.pb.gz")
	run(t, nil, command, "callgrind", "--no-paths", "--output=pprof:"+stacks, name)
	top := pprofTool(t, append(show, "-top", stacks)...)
	if d := cmp.Diff(p.self, topped(t, top)); d != "" {
		t.Errorf("own costs (-callgrind, +pprof -top):\n%s", d)
	}
	self, arcs := peeked(t, pprofTool(t, append(show, "-peek=.", stacks)...))
	if d := cmp.Diff(p.self, self); d != "" {
		t.Errorf("own costs (-callgrind, +pprof -peek):\n%s", d)
	}
	want, got := map[[2]string]int64{}, map[[2]string]int64{}
	cycles := inCycles(p.arcs)
	surplus := p.surplus()
	if surplus > max(0, p.total()/100) {
		t.Errorf("%d of %d lead into functions and not out of them", surplus, p.total())
	}
	for a, n := range p.arcs {
		if less := n - arcs[a]; less > 0 && less <= surplus {
			n = arcs[a]
		}
		if !cycles[a] && n != 0 {
			want[a] = n
		}
	}
	for a, n := range arcs {
		if !cycles[a] {
			got[a] = n
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("calls (-callgrind, +pprof -peek):\n%s", d)
	}
	if len(want) < least {
		t.Errorf("%d calls were compared, want %d: %v", len(want), least, want)
	}
	lines := maps.Clone(p.lines)
	maps.DeleteFunc(lines, func(place string, _ int64) bool { return !strings.Contains(place, checkout) })
	list := listed(t, pprofTool(t, append(show, "-list=.", stacks)...))
	maps.DeleteFunc(list, func(place string, _ int64) bool { return !strings.Contains(place, checkout) })
	if d := cmp.Diff(lines, list); d != "" {
		t.Errorf("lines (-callgrind, +pprof -list):\n%s", d)
	}
}

// For the stacks of a profile, go tool pprof must show the profile's costs of functions, calls and
// lines.
func TestPprofShowsTheCostsOfAProfile(t *testing.T) {
	need(t, "valgrind", "gcc", "g++", "go")
	shape := filepath.Join(checkout, "integration", "testdata", "callgrind", "shape.c")
	for _, c := range []struct {
		name, source string
		build, flags []string
		long         bool
		least        int // calls that are compared
	}{
		{"C", "prof.c", with(gcc, "-O1", shape), []string{"--dump-instr=yes"}, false, 20},
		{"callers", "prof.c", with(gcc, "-O1", shape), []string{"--separate-callers=2"}, false, 20},
		{"recursion", "prof.c", with(gcc, "-O1", shape), []string{"--separate-recs=1"}, true, 20},
		{"C++", "threads.cpp", with(gxx, "-O1"), nil, true, 100},
	} {
		if c.long && !long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := callgrindFiles(t, c.flags, builtProgram(t, c.source, c.build...))[0]
			compareStacks(t, file, readPlain(t, file, 0, 1), c.least)
		})
	}
}

func TestPprofShowsTheCostsOfAProfileOfRust(t *testing.T) {
	if !long() {
		t.Skip("long")
	}
	need(t, "valgrind", "rustc", "go")
	prog := filepath.Join(t.TempDir(), "prog")
	run(t, nil, "rustc", "-g", "-O", filepath.Join("testdata", "callgrind", "prof.rs"), "-o", prog)
	file := callgrindFiles(t, nil, prog)[0]
	compareStacks(t, file, readPlain(t, file, 0, 1), 100)
}

// For the stacks of a PHP profile, go tool pprof must show the costs of the profile: time and
// memory. The memory of a call may be negative.
func TestPprofShowsTheCostsOfAProfileOfPHP(t *testing.T) {
	need(t, "php", "go")
	dir := t.TempDir()
	run(t, nil, "php", "-d", "xdebug.mode=profile", "-d", "xdebug.output_dir="+dir, "-d", "xdebug.use_compression=0",
		"-d", "xdebug.profiler_output_name=out", filepath.Join("testdata", "callgrind", "prof.php"))
	file := filepath.Join(dir, "out")
	for i, e := range []struct {
		name, unit string
		scale      int64
	}{{"Time", "nanoseconds", 10}, {"Memory", "B", 1}} {
		p := readPlain(t, file, i, e.scale)
		compareStacks(t, file, p, 7, "-sample_index="+e.name, "-unit="+e.unit)
	}
}

// The stacks of a stripped program must have the functions and inlined calls of the unstripped
// twin, and the build ID of its file.
func TestStacksOfAStrippedProgramAreThoseOfItsTwin(t *testing.T) {
	need(t, "valgrind", "gcc", "strip", "go")
	shape := filepath.Join(checkout, "integration", "testdata", "callgrind", "shape.c")
	prog := builtProgram(t, "prof.c", with(with(gcc, "-O1", shape), calls...)...)
	full := filepath.Join(t.TempDir(), "full")
	want := readPlain(t, callgrindFiles(t, instr, prog)[0], 0, 1)
	run(t, nil, "cp", prog, full)
	run(t, nil, "strip", prog)
	bare := callgrindFiles(t, instr, prog)[0]
	stacks := filepath.Join(t.TempDir(), "stacks.pb.gz")
	run(t, nil, command, "callgrind", "-s", full, "--output=pprof:"+stacks, bare)

	self, arcs := peeked(t, pprofTool(t, "-peek=.", stacks))
	got, of := map[string]int64{}, map[string]int64{}
	gotArcs, ofArcs := map[string]int64{}, map[string]int64{}
	cycles := inCycles(want.arcs)
	for place := range want.lines { // the functions of the program's own sources
		name, file, _ := strings.Cut(place, " ")
		if !strings.Contains(file, checkout) {
			continue
		}
		got[name], of[name] = self[name], want.self[name]
		for a, n := range want.arcs {
			if a[1] == name && !cycles[a] {
				gotArcs[a[0]+" > "+name], ofArcs[a[0]+" > "+name] = arcs[a], n
			}
		}
	}
	if d := cmp.Diff(of, got); d != "" || len(of) < 11 {
		t.Errorf("own costs of %d functions (-twin, +stripped):\n%s", len(of), d)
	}
	if d := cmp.Diff(ofArcs, gotArcs); d != "" || len(ofArcs) < 10 {
		t.Errorf("%d calls (-twin, +stripped):\n%s", len(ofArcs), d)
	}
	raw := run(t, nil, "go", "tool", "pprof", "-raw", stacks)
	id := regexp.MustCompile(`Build ID: (\w+)`).FindStringSubmatch(run(t, nil, "readelf", "-n", prog))[1]
	if m := regexp.MustCompile(`(?m)^1: 0x[0-9a-f]+/0x[0-9a-f]+/0x[0-9a-f]+ (\S+) (\S*) \[FN\]\[FL\]\[LN\]\[IN\]$`).FindStringSubmatch(raw); m == nil || m[1] != prog || m[2] != id {
		t.Errorf("the first mapping is %q, want %s with %s", m, prog, id)
	}
	if !regexp.MustCompile(`(?m)M=1 in_header \S+shape\.h:6:\d+ s=\d+.*\n +callback \S+prof\.c:15:\d+ `).MatchString(raw) {
		t.Errorf("in_header is not inlined into callback:\n%.3000s", raw)
	}
}
