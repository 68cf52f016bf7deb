package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/contextfile"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/input"
)

// After a restart, frames must be resolved with the modules logged before it, in whatever way the
// first run ended.
func TestContextsOfPipesAreKept(t *testing.T) {
	const (
		modules = "[1] {{{module:0:one.so:elf:aabb}}}\n[1] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" +
			"[2] {{{module:0:two.so:elf:ccdd}}}\n[2] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\nready\n"
		listed = "[1] [[[ELF module #0x0 \"one.so\"; BuildID=aabb [0x1000-0x1fff](rx)]]]\n" +
			"[2] [[[ELF module #0x0 \"two.so\"; BuildID=ccdd [0x1000-0x1fff](rx)]]]\nready\n"
		frames   = "[1] at {{{pc:0x1234:pc}}}\n[2] at {{{pc:0x1234:pc}}}\n"
		resolved = "[1] at one.so+0x234 (BuildId: aabb)\n[2] at two.so+0x234 (BuildId: ccdd)\n"
	)
	for name, end := range map[string]func(t *testing.T, p *process, saved func()){
		"the input ends": func(t *testing.T, p *process, _ func()) { p.in.Close() },
		"it is stopped":  func(t *testing.T, p *process, _ func()) { p.signal(t, syscall.SIGTERM) },
		"it is killed":   func(t *testing.T, p *process, saved func()) { saved(); p.Process.Kill() },
		"after a hang-up": func(t *testing.T, p *process, saved func()) {
			p.signal(t, syscall.SIGHUP)
			saved()
			p.Process.Kill()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			context := filepath.Join(t.TempDir(), "context")
			args := []string{"--quiet", "--context-file=" + context, `--process-key=^\[(\d)`}
			p := startCommand(t, detached(args...))
			p.write(t, modules)
			p.expect(t, listed)
			end(t, p, func() {
				waitUntil(t, func() bool { b, _ := os.ReadFile(context); return bytes.Contains(b, []byte("two.so")) })
			})
			p.end(t)
			again := startCommand(t, detached(args...))
			again.write(t, frames)
			again.expect(t, resolved)
			again.in.Close()
			if rest, code := again.end(t); rest != "" || code != exitOK {
				t.Errorf("got %q and exit code %d; %s", rest, code, again.stderr.String())
			}
		})
	}
}

func TestContextsAreMadeAtMostOnceASecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context")
	synctest.Test(t, func(t *testing.T) {
		file, _, _, err := contextfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		w := input.New(input.Markup, input.Translators{Markup: func() io.WriteCloser { return filter.New(io.Discard, filter.Options{}) }})
		k := &contextSaver{file: file, diag: &diagnostics{w: os.Stderr}}
		p := &pass{engine: engine{WriteCloser: w, input: w}, contextSaver: k, done: make(chan struct{})}
		k.begin(p)
		var made []time.Duration
		begin, saves := time.Now(), int64(0)
		for i := range 250 {
			p.write(fmt.Appendf(nil, "{{{module:%d:a.so:elf:aabb}}}\n", i), nil)
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			if k.saves != saves {
				saves = k.saves
				made = append(made, time.Since(begin))
			}
		}
		p.stop(false)
		want := []time.Duration{keepSoon, keepSoon + keepAgain, keepSoon + 2*keepAgain}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		if !k.close() {
			t.Error("the last context is not saved")
		}
	})
}

func TestContextsTakeAFiftiethOfTheTime(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0:                      keepAgain,
		20 * time.Millisecond:  keepAgain,
		100 * time.Millisecond: 5 * time.Second,
		time.Minute:            keepLatest,
	} {
		if got := pauseAfter(took); got != want {
			t.Errorf("after %v: a pause of %v, want %v", took, got, want)
		}
	}
}

func TestContextsAreMadeIfTheyChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context")
	p := startCommand(t, detached("--context-file="+path))
	modules := "{{{module:0:one.so:elf:aabb}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\nready\n"
	p.write(t, modules)
	p.expect(t, "[[[ELF module #0x0 \"one.so\"; BuildID=aabb [0x1000-0x1fff](rx)]]]\nready\n")
	var first os.FileInfo
	waitUntil(t, func() bool { first, _ = os.Stat(path); return first != nil && first.Size() > 0 })
	for range fuzztest.LongOr(1000, 100) {
		p.write(t, "at {{{pc:0x1234:pc}}}\n")
		p.expect(t, "at one.so+0x234 (BuildId: aabb)\n")
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(first, now) {
		t.Errorf("the file was written again (%v)", err)
	}
}

func TestContextsThatCannotBeSavedAreReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p := startCommand(t, detached("--context-file="+filepath.Join(dir, "context")))
	p.write(t, "plain\n")
	p.expect(t, "plain\n")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p.write(t, "{{{module:0:one.so:elf:aabb}}}\nready\n")
	p.expect(t, "[[[ELF module #0x0 \"one.so\"; BuildID=aabb]]]\nready\n")
	p.in.Close()
	if _, code := p.end(t); code != exitIO {
		t.Errorf("exit code %d, want %d", code, exitIO)
	}
	if got := strings.Count(p.stderr.String(), "save the context in "); got != 1 {
		t.Errorf("reported %d times: %s", got, p.stderr.String())
	}
}

func TestContextsAreSavedWhenTheyCanBe(t *testing.T) {
	context := filepath.Join(t.TempDir(), "context")
	p := startCommand(t, detached("--context-file="+context))
	p.write(t, "plain\n")
	p.expect(t, "plain\n")
	if err := errors.Join(os.Remove(context), os.Mkdir(context, 0o700)); err != nil {
		t.Fatal(err)
	}
	p.write(t, "{{{module:0:one.so:elf:aabb}}}\nready\n")
	p.expect(t, "[[[ELF module #0x0 \"one.so\"; BuildID=aabb]]]\nready\n")
	waitUntil(t, func() bool { return strings.Contains(p.stderr.String(), "save the context in ") })
	if err := os.Remove(context); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, func() bool { b, _ := os.ReadFile(context); return bytes.Contains(b, []byte("one.so")) })
	p.in.Close()
	if _, code := p.end(t); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// If the reader closes the output, the run stops after a block, which here ends within an element.
// The cut element must not be reported as malformed.
func TestLinesThatAreCutAreNotDiagnosed(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	line := fmt.Sprintf("%-50s\n", "at {{{pc:0x1234:pc}}} and more")
	if at := firstBlock % len(line); at < len("at {{{pc:") || at > len("at {{{pc:0x1234") {
		t.Fatalf("a block ends after %.*q, not within the element", at, line)
	}
	if err := os.WriteFile(log, bytes.Repeat([]byte(line), 3*readBlock/len(line)), 0o666); err != nil {
		t.Fatal(err)
	}
	p := startCommand(t, detached("--no-index", log))
	p.pipe.Close()
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
	if got := p.stderr.String(); strings.Contains(got, "expected a closing") {
		t.Errorf("got %q", got)
	}
}

// waitUntil waits until done returns true. It fails the test after deadline.
func waitUntil(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the condition is never met")
		}
	}
}
