//go:build linux

package integration

import (
	"bytes"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// An action has all fields that action.yml may have: any other field is an error.
type action struct {
	Name        string
	Description string
	Branding    map[string]string
	Inputs      map[string]actionInput
	Outputs     map[string]struct{ Description, Value string }
	Runs        struct {
		Using string
		Steps []actionStep
	}
}

type actionInput struct {
	Description string
	Required    bool
	Default     *string
}

type actionStep struct {
	Name  string
	ID    string
	If    string
	Shell string
	Uses  string
	Run   string
	Env   map[string]string
	With  map[string]string
}

func readAction(t *testing.T) (a action) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(readFile(t, filepath.Join("..", "action.yml"))))
	d.KnownFields(true)
	if err := d.Decode(&a); err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	inputUse  = regexp.MustCompile(`\binputs\.([\w-]+)`)
	outputUse = regexp.MustCompile(`^\$\{\{ steps\.([\w-]+)\.outputs\.([\w-]+) \}\}$`)
	pinned    = regexp.MustCompile(`(?m)^ *uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// Each input must have a description, and a default unless it is required. Steps must get inputs
// through the environment, since an expression in a script would become part of the script. Other
// actions must be named by commit, since a tag can be moved.
func TestTheActionUsesEachInput(t *testing.T) {
	a := readAction(t)
	if a.Name != "symfilter" || a.Description == "" || a.Runs.Using != "composite" {
		t.Errorf("%s: %q, %s", a.Name, a.Description, a.Runs.Using)
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Required != (in.Default == nil) {
			t.Errorf("input %s: description %q, required %v", name, in.Description, in.Required)
		}
	}
	used := make(map[string]bool)
	uses := 0
	for _, s := range a.Runs.Steps {
		for _, text := range slices.Concat([]string{s.If}, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.With))) {
			for _, m := range inputUse.FindAllStringSubmatch(text, -1) {
				used[m[1]] = true
			}
		}
		switch {
		case s.Uses != "":
			uses++
		case s.Shell != "bash" || s.If != "" || strings.Contains(s.Run, "${{"):
			t.Errorf("%s: shell %q, if %q:\n%s", s.Name, s.Shell, s.If, s.Run)
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(a.Inputs)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("inputs that are declared (-) and used (+):\n%s", diff)
	}
	if n := len(pinned.FindAllString(readFile(t, filepath.Join("..", "action.yml")), -1)); n != uses || n == 0 {
		t.Errorf("%d of %d actions are those of a commit, with their version", n, uses)
	}
	for name, out := range a.Outputs {
		m := outputUse.FindStringSubmatch(out.Value)
		if m == nil || out.Description == "" || !slices.ContainsFunc(a.Runs.Steps, func(s actionStep) bool { return s.ID == m[1] && s.Run != "" }) {
			t.Errorf("output %s: %+v", name, out)
		}
	}
}

func TestTheWorkflowWithTheActionIsOfItsInputs(t *testing.T) {
	block := ciBlocks(t)["The action for GitHub"]
	var job struct{ Steps []actionStep }
	if err := yaml.NewDecoder(bytes.NewReader([]byte(block))).Decode(&job); err != nil {
		t.Fatal(err)
	}
	a, calls := readAction(t), 0
	for _, s := range job.Steps {
		if !strings.HasPrefix(s.Uses, "symfilter/symfilter@") {
			continue
		}
		calls++
		for name := range s.With {
			if _, ok := a.Inputs[name]; !ok {
				t.Errorf("the action has no input %s", name)
			}
		}
		for name, in := range a.Inputs {
			if in.Required && s.With[name] == "" {
				t.Errorf("%s is missing", name)
			}
		}
		read := regexp.MustCompile(`steps\.`+s.ID+`\.outputs\.([\w-]+)`).FindAllStringSubmatch(block, -1)
		for _, m := range read {
			if _, ok := a.Outputs[m[1]]; !ok {
				t.Errorf("the action has no output %s", m[1])
			}
		}
		if len(read) == 0 {
			t.Error("no output is read")
		}
	}
	if calls != 1 {
		t.Errorf("the action is called %d times", calls)
	}
}
