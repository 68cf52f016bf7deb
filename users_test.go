package symfilter

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// Filters that wait for files, Lines that never wait, and callers of the symbolizer share one
// Opened. One of its servers works, one is silent and one fails, and its memory holds few files.
// Each user must get the answers that it would get alone.
func TestManyUsersShareWhatIsOpened(t *testing.T) {
	input, err := os.ReadFile(filepath.Join("testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	golden, err := os.ReadFile(filepath.Join("testdata", "crash.golden"))
	if err != nil {
		t.Fatal(err)
	}
	want := string(golden)
	for round := range fuzztest.LongOr(60, 3) {
		dir, servers := t.TempDir(), userServers(t)
		opened, err := Symbols{
			NoDefaultDebugDirs: true,
			NoPaths:            true,
			Servers:            debuginfod.Options{URLs: servers, CacheDir: filepath.Join(dir, "fetched"), RetryLimit: -1},
			CacheDir:           filepath.Join(dir, "cache"),
			MaxMemory:          []int64{1, 256 << 10, symbolize.DefaultMaxMemory}[round%3],
		}.Open()
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for user := range 4 {
			all.Go(func() { // waits until each file is found, or known not to exist
				for range 4 {
					var out bytes.Buffer
					f := filter.New(&out, filter.Options{
						Symbolizer: opened.Symbolizer,
						Cache:      opened.Cache,
						Patience:   filter.Patience{Local: time.Minute, Servers: time.Minute},
						Context:    t.Context(),
					})
					for chunk := range chunks(input, 1<<(6+2*user)) {
						if _, err := f.Write(chunk); err != nil {
							t.Error(err)
						}
					}
					if err := f.Close(); err != nil {
						t.Error(err)
					}
					if diff := cmp.Diff(want, out.String()); diff != "" {
						t.Errorf("filter %d: want (-), got (+):\n%s", user, diff)
						return
					}
				}
			})
			all.Go(func() { // never waits: later records have the answers
				lines := filter.NewLines(filter.Options{Symbolizer: opened.Symbolizer, Cache: opened.Cache, Patience: filter.Patience{Never: true}})
				contexts := make([]filter.Context, 3)
				diff := ""
				for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
					diff = ""
					for i := range contexts {
						contexts[i].Reset()
						out, _ := lines.Append(nil, &contexts[i], input)
						if diff == "" {
							diff = cmp.Diff(want, string(out))
						}
					}
					if diff == "" {
						break
					}
				}
				if diff != "" {
					t.Errorf("Lines of user %d: want (-), got (+):\n%s", user, diff)
				}
			})
			all.Go(func() { askSymbolizer(t, opened.Symbolizer, user) })
		}
		all.Wait()
		for user := range 2 { // their later questions fail
			all.Go(func() { askSymbolizer(t, opened.Symbolizer, user) })
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if t.Failed() {
			return
		}
	}
}

// chunks yields b in pieces of n bytes.
func chunks(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

// askSymbolizer calls all lookup methods of s, for the modules of the log and for a module that no
// server has.
func askSymbolizer(t *testing.T, s *symbolize.Symbolizer, user int) {
	var ids []buildid.ID
	for _, hex := range []string{"779e1ed32e11627838c3d1658cabab0af2a008bd", "eecd138796b4297ca7ee7bb08854e1173fee4bff", fmt.Sprintf("%040x", 1+user)} {
		id, err := buildid.Parse([]byte(hex))
		if err != nil {
			t.Error(err)
			return
		}
		ids = append(ids, id)
	}
	inner := access.Symbolizer(s).(interface {
		TryCode(dst []symbolize.Frame, l symbolize.Location) ([]symbolize.Frame, bool)
		Search(id buildid.ID, name string)
		Take(n int64) bool
		Give(n int64)
	})
	for i := range 200 {
		l := symbolize.Location{ID: ids[i%len(ids)], Name: "module", Addr: uint64(0x1000 + i*7919%0x1000)}
		s.Prefetch(l.ID, l.Name)
		waits := []symbolize.Wait{symbolize.Now, symbolize.Local, symbolize.Servers}
		if i%len(ids) == 2 {
			waits = waits[:1] // no server has it
		}
		for _, wait := range waits {
			s.Ask(t.Context(), nil, l, symbolize.Policy{Wait: wait})
			s.AskData(t.Context(), l, symbolize.Policy{Wait: wait})
		}
		inner.Search(l.ID, l.Name)
		inner.TryCode(nil, l)
		if inner.Take(1 << 10) {
			inner.Give(1 << 10)
		}
		s.Report(l.ID, l.Name)
		s.Reports()
		s.Stats()
		if got := s.Demangle("_ZN4shop6ledgerEv"); got != "shop::ledger()" {
			t.Errorf("demangled to %s", got)
		}
	}
}

// userServers returns the URLs of three servers. The first is silent until the third has sent all
// debug files of testdata, and then closes its connections. The second fails, and the third works.
func userServers(t *testing.T) []string {
	t.Helper()
	sent := make(chan struct{}) // closed when all files were sent
	files := map[string]bool{}
	var mu sync.Mutex
	working := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := strings.CutPrefix(r.URL.Path, "/buildid/")
		id, isDebug := strings.CutSuffix(id, "/debuginfo")
		if !ok || !isDebug || len(id) != 40 {
			http.NotFound(w, r)
			return
		}
		path := filepath.Join("testdata", "debug", ".build-id", id[:2], id[2:]+".debug")
		if _, err := os.Stat(path); err != nil {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, path)
		mu.Lock()
		defer mu.Unlock()
		if n := len(files); !files[id] {
			if files[id] = true; n+1 == debugFiles {
				close(sent)
			}
		}
	}))
	t.Cleanup(working.Close)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-sent:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(silent.Close)
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	t.Cleanup(failing.Close)
	return []string{silent.URL, failing.URL, working.URL}
}

const debugFiles = 3 // in testdata
