//go:build linux

package integration

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// confinedDaemon is the configuration with which the daemon starts. Reloads add other kinds of
// input and output to it.
const confinedDaemon = `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
state: DIR/state
pipelines:
  app: {input: {files: ["DIR/in/*.log"]}, output: {file: "DIR/out/{peer}"}}
`

// startConfined starts a daemon with the folders of confinedDaemon. The folders state and cache do
// not exist yet.
func startConfined(t *testing.T, flags ...string) *runningDaemon {
	t.Helper()
	base := t.TempDir()
	for _, name := range []string{"in", "out", "other"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	d := startDaemonWith(t, flags, strings.ReplaceAll(confinedDaemon, "DIR", base))
	d.ready()
	d.files = base
	return d
}

// write appends a line to a followed file.
func (d *runningDaemon) write(name, line string) {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.files, "in", name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		d.t.Fatal(err)
	}
}

// holds waits until a file has exactly this text.
func (d *runningDaemon) holds(name, text string) {
	d.t.Helper()
	until(d.t, name+" holds "+text, func() bool {
		got, _ := os.ReadFile(filepath.Join(d.files, name))
		return string(got) == text
	})
}

func TestEveryThreadOfTheDaemonIsConfined(t *testing.T) {
	for _, tt := range []struct {
		name  string
		flags []string
		want  string
		told  string
	}{
		{"confined", nil, "NoNewPrivs 1, Seccomp 2", "no new privileges"},
		{"free", []string{"--no-sandbox"}, "NoNewPrivs 0, Seccomp 0", "none; --no-sandbox"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := startConfined(t, tt.flags...)
			d.write("a.log", "line")
			d.holds("out/a.log", "line\n")
			for _, got := range threads(t, d.cmd.Process.Pid) {
				if got != tt.want {
					t.Errorf("a thread with %s, want %s", got, tt.want)
				}
			}
			if _, text := d.get("/readyz"); !strings.Contains(text, `"sandbox":"`+tt.told) {
				t.Errorf("/readyz answers %s", text)
			}
		})
	}
}

// The daemon must be able to create files at any time, but only in folders of the first
// configuration. If such a folder is replaced by another one, the daemon must report what to do.
// After a restart, no line may be missing.
func TestTheDaemonWritesToItsFoldersOnly(t *testing.T) {
	landlocked(t)
	d := startConfined(t)
	d.write("a.log", "one")
	d.holds("out/a.log", "one\n")
	out := filepath.Join(d.files, "out")
	if err := os.Rename(filepath.Join(out, "a.log"), filepath.Join(out, "a.log.1")); err != nil {
		t.Fatal(err)
	}
	d.signal(syscall.SIGHUP)
	until(t, "the output is opened again", func() bool { return strings.Contains(d.stderr.String(), "was reloaded") })
	d.write("a.log", "two")
	d.holds("out/a.log", "two\n")
	d.write("b.log", "three")
	d.holds("out/b.log", "three\n")

	if err := os.Rename(out, out+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o700); err != nil {
		t.Fatal(err)
	}
	d.write("c.log", "four")
	until(t, "the reason is told", func() bool {
		status, text := d.get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(text, "permission denied: the folder was replaced after the start of symfilterd") && strings.Contains(text, "restart symfilterd")
	})
	d.signal(syscall.SIGTERM)
	d.exit()
	again := startDaemon(t, strings.ReplaceAll(confinedDaemon, "DIR", d.files))
	again.files = d.files
	again.holds("out/c.log", "four\n")
}

// A refused reload must change nothing, and the message must name a remedy. Lines must be passed on
// during all reloads.
func TestReloadsBeyondTheSandboxAreRefused(t *testing.T) {
	landlocked(t)
	d := startConfined(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	text := strings.ReplaceAll(confinedDaemon, "DIR", d.files)
	const cure = ": restart symfilterd (no lines of followed files are lost), or start it with --no-sandbox"
	for _, tt := range []struct{ name, add, want string }{
		{"folder", "  new: {input: {files: [DIR/in/x]}, output: {file: DIR/other/x}}\n",
			"pipelines.new.output.file: the sandbox, which is fixed at the start, does not let symfilterd create files in " + d.files + "/other"},
		{"port", "  new: {input: {listen: 'tcp:" + address + "'}, output: {file: DIR/out/x}}\n",
			"pipelines.new.input.listen: the sandbox, which is fixed at the start, does not let symfilterd open sockets of TCP or UDP"},
		{"connection", "  new: {input: {files: [DIR/in/x]}, output: {connect: 'tcp:" + address + "'}}\n",
			"pipelines.new.output.connect: the sandbox, which is fixed at the start, does not let symfilterd open connections"},
		{"local connection", "  new: {input: {files: [DIR/in/x]}, output: {connect: 'unix:DIR/in/s'}}\n",
			"pipelines.new.output.connect: the sandbox, which is fixed at the start, does not let symfilterd open connections to a socket with a path"},
		{"socket", "  new: {input: {listen: 'unix:DIR/other/s'}, output: {file: DIR/out/x}}\n",
			"pipelines.new.input.listen: the sandbox, which is fixed at the start, does not let symfilterd create files in " + d.files + "/other"},
		{"processes", "  new: {input: {files: ['/proc/1/cwd/x']}, output: {file: DIR/out/x}}\n",
			"pipelines.new.input.files: the sandbox, which is fixed at the start, does not let symfilterd read files of other processes, such as /proc/1/cwd/x"},
	} {
		d.configure(text + strings.ReplaceAll(tt.add, "DIR", d.files))
		d.signal(syscall.SIGHUP)
		until(t, tt.name+": the reload is refused", func() bool { return strings.Contains(d.stderr.String(), tt.want+cure) })
		d.write(tt.name+".log", "line")
		d.holds("out/"+tt.name+".log", "line\n")
	}
	d.configure(strings.ReplaceAll(text+"  new: {input: {listen: 'unix:OWN/s'}, output: {file: '"+d.files+"/out/x'}}\n", "OWN", d.dir))
	d.signal(syscall.SIGHUP)
	until(t, "a socket beside another one is opened", func() bool {
		c, err := net.Dial("unix", d.path("s"))
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.Write([]byte("sent\n"))
		return err == nil
	})
	d.holds("out/x", "sent\n")
}
