package debuginfod

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
)

// durations matches the durations in reasons of misses, which depend on the time that a test takes.
var durations = regexp.MustCompile(`\b(file|for|answered) [0-9ms]+s( ago| more|$)`)

// A miss of one server must not prevent requests to another server, whether the other server is
// added, or replaces the first one.
func TestAMissIsOfTheServersThatAnswered(t *testing.T) {
	t.Parallel()
	id := testID(1)
	q := buildid.Query{ID: id, Kind: buildid.Alt}
	const remembered = "CACHE/ID/debuginfo: OLD had no such file T ago; this answer is kept for T more, or until this file is removed"
	const recalled = "OLD: no such file; remembered: the server answered T ago, and is not asked again for T"
	tests := []struct {
		name     string
		servers  string // servers of the second client: old and none have no file, has has the file
		again    bool
		found    bool
		requests string // to the servers, by the second client
		notes    []string
		known    int // build IDs that were not asked for
	}{
		{name: "the same", servers: "old", notes: []string{remembered}, known: 1},
		{name: "another", servers: "has", found: true, requests: "has"},
		{name: "one more", servers: "old has", found: true, requests: "has", notes: []string{recalled}},
		{name: "one more without the file", servers: "old none", requests: "none", notes: []string{recalled, "NONE: 404: no such file"}},
		{name: "the same, asked again", servers: "old", again: true, requests: "old", notes: []string{"OLD: 404: no such file"}},
		{name: "none", servers: "", notes: []string{remembered}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			servers := map[string]*fake{
				"old": serve(t, status(404)), "none": serve(t, status(404)),
				"has": serve(t, has(map[string][]byte{debugPath(id): elfFile(id, 1000)})),
			}
			withPassword := strings.Replace(servers["old"].URL, "http://", "http://me:secret@", 1)
			dir := filepath.Join(t.TempDir(), "cache")
			first := newClient(t, Options{CacheDir: dir}, withPassword)
			if _, _, err := find(t, first, q); !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			first.Close()
			before := len(servers["old"].requests())

			var urls []string
			for _, name := range strings.Fields(tt.servers) {
				urls = append(urls, servers[name].URL)
			}
			c := newClient(t, Options{CacheDir: dir, AskAgain: tt.again}, urls...)
			body, notes, err := find(t, c, q, servers["old"].URL, "OLD", servers["none"].URL, "NONE")
			if found := len(body) > 0; found != tt.found || !found && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("found %v, %v; want %v", found, err, tt.found)
			}
			for i := range notes {
				notes[i] = durations.ReplaceAllString(notes[i], "$1 T$2")
			}
			if diff := cmp.Diff(notes, tt.notes); diff != "" {
				t.Errorf("notes (-got +want):\n%s", diff)
			}
			var asked []string
			for _, name := range []string{"old", "has", "none"} {
				n := len(servers[name].requests())
				if name == "old" {
					n -= before
				}
				if n > 0 {
					asked = append(asked, name)
				}
			}
			if got := strings.Join(asked, " "); got != tt.requests || c.rememberedIDs() != tt.known {
				t.Errorf("asked %q, %d remembered; want %q, %d", got, c.rememberedIDs(), tt.requests, tt.known)
			}
			c.Close()
			left := tree(t, dir)
			if want := []string{id.String(), id.String() + "/debuginfo"}; tt.found {
				if diff := cmp.Diff(left, want); diff != "" { // the miss is gone
					t.Errorf("cache (-got +want):\n%s", diff)
				}
				return
			}
			text, err := os.ReadFile(filepath.Join(dir, key{id: id, kind: buildid.Debug}.missedByPath()))
			if err != nil || strings.Contains(string(text), "secret") || strings.Count(string(text), "\n") != 1+len(strings.Fields(tt.servers))/2 {
				t.Errorf("got %v, %q; want a line for each server", err, text)
			}
		})
	}
}

// Each answer must be believed for its own time: a later answer of another server must not prolong
// it.
func TestAnswersOfServersExpireOneByOne(t *testing.T) {
	t.Parallel()
	id := testID(1)
	old, young := serve(t, status(404)), serve(t, status(404))
	dir := filepath.Join(t.TempDir(), "cache")
	now := time.Now()
	k := key{id: id, kind: buildid.Debug}
	newCache(dir).rememberMiss(k, []serverMiss{{old.URL, now.Add(-11 * time.Minute)}, {young.URL, now.Add(-9 * time.Minute)}})
	c := newClient(t, Options{CacheDir: dir}, old.URL, young.URL)
	if _, _, err := find(t, c, buildid.Query{ID: id, Kind: buildid.Alt}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if len(old.requests()) != 1 || len(young.requests()) != 0 {
		t.Errorf("got %d and %d requests, want 1 and 0", len(old.requests()), len(young.requests()))
	}
	root, err := c.cache.open()
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	ages := map[string]time.Duration{}
	for _, m := range missedBy(root, k, now) {
		ages[m.server] = now.Sub(m.at).Round(time.Minute)
	}
	if diff := cmp.Diff(ages, map[string]time.Duration{old.URL: 0, young.URL: 9 * time.Minute}); diff != "" {
		t.Errorf("ages (-got +want):\n%s", diff)
	}
}

// A miss without a usable record of servers must be believed for every server, as by elfutils. The
// reason must name no server.
func TestMissesOfUnknownServers(t *testing.T) {
	t.Parallel()
	id := testID(1)
	const reason = "CACHE/ID/debuginfo: the servers that another program asked had no such file T ago; this answer is kept for T more, or until this file is removed"
	for name, plant := range map[string]func(t *testing.T, path string){
		"no names": func(t *testing.T, path string) {},
		"older than the miss": func(t *testing.T, path string) {
			age(t, put(t, filepath.Dir(path), filepath.Base(path), []byte("1 http://h.invalid\n"), 0o600), time.Hour, time.Hour)
		},
		"no second": func(t *testing.T, path string) {
			put(t, filepath.Dir(path), filepath.Base(path), []byte("http://h.invalid\n"), 0o600)
		},
		"nothing": func(t *testing.T, path string) { put(t, filepath.Dir(path), filepath.Base(path), nil, 0o600) },
		"too long": func(t *testing.T, path string) {
			put(t, filepath.Dir(path), filepath.Base(path), make([]byte, maxMissedBy+1), 0o600)
		},
		"writable by others": func(t *testing.T, path string) {
			put(t, filepath.Dir(path), filepath.Base(path), []byte("1 http://h.invalid\n"), 0o666)
		},
		"a link": func(t *testing.T, path string) {
			if err := os.Symlink("/dev/zero", path); err != nil {
				t.Fatal(err)
			}
		},
	} {
		s := serve(t, status(404))
		dir := t.TempDir()
		k := key{id: id, kind: buildid.Debug}
		age(t, put(t, dir, k.path(), nil, 0o644), time.Minute, time.Minute)
		plant(t, filepath.Join(dir, k.missedByPath()))
		_, notes, err := find(t, newClient(t, Options{CacheDir: dir}, s.URL), buildid.Query{ID: id, Kind: buildid.Alt})
		for i := range notes {
			notes[i] = durations.ReplaceAllString(notes[i], "$1 T$2")
		}
		if diff := cmp.Diff(notes, []string{reason}); diff != "" || !errors.Is(err, fs.ErrNotExist) || len(s.requests()) > 0 {
			t.Errorf("%s: %v, %d requests, notes (-got +want):\n%s", name, err, len(s.requests()), diff)
		}
	}
}

// symfilter's and elfutils' clients must believe each other's misses. elfutils' client must find a
// file that replaces a miss.
func TestMissesAreSharedWithElfutils(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "debuginfod-find")
	id := testID(1)
	none := serve(t, http.NotFound)
	holder := serve(t, has(map[string][]byte{debugPath(id): elfFile(id, 1000)}))
	elfutils := func(dir string, s *fake) (string, error) {
		cmd := exec.Command("debuginfod-find", "debuginfo", id.String())
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS="+s.URL, "DEBUGINFOD_CACHE_PATH="+dir)
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	q := buildid.Query{ID: id, Kind: buildid.Alt}

	dir := filepath.Join(t.TempDir(), "ours")
	find(t, newClient(t, Options{CacheDir: dir}, none.URL), q)
	if out, err := elfutils(dir, holder); err == nil || len(holder.requests()) != 0 {
		t.Errorf("elfutils' client: got %q with %d requests, want our miss", out, len(holder.requests()))
	}
	if _, notes, err := find(t, newClient(t, Options{CacheDir: dir}, holder.URL), q); err != nil {
		t.Errorf("got %v, %q", err, notes)
	}
	path := filepath.Join(dir, id.String(), "debuginfo")
	if out, err := elfutils(dir, none); err != nil || out != path {
		t.Errorf("elfutils' client: got %q, %v; want %s", out, err, path)
	}

	dir = filepath.Join(t.TempDir(), "theirs")
	if out, err := elfutils(dir, none); err == nil {
		t.Fatalf("got %q", out)
	}
	before := len(none.requests())
	_, notes, err := find(t, newClient(t, Options{CacheDir: dir}, none.URL), q)
	if !errors.Is(err, fs.ErrNotExist) || len(none.requests()) != before || !strings.Contains(strings.Join(notes, "\n"), "that another program asked") {
		t.Errorf("got %v, %q after %d requests; want elfutils' miss", err, notes, len(none.requests())-before)
	}
}
