package debuginfod

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/newfile"
)

func TestMain(m *testing.M) {
	if task := os.Getenv("DEBUGINFOD_TEST_TASK"); task != "" {
		os.Exit(child(task))
	}
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, "DEBUGINFOD_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			os.Unsetenv(name)
		}
	}
	goleak.VerifyTestMain(m)
}

// long reports whether tests run with their full sizes.
func long() bool { return os.Getenv("TEST_LONG") == "1" }

// testID returns the n-th build ID of the tests.
func testID(n int) buildid.ID {
	raw := bytes.Repeat([]byte{0xab}, 20)
	binary.BigEndian.PutUint64(raw, uint64(n))
	id, err := buildid.FromBytes(raw)
	if err != nil {
		panic(err)
	}
	return id
}

// elfFile returns a small ELF file with a note that holds id, padded to size bytes. Its section
// header table, of one header, is at the end.
func elfFile(id buildid.ID, size int) []byte {
	le := binary.LittleEndian
	raw := id.Bytes()
	note := le.AppendUint32(nil, 4)
	note = le.AppendUint32(note, uint32(len(raw)))
	note = le.AppendUint32(note, 3)
	note = append(note, "GNU\x00"...)
	note = append(note, raw...)
	size = max(size, 64+56+len(note)+64)
	b := make([]byte, size)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], 3)               // ET_DYN
	le.PutUint16(b[18:], 62)              // x86-64
	le.PutUint32(b[20:], 1)               // version
	le.PutUint64(b[32:], 64)              // offset of the program headers
	le.PutUint64(b[40:], uint64(size-64)) // offset of the section headers
	le.PutUint16(b[52:], 64)              // size of this header
	le.PutUint16(b[54:], 56)              // size of a program header
	le.PutUint16(b[56:], 1)               // number of program headers
	le.PutUint16(b[58:], 64)              // size of a section header
	le.PutUint16(b[60:], 1)               // number of section headers
	le.PutUint32(b[64:], 4)               // PT_NOTE
	le.PutUint64(b[64+8:], 120)           // offset of the note
	le.PutUint64(b[64+32:], uint64(len(note)))
	le.PutUint64(b[64+40:], uint64(len(note)))
	le.PutUint64(b[64+48:], 4)
	copy(b[120:], note)
	for i := 120 + len(note); i < size-64; i++ {
		b[i] = byte(i * 7)
	}
	return b
}

// A fake is a debuginfod server for tests. The test sets its answers; paths lists the requests.
type fake struct {
	*httptest.Server
	mu    sync.Mutex
	paths []string
}

// serve starts a fake on loopback.
func serve(t testing.TB, h http.HandlerFunc) *fake {
	t.Helper()
	f := &fake{}
	f.Server = httptest.NewServer(f.counted(h))
	t.Cleanup(f.stop)
	return f
}

func (f *fake) stop() {
	f.CloseClientConnections()
	f.Close()
}

func (f *fake) counted(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.paths = append(f.paths, r.URL.Path)
		f.mu.Unlock()
		h(w, r)
	})
}

func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.paths)
}

// has answers with the files, by paths such as /buildid/ID/debuginfo, and otherwise with the 404 of
// a real server.
func has(files map[string][]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := files[r.URL.Path]
		if !ok {
			http.Error(w, "not found", http.StatusNotFound)
			return
		}
		w.Header().Set("X-DEBUGINFOD-SIZE", fmt.Sprint(len(body)))
		w.Write(body)
	}
}

func debugPath(id buildid.ID) string { return "/buildid/" + id.String() + "/debuginfo" }

// newClient returns a client of the servers, with a new cache. It is closed at the end of the test.
func newClient(t testing.TB, o Options, servers ...string) *Client {
	t.Helper()
	o.URLs = append(o.URLs, servers...)
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(t.TempDir(), "cache")
	}
	if o.RetryLimit == 0 {
		o.RetryLimit = -1
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// find calls c.Find. It returns the file's bytes, the notes as "where: reason", and the error.
// replace lists pairs of strings: in the notes, the second string of a pair replaces the first.
func find(t testing.TB, c *Client, q buildid.Query, replace ...string) (body []byte, notes []string, err error) {
	t.Helper()
	r := strings.NewReplacer(append(replace, c.cache.dir, "CACHE", q.ID.String(), "ID")...)
	f, err := c.Find(context.Background(), q, func(a buildid.Attempt) {
		notes = append(notes, r.Replace(a.Where+": "+a.Reason))
	})
	if err != nil {
		return nil, notes, err
	}
	defer f.Close()
	body, e := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
	if e != nil {
		t.Fatal(e)
	}
	return body, notes, nil
}

// leftovers returns the temporary files in the cache.
func leftovers(t testing.TB, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*", "*.??????"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// namesNeeded reports whether the file system of dir has no unnamed temporary files (O_TMPFILE).
func namesNeeded(t testing.TB, dir string) bool {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f, err := newfile.Create(root, "probe.")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Discard()
	named, err := filepath.Glob(filepath.Join(dir, "probe.*"))
	if err != nil {
		t.Fatal(err)
	}
	return named != nil
}

// self returns a command that runs the test's own program with a task for child.
func self(t testing.TB, task string, env ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), append(env, "DEBUGINFOD_TEST_TASK="+task)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// within fails the test if f takes longer than d, a generous bound.
func within(t testing.TB, d time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took > d {
		t.Errorf("took %v, want at most %v", took, d)
	}
}

// quiet returns a logger that drops the error messages of test servers whose clients must fail.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// query returns the query for the debug file of the n-th ID.
func query(n int) buildid.Query { return buildid.Query{ID: testID(n)} }
