//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A textTwin is a program whose text report of Valgrind is compared with the text made from the XML
// of its stripped twin.
type textTwin struct {
	name  string
	from  string
	build []string
	tool  []string // arguments of Valgrind
	args  []string
	races bool // threads take turns in different orders: lines are compared by their addresses
	long  bool
}

var textTwins = []textTwin{
	{name: "memcheck", from: "mem.c", build: with(gcc, "-O2"), tool: []string{"--leak-check=full", "--track-origins=yes"}, args: []string{"rRlupdstk"}},
	{name: "helgrind", from: "race.cpp", build: with(gxx, "-O1"), tool: []string{"--tool=helgrind"}, races: true},

	{name: "drd", from: "race.cpp", build: with(gxx, "-O1"), tool: []string{"--tool=drd"}, races: true, long: true},
	{name: "O0", from: "mem.c", build: with(gcc, "-O0"), tool: []string{"--leak-check=full"}, args: []string{"rRlupsd"}, long: true},
	{name: "below_main", from: "mem.c", build: with(gcc, "-O1"), tool: []string{"--show-below-main=yes"}, args: []string{"rd"}, long: true},
	{name: "callers", from: "mem.c", build: with(gcc, "-O1", "-no-pie"), tool: []string{"--num-callers=3"}, args: []string{"rRd"}, long: true},
	{name: "mangled", from: "race.cpp", build: with(gxx, "-O2"), tool: []string{"--tool=helgrind", "--demangle=no"}, races: true, long: true},
	{name: "leaks", from: "leaks.c", build: with(gcc, "-O1"), tool: []string{"--leak-check=full", "--show-leak-kinds=all"}, long: true},
	{name: "clang", from: "mem.c", build: []string{"clang-19", "-gdwarf-4", "-O1"}, tool: []string{"--leak-check=full"}, args: []string{"rRlupd"}, long: true},
}

// notInXML matches lines that Valgrind's text has and its XML lacks.
var notInXML = regexp.MustCompile(`(?m)^==\d+== (Locks held: .*|Observed \(incorrect\) order is: acquisition of lock at 0x[0-9A-F]+| If you believe this happened as a result of a stack| overflow in your program's main thread \(unlikely but| possible\), you can try to increase the size of the| main thread stack using the --main-stacksize= flag\.| The main thread stack size used in this run was \d+\.|   \(thread finished, call stack no longer available\))\n`)

// The text made from the XML of a stripped program must equal Valgrind's text for the unstripped
// twin.
func TestStrippedReportsReadLikeTheTextOfTheirTwins(t *testing.T) {
	need(t, "valgrind", "gcc", "g++", "clang-19", "strip")
	for _, tw := range textTwins {
		if tw.long && !long() {
			continue
		}
		t.Run(tw.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			full, bare := filepath.Join(dir, "full"), filepath.Join(dir, "bare")
			for _, d := range []string{full, bare} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			source := filepath.Join(checkout, "integration", "testdata", "valgrind", tw.from)
			run(t, nil, tw.build[0], append(slices.Clone(tw.build[1:]), "-Wl,--build-id", "-o", filepath.Join(full, "prog"), source)...)
			run(t, nil, "strip", "-o", filepath.Join(bare, "prog"), filepath.Join(full, "prog"))
			log, report := filepath.Join(dir, "log"), filepath.Join(dir, "report.xml")
			valgrindRun(t, full, append([]string{"--log-file=" + log}, tw.tool...), tw.args)
			valgrindRun(t, bare, append([]string{"--xml=yes", "--xml-file=" + report}, tw.tool...), tw.args)
			want := notInXML.ReplaceAllString(fileText(t, log), "")
			got := notInXML.ReplaceAllString(run(t, nil, command, "-q", "--style=valgrind", "-s", full, report), "")
			compareDefects(t, got, want)
			same := strings.NewReplacer(bare, full)
			pid := regexp.MustCompile(`(?m)^(==|\*\*)\d+(==|\*\*) `)
			wanted := strings.Split(pid.ReplaceAllString(want, "${1}7$2 "), "\n")
			found := strings.Split(same.Replace(pid.ReplaceAllString(got, "${1}7$2 ")), "\n")
			if tw.races {
				compareFrames(t, found, wanted)
				return
			}
			for i := range min(len(found), len(wanted)) {
				if found[i] != wanted[i] {
					t.Fatalf("line %d: got %q, want %q\n%s", i+1, found[i], wanted[i], got)
				}
			}
			if len(found) != len(wanted) {
				t.Errorf("%d lines, want %d", len(found), len(wanted))
			}
		})
	}
}

// defects are CTest's expressions for defects in the text (cmCTestMemCheckHandler.cxx). The first
// expression, which matches lines of Valgrind in general, is left out.
var defects = [...]*regexp.Regexp{
	regexp.MustCompile(`== .*Invalid free\(\) / delete / delete\[\]`),
	regexp.MustCompile(`== .*Mismatched free\(\) / delete / delete \[\]`),
	regexp.MustCompile(`== .*[0-9,]+ bytes in [0-9,]+ blocks are definitely lost in loss record [0-9,]+ of [0-9,]+`),
	regexp.MustCompile(`== .*[0-9,]+ \([0-9,]+ direct, [0-9,]+ indirect\) bytes in [0-9,]+ blocks are definitely lost in loss record [0-9,]+ of [0-9,]+`),
	regexp.MustCompile(`== .*Syscall param .*(contains|points to) unaddressable byte\(s\)`),
	regexp.MustCompile(`== .*[0-9,]+ bytes in [0-9,]+ blocks are possibly lost in loss record [0-9,]+ of [0-9,]+`),
	regexp.MustCompile(`== .*[0-9,]+ bytes in [0-9,]+ blocks are still reachable in loss record [0-9,]+ of [0-9,]+`),
	regexp.MustCompile(`== .*Conditional jump or move depends on uninitialised value\(s\)`),
	regexp.MustCompile(`== .*Use of uninitialised value of size [0-9,]+`),
	regexp.MustCompile(`== .*Invalid read of size [0-9,]+`),
	regexp.MustCompile(`== .*Jump to the invalid address `),
	regexp.MustCompile(`== .*Syscall param .*contains uninitialised or unaddressable byte\(s\)`),
	regexp.MustCompile(`== .*Syscall param .*uninitialised`),
	regexp.MustCompile(`== .*Invalid write of size [0-9,]+`),
	regexp.MustCompile(`== .*pthread_mutex_unlock: mutex is locked by a different thread`),
}

// compareDefects compares the defects that CTest finds in two texts.
func compareDefects(t *testing.T, got, want string) {
	t.Helper()
	count := func(text string) (n [len(defects)]int) {
		for line := range strings.Lines(text) {
			if !regexp.MustCompile(`^==[0-9][0-9]*==`).MatchString(line) {
				continue
			}
			for i, e := range defects {
				if e.MatchString(line) {
					n[i]++
					break
				}
			}
		}
		return n
	}
	if g, w := count(got), count(want); g != w {
		t.Errorf("CTest finds %v, in Valgrind's text %v", g, w)
	}
}

// valgrindRun runs the program in a folder under Valgrind, which prints only errors.
func valgrindRun(t *testing.T, dir string, tool, args []string) {
	t.Helper()
	cmd := exec.Command("valgrind", slices.Concat([]string{"-q"}, tool, []string{filepath.Join(dir, "prog")}, args)...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	if out, err := producers.combined(t, cmd); cmd.ProcessState == nil {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
}

// compareFrames compares the lines of addresses in both texts, and the kinds of all other lines.
func compareFrames(t *testing.T, found, wanted []string) {
	t.Helper()
	frame := regexp.MustCompile(`^==7==    (?:at|by) (0x[0-9A-F]+): (.*)$`)
	number := regexp.MustCompile(`0x[0-9a-fA-F]+|\d+|"[^"]*"`)
	varying := regexp.MustCompile(` \(thread \d+\)|Thread \d+ .*:|Thread \d+:`) // not in the XML, or not at every error
	read := func(lines []string) (frames map[string][]string, other []string) {
		frames = make(map[string][]string)
		for i := 0; i < len(lines); {
			m := frame.FindStringSubmatch(lines[i])
			if m == nil {
				other = append(other, strings.TrimSpace(number.ReplaceAllString(varying.ReplaceAllString(lines[i], ""), "N")))
				i++
				continue
			}
			var calls []string
			for ; i < len(lines); i++ {
				next := frame.FindStringSubmatch(lines[i])
				if next == nil || next[1] != m[1] {
					break
				}
				calls = append(calls, next[2])
			}
			frames[m[1]] = calls
		}
		slices.Sort(other)
		return frames, slices.Compact(other)
	}
	got, gotOther := read(found)
	want, wantOther := read(wanted)
	compared := 0
	for address, calls := range got {
		if w, ok := want[address]; ok {
			compared++
			if !slices.Equal(calls, w) {
				t.Errorf("%s: got %q, want %q", address, calls, w)
			}
		}
	}
	if compared < 20 {
		t.Errorf("%d addresses were compared, want 20", compared)
	}
	chance := regexp.MustCompile(`(Block was|Address N is|This conflicts with|Possible data race|Conflicting)`) // these depend on which race is found
	drop := func(line string) bool { return chance.MatchString(line) }
	gotOther, wantOther = slices.DeleteFunc(gotOther, drop), slices.DeleteFunc(wantOther, drop)
	if !slices.Equal(gotOther, wantOther) {
		t.Errorf("other lines: got\n%s\nwant\n%s", strings.Join(gotOther, "\n"), strings.Join(wantOther, "\n"))
	}
}
