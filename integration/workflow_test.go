//go:build linux

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// A workflow is what a file of .github/workflows may hold: no field for an action, so that reading
// one with `uses:` fails.
type workflow struct {
	Name        string
	On          any
	Permissions map[string]string
	Jobs        map[string]struct {
		RunsOn         string `yaml:"runs-on"`
		Container      string
		TimeoutMinutes int `yaml:"timeout-minutes"`
		Steps          []workflowStep
	}
}

type workflowStep struct {
	Name string
	Env  map[string]string
	Run  string
}

// workflows returns the workflows of the repository by the names of their files.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no workflow", err)
	}
	all := make(map[string]workflow)
	for _, file := range files {
		var w workflow
		d := yaml.NewDecoder(strings.NewReader(readFile(t, file)))
		d.KnownFields(true)
		if err := d.Decode(&w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = w
	}
	return all
}

// A forge runs scripts of the repository and git, with the Go of go.mod, and may only read the repository.
func TestWorkflowsRunTheScriptsOfTheRepository(t *testing.T) {
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, filepath.Join("..", "go.mod")))[1]
	scripts := 0
	for name, w := range workflows(t) {
		if diff := cmp.Diff(map[string]string{"contents": "read"}, w.Permissions); diff != "" {
			t.Errorf("%s: permissions: %s", name, diff)
		}
		for job, j := range w.Jobs {
			if !strings.HasPrefix(j.Container, "golang:"+language+".") {
				t.Errorf("%s: %s: container %s, but go.mod is of Go %s", name, job, j.Container, language)
			}
			if j.TimeoutMinutes == 0 || j.RunsOn == "" {
				t.Errorf("%s: %s has no machine or no limit of time", name, job)
			}
			for _, s := range j.Steps {
				for line := range strings.Lines(s.Run) {
					program := strings.Fields(line)[0]
					if program == "git" {
						continue
					}
					scripts++
					if info, err := os.Stat(filepath.Join("..", program)); err != nil || info.Mode()&0o111 == 0 {
						t.Errorf("%s: %s runs %s, which is not a script of the repository: %v", name, job, program, err)
					}
				}
			}
		}
	}
	if scripts == 0 {
		t.Error("no script is run")
	}
}

// The step that stands for the action of a third party checks out the commit that was pushed, with
// its tags, also after the branch has moved on.
func TestWorkflowsFetchTheirCommit(t *testing.T) {
	need(t, "git")
	origin, home := t.TempDir(), t.TempDir()
	commit := func(message string) string {
		git(t, origin, "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "--message", message)
		return strings.TrimSpace(git(t, origin, "rev-parse", "HEAD"))
	}
	git(t, origin, "init", "--quiet", "--initial-branch=main")
	commit("first")
	git(t, origin, "tag", "v0.1.0")
	pushed := commit("pushed")
	commit("later")
	ran := 0
	for name, w := range workflows(t) {
		for _, j := range w.Jobs {
			for _, s := range j.Steps {
				if !strings.HasPrefix(s.Run, "git ") {
					continue
				}
				ran++
				env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
				for key, value := range s.Env {
					env = append(env, key+"="+strings.NewReplacer("${{ github.server_url }}/${{ github.repository }}", origin, "${{ github.ref }}", "refs/heads/main", "${{ github.sha }}", pushed).Replace(value))
				}
				dir := t.TempDir()
				cmd := exec.Command("sh", "-e", "-c", s.Run)
				cmd.Dir, cmd.Env = dir, env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", name, err, out)
				}
				got := fmt.Sprint(strings.TrimSpace(git(t, dir, "rev-parse", "HEAD")), " ", strings.TrimSpace(git(t, dir, "tag")))
				if want := pushed + " v0.1.0"; got != want {
					t.Errorf("%s: checked out %s, want %s", name, got, want)
				}
			}
		}
	}
	if ran == 0 {
		t.Error("no workflow fetches its commit")
	}
}

// GitHub's own grammar of workflows, as actionlint knows it.
func TestWorkflowsPassActionlint(t *testing.T) {
	if !long() {
		t.Skip("compiles actionlint; make test-long does it")
	}
	files, err := filepath.Glob(filepath.Join("..", ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no workflow", err)
	}
	tool := strings.TrimSpace(run(t, nil, "go", "-C", filepath.Join("..", "scripts", "release"), "tool", "-n", "actionlint"))
	if out, err := exec.Command(tool, append([]string{"-no-color"}, files...)...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("on: push\njobs:\n  test:\n    runs-on: ubuntu-24.04\n    step: []\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(tool, "-no-color", broken).CombinedOutput(); err == nil || !strings.Contains(string(out), `unexpected key "step"`) {
		t.Errorf("actionlint accepts an unknown key: %v\n%s", err, out)
	}
}
