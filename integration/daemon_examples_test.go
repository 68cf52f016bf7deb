//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/symfilter/symfilter/internal/testenv"
)

const daemonExamples = "../examples/daemon/"

// example returns the text of an example for symfilterd.
func example(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(daemonExamples + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// manifests returns the documents in a YAML file.
func manifests(t *testing.T, text string) (all []map[string]any) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var one map[string]any
		if err := d.Decode(&one); err != nil {
			if len(all) == 0 {
				t.Fatal(err)
			}
			return all
		}
		all = append(all, one)
	}
}

// at returns the member of nested objects to which the names lead. It fails the test if a name is
// missing.
func at(t *testing.T, of any, names ...string) any {
	t.Helper()
	for _, name := range names {
		o, ok := of.(map[string]any)
		if !ok || o[name] == nil {
			t.Fatalf("there is no %s of %s", name, strings.Join(names, "."))
		}
		of = o[name]
	}
	return of
}

// configurations returns the configurations in the examples, by file.
func configurations(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{
		"symfilter.yaml": example(t, "symfilter.yaml"),
		"compose.yaml":   at(t, manifests(t, example(t, "compose.yaml"))[0], "configs", "symfilter", "content").(string),
	}
	for _, name := range []string{"kubernetes.yaml", "kubernetes-sidecar.yaml"} {
		documents := manifests(t, example(t, name))
		if len(documents) != 2 || documents[0]["kind"] != "ConfigMap" {
			t.Fatalf("%s: got %d documents, the first %v", name, len(documents), documents[0]["kind"])
		}
		all[name] = at(t, documents[0], "data", "symfilter.yaml").(string)
	}
	return all
}

// The examples must match the schema, and pass --check. The test makes the folders for outputs,
// which --check needs.
func TestConfigurationsOfExamplesAreChecked(t *testing.T) {
	published, err := jsonschema.UnmarshalJSON(strings.NewReader(run(t, nil, daemonCommand(t), "--schema")))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("memory:symfilterd.schema.json", published); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("memory:symfilterd.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range configurations(t) {
		if err := schema.Validate(any(manifests(t, text)[0])); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		dir := t.TempDir()
		for _, sub := range []string{"/var/log/symbolized", "/var/log/app", "/var/log/containers", "/usr/lib/debug/.build-id", "/logs", "/testdata/debug/.build-id", "/symbols/.build-id"} {
			if err := os.MkdirAll(dir+sub, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		text = regexp.MustCompile(`([ "\[])(/(var|usr|logs|testdata|symbols|state)\b)`).ReplaceAllString(text, "${1}"+dir+"${2}")
		path := filepath.Join(dir, "symfilter.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(daemonCommand(t), "--config", path, "--check").CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// Kubernetes and Compose must start the image of the Dockerfile with its arguments, and mounted
// volumes must be defined.
func TestManifestsOfExamplesFitTogether(t *testing.T) {
	compose := manifests(t, example(t, "compose.yaml"))[0]
	if got := at(t, compose, "services", "symfilterd", "image"); got != "symfilterd" {
		t.Errorf("compose.yaml starts %v", got)
	}
	for name, spec := range map[string]any{
		"kubernetes.yaml":         at(t, manifests(t, example(t, "kubernetes.yaml"))[1], "spec", "template", "spec"),
		"kubernetes-sidecar.yaml": at(t, manifests(t, example(t, "kubernetes-sidecar.yaml"))[1], "spec"),
	} {
		volumes := map[any]bool{}
		for _, v := range at(t, spec, "volumes").([]any) {
			volumes[at(t, v, "name")] = true
		}
		started := 0
		for _, kind := range []string{"containers", "initContainers"} {
			list, _ := spec.(map[string]any)[kind].([]any)
			for _, c := range list {
				for _, m := range at(t, c, "volumeMounts").([]any) {
					if !volumes[at(t, m, "name")] {
						t.Errorf("%s: no volume %v", name, at(t, m, "name"))
					}
				}
				if at(t, c, "name") == "symfilterd" {
					started++
					if got := fmt.Sprint(at(t, c, "args")); got != "[--config /etc/symfilter/symfilter.yaml]" {
						t.Errorf("%s: arguments %s", name, got)
					}
				}
			}
		}
		if started != 1 {
			t.Errorf("%s starts symfilterd %d times", name, started)
		}
	}
}

// oldSystemd matches the warning of systemd before 253 about Type=notify-reload.
var oldSystemd = regexp.MustCompile(`(?m)^.*: Failed to parse service type, ignoring: notify-reload\n`)

// systemd must accept the units, and the service must not have unneeded rights.
func TestUnitsOfTheDaemon(t *testing.T) {
	need(t, "systemd-analyze")
	dir := t.TempDir()
	here := strings.NewReplacer("/usr/local/bin/symfilterd", daemonCommand(t), "/usr/local/bin/symfilter", command)
	units := []string{"symfilterd.service", "symfilterd.socket", "symfilter-index.service", "symfilter-index.timer"}
	for _, name := range units {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(here.Replace(example(t, name))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	version := strings.Fields(run(t, nil, "systemd-analyze", "--version"))
	number, err := strconv.Atoi(version[1])
	if err != nil {
		t.Fatalf("version %q", version)
	}
	for _, name := range units {
		cmd := exec.Command("systemd-analyze", "verify", "./"+name)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if number < 253 {
			out = oldSystemd.ReplaceAll(out, nil)
		}
		if err != nil || len(out) > 0 {
			t.Errorf("systemd-analyze verify %s: %v\n%s", name, err, out)
		}
	}
	const most = 1.0
	for _, name := range []string{"symfilterd.service", "symfilter-index.service"} {
		out := run(t, nil, "systemd-analyze", "security", "--offline=true", "--no-pager", filepath.Join(dir, name))
		m := regexp.MustCompile(`Overall exposure level for \S+: ([\d.]+) `).FindStringSubmatch(out)
		if m == nil {
			t.Fatalf("no level:\n%s", out)
		}
		if level, err := strconv.ParseFloat(m[1], 64); err != nil || level > most {
			t.Errorf("%s: exposure %s, want at most %.1f\n%s", name, m[1], most, out)
		}
	}
}

// exampleHere returns the example symfilter.yaml with the test's folders and addresses, and without
// the admin listener. devices and service are the addresses of its listeners.
func exampleHere(t *testing.T) (text, devices, service string) {
	t.Helper()
	devices, service = testenv.FreeAddress(t), testenv.FreeAddress(t)
	text = regexp.MustCompile(`(?m)^admin:.*\n`).ReplaceAllString(example(t, "symfilter.yaml"), "")
	return strings.NewReplacer("/var/log/", "DIR/", "/var/cache/", "DIR/cache/", "/var/lib/", "DIR/lib/", "/usr/lib/debug", checkout+"/testdata/debug",
		"127.0.0.1:5170", devices, "127.0.0.1:8033", service, "debug_file_directories", "no_default_debug_directories: true\n  debug_file_directories").Replace(text), devices, service
}

func TestPipelinesOfTheExample(t *testing.T) {
	log, golden := fixture(t)
	text, devices, service := exampleHere(t)
	// the sandbox allows only the folders of the first configuration, and the second configuration
	// needs other folders
	d := startDaemonWith(t, []string{"--no-sandbox"}, "state: DIR/none\npipelines: {none: {input: {listen: 'unix:DIR/none.sock'}, output: {peer: true}}}\n")
	for _, dir := range []string{"app", "symbolized"} {
		if err := os.Mkdir(d.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d.ready()
	d.configure(text)
	d.signal(syscall.SIGHUP)
	appendTo(t, d.path("app/a.log"), log)
	appendTo(t, d.path("app/debug.log"), log)
	d.await("symbolized/app.log", golden)

	var c net.Conn
	until(t, "there is a listener for devices", func() bool {
		var err error
		c, err = net.Dial("tcp", devices)
		return err == nil
	})
	if _, err := c.Write([]byte(log)); err != nil {
		t.Fatal(err)
	}
	c.Close()
	d.await("symbolized/127.0.0.1.log", golden)

	answer, err := http.Post("http://"+service+"/v1/filter", "text/plain", strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v %s", err, answer.Status)
	}
	if diff := cmp.Diff(golden, got.String()); diff != "" {
		t.Error(diff)
	}
}

// await waits until a file has this content.
func (d *runningDaemon) await(name, want string) {
	d.t.Helper()
	var got []byte
	if testenv.Wait(func() bool { got, _ = os.ReadFile(d.path(name)); return string(got) == want }) {
		return
	}
	all, _ := filepath.Glob(d.path("symbolized/*"))
	d.t.Fatalf("%s (of %q): (-want +got)\n%s", name, all, cmp.Diff(want, string(got)))
}

func TestLogrotateLosesNoLine(t *testing.T) {
	need(t, logrotate)
	d := startDaemon(t, `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
state: DIR/state
pipelines: {app: {input: {files: ["DIR/app.log"]}, output: {file: DIR/symbolized/app.log}}}
`)
	if err := os.Mkdir(d.path("symbolized"), 0o755); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	conf := strings.ReplaceAll(example(t, "logrotate"), "/var/log/symbolized", d.path("symbolized"))
	conf = withMainPID(conf, d.cmd.Process.Pid)
	if err := os.WriteFile(d.path("logrotate.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	n := 0
	write := func() {
		var lines strings.Builder
		for range 1000 {
			n++
			fmt.Fprintf(&lines, "line %d\n", n)
		}
		appendTo(t, d.path("app.log"), lines.String())
		want.WriteString(lines.String())
	}
	written := func() string { // all generations, oldest first
		var all strings.Builder
		for i := 9; i >= 0; i-- {
			name := d.path("symbolized/app.log")
			if i > 0 {
				name += "." + strconv.Itoa(i)
			}
			if b, err := os.ReadFile(name); err == nil {
				all.Write(b)
			} else if b, err := exec.Command("gzip", "-dc", name+".gz").Output(); err == nil {
				all.Write(b)
			}
		}
		return all.String()
	}
	for range 3 {
		until(t, "all lines are written", func() bool { return written() == want.String() })
		for range 5 {
			write() // while files are renamed
		}
		if n > 5000 {
			// the output must not be empty or missing after the last rotation: logrotate would skip
			// it
			until(t, "the output is open again", func() bool { info, err := os.Stat(d.path("symbolized/app.log")); return err == nil && info.Size() > 0 })
			if out, err := exec.Command(logrotate, "--force", "--state", d.path("logrotate.state"), d.path("logrotate.conf")).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		write()
	}
	if !testenv.Wait(func() bool { return written() == want.String() }) {
		t.Fatalf("(-want +got)\n%.2000s", cmp.Diff(want.String(), written()))
	}
	if names, _ := filepath.Glob(d.path("symbolized/*")); len(names) != 3 {
		t.Errorf("the files are %q", names)
	}
}

// withMainPID returns script with pid in place of the systemctl command that prints the daemon's
// PID.
func withMainPID(script string, pid int) string {
	return regexp.MustCompile(`"?\$\(systemctl [^)]*\)"?`).ReplaceAllString(script, strconv.Itoa(pid))
}

// If the service does not run, systemctl prints the PID 0, which the script must not signal. For
// kill(1), 0 is the process group of the caller: logrotate and the timer's service.
func TestLogrotateSignalsNothingIfTheServiceDoesNotRun(t *testing.T) {
	_, script, _ := strings.Cut(example(t, "logrotate"), "postrotate\n")
	script, _, _ = strings.Cut(script, "endscript")
	rotation := exec.Command("sh", "-ec", withMainPID(script, 0))
	rotation.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the group that would get the signal
	if out, err := rotation.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
