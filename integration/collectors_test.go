//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// collectorPart returns the path of a file unpacked by scripts/fetch-collectors. It skips the test
// if the file is missing.
func collectorPart(t *testing.T, name string) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		testenv.Missing(t, err.Error())
	}
	file := filepath.Join(home, ".cache", "symfilter-collectors", name)
	need(t, file)
	return file
}

// collectorLibraries returns the environment in which the unpacked programs find their libraries.
func collectorLibraries(t *testing.T) []string {
	root := filepath.Dir(filepath.Dir(filepath.Dir(collectorPart(t, "usr/sbin/rsyslogd"))))
	var folders []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "usr/lib/syslog-ng", "lib/*-linux-gnu"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		folders = append(folders, found...)
	}
	return append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(folders, ":"), noSystemDebug)
}

// A collector is a log collector with the configuration of an example, in a folder of the test.
type collector struct {
	*exec.Cmd
	t        *testing.T
	dir      string
	address  string   // address of the listener of the collector
	messages messages // messages on the standard error of the collector
	sent     net.Conn
}

// debugFlags let symfilter find the fixture's debug files.
func debugFlags() string {
	return "--no-default-debug-directories --debug-file-directory=" + checkout + "/testdata/debug"
}

// exampleIn copies an example to the collector's folder, with adapted paths, and returns the path
// of the copy.
func (c *collector) exampleIn(name string) string {
	c.t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "examples", name))
	if err != nil {
		c.t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	text := strings.NewReplacer(
		"/usr/bin/symfilter", command+" "+debugFlags(),
		"/etc/rsyslog.d/", c.dir+"/", "/etc/syslog-ng/", c.dir+"/", "/var/lib/symfilter/", c.dir+"/", "/var/log/", c.dir+"/",
		"5140", port,
	).Replace(string(b))
	path := filepath.Join(c.dir, filepath.Base(name))
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		c.t.Fatal(err)
	}
	return path
}

// newCollector returns a collector with a free address. It is not started yet.
func newCollector(t *testing.T) *collector {
	return &collector{t: t, dir: t.TempDir(), address: testenv.FreeAddress(t)}
}

// start starts the program, and connects to it once it listens.
func (c *collector) start(name string, args ...string) {
	c.t.Helper()
	c.Cmd = exec.Command(name, args...)
	c.Dir, c.Env, c.Stdout, c.Stderr = c.dir, collectorLibraries(c.t), &c.messages, &c.messages
	if err := c.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if c.sent != nil {
			c.sent.Close()
		}
		child := descendant(c.Process.Pid, "symfilter")
		c.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(10*time.Second, func() { c.Process.Kill() })
		c.Wait()
		kill.Stop()
		// after the collector has closed the pipe, symfilter first saves its context to the folder,
		// and then ends
		if child != 0 && !testenv.Wait(func() bool { return syscall.Kill(child, 0) != nil }) {
			c.t.Error("symfilter goes on after the end of the collector")
		}
		if c.t.Failed() {
			c.t.Logf("%s printed:\n%s", filepath.Base(name), c.messages.String())
		}
	})
	c.until("a connection", func() (ok bool) {
		var err error
		c.sent, err = net.Dial("tcp", c.address)
		return err == nil
	})
}

func (c *collector) until(what string, done func() bool) {
	c.t.Helper()
	if !testenv.Wait(done) {
		c.t.Fatalf("%s: not within a minute\n%s", what, c.messages.String())
	}
}

func (c *collector) send(messages string) {
	c.t.Helper()
	if _, err := c.sent.Write([]byte(messages)); err != nil {
		c.t.Fatal(err)
	}
}

// printed waits until the example's output file ends with end, and returns its contents.
func (c *collector) printed(end string) (all string) {
	c.t.Helper()
	c.until("symbolized.log ends with "+end, func() bool {
		b, _ := os.ReadFile(filepath.Join(c.dir, "symbolized.log"))
		all = string(b)
		return strings.HasSuffix(all, end)
	})
	return all
}

// symfilter returns the PID of the symfilter started by the collector or its shell.
func (c *collector) symfilter() (pid int) {
	c.t.Helper()
	c.until("a symfilter", func() bool {
		pid = descendant(c.Process.Pid, "symfilter")
		return pid != 0
	})
	return pid
}

// descendant returns the PID of a process with this name that pid has started, directly or
// indirectly. It returns 0 if no such process exists.
func descendant(pid int, name string) int {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, children := range threads {
		b, _ := os.ReadFile(children)
		for _, word := range strings.Fields(string(b)) {
			child, _ := strconv.Atoi(word)
			if comm, _ := os.ReadFile("/proc/" + word + "/comm"); string(comm) == name+"\n" {
				return child
			}
			if found := descendant(child, name); found != 0 {
				return found
			}
		}
	}
	return 0
}

// wantSame fails the test if reload ends the collector's symfilter.
func (c *collector) wantSame(reload func()) {
	c.t.Helper()
	before := c.symfilter()
	reload()
	if after := c.symfilter(); after != before {
		c.t.Errorf("after a reload, symfilter is process %d, and was %d", after, before)
	}
}

// logOfTwo returns n lines of the fixture, alternately from two processes. Each line begins with
// before, the name of its process, and between.
func logOfTwo(t *testing.T, n int, before, between string) string {
	log, _ := fixture(t)
	var b strings.Builder
	for lines := 0; lines < n; {
		for pid := range 2 {
			for line := range strings.Lines(log) {
				if lines++; lines > n {
					break
				}
				fmt.Fprintf(&b, "%s app[%d]:%s%s", before, pid, between, line)
			}
		}
	}
	return b.String()
}

const (
	sentBefore    = "<13>Nov 20 10:00:00 web"
	printedEnd    = " web app[7]: the end\n"
	endOfMessages = sentBefore + " app[7]: the end\n"
)

// timePrinted returns the time that the collector prints before each line. Unlike the messages'
// time, it has a year and a zone.
func timePrinted(t *testing.T, printed string) string {
	t.Helper()
	when, _, ok := strings.Cut(printed, " ")
	if !ok {
		t.Fatalf("no time in %.100q", printed)
	}
	return when
}

// wantLines fails the test unless the collector's output equals symfilter's for the same lines.
func (c *collector) wantLines(n int) {
	c.t.Helper()
	c.send(logOfTwo(c.t, n, sentBefore, " ") + endOfMessages)
	got := c.printed(printedEnd)
	before := timePrinted(c.t, got) + " web"
	args := append(strings.Fields(debugFlags()), "--quiet", "--process-key=syslog")
	want := run(c.t, []byte(logOfTwo(c.t, n, before, " ")+before+" app[7]: the end\n"), command, args...)
	if got != want {
		c.t.Errorf("%d messages (-want +got)\n%.5000s", n, cmp.Diff(want, got))
	}
}

// wantRestart kills symfilter between the modules and the frames of a process. It fails the test
// unless the symfilter that the collector then starts resolves the frames.
func (c *collector) wantRestart() {
	c.t.Helper()
	log, _ := fixture(c.t)
	modules, frames, ok := strings.Cut(log, "00:06:44.998")
	if !ok {
		c.t.Fatal("the fixture has other times")
	}
	_, frames, _ = strings.Cut(frames, "\n")
	sealed := func(lines string) (all string) {
		for line := range strings.Lines(lines) {
			all += sentBefore + " app[3]: " + line
		}
		return all
	}
	c.send(sealed(modules))
	_, last, _ := strings.Cut(modules[strings.LastIndex(modules, ":elf:"):], ":elf:")
	last, _, _ = strings.Cut(last, "}}}")
	context, _ := filepath.Glob(filepath.Join(c.dir, "*.context"))
	c.until("the context is saved", func() bool { // the context has the last module
		b, _ := os.ReadFile(strings.Join(context, ""))
		return bytes.Contains(b, []byte(last)) && (bytes.Contains(b, []byte(`"key":"app[3]"`)) || bytes.Contains(b, []byte(`"key":"web app[3]:"`)))
	})
	old := c.symfilter()
	before := int(mustSize(c.t, filepath.Join(c.dir, "symbolized.log")))
	syscall.Kill(old, syscall.SIGKILL)
	// rsyslog starts the next symfilter when it has a line, perhaps only for the second line.
	// syslog-ng starts the next symfilter at once. But if syslog-ng has written to the killed
	// symfilter, it sends nothing for a minute.
	const pause = time.Second
	sent := time.Now()
	c.until("another symfilter", func() bool {
		if time.Since(sent) > pause {
			c.send(sentBefore + " app[4]: again\n")
			sent = time.Now()
		}
		pid := descendant(c.Process.Pid, "symfilter")
		return pid != 0 && pid != old
	})
	c.send(sealed(frames) + sentBefore + " app[4]: the last\n")
	got := c.printed(" web app[4]: the last\n")
	got = got[before:]
	if strings.Contains(got, "(no module)") || !strings.Contains(got, "ledger::Book::total(unsigned int) const /src/inventory/ledger.cc:27:16 (libledger.so+0x1917)") {
		c.t.Errorf("after a restart:\n%s", got)
	}
}

func rsyslog(t *testing.T, example string) *collector {
	c := newCollector(t)
	daemon := collectorPart(t, "usr/sbin/rsyslogd")
	c.exampleIn("rsyslog/symfilter-omprog")
	config := c.exampleIn(example)
	main := fmt.Sprintf("global(workDirectory=%q)\ninclude(file=%q)\n", c.dir, config)
	if err := os.WriteFile(filepath.Join(c.dir, "rsyslog.conf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(daemon, "-n", "-f", filepath.Join(c.dir, "rsyslog.conf"), "-i", filepath.Join(c.dir, "pid"), "-M", testenv.Find(t, filepath.Join(filepath.Dir(filepath.Dir(daemon)), "lib/*-linux-gnu/rsyslog")))
	return c
}

func TestRsyslog(t *testing.T) {
	c := rsyslog(t, "rsyslog/omprog.conf")
	c.wantLines(fuzztest.LongOr(180_000, 6_000))
	c.wantSame(func() { // rsyslogd passes the signal on, and symfilter saves its context
		context := filepath.Join(c.dir, "rsyslog.context")
		before, err := os.Stat(context)
		if err != nil {
			t.Fatal(err)
		}
		c.Process.Signal(syscall.SIGHUP)
		c.until("a saved context", func() bool {
			after, err := os.Stat(context)
			return err == nil && !os.SameFile(before, after)
		})
	})
	c.wantRestart()
}

func TestRsyslogGetsReplies(t *testing.T) {
	c := rsyslog(t, "rsyslog/mmexternal.conf")
	n := fuzztest.LongOr(60_000, 4_000)
	c.send(logOfTwo(t, n, sentBefore, " ") + endOfMessages)
	got := c.printed(printedEnd)
	when := timePrinted(t, got)

	var in bytes.Buffer
	var tags, texts []string
	for line := range strings.Lines(logOfTwo(t, n, "", " ") + " app[7]: the end\n") {
		tag, text, _ := strings.Cut(strings.TrimSuffix(line[1:], "\n"), ": ")
		record, _ := json.Marshal(map[string]string{"msg": " " + text, "hostname": "web", "syslogtag": tag + ":"})
		in.Write(append(record, '\n'))
		tags, texts = append(tags, tag), append(texts, " "+text)
	}
	args := append(strings.Fields(debugFlags()), "--quiet", "--input=json", "--json-key=hostname,syslogtag", "--reply")
	var want strings.Builder
	replies := strings.Split(strings.TrimSuffix(run(t, in.Bytes(), command, args...), "\n"), "\n")
	if len(replies) != n+1 {
		t.Fatalf("%d replies, want %d", len(replies), n+1)
	}
	for i, reply := range replies {
		var changed struct{ Msg *string }
		if err := json.Unmarshal([]byte(reply), &changed); err != nil {
			t.Fatalf("%s: %v", reply, err)
		}
		if changed.Msg != nil {
			texts[i] = *changed.Msg
		}
		fmt.Fprintf(&want, "%s web %s:%s\n", when, tags[i], texts[i])
	}
	if got != want.String() {
		t.Errorf("(-want +got)\n%.5000s", cmp.Diff(want.String(), got))
	}
	c.wantRestart()
}

func TestSyslogNG(t *testing.T) {
	c := newCollector(t)
	daemon := collectorPart(t, "usr/sbin/syslog-ng")
	modules, _ := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(daemon)), "lib/syslog-ng/*/libafprog.so"))
	if len(modules) != 1 {
		t.Fatalf("syslog-ng has the modules %q", modules)
	}
	version := filepath.Base(filepath.Dir(modules[0]))
	c.exampleIn("syslog-ng/symfilter-program")
	main := fmt.Sprintf("@version: %s\n@include %q\n", version, c.exampleIn("syslog-ng/symfilter.conf"))
	if err := os.WriteFile(filepath.Join(c.dir, "syslog-ng.conf"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	c.start(daemon, "-F", "--no-caps", "-f", filepath.Join(c.dir, "syslog-ng.conf"), "--module-path="+filepath.Dir(modules[0]),
		"-p", filepath.Join(c.dir, "pid"), "-R", filepath.Join(c.dir, "persist"), "-c", filepath.Join(c.dir, "control"))
	c.wantLines(fuzztest.LongOr(180_000, 6_000))
	c.wantSame(func() {
		reload := exec.Command(filepath.Join(filepath.Dir(daemon), "syslog-ng-ctl"), "reload", "-c", filepath.Join(c.dir, "control"))
		reload.Env = collectorLibraries(t)
		if out, err := reload.CombinedOutput(); err != nil {
			t.Fatalf("syslog-ng-ctl reload: %v\n%s", err, out)
		}
	})
	c.wantRestart()
}
