package debuginfod

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// put writes a file of a cache, with its directory, as elfutils does.
func put(t testing.TB, dir, name string, body []byte, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCacheNeedsNoServer(t *testing.T) {
	dir := t.TempDir()
	debug, exec, both := testID(1), testID(2), testID(3)
	put(t, dir, debug.String()+"/debuginfo", elfFile(debug, 1000), 0o400)
	put(t, dir, exec.String()+"/executable", elfFile(exec, 2000), 0o400)
	put(t, dir, both.String()+"/debuginfo", elfFile(both, 3000), 0o400)
	put(t, dir, both.String()+"/executable", elfFile(both, 4000), 0o400)
	tests := []struct {
		id   buildid.ID
		kind buildid.Kind
		want int // size of the file; 0 if there is none
	}{
		{debug, buildid.Debug, 1000}, {debug, buildid.Executable, 0}, {debug, buildid.Alt, 1000},
		{exec, buildid.Debug, 2000}, {exec, buildid.Executable, 2000}, {exec, buildid.Alt, 0},
		{both, buildid.Debug, 3000}, {both, buildid.Executable, 4000},
		{testID(4), buildid.Debug, 0},
	}
	offline := newClient(t, Options{CacheDir: dir, Offline: true}, "http://h.invalid")
	for _, tt := range tests {
		q := buildid.Query{ID: tt.id, Kind: tt.kind}
		for _, finder := range []string{"cache", "offline"} {
			find := newCache(dir).find
			if finder == "offline" {
				find = offline.Find
			}
			size := 0
			f, err := find(t.Context(), q, nil)
			if err == nil {
				size = int(f.Size())
				if f.OS() == nil || !strings.HasPrefix(f.Path(), dir) || f.Where() != "debuginfod cache" {
					t.Errorf("%v: got %v, %q, %q", q, f.OS(), f.Path(), f.Where())
				}
				f.Close()
			}
			if size != tt.want || size == 0 && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s, kind %d of %s: got %d bytes, %v; want %d", finder, tt.kind, tt.id, size, err, tt.want)
			}
		}
	}
}

func TestMissesOfTheCacheExpire(t *testing.T) {
	t.Parallel()
	id := testID(1)
	file := elfFile(id, 1000)
	s := serve(t, has(map[string][]byte{debugPath(id): file}))
	tests := []struct {
		age     time.Duration
		control string // content of cache_miss_s; no file if empty
		found   bool
	}{
		{0, "", false},
		{9 * time.Minute, "", false},
		{11 * time.Minute, "", true},
		{time.Minute, "30", true},
		{time.Minute, "90\n", false},
		{time.Minute, "0", true},
		{11 * time.Minute, "much", true},
		{9 * time.Minute, "much", false},
		{-time.Hour, "", false}, // the clock was set back
	}
	for _, tt := range tests {
		dir := t.TempDir()
		path := put(t, dir, id.String()+"/debuginfo", nil, 0o644)
		if tt.control != "" {
			put(t, dir, missFile, []byte(tt.control), 0o644)
		}
		then := time.Now().Add(-tt.age)
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
		got, notes, err := find(t, newClient(t, Options{CacheDir: dir}, s.URL), buildid.Query{ID: id, Kind: buildid.Alt})
		if found := bytes.Equal(got, file); found != tt.found || !found && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a miss of %v ago with %q: found %v, %v, %q; want %v", tt.age, tt.control, found, err, notes, tt.found)
		}
	}
}

// If the server confirms an expired miss, the miss must be believed for the full time again.
func TestMissIsRenewed(t *testing.T) {
	t.Parallel()
	id := testID(1)
	dir := t.TempDir()
	path := put(t, dir, id.String()+"/debuginfo", nil, 0o644)
	age(t, path, time.Hour, time.Hour)
	s := serve(t, has(nil))
	q := buildid.Query{ID: id, Kind: buildid.Alt}
	for range 3 {
		c := newClient(t, Options{CacheDir: dir}, s.URL)
		if _, _, err := find(t, c, q); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v, want a miss", err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("got %v of %v, %v; want a new miss", info.Size(), info.ModTime(), err)
	}
	if got := len(s.requests()); got != 1 {
		t.Errorf("got %d requests, want 1", got)
	}
}

func TestSectionsEnd(t *testing.T) {
	header := func(class, data byte, off uint64, each, count uint16) []byte {
		b := make([]byte, 64)
		copy(b, elfMagic)
		b[4], b[5] = class, data
		var order binary.ByteOrder = binary.LittleEndian
		if data == 2 {
			order = binary.BigEndian
		}
		if class == 1 {
			order.PutUint32(b[32:], uint32(off))
			order.PutUint16(b[46:], each)
			order.PutUint16(b[48:], count)
			return b[:52]
		}
		order.PutUint64(b[40:], off)
		order.PutUint16(b[58:], each)
		order.PutUint16(b[60:], count)
		return b
	}
	tests := []struct {
		name string
		h    []byte
		end  uint64
		ok   bool
	}{
		{"64 bits", header(2, 1, 1000, 64, 3), 1192, true},
		{"64 bits, big endian", header(2, 2, 1000, 64, 3), 1192, true},
		{"32 bits", header(1, 1, 1000, 40, 3), 1120, true},
		{"32 bits, big endian", header(1, 2, 1000, 40, 3), 1120, true},
		{"many sections", header(2, 1, 1000, 64, 0), 1064, true},
		{"no sections", header(2, 1, 0, 0, 0), 0, true},
		{"beyond 2^64", header(2, 1, 1<<64-100, 64, 3), 92, false},
		{"of no class", header(3, 1, 1000, 64, 3), 0, false},
		{"cut off", header(2, 1, 1000, 64, 3)[:63], 0, false},
		{"nothing", nil, 0, false},
	}
	for _, tt := range tests {
		if end, ok := sectionsEnd(tt.h); end != tt.end || ok != tt.ok {
			t.Errorf("%s: got %d, %v; want %d, %v", tt.name, end, ok, tt.end, tt.ok)
		}
	}
}

// If a search finds an ELF file of another build in the cache, it must ask the servers. The file or
// the miss from the servers must replace the wrong file. A search without servers must not remove
// it.
func TestWrongFileOfTheCacheIsRemoved(t *testing.T) {
	t.Parallel()
	id := testID(1)
	dir := t.TempDir()
	path := put(t, dir, id.String()+"/debuginfo", elfFile(testID(2), 0), 0o400)
	if _, err := newCache(dir).find(t.Context(), buildid.Query{ID: id}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a server: got %v, want a miss", err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("without a server it goes: %v", err)
	}
	c := newClient(t, Options{CacheDir: dir}, serve(t, has(nil)).URL)
	_, notes, err := find(t, c, buildid.Query{ID: id, Kind: buildid.Alt}, c.Servers()[0].URL, "S")
	want := []string{"CACHE/ID/debuginfo: not used: another build, " + testID(2).String() + "; requested again", "S: 404: no such file"}
	if diff := cmp.Diff(notes, want); diff != "" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, notes (-got +want):\n%s", err, diff)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Errorf("got %v, %v; want the empty file of a miss", info, err)
	}
}

func TestCacheDirOfTheEnvironment(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{}
	getenv := func(name string) string { return env[name] }
	check := func(want string) {
		t.Helper()
		if got := cacheDir(getenv); got != want {
			t.Errorf("%v: got %q, want %q", env, got, want)
		}
	}
	check("")
	env["HOME"] = home
	check(filepath.Join(home, ".cache", "debuginfod_client"))
	env["XDG_CACHE_HOME"] = "/xdg"
	check(filepath.Join("/xdg", "debuginfod_client"))
	old := filepath.Join(home, ".debuginfod_client_cache")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	check(old)
	env["DEBUGINFOD_CACHE_PATH"] = "/cache"
	check("/cache")
}

func TestControlFilesAreMadeWithElfutilsDefaults(t *testing.T) {
	t.Parallel()
	id := testID(1)
	s := serve(t, has(map[string][]byte{debugPath(id): elfFile(id, 0)}))
	c := newClient(t, Options{}, s.URL)
	find(t, c, buildid.Query{ID: id})
	find(t, c, buildid.Query{ID: testID(2)})
	c.Close() // cleaning continues after the answer
	put(t, c.cache.dir, cleanIntervalFile, []byte("0"), 0o644)
	if err := c.cache.clean(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{cleanIntervalFile: "0", maxUnusedFile: "604800", missFile: "600"} {
		if got, err := os.ReadFile(filepath.Join(c.cache.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestParseSeconds(t *testing.T) {
	tests := []struct {
		text string
		want time.Duration
		ok   bool
	}{
		{"600", 10 * time.Minute, true}, {" 600\n", 10 * time.Minute, true}, {"600s", 10 * time.Minute, true}, {"+60", time.Minute, true},
		{"-1", 0, true}, {"0", 0, true}, {"", 0, false}, {"ten", 0, false}, {"-", 0, false},
		{"99999999999999999999", 100 * 365 * 24 * time.Hour, true},
	}
	for _, tt := range tests {
		if got, ok := parseSeconds(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%q: got %v, %v; want %v, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

// age sets the last read and the last change of a file to these durations ago.
func age(t testing.TB, path string, read, changed time.Duration) {
	t.Helper()
	now := time.Now()
	if err := os.Chtimes(path, now.Add(-read), now.Add(-changed)); err != nil {
		t.Fatal(err)
	}
}

// tree returns the names of the files in the cache, without the control files.
func tree(t testing.TB, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && name != "." && !strings.HasSuffix(name, "_s") && name != lockName {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestTrimRemovesWhatWasReadLeastRecently(t *testing.T) {
	t.Parallel()
	id := testID(9)
	s := serve(t, has(map[string][]byte{debugPath(id): elfFile(id, 1000)}))
	dir := filepath.Join(t.TempDir(), "cache")
	for i, hours := range []time.Duration{3, 5, 1, 4, 2} {
		age(t, put(t, dir, testID(i+1).String()+"/debuginfo", elfFile(testID(i+1), 1000), 0o400), hours*time.Hour, 9*time.Hour)
	}
	put(t, dir, "notes.txt", make([]byte, 5000), 0o600)
	c := newClient(t, Options{CacheDir: dir, CacheMax: 4000}, s.URL)
	find(t, c, buildid.Query{ID: id})
	c.running.Wait() // Close would also end the trimming
	var want []string
	for _, i := range []int{1, 3, 5, 9} {
		want = append(want, testID(i).String(), testID(i).String()+"/debuginfo")
	}
	if diff := cmp.Diff(tree(t, dir), append(want, "notes.txt")); diff != "" {
		t.Error("cache (-got +want):\n" + diff)
	}
}
