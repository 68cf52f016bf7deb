package daemon

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

const crash = "before\n{{{reset}}}\n{{{module:0:libledger.so:elf:aabbccdd}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{bt:0:0x1004:pc}}}\nafter\n"

var noLog = slog.New(slog.DiscardHandler)

// configuration parses text, with DIR replaced by dir.
func configuration(t *testing.T, dir, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(strings.ReplaceAll(text, "DIR", dir)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// started returns a daemon that runs until the end of the test, or until stop is called. stop
// returns the error of Run.
func started(t *testing.T, c *Config, o Options) (d *Daemon, stop func() error) {
	t.Helper()
	o.Log = noLog
	d, err := New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	ended := false
	stop = func() error {
		if ended {
			return nil
		}
		ended = true
		cancel()
		return <-done
	}
	t.Cleanup(func() { stop() })
	return d, stop
}

// await waits until the file has this content.
func await(t *testing.T, path, want string) {
	t.Helper()
	var got []byte
	if !testenv.Wait(func() bool { got, _ = os.ReadFile(path); return string(got) == want }) {
		t.Fatalf("%s: got %q, want %q", path, got, want)
	}
}

func TestStandardInputIsFiltered(t *testing.T) {
	dir := t.TempDir()
	c := configuration(t, dir, `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  all: {input: {stdin: true}, output: {file: DIR/out.log}}
`)
	started(t, c, Options{Stdin: strings.NewReader(crash)})
	await(t, filepath.Join(dir, "out.log"), "before\n[[[ELF module #0x0 \"libledger.so\"; BuildID=aabbccdd [0x1000-0x1fff](rx)]]]\n"+
		"    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\n")
}

func TestReloadsKeepTheContextOfAStream(t *testing.T) {
	dir := t.TempDir()
	text := `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  all: {input: {stdin: true}, filter: {module_lines: none}, output: {file: DIR/first.log}}
`
	r, w := io.Pipe()
	d, stop := started(t, configuration(t, dir, text), Options{Stdin: r})
	module, frames, _ := strings.Cut(crash, "{{{bt")
	io.WriteString(w, module)
	await(t, filepath.Join(dir, "first.log"), "before\n")
	if err := d.Reload(configuration(t, dir, strings.ReplaceAll(text, "first.log", "second.log"))); err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "{{{bt"+frames)
	await(t, filepath.Join(dir, "second.log"), "    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\n")
	broken := configuration(t, dir, strings.ReplaceAll(text, "DIR/first.log", "DIR/none/second.log"))
	if err := d.Reload(broken); err == nil {
		t.Error("an output in a folder that does not exist is taken")
	}
	io.WriteString(w, "last\n")
	w.Close()
	await(t, filepath.Join(dir, "second.log"), "    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\nlast\n")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestFilesAreFollowedOverARestart(t *testing.T) {
	dir := t.TempDir()
	c := configuration(t, dir, `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
state: DIR/state
pipelines:
  app: {input: {files: [DIR/*.in]}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`)
	in := filepath.Join(dir, "app.in")
	module, frames, _ := strings.Cut(crash, "{{{bt")
	if err := os.WriteFile(in, []byte(module), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stop := started(t, c, Options{})
	await(t, filepath.Join(dir, "out.log"), "before\n")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(in, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(f, "{{{bt"+frames)
	f.Close()
	started(t, c, Options{})
	await(t, filepath.Join(dir, "out.log"), "before\n    #0    0x0000000000001004 (libledger.so+0x4) (BuildId: aabbccdd)\nafter\n")
}
