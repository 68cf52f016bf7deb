//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// Output and files of compilers, tools and crashing programs are recorded, so that make test does
// not need these programs. testdata/recordings has a file per test with its commands, and the files
// that they wrote, named by hash. With TEST_REAL=1 (make test-real) the programs run;
// TEST_REAL=record (make recordings) records them. A test that waits for a live program, or whose
// files are too large, is listed in testdata/real.txt and runs only with TEST_REAL.

const (
	recordings = "testdata/recordings"
	// size of a compressed file; programs with a sanitizer of clang are larger
	maxRecordedFile = 100 << 10
	maxRecordedRaw  = 1 << 20 // size before compression
)

// A recordedCommand is a command that a test ran. Folders of tests are written as ${NAME}/NUMBER.
type recordedCommand struct {
	Argv   []string
	Env    []string       `json:",omitempty"` // in addition to the environment of the tests
	Stdin  string         `json:",omitempty"` // hash
	Source string         `json:",omitempty"` // hash of the sources that the command compiles
	Exit   int            `json:",omitempty"` // -1: ended by a signal
	Stdout string         `json:",omitempty"`
	Stderr string         `json:",omitempty"`
	Files  []recordedFile `json:",omitempty"` // files written by the command
}

// A recordedFile is a file in testdata/recordings/files, named by its hash.
type recordedFile struct {
	Path, Hash string
	Mode       fs.FileMode
}

// key identifies a command with its inputs and environment.
func (c *recordedCommand) key() string {
	return strings.Join(slices.Concat(c.Argv, []string{"<" + c.Stdin, c.Source}, c.Env), "\x00")
}

// A recorder records or replays commands.
type recorder struct {
	real, record bool

	mu       sync.Mutex
	commands map[string][]*recordedCommand // by key, in the order of their runs
	used     map[string]int                // number of replayed commands, by key
	tests    map[string][]*recordedCommand // by test; if record is set, only this run's
	live     map[string]bool               // tests listed in real.txt
	environ  []string
}

var producers = recorder{real: os.Getenv("TEST_REAL") != "" || fuzztest.Long(), record: os.Getenv("TEST_REAL") == "record"}

// load reads the recordings and stores the environment of the tests.
func (r *recorder) load() error {
	r.environ = os.Environ()
	r.commands, r.used, r.tests, r.live = make(map[string][]*recordedCommand), make(map[string]int), make(map[string][]*recordedCommand), make(map[string]bool)
	names, err := os.ReadFile("testdata/real.txt")
	for _, name := range strings.Fields(string(names)) {
		r.live[name] = true
	}
	if r.real || err != nil {
		return err
	}
	all, err := filepath.Glob(recordings + "/*.json")
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var commands []*recordedCommand
		if err := json.Unmarshal(data, &commands); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r.tests[strings.TrimSuffix(filepath.Base(path), ".json")] = commands
		for _, c := range commands {
			r.commands[c.key()] = append(r.commands[c.key()], c)
		}
	}
	return err
}

// always lists programs that are never recorded, since every machine that runs make test has them.
var always = []string{"go", "git", "make", "sh", "bash", "tar", "gzip", "cat", "env", "sha256sum", "unshare", "mount", "chroot", "dmesg"}

// isAlways reports whether a program always runs and is never recorded: symfilter, symfilterd and
// the programs in always.
func isAlways(part string) bool {
	return slices.Contains(always, filepath.Base(part)) || part == command || strings.HasSuffix(part, "/symfilterd")
}

// need skips a test that needs live programs, unless TEST_REAL is set. It fails any other test
// without a recording.
func (r *recorder) need(t testing.TB, parts ...string) {
	t.Helper()
	parts = slices.DeleteFunc(slices.Clone(parts), isAlways)
	if len(parts) == 0 {
		return
	}
	test := testOf(t)
	r.mu.Lock()
	commands := len(r.tests[test])
	live := r.live[test]
	r.mu.Unlock()
	switch {
	case r.real:
		testenv.Need(t, parts...)
	case live:
		t.Skipf("make test-real runs this test: it uses %s", strings.Join(parts, ", "))
	case commands == 0:
		t.Fatalf("%s uses %s, and is neither recorded (make recordings) nor in testdata/real.txt", test, strings.Join(parts, ", "))
	}
}

// testOf returns the name of the top-level test of t.
func testOf(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// save writes the recordings of this run.
func (r *recorder) save() error {
	if err := os.MkdirAll(recordings, 0o755); err != nil {
		return err
	}
	for test, commands := range r.tests {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetIndent("", "\t")
		e.SetEscapeHTML(false)
		if err := e.Encode(commands); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(recordings, test+".json"), b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// Each recording and each line of real.txt must belong to an existing test, and no test may have
// both. The stored files must be exactly the files that recorded commands wrote.
func TestRecordingsAreOfTests(t *testing.T) {
	tests := make(map[string]bool)
	sources, err := filepath.Glob("*_test.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	for _, path := range sources {
		for _, m := range testFunction.FindAllStringSubmatch(readFile(t, path), -1) {
			tests[m[1]] = true
		}
	}
	for _, test := range strings.Fields(readFile(t, "testdata/real.txt")) {
		if !tests[test] {
			t.Errorf("testdata/real.txt: there is no %s", test)
		}
	}
	all, err := filepath.Glob(recordings + "/*.json")
	if err != nil || len(all) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	used := make(map[string]bool)
	for _, path := range all {
		test := strings.TrimSuffix(filepath.Base(path), ".json")
		if !tests[test] || producers.live[test] {
			t.Errorf("%s: there is no %s, or it is in testdata/real.txt, too", path, test)
		}
		var commands []*recordedCommand
		if err := json.Unmarshal([]byte(readFile(t, path)), &commands); err != nil {
			t.Fatal(err)
		}
		for _, c := range commands {
			for _, f := range c.Files {
				used[f.Hash] = true
			}
			for _, text := range []string{c.Stdout, c.Stderr} {
				if hash, isFile := strings.CutPrefix(text, "file "); isFile {
					used[hash] = true
				}
			}
		}
	}
	files, err := os.ReadDir(filepath.Join(recordings, "files"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".zst"))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), names); diff != "" {
		t.Errorf("the files of commands (-), those that are there (+):\n%s", diff)
	}
}
