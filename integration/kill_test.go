//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func numberedLine(n int) string { return fmt.Sprintf("line %0*d\n", numberedSize-6, n) }

func numberedLines(from, to int) string {
	var b strings.Builder
	for n := from; n < to; n++ {
		b.WriteString(numberedLine(n))
	}
	return b.String()
}

// A follower that is killed as soon as its checkpoint covers its output must lose nothing. It must
// print nothing twice, even after a very short run.
func TestKilledBehindTheirCheckpointFollowersDoubleNothing(t *testing.T) {
	killedBehindTheirCheckpoint(t, followingCommand, 10)
}

func killedBehindTheirCheckpoint(t *testing.T, follow follower, runs int) {
	const lines = 10000
	dir := t.TempDir()
	log, state, out := filepath.Join(dir, "app.log"), filepath.Join(dir, "app.files"), filepath.Join(dir, "printed")
	for run := range runs {
		appendTo(t, log, numberedLines(run*lines, (run+1)*lines))
		p := follow(t, log, state, out, false)
		until(t, "its checkpoint", func() bool { return saved(t, state, log) })
		p.cmd.Process.Kill()
		<-p.ended
		if p.stderr.Len() > 0 {
			t.Errorf("run %d: %s", run, p.stderr.Bytes())
		}
	}
	if got := readFile(t, out); got != numberedLines(0, runs*lines) {
		t.Errorf("%d bytes came out, want %d: each line once", len(got), runs*lines*numberedSize)
	}
}

// A follower that is killed repeatedly while lines arrive fast must make progress, and may print
// only a few lines twice. Their number depends on the delay between output and checkpoint, which is
// longer on a busy machine.
func TestShortRunsMakeProgress(t *testing.T) {
	for name, test := range map[string]struct {
		kills, longKills int
		from, to         time.Duration // after the first output
		most             int           // percent of the lines that may be printed twice
	}{
		"short":  {6, 100, 150 * time.Millisecond, 450 * time.Millisecond, 50},
		"longer": {2, 40, 200 * time.Millisecond, time.Second, 25},
	} {
		t.Run(name, func(t *testing.T) {
			kills, most := test.kills, 100
			if long() {
				kills, most = test.longKills, test.most
			}
			killedOften(t, followingCommand, kills, most, test.from, test.to)
		})
	}
}

// killedOften kills a follower repeatedly, each time at a random moment between the times after and
// before, counted from the first output. Of two successive runs, one must make progress. No line
// may be lost, and at most the given percentage of lines (most) may be printed twice.
func killedOften(t *testing.T, follow follower, kills, most int, after, before time.Duration) {
	dir := t.TempDir()
	log, state, out := filepath.Join(dir, "app.log"), filepath.Join(dir, "app.files"), filepath.Join(dir, "printed")
	appendTo(t, log, "")
	appendTo(t, out, "")
	var n int // number of lines written; read after the writer has ended
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for begin := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C: // 100,000 lines a second
				to := int(time.Since(begin) / (10 * time.Microsecond))
				appendTo(t, log, numberedLines(n, to))
				n = to
			}
		}
	})
	end := sync.OnceFunc(func() { close(stop); writer.Wait() })
	defer end()
	random := rand.New(rand.NewPCG(7, 1))
	next, printed, vain := 0, 0, 0
	for kill := range kills + 1 {
		from := 0
		if c := readCheckpoint(t, state); len(c.Files) == 1 {
			from = int(c.Files[0].Reading[0].Off / numberedSize)
		}
		if from > next {
			t.Fatalf("kill %d: the checkpoint goes on at line %d, but line %d was not printed", kill, from, next)
		}
		begin := mustSize(t, out)
		p := follow(t, log, state, out, false)
		if kill < kills {
			until(t, "the first output", func() bool { return mustSize(t, out) > begin })
			time.Sleep(after + time.Duration(random.Int64N(int64(before-after))))
		} else {
			end()
			until(t, "the last line", func() bool { return strings.HasSuffix(lastBytes(t, out), numberedLine(n-1)) })
		}
		p.cmd.Process.Kill()
		<-p.ended
		last := next
		next = checkRun(t, out, begin, from, next)
		printed += int(mustSize(t, out)-begin) / numberedSize
		// on a busy machine a run may be killed before it has printed anything new
		if vain++; next > last || kill == kills {
			vain = 0
		}
		if vain > 1 {
			t.Errorf("kill %d: no progress in %d runs: line %d came before", kill, vain, next)
		}
	}
	if next != n {
		t.Errorf("%d lines of %d came out", next, n)
	}
	if twice := 100 * (printed - n) / n; twice > most {
		t.Errorf("%d %% of %d lines came twice over %d kills, want at most %d", twice, n, kills, most)
	} else {
		t.Logf("%d %% of %d lines came twice over %d kills", twice, n, kills)
	}
}

func mustSize(t *testing.T, name string) int64 {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func firstLine(t *testing.T, lines []byte) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(string(lines[:numberedSize]), "line %d", &n); err != nil {
		t.Fatalf("the output begins with %q", lines[:numberedSize])
	}
	return n
}

// checkpointed returns the last offset in a checkpoint of one file; -1 if there is none yet.
func checkpointed(t *testing.T, state string) (off int) {
	t.Helper()
	all, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	const key = `"off":`
	i := bytes.LastIndex(all, []byte(key))
	if i < 0 {
		return -1
	}
	if _, err := fmt.Sscanf(string(all[i+len(key):]), "%d", &off); err != nil {
		return -1 // the checkpoint is being written
	}
	return off
}

// tornState is the message about a checkpoint whose last record was not written whole.
var tornState = regexp.MustCompile(`^symfilter: the checkpoint \S+ is cut off at byte \d+: the entries before this byte are used; lines may be printed again\n$`)

// If the reader of the output dies, the next run must print all output that the reader had not
// read.
func TestKilledReadersLoseNothing(t *testing.T) {
	pipe := func() (r, w *os.File, err error) { return os.Pipe() }
	socket := func() (r, w *os.File, err error) {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, nil, err
		}
		return os.NewFile(uintptr(fds[0]), "reader"), os.NewFile(uintptr(fds[1]), "writer"), nil
	}
	for name, test := range map[string]struct {
		open func() (r, w *os.File, err error)
		both bool // the reader and the follower are killed
	}{"pipe": {pipe, false}, "pipe, both killed": {pipe, true}, "socket": {socket, false}} {
		t.Run(name, func(t *testing.T) {
			// 16 MB in lines of 40 bytes; a reader that is killed has read 1.5 MiB
			const kills, lines, each = 4, 400_000, 3 << 19
			dir := t.TempDir()
			log, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
			appendTo(t, log, numberedLines(0, lines))
			next, begun := 0, -1
			for kill := range kills + 1 {
				r, w, err := test.open()
				if err != nil {
					t.Fatal(err)
				}
				cmd := exec.Command(command, "-F", log, "--state="+state)
				var stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = w, &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { cmd.Process.Kill() })
				w.Close()
				want := lines * numberedSize
				if kill < kills {
					want = each
				}
				var got []byte
				buf := make([]byte, 4096)
				// A follower writes a checkpoint only if this is cheap enough. On a busy machine,
				// the first checkpoint may come only after the pipe was filled and then read. So
				// the reader continues, slowly, until this run has a checkpoint.
				saved := func() bool {
					return name != "pipe" || kill == kills || checkpointed(t, state) > firstLine(t, got)*numberedSize
				}
				for len(got) < want || !saved() {
					if len(got) >= want {
						time.Sleep(10 * time.Millisecond)
					}
					n, err := r.Read(buf)
					if err != nil {
						t.Fatalf("run %d: %v behind %d bytes; %s", kill, err, len(got), stderr.Bytes())
					}
					if got = append(got, buf[:n]...); kill == kills && bytes.HasSuffix(got, []byte(numberedLine(lines-1))) {
						break
					}
				}
				if test.both && kill < kills {
					cmd.Process.Kill()
				}
				r.Close() // as the system does for a killed reader
				cmd.Wait()
				// A run that is killed while it writes a record leaves a partial record, which the
				// next run reports.
				if stderr.Len() > 0 && !tornState.Match(stderr.Bytes()) {
					t.Errorf("run %d: %s", kill, stderr.Bytes())
				}
				from := firstLine(t, got)
				to := from + len(got)/numberedSize
				if whole := got[:(to-from)*numberedSize]; string(whole) != numberedLines(from, to) {
					t.Fatalf("run %d: not the lines from %d to %d", kill, from, to)
				}
				if from > next {
					t.Fatalf("run %d begins at line %d, but line %d was never read", kill, from, next)
				}
				// If the reader of a socket is gone, the last checkpoint has the last known number
				// of bytes that were read.
				if from <= begun && name == "pipe" {
					t.Errorf("run %d begins at line %d, as the one before: no progress", kill, from)
				}
				t.Logf("run %d: lines %d to %d; %d twice", kill, from, to, next-from)
				next, begun = max(next, to), from
			}
			if next != lines {
				t.Errorf("%d lines of %d were read", next, lines)
			}
		})
	}
}

// A full disk must not end the process. Waiting lines must be printed when there is space, or by
// the next run.
func TestAFullDiskEndsNothing(t *testing.T) {
	const lines = 5000
	want := numberedLines(0, lines)
	t.Run("signal", func(t *testing.T) {
		dir := t.TempDir()
		log, state, out := filepath.Join(dir, "app.log"), filepath.Join(dir, "state"), filepath.Join(dir, "printed")
		appendTo(t, log, want)
		full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer full.Close()
		cmd, stderr := exec.Command(command, "-F", log, "--state="+state), new(messages)
		cmd.Stdout, cmd.Stderr = full, stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Process.Kill()
		until(t, "it is messages", func() bool {
			return stderr.String() == "symfilter: write standard output: no space left on device; retrying until there is space\n"
		})
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGTERM) {
			t.Errorf("exit code %d", code)
		}
		p := startFollowing(t, out, nil, "-F", log, "--state="+state)
		until(t, "the last line", func() bool { return mustSize(t, out) >= int64(len(want)) })
		p.stop(t)
		if got := readFile(t, out); got != want {
			t.Errorf("got %d bytes, want %d: each line once", len(got), len(want))
		}
	})
	t.Run("space", func(t *testing.T) {
		need(t, "unshare", "mount")
		dir := t.TempDir()
		log, state, disk := filepath.Join(dir, "app.log"), filepath.Join(dir, "state"), filepath.Join(dir, "disk")
		if err := os.Mkdir(disk, 0o777); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", disk).CombinedOutput(); err != nil {
			t.Skipf("no mounts here: %s", out)
		}
		appendTo(t, log, want)
		script := `mount -t tmpfs -o size=1m tmpfs "$1" && head -c 950000 /dev/zero >"$1/ballast" && exec "$2" -F "$3" --state="$4" >"$1/printed"`
		cmd := exec.Command("unshare", "-rm", "sh", "-c", script, "sh", disk, command, log, state)
		stderr := new(messages)
		cmd.Stderr = stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { cmd.Process.Kill(); cmd.Wait() }()
		until(t, "it is messages", func() bool { return strings.Contains(stderr.String(), "retrying until there is space") })
		inside := fmt.Sprintf("/proc/%d/root%s/", cmd.Process.Pid, disk)
		if err := os.Remove(inside + "ballast"); err != nil {
			t.Fatal(err)
		}
		until(t, "the last line", func() bool { return mustSize(t, inside+"printed") >= int64(len(want)) })
		if got := readFile(t, inside+"printed"); got != want {
			t.Errorf("got %d bytes, want %d: each line once", len(got), len(want))
		}
		until(t, "its checkpoint", func() bool { return saved(t, state, log) })
	})
}

// messages collects the diagnostics of a process.
type messages struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *messages) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *messages) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}
