//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

type checkpoint struct {
	Files []savedFile
	Gone  []string
}

type savedFile struct {
	Path    string
	Reading []struct {
		Ino uint64
		Off int64
	}
}

// readCheckpoint reads a state file. For each path, only the last record is valid.
func readCheckpoint(t *testing.T, name string) (c checkpoint) {
	t.Helper()
	data, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return c
	} else if err != nil {
		t.Fatal(err)
	}
	last := make(map[string]savedFile)
	for len(data) > 0 {
		_, rest, _ := bytes.Cut(data, []byte{'\n'})
		body, rest, whole := bytes.Cut(rest, []byte{'\n'})
		if !whole { // killed during the write of a record
			break
		}
		var r checkpoint
		if err := json.Unmarshal(body, &r); err != nil {
			t.Fatalf("%v in %q", err, body)
		}
		for _, f := range r.Files {
			last[f.Path] = f
		}
		for _, path := range r.Gone {
			delete(last, path)
		}
		data = rest
	}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		c.Files = append(c.Files, last[path])
	}
	return c
}

// saved reports whether the checkpoint covers all of a file.
func saved(t *testing.T, state, name string) bool {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range readCheckpoint(t, state).Files {
		if n := len(f.Reading); f.Path == name && n > 0 && f.Reading[n-1].Off == info.Size() {
			return true
		}
	}
	return false
}

const numberedSize = 40 // bytes of a numbered line

// A numbered writes numbered lines to a log file, and rotates the file.
type numbered struct {
	mu    sync.Mutex
	path  string
	f     *os.File
	n     int
	first map[uint64]int // first line of each file, by inode
	end   map[uint64]int // last line of each rotated file, by inode
}

func (w *numbered) inode() uint64 {
	info, err := w.f.Stat()
	if err != nil {
		panic(err)
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func (w *numbered) create() {
	var err error
	if w.f, err = os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666); err != nil {
		panic(err)
	}
	w.first[w.inode()] = w.n
}

// write writes lines and rotates until stop is closed.
func (w *numbered) write(stop chan struct{}) {
	random := rand.New(rand.NewPCG(1, 8))
	for i := 1; ; i++ {
		select {
		case <-stop:
			w.f.Close()
			return
		case <-time.After(time.Duration(random.IntN(10)) * time.Millisecond):
		}
		w.mu.Lock()
		for range random.IntN(200) {
			fmt.Fprintf(w.f, "line %0*d\n", numberedSize-6, w.n)
			w.n++
		}
		if i%30 == 0 {
			w.end[w.inode()] = w.n
			w.f.Close()
			if err := os.Rename(w.path, fmt.Sprintf("%s.%d", w.path, i)); err != nil {
				panic(err)
			}
			w.create()
		}
		w.mu.Unlock()
	}
}

// from returns the number of the first line that a run with the checkpoint c reads.
func (w *numbered) from(t *testing.T, c checkpoint) int {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	at := 0
	for _, f := range c.Files {
		for _, r := range f.Reading {
			at = w.first[r.Ino] + int(r.Off/numberedSize)
			if end, rotated := w.end[r.Ino]; r.Off%numberedSize != 0 || !rotated || at < end {
				return at
			}
		}
	}
	return at
}

// A killed follower must lose no line. Only lines printed since the last checkpoint may be printed
// twice.
func TestKilledFollowersLoseNothing(t *testing.T) {
	kills := 20
	if long() {
		kills = 200
	}
	killedWhileFilesRotate(t, followingCommand, kills)
}

// A follower starts a process that follows log with the checkpoint at state, and appends to out.
type follower func(t *testing.T, log, state, out string, poll bool) *following

func followingCommand(t *testing.T, log, state, out string, poll bool) *following {
	args := []string{"-F", log, "--state=" + state}
	if poll {
		args = append(args, "--poll")
	}
	return startFollowing(t, out, nil, args...)
}

// killedWhileFilesRotate kills a follower at random moments, and checks that no line is lost.
func killedWhileFilesRotate(t *testing.T, follow follower, kills int) {
	dir := t.TempDir()
	w := &numbered{path: filepath.Join(dir, "app.log"), first: map[uint64]int{}, end: map[uint64]int{}}
	state, out := filepath.Join(dir, "app.files"), filepath.Join(dir, "printed")
	w.create()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	end := sync.OnceFunc(func() { close(stop); writing.Wait() })
	defer end()
	random := rand.New(rand.NewPCG(2, 9))
	next := 0 // number of the next line
	for kill := range kills + 1 {
		from := w.from(t, readCheckpoint(t, state))
		if from > next {
			t.Fatalf("kill %d: the checkpoint goes on at line %d, but line %d was not printed", kill, from, next)
		}
		begin := int64(0)
		if info, err := os.Stat(out); err == nil {
			begin = info.Size()
		}
		p := follow(t, w.path, state, out, kill%3 == 2)
		if kill == 0 { // the next run does not know files rotated before the first checkpoint
			until(t, "the first checkpoint", func() bool { return saved(t, state, w.path) })
			writing.Go(func() { w.write(stop) })
		}
		if kill < kills {
			time.Sleep(time.Duration(random.IntN(1200)) * time.Millisecond)
		} else {
			end()
			last := fmt.Sprintf("line %0*d\n", numberedSize-6, w.n-1)
			until(t, "the last line", func() bool { return strings.HasSuffix(lastBytes(t, out), last) })
		}
		p.cmd.Process.Kill()
		<-p.ended
		// a kill may truncate a checkpoint
		if p.stderr.Len() > 0 && !tornState.Match(p.stderr.Bytes()) {
			t.Fatalf("kill %d: %s", kill, p.stderr.Bytes())
		}
		if again := next - from; again > 0 {
			t.Logf("kill %d: %d lines were printed behind the checkpoint", kill, again)
		}
		next = checkRun(t, out, begin, from, next)
	}
	if next != w.n {
		t.Errorf("%d lines of %d came out", next, w.n)
	}
}

func lastBytes(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, min(info.Size(), 2*numberedSize))
	f.ReadAt(b, info.Size()-int64(len(b)))
	return string(b)
}

// checkRun checks that the output after the offset begin has consecutive lines, the first with the
// number from. It returns the number that follows the last line, or next if that is greater.
func checkRun(t *testing.T, out string, begin int64, from, next int) int {
	t.Helper()
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Seek(begin, io.SeekStart)
	lines := bufio.NewScanner(f)
	first := true
	at := from
	for lines.Scan() {
		line := lines.Text()
		want := fmt.Sprintf("line %0*d", numberedSize-6, at)
		if first && line == "" { // ends the unfinished line of a killed run
			first = false
			continue
		}
		first = false
		if line != want {
			if strings.HasPrefix(want, line) && !lines.Scan() { // killed within the line
				break
			}
			t.Fatalf("got %q, want %q", line, want)
		}
		at++
	}
	return max(at, next)
}

func TestFramesAfterARestartAreResolved(t *testing.T) {
	log, golden := fixture(t)
	lines := strings.SplitAfter(log, "\n")
	frame := 0
	for !strings.Contains(lines[frame], "{{{bt:") {
		frame++
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			dir := t.TempDir()
			name, state, out := filepath.Join(dir, "app.log"), filepath.Join(dir, "state"), filepath.Join(dir, "printed")
			args := []string{"-F", name, "--state=" + state, "--no-default-debug-directories", "--debug-file-directory=../testdata/debug"}
			appendTo(t, name, strings.Join(lines[:frame], ""))
			p := startFollowing(t, out, nil, args...)
			until(t, "a checkpoint", func() bool { return saved(t, state, name) })
			p.cmd.Process.Signal(sig)
			<-p.ended
			if want := 128 + int(sig); sig != syscall.SIGKILL && p.cmd.ProcessState.ExitCode() != want {
				t.Errorf("exit code %d, want %d", p.cmd.ProcessState.ExitCode(), want)
			}
			appendTo(t, name, strings.Join(lines[frame:], ""))
			p = startFollowing(t, out, nil, args...)
			p.wait(t, func(printed string) bool { return strings.HasSuffix(printed, "restarting in 5 s\n") })
			p.stop(t)
			if got := p.printed(t); got != golden {
				t.Errorf("got\n%s\nwant\n%s", got, golden)
			}
		})
	}
}

// A follower that is stopped must print a profile, and later followers must not print it again. If
// a follower is killed first, the next follower must print the profile.
func TestProfilesAreFollowedWithACheckpoint(t *testing.T) {
	const profile = "version: 1\ncreator: test\npositions: line\nevents: Ir\nfl=a.c\nfn=first\n1 10\nsummary: 10\n"
	for name, kills := range map[string]int{"stopped": 0, "killed first": 1} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log, state, out := filepath.Join(dir, "callgrind.out"), filepath.Join(dir, "state"), filepath.Join(dir, "printed")
			appendTo(t, log, profile)
			for run := range kills + 3 {
				if run == kills {
					appendTo(t, log, "\n") // makes this run write a checkpoint
				}
				p := startFollowing(t, out, nil, "-F", log, "--state="+state)
				until(t, "its checkpoint", func() bool { return saved(t, state, log) })
				if run < kills {
					p.cmd.Process.Kill()
				} else {
					p.cmd.Process.Signal(syscall.SIGTERM)
				}
				<-p.ended
				if p.stderr.Len() > 0 {
					t.Errorf("run %d: %s", run, p.stderr.Bytes())
				}
			}
			if got := readFile(t, out); strings.Count(got, "  first  a.c") != 1 {
				t.Errorf("printed %q, want the profile once", got)
			}
		})
	}
}
