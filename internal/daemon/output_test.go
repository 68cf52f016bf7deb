package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// openedFile opens the file output of c, with DIR replaced by dir.
func openedFile(t *testing.T, c Output, dir string) *fileOutput {
	t.Helper()
	c.File = strings.ReplaceAll(c.File, "DIR", dir)
	o, err := newFileOutput(c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.close() })
	return o
}

// put writes text, and fails the test after an error.
func put(t *testing.T, o output, from *session, text string) {
	t.Helper()
	if n, err := o.write(t.Context(), from, []byte(text)); n != len(text) || err != nil {
		t.Fatalf("%q: %d bytes, %v", text, n, err)
	}
}

// contents returns the contents of the files in a folder, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = string(b)
	}
	return all
}

// The test writes a line, then makes a step such as a rotation, and writes another line. Each line
// must be in the file that had the name at that time.
func TestFilesAreAppendedToUnderTheirName(t *testing.T) {
	for name, test := range map[string]struct {
		before string
		step   func(dir string, o *fileOutput) error
		want   map[string]string
	}{
		"nothing":   {"", func(string, *fileOutput) error { return nil }, map[string]string{"out": "one\ntwo\n"}},
		"old lines": {"old\n", func(string, *fileOutput) error { return nil }, map[string]string{"out": "old\none\ntwo\n"}},
		"torn line": {"old\nto", func(string, *fileOutput) error { return nil }, map[string]string{"out": "old\nto\none\ntwo\n"}},
		"hang-up":   {"", func(_ string, o *fileOutput) error { return o.reopen() }, map[string]string{"out": "one\ntwo\n"}},
		"rotated": {"", func(dir string, o *fileOutput) error {
			return errors.Join(os.Rename(dir+"/out", dir+"/out.1"), o.reopen())
		}, map[string]string{"out.1": "one\n", "out": "two\n"}},
		"rotated without a hang-up": {"", func(dir string, _ *fileOutput) error { return os.Rename(dir+"/out", dir+"/out.1") },
			map[string]string{"out.1": "one\n", "out": "two\n"}},
		"rotated and made anew": {"", func(dir string, _ *fileOutput) error {
			return errors.Join(os.Rename(dir+"/out", dir+"/out.1"), os.WriteFile(dir+"/out", []byte("new\nto"), 0o600))
		}, map[string]string{"out.1": "one\n", "out": "new\nto\ntwo\n"}},
		"removed":   {"", func(dir string, _ *fileOutput) error { return os.Remove(dir + "/out") }, map[string]string{"out": "two\n"}},
		"truncated": {"", func(dir string, _ *fileOutput) error { return os.Truncate(dir+"/out", 0) }, map[string]string{"out": "two\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				if test.before != "" {
					if err := os.WriteFile(filepath.Join(dir, "out"), []byte(test.before), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				o := openedFile(t, Output{File: "DIR/out"}, dir)
				from := new(session)
				put(t, o, from, "one\n")
				if err := test.step(dir, o); err != nil {
					t.Fatal(err)
				}
				time.Sleep(checkEvery)
				put(t, o, from, "two\n")
				if diff := cmp.Diff(test.want, contents(t, dir)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestPeersHaveHarmlessFiles(t *testing.T) {
	dir := t.TempDir()
	o := openedFile(t, Output{File: "DIR/at {peer}.log", OpenFiles: 2}, dir)
	long := strings.Repeat("é", 300)
	for range 2 {
		for _, peer := range []string{"10.0.0.1", "../../etc/passwd", "..", "", "a\x00b\x1bc\nd", "\xff", long} {
			put(t, o, &session{peer: peer}, "line\n")
			if len(o.files) > 2 {
				t.Fatalf("%d files are open", len(o.files))
			}
		}
	}
	want := map[string]string{}
	for _, name := range []string{"10.0.0.1", "_._.._etc_passwd", "_.", "unknown", "a_b_c_d", "_", strings.Repeat("é", (255-len("at .log"))/2)} {
		want["at "+name+".log"] = "line\nline\n"
	}
	if diff := cmp.Diff(want, contents(t, dir)); diff != "" {
		t.Error(diff)
	}
	for _, path := range []string{dir + "/{peer}/log", dir + "/{peer}{peer}", dir + "/none/log", dir + "/", dir} {
		if _, err := newFileOutput(Output{File: path}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s is taken", strings.TrimPrefix(path, dir))
		}
	}
}

// Once the removed folder exists again, the line must be written exactly once.
func TestFailingFilesAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "logs")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		o := openedFile(t, Output{File: "DIR/out"}, dir)
		put(t, o, new(session), "one\n")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(checkEvery)
		done := make(chan struct{})
		go func() { put(t, o, new(session), "two\n"); close(done) }()
		time.Sleep(time.Minute)
		if failed, err := o.attempts(); failed < 10 || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%d errors, last %v", failed, err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		<-done
		if diff := cmp.Diff(map[string]string{"out": "two\n"}, contents(t, dir)); diff != "" {
			t.Error(diff)
		}
		if _, err := o.attempts(); err != nil {
			t.Errorf("after it works again: %v", err)
		}
	})
}

func TestFullDevicesAreLeftWhenTheyAreReplaced(t *testing.T) {
	testenv.Need(t, "/dev/full")
	full, err := newFileOutput(Output{File: "/dev/full"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer full.close()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if n, err := full.write(ctx, new(session), []byte("line\n")); n != 0 || !errors.Is(err, errReplaced) {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A stream with an unfinished line must delay other streams, even if the file is rotated within the
// line. If the stream has ended or is silent, the output must end its line.
func TestStreamsShareAFileByWholeLines(t *testing.T) {
	goOn := func(t *testing.T, o *fileOutput, from *session) {
		put(t, o, from, " of a")
		time.Sleep(100 * time.Millisecond)
		put(t, o, from, " line\n")
	}
	rotate := func(t *testing.T, o *fileOutput) {
		if err := os.Rename(filepath.Join(o.dir, "out"), filepath.Join(o.dir, "out.1")); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		then func(t *testing.T, o *fileOutput, from *session)
		want map[string]string
	}{
		"goes on":   {goOn, map[string]string{"out": "begin of a line\nother\n"}},
		"is silent": {func(*testing.T, *fileOutput, *session) {}, map[string]string{"out": "begin\nother\n"}},
		"ends":      {func(_ *testing.T, _ *fileOutput, from *session) { from.over.Store(true) }, map[string]string{"out": "begin\nother\n"}},
		"goes on after a rotation": {func(t *testing.T, o *fileOutput, from *session) {
			rotate(t, o)
			time.Sleep(checkEvery)
			goOn(t, o, from)
		}, map[string]string{"out.1": "begin", "out": " of a line\nother\n"}},
		"goes on after a hang-up": {func(t *testing.T, o *fileOutput, from *session) {
			rotate(t, o)
			if err := o.reopen(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(checkEvery)
			goOn(t, o, from)
		}, map[string]string{"out.1": "begin", "out": " of a line\nother\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				o := openedFile(t, Output{File: "DIR/out"}, dir)
				first := new(session)
				put(t, o, first, "begin")
				done := make(chan struct{})
				go func() { put(t, o, new(session), "other\n"); close(done) }()
				time.Sleep(100 * time.Millisecond)
				test.then(t, o, first)
				<-done
				if diff := cmp.Diff(test.want, contents(t, dir)); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestUnreadStandardOutputIsLeft(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	o := newStdoutOutput(w, "", slog.New(slog.DiscardHandler))
	text := bytes.Repeat([]byte("a line that nobody reads\n"), 1<<14)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	from := new(session)
	n, err := o.write(ctx, from, text)
	if n == 0 || n == len(text) || !errors.Is(err, errReplaced) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if left, ok := o.unread(); !ok || left != int64(n) {
		t.Errorf("%d bytes are unread, %v; %d were written", left, ok, n)
	}
	go func() {
		o.write(context.Background(), from, text[n:])
		w.Close()
	}()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("got %d bytes of %d, %v", len(got), len(text), err)
	}
}
