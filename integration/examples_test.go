//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const crashLines = 36 // lines of testdata/crash.log; the last one is inside a backtrace

// fixture returns the log for the examples, and the expected output.
func fixture(t *testing.T) (log, golden string) {
	t.Helper()
	for name, to := range map[string]*string{"crash.log": &log, "crash.golden": &golden} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		*to = string(b)
	}
	return log, golden
}

// noSystemDebug makes symfilter skip the debug folders of this machine.
const noSystemDebug = "SYMFILTER_NO_DEFAULT_DEBUG_DIRECTORIES=true"

func TestSidecarScript(t *testing.T) {
	_, golden := fixture(t)
	cmd := exec.Command("../examples/sidecar/sidecar.sh")
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command)+":"+os.Getenv("PATH"), "PAUSE=0.02", noSystemDebug)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	for line := range strings.Lines(stderr.String()) {
		if !strings.Contains(line, " stayed unresolved: libc.so.6 (") {
			t.Errorf("standard error has %q", line)
		}
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	wantOnce(t, string(got), golden)
}

func TestSidecarInContainers(t *testing.T) {
	file, err := os.ReadFile("../examples/sidecar/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	commands := make(map[string][]string)
	service := ""
	for line := range strings.Lines(string(file)) {
		if m := regexp.MustCompile(`^  (\w+):\n$`).FindStringSubmatch(line); m != nil {
			service = m[1]
		}
		if array, ok := strings.CutPrefix(line, "    command: "); ok {
			var args []string
			if err := json.Unmarshal([]byte(array), &args); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			commands[service] = args
		}
	}
	dir := t.TempDir()
	here := strings.NewReplacer("/examples/", abs(t, "../examples/sidecar")+"/", "/testdata/", abs(t, "../testdata")+"/", "/logs", filepath.Join(dir, "logs"), "/state/", dir+"/")
	for _, args := range commands {
		for i, arg := range args {
			args[i] = here.Replace(arg)
		}
	}
	p := startFollowing(t, filepath.Join(dir, "printed"), nil, commands["symfilter"]...)
	app := exec.Command("sh", commands["app"]...)
	app.Env = append(os.Environ(), "PAUSE=0.02")
	if out, err := app.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, golden := fixture(t)
	p.wait(t, func(printed string) bool { return strings.HasSuffix(printed, "restarting in 5 s\n") })
	p.stop(t)
	if d := cmp.Diff(p.printed(t), golden); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

// The unit must confine the service. Its command must work, here with other folders and as another
// user.
func TestSystemdUnit(t *testing.T) {
	const path = "../examples/systemd/symfilter.service"
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unit := make(map[string]string)
	for line := range strings.Lines(string(file)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '[' {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			t.Errorf("%q is no setting", line)
		}
		unit[key] += value
	}
	for key, want := range map[string]string{"DynamicUser": "yes", "ProtectSystem": "strict", "StateDirectory": "symfilter", "CapabilityBoundingSet": "", "PrivateNetwork": "yes"} {
		if got, ok := unit[key]; !ok || got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	if systemd, err := exec.LookPath("systemd-analyze"); err == nil {
		copied := filepath.Join(t.TempDir(), "symfilter.service")
		text := strings.ReplaceAll(string(file), "/usr/local/bin/symfilter", command)
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(systemd, "verify", copied).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("systemd-analyze verify: %v\n%s", err, out)
		}
	}

	dir := t.TempDir()
	logs := filepath.Join(dir, "logs")
	if err := os.Mkdir(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(strings.NewReplacer("${STATE_DIRECTORY}", dir, "/usr/lib/debug", "../testdata/debug", "/var/log/app/", logs+"/").Replace(unit["ExecStart"]))
	log, golden := fixture(t)
	lines := strings.SplitAfter(log, "\n")
	name := filepath.Join(logs, "a.log")
	appendTo(t, name, strings.Join(lines[:crashLines], ""))
	cache := []string{"XDG_CACHE_HOME=" + dir}
	p := startFollowing(t, filepath.Join(dir, "printed"), cache, args[1:]...)
	p.wait(t, func(printed string) bool { return strings.Contains(printed, "#2 ") })
	if got := fmt.Sprint(p.stop(t)); got != unit["SuccessExitStatus"] {
		t.Errorf("SIGTERM ends it with %s, the unit says %s", got, unit["SuccessExitStatus"])
	}
	appendTo(t, name, strings.Join(lines[crashLines:], ""))
	p = startFollowing(t, filepath.Join(dir, "printed"), cache, args[1:]...)
	p.wait(t, func(printed string) bool { return strings.HasSuffix(printed, "restarting in 5 s\n") })
	p.stop(t)
	wantOnce(t, strings.ReplaceAll(p.printed(t), name+": ", ""), golden)
}

// wantOnce checks that got equals want. Lines before a restart may be repeated: on a machine that
// is busy for a second, SIGTERM does not wait for the last checkpoint.
func wantOnce(t *testing.T, got, want string) {
	t.Helper()
	wanted := strings.SplitAfter(want, "\n")
	at, again := 0, 0
	for line := range strings.Lines(got) {
		if at == len(wanted) || line != wanted[at] {
			back := max(0, at-1)
			for back > 0 && wanted[back] != line {
				back--
			}
			if again += at - back; wanted[back] != line {
				t.Fatalf("(-got +want)\n%s", cmp.Diff(got, want))
			}
			at = back
		}
		at++
	}
	if strings.Join(wanted[at:], "") != "" {
		t.Fatalf("(-got +want)\n%s", cmp.Diff(got, want))
	}
	if again > 0 {
		t.Logf("%d lines came again behind a restart", again)
	}
}

func abs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A following is a symfilter that follows files, and prints to a file.
type following struct {
	cmd    *exec.Cmd
	out    string
	stderr bytes.Buffer
	ended  chan error
}

func startFollowing(t *testing.T, out string, env []string, args ...string) *following {
	t.Helper()
	f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &following{cmd: exec.Command(command, args...), out: out, ended: make(chan error, 1)}
	p.cmd.Env = append(append(os.Environ(), noSystemDebug), env...)
	p.cmd.Stdout, p.cmd.Stderr = f, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() { p.cmd.Process.Kill() })
	return p
}

func (p *following) printed(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(p.out)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wait waits until enough returns true for the output.
func (p *following) wait(t *testing.T, enough func(printed string) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !enough(p.printed(t)); time.Sleep(10 * time.Millisecond) {
		select {
		case err := <-p.ended:
			t.Fatalf("it ended: %v\n%s", err, p.stderr.Bytes())
		default:
		}
		if time.Now().After(end) {
			p.cmd.Process.Signal(syscall.SIGQUIT) // prints where it hangs
			<-p.ended
			t.Fatalf("not printed in a minute; what is:\n%s\n%s", p.printed(t), p.stderr.Bytes())
		}
	}
}

// stop ends the process with SIGTERM, and returns its exit code.
func (p *following) stop(t *testing.T) int {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	err := <-p.ended
	var exit *exec.ExitError
	for line := range strings.Lines(p.stderr.String()) {
		// expected: a followed file does not exist now, or libc has no debug file
		if !strings.Contains(line, "waiting for it") && !strings.Contains(line, " stayed unresolved: libc.so.6 (") {
			t.Errorf("it says %s", line)
		}
	}
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.cmd.ProcessState.ExitCode()
}
