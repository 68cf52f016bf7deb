package debuginfod

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// child is the program that a test runs as a separate process. "find" requests one file, "exhaust"
// searches the cache with few free descriptors, and "store" stores files until the process is
// killed.
func child(task string) int {
	dir := os.Getenv("TASK_CACHE")
	switch task {
	case "find":
		c, err := New(Options{URLs: []string{os.Getenv("TASK_URL")}, CacheDir: dir})
		if err != nil {
			panic(err)
		}
		defer c.Close()
		f, err := c.Find(context.Background(), buildid.Query{ID: testID(1)}, nil)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		f.Close()
		return 0
	case "exhaust":
		var open []*os.File
		for {
			f, err := os.Open(os.DevNull)
			if err != nil {
				break
			}
			open = append(open, f)
		}
		for range min(3, len(open)) { // with none, one, two and three free descriptors
			_, err := newCache(dir).find(context.Background(), query(1), nil)
			fmt.Println(err == nil, errors.Is(err, fs.ErrNotExist))
			open[0].Close()
			open = open[1:]
		}
		return 0
	case "store":
		c := newCache(dir)
		fmt.Println("begins")
		for i := 0; ; i++ {
			n := rand.IntN(8)
			body := elfFile(testID(n), 64<<10+n<<16)
			fmt.Println("writes")
			s, err := c.spool(key{id: testID(n), kind: buildid.Debug})
			if err != nil {
				panic(err)
			}
			for len(body) > 0 {
				m := min(len(body), 64<<10)
				if _, err := s.Write(body[:m]); err != nil {
					panic(err)
				}
				body = body[m:]
			}
			file, err := s.commit(time.Time{}, "")
			if err != nil {
				panic(err)
			}
			file.close()
			fmt.Println("wrote")
			remember(c, key{id: testID(n), kind: buildid.Executable})
			if i%4 == 0 {
				c.clean(time.Now())
			}
		}
	}
	return 2
}

// A thousand callers that want one file at the same time must cause only one request, even if no
// cache can keep the file.
func TestHerd(t *testing.T) {
	const callers = 1000
	id := testID(1)
	for name, dir := range map[string]string{"a cache": "", "no cache": os.DevNull} {
		t.Run(name, func(t *testing.T) {
			var c *Client
			var s *fake
			s = serve(t, func(w http.ResponseWriter, r *http.Request) {
				for waiters(c) < callers && len(s.requests()) == 1 {
					time.Sleep(time.Millisecond)
				}
				sends(elfFile(id, 1<<16))(w, r)
			})
			c = newClient(t, Options{CacheDir: dir}, s.URL)
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					f, err := c.Find(context.Background(), buildid.Query{ID: id}, nil)
					if err != nil {
						t.Error(err)
						return
					}
					defer f.Close()
					if got, err := buildid.Read(f, f.Size()); got != id || err != nil {
						t.Errorf("got a file of %s, %v", got, err)
					}
				})
			}
			all.Wait()
			if got := len(s.requests()); got != 1 {
				t.Errorf("got %d requests, want 1", got)
			}
		})
	}
}

// waiters returns the number of callers that wait for the file of any request.
func waiters(c *Client) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flights {
		n += f.waiters
	}
	return n
}

func TestProcessesFetchAFileOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes wait for each other on Linux only")
	}
	t.Parallel()
	id := testID(1)
	here := make(chan struct{}, 10)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		here <- struct{}{}
		time.Sleep(300 * time.Millisecond)
		sends(elfFile(id, 1<<20))(w, r)
	})
	dir := filepath.Join(t.TempDir(), "cache")
	var children []*exec.Cmd
	for range 3 {
		cmd := self(t, "find", "TASK_URL="+s.URL, "TASK_CACHE="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		children = append(children, cmd)
	}
	for _, cmd := range children {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if got := len(s.requests()); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

// A process that is killed during a download must not block other processes.
func TestKilledProcessLeavesNoLock(t *testing.T) {
	t.Parallel()
	id := testID(1)
	hangs := make(chan struct{}, 10)
	hung := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write(elfFile(id, 1<<20)[:1000])
		w.(http.Flusher).Flush()
		hangs <- struct{}{}
		<-r.Context().Done()
	})
	good := serve(t, sends(elfFile(id, 0)))
	dir := filepath.Join(t.TempDir(), "cache")
	cmd := self(t, "find", "TASK_URL="+hung.URL, "TASK_CACHE="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-hangs
	c := newClient(t, Options{CacheDir: dir}, good.URL)
	if runtime.GOOS == "linux" {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Find(ctx, buildid.Query{ID: id}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the other process fetches it: got %v, want to wait", err)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	if _, notes, err := find(t, c, buildid.Query{ID: id}); err != nil {
		t.Errorf("got %v, %q", err, notes)
	}
	// If the file system has no unnamed temporary files, the killed process leaves a named one,
	// which is removed when it is old.
	if got, want := leftovers(t, dir), namesNeeded(t, dir); (got != nil) != want {
		t.Errorf("got %q of the killed process; want a temporary file: %v", got, want)
	}
	if leftovers(t, dir) == nil {
		put(t, dir, id.String()+"/executable.aB3dE6", make([]byte, 500), 0o600)
	}
	removeIn := func(after time.Duration) {
		root, err := c.cache.open()
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		removeStale(root, id.String(), time.Now().Add(after))
	}
	removeIn(staleTemp - time.Minute)
	if got := len(leftovers(t, dir)); got != 1 {
		t.Errorf("got %d temporary files, want one that may be being written", got)
	}
	removeIn(staleTemp + time.Minute)
	if got := leftovers(t, dir); got != nil {
		t.Errorf("left behind: %q", got)
	}
}

// If a waiter leaves, the download must continue for the others. It must end when the last waiter
// leaves.
func TestDownloadGoesOnForThoseWhoWait(t *testing.T) {
	t.Parallel()
	id := testID(1)
	here, send := make(chan struct{}, 10), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		here <- struct{}{}
		select {
		case <-send:
			sends(elfFile(id, 0))(w, r)
		case <-r.Context().Done():
		}
	})
	c := newClient(t, Options{}, s.URL)
	ask := func(ctx context.Context) chan error {
		done := make(chan error, 1)
		go func() {
			f, err := c.Find(ctx, buildid.Query{ID: id}, nil)
			if err == nil {
				f.Close()
			}
			done <- err
		}()
		return done
	}
	waiting := func(n int) {
		for {
			c.mu.Lock()
			f := c.flights[key{id: id, kind: buildid.Debug}]
			ok := f != nil && f.waiters == n
			c.mu.Unlock()
			if ok {
				return
			}
			runtime.Gosched()
		}
	}
	first, leave := context.WithCancel(t.Context())
	leaves := ask(first)
	<-here
	stays := ask(t.Context())
	waiting(2)
	leave()
	if err := <-leaves; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	close(send)
	if err := <-stays; err != nil {
		t.Errorf("the one who waited: %v", err)
	}
	if got := len(s.requests()); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

// Waiters leave at any moment, and either of two equal servers may be first. No file may stay open,
// no partial file may remain, and no miss may be reported.
func TestLeavingAtAnyMomentLeavesNothing(t *testing.T) {
	var urls []string
	for range 2 {
		urls = append(urls, serve(t, func(w http.ResponseWriter, r *http.Request) {
			raw, _ := hex.DecodeString(strings.Split(r.URL.Path, "/")[2])
			sends(elfFile(testID(int(binary.BigEndian.Uint64(raw))), 300<<10))(w, r)
		}).URL)
	}
	c := newClient(t, Options{}, urls...)
	var all sync.WaitGroup
	var found, left atomic.Int64
	for n := range 100 {
		for range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(300*time.Millisecond))
				defer cancel()
				f, err := c.Find(ctx, query(n), nil)
				switch {
				case err == nil:
					found.Add(1)
					if got, err := buildid.Read(f, f.Size()); got != testID(n) || err != nil {
						t.Errorf("got a file of %s, %v; want %s", got, err, testID(n))
					}
					f.Close()
				case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, fs.ErrNotExist):
					left.Add(1)
				default:
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	c.Close()
	t.Logf("%d found, %d left", found.Load(), left.Load())
	if got := leftovers(t, c.cache.dir); got != nil {
		t.Errorf("left behind: %q", got)
	}
	if info := c.cache.info(); info.Misses != 0 || info.Problems != nil {
		t.Errorf("got the cache %+v", info)
	}
	open, _ := filepath.Glob("/proc/self/fd/*")
	for _, fd := range open {
		if path, err := os.Readlink(fd); err == nil && strings.HasPrefix(path, c.cache.dir) {
			t.Errorf("still open: %s", path)
		}
	}
}

// A process without free descriptors cannot find out whether a file exists. So its error must not
// be a miss.
func TestExhaustionIsNoMiss(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no such limit")
	}
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, testID(1).String()+"/debuginfo", elfFile(testID(1), 0), 0o400)
	cmd := self(t, "exhaust", "TASK_CACHE="+dir)
	cmd.Args = []string{"sh", "-c", `ulimit -n 40; exec "$0"`, cmd.Path}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("missing: sh")
	}
	cmd.Path = sh
	out, err := cmd.Output()
	if err != nil || !strings.HasPrefix(string(out), "false false\n") || strings.Contains(string(out), "false true") {
		t.Errorf("got %q, %v; want failures that are no misses, until it is found", out, err)
	}
}

func TestCloseEndsDownloads(t *testing.T) {
	t.Parallel()
	id := testID(1)
	for name, h := range map[string]http.HandlerFunc{
		"silence": func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"body":    slowly(elfFile(id, 100<<20), 1<<20, 50*time.Millisecond),
		"retry":   status(500),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here := make(chan struct{}, 100)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) { here <- struct{}{}; h(w, r) })
			c := newClient(t, Options{RetryLimit: 20}, s.URL)
			found := make(chan error, 1)
			go func() {
				_, err := c.Find(context.Background(), buildid.Query{ID: id}, nil)
				found <- err
			}()
			<-here
			within(t, time.Minute, func() {
				c.Close()
				if err := <-found; !errors.Is(err, ErrClosed) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("got %v, want %v", err, ErrClosed)
				}
			})
			if _, err := c.Find(context.Background(), buildid.Query{ID: id}, nil); !errors.Is(err, ErrClosed) {
				t.Errorf("after Close: got %v, want %v", err, ErrClosed)
			}
			if got := leftovers(t, c.cache.dir); got != nil {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

// A process is killed at random moments. Every file with its final name in the cache must be whole,
// and no other file may remain. But on a file system without unnamed files, temporary files may
// remain until they are old.
func TestCrashConsistency(t *testing.T) {
	t.Parallel()
	kills := 40
	if long() {
		kills = 1000
	}
	dir := filepath.Join(t.TempDir(), "cache")
	midway := 0
	for range kills {
		cmd := self(t, "store", "TASK_CACHE="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("begins")))
		time.Sleep(rand.N(20 * time.Millisecond))
		cmd.Process.Kill()
		if said, _ := io.ReadAll(out); bytes.HasSuffix(said, []byte("writes\n")) {
			midway++
		}
		cmd.Wait()
		checkWholeCache(t, dir)
	}
	files := newCache(dir).info()
	t.Logf("%d kills, %d of them midway; %d files, %d temporary files, %d bytes", kills, midway, files.Files, files.Temporary, files.Size)
	if midway == 0 {
		t.Error("no kill came while a file was being written")
	}
	if !namesNeeded(t, dir) {
		// the process was killed after it had linked the new file to a temporary name, and before
		// it renamed that link to replace an older file
		for _, name := range leftovers(t, dir) {
			body, err := os.ReadFile(name)
			raw, _ := hex.DecodeString(filepath.Base(filepath.Dir(name)))
			if n := int(binary.BigEndian.Uint64(raw)); err != nil || !bytes.Equal(body, elfFile(testID(n), 64<<10+n<<16)) {
				t.Errorf("%s: %d bytes, %v; it is not whole", name, len(body), err)
			}
		}
	}
	c := newCache(dir)
	put(t, dir, cleanIntervalFile, []byte("0"), 0o600)
	if err := c.clean(time.Now().Add(staleTemp + time.Minute)); err != nil {
		t.Fatal(err)
	}
	after := c.info()
	if after.Temporary != 0 || after.Files != files.Files || after.Problems != nil {
		t.Errorf("after cleaning: got %+v, want %d files", after, files.Files)
	}
}

// checkWholeCache fails the test for each file of the cache that is not used, or does not have the
// content for its build ID.
func checkWholeCache(t *testing.T, dir string) {
	t.Helper()
	c := newCache(dir)
	for n := range 8 {
		f, err := c.find(t.Context(), buildid.Query{ID: testID(n), Kind: buildid.Alt}, nil)
		if err != nil {
			if _, err := os.Lstat(filepath.Join(dir, testID(n).String(), "debuginfo")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("file %d is there and is not used", n)
			}
			continue
		}
		got, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		f.Close()
		if want := elfFile(testID(n), 64<<10+n<<16); err != nil || !bytes.Equal(got, want) {
			t.Errorf("file %d: got %d bytes, %v; want %d", n, len(got), err, len(want))
		}
	}
}

// Clients, a cleaner and goroutines that remove and replace files use one cache at the same time.
// Each search must return the right file, and no temporary file may remain.
func TestManyUsersOfOneCache(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var n int
		for n = range 8 {
			if r.URL.Path == debugPath(testID(n)) {
				sends(elfFile(testID(n), 10000))(w, r)
				return
			}
		}
		w.WriteHeader(404)
	})
	dir := filepath.Join(t.TempDir(), "cache")
	end := make(chan struct{})
	var others, users sync.WaitGroup
	other := func(f func(n int)) {
		others.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-end:
					return
				default:
					f(i % 8)
				}
			}
		})
	}
	c := newCache(dir)
	other(func(int) { c.trim(25000, "") })
	other(func(n int) { os.RemoveAll(filepath.Join(dir, testID(n).String())) })
	other(func(n int) {
		temp := filepath.Join(dir, "wrong."+strconv.Itoa(n))
		os.WriteFile(temp, elfFile(testID(n+1), 10000), 0o400)
		os.Rename(temp, filepath.Join(dir, testID(n).String(), "debuginfo"))
	})
	for range 2 {
		client := newClient(t, Options{CacheDir: dir}, s.URL)
		for n := range 8 {
			users.Go(func() {
				for range 40 {
					f, err := client.Find(context.Background(), buildid.Query{ID: testID(n), Kind: buildid.Alt}, nil)
					if err != nil {
						t.Error(err)
						return
					}
					if got, err := buildid.Read(f, f.Size()); got != testID(n) || err != nil {
						t.Errorf("got a file of %s, %v; want %s", got, err, testID(n))
					}
					f.Close()
				}
			})
		}
	}
	users.Wait()
	close(end)
	others.Wait()
	if got := leftovers(t, dir); got != nil {
		t.Errorf("left behind: %q", got)
	}
}
