//go:build linux

package integration

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A soakPlan has the parameters of soakDaemon. The shorter a run, the more often everything
// happens.
type soakPlan struct {
	duration time.Duration
	files    int           // followed by the pipeline of plain files
	each     int           // connections of each kind: TCP, Unix, HTTP, and HTTP whose output is a file
	burst    time.Duration // interval between a connection's writes of two lines each
	live     time.Duration // lifetime of a connection
	reload   time.Duration
	rotate   time.Duration // interval between rotations of the outputs
	mode     time.Duration // interval between the modes of the server of debug files
}

// soakHang is the time without progress after which the daemon counts as hung. It is long because,
// on a machine with a load of 80, a connection took more than a minute.
const soakHang = 10 * time.Minute

// TestDaemonSoak runs 8 pipelines for the time in TEST_SOAK (make soak), for 10 minutes in make
// test-long, and otherwise for seconds.
func TestDaemonSoak(t *testing.T) {
	plan := soakPlan{files: 16, each: 50, burst: 250 * time.Millisecond, live: 10 * time.Second, reload: 3 * time.Second, rotate: 20 * time.Second, mode: 15 * time.Second}
	asked, err := time.ParseDuration(os.Getenv("TEST_SOAK"))
	switch {
	case err == nil:
		plan.duration = asked
	case long():
		plan.duration = 10 * time.Minute
	default:
		plan = soakPlan{3 * time.Second, 2, 4, 100 * time.Millisecond, time.Second, 400 * time.Millisecond, time.Second, 500 * time.Millisecond}
	}
	report := soakDaemon(t, plan)
	if os.Getenv("TEST_SOAK") != "" && !t.Failed() {
		writeSoak(t, report)
	}
}

// A daemonSoak is the state of one run.
type daemonSoak struct {
	t    *testing.T
	plan soakPlan
	d    *runningDaemon
	stop chan struct{} // closed before the writers end
	work sync.WaitGroup

	mu      sync.Mutex
	c       tally
	all     []*soaked
	streams map[int]*soaked
}

// stream adds a log to the run, and returns it. The log is a file at path or, if path is empty, the
// lines that are sent to the daemon.
func (s *daemonSoak) stream(path string, of *runtime) *soaked {
	one := &soaked{number: len(s.all), path: path, runtime: of, asks: true}
	s.all = append(s.all, one)
	s.streams[one.number] = one
	return one
}

const soakedConfiguration = `
log: {level: error}
symbols: {debuginfod_urls: [SERVER], cache_directory: DIR/cache, no_default_debug_directories: true, max_memory: 64MiB}
limits: {connections: 400, context_bytes: 64MiB}
state: DIR/state
pipelines:
  plain: {input: {files: ["DIR/plain/*.log"]}, patience: &p {local: 100ms, servers: 200ms, per_minute: 500ms}, filter: FILTER, output: {file: DIR/out/plain}}
  cri: {input: {files: ["DIR/cri/*.log"]}, patience: *p, filter: FILTER, output: {file: DIR/out/cri}}
  docker: {input: {files: ["DIR/docker/*.log"]}, patience: *p, filter: FILTER, output: {file: DIR/out/docker}}
  tcp: {input: {listen: "tcp:TCP"}, patience: *p, filter: FILTER, output: {file: DIR/out/tcp}}
  unix: {input: {listen: "unix:DIR/unix"}, patience: *p, filter: FILTER, output: {file: DIR/out/unix}}
  datagrams: {input: {listen: "unixgram:DIR/datagrams"}, patience: *p, filter: FILTER, output: {file: DIR/out/datagrams}}
  peer: {input: {http: "HTTP"}, patience: *p, filter: FILTER, output: {peer: true}}
  sent: {input: {http: "HTTP", path: /sent}, patience: *p, filter: FILTER, output: {file: DIR/out/sent}}
`

// soakDaemon runs a daemon under load and reloads, and returns a report. It fails the test if a
// line is lost, repeated or changed. In a run of at least five minutes, memory and the number of
// descriptors may change by at most a tenth.
func soakDaemon(t *testing.T, plan soakPlan) string {
	s := &daemonSoak{t: t, plan: plan, stop: make(chan struct{}), streams: make(map[int]*soaked)}
	flaky := newFlakyServer(plan.mode)
	server := httptest.NewServer(flaky)
	defer server.Close()
	defer server.CloseClientConnections()
	tcp, web := testenv.FreeAddress(t), testenv.FreeAddress(t)
	text := strings.NewReplacer("SERVER", server.URL, "TCP", tcp, "HTTP", web).Replace(soakedConfiguration)
	variant := func(n int) string {
		return strings.ReplaceAll(text, "FILTER", []string{"{}", "{basenames: true}", "{prefix_map: [/src=/home/src]}"}[n%3])
	}
	s.d = startDaemon(t, variant(0))
	for _, dir := range []string{"out", "plain", "cri", "docker"} {
		if err := os.Mkdir(s.d.path(dir), 0o755); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	s.d.ready()
	s.begin(tcp, web)
	usage := watchUsage(s.d.cmd.Process.Pid)
	reloads, broken := s.reload(variant)
	close(s.stop)
	s.work.Wait()
	steady := usage.end()
	s.finish()

	written, rotations := 0, 0
	for _, one := range s.all {
		written += one.written
		rotations += one.rotations
	}
	c := &s.c
	c.lost += int64(written) - c.lines - c.lost
	if c.lost != 0 || c.again != 0 || c.changed != 0 {
		t.Errorf("%d lines lost, %d again or out of order, %d changed, of %d; the first: %s; the first gap: between lines %d and %d of stream %d",
			c.lost, c.again, c.changed, written, c.first, c.before, c.behind, c.file)
	}
	low, high := steady.memoryRange()
	t.Logf("%v: %d lines of %d streams, %d rotations, %d reloads and %d refused; memory %d MiB at most, means of tenths from %.2f to %.2f of the mean; descriptors %d at most, ratio %.2f",
		plan.duration, written, len(s.all), rotations, reloads, broken, steady.memory>>20, low, high, steady.files, steady.filesRatio)
	if plan.duration >= 5*time.Minute && (low < 0.9 || high > 1.1 || steady.filesRatio > 1.1) {
		t.Errorf("memory was from %.2f to %.2f of its mean, descriptors grew to %.2f", low, high, steady.filesRatio)
	}
	if reloads == 0 || broken == 0 {
		t.Errorf("%d reloads, %d refused", reloads, broken)
	}
	s.d.signal(syscall.SIGTERM)
	<-s.d.exited
	if s.d.err != nil {
		t.Errorf("it ended with %v", s.d.err)
	}
	return fmt.Sprintf(daemonReport, strings.TrimSuffix(plan.duration.String(), "0s"), plan.files, 4*plan.each, plan.reload, plan.rotate, len(s.all), written, c.markup, c.hostile, rotations, reloads, broken, flaky.asked.Load(),
		c.lost, c.again, c.changed, steady.memory>>20, low, high, steady.files, steady.filesRatio)
}

const daemonReport = `## symfilterd

For %s, 8 pipelines ran. Three of them followed files: %d logs that were rotated every second, a CRI log, and a Docker log. Three read
from TCP, a unix socket and datagrams, and wrote to files. Two read HTTP requests: one answered the sender, and one wrote to a file. %d
connections were open, each for some seconds, then another one. The configuration was changed and loaded again every %v, each fifth time
with a mistake; the outputs were renamed every %v. The server of debug files had
the files, lacked them, failed, hung, or cut off its answers, each at random times.

| | |
|---|---|
| streams | %d |
| lines written | %d |
| lines with markup | %d |
| hostile lines | %d |
| rotations of inputs | %d |
| reloads, and those that were refused | %d, %d |
| requests to the server | %d |
| **lines lost** | **%d** |
| **lines doubled or out of order** | **%d** |
| **lines without markup that were changed** | **%d** |
| resident memory at most, MiB | %d |
| means of it over tenths of the last two thirds, to their mean | %.2f to %.2f |
| open descriptors at most | %d |
| open descriptors, mean of the last quarter to that of the second | %.2f |
`

// begin starts the writers, and the readers of the outputs.
func (s *daemonSoak) begin(tcp, web string) {
	failed := func(what string, err error) {
		if err != nil {
			s.t.Errorf("%s: %v", what, err)
		}
	}
	follow := func(dir string, files int, of *runtime) {
		for i := range files {
			one := s.stream(filepath.Join(s.d.path(dir), fmt.Sprintf("%02d.log", i)), of)
			s.work.Go(func() {
				failed(one.path, one.writeAndRotate(s.stop, time.Duration(i)*soakRotate/time.Duration(files)))
			})
		}
	}
	follow("plain", s.plan.files, nil)
	follow("cri", 1, runtimes()["cri"])
	follow("docker", 1, runtimes()["docker"])
	for range s.plan.each {
		a, b, c, d := s.stream("", nil), s.stream("", nil), s.stream("", nil), s.stream("", nil)
		a.most, b.most = 1_000_000, 1_000_000 // because longer lines from sockets are truncated
		s.work.Go(func() { failed("tcp", s.connect("tcp", tcp, a)) })
		s.work.Go(func() { failed("unix", s.connect("unix", s.d.path("unix"), b)) })
		s.work.Go(func() { failed("http", s.post("http://"+web+"/v1/filter", c, true)) })
		s.work.Go(func() { failed("http", s.post("http://"+web+"/sent", d, false)) })
	}
	for range max(1, s.plan.each/10) {
		one := s.stream("", nil)
		one.most = 1000
		s.work.Go(func() { failed("datagrams", s.send(one)) })
	}
	for _, name := range []string{"plain", "cri", "docker", "tcp", "unix", "datagrams", "sent"} {
		go s.read(s.d.path("out/" + name))
	}
}

// next returns the next lines of the stream.
func (s *soaked) next(lines int) []byte {
	var b []byte
	for range lines {
		s.written++
		_, line := s.line(s.written)
		b = append(append(b, line...), '\n')
	}
	return b
}

// burst writes lines of a stream until the connection's lifetime or the test is over. It returns
// true if only the lifetime is over.
func (s *daemonSoak) burst(one *soaked, w io.Writer) (bool, error) {
	end := time.After(s.plan.live/2 + rand.N(s.plan.live))
	tick := time.NewTicker(s.plan.burst)
	defer tick.Stop()
	for {
		if _, err := w.Write(one.next(2)); err != nil {
			return false, err
		}
		select {
		case <-s.stop:
			return false, nil
		case <-end:
			return true, nil
		case <-tick.C:
		}
	}
}

// connect sends a stream through successive connections.
func (s *daemonSoak) connect(network, address string, one *soaked) error {
	for goesOn := true; goesOn; {
		c, err := net.Dial(network, address)
		if err != nil {
			return err
		}
		if goesOn, err = s.burst(one, c); err == nil {
			err = c.(interface{ CloseWrite() error }).CloseWrite()
		}
		if err == nil { // the daemon closes the connection when it has read everything
			c.SetReadDeadline(time.Now().Add(soakHang))
			_, err = io.Copy(io.Discard, c)
		}
		c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// send sends a stream as datagrams of one line.
func (s *daemonSoak) send(one *soaked) error {
	c, err := net.Dial("unixgram", s.d.path("datagrams"))
	if err != nil {
		return err
	}
	defer c.Close()
	tick := time.NewTicker(s.plan.burst)
	defer tick.Stop()
	for {
		if _, err := c.Write(bytes.TrimSuffix(one.next(1), []byte("\n"))); err != nil {
			return err
		}
		select {
		case <-s.stop:
			return nil
		case <-tick.C:
		}
	}
}

// post sends a stream in successive requests. If answered is set, the answers contain the lines,
// which post checks.
func (s *daemonSoak) post(url string, one *soaked, answered bool) error {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for goesOn := true; goesOn; {
		r, w := io.Pipe()
		sent := make(chan error, 1)
		go func() {
			var err error
			goesOn, err = s.burst(one, w)
			w.CloseWithError(err)
			sent <- err
		}()
		answer, err := client.Post(url, "text/plain", r)
		if err != nil {
			r.CloseWithError(err)
			<-sent
			return err
		}
		lines := bufio.NewReader(answer.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil && err != io.EOF {
				return err
			}
			if line != "" && answered {
				s.examine(one, line)
			}
			if err == io.EOF {
				break
			}
		}
		answer.Body.Close()
		if answer.StatusCode/100 != 2 {
			r.CloseWithError(errors.New("refused"))
			<-sent
			return errors.New(answer.Status)
		}
		if err := <-sent; err != nil {
			return err
		}
	}
	return nil
}

// examine checks a line of the output.
func (s *daemonSoak) examine(one *soaked, line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.c.examine(one, line)
}

// read checks the lines of an output file and of the files that replace it.
func (s *daemonSoak) read(path string) {
	var kind *soaked
	for _, one := range s.all {
		if one.runtime != nil && filepath.Base(filepath.Dir(one.path)) == filepath.Base(path) {
			kind = one
		}
	}
	var part string
	for {
		f, err := os.Open(path)
		if err != nil {
			select {
			case <-s.d.exited:
				return
			case <-time.After(10 * time.Millisecond):
				continue
			}
		}
		r := bufio.NewReaderSize(f, 1<<20)
		left := false // left: the daemon has closed the file, so it will get no more lines
		for {
			line, err := r.ReadString('\n')
			if part += line; err == nil {
				s.found(kind, part)
				part = ""
				continue
			}
			if left {
				f.Close()
				os.Remove(path + ".1")
				break
			}
			here, err1 := os.Stat(path)
			open, err2 := f.Stat()
			if err1 == nil && err2 == nil && !os.SameFile(here, open) && !s.d.hasOpen(open) {
				left = true
				continue // read the lines that were written in the meantime
			}
			select {
			case <-s.d.exited:
				f.Close()
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

// hasOpen reports whether the daemon has a file open.
func (d *runningDaemon) hasOpen(file os.FileInfo) bool {
	descriptors, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", d.cmd.Process.Pid))
	return slices.ContainsFunc(descriptors, func(name string) bool {
		open, err := os.Stat(name)
		return err == nil && os.SameFile(open, file)
	})
}

// found checks a line of an output file. If kind is nil, the number in the line selects the stream.
func (s *daemonSoak) found(kind *soaked, line string) {
	if kind == nil {
		var number int
		fmt.Sscanf(line, "f%d ", &number)
		if kind = s.streams[number]; kind == nil {
			kind = s.all[0]
		}
	}
	s.examine(kind, line)
}

// reload changes the configuration and rotates the outputs until the time is over.
func (s *daemonSoak) reload(variant func(int) string) (reloads, broken int) {
	end := time.After(s.plan.duration)
	tick := time.NewTicker(s.plan.reload)
	defer tick.Stop()
	rotated := time.Now()
	for n := 1; ; n++ {
		select {
		case <-end:
			return reloads, broken
		case <-s.d.exited:
			s.t.Fatalf("symfilterd has ended: %v", s.d.err)
		case <-tick.C:
		}
		if time.Since(rotated) > s.plan.rotate {
			rotated = time.Now()
			names, _ := filepath.Glob(s.d.path("out/*"))
			for _, name := range names {
				if _, err := os.Stat(name + ".1"); err != nil && !strings.HasSuffix(name, ".1") { // otherwise the file is still being read
					os.Rename(name, name+".1")
				}
			}
		}
		text := variant(n)
		if n%5 == 0 {
			text += "pipelnes: {}\n"
			broken++
		} else {
			reloads++
		}
		s.d.configure(text)
		s.d.signal(syscall.SIGHUP)
	}
}

// finish waits until all written lines are in the outputs.
func (s *daemonSoak) finish() {
	var before int64
	patience := time.Now().Add(soakHang)
	for {
		var seen int64
		for _, one := range s.all {
			seen += one.seen.Load()
		}
		if seen != before {
			before, patience = seen, time.Now().Add(soakHang)
		}
		late := slices.IndexFunc(s.all, func(one *soaked) bool { return one.seen.Load() != int64(one.written) })
		if late < 0 {
			return
		}
		if one := s.all[late]; time.Now().After(patience) {
			s.t.Errorf("stream %d: %d of %d lines were seen", one.number, one.seen.Load(), one.written)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// A flakyServer serves debug files, but at times it has none, fails, is silent, or truncates files.
type flakyServer struct {
	began time.Time
	mode  time.Duration
	asked atomic.Int64
}

func newFlakyServer(mode time.Duration) *flakyServer {
	return &flakyServer{began: time.Now(), mode: mode}
}

func (f *flakyServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	parts := strings.Split(r.URL.Path, "/")
	// The modes follow in random order: a client whose pauses grow after each failure could stay in
	// step with a fixed order, and meet no working mode for an hour.
	switch rand.New(rand.NewPCG(uint64(time.Since(f.began)/f.mode), 1)).IntN(8) {
	case 0:
		http.NotFound(w, r)
	case 1:
		http.Error(w, "broken", http.StatusInternalServerError)
	case 2:
		select { // longer than the wait of any line
		case <-r.Context().Done():
		case <-time.After(f.mode):
		}
	case 3:
		w.Header().Set("Content-Length", "100000")
		w.Write([]byte("\x7fELF"))
		panic(http.ErrAbortHandler)
	default:
		if len(parts) == 4 && len(parts[2]) == 40 && parts[3] == "debuginfo" {
			http.ServeFile(w, r, filepath.Join("..", "testdata", "debug", ".build-id", parts[2][:2], parts[2][2:]+".debug"))
			return
		}
		http.NotFound(w, r)
	}
}
