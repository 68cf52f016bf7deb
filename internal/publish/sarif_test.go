package publish

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/internal/testenv"
)

// schema is OASIS' schema for SARIF.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	s, err := jsonschema.NewCompiler().Compile(testenv.FileURL("testdata/sarif-schema-2.1.0.json"))
	if err != nil {
		panic(err)
	}
	return s
})

// A sarifLog has the members of a file that the tests examine.
type sarifLog struct {
	Schema  string `json:"$schema"`
	Version string
	Runs    []struct {
		Tool struct {
			Driver struct {
				Name  string
				Rules []sarifRule
			}
		}
		AutomationDetails   struct{ ID string }
		OriginalURIBaseIDs  any `json:"originalUriBaseIds"`
		VersionControlProof any `json:"versionControlProvenance"`
		Results             []sarifResult
		Invocations         []struct {
			ExecutionSuccessful        bool
			ToolExecutionNotifications []struct{ Message sarifText }
		}
	}
}

type sarifText struct{ Text string }

type sarifRule struct {
	ID, Name                                string
	ShortDescription, FullDescription, Help sarifText
	DefaultConfiguration                    struct{ Level string }
	Properties                              struct {
		Tags      []string
		Precision string
	}
}

type sarifLocation struct {
	ID               int
	Index            *int
	Message          sarifText
	PhysicalLocation *struct {
		ArtifactLocation struct{ URI, URIBaseID string }
		Region           struct{ StartLine, StartColumn int }
	}
}

type sarifResult struct {
	RuleID              string
	RuleIndex           int
	Level               string
	BaselineState       string
	Message             sarifText
	Locations           []sarifLocation
	RelatedLocations    []sarifLocation
	PartialFingerprints map[string]string
	CodeFlows           []struct {
		ThreadFlows []struct {
			Locations []struct {
				Index    *int
				Location sarifLocation
			}
		}
	}
	OccurrenceCount int
	Properties      struct{ Tags []string }
}

// embeddedLink matches the destination of an embedded link. It skips escaped brackets.
var embeddedLink = regexp.MustCompile(`\\[\[\]\\]|\]\(([^)]*)\)`)

// readSARIF returns the output of SARIF for r. It fails the test if the output violates OASIS'
// schema or a rule of GitHub.
func readSARIF(t testing.TB, r *Result) *sarifLog {
	t.Helper()
	text := printed(t, SARIF, r)
	checkSARIF(t, text)
	log := new(sarifLog)
	if err := json.Unmarshal([]byte(text), log); err != nil {
		t.Fatal(err)
	}
	checkGitHub(t, log)
	return log
}

// checkSARIF fails the test if text violates OASIS' schema.
func checkSARIF(t testing.TB, text string) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	if err := schema().Validate(value); err != nil {
		t.Errorf("%v in:\n%.10000s", err, text)
	}
}

// checkGitHub fails the test for each reason why GitHub would refuse the file or hide a part.
func checkGitHub(t testing.TB, log *sarifLog) {
	t.Helper()
	if log.Schema == "" || log.Version != "2.1.0" || len(log.Runs) == 0 || len(log.Runs) > 20 {
		t.Fatalf("schema %q, version %q, %d runs", log.Schema, log.Version, len(log.Runs))
	}
	categories := make(map[string]bool)
	for i := range log.Runs {
		run := &log.Runs[i]
		driver := &run.Tool.Driver
		category := driver.Name + "\n" + run.AutomationDetails.ID
		if driver.Name == "" || !strings.HasSuffix(run.AutomationDetails.ID, "/") || categories[category] {
			t.Errorf("run %d: tool %q, category %q", i, driver.Name, run.AutomationDetails.ID)
		}
		categories[category] = true
		if run.OriginalURIBaseIDs != nil {
			t.Errorf("run %d has bases of URIs", i)
		}
		ids := make(map[string]bool)
		for _, rule := range driver.Rules {
			if rule.ID == "" || ids[rule.ID] || len(rule.ID) > 255 || rule.Name != "" {
				t.Errorf("rule %q, name %q", rule.ID, rule.Name)
			}
			ids[rule.ID] = true
			for _, s := range []string{rule.ShortDescription.Text, rule.FullDescription.Text, rule.Help.Text} {
				if n := utf8.RuneCountInString(strings.NewReplacer("{{", "{", "}}", "}").Replace(s)); n == 0 || n > 1024 {
					t.Errorf("rule %q has a text of %d characters: %q", rule.ID, n, s)
				}
			}
			if len(rule.Properties.Tags) == 0 || len(rule.Properties.Tags) > 10 || !slices.Contains([]string{"very-high", "medium"}, rule.Properties.Precision) {
				t.Errorf("rule %q: tags %q, precision %q", rule.ID, rule.Properties.Tags, rule.Properties.Precision)
			}
		}
		if len(run.Results) > 25_000 || len(driver.Rules) > 25_000 {
			t.Errorf("%d results, %d rules", len(run.Results), len(driver.Rules))
		}
		for k := range run.Results {
			x := &run.Results[k]
			if x.RuleIndex >= len(driver.Rules) || driver.Rules[x.RuleIndex].ID != x.RuleID {
				t.Errorf("rule %d is not %q", x.RuleIndex, x.RuleID)
			}
			checkResult(t, x)
		}
	}
}

func checkResult(t testing.TB, x *sarifResult) {
	t.Helper()
	if x.Message.Text == "" || !slices.Contains([]string{"error", "warning", "note"}, x.Level) || x.PartialFingerprints["primaryLocationLineHash"] == "" || len(x.Locations) != 1 {
		t.Errorf("result %+v", x)
		return
	}
	checkLocation(t, &x.Locations[0])
	ids := make(map[string]bool)
	for i := range x.RelatedLocations {
		l := &x.RelatedLocations[i]
		checkLocation(t, l)
		if id := fmt.Sprint(l.ID); ids[id] {
			t.Errorf("two related locations have the number %s", id)
		} else {
			ids[id] = true
		}
	}
	links := slices.DeleteFunc(embeddedLink.FindAllStringSubmatch(x.Message.Text, -1), func(m []string) bool { return m[0][0] == '\\' })
	for _, link := range links {
		if !ids[link[1]] {
			t.Errorf("%q has a link that leads nowhere: %q", x.Message.Text, link[1])
		}
	}
	if len(links) != len(ids) || len(ids) > 100 {
		t.Errorf("%d related locations, %d links in %q", len(ids), len(links), x.Message.Text)
	}
	flows := 0
	for _, f := range x.CodeFlows {
		for _, f := range f.ThreadFlows {
			for i := range f.Locations {
				l := &f.Locations[i]
				checkLocation(t, &l.Location)
				if l.Index != nil || l.Location.Message.Text == "" {
					t.Errorf("location of a flow: %+v", l)
				}
				flows++
			}
		}
	}
	if flows > 1000 {
		t.Errorf("%d locations of flows", flows)
	}
}

func checkLocation(t testing.TB, l *sarifLocation) {
	t.Helper()
	if l.PhysicalLocation == nil {
		t.Error("a location without a file")
		return
	}
	name := l.PhysicalLocation.ArtifactLocation.URI
	u, err := url.Parse(name)
	switch {
	case err != nil:
		t.Errorf("%q: %v", name, err)
	case name == "", u.Scheme != "" && u.Scheme != "file", u.Host != "", u.RawQuery != "", u.Fragment != "", u.Scheme == "" && strings.HasPrefix(name, "/"),
		strings.HasPrefix(name, "./"), strings.Contains("/"+u.Path+"/", "/../"):
		t.Errorf("file %q", name)
	}
	if l.PhysicalLocation.ArtifactLocation.URIBaseID != "" || l.PhysicalLocation.Region.StartLine < 1 || l.Index != nil {
		t.Errorf("location %+v", l.PhysicalLocation)
	}
}

func (log *sarifLog) allResults() (all []sarifResult) {
	for i := range log.Runs {
		all = append(all, log.Runs[i].Results...)
	}
	return all
}

func (log *sarifLog) notices() (all []string) {
	for i := range log.Runs {
		for _, v := range log.Runs[i].Invocations {
			for _, n := range v.ToolExecutionNotifications {
				all = append(all, n.Message.Text)
			}
		}
	}
	return all
}

func TestSARIFIsAsOASISAndGitHubWantIt(t *testing.T) {
	readSARIF(t, sample())
	readSARIF(t, results())
	readSARIF(t, &Result{Collection: findings.New(nil)})
}

func TestMessagesLinkToOtherStacks(t *testing.T) {
	x := readSARIF(t, results(aRead())).allResults()[0]
	want := "Invalid read of size 4 in Pool::operator[](int) const. [4 bytes inside a block of size 40 free'd](1). [Block was alloc'd at](2)."
	if got := strings.Replace(x.Message.Text, "[] (", "[](", 1); got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if strings.Contains(x.Message.Text, "[](int)") {
		t.Errorf("%q: the name of the function is a link", x.Message.Text)
	}
	hostile := aRead()
	hostile.Traces[1].Message = `a[1](7)] \ [x](y) is free'd`
	readSARIF(t, results(hostile))
}

func TestFlowsGoFromTheAllocationToTheError(t *testing.T) {
	x := readSARIF(t, results(aRead())).allResults()[0]
	var got []string
	for _, l := range x.CodeFlows[0].ThreadFlows[0].Locations {
		got = append(got, l.Location.Message.Text)
	}
	want := []string{
		"main: Block was alloc'd at",
		"main: 4 bytes inside a block of size 40 free'd",
		"main", "Pool::operator[] (int) const: here",
	}
	if !slices.Equal(got, want) {
		t.Errorf("flow %q, want %q", got, want)
	}
}

func TestColumnsAreOfLinesThatAreASCII(t *testing.T) {
	for _, tt := range []struct {
		text   string
		column int
	}{
		{strings.Repeat("\n", 30) + "0123456789", 9},
		{strings.Repeat("\n", 30) + "012345678\nä", 9},
		{strings.Repeat("\n", 30) + "0123456", 0}, // another version of the file
		{strings.Repeat("\n", 30) + "0123456789ä", 0},
		{strings.Repeat("\n", 29), 0},
		{"", 0},
	} {
		r := results(aRead())
		r.Text = func(file string) []byte {
			if file == "/src/app/pool.h" {
				return []byte(tt.text)
			}
			return nil
		}
		l := readSARIF(t, r).allResults()[0].Locations[0].PhysicalLocation
		if l.Region.StartColumn != tt.column {
			t.Errorf("%q: column %d, want %d", tt.text, l.Region.StartColumn, tt.column)
		}
	}
	if l := readSARIF(t, results(aRead())).allResults()[0].Locations[0].PhysicalLocation; l.Region.StartColumn != 0 {
		t.Errorf("column %d of a line that is not known", l.Region.StartColumn)
	}
}

func TestResultsWithoutLinesHaveALocation(t *testing.T) {
	unnamed := &findings.Finding{Tool: "memcheck", Kind: "InvalidRead", Traces: []findings.Trace{{Frames: []*findings.TraceFrame{{Object: "/src/app/bin/prog", Offset: 16}}}}}
	bare := &findings.Finding{Tool: "memcheck", Kind: "FatalSignal"}
	all := readSARIF(t, results(unnamed, bare)).allResults()
	for i, want := range []string{"bin/prog", "file:///opt/app"} {
		if got := all[i].Locations[0].PhysicalLocation.ArtifactLocation.URI; got != want {
			t.Errorf("file %q, want %q", got, want)
		}
	}
}

// Lines and columns must be at most 2^31-1: readers in .NET refuse larger numbers.
func TestLinesAreSignedIntegers(t *testing.T) {
	for line, want := range map[uint32]uint32{0: 1, 7: 7, 1<<32 - 1: 1<<31 - 1} {
		f := &findings.TraceFrame{}
		f.File, f.Line, f.Column, f.HasLine = "a.c", line, line, true
		if got := placeOf(f); got.line != want || got.column > 1<<31-1 {
			t.Errorf("line %d: %+v", line, got)
		}
	}
}

func TestWeaknessesOfKinds(t *testing.T) {
	for _, tt := range []struct {
		tool, kind string
		memory     findings.Memory
		level      string
		precision  string
		rule       string // CWE numbers of the rule
		result     string
	}{
		{"memcheck", "InvalidRead", findings.MemoryUnknown, "error", "very-high", "125 416", "125 416"},
		{"memcheck", "InvalidRead", findings.MemoryAlive, "error", "very-high", "125 416", "125"},
		{"memcheck", "InvalidRead", findings.MemoryFreed, "error", "very-high", "125 416", "416"},
		{"memcheck", "InvalidWrite", findings.MemoryOutside, "error", "very-high", "787 416", "787"},
		{"memcheck", "InvalidWrite", findings.MemoryFreed, "error", "very-high", "787 416", "416"},
		{"memcheck", "InvalidFree", 0, "error", "very-high", "415", "415"},
		{"memcheck", "MismatchedFree", 0, "error", "very-high", "762", "762"},
		{"memcheck", "UninitCondition", 0, "error", "very-high", "457", "457"},
		{"memcheck", "UninitValue", 0, "error", "very-high", "457", "457"},
		{"memcheck", "SyscallParam", 0, "error", "very-high", "457", "457"},
		{"memcheck", "Overlap", 0, "error", "very-high", "475", "475"},
		{"memcheck", "Leak_DefinitelyLost", 0, "error", "medium", "401", "401"},
		{"memcheck", "Leak_PossiblyLost", 0, "warning", "medium", "401", "401"},
		{"memcheck", "Leak_IndirectlyLost", 0, "note", "medium", "401", "401"},
		{"memcheck", "Leak_StillReachable", 0, "note", "medium", "401", "401"},
		{"memcheck", "FdBadClose", 0, "error", "very-high", "1341", "1341"},
		{"memcheck", "FdNotClosed", 0, "warning", "very-high", "775", "775"},
		{"helgrind", "Race", 0, "warning", "medium", "362", "362"},
		{"helgrind", "LockOrder", 0, "warning", "medium", "833", "833"},
		{"drd", "ConflictingAccess", 0, "warning", "medium", "362", "362"},
		{"asan", "heap-buffer-overflow", 0, "error", "very-high", "122 125", "122 125"},
		{"asan", "stack-buffer-overflow", 0, "error", "very-high", "121 125", "121 125"},
		{"asan", "heap-use-after-free", 0, "error", "very-high", "416", "416"},
		{"asan", "double-free", 0, "error", "very-high", "415", "415"},
		{"asan", "alloc-dealloc-mismatch", 0, "error", "very-high", "762", "762"},
		{"asan", "memcpy-param-overlap", 0, "error", "very-high", "475", "475"},
		{"asan", "SEGV", 0, "error", "very-high", "119", "119"},
		{"lsan", "detected memory leaks", 0, "error", "medium", "401", "401"},
		{"msan", "use-of-uninitialized-value", 0, "error", "very-high", "457", "457"},
		{"tsan", "data race", 0, "warning", "medium", "362", "362"},
		{"tsan", "data race on vptr (ctor/dtor vs virtual call)", 0, "warning", "medium", "362", "362"},
		{"tsan", "lock-order-inversion (potential deadlock)", 0, "warning", "medium", "833", "833"},
		{"ubsan", "signed-integer-overflow", 0, "error", "very-high", "190", "190"},
		{"ubsan", "null-pointer-use", 0, "error", "very-high", "476", "476"},
		{"ubsan", "integer-divide-by-zero", 0, "error", "very-high", "369", "369"},
		{"hwasan", "tag-mismatch", findings.MemoryFreed, "error", "very-high", "787 416", "416"},
		{"crash", "SIGSEGV", 0, "error", "very-high", "119", "119"},
		{"crash", "assertion", 0, "error", "very-high", "617", "617"},
		{"crash", "WARNING", 0, "warning", "very-high", "617", "617"},
		{"new", "Unheard of", 0, "error", "very-high", "", ""},
	} {
		log := readSARIF(t, results(&findings.Finding{Tool: tt.tool, Kind: tt.kind, Memory: tt.memory}))
		run := &log.Runs[0]
		rule, x := &run.Tool.Driver.Rules[0], &run.Results[0]
		numbers := func(tags []string) string {
			var all []string
			for _, tag := range tags {
				if n, ok := strings.CutPrefix(tag, "external/cwe/cwe-"); ok {
					all = append(all, n)
				}
			}
			return strings.Join(all, " ")
		}
		if x.Level != tt.level || rule.DefaultConfiguration.Level != tt.level || rule.Properties.Precision != tt.precision ||
			numbers(rule.Properties.Tags) != tt.rule || numbers(x.Properties.Tags) != tt.result {
			t.Errorf("%s: %s, %s, weaknesses %s, %s; want %+v", tt.kind, x.Level, rule.Properties.Precision, numbers(rule.Properties.Tags), numbers(x.Properties.Tags), tt)
		}
	}
}

func TestReadsAndWritesAreOtherWeaknesses(t *testing.T) {
	for message, want := range map[string]string{
		"heap-buffer-overflow: READ of size 4":  "[external/cwe/cwe-125]",
		"heap-buffer-overflow: WRITE of size 4": "[external/cwe/cwe-122]",
		"heap-buffer-overflow":                  "[external/cwe/cwe-122 external/cwe/cwe-125]",
	} {
		x := &findings.Finding{Tool: "asan", Kind: "heap-buffer-overflow", Message: message}
		if got := fmt.Sprint(readSARIF(t, results(x)).allResults()[0].Properties.Tags); got != want {
			t.Errorf("%s: weaknesses %s, want %s", message, got, want)
		}
	}
}

func TestResourcesOfSpRtraceAreLeaks(t *testing.T) {
	for kind, want := range map[string]string{"memory": "[external/cwe/cwe-401]", "bus": "[external/cwe/cwe-772]"} {
		x := readSARIF(t, results(&findings.Finding{Source: findings.FromRTrace, Tool: "rtrace", Kind: kind})).allResults()[0]
		if got := fmt.Sprint(x.Properties.Tags); got != want || x.RuleID != "rtrace/"+kind {
			t.Errorf("%s: rule %s, weaknesses %s, want %s", kind, x.RuleID, got, want)
		}
	}
}

// Each kind of finding in the golden files of the readers' tests must have a class.
func TestKindsThatReadersFindHaveAClass(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../faults/testdata/findings/*", "../../valgrind/testdata/findings/*"} {
		some, err := filepath.Glob(pattern)
		if err != nil || len(some) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, some...)
	}
	line := regexp.MustCompile(`(?m)^([a-z]+)/(\S+) "`)
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			if n++; classOf(m[2]) == &other {
				t.Errorf("%s: %s/%s has no class", file, m[1], m[2])
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d findings", n)
	}
}

func TestRunsAreOfTools(t *testing.T) {
	r := &Result{Collection: findings.New(nil)}
	r.SARIF.Category = "linux/x86"
	for i := range 21 {
		p := r.Begin(findings.Process{Source: findings.FromLog, Tool: fmt.Sprint("tool", i), Complete: true})
		if i != 5 { // tool 5 ran without findings
			add(r, p, &findings.Finding{Source: findings.FromLog, Tool: fmt.Sprint("tool", i), Kind: "x"})
		}
	}
	log := readSARIF(t, r)
	if len(log.Runs) != 20 || log.Runs[0].AutomationDetails.ID != "log/tool0/linux/x86/" {
		t.Errorf("%d runs, category %q", len(log.Runs), log.Runs[0].AutomationDetails.ID)
	}
	// The 20 tools with findings come first. The tool that is left out has none, so nothing is
	// omitted.
	if got := log.notices(); got != nil {
		t.Errorf("notices %q", got)
	}
	p := r.Begin(findings.Process{Source: findings.FromLog, Tool: "last", Complete: true})
	add(r, p, &findings.Finding{Source: findings.FromLog, Tool: "last", Kind: "x"})
	want := []string{"1 finding left out: GitHub accepts at most 20 tools in a file."}
	if got := readSARIF(t, r).notices(); !slices.Equal(got, want) {
		t.Errorf("notices %q, want %q", got, want)
	}
}

func TestTheMostImportantResultsAreKept(t *testing.T) {
	r := results()
	for i := range 25_010 {
		kind := "Leak_StillReachable"
		if i >= 25_005 {
			kind = "Leak_DefinitelyLost"
		}
		r.Add(0, &findings.Finding{Tool: "memcheck", Kind: kind, Bytes: uint64(i), Fingerprint: fmt.Sprint(i)}, 1)
	}
	text := printed(t, SARIF, r)
	log := new(sarifLog)
	if err := json.Unmarshal([]byte(text), log); err != nil {
		t.Fatal(err)
	}
	checkGitHub(t, log)
	all := log.allResults()
	if n := len(all); n != 25_000 {
		t.Fatalf("%d results", n)
	}
	for i, want := range []string{"25009:1", "25008:1", "25007:1", "25006:1", "25005:1", "25004:1", "25003:1"} {
		if got := all[i].PartialFingerprints["primaryLocationLineHash"]; got != want {
			t.Errorf("result %d is %s, want %s", i, got, want)
		}
	}
	want := []string{"10 findings left out: GitHub accepts at most 25,000 in a run, and files of at most 10 MB after compression."}
	if got := log.notices(); !slices.Equal(got, want) {
		t.Errorf("notices %q, want %q", got, want)
	}
}

func TestResultsThatGitHubDoesNotShowAreCounted(t *testing.T) {
	r := results()
	for i := range 5_003 {
		r.Add(0, &findings.Finding{Tool: "memcheck", Kind: "x", Fingerprint: fmt.Sprint(i)}, 1)
	}
	log := new(sarifLog)
	if err := json.Unmarshal([]byte(printed(t, SARIF, r)), log); err != nil {
		t.Fatal(err)
	}
	want := []string{"3 findings of the run are not shown by GitHub, which shows the first 5,000."}
	if got := log.notices(); !slices.Equal(got, want) || len(log.allResults()) != 5_003 {
		t.Errorf("notices %q, want %q", got, want)
	}
}

func TestFilesAreSmallEnoughForGitHub(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := results()
	name := make([]byte, 200)
	for i := range 2_000 {
		x := &findings.Finding{Tool: "memcheck", Kind: "x", Fingerprint: fmt.Sprint(i), Traces: make([]findings.Trace, 1)}
		for range 40 {
			for k := range name {
				name[k] = byte(' ' + random.IntN(95))
			}
			x.Traces[0].Frames = append(x.Traces[0].Frames, at(string(name), "", "a.c", 1, ""))
		}
		r.Add(0, x, 1)
	}
	text := printed(t, SARIF, r)
	var size countBytes
	w := gzip.NewWriter(&size)
	w.Write([]byte(text))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	log := new(sarifLog)
	if err := json.Unmarshal([]byte(text), log); err != nil {
		t.Fatal(err)
	}
	n := len(log.allResults())
	if size > 10_000_000 || size < 8_000_000 || n < 100 || n > 1_900 {
		t.Errorf("%d results in %d bytes after compression, %d before", n, size, len(text))
	}
	want := []string{fmt.Sprintf("%d findings left out: GitHub accepts at most 25,000 in a run, and files of at most 10 MB after compression.", 2000-n)}
	if got := log.notices(); !slices.Equal(got, want) {
		t.Errorf("notices %q, want %q", got, want)
	}
}

func TestDeepStacksAreCut(t *testing.T) {
	x := &findings.Finding{Tool: "memcheck", Kind: "x"}
	for i := range 150 {
		tr := findings.Trace{Role: findings.RoleOther, Message: fmt.Sprint("thread ", i)}
		for k := range 300 {
			tr.Frames = append(tr.Frames, at(fmt.Sprint("f", k), "", "a.c", uint32(k+1), ""))
		}
		x.Traces = append(x.Traces, tr)
	}
	got := readSARIF(t, results(x)).allResults()[0]
	flow := got.CodeFlows[0].ThreadFlows[0].Locations
	if len(got.RelatedLocations) != 100 || len(flow) != 101*9 || flow[8].Location.Message.Text != "f0: thread 0" {
		t.Errorf("%d related locations, %d of the flow, %q", len(got.RelatedLocations), len(flow), flow[8].Location.Message.Text)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	long := strings.Repeat("x{[](1)", 10_000)
	x := aRead()
	x.Kind, x.Message, x.Tool = long, long, long
	x.Traces[0].Frames[0].Func = long
	x.Traces[1].Message = long
	x.Detail = []string{long, long, long, long}
	r := results(x)
	r.Version, r.SARIF.Category = long, long
	readSARIF(t, r)
}

func TestWhatIsMissingIsAResult(t *testing.T) {
	r := results(aRead())
	r.Process(0).Complete = false
	log := readSARIF(t, r)
	if log.Runs[0].Invocations[0].ExecutionSuccessful || !readSARIF(t, results(aRead())).Runs[0].Invocations[0].ExecutionSuccessful {
		t.Error("a run is successful although its report is cut off, or is not")
	}
	all := log.allResults()
	want := "The report of app (PID 7) in report.xml is cut off: errors after its end are missing."
	if len(all) != 2 || all[0].RuleID != "memcheck/Incomplete" || all[0].Message.Text != want || !slices.Equal(log.notices(), []string{want}) {
		t.Errorf("results %+v, notices %q", all, log.notices())
	}
	for range 11 {
		r.Begin(findings.Process{Input: "x.xml", Tool: "memcheck"})
	}
	all = readSARIF(t, r).allResults()
	if got := all[0].Message.Text; !strings.HasPrefix(got, "12 reports are cut off, so errors after their ends are missing: app (PID 7) in report.xml, a process in x.xml, ") || !strings.HasSuffix(got, ", and 4 others.") {
		t.Errorf("message %q", got)
	}
	r = results(aRead())
	r.Left = 3
	if got := readSARIF(t, r).allResults()[0].Message.Text; got != "3 findings left out: the memory that --max-memory allows is used up." {
		t.Errorf("message %q", got)
	}
}

func TestNewFindingsOfABaseline(t *testing.T) {
	r := results(aRead(), lost("Leak_DefinitelyLost", "leak", 40))
	r.Changes = gate.Compare(r.Collection, []gate.Entry{{Fingerprint: r.All()[1].Fingerprint}}, time.Time{})
	var states []string
	for _, x := range readSARIF(t, r).allResults() {
		states = append(states, x.BaselineState)
	}
	if want := []string{"new", "unchanged"}; !slices.Equal(states, want) {
		t.Errorf("states %q, want %q", states, want)
	}
}

// The expected hashes are from the tests of GitHub's upload action.
func TestLinesHaveGitHubsHash(t *testing.T) {
	for _, tt := range []struct {
		text   string
		hashes string
	}{
		{"", "c129715d7a2bc9a3:1"},
		{" a\nb\n  \t\tc\n d", "271789c17abda88f:1 54703d4cd895b18:1 180aee12dab6264:1 a23a3dc5e078b07b:1"},
		{" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End",
			"8b7cf3e952e7aeb2:1 b1ae1287ec4718d9:1 bff680108adb0fcc:1 c6805c5e1288b612:1 b86d3392aea1be30:1 e6ceba753e1a442:1"},
		{" hello; \t\nworld!!!\r\n\n\r  \t\tGreetings\r End\r\n",
			"e9496ae3ebfced30:1 fb7c023a8b9ccb3f:1 ce8ba1a563dcdaca:1 e20e36e16fcb0cc8:1 b3edc88f2938467e:1 c8e28b0b4002a3a0:1 c129715d7a2bc9a3:1"},
		{strings.Repeat("Lorem ipsum dolor sit amet.\n", 10),
			"a7f2ff13bc495cf2:1 a7f2ff13bc495cf2:2 a7f2ff13bc495cf2:3 a7f2ff13bc495cf2:4 a7f2ff13bc495cf2:5 a7f2ff13bc495cf2:6 a7f2ff1481e87703:1 a9cf91f7bbf1862b:1 55ec222b86bcae53:1 cc97dc7b1d7d8f7b:1 c129715d7a2bc9a3:1"},
	} {
		var lines []uint32
		want := strings.Fields(tt.hashes)
		for i := range len(want) + 1 { // the end of the text is one more line
			lines = append(lines, uint32(i+1))
		}
		found := hashLines([]byte(tt.text), lines)
		var got []string
		for _, line := range lines {
			if h, ok := found[line]; ok {
				got = append(got, h)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: hashes %q, want %q", tt.text, got, want)
		}
	}
	r := results(aRead(), lost("Leak_DefinitelyLost", "leak", 40))
	r.SARIF.LineHash = true
	r.Text = func(file string) []byte {
		if file == "/src/app/pool.h" {
			return []byte(strings.Repeat("\n", 30) + " ")
		}
		return nil
	}
	all := readSARIF(t, r).allResults()
	if got := all[0].PartialFingerprints["primaryLocationLineHash"]; got != "c129715d7a2bc9a3:1" {
		t.Errorf("hash %q", got)
	}
	if got := all[1].PartialFingerprints; got["primaryLocationLineHash"] != got["symfilterStack/v1"]+":1" {
		t.Errorf("fingerprints %q of a line that is not known", got)
	}
}

func TestSchemaIsThatOfOASIS(t *testing.T) {
	text, err := os.ReadFile("testdata/sarif-schema-2.1.0.json")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json") {
		t.Error("another version of the schema")
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(`{"version":"2.1.0","runs":[{"results":[]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if schema().Validate(value) == nil {
		t.Error("a run without a tool is valid")
	}
}
