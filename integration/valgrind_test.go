//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A twin is a program that runs under Valgrind twice, unstripped and stripped.
type twin struct {
	name    string
	source  string
	build   []string // the compiler and its flags
	tool    []string // arguments of Valgrind
	args    []string // arguments of the program; PLUGIN is the path of the library
	long    bool     // only with TEST_LONG
	minimum int      // least number of compared frames
}

var (
	gcc = []string{"gcc", "-g"}
	gxx = []string{"g++", "-g", "-pthread"}
)

func with(build []string, flags ...string) []string { return append(slices.Clone(build), flags...) }

var twins = []twin{
	{name: "pie", source: "mem.c", build: with(gcc, "-O1"), tool: []string{"--track-origins=yes", "--leak-check=full", "--gen-suppressions=all"}, args: []string{"rRlupsdmt"}, minimum: 50},
	{name: "inlined", source: "mem.c", build: with(gcc, "-O2"), tool: []string{"--leak-check=full"}, args: []string{"rRlupsdm"}, minimum: 30},
	{name: "fixed", source: "mem.c", build: with(gcc, "-O1", "-no-pie"), tool: []string{"--track-origins=yes"}, args: []string{"rRupsdk"}, minimum: 40},
	{name: "static_pie", source: "mem.c", build: with(gcc, "-O1", "-static-pie"), tool: []string{"--track-origins=yes"}, args: []string{"uRs"}, minimum: 3},
	{name: "clang", source: "mem.c", build: []string{"clang-19", "-gdwarf-4", "-O2"}, tool: []string{"--leak-check=full"}, args: []string{"rRlupsd"}, minimum: 20},
	{name: "dlopen", source: "mem.c", build: with(gcc, "-O1"), args: []string{"Dr", "PLUGIN"}, minimum: 10},
	{name: "fork", source: "mem.c", build: with(gcc, "-O1"), args: []string{"rfR"}, minimum: 10},
	{name: "exec", source: "mem.c", build: with(gcc, "-O1"), tool: []string{"--trace-children=yes"}, args: []string{"re"}, minimum: 10},
	{name: "helgrind", source: "race.cpp", build: with(gxx, "-O1"), tool: []string{"--tool=helgrind"}, minimum: 60},
	{name: "helgrind_mangled", source: "race.cpp", build: with(gxx, "-O2"), tool: []string{"--tool=helgrind", "--demangle=no"}, minimum: 60},
	{name: "drd", source: "race.cpp", build: with(gxx, "-O1"), tool: []string{"--tool=drd", "--first-race-only=no"}, minimum: 60},
	{name: "leak_mangled", source: "race.cpp", build: with(gxx, "-O2"), tool: []string{"--leak-check=full", "--demangle=no", "--show-leak-kinds=all"}, minimum: 3},

	{name: "drd_mangled", source: "race.cpp", build: with(gxx, "-O2"), tool: []string{"--tool=drd", "--demangle=no"}, minimum: 30, long: true},
	{name: "drd_c", source: "mem.c", build: with(gcc, "-O1"), tool: []string{"--tool=drd", "--trace-mutex=yes"}, args: []string{"rRtm"}, long: true},
	{name: "helgrind_O0", source: "race.cpp", build: with(gxx, "-O0"), tool: []string{"--tool=helgrind"}, minimum: 60, long: true},
	{name: "fixed_cpp", source: "race.cpp", build: with(gxx, "-O2", "-no-pie"), tool: []string{"--tool=helgrind"}, minimum: 60, long: true},
	{name: "clang_cpp", source: "race.cpp", build: []string{"clang++-19", "-gdwarf-4", "-O2", "-pthread"}, tool: []string{"--tool=helgrind"}, minimum: 60, long: true},
	{name: "clang_O0", source: "mem.c", build: []string{"clang-19", "-gdwarf-4", "-O0"}, tool: []string{"--leak-check=full"}, args: []string{"rRlupsd"}, minimum: 30, long: true},
	{name: "O0", source: "mem.c", build: with(gcc, "-O0"), tool: []string{"--leak-check=full", "--show-leak-kinds=all"}, args: []string{"rRlupsd"}, minimum: 30, long: true},
	{name: "O3", source: "mem.c", build: with(gcc, "-O3"), tool: []string{"--leak-check=full"}, args: []string{"rRlupsdt"}, minimum: 30, long: true},
	{name: "single", source: "mem.c", build: with(gcc, "-O2"), args: []string{"r"}, minimum: 2, long: true},
	{name: "killed", source: "mem.c", build: with(gcc, "-O2"), args: []string{"k"}, minimum: 1, long: true},
}

// Resolved reports of stripped programs must have the same functions, files and lines as the
// reports of their unstripped twins.
func TestStrippedReportsSayWhatTheirTwinsSay(t *testing.T) {
	need(t, "valgrind", "gcc", "g++", "clang-19", "strip", "llvm-symbolizer-19")
	var mu sync.Mutex
	var all score
	t.Run("twins", func(t *testing.T) {
		for _, tw := range twins {
			if tw.long && !long() {
				continue
			}
			t.Run(tw.name, func(t *testing.T) {
				t.Parallel()
				s := tw.run(t)
				t.Log(s)
				if s.frames < tw.minimum {
					t.Errorf("%d frames were compared, want %d", s.frames, tw.minimum)
				}
				mu.Lock()
				defer mu.Unlock()
				all.add(s)
			})
		}
	})
	t.Log(all)
	if all.right*1000 < (all.frames+all.alone)*995 {
		t.Errorf("%d of %d frames are right, want 99.5 %%", all.right, all.frames+all.alone)
	}
	if all.right+all.explained < all.frames {
		t.Errorf("%d frames are neither right nor explained", all.frames-all.right-all.explained)
	}
	if all.wrong+all.bareWrong > 0 {
		t.Errorf("%d biases are wrong, and %d without names", all.wrong, all.bareWrong)
	}
	if all.known*100 < all.pairs*95 {
		t.Errorf("%d of %d biases are known, want 95 %%", all.known, all.pairs)
	}
}

// A score counts the addresses in a report's stacks by the result of the comparison with the twin's
// report. It also counts the load biases of objects, and the wrong ones.
type score struct {
	frames, right, lines, inlined int // compared; equal to the twin; with lines; of several functions
	// different from the twin, but equal to another reader of the debug information
	explained            int
	alone                int // resolved, while the twin's site was not
	pairs, known, wrong  int // biases of objects in processes: all, found, wrong
	bareKnown, bareWrong int // biases if the report has no names
}

func (s *score) add(o score) {
	s.frames += o.frames
	s.right += o.right
	s.lines += o.lines
	s.inlined += o.inlined
	s.explained += o.explained
	s.alone += o.alone
	s.pairs += o.pairs
	s.known += o.known
	s.wrong += o.wrong
	s.bareKnown += o.bareKnown
	s.bareWrong += o.bareWrong
}

func (s score) String() string {
	return fmt.Sprintf("%d of %d frames right (%d with lines, %d with inlined calls), %d explained, %d without twin; biases: %d of %d known, %d wrong; without names: %d known, %d wrong",
		s.right, s.frames, s.lines, s.inlined, s.explained, s.alone, s.known, s.pairs, s.wrong, s.bareKnown, s.bareWrong)
}

func (tw *twin) run(t *testing.T) (s score) {
	dir := t.TempDir()
	full, bare, tree := filepath.Join(dir, "full"), filepath.Join(dir, "bare"), filepath.Join(dir, "tree")
	source := filepath.Join(checkout, "integration", "testdata", "valgrind")
	for _, d := range []string{full, bare, tree} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	build := func(name, from string, argv []string) {
		compile := exec.Command(argv[0], append(argv[1:], "-Wl,--build-id", "-o", filepath.Join(full, name), filepath.Join(source, from))...)
		// the compilation's folder is /: clang removes the prefix that a source's path shares with
		// this folder, and Valgrind shows only the rest
		compile.Dir = "/"
		if out, err := producers.combined(t, compile); err != nil {
			t.Fatalf("%s: %v\n%s", compile, err, out)
		}
		run(t, nil, "strip", "-o", filepath.Join(bare, name), filepath.Join(full, name))
		id := strings.TrimSpace(regexp.MustCompile(`Build ID: (\w+)`).FindStringSubmatch(run(t, nil, "readelf", "-n", filepath.Join(full, name)))[1])
		link := filepath.Join(tree, ".build-id", id[:2], id[2:]+".debug")
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(full, name), link); err != nil {
			t.Fatal(err)
		}
	}
	build("prog", tw.source, tw.build)
	if slices.Contains(tw.args, "PLUGIN") {
		build("plugin.so", "plugin.c", []string{"gcc", "-g", "-O1", "-shared", "-fPIC"})
	}
	wantXML, wantMap := tw.valgrind(t, full)
	report, truth := tw.valgrind(t, bare)
	want := twinFrames(t, wantXML, wantMap)
	aliases := readAliases(t, filepath.Join(full, "prog"))

	name := filepath.Join(dir, "report.xml")
	if err := os.WriteFile(name, report, 0o644); err != nil {
		t.Fatal(err)
	}
	out := run(t, nil, command, "--output=json", "-s", full, name)
	records := parseRecords(t, out)
	checkXML(t, name, full)
	if got, want := countErrors(records), bytes.Count(report, []byte("<error>")); got != want {
		t.Errorf("%d errors, want %d", got, want)
	}
	s.pairs, s.known, s.wrong = tw.biases(t, records, truth)
	byLLVM := llvmFrames(t, run(t, nil, command, "--output=markup", "-s", full, name), tree)
	compareLLVM(t, records, byLLVM)
	for site := range sites(records) {
		bias, ok := truth[site.Object]
		if !ok {
			continue
		}
		key := codePlace{path.Base(site.Object), site.IP - address(bias)}
		expect, ok := want[key]
		switch {
		case ok && expect[0].Fn == "": // Valgrind has no name for the site
			continue
		case !ok && site.isBelowMain(): // shown by Valgrind only if main has no name
			continue
		case !ok:
			t.Logf("%s+%#x is not in the twin's report: %+v", key.object, key.rel, site.Frames)
			if tw.source != "race.cpp" { // in other files, threads may race at other places
				s.alone++
			}
			continue
		}
		s.frames++
		if said := site.differs(expect); said != "" && !aliases.explain(&site, expect) {
			t.Logf("%s+%#x: %s\n got %+v\nwant %+v", key.object, key.rel, said, site.Frames, expect)
			if site.isAs(byLLVM[codePlace{key.object, site.Offset}]) {
				// the twin's site lacks inlined calls: Valgrind omits those with several ranges of
				// addresses
				s.explained++
			}
			continue
		}
		s.right++
		if expect[0].Line > 0 {
			s.lines++
		}
		if len(expect) > 1 {
			s.inlined++
		}
	}

	compareText(t, records, run(t, nil, command, "-s", full, name))

	names := regexp.MustCompile(`(?s)\s*<(fn|dir|file|line|fun)>[^<]*</\w+>|<suppression>.*?</suppression>`)
	anonymous := names.ReplaceAll(report, nil)
	anonymous = regexp.MustCompile(`data symbol "[^"]*"`).ReplaceAll(anonymous, []byte("a data symbol"))
	out = run(t, anonymous, command, "--output=json")
	_, s.bareKnown, s.bareWrong = tw.biases(t, parseRecords(t, out), truth)
	return s
}

// valgrind runs a program under Valgrind and returns the report and the load biases of the
// program's objects.
func (tw *twin) valgrind(t *testing.T, dir string) (report []byte, biases map[string]address) {
	t.Helper()
	xml, log := filepath.Join(dir, "report.xml"), filepath.Join(dir, "log")
	args := append([]string{"-v", "-v", "--xml=yes", "--xml-file=" + xml, "--log-file=" + log}, tw.tool...)
	args = append(args, filepath.Join(dir, "prog"))
	for _, a := range tw.args {
		if a == "PLUGIN" {
			a = filepath.Join(dir, "plugin.so")
		}
		args = append(args, a)
	}
	cmd := exec.Command("valgrind", args...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	out, err := producers.combined(t, cmd)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("valgrind: %v\n%s", err, out)
	}
	if report, err = os.ReadFile(xml); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	biases = make(map[string]address)
	name := ""
	for line := range strings.Lines(string(said)) {
		line = strings.TrimSpace(line)
		if _, n, ok := strings.Cut(line, "Reading syms from "); ok {
			name = n
		} else if m := regexp.MustCompile(`svma (0x\w+), avma (0x\w+)`).FindStringSubmatch(line); m != nil {
			svma, _ := strconv.ParseUint(m[1], 0, 64)
			avma, _ := strconv.ParseUint(m[2], 0, 64)
			biases[name] = address(avma - svma)
		}
	}
	return report, biases
}

// An address is a number that is a string in hex in symfilter's JSON.
type address uint64

func (a *address) UnmarshalJSON(b []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(b), `"`), 0, 64)
	*a = address(n)
	return err
}

type jsonFrame struct {
	Function, Linkage, File string
	Line                    int
	Inlined                 bool
}

type jsonSite struct {
	Frame  uint64
	IP     address
	Object string
	Offset address
	Source string
	Frames []jsonFrame
}

type jsonItem struct {
	Name   string
	Frames []jsonSite
	Items  []jsonItem
}

type jsonRecord struct {
	Process   int
	Record    string
	Continued bool
	Object    string
	Bias      address
	By        string
	Items     []jsonItem
}

func parseRecords(t *testing.T, out string) (all []jsonRecord) {
	t.Helper()
	for line := range strings.Lines(out) {
		var r jsonRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, r)
	}
	return all
}

func countErrors(records []jsonRecord) (n int) {
	for _, r := range records {
		if r.Record == "error" && !r.Continued {
			n++
		}
	}
	return n
}

func sites(records []jsonRecord) func(yield func(jsonSite) bool) {
	return func(yield func(jsonSite) bool) {
		var walk func(items []jsonItem) bool
		walk = func(items []jsonItem) bool {
			for _, it := range items {
				for _, s := range it.Frames {
					if !yield(s) {
						return false
					}
				}
				if !walk(it.Items) {
					return false
				}
			}
			return true
		}
		for _, r := range records {
			if !walk(r.Items) {
				return
			}
		}
	}
}

func (tw *twin) biases(t *testing.T, records []jsonRecord, truth map[string]address) (pairs, known, wrong int) {
	t.Helper()
	type pair struct {
		process int
		object  string
	}
	seen, got := map[pair]bool{}, map[pair]bool{}
	for _, r := range records {
		if r.Record == "object" {
			got[pair{r.Process, r.Object}] = true
			if want := truth[r.Object]; r.Bias != want {
				wrong++
				t.Errorf("%s: bias %#x by %s, want %#x", r.Object, uint64(r.Bias), r.By, uint64(want))
			}
		}
		for s := range sites([]jsonRecord{r}) {
			if s.Object != "" {
				seen[pair{r.Process, s.Object}] = true
			}
		}
	}
	for p := range seen {
		pairs++
		if got[p] {
			known++
		} else {
			t.Logf("process %d: it is not known where %s was", p.process, p.object)
		}
	}
	return pairs, known, wrong
}

type codePlace struct {
	object string
	rel    address
}

// An xmlFrame is a frame with symbols as Valgrind prints it.
type xmlFrame struct {
	IP   string `xml:"ip"`
	Obj  string `xml:"obj"`
	Fn   string `xml:"fn"`
	Dir  string `xml:"dir"`
	File string `xml:"file"`
	Line int    `xml:"line"`
}

// twinFrames returns the frames of a report by place, inlined calls first.
func twinFrames(t *testing.T, report []byte, biases map[string]address) map[codePlace][]xmlFrame {
	t.Helper()
	all := make(map[codePlace][]xmlFrame)
	stack := regexp.MustCompile(`(?s)<stack>.*?</stack>`)
	for _, text := range stack.FindAll(report, -1) {
		var s struct {
			Frames []xmlFrame `xml:"frame"`
		}
		if err := xml.NewDecoder(bytes.NewReader(text)).Decode(&s); err != nil && err != io.EOF {
			t.Fatalf("%v in %s", err, text)
		}
		for i := 0; i < len(s.Frames); {
			n := i
			for n < len(s.Frames) && s.Frames[n].IP == s.Frames[i].IP {
				n++
			}
			group := s.Frames[i:n]
			i = n
			for p := 1; p < len(group); p++ {
				if len(group)%p == 0 && slices.Equal(group[p:], group[:len(group)-p]) {
					group = group[:p]
				}
			}
			f := group[0]
			ip, err := strconv.ParseUint(f.IP, 0, 64)
			bias, ok := biases[f.Obj]
			if err != nil || !ok {
				continue
			}
			all[codePlace{path.Base(f.Obj), address(ip) - bias}] = group
		}
	}
	if len(all) == 0 {
		t.Fatal("the twin's report has no frames")
	}
	return all
}

var blankEnds = strings.NewReplacer("> >", ">>")

func plainName(s string) string {
	for strings.Contains(s, "> >") {
		s = blankEnds.Replace(s)
	}
	return s
}

// bareName returns a function's name without scope, template arguments and parameters.
func bareName(s string) string {
	if strings.Contains(s, "operator") {
		return "operator"
	}
	depth := 0
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '<':
			depth++
		case c == '>':
			depth--
		case depth == 0 && c == '(':
			s = s[:i]
		case depth == 0:
			b.WriteByte(c)
		}
	}
	s = b.String()
	s = s[strings.LastIndexAny(s, " :")+1:]
	return s
}

// differs returns how a site differs from the twin's site, or "" if it does not.
func (s *jsonSite) differs(want []xmlFrame) string {
	if len(s.Frames) != len(want) {
		return fmt.Sprintf("%d functions, want %d", len(s.Frames), len(want))
	}
	for i, w := range want {
		g := s.Frames[i]
		last := i == len(want)-1
		switch {
		case last && g.Function != w.Fn && g.Linkage != w.Fn && plainName(g.Function) != plainName(w.Fn):
			return "another function"
		case !last && bareName(g.Function) != bareName(w.Fn):
			return "another inlined call"
		case w.Line != 0 && g.Line != w.Line:
			return "another line"
		case w.Line != 0 && path.Base(g.File) != w.File:
			return "another file"
		case w.Line != 0 && filepath.IsAbs(w.Dir) && path.Clean(g.File) != path.Join(w.Dir, w.File):
			return "another folder"
		}
	}
	return ""
}

// isBelowMain reports whether a site is main's caller or has no name.
func (s *jsonSite) isBelowMain() bool {
	if len(s.Frames) == 0 {
		return true
	}
	fn := s.Frames[0].Function
	return fn == "(below main)" || fn == "_start" || strings.HasPrefix(fn, "__libc_start_")
}

// aliases maps the names of a file's symbols to their addresses. Names with the same address are
// aliases of each other.
type aliases map[string]string

func readAliases(t *testing.T, file string) aliases {
	t.Helper()
	all := make(aliases)
	for line := range strings.Lines(run(t, nil, "nm", file)) {
		if f := strings.Fields(line); len(f) == 3 {
			all[f[2]] = f[0]
		}
	}
	return all
}

// explain reports whether a site differs from the twin's site only by a name. It accepts another
// name of the same symbol, and the real name of a function that Valgrind prints as "(below main)".
func (a aliases) explain(s *jsonSite, want []xmlFrame) bool {
	if len(s.Frames) != 1 || len(want) != 1 || want[0].Line != 0 {
		return false
	}
	got := s.Frames[0].Function
	return a[got] != "" && a[got] == a[want[0].Fn] || want[0].Fn == "(below main)" && strings.HasPrefix(got, "__libc_start_")
}

func compareText(t *testing.T, records []jsonRecord, text string) {
	t.Helper()
	type row struct {
		number, inline int
		fn, file       string
		line           int
	}
	var want, got []row
	for s := range sites(records) {
		for i, f := range s.Frames {
			if f.Function == "" {
				f.Function = "??"
			}
			r := row{int(s.Frame), i + 1, f.Function, strings.TrimPrefix(f.File, "./"), f.Line}
			if i == len(s.Frames)-1 {
				r.inline = 0
			}
			want = append(want, r)
		}
	}
	frame := regexp.MustCompile(`^ *#(\d+)(?:\.(\d+))? +0x[0-9a-f]{16} (.*?)(?: (\S+?):(\d+)(?::\d+)?)? \(([^ ]*)\)$`)
	for line := range strings.Lines(text) {
		m := frame.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		r := row{fn: m[3], file: strings.TrimPrefix(m[4], "./")}
		r.number, _ = strconv.Atoi(m[1])
		r.inline, _ = strconv.Atoi(m[2])
		r.line, _ = strconv.Atoi(m[5])
		got = append(got, r)
	}
	for i := range min(len(want), len(got)) {
		g, w := got[i], want[i]
		if w.file == "" {
			g.fn, _, _ = strings.Cut(g.fn, "+0x")
		}
		if g != w {
			t.Errorf("frame %d of the text: got %+v, want that of the JSON, %+v", i, g, w)
			return
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d frames in the text, %d in the JSON", len(got), len(want))
	}
}

// llvmFrames returns llvm-symbolizer's answers for the places in a report's markup, inlined calls
// first.
func llvmFrames(t *testing.T, markup, tree string) map[codePlace][]frame {
	t.Helper()
	out := run(t, []byte(markup), "sh", "-c", `llvm-symbolizer-19 --filter-markup --debug-file-directory="$0" --debug-file-directory=/usr/lib/debug 2>/dev/null`, tree)
	all := make(map[codePlace][]frame)
	var calls []frame
	for _, f := range parseFrames(t, out) {
		calls = append(calls, f)
		if f.Inline == 0 {
			all[codePlace{f.Module, address(f.Rel)}] = calls
			calls = nil
		}
	}
	return all
}

// isAs reports whether a site has the functions and lines in llvm-symbolizer's answer.
func (s *jsonSite) isAs(frames []frame) bool {
	return slices.EqualFunc(s.Frames, frames, func(g jsonFrame, w frame) bool {
		return plainName(g.Function) == plainName(w.Func) && g.Line == w.Line
	})
}

// compareLLVM compares the functions that llvm-symbolizer finds with those in JSON.
func compareLLVM(t *testing.T, records []jsonRecord, got map[codePlace][]frame) {
	t.Helper()
	compared := 0
	for s := range sites(records) {
		if s.Source != "symbols" {
			continue
		}
		want := s.Frames[len(s.Frames)-1]
		calls := got[codePlace{path.Base(s.Object), s.Offset}]
		if calls == nil || want.Function == "" {
			continue
		}
		compared++
		if fn := calls[len(calls)-1].Func; plainName(fn) != plainName(want.Function) && fn != want.Linkage {
			t.Errorf("%s+%#x: llvm-symbolizer has %q, want %q", s.Object, uint64(s.Offset), fn, want.Function)
		}
	}
	if compared == 0 {
		t.Error("llvm-symbolizer has none of the frames")
	}
}
