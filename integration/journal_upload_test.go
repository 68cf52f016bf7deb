//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// systemdLibraries are the folders of systemd's private library.
const systemdLibraries = "/usr/lib/x86_64-linux-gnu/systemd:/usr/lib/aarch64-linux-gnu/systemd:/usr/lib/systemd"

// journalTool returns a command of systemd's journal tools.
func journalTool(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	path := collectorPart(t, "lib/systemd/"+name)
	root := filepath.Dir(filepath.Dir(filepath.Dir(path)))
	libraries, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(append(libraries, systemdLibraries), ":"))
	return cmd
}

// journal appends entries with these messages, all of one process and numbered from first, to a
// file of journald.
func journal(t *testing.T, file string, first int, messages []string) {
	t.Helper()
	var text bytes.Buffer
	for i, message := range messages {
		fmt.Fprintf(&text, "__REALTIME_TIMESTAMP=%d\n__MONOTONIC_TIMESTAMP=%d\n_BOOT_ID=%032x\n_MACHINE_ID=%032x\n_PID=7\n_HOSTNAME=host\nSYSLOG_IDENTIFIER=app\nMESSAGE=%s\n\n",
			int64(1700000000000000)+int64(first+i), first+i, 1, 2, message)
	}
	cmd := journalTool(t, "systemd-journal-remote", "--output="+file, "-")
	cmd.Stdin = &text
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("systemd-journal-remote: %v\n%s", err, out)
	}
}

// uploadTo returns the systemd-journal-upload command for the journal in dir. Its URL is the
// example's, with address as host and port.
func uploadTo(t *testing.T, address, dir string) *exec.Cmd {
	t.Helper()
	conf, err := os.ReadFile("../examples/daemon/journal-upload.conf")
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`(?m)^URL=(.*)$`).FindSubmatch(conf)
	if url == nil {
		t.Fatal("the example has no URL")
	}
	return journalTool(t, "systemd-journal-upload", "--url="+strings.ReplaceAll(string(url[1]), "127.0.0.1:8033", address),
		"--file="+filepath.Join(dir, "app.journal"), "--save-state="+filepath.Join(dir, "cursor"), "--follow=no")
}

// messagesOf returns the messages first to first+n-1. Message 0 has a module, each other message a
// frame.
func messagesOf(first, n int) (all []string) {
	for i := range n {
		if first+i == 0 {
			all = append(all, "{{{module:0:one.so:elf:aabb}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}")
			continue
		}
		all = append(all, fmt.Sprintf("%d {{{pc:0x1234:pc}}}", first+i))
	}
	return all
}

// linesOf returns the lines that symfilterd prints for messagesOf.
func linesOf(first, n int) string {
	var b strings.Builder
	for i := first; i < first+n; i++ {
		if i > 0 {
			at := time.UnixMicro(1700000000000000 + int64(i)).UTC().Format("2006-01-02T15:04:05.000000Z")
			fmt.Fprintf(&b, "%s host app[7]: %d one.so+0x234 (BuildId: aabb)\n", at, i)
		}
	}
	return b.String()
}

// restart waits until the killed daemon has ended, and starts it again with the same arguments.
func (d *runningDaemon) restart() {
	d.t.Helper()
	<-d.exited
	again := exec.Command(d.cmd.Path, d.cmd.Args[1:]...)
	again.Env, again.Stderr = d.cmd.Env, &d.stderr
	if err := again.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.cmd, d.exited = again, make(chan struct{})
	exited := d.exited
	go func() {
		d.err = again.Wait()
		close(exited)
	}()
	d.ready()
}

const journalDaemon = `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
state: DIR/state
pipelines:
  journal: {input: {journal_upload: "ADDR"}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`

// If symfilterd is killed between two uploads of systemd-journal-upload, the sender must continue
// after the last acknowledged entry. Frames of a process that began earlier must be resolved.
func TestJournalUploadsGoOnAfterAKill(t *testing.T) {
	address := testenv.FreeAddress(t)
	d := startDaemon(t, strings.ReplaceAll(journalDaemon, "ADDR", address))
	d.ready()
	const n = 200
	for i := range 3 {
		journal(t, d.path("app.journal"), i*n, messagesOf(i*n, n))
		if out, err := uploadTo(t, address, d.dir).CombinedOutput(); err != nil {
			t.Fatalf("systemd-journal-upload: %v\n%s", err, out)
		}
		got, err := os.ReadFile(d.path("out.log"))
		// when systemd-journal-upload 252 starts, it sends the last acknowledged entry again
		once := strings.Join(slices.Compact(slices.Collect(strings.Lines(string(got)))), "")
		if diff := cmp.Diff(linesOf(0, (i+1)*n), once); diff != "" || err != nil {
			t.Fatalf("after upload %d: %v (-want +got)\n%s", i+1, err, diff)
		}
		if i < 2 {
			d.signal(syscall.SIGKILL)
			d.restart()
		}
	}
}

// If symfilterd is killed several times during an upload, no entry may be lost.
func TestKilledDaemonsLoseNoEntryOfAJournal(t *testing.T) {
	const n = 20_000
	kills, cut := 3, 0
	if long() {
		kills = 20
	}
	address := testenv.FreeAddress(t)
	d := startDaemon(t, strings.ReplaceAll(journalDaemon, "ADDR", address))
	d.ready()
	journal(t, d.path("app.journal"), 0, messagesOf(0, n))
	for i := range kills {
		before := d.outputSize()
		upload := uploadTo(t, address, d.dir)
		if err := upload.Start(); err != nil {
			t.Fatal(err)
		}
		for range 1000 { // until some entries of the upload are written
			if d.outputSize() > before+int64(i)*1000 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		d.signal(syscall.SIGKILL)
		d.restart()
		if upload.Wait() != nil {
			cut++
		}
	}
	if out, err := uploadTo(t, address, d.dir).CombinedOutput(); err != nil {
		t.Fatalf("systemd-journal-upload: %v\n%s", err, out)
	}
	if cut == 0 {
		t.Error("no upload was cut by a kill")
	}
	text, err := os.ReadFile(d.path("out.log"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(string(text)) {
		seen[line]++
	}
	missing := 0
	for line := range strings.Lines(linesOf(0, n)) {
		if seen[line] == 0 {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d entries are missing", missing, n)
	}
}

func (d *runningDaemon) outputSize() int64 {
	info, err := os.Stat(d.path("out.log"))
	if err != nil {
		return 0
	}
	return info.Size()
}
