package daemon

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A damaged checkpoint must be reported, and must not stop the pipeline. A file that is not a
// checkpoint must also stay unchanged.
func TestDamagedCheckpointsAreReported(t *testing.T) {
	const lines = "one\ntwo\n"
	for name, test := range map[string]struct {
		damage       func(state string) error
		level, text  string
		again, ready string // ready is a text in the answer of /readyz
	}{
		"cut":      {func(s string) error { return os.Truncate(s, 100) }, "WARN", "is not used: the file is cut off, or not a checkpoint; lines may be printed again", lines, ""},
		"empty":    {func(s string) error { return os.Truncate(s, 0) }, "WARN", "is not used: the file is empty", lines, ""},
		"zeros":    {func(s string) error { return errors.Join(os.Truncate(s, 0), os.Truncate(s, 1<<10)) }, "WARN", "is not used: the file is cut off, or not a checkpoint", lines, ""},
		"flipped":  {func(s string) error { return overwrite(s, 200, []byte{1}) }, "WARN", "is not used: the file is cut off, or not a checkpoint", lines, ""},
		"torn":     {func(s string) error { return appendTo(s, "symfil") }, "WARN", "is cut off at byte", "", ""},
		"random":   {func(s string) error { return overwrite(s, 0, []byte("\x8f\x03\xa7")) }, "ERROR", "not a checkpoint of symfilter, and not empty and is not changed", lines, "no checkpoint is kept: "},
		"a folder": {func(s string) error { os.Remove(s); return os.Mkdir(s, 0o700) }, "ERROR", "not a regular file but a folder", lines, "no checkpoint is kept: "},
		"a link":   {func(s string) error { os.Rename(s, s+".old"); return os.Symlink(s+".old", s) }, "ERROR", "a symbolic link", lines, "no checkpoint is kept: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, out, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "out.log"), filepath.Join(dir, "state", "all.files")
			if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
				t.Fatal(err)
			}
			c := configuration(t, dir, "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\nstate: DIR/state\n"+
				"pipelines:\n  all: {input: {files: [DIR/app.log]}, output: {file: DIR/out.log}}\n")
			_, stop := started(t, c, Options{})
			await(t, out, lines)
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if err := test.damage(state); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(state)
			log := &keptLog{}
			d, err := New(c, Options{Log: slog.New(slog.NewTextHandler(log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- d.Run(t.Context()) }()
			t.Cleanup(func() { <-done })
			if err := appendTo(path, "three\n"); err != nil {
				t.Fatal(err)
			}
			await(t, out, lines+test.again+"three\n")
			if n := len(regexp.MustCompile("level="+test.level+".*"+regexp.QuoteMeta(test.text)).FindAllString(log.text(), -1)); n != 1 {
				t.Errorf("reported %d times:\n%s", n, log.text())
			}
			if !testenv.Wait(func() bool {
				return strings.Contains(adminAnswer(t, d, "GET", "/readyz?verbose").Body.String(), test.ready)
			}) {
				t.Errorf("/readyz: %s", adminAnswer(t, d, "GET", "/readyz?verbose").Body)
			}
			if now, _ := os.ReadFile(state); test.level == "ERROR" && !bytes.Equal(now, before) {
				t.Error("the file was changed")
			}
		})
	}
}

// A keptLog collects the daemon's log.
type keptLog struct {
	mu  sync.Mutex
	all []byte
}

func (r *keptLog) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p...)
	return len(p), nil
}

func (r *keptLog) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.all)
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}

func overwrite(path string, at int64, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt(text, at)
	return err
}
