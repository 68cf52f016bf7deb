//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// The ways of rotating the files of a storm.
const (
	renamed   = iota // x.log becomes x.log.N
	packed           // like renamed, then x.log.N becomes x.log.N.gz
	truncated        // x.log is copied to x.log.N and truncated
	rotations
)

// A stormed is a log that is written and rotated. Its lines are numbered from 1.
type stormed struct {
	number, rotation int
	path             string
	modules          string   // elements with the modules and maps of the chain
	frames           []string // backtrace elements of the chain

	written atomic.Int64
	seen    atomic.Int64 // all lines up to this number were printed
	removed atomic.Int64 // lines up to this number are in no file any more
	exact   int64        // first line of the next run; 0 if that run may print lines again
	files   int          // number of rotations so far
	ends    []rotatedEnd // last lines of the rotated files that are kept
}

type rotatedEnd struct {
	path string
	last int64 // line
}

// stormLine returns line n without its line end, in two parts. If markup is set, symfilter may
// change the second part.
func (s *stormed) stormLine(n int64) (head, rest string, markup bool) {
	head = fmt.Sprintf("f%02d %08d ", s.number, n)
	switch {
	case n%200 == 1:
		return head, s.modules, true
	case n%5 == 0:
		return head, s.frames[int(n/5)%len(s.frames)], true
	}
	return head, strings.Repeat("an ordinary line {of} a log, ", int(n%4)), false
}

func (s *stormed) write(lines int) error {
	var b strings.Builder
	n := s.written.Load()
	for range lines {
		n++
		head, rest, _ := s.stormLine(n)
		b.WriteString(head + rest + "\n")
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	s.written.Store(n) // stored before the first of the lines can be read
	_, err = f.WriteString(b.String())
	return err
}

// rotate rotates the file. It removes, packs or truncates a file only after all its lines were
// printed.
func (s *stormed) rotate() error {
	old := rotatedEnd{fmt.Sprintf("%s.%d", s.path, s.files+1), s.written.Load()}
	if s.rotation == truncated {
		if s.seen.Load() < old.last {
			return nil
		}
		data, err := os.ReadFile(s.path)
		if err == nil {
			err = os.WriteFile(old.path, data, 0o644)
		}
		if err == nil {
			err = os.Truncate(s.path, 0)
		}
		if err != nil {
			return err
		}
	} else if err := os.Rename(s.path, old.path); err != nil {
		return err
	}
	s.files++
	s.ends = append(s.ends, old)
	for len(s.ends) > 3 && s.ends[0].last <= s.seen.Load() {
		if s.rotation == packed {
			if err := pack(s.ends[0].path); err != nil {
				return err
			}
		} else {
			s.removed.Store(s.ends[0].last)
		}
		if err := os.Remove(s.ends[0].path); err != nil {
			return err
		}
		s.ends = s.ends[1:]
	}
	return nil
}

// pack writes a compressed copy of the file at path to path.gz.
func pack(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(data)
	w.Close()
	return os.WriteFile(path+".gz", b.Bytes(), 0o644)
}

// writeStorm writes and rotates the files until stop is closed.
func writeStorm(files []*stormed, stop <-chan struct{}) error {
	random := rand.New(rand.NewPCG(3, 4))
	for {
		for _, s := range files {
			select {
			case <-stop:
				return nil
			case <-time.After(time.Duration(random.IntN(2000)) * time.Microsecond):
			}
			err := s.write(1 + random.IntN(20))
			if err == nil && random.IntN(20) == 0 {
				err = s.rotate()
			}
			if err != nil {
				return err
			}
		}
	}
}

// A stormRun is one run of symfilter. Its output is a file that is read while it grows.
type stormRun struct {
	cmd    *exec.Cmd
	stderr messages
	ended  chan struct{}      // closed after the process has ended
	last   map[*stormed]int64 // last line of each file with a line in the output
	read   chan error         // the result of examine
}

func startStorm(t *testing.T, files map[string]*stormed, out string, env []string, name string, args ...string) *stormRun {
	t.Helper()
	w, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	p := &stormRun{cmd: exec.Command(name, args...), ended: make(chan struct{}), last: make(map[*stormed]int64), read: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = w, &p.stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.cmd.Process.Kill() })
	go func() { p.cmd.Wait(); close(p.ended) }()
	go func() { defer r.Close(); p.read <- p.examine(&growing{r, p.ended}, files) }()
	return p
}

// A growing is a reader of a file to which a process still writes. It waits at the end of the file,
// and returns io.EOF only after the process has ended.
type growing struct {
	f     *os.File
	ended <-chan struct{}
}

func (g *growing) Read(b []byte) (int, error) {
	for {
		ended := false
		select {
		case <-g.ended:
			ended = true
		default:
		}
		if n, err := g.f.Read(b); n > 0 || err != io.EOF || ended {
			return n, err
		}
		time.Sleep(time.Millisecond)
	}
}

// examine reads the output, and returns an error if a line is missing, out of order or changed. The
// lines of a file must start with the line at which the run must start, or with an earlier line. A
// line may be missing only if an earlier run has printed it and its file was removed: that run may
// have been killed before a checkpoint recorded the line.
func (p *stormRun) examine(out io.Reader, files map[string]*stormed) error {
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil // the last line may be incomplete
		}
		path, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		s := files[path]
		if s == nil {
			return fmt.Errorf("a line of no file: %.300q", line)
		}
		var number int
		var n int64
		if _, err := fmt.Sscanf(text, "f%d %d ", &number, &n); err != nil || number != s.number {
			return fmt.Errorf("not a line of %s: %.300q", path, line)
		}
		seen := s.seen.Load()
		before, begun := p.last[s]
		p.last[s] = n
		head, rest, markup := s.stormLine(n)
		switch {
		case begun && n == before && markup: // another inlined call
		case begun && n <= before:
			return fmt.Errorf("%s: line %d came after line %d", path, n, before)
		case n > seen+1:
			return fmt.Errorf("%s: line %d was printed, but line %d never was", path, n, seen+1)
		case !begun && s.exact > 0 && n != s.exact && (n < s.exact || n > s.removed.Load()+1):
			return fmt.Errorf("%s: line %d was printed first, although the last run had ended with line %d", path, n, s.exact-1)
		}
		if !strings.HasPrefix(text, head) || !markup && text != head+rest {
			return fmt.Errorf("%s: line %d was changed: %.300q", path, n, text)
		}
		s.seen.Store(max(seen, n))
	}
}

// end sends a signal, waits for the run to end, and checks its result.
func (p *stormRun) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	begin, code := time.Now(), 128+int(sig)
	if sig == syscall.SIGKILL {
		code = -1
	}
	p.cmd.Process.Signal(sig)
	select {
	case <-p.ended:
	case <-time.After(2 * time.Minute):
		p.cmd.Process.Signal(syscall.SIGQUIT) // so that the runtime prints all goroutines
		<-p.ended
		t.Fatalf("it does not end:\n%s", p.stderr.String())
	}
	prompt := time.Since(begin) < promptly
	said := p.stderr.String()
	if err := <-p.read; err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code || strings.Contains(said, "DATA RACE") || strings.Contains(said, "goroutine ") {
		t.Errorf("it ended with %v, want exit code %d\n%s", p.cmd.ProcessState, code, said)
	}
	if t.Failed() {
		t.FailNow()
	}
	for s, n := range p.last {
		if s.exact = n + 1; code < 0 || !prompt {
			s.exact = 0
		}
	}
}

// promptly bounds the end of a run whose checkpoint must cover all output. On a busy machine, a run
// may end later, and its checkpoint may then lack some output.
const promptly = 500 * time.Millisecond

// Files are written and rotated in each way. Their debug files come from four servers: one works,
// one never answers, one fails and one does not exist. Meanwhile symfilter, which runs with the
// race detector, is stopped, ended and killed.
//
// No race may be found, no line may be lost, and each run must end after its signal. A line may be
// printed twice only if a run was killed, or could not end at once on a busy machine.
func TestRotationServersAndSignalsTogetherLoseNothing(t *testing.T) {
	need(t, "debuginfod", "gcc")
	c := newChain(t)
	dir := t.TempDir()
	race := filepath.Join(dir, "symfilter-race")
	build := exec.Command("go", "build", "-race", "-buildvcs=false", "-o", race, "../cmd/symfilter")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	urls := stormServers(t, runDebuginfod(t, c.files).url)

	files := make(map[string]*stormed)
	var all []*stormed
	for i := range 2 * rotations {
		s := &stormed{number: i, rotation: i % rotations, path: filepath.Join(dir, fmt.Sprintf("%02d.log", i))}
		s.modules, s.frames = stormMarkup(t, c.log)
		if err := s.write(2); err != nil { // the first element waits for more maps
			t.Fatal(err)
		}
		files[s.path] = s
		all = append(all, s)
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	failed := make(chan error, 1)
	write := sync.OnceFunc(func() { writer.Go(func() { failed <- writeStorm(all, stop) }) })
	end := sync.OnceFunc(func() { close(stop); writer.Wait() })
	defer end()

	random := rand.New(rand.NewPCG(5, 6))
	pause := func(most int) { time.Sleep(time.Duration(random.IntN(most)) * time.Millisecond) }
	runs, finish := 4, time.Now()
	if long() {
		runs, finish = 100, finish.Add(10*time.Minute)
	}
	n := 0
	begin := func() *stormRun {
		out := filepath.Join(dir, "printed")
		args := []string{"-F", "-H", "--state=" + filepath.Join(dir, "state"), "--wait=500ms", "--no-default-debug-directories"}
		if n%3 == 2 {
			args = append(args, "--poll")
		}
		for _, s := range all {
			args = append(args, s.path)
		}
		// every second run has empty caches: it downloads all files and makes all indexes
		cache := filepath.Join(dir, fmt.Sprintf("cache%d", n/2))
		env := []string{"DEBUGINFOD_URLS=" + urls, "DEBUGINFOD_CACHE_PATH=" + filepath.Join(cache, "fetched"), "XDG_CACHE_HOME=" + cache, "GORACE=halt_on_error=1 exitcode=66"}
		n++
		return startStorm(t, files, out, env, race, args...)
	}
	for ; n < runs || time.Now().Before(finish); os.RemoveAll(filepath.Join(dir, fmt.Sprintf("cache%d", n/2-1))) {
		p := begin()
		sum := func() (n int64) {
			for _, s := range all {
				n += s.seen.Load()
			}
			return n
		}
		was := sum()
		until(t, "the first output", func() bool { return sum() >= was+int64(len(all)) || len(p.read) > 0 })
		write() // files rotated before the first run are not read
		for range random.IntN(3) {
			pause(600)
			p.cmd.Process.Signal(syscall.SIGSTOP)
			pause(600)
			p.cmd.Process.Signal(syscall.SIGCONT)
		}
		pause(1500)
		if n%2 == 0 {
			p.end(t, syscall.SIGKILL)
		} else {
			p.end(t, syscall.SIGTERM)
		}
	}
	end()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.written.Load()%200 == 1 { // an element at the end waits for more maps
			if err := s.write(1); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := begin()
	late := time.Now().Add(2 * time.Minute)
	for _, s := range all {
		for s.seen.Load() < s.written.Load() && time.Now().Before(late) && len(p.read) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if got, want := s.seen.Load(), s.written.Load(); got < want {
			p.cmd.Process.Signal(syscall.SIGQUIT)
			<-p.ended
			t.Errorf("%s: %d of %d lines were printed\n%s", s.path, got, want, p.stderr.String())
		}
	}
	// frames whose debug files the working server has must get names, whatever the other servers do
	var text []byte
	named := func() bool {
		s := all[0]
		if err := s.write(20); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		var err error
		text, err = os.ReadFile(filepath.Join(dir, "printed"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(text, []byte(" link7 ")) && bytes.Contains(text, []byte("link7.c:4:"))
	}
	until(t, "named frames", named)
	p.end(t, syscall.SIGTERM)
	var written int64
	rotated := 0
	for _, s := range all {
		written += s.written.Load()
		rotated += s.files
	}
	t.Logf("%d lines, %d rotations, %d runs", written, rotated, n)
}

// stormServers returns the URLs of the working server and of three others: one never answers, one
// fails and one does not exist.
func stormServers(t *testing.T, working string) string {
	t.Helper()
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hanging.Close() })
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	t.Cleanup(failing.Close)
	gone := httptest.NewServer(nil)
	gone.Close()
	return strings.Join([]string{"http://" + hanging.Addr().String(), failing.URL, working, gone.URL}, " ")
}

// stormMarkup returns the modules of a log with their maps, and the frames of the log. It adds a
// module that no server has, with one frame.
func stormMarkup(t *testing.T, log string) (modules string, frames []string) {
	t.Helper()
	const nobody = "{{{module:99:nobody.so:elf:00112233445566778899aabbccddeeff00112233}}}{{{mmap:0x10000:0x1000:load:99:rx:0x0}}}"
	var b strings.Builder
	b.WriteString("{{{reset}}}" + nobody)
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "{{{module:"), strings.HasPrefix(line, "{{{mmap:"):
			b.WriteString(line)
		case strings.HasPrefix(line, "{{{bt:"):
			frames = append(frames, line)
		}
	}
	if len(frames) < libraries {
		t.Fatal(errors.New("the log of the chain has no frames:\n" + log))
	}
	return b.String(), append(frames, "{{{bt:30:0x10010:ra}}}")
}
