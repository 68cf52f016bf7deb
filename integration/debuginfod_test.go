//go:build linux

package integration

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/symbolize"
)

// A debuginfodServer is Debian's debuginfod on a local port.
type debuginfodServer struct {
	url  string
	stop func() // ends the server; may be called again
}

// runDebuginfod serves the ELF files below dir until the end of the test.
func runDebuginfod(t *testing.T, dir string) *debuginfodServer {
	t.Helper()
	need(t, "debuginfod")
	address := testenv.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command("debuginfod", "-d", filepath.Join(t.TempDir(), "db.sqlite"), "-p", port, "-F", "-t", "5", "-g", "0", "-c", "2", dir)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	s := &debuginfodServer{url: "http://" + address}
	s.stop = func() { once.Do(func() { cmd.Process.Kill(); cmd.Wait() }) }
	t.Cleanup(s.stop)
	deadline := time.Now().Add(30 * time.Second)
	for {
		m := s.metrics()
		if strings.Contains(m, "ready 1\n") && strings.Contains(m, "thread_work_pending{role=\"scan\"} 0\n") && strings.Contains(m, "thread_busy{role=\"scan\"} 0\n") {
			return s
		}
		if time.Now().After(deadline) {
			s.stop()
			t.Fatalf("debuginfod is not ready:\n%s\n%s", m, log.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *debuginfodServer) metrics() string {
	resp, err := http.Get(s.url + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

var requestsMetric = regexp.MustCompile(`(?m)^http_requests_total\{type="(debuginfo|executable|section|source)"\} (\d+)$`)

// requests returns the number of requests for files and sections so far.
func (s *debuginfodServer) requests(t *testing.T) (n int) {
	t.Helper()
	m := s.metrics()
	if m == "" {
		t.Fatal("the server does not tell its metrics")
	}
	for _, match := range requestsMetric.FindAllStringSubmatch(m, -1) {
		one, _ := strconv.Atoi(match[2])
		n += one
	}
	return n
}

// newFetcher returns a client of the server with the cache folder dir.
func newFetcher(t *testing.T, url, dir string) *debuginfod.Client {
	t.Helper()
	c, err := debuginfod.New(debuginfod.Options{URLs: []string{url}, CacheDir: dir, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// debugIDs returns the build IDs of the debug files in dir, by path.
func debugIDs(t *testing.T, dir string) map[string]buildid.ID {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.debug"))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]buildid.ID{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if ids[path], err = buildid.Read(bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if len(ids) != libraries+1 {
		t.Fatalf("got %d debug files, want the program's and those of %d libraries", len(ids), libraries)
	}
	return ids
}

// findFile returns the content of the file that a client finds.
func findFile(t *testing.T, c *debuginfod.Client, id buildid.ID, kind buildid.Kind) []byte {
	t.Helper()
	var notes []buildid.Attempt
	f, err := c.Find(context.Background(), buildid.Query{ID: id, Kind: kind}, func(a buildid.Attempt) { notes = append(notes, a) })
	if err != nil {
		t.Fatalf("%v\n%q", err, notes)
	}
	defer f.Close()
	body, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// debuginfodFind runs elfutils' client, and returns the printed path.
func debuginfodFind(t *testing.T, url, cache string, args ...string) string {
	t.Helper()
	need(t, "debuginfod-find")
	cmd := exec.Command("debuginfod-find", args...)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+url, "DEBUGINFOD_CACHE_PATH="+cache)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("debuginfod-find %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestRealServerHasEveryLibrary(t *testing.T) {
	t.Parallel()
	files := newChain(t).files
	s := runDebuginfod(t, files)
	ids := debugIDs(t, files)
	cache := filepath.Join(t.TempDir(), "cache")
	c := newFetcher(t, s.url, cache)
	for path, id := range ids {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := findFile(t, c, id, buildid.Debug); !bytes.Equal(got, want) {
			t.Errorf("debug file of %s: got %d bytes, want those of %s", id, len(got), path)
		}
		if want, err = os.ReadFile(strings.TrimSuffix(path, ".debug")); err != nil {
			t.Fatal(err)
		}
		if got := findFile(t, c, id, buildid.Executable); !bytes.Equal(got, want) {
			t.Errorf("executable of %s: got %d bytes, want those beside %s", id, len(got), path)
		}
	}
	if got, want := s.requests(t), 2*len(ids); got != want {
		t.Errorf("got %d requests, want %d", got, want)
	}
	// The server has ended, so neither symfilter's nor elfutils' client may need the server.
	s.stop()
	again := newFetcher(t, s.url, cache)
	for path, id := range ids {
		findFile(t, again, id, buildid.Debug)
		if got, want := debuginfodFind(t, s.url, cache, "debuginfo", id.String()), filepath.Join(cache, id.String(), "debuginfo"); got != want {
			t.Errorf("debuginfod-find of %s printed %q, want %q", path, got, want)
		}
		debuginfodFind(t, s.url, cache, "executable", id.String())
	}
}

func TestSymbolizerNamesLinesFromARealServer(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	s := runDebuginfod(t, c.files)
	y := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{newFetcher(t, s.url, filepath.Join(t.TempDir(), "cache"))}})
	defer y.Close()
	for path, id := range debugIDs(t, c.files) {
		name := strings.TrimSuffix(filepath.Base(path), ".debug")
		function := "main"
		if strings.HasPrefix(name, "lib") {
			function = strings.TrimSuffix(strings.TrimPrefix(name, "lib"), ".so")
		}
		frames, err := y.Ask(context.Background(), nil, symbolize.Location{ID: id, Name: "/gone/" + name, Addr: symbolAddr(t, path, function)}, symbolize.Policy{})
		if err != nil || len(frames) == 0 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f := frames[len(frames)-1]; !strings.HasSuffix(f.Func, function) || f.Line == 0 {
			t.Errorf("%s: got %s %s:%d, want a line of %s", name, f.Func, f.File, f.Line, function)
		}
	}
}

// symbolAddr returns the address of a function in the file at path. The name may have a prefix.
func symbolAddr(t *testing.T, path, function string) uint64 {
	t.Helper()
	out := run(t, nil, "nm", path)
	match := regexp.MustCompile(`(?m)^([0-9a-f]+) T (emit_)?`+function+`$`).FindAllStringSubmatch(out, -1)
	if match == nil {
		t.Fatalf("%s has no function %s:\n%s", path, function, out)
	}
	addr, err := strconv.ParseUint(match[len(match)-1][1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// symfilter must need no server for files that elfutils' client has fetched. It must not request a
// file again that elfutils' client has found to be missing.
func TestFilesAndMissesOfElfutilsAreUsed(t *testing.T) {
	t.Parallel()
	files := newChain(t).files
	s := runDebuginfod(t, files)
	cache := filepath.Join(t.TempDir(), "cache")
	ids := debugIDs(t, files)
	for _, id := range ids {
		debuginfodFind(t, s.url, cache, "debuginfo", id.String())
	}
	nobody, err := buildid.Parse([]byte("00112233445566778899aabbccddeeff00112233"))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"debuginfo", "executable"} {
		cmd := exec.Command("debuginfod-find", kind, nobody.String())
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+s.url, "DEBUGINFOD_CACHE_PATH="+cache)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Fatalf("a file that nobody has was found: %s", out)
		}
	}
	before := s.requests(t)
	c := newFetcher(t, s.url, cache)
	for _, id := range ids {
		findFile(t, c, id, buildid.Debug)
	}
	if _, err := c.Find(context.Background(), buildid.Query{ID: nobody}, nil); err == nil {
		t.Error("a file that nobody has was found")
	}
	if got := s.requests(t) - before; got != 0 {
		t.Errorf("%d requests, want none", got)
	}
	s.stop()
	for _, id := range ids {
		findFile(t, newFetcher(t, s.url, cache), id, buildid.Debug)
	}
}

func TestMissesAreUsedByElfutils(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// without a file, a server never reports that its scan is complete
	copyFile(t, filepath.Join(dir, "symfilter"), command)
	s := runDebuginfod(t, dir)
	cache := filepath.Join(t.TempDir(), "cache")
	c := newFetcher(t, s.url, cache)
	id, err := buildid.Parse([]byte("00112233445566778899aabbccddeeff00112233"))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Find(context.Background(), buildid.Query{ID: id}, nil); err == nil {
			t.Fatal("a file that nobody has was found")
		}
	}
	if got := s.requests(t); got != 2 {
		t.Errorf("got %d requests, want 2: for the debug file and for the executable", got)
	}
	cmd := exec.Command("debuginfod-find", "debuginfo", id.String())
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+s.url, "DEBUGINFOD_CACHE_PATH="+cache)
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("a file that nobody has was found: %s", out)
	}
	if got := s.requests(t); got != 2 {
		t.Errorf("got %d requests, want 2: debuginfod-find has our empty file", got)
	}
}

func TestManyAsksForOneFileAreOneRequest(t *testing.T) {
	t.Parallel()
	files := newChain(t).files
	s := runDebuginfod(t, files)
	cache := filepath.Join(t.TempDir(), "cache")
	var id buildid.ID
	for _, id = range debugIDs(t, files) {
		break
	}
	// Two clients with one cache behave like two processes, since locks belong to descriptors.
	clients := []*debuginfod.Client{newFetcher(t, s.url, cache), newFetcher(t, s.url, cache)}
	errs := make(chan error, 1000)
	for i := range cap(errs) {
		go func() {
			f, err := clients[i%2].Find(context.Background(), buildid.Query{ID: id}, nil)
			if err == nil {
				err = f.Close()
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := s.requests(t); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

func TestTwoProcessesAskAsOne(t *testing.T) {
	t.Parallel()
	c := newChain(t)
	s := runDebuginfod(t, c.files)
	filters := func(n int) (requests int) {
		t.Helper()
		before := s.requests(t)
		cache := filepath.Join(t.TempDir(), "cache")
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				cmd := exec.Command(command, "--wait=30s", "--debug-file-directory", t.TempDir())
				cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+s.url, "DEBUGINFOD_CACHE_PATH="+cache)
				cmd.Stdin = strings.NewReader(c.log)
				out, err := cmd.Output()
				if err != nil {
					t.Error(err)
				}
				if want := "link7 "; !strings.Contains(string(out), want) {
					t.Errorf("%s is not named:\n%s", want, out)
				}
			})
		}
		all.Wait()
		return s.requests(t) - before
	}
	one := filters(1)
	if two := filters(2); two != one || one < libraries+1 {
		t.Errorf("got %d requests of two processes, %d of one; want as many, and %d at least", two, one, libraries+1)
	}
}

func TestProbeAndSectionOfARealServer(t *testing.T) {
	t.Parallel()
	files := newChain(t).files
	s := runDebuginfod(t, files)
	c := newFetcher(t, s.url, filepath.Join(t.TempDir(), "cache"))
	var path string
	var id buildid.ID
	for path, id = range debugIDs(t, files) {
		break
	}
	probe := access.Debuginfod(c).(interface {
		Probe(ctx context.Context, server string, id buildid.ID) access.ProbeResult
	}).Probe
	if got := probe(context.Background(), s.url, buildid.ID{}); !got.Works || got.Has || got.Answer != "404: no such file" {
		t.Errorf("probe for an ID that nobody has: got %+v", got)
	}
	if got := probe(context.Background(), s.url, id); !got.Works || !got.Has {
		t.Errorf("probe for an ID that it has: got %+v", got)
	}
	got, err := c.Section(context.Background(), id, ".debug_line")
	if err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(t.TempDir(), "line")
	run(t, nil, "objcopy", "-O", "binary", "--only-section=.debug_line", "--set-section-flags", ".debug_line=alloc", path, dump)
	if want, err := os.ReadFile(dump); err != nil || !slices.Equal(got, want) {
		t.Errorf("section: got %d bytes, want %d (%v)", len(got), len(want), err)
	}
}
