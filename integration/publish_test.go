//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/testenv"
)

// published is the folder with the schemas of outputs.
var published = filepath.Join("..", "internal", "publish", "testdata")

// sarifOf returns the results of a SARIF file, one per line: rule, file, line, count, and the
// functions of the code flow. The file must be valid by the schema of OASIS.
func sarifOf(t *testing.T, text string) (all []string) {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL(filepath.Join(published, "sarif-schema-2.1.0.json")))
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Error(err)
	}
	type location struct {
		Message          struct{ Text string }
		PhysicalLocation struct {
			ArtifactLocation struct{ URI string }
			Region           struct{ StartLine int }
		}
	}
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID          string
				OccurrenceCount int
				Locations       []location
				CodeFlows       []struct {
					ThreadFlows []struct{ Locations []struct{ Location location } }
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &log); err != nil {
		t.Fatal(err)
	}
	for _, run := range log.Runs {
		for _, x := range run.Results {
			at := x.Locations[0].PhysicalLocation
			s := fmt.Sprintf("%s %s:%d x%d", x.RuleID, at.ArtifactLocation.URI, at.Region.StartLine, x.OccurrenceCount)
			for _, flow := range x.CodeFlows {
				for _, l := range flow.ThreadFlows[0].Locations {
					name, _, _ := strings.Cut(l.Location.Message.Text, ": ")
					name, _, _ = strings.Cut(name, "(")
					s += " " + name
				}
			}
			all = append(all, s)
		}
	}
	return all
}

// The errors of a stripped program in two processes, one with a truncated report, are printed in
// all forms by one run. Each output must be valid by the schema of the programs that read it.
func TestErrorsOfStrippedProgramsAreReadByBuilds(t *testing.T) {
	t.Parallel()
	need(t, "xmllint")
	g, dir := gate(t)
	g.report(t, filepath.Join(dir, "%p.xml"), "old", "1")
	reports, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil || len(reports) != 2 {
		t.Fatal(reports, err)
	}
	text := readFile(t, reports[0])
	cut := filepath.Join(dir, "cut.xml")
	if err := os.WriteFile(cut, []byte(text[:strings.LastIndex(text, "<status>")]), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{
		"valgrind", "--no-default-debug-directories", "-s", g.debug, "--output=sarif:v.sarif", "--output=junit:v.xunit", "--junit=xunit", "--output=codequality:v.json",
		"--sarif-category=test", "--prefix-map=" + filepath.Join(g.dir, "five.cc") + "=src/five.cc",
	}, append(reports, cut)...)
	cmd := exec.Command(command, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := sarifOf(t, readFile(t, filepath.Join(dir, "v.sarif")))
	for i, s := range got {
		got[i] = strings.Join(strings.Fields(strings.ReplaceAll(s, g.dir, "PLACE")), " ")
	}
	want := []string{
		"memcheck/Incomplete file://PLACE/old:1 x0",
		"memcheck/InvalidRead src/five.cc:21 x3 main work store::Shelf<int>::Shelf main work store::Shelf<int>::beyond",
		"memcheck/InvalidWrite src/five.cc:22 x3 main work store::Shelf<int>::Shelf main work store::Shelf<int>::put",
		"memcheck/InvalidRead src/five.cc:58 x3 main work store::Shelf<int>::Shelf main work store::Shelf<int>::clear main work",
		"memcheck/UninitCondition src/five.cc:29 x3 main work store::undecided",
		"memcheck/Leak_DefinitelyLost src/five.cc:35 x2 main work store::lose",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	for _, schema := range []string{"junit.xsd", "jenkins-junit.xsd"} {
		run(t, nil, "xmllint", "--nonet", "--noout", "--schema", filepath.Join(published, schema), filepath.Join(dir, "v.xunit"))
	}
	if text := readFile(t, filepath.Join(dir, "v.xunit")); strings.Count(text, "<failure ") != 3 || strings.Count(text, "is cut off") != 1 || !strings.Contains(text, `<testcase name="old 1 (2)" `) {
		t.Errorf("JUnit:\n%s", text)
	}
	var issues []struct{ Fingerprint string }
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join(dir, "v.json"))), &issues); err != nil || len(issues) != 6 {
		t.Errorf("%d entries of Code Quality, error %v", len(issues), err)
	}
}

// Microsoft's validator, with the rules for SARIF and for GitHub, must find no error. Its exit
// status is always 0; the findings are in its output.
func TestSARIFPassesItsValidator(t *testing.T) {
	testenv.OnlyLong(t)
	validator := pageTool(t, "@microsoft", "sarif-multitool-linux", "Sarif.Multitool")
	g, dir := gate(t)
	g.report(t, filepath.Join(dir, "%p.xml"), "sixth", "2")
	reports, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join("..", "filter", "testdata", "findings", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(g.dir, "moved")
	for name, args := range map[string][]string{
		"valgrind": append([]string{"--sarif-hash=line", "--source-root=" + root, "-s", g.debug}, reports...),
		"logs":     logs,
	} {
		file, out := filepath.Join(dir, name+".sarif"), filepath.Join(dir, name+".validated")
		run(t, nil, command, append([]string{"-q", "--output=sarif:" + file}, args...)...)
		checkValidated(t, validator, file, out)
	}
	golden, err := os.ReadFile(filepath.Join(published, "sarif.golden")) // has hostile names
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "hostile.sarif")
	if err := os.WriteFile(file, golden, 0o644); err != nil {
		t.Fatal(err)
	}
	checkValidated(t, validator, file, filepath.Join(dir, "hostile.validated"))
}

// checkValidated validates a SARIF file, logs the validator's findings, and fails the test if one
// is an error.
func checkValidated(t *testing.T, validator, file, out string) {
	t.Helper()
	run(t, nil, validator, "validate", file, "--rule-kind", "Sarif;Ghas", "--level", "Error;Warning;Note", "-o", out)
	var log struct {
		Runs []struct {
			Invocations []struct {
				ExecutionSuccessful        bool
				ToolExecutionNotifications []any
			}
			Tool struct {
				Driver struct {
					Rules []struct {
						ID                   string
						DefaultConfiguration struct{ Level string }
					}
				}
			}
			Results []struct {
				RuleID  string
				Level   string
				Message struct {
					ID        string
					Arguments []string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(readFile(t, out), "\ufeff")), &log); err != nil {
		t.Fatal(err)
	}
	if len(log.Runs) != 1 || len(log.Runs[0].Invocations) != 1 || !log.Runs[0].Invocations[0].ExecutionSuccessful {
		t.Fatalf("%s: the validator has failed: %+v", file, log)
	}
	levels := make(map[string]string)
	for _, r := range log.Runs[0].Tool.Driver.Rules {
		levels[r.ID] = r.DefaultConfiguration.Level
	}
	counts := make(map[string]int)
	for _, x := range log.Runs[0].Results {
		level := x.Level
		if level == "" {
			level = levels[x.RuleID]
		}
		if level == "" {
			level = "warning"
		}
		counts[level+" "+x.RuleID+" "+x.Message.ID]++
		if level == "error" {
			t.Errorf("%s: %s %s %q", file, x.RuleID, x.Message.ID, x.Message.Arguments)
		}
	}
	t.Logf("%s: %v", filepath.Base(file), counts)
}
