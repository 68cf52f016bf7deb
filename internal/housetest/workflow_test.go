package housetest

import (
	"bytes"
	"fmt"
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
	"go.yaml.in/yaml/v3"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A workflow has all fields that a file in .github/workflows may have: any other field is an error.
type workflow struct {
	Name        string
	On          any
	Permissions map[string]string
	Jobs        map[string]workflowJob
}

type workflowJob struct {
	Strategy struct {
		FailFast bool `yaml:"fail-fast"`
		Matrix   struct {
			Include []map[string]string
			Run     []string
		}
	}
	RunsOn         string `yaml:"runs-on"`
	Container      string
	TimeoutMinutes int `yaml:"timeout-minutes"`
	Permissions    map[string]string
	Env            map[string]string
	Steps          []workflowStep
}

type workflowStep struct {
	Name string
	Env  map[string]string
	Run  string
	Uses string
	With map[string]string
}

func workflowFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root(t), ".github", "workflows", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no workflow", err)
	}
	return files
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	all := make(map[string]workflow)
	for _, file := range workflowFiles(t) {
		name := filepath.Base(file)
		var w workflow
		readYAML(t, ".github/workflows/"+name, &w)
		all[name] = w
	}
	return all
}

// readYAML decodes a YAML file of the repository. A field that the Go type lacks is an error.
func readYAML(t *testing.T, name string, to any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader(read(t, name)))
	d.KnownFields(true)
	if err := d.Decode(to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// commands returns the lines that a job runs, including each command of its matrix.
func (j *workflowJob) commands() []string {
	var all []string
	for _, s := range j.Steps {
		if s.Run != "${{ matrix.run }}" {
			all = append(all, slices.Collect(strings.Lines(s.Run))...)
			continue
		}
		all = append(all, j.Strategy.Matrix.Run...)
		for _, row := range j.Strategy.Matrix.Include {
			all = append(all, row["run"])
		}
	}
	return all
}

// Jobs may only run git, cat, and scripts and Makefile targets of the repository, in containers
// with the Go version of go.mod. They may only read the repository.
func TestWorkflowsRunTheScriptsOfTheRepository(t *testing.T) {
	makefile, scripts := string(read(t, "Makefile")), 0
	for name, w := range workflows(t) {
		if diff := cmp.Diff(map[string]string{"contents": "read"}, w.Permissions); diff != "" {
			t.Errorf("%s: permissions: %s", name, diff)
		}
		for job, j := range w.Jobs {
			if !strings.HasPrefix(j.Container, "golang:"+language(t)+".") {
				t.Errorf("%s: %s: container %s, but go.mod is of Go %s", name, job, j.Container, language(t))
			}
			if j.TimeoutMinutes == 0 || j.RunsOn == "" {
				t.Errorf("%s: %s has no machine or no limit of time", name, job)
			}
			for _, line := range j.commands() {
				words := strings.Fields(line)
				switch {
				case words[0] == "git", words[0] == "cat":
				case words[0] == "make":
					scripts++
					for _, target := range words[1:] {
						if !strings.Contains(target, "=") && !strings.Contains(makefile, "\n"+target+":") {
							t.Errorf("%s: %s: the Makefile has no target %s", name, job, target)
						}
					}
				default:
					scripts++
					if info, err := os.Stat(filepath.Join(root(t), words[0])); err != nil || info.Mode()&0o111 == 0 {
						t.Errorf("%s: %s runs %s, which is not a script of the repository: %v", name, job, words[0], err)
					}
				}
			}
		}
	}
	if scripts < 8 {
		t.Errorf("only %d scripts are run", scripts)
	}
}

// language returns the Go version in go.mod, without the patch number.
func language(t *testing.T) string {
	t.Helper()
	return string(regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(read(t, "go.mod"))[1])
}

// Only the job that attests a release may use an action, which is GitHub's own, and may have a
// permission to write.
func TestOnlyTheReleaseHasAnActionAndARight(t *testing.T) {
	var got []string
	for name, w := range workflows(t) {
		for _, j := range w.Jobs {
			if j.Permissions != nil {
				got = append(got, fmt.Sprint(name, " ", j.Permissions))
			}
			for _, s := range j.Steps {
				if s.Uses != "" {
					action, _, _ := strings.Cut(s.Uses, "@")
					got = append(got, name+" "+action)
				}
			}
		}
	}
	slices.Sort(got)
	want := []string{"release.yaml actions/attest-build-provenance", "release.yaml map[attestations:write contents:read id-token:write]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// The tests must run on both architectures, with the Go version of go.mod, and with the next Go
// version.
func TestTheTestsRunOnAllThatIsSupported(t *testing.T) {
	minor, err := strconv.Atoi(strings.TrimPrefix(language(t), "1."))
	if err != nil {
		t.Fatal(err)
	}
	test := workflows(t)["ci.yaml"].Jobs["test"]
	var got []string
	for _, row := range test.Strategy.Matrix.Include {
		version := row["go"][:strings.LastIndex(row["go"], ".")]
		got = append(got, fmt.Sprint(row["machine"], " ", version, " ", row["run"]))
		if version == "go"+language(t) && "golang:"+strings.TrimPrefix(row["go"], "go")+"-bookworm" != test.Container {
			t.Errorf("%s in %s", row["go"], test.Container)
		}
	}
	want := []string{
		fmt.Sprintf("ubuntu-24.04 go1.%d .ci/run", minor),
		fmt.Sprintf("ubuntu-24.04-arm go1.%d make build unit work", minor),
		fmt.Sprintf("ubuntu-24.04 go1.%d make build unit work", minor+1),
		fmt.Sprintf("ubuntu-24.04 go1.%d make apidiff", minor),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDependenciesAreUpdated(t *testing.T) {
	var config struct {
		Version int
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
			Schedule    struct{ Interval string }
			Groups      map[string]map[string][]string
		}
	}
	readYAML(t, ".github/dependabot.yml", &config)
	var got, want []string
	for _, u := range config.Updates {
		for _, dir := range append(u.Directories, u.Directory) {
			if dir != "" && u.Ecosystem != "github-actions" {
				got = append(got, u.Ecosystem+" "+dir)
			}
		}
	}
	ecosystems := map[string]string{"go.mod": "gomod", "package-lock.json": "npm"}
	for _, name := range committed(t) {
		if e := ecosystems[path.Base(name)]; e != "" && path.Dir(name) != "collector/dist" && !strings.Contains(name, "testdata/") {
			want = append(want, e+" "+path.Join("/", path.Dir(name)))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A shell step replaces the third-party checkout action. It must check out the pushed commit, with
// its tags, even if the branch has moved on.
func TestWorkflowsFetchTheirCommit(t *testing.T) {
	testenv.Need(t, "git")
	origin, home := t.TempDir(), t.TempDir()
	commit := func(message string) string {
		gitIn(t, origin, "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "--message", message)
		return strings.TrimSpace(gitIn(t, origin, "rev-parse", "HEAD"))
	}
	gitIn(t, origin, "init", "--quiet", "--initial-branch=main")
	commit("first")
	gitIn(t, origin, "tag", "v0.1.0")
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
				got := fmt.Sprint(strings.TrimSpace(gitIn(t, dir, "rev-parse", "HEAD")), " ", strings.TrimSpace(gitIn(t, dir, "tag")))
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

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-c", "safe.directory=" + dir, "-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestWorkflowsPassActionlint(t *testing.T) {
	testenv.OnlyLong(t) // compiles actionlint
	path, err := exec.Command("go", "-C", filepath.Join(root(t), "scripts", "release"), "tool", "-n", "actionlint").Output()
	if err != nil {
		t.Fatal(err)
	}
	tool := strings.TrimSpace(string(path))
	if out, err := exec.Command(tool, append([]string{"-no-color"}, workflowFiles(t)...)...).CombinedOutput(); err != nil || len(out) > 0 {
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
