//go:build linux

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// What compilers, tools and crashing programs printed and wrote is recorded, so that make test
// needs none of them: testdata/recordings has a file for each test, which lists its commands, and
// the files that they wrote by their hashes. With TEST_REAL=1 (make test-real) the programs run;
// TEST_REAL=record (make recordings) writes down what they do. A test that waits for a live
// program, or whose files are too large, is in testdata/real.txt, and runs with TEST_REAL only.

const (
	recordings = "testdata/recordings"
	// of a compressed file; programs with a sanitizer of clang in them are larger
	maxRecordedFile = 100 << 10
	maxRecordedRaw  = 1 << 20 // of one before it is compressed
)

// A recordedCommand is a command that a test ran. Folders of tests are written ${NAME}/NUMBER.
type recordedCommand struct {
	Argv   []string
	Env    []string       `json:",omitempty"` // beyond that of the tests
	Stdin  string         `json:",omitempty"` // hash
	Exit   int            `json:",omitempty"` // -1: ended by a signal
	Stdout string         `json:",omitempty"`
	Stderr string         `json:",omitempty"`
	Files  []recordedFile `json:",omitempty"` // written by the command
}

// A recordedFile is in testdata/recordings/files, under its hash.
type recordedFile struct {
	Path, Hash string
	Mode       fs.FileMode
}

// key identifies what a command was asked.
func (c *recordedCommand) key() string {
	return strings.Join(slices.Concat(c.Argv, []string{"<" + c.Stdin}, c.Env), "\x00")
}

// A recorder replays commands, or records them.
type recorder struct {
	real, record bool

	mu       sync.Mutex
	commands map[string][]*recordedCommand // by key, in the order in which they ran
	used     map[string]int                // of commands
	tests    map[string][]*recordedCommand // by test; of this run if record is set
	live     map[string]bool               // tests in real.txt
	environ  []string
}

// producers is what the tests of this package use.
var producers = recorder{real: os.Getenv("TEST_REAL") != "" || fuzztest.Long(), record: os.Getenv("TEST_REAL") == "record"}

// load reads the recordings, and remembers the environment of the tests.
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
		var commands []*recordedCommand
		if err := unmarshalFile(path, &commands); err != nil {
			return err
		}
		r.tests[strings.TrimSuffix(filepath.Base(path), ".json")] = commands
		for _, c := range commands {
			r.commands[c.key()] = append(r.commands[c.key()], c)
		}
	}
	return err
}

func unmarshalFile(path string, to any) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	return err
}

// always are programs that every machine has which runs make test.
var always = []string{"go", "git", "make", "sh", "bash", "tar", "gzip", "cat", "env", "sha256sum", "unshare", "mount", "chroot", "dmesg"}

// isAlways reports whether part needs no recording: a file of the system, or a program.
func isAlways(part string) bool {
	return slices.Contains(always, filepath.Base(part)) || part == command || strings.HasSuffix(part, "/symfilterd")
}

// need skips a test that needs programs which are neither here nor recorded. It reports whether the
// programs run.
func (r *recorder) need(t testing.TB, parts ...string) {
	t.Helper()
	parts = slices.DeleteFunc(slices.Clone(parts), isAlways)
	if len(parts) == 0 {
		return
	}
	test := testOf(t)
	r.mu.Lock()
	_, has := r.tests[test]
	live := r.live[test]
	if r.record && !live && !has {
		r.tests[test] = nil
	}
	r.mu.Unlock()
	switch {
	case r.real:
		testenv.Need(t, parts...)
	case live:
		t.Skipf("make test-real runs this test: it uses %s", strings.Join(parts, ", "))
	case !has:
		t.Fatalf("%s uses %s, and is neither recorded (make recordings) nor in testdata/real.txt", test, strings.Join(parts, ", "))
	}
}

// testOf returns the name of the test that t, or one of its parents, is.
func testOf(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

// replays reports whether the commands of a test are replayed.
func (r *recorder) replays(t testing.TB) bool { return !r.real && !r.isLive(t) }

// do runs cmd, or replays it, and returns its outputs. They are one if combined is set. The error
// is an *exec.ExitError, or nil.
func (r *recorder) do(t testing.TB, cmd *exec.Cmd, stdin []byte, combined bool) (stdout, stderr []byte, err error) {
	t.Helper()
	if isAlways(cmd.Args[0]) || !r.record && !r.replays(t) || r.isLive(t) {
		return runCommand(cmd, stdin, combined)
	}
	if cmd.Stdin != nil {
		if stdin, err = io.ReadAll(cmd.Stdin); err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = nil
	}
	nameFolders(t)
	c := &recordedCommand{Stdin: inputHash(stdin)}
	for _, arg := range cmd.Args {
		c.Argv = append(c.Argv, fold(arg))
	}
	for _, v := range cmd.Env {
		if !slices.Contains(r.environ, v) && !strings.HasPrefix(v, "PWD=") {
			c.Env = append(c.Env, fold(v))
		}
	}
	if !r.record {
		stdout, stderr, err = r.replay(t, c)
		if cmd.Stderr != nil {
			cmd.Stderr.Write(stderr)
		}
		return stdout, stderr, err
	}
	before := listFolders(cmd)
	stdout, stderr, cmdErr := runCommand(cmd, stdin, combined)
	c.Stdout, c.Stderr = r.keepText(t, stdout), r.keepText(t, stderr)
	var exit *exec.ExitError
	if errors.As(cmdErr, &exit) {
		c.Exit = exit.ExitCode()
	} else if cmdErr != nil {
		t.Fatal(cmdErr)
	}
	after := listFolders(cmd)
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if info, there := before[path]; there && os.SameFile(info, after[path]) && info.ModTime().Equal(after[path].ModTime()) && info.Size() == after[path].Size() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > maxRecordedRaw {
			r.drop(t)
			return stdout, stderr, cmdErr
		}
		c.Files = append(c.Files, recordedFile{Path: fold(path), Mode: after[path].Mode().Perm(), Hash: r.keep(t, data)})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.live[testOf(t)] {
		r.tests[testOf(t)] = append(r.tests[testOf(t)], c)
	}
	return stdout, stderr, cmdErr
}

// drop stops to record the test, whose files are too large.
func (r *recorder) drop(t testing.TB) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[testOf(t)] = true
	delete(r.tests, testOf(t))
	t.Logf("%s cannot be recorded: its files are too large", testOf(t))
}

// isLive reports whether the test is not recorded.
func (r *recorder) isLive(t testing.TB) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[testOf(t)]
}

// runCommand runs a command to its end. It reads stdin, unless it has other input, and its errors
// go where it says, too.
func runCommand(cmd *exec.Cmd, stdin []byte, combined bool) (stdout, stderr []byte, err error) {
	var out, errs bytes.Buffer
	if cmd.Stdin == nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	cmd.Stdout = &out
	switch {
	case combined:
		cmd.Stderr = &out
	case cmd.Stderr != nil:
		cmd.Stderr = io.MultiWriter(&errs, cmd.Stderr)
	default:
		cmd.Stderr = &errs
	}
	err = cmd.Run()
	return out.Bytes(), errs.Bytes(), err
}

// replay does what c did.
func (r *recorder) replay(t testing.TB, c *recordedCommand) (stdout, stderr []byte, err error) {
	t.Helper()
	key := c.key()
	r.mu.Lock()
	same := r.commands[key]
	n := r.used[key]
	r.used[key]++
	r.mu.Unlock()
	if len(same) == 0 {
		t.Fatalf("this command is not recorded, make recordings does it: %q", slices.Concat(c.Env, c.Argv))
	}
	c = same[min(n, len(same)-1)]
	for _, f := range c.Files {
		path := unfold(f.Path)
		os.Remove(path)
		if err := os.WriteFile(path, r.content(t, f.Hash), f.Mode); err != nil {
			t.Fatal(err)
		}
	}
	if c.Exit != 0 {
		err = exitError(t, c.Exit)
	}
	return r.text(t, c.Stdout), r.text(t, c.Stderr), err
}

// exitError returns the error of a command that ends with a code, or by a signal.
func exitError(t testing.TB, code int) error {
	script := "exit " + strconv.Itoa(code)
	if code < 0 {
		script = "kill -ABRT $$"
	}
	err := exec.Command("sh", "-c", script).Run()
	if err == nil {
		t.Fatalf("sh -c %q succeeds", script)
	}
	return err
}

// A folder of a test has a random number: /tmp/TestName123456/001.
var tempFolder = regexp.MustCompile(`^/(Test[^/]*?)\d+/(\d{3})`)

// folders are those of this run by their names without the number, and tests the names that Go
// gives them.
var folders, folderTests sync.Map

// nameFolders has the folders of t and of its parents known, whose names may end in digits.
func nameFolders(t testing.TB) {
	for name := t.Name(); ; name = name[:strings.LastIndexByte(name, '/')] {
		folderTests.Store(strings.Map(func(r rune) rune {
			if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()+,-.=@^_{}~ ", r) {
				return -1
			}
			return r
		}, name), true)
		if !strings.Contains(name, "/") {
			return
		}
	}
}

// folderName returns the name of the folder of a test at the beginning of path, and the folder.
func folderName(path string) (name, folder string) {
	m := tempFolder.FindStringSubmatch(path)
	if m == nil {
		return "", ""
	}
	base, _, _ := strings.Cut(path[1:], "/")
	for n := len(base) - 1; n >= len(m[1]); n-- {
		if _, known := folderTests.Load(base[:n]); known {
			return base[:n] + "/" + m[2], m[0]
		}
	}
	return m[1] + "/" + m[2], m[0]
}

// fold replaces the folders of tests in a text.
func fold(s string) string {
	s = strings.ReplaceAll(s, filepath.Dir(command), "${MAIN}")
	temp := os.TempDir()
	var b strings.Builder
	for {
		i := strings.Index(s, temp+"/Test")
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		s = s[i+len(temp):]
		if name, folder := folderName(s); name != "" {
			folders.Store(name, temp+folder)
			b.WriteString("${" + name + "}")
			s = s[len(folder):]
		} else {
			b.WriteString(temp)
		}
	}
}

var foldedFolder = regexp.MustCompile(`\$\{(MAIN|Test[^/\n]*/\d{3})\}`)

// unfold is the inverse of fold. The folders must have been in a command before.
func unfold(s string) string {
	return foldedFolder.ReplaceAllStringFunc(s, func(name string) string {
		name = name[2 : len(name)-1]
		if name == "MAIN" {
			return filepath.Dir(command)
		}
		if path, ok := folders.Load(name); ok {
			return path.(string)
		}
		return "/no/folder/" + name
	})
}

// listFolders returns the files in the folders of tests that a command names, or in which it runs.
func listFolders(cmd *exec.Cmd) map[string]fs.FileInfo {
	all := make(map[string]fs.FileInfo)
	roots := make(map[string]bool)
	temp := os.TempDir()
	main := filepath.Dir(command)
	for _, arg := range slices.Concat(cmd.Args, cmd.Env, []string{cmd.Dir}) {
		for rest := arg; ; rest = rest[1:] {
			i := strings.Index(rest, temp+"/")
			if i < 0 {
				break
			}
			rest = rest[i:]
			if folder := tempFolder.FindString(rest[len(temp):]); folder != "" {
				roots[temp+folder] = true
				// twins that tests share
			} else if shared, ok := strings.CutPrefix(rest, main+"/"); ok {
				if name, _, isFolder := strings.Cut(shared, "/"); isFolder && name != "checkout" && name != "cache" {
					roots[filepath.Join(main, name)] = true
				}
			}
		}
	}
	for root := range roots {
		filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				if info, err := d.Info(); err == nil {
					all[path] = info
				}
			}
			return nil
		})
	}
	return all
}

// inputHash returns the hash of what stdin has without the names of folders, or "" if it is empty.
func inputHash(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(fold(string(data))))
	return hex.EncodeToString(sum[:8])
}

// Longer texts, and those that are not of UTF-8, are files.
const maxRecordedText = 2000

// keepText records a text, and text returns it.
func (r *recorder) keepText(t testing.TB, data []byte) string {
	s := fold(string(data))
	if len(s) <= maxRecordedText && utf8.ValidString(s) {
		return s
	}
	return "file " + r.keep(t, data)
}

func (r *recorder) text(t testing.TB, s string) []byte {
	if hash, isFile := strings.CutPrefix(s, "file "); isFile {
		return r.content(t, hash)
	}
	return []byte(unfold(s))
}

// keep records a file, and content returns it. Both treat names of folders as texts do, if it is
// text.
func (r *recorder) keep(t testing.TB, data []byte) (hash string) {
	if utf8.Valid(data) {
		data = []byte(fold(string(data)))
	} else {
		data = bytes.ReplaceAll(data, []byte(filepath.Dir(command)), []byte(mainFolder+strings.Repeat("0", 10)))
	}
	sum := sha256.Sum256(data)
	hash = hex.EncodeToString(sum[:8])
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	packed := w.EncodeAll(data, nil)
	w.Close()
	if len(packed) > maxRecordedFile {
		r.drop(t)
		return ""
	}
	path := filepath.Join(recordings, "files", hash+".zst")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed, 0o644); err != nil {
		t.Fatal(err)
	}
	return hash
}

func (r *recorder) content(t testing.TB, hash string) []byte {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(recordings, "files", hash+".zst"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	data, err := d.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	if utf8.Valid(data) {
		return []byte(unfold(string(data)))
	}
	return bytes.ReplaceAll(data, []byte(mainFolder+strings.Repeat("0", 10)), []byte(filepath.Dir(command)))
}

// save writes the recordings of a run.
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

// combined is cmd.CombinedOutput, and output is cmd.Output, of a program that is recorded.
func (r *recorder) combined(t testing.TB, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	out, _, err := r.do(t, cmd, nil, true)
	return out, err
}

func (r *recorder) output(t testing.TB, cmd *exec.Cmd) ([]byte, error) {
	t.Helper()
	out, _, err := r.do(t, cmd, nil, false)
	return out, err
}
