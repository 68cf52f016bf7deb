//go:build linux

package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A runner runs the steps of action.yml like a runner of GitHub.
type runner struct {
	a         action
	workspace string
	home      string
	temp      string
	env       []string
}

// newRunner returns a runner whose workspace has testdata's logs and debug files.
func newRunner(t *testing.T) *runner {
	t.Helper()
	need(t, "bash", "jq")
	dir := t.TempDir()
	r := &runner{a: readAction(t), workspace: filepath.Join(dir, "workspace"), home: filepath.Join(dir, "home"), temp: filepath.Join(dir, "temp"), env: readerEnvironment(t)}
	for _, d := range []string{r.workspace, r.home, r.temp} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"crash.log", "asan.log"} {
		copyFile(t, filepath.Join(r.workspace, name), filepath.Join("..", "testdata", name))
	}
	if err := os.Symlink(filepath.Join(checkout, "testdata", "debug"), filepath.Join(r.workspace, "debug")); err != nil {
		t.Fatal(err)
	}
	arch := map[string]string{"amd64": "X64", "arm64": "ARM64"}[goruntime.GOARCH]
	r.env = append(r.env, noSystemDebug, "SYMFILTER_NO_PATHS=true", "HOME="+r.home, "RUNNER_TEMP="+r.temp, "RUNNER_OS=Linux", "RUNNER_ARCH="+arch, "GITHUB_ACTION_PATH="+checkout)
	return r
}

// An actionRun is the result of a run of the action.
type actionRun struct {
	Printed string // output of all steps
	Outputs map[string]string
	Summary string
	Code    int // exit code of the last step
}

var expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)

// run runs the shell steps of the action with inputs. It skips steps that use other actions.
func (r *runner) run(t *testing.T, inputs map[string]string) (got actionRun) {
	t.Helper()
	known := make(map[string]string) // values of expressions
	for name, in := range r.a.Inputs {
		if in.Default != nil {
			known["inputs."+name] = *in.Default
		}
		if given, ok := inputs[name]; ok {
			known["inputs."+name] = given
		}
	}
	value := func(text string) string {
		return expression.ReplaceAllStringFunc(text, func(s string) string {
			v, ok := known[expression.FindStringSubmatch(s)[1]]
			if !ok {
				t.Fatalf("no value for %s", s)
			}
			return v
		})
	}
	path := os.Getenv("PATH")
	for i, s := range r.a.Runs.Steps {
		if s.Uses != "" {
			continue
		}
		files := make(map[string]string)
		env := slices.Clone(r.env)
		for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"} {
			files[name] = filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(files[name], nil, 0o600); err != nil {
				t.Fatal(err)
			}
			env = append(env, name+"="+files[name])
		}
		for name, text := range s.Env {
			env = append(env, name+"="+value(text))
		}
		script := filepath.Join(t.TempDir(), "step.sh")
		if err := os.WriteFile(script, []byte(s.Run), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script)
		cmd.Dir, cmd.Env = r.workspace, append(env, "PATH="+path)
		out, err := cmd.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			got.Code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(i, err)
		}
		got.Printed += string(out)
		got.Summary += readFile(t, files["GITHUB_STEP_SUMMARY"])
		for line := range strings.Lines(readFile(t, files["GITHUB_OUTPUT"])) {
			name, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			known["steps."+s.ID+".outputs."+name] = v
		}
		for line := range strings.Lines(readFile(t, files["GITHUB_PATH"])) {
			path = strings.TrimSuffix(line, "\n") + ":" + path
		}
		if got.Code != 0 {
			break
		}
	}
	got.Outputs = make(map[string]string)
	for name, out := range r.a.Outputs {
		got.Outputs[name] = known[expression.FindStringSubmatch(out.Value)[1]]
	}
	got.Printed = regexp.MustCompile(`\b[0-9a-f]{32}::`).ReplaceAllString(got.Printed, "WORD::")
	got.Printed = regexp.MustCompile(`stop-commands::[0-9a-f]{32}\n`).ReplaceAllString(got.Printed, "stop-commands::WORD\n")
	return got
}

// releases starts a server with the release v0.9.0, and makes every curl with r's home folder use
// this server in place of github.com. sums changes the text of SHA256SUMS. releases returns the
// checksum of the archive.
func (r *runner) releases(t *testing.T, sums func(string) string) (sum string) {
	t.Helper()
	need(t, "curl")
	var archive bytes.Buffer
	top := "symfilter_0.9.0_linux_" + goruntime.GOARCH
	data := "#!/bin/sh\nexec " + command + " \"$@\"\n" // smaller than the command itself
	zip := gzip.NewWriter(&archive)
	w := tar.NewWriter(zip)
	err := w.WriteHeader(&tar.Header{Name: top + "/symfilter", Mode: 0o755, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write([]byte(data))
	}
	if err := errors.Join(err, w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	sum = fmt.Sprintf("%x", sha256.Sum256(archive.Bytes()))
	files := map[string]string{
		top + ".tar.gz": archive.String(),
		"SHA256SUMS":    sums(strings.Repeat("0", 64) + "  symfilter_0.9.0_linux_riscv64.tar.gz\n" + sum + "  " + top + ".tar.gz\n"),
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		name, found := strings.CutPrefix(q.URL.Path, "/symfilter/symfilter/releases/download/v0.9.0/")
		if text := files[name]; q.Host == "github.com" && found && text != "" {
			w.Write([]byte(text))
			return
		}
		http.NotFound(w, q)
	}))
	t.Cleanup(server.Close)
	curl := fmt.Sprintf("insecure\nconnect-to = \"github.com:443:%s\"\n", server.Listener.Addr())
	if err := os.WriteFile(filepath.Join(r.home, ".curlrc"), []byte(curl), 0o600); err != nil {
		t.Fatal(err)
	}
	return sum
}

func same(s string) string { return s }

const (
	actionUnresolved = "symfilter: %s addresses stayed unresolved: %s; --debug-file-directory and --symbol-path name folders of debug files; symfilter --explain shows why\n"
	crashAnnotation  = "::error file=/src/inventory/pool.h,line=33,title=crash/SIGSEGV::SIGSEGV in Pool<ledger::Order, 64ul>::next(unsigned long) const.\n"
	crashRow         = "| error | crash/SIGSEGV&#58; SIGSEGV in Pool&#60;ledger&#58;&#58;Order, 64ul&#62;&#58;&#58;next(unsigned long) const. | /src/inventory/pool.h&#58;33 | 1 |\n"
	tableHead        = "| level | finding | place | times |\n|---|---|---|---|\n"
)

func TestTheActionNamesTheFramesOfALog(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	got := r.run(t, map[string]string{"log": "crash.log", "debug-file-directory": "debug"})
	message := fmt.Sprintf(actionUnresolved, "2 of 11", "libc.so.6 (2)")
	want := actionRun{
		Printed: "::stop-commands::WORD\n" + readFile(t, filepath.Join("..", "testdata", "crash.golden")) + "\n" + message + "::WORD::\n" + crashAnnotation,
		Outputs: map[string]string{"sarif": "symfilter.sarif", "findings": "1"},
		Summary: "### symfilter: 1 finding\n\n" + tableHead + crashRow + "\n<pre>\n" + message + "</pre>\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	cmd := exec.Command(command, "-q", "--debug-file-directory=debug", "--output=sarif", "crash.log")
	cmd.Dir, cmd.Env = r.workspace, r.env
	sarif, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	// the versions differ if the command was built in a clone: they contain its commit
	ours := regexp.MustCompile(`("name":"symfilter","version":)"[^"]*"`)
	if diff := cmp.Diff(ours.ReplaceAllString(string(sarif), `$1""`), ours.ReplaceAllString(readFile(t, filepath.Join(r.workspace, "symfilter.sarif")), `$1""`)); diff != "" {
		t.Errorf("the command writes (-), the action (+):\n%s", diff)
	}
}

// For a finding that is not in the baseline, the action must fail, but write all of its files
// before.
func TestTheActionFailsForWhatTheBaselineLacks(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	r.releases(t, same)
	const accepted = "# symfilter baseline 1: log\nd5f335495836b547339a00b4a654f0c4\theap-use-after-free\tServer::cost(Request const&) const\t/src/server/server.cc\t-\n"
	if err := os.WriteFile(filepath.Join(r.workspace, "app.base"), []byte(accepted), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{"log": "\n*.log\n", "debug-file-directory": "debug", "baseline": "app.base", "version": "v0.9.0", "sarif": "a b.sarif", "args": "--prefix-map=/src/=\n--verbose=false"}
	const name = "SIGSEGV in Pool<ledger::Order, 64ul>::next(unsigned long) const"
	messages := "symfilter: gate: 1 finding is new: " + name + ", inventory/pool.h:33\n" + fmt.Sprintf(actionUnresolved, "6 of 22", "libc.so.6 (4), libclang_rt.asan-x86_64.so (2)")
	want := actionRun{
		Printed: "::stop-commands::WORD\n" + readFile(t, filepath.Join("testdata", "action", "finding.txt")) + "\n" + messages + "::WORD::\n" + strings.Replace(crashAnnotation, "/src/", "", 1),
		Outputs: map[string]string{"sarif": "a b.sarif", "findings": "1"},
		Summary: "### symfilter: 1 finding, and 1 in the baseline\n\n" + tableHead + strings.Replace(crashRow, "/src/", "", 1) + "\n<pre>\n" + strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(messages) + "</pre>\n",
		Code:    4,
	}
	if diff := cmp.Diff(want, r.run(t, inputs)); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	inputs["annotations"] = "false"
	want.Printed, _, _ = strings.Cut(want.Printed, "::error")
	if diff := cmp.Diff(want, r.run(t, inputs)); diff != "" {
		t.Errorf("without annotations, want (-), got (+):\n%s", diff)
	}
}

func TestTheActionInstallsNoOtherArchive(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		sums   func(string) string
		inputs map[string]string
		want   string
	}{
		{"a changed archive", func(s string) string { return regexp.MustCompile(`(?m)^.`).ReplaceAllString(s, "x") }, nil, "NAME has another checksum"},
		{"an archive that is not listed", func(string) string { return "\n" }, nil, "NAME has another checksum"},
		{"another checksum in the workflow", same, map[string]string{"sha256": strings.Repeat("0", 64)}, "NAME has another checksum"},
		{"no such release", same, map[string]string{"version": "v0.9.1"}, "https://github.com/symfilter/symfilter/releases/download/v0.9.1/NAME cannot be fetched"},
		{"no version", same, map[string]string{"version": "main"}, "the input version is neither source nor a version such as v0.9.0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t)
			r.releases(t, tt.sums)
			inputs := map[string]string{"log": "crash.log", "version": "v0.9.0"}
			maps.Copy(inputs, tt.inputs)
			got := r.run(t, inputs)
			_, annotation, _ := strings.Cut(got.Printed, "::error title=symfilter::")
			got.Printed = regexp.MustCompile(`symfilter_[0-9.]+_linux_\w+\.tar\.gz`).ReplaceAllString(annotation, "NAME")
			want := actionRun{Printed: tt.want + "\n", Outputs: map[string]string{"sarif": "", "findings": ""}, Code: 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			if _, err := os.Stat(filepath.Join(r.temp, "symfilter", "bin", "symfilter")); err == nil {
				t.Error("it is installed")
			}
		})
	}
}

// The text of an input must not be run as a script. A line of the log must not be read as a
// workflow command.
func TestNoTextRunsInTheAction(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	sum := r.releases(t, same)
	log := readFile(t, filepath.Join(r.workspace, "crash.log")) + "::error::of the log\n::stop-commands::x\n::x::\n::add-path::/x"
	if err := os.WriteFile(filepath.Join(r.workspace, "crash.log"), []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"log": "crash.log", "debug-file-directory": "debug", "version": "v0.9.0", "sha256": sum}
	if diff := cmp.Diff([]string{strings.TrimSuffix(crashAnnotation, "\n")}, commandsIn(r.run(t, good).Printed)); diff != "" {
		t.Errorf("commands for the runner, want (-), got (+):\n%s", diff)
	}
	for name := range r.a.Inputs {
		for _, text := range []string{"$(touch x)", "`touch x` ; touch x #", "' ; touch x ; '", "\" ; touch x ; \""} {
			inputs := maps.Clone(good)
			inputs[name] = text
			r.run(t, inputs)
			for _, dir := range []string{r.workspace, r.home, r.temp} {
				if _, err := os.Lstat(filepath.Join(dir, "x")); err == nil {
					t.Fatalf("%s: %q is run", name, text)
				}
			}
		}
	}
}

// commandsIn returns the workflow commands that a runner would find in printed.
func commandsIn(printed string) (all []string) {
	stopped := ""
	for line := range strings.Lines(printed) {
		line = strings.TrimSpace(line)
		word, stops := strings.CutPrefix(line, "::stop-commands::")
		switch {
		case stopped != "":
			if line == "::"+stopped+"::" {
				stopped = ""
			}
		case stops:
			stopped = word
		case strings.HasPrefix(line, "::"):
			all = append(all, line)
		}
	}
	return all
}
