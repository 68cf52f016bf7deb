package publish

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/internal/testenv"
)

type junitFile struct {
	XMLName xml.Name `xml:"testsuites"`
	junitCounts
	Suites []struct {
		Name string `xml:"name,attr"`
		junitCounts
		Cases []struct {
			Name      string  `xml:"name,attr"`
			Class     string  `xml:"classname,attr"`
			Failure   *string `xml:"failure"`
			Error     *string `xml:"error"`
			SystemOut string  `xml:"system-out"`
		} `xml:"testcase"`
		SystemErr string `xml:"system-err"`
	} `xml:"testsuite"`
}

type junitCounts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
}

// readJUnit returns the output of JUnit for r. It fails the test if counts are wrong, a name occurs
// twice, or a case has several problems.
func readJUnit(t testing.TB, r *Result) *junitFile {
	t.Helper()
	text := printed(t, JUnit, r)
	f := new(junitFile)
	if err := xml.Unmarshal([]byte(text), f); err != nil {
		t.Fatalf("%v in:\n%.10000s", err, text)
	}
	names := make(map[string]bool)
	var tests, failures, errors int
	for _, s := range f.Suites {
		var failed, bad int
		for _, c := range s.Cases {
			if key := c.Class + "\n" + c.Name; names[key] || c.Class == "" || c.Name == "" {
				t.Errorf("case %q of class %q", c.Name, c.Class)
			} else {
				names[key] = true
			}
			switch {
			case c.Failure != nil && c.Error != nil:
				t.Errorf("case %q has a failure and an error", c.Name)
			case c.Failure != nil:
				failed++
			case c.Error != nil:
				bad++
			}
		}
		if s.Name == "" || s.Tests != len(s.Cases) || s.Failures != failed || s.Errors != bad {
			t.Errorf("suite %q has %d cases, %d failures, %d errors, but %d, %d, %d", s.Name, s.Tests, s.Failures, s.Errors, len(s.Cases), failed, bad)
		}
		tests, failures, errors = tests+s.Tests, failures+s.Failures, errors+s.Errors
	}
	if f.Tests != tests || f.Failures != failures || f.Errors != errors {
		t.Errorf("%d cases, %d failures, %d errors, but %d, %d, %d in suites", f.Tests, f.Failures, f.Errors, tests, failures, errors)
	}
	return f
}

// With Strict, the output must be valid by two schemas, which testdata/README.md names. The schemas
// do not allow the attribute file, which GitLab reads.
func TestJUnitIsValid(t *testing.T) {
	testenv.Need(t, "xmllint")
	left := sample()
	left.Left = 3
	for name, r := range map[string]*Result{"sample": sample(), "empty": results(), "left out": left, "no report": {Collection: results().Collection, Empty: []string{"a.xml", "a.xml", ""}}} {
		for _, finding := range []bool{false, true} {
			r.JUnit = JUnitOptions{ByFinding: finding}
			readJUnit(t, r)
			r.JUnit.Strict = true
			readJUnit(t, r)
			file := filepath.Join(t.TempDir(), "v.xml")
			if err := os.WriteFile(file, []byte(printed(t, JUnit, r)), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, schema := range []string{"junit.xsd", "jenkins-junit.xsd"} {
				out, err := exec.Command("xmllint", "--nonet", "--noout", "--schema", filepath.Join("testdata", schema), file).CombinedOutput()
				if err != nil {
					t.Errorf("%s, %s: %v\n%s", name, schema, err, out)
				}
			}
		}
	}
}

func TestKnownFindingsDoNotFail(t *testing.T) {
	r := results(aRead(), lost("Leak_DefinitelyLost", "leak", 40))
	compare := func(known ...*findings.Finding) {
		var entries []gate.Entry
		for _, x := range known {
			entries = append(entries, gate.Entry{Fingerprint: x.Fingerprint})
		}
		r.Changes = gate.Compare(r.Collection, entries, time.Time{})
	}
	compare(r.All()[0])
	c := readJUnit(t, r).Suites[0].Cases[0]
	if c.Failure == nil || strings.Contains(*c.Failure, "Invalid read") || c.SystemOut != "1 finding accepted by the baseline or the gate\n" {
		t.Errorf("case %+v", c)
	}
	compare(r.All()...)
	c = readJUnit(t, r).Suites[0].Cases[0]
	if c.Failure != nil || c.SystemOut != "2 findings accepted by the baseline or the gate\n" {
		t.Errorf("case %+v", c)
	}
	r.JUnit.ByFinding = true
	if f := readJUnit(t, r); f.Tests != 1 || f.Failures != 0 {
		t.Errorf("%+v", f)
	}
}

func TestLargeJUnitFilesAreCut(t *testing.T) {
	r := results()
	frame := at(strings.Repeat("f", 250), "", "a.c", 1, "")
	const n = 4_000
	for i := range n {
		x := &findings.Finding{Tool: "memcheck", Kind: "x", Message: strings.Repeat("m", 1000), Fingerprint: fmt.Sprint(i), Traces: make([]findings.Trace, 1)}
		for range 40 {
			x.Traces[0].Frames = append(x.Traces[0].Frames, frame)
		}
		r.Add(0, x, 1)
	}
	var size countBytes
	if err := JUnit(&size, r); err != nil {
		t.Fatal(err)
	}
	s := readJUnit(t, r).Suites[0]
	text := *s.Cases[0].Failure
	stacks := strings.Count(text, "\n    at ")
	whole := strings.Count(text, "mmm in f")
	if size > 30_000_000 || size < 20_000_000 || stacks < 1_000 || stacks == n || whole == 0 {
		t.Errorf("%d bytes, %d of %d findings with stacks", size, stacks, n)
	}
	want := fmt.Sprintf("%d findings shortened, or only counted: GitLab does not read files larger than 30 MB\n", n-stacks)
	if s.SystemErr != want {
		t.Errorf("%q, want %q", s.SystemErr, want)
	}
}

func TestWhatIsMissingIsInEachFormat(t *testing.T) {
	cut := results()
	cut.Process(0).Complete = false
	left := results()
	left.Left = 1
	empty := results()
	empty.Empty = []string{"empty.xml"}
	for _, tt := range []struct {
		r    *Result
		want string
	}{
		{cut, "The report of app (PID 7) in report.xml is cut off: errors after its end are missing"},
		{empty, "There is no report in empty.xml"},
		{left, "1 finding left out: the memory that --max-memory allows is used up"},
	} {
		for name, print := range map[string]func(io.Writer, *Result) error{"sarif": SARIF, "junit": JUnit, "codequality": CodeQuality} {
			if text := printed(t, print, tt.r); !strings.Contains(text, tt.want) {
				t.Errorf("%s does not have %q:\n%s", name, tt.want, text)
			}
		}
		if f := readJUnit(t, tt.r); f.Errors != 1 {
			t.Errorf("%d errors", f.Errors)
		}
		if issues := readCodeQuality(t, tt.r); len(issues) != 1 || issues[0].Severity != "minor" {
			t.Errorf("entries %+v", issues)
		}
	}
}

type issue struct {
	Description string `json:"description"`
	CheckName   string `json:"check_name"`
	Fingerprint string `json:"fingerprint"`
	Severity    string `json:"severity"`
	Location    struct {
		Path  string `json:"path"`
		Lines struct {
			Begin int `json:"begin"`
		} `json:"lines"`
	} `json:"location"`
}

// readCodeQuality returns the output of CodeQuality for r. It fails the test if GitLab would not
// read an entry, or would merge two entries.
func readCodeQuality(t testing.TB, r *Result) (all []issue) {
	t.Helper()
	text := printed(t, CodeQuality, r)
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	is := make(map[string]bool)
	for _, x := range all {
		bad := x.Description == "" || x.CheckName == "" || x.Fingerprint == "" || is[x.Fingerprint] || x.Location.Lines.Begin < 1 ||
			x.Location.Path == "" || strings.HasPrefix(x.Location.Path, "./")
		if !strings.Contains(" info minor major critical blocker ", " "+x.Severity+" ") || bad {
			t.Errorf("entry %+v", x)
		}
		is[x.Fingerprint] = true
	}
	return all
}
