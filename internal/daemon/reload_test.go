package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/internal/written"
)

// A numberedWriter appends numbered lines to a file; every hundredth line is a frame.
type numberedWriter struct {
	path string
	n    int
}

const numberedContext = "{{{module:0:libledger.so:elf:aabbccdd}}}\n{{{mmap:0x1000:0x1000000:load:0:rx:0}}}\n"

// run writes up to 200 lines each millisecond, until stop is closed.
func (w *numberedWriter) run(t *testing.T, stop chan struct{}) {
	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	f.WriteString(numberedContext)
	var b bytes.Buffer
	for tick := time.NewTicker(time.Millisecond); ; <-tick.C {
		select {
		case <-stop:
			return
		default:
		}
		b.Reset()
		for range 200 {
			if w.n%100 == 99 {
				fmt.Fprintf(&b, "%08d {{{pc:0x%x}}}\n", w.n, 0x1000+w.n)
			} else {
				fmt.Fprintf(&b, "%08d a line without an address\n", w.n)
			}
			w.n++
		}
		if _, err := f.Write(b.Bytes()); err != nil {
			t.Error(err)
			return
		}
	}
}

// check fails the test if a line was lost or written twice, or if a frame has no module. lines and
// text are the results of printed.
func (w *numberedWriter) check(t *testing.T, lines map[int]int, text string) {
	t.Helper()
	lost, doubled := 0, 0
	for n := range w.n {
		switch lines[n] {
		case 0:
			lost++
		case 1:
		default:
			doubled++
		}
	}
	if lost+doubled > 0 {
		t.Errorf("%s: of %d lines %d are lost and %d doubled", filepath.Base(w.path), w.n, lost, doubled)
	}
	if n := strings.Count(text, "no module"); n > 0 {
		t.Errorf("%s: the module of %d frames is not known", filepath.Base(w.path), n)
	}
}

// printed counts the numbered lines in the outputs called prefix*. text is all their text.
func printed(t *testing.T, dir, prefix string) (lines map[int]int, text string) {
	t.Helper()
	lines = make(map[int]int)
	paths, _ := filepath.Glob(filepath.Join(dir, prefix+"*"))
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
		for line := range strings.Lines(string(b)) {
			n := 0
			if _, err := fmt.Sscanf(line, "%08d ", &n); err != nil || !strings.HasSuffix(line, "\n") {
				if !strings.HasPrefix(line, "[[[ELF") {
					t.Fatalf("%s: the line %q is torn", path, line)
				}
				continue
			}
			lines[n]++
		}
	}
	return lines, text
}

// Reloads must neither lose nor double a line. The valid configurations change outputs, inputs,
// names and symbols. Some configurations are invalid.
func TestReloadsUnderLoadLoseAndDoubleNothing(t *testing.T) {
	const reloads = 50
	for name, state := range map[string]string{"with checkpoints": "state: DIR/state\n", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			taken, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer taken.Close()
			config := func(i int) string {
				a, aFiles, aOut, symbols := "a", "DIR/a.in", "DIR/a-out.1", ""
				if i/10%2 == 1 {
					a = "renamed" // the input must not change in the same reload: it would then be another pipeline
				}
				if (i+5)/10%2 == 1 {
					aFiles = "DIR/a*.in"
				}
				if i/2%2 == 1 {
					aOut = "DIR/a-out.2"
				}
				if i/4%3 == 1 {
					symbols = ", module_paths: true"
				}
				text := state + "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache" + symbols + "}\npipelines:\n" +
					"  " + a + ": {input: {files: [" + aFiles + "]}, output: {file: " + aOut + "}}\n" +
					fmt.Sprintf("  b: {input: {files: [DIR/b.in]}, filter: {basenames: %v}, output: {file: DIR/b-out}}\n", i%2 == 0)
				if i%3 != 2 {
					text += "  c: {input: {files: [DIR/c.in]}, output: {file: DIR/c-out}}\n"
				}
				switch i {
				case 3, 23:
					return text + "  bad: [\n"
				case 8, 28:
					return text + "  bad: {input: {files: [DIR/x]}, output: {file: DIR/x-out, color: red}}\n"
				case 13:
					return text + "  bad: {input: {listen: \"tcp:" + taken.Addr().String() + "\"}, output: {file: DIR/x-out}}\n"
				case 33, 43:
					return text + "  bad: {input: {files: [DIR/x]}, output: {file: DIR/none/x-out}}\n"
				case 18, 38, 48:
					return text + "  bad: {input: {files: [\"DIR/[x\"]}, output: {file: DIR/x-out}}\n"
				}
				return text
			}
			d, stop := started(t, configuration(t, dir, config(0)), Options{})
			writers := []*numberedWriter{{path: filepath.Join(dir, "a.in")}, {path: filepath.Join(dir, "b.in")}, {path: filepath.Join(dir, "c.in")}}
			end := make(chan struct{})
			var all sync.WaitGroup
			for _, w := range writers {
				all.Go(func() { w.run(t, end) })
			}
			refused := 0
			for i := range reloads {
				c, err := Parse([]byte(strings.ReplaceAll(config(i), "DIR", dir)))
				if err == nil {
					err = d.Reload(c)
				}
				if err != nil {
					refused++
				}
				time.Sleep(10 * time.Millisecond) // lets the writers run
			}
			if refused != 10 {
				t.Errorf("%d configurations of %d were refused, want 10", refused, reloads)
			}
			close(end)
			all.Wait()
			if err := d.Reload(configuration(t, dir, config(0))); err != nil {
				t.Fatal(err)
			}
			for i, prefix := range []string{"a-out", "b-out", "c-out"} {
				w := writers[i]
				last := fmt.Sprintf("%08d ", w.n-1)
				testenv.Until(t, prefix+" has the last line", func() bool {
					_, text := printed(t, dir, prefix)
					return strings.Contains(text, last)
				})
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			for i, prefix := range []string{"a-out", "b-out", "c-out"} {
				lines, text := printed(t, dir, prefix)
				writers[i].check(t, lines, text)
			}
		})
	}
}

func TestReloadsKeepStandardInput(t *testing.T) {
	dir := t.TempDir()
	text := `
symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}
pipelines:
  all: {input: {stdin: true}, filter: {module_lines: none}, output: {file: DIR/out.log}}
`
	r, w := io.Pipe()
	d, _ := started(t, configuration(t, dir, text), Options{Stdin: r})
	const tail = "{{{pc:0x1004}}}\n"
	before, want := numberedContext+"before\nto be con", "before\n"
	for _, next := range []string{
		strings.Replace(text, "stdin: true", "stdin: true, format: markup", 1),
		strings.Replace(text, "all:", "other:", 1),
	} {
		io.WriteString(w, before)
		await(t, filepath.Join(dir, "out.log"), want)
		if err := d.Reload(configuration(t, dir, next)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "tinued "+tail)
		want += "to be continued libledger.so+0x3 (BuildId: aabbccdd)\n"
		await(t, filepath.Join(dir, "out.log"), want)
		before, want = "again\nto be con", want+"again\n"
	}
}

func TestBlockedOutputsDoNotBlockReloads(t *testing.T) {
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	lines := strings.Repeat("a line that nobody reads yet\n", 20000)
	if err := os.WriteFile(filepath.Join(dir, "a.in"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(files, b string) *Config {
		return configuration(t, dir, "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n"+
			"  a: {input: {files: ["+files+"]}, output: {stdout: text}}\n  b: {input: {files: [DIR/b.in]}, output: {file: DIR/"+b+"}}\n")
	}
	d, stop := started(t, config("DIR/a.in", "b.1"), Options{Stdout: w})
	left := written.Unread(w)
	filled := func() bool { n, _ := left(); return n >= 1<<15 }
	testenv.Until(t, "standard output is full", filled)
	if err := d.Reload(config("DIR/a*.in", "b.2")); err != nil {
		t.Fatal(err)
	}
	if n, _ := left(); n >= int64(len(lines)) {
		t.Fatal("the output did not block")
	}
	if err := os.WriteFile(filepath.Join(dir, "b.in"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, filepath.Join(dir, "b.2"), "line\n")
	got := make([]byte, len(lines))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != lines {
		t.Errorf("%d bytes came, %v", len(got), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a2.in"), []byte("new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(r, got[:4]); err != nil || string(got[:4]) != "new\n" {
		t.Errorf("then %q, %v", got[:n], err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestChangesDoNotWaitOnceTheDaemonEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leaving, leave := context.WithCancel(t.Context())
		returned := make(chan time.Time)
		go func() {
			never := make(chan struct{}) // of a removed pipeline that does not end
			turnOver(leaving, nil, []chan struct{}{never})
			returned <- time.Now()
		}()
		time.Sleep(switchPatience / 2)
		left := time.Now()
		leave()
		if waited := (<-returned).Sub(left); waited != 0 {
			t.Errorf("it returned %v after the end, want 0", waited)
		}
	})
}

// A reload holds the lock while it waits. The end of the daemon must end this wait, so it must not
// need the lock itself.
func TestTheEndDoesNotNeedTheLockOfAReload(t *testing.T) {
	t.Parallel()
	d, stop := started(t, configuration(t, t.TempDir(), idle), Options{Stdin: blocked(t)})
	d.one.Lock()
	time.Sleep(restEvery + restEvery/2) // Run waits for the lock, too
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	told := testenv.Wait(func() bool { return d.house.leaving.Err() != nil })
	d.one.Unlock()
	if err := <-stopped; !told || err != nil {
		t.Errorf("told of the end: %v; %v", told, err)
	}
}

func TestReloadsThatWaitEndWithTheDaemon(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := os.WriteFile(filepath.Join(dir, "a.in"), bytes.Repeat([]byte("a line that nobody reads\n"), 20000), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(files string) *Config {
		return configuration(t, dir, "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n"+
			"  a: {input: {files: ["+files+"]}, output: {stdout: text}}\n")
	}
	d, stop := started(t, config("DIR/a.in"), Options{Stdout: w})
	left := written.Unread(w)
	filled := func() bool { n, _ := left(); return n >= 1<<15 }
	testenv.Until(t, "standard output is full", filled)
	reloaded := make(chan error, 1)
	next := config("DIR/a*.in")
	go func() { reloaded <- d.Reload(next) }()
	testenv.Until(t, "the reload has begun", func() bool {
		if !d.one.TryLock() {
			return true
		}
		d.one.Unlock()
		return false
	})
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := <-reloaded; err != nil {
		t.Error(err)
	}
	if err := d.Reload(config("DIR/a.in")); err == nil {
		t.Error("a daemon that has ended takes another configuration")
	}
}

func TestFailingOutputsAreReopenedAtOnce(t *testing.T) {
	const pipelines = 60
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o700); err != nil {
		t.Fatal(err)
	}
	text := "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n"
	for i := range pipelines {
		text += fmt.Sprintf("  p%d: {input: {files: [DIR/in]}, output: {file: DIR/out/%[1]d}}\n", i)
	}
	c := configuration(t, dir, text)
	d, _ := started(t, c, Options{})
	if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(checkEvery)
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range pipelines {
		awaitSeries(t, d, fmt.Sprintf("output_errors_total{output=p%d}", i))
	}
	begin := time.Now()
	if err := d.Reload(c); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > pipelines*reopenWait/2 {
		t.Errorf("%d outputs that fail delay a reload by %v", pipelines, took)
	}
}

func TestReloadsCountErrorsOnce(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(basenames bool) *Config {
		return configuration(t, dir, "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n"+
			fmt.Sprintf("  all: {input: {files: [DIR/in]}, filter: {basenames: %v}, output: {connect: 'unix:DIR/none'}}\n", basenames))
	}
	d, _ := started(t, config(false), Options{})
	awaitSeries(t, d, "output_errors_total{output=all}")
	for i := range 20 {
		if err := d.Reload(config(i%2 == 0)); err != nil {
			t.Fatal(err)
		}
	}
	p := d.view.Load().pipelines[0]
	now, _ := p.stage.Load().attempts()
	got := p.counts.outErrors.Load() + now
	if all, _ := p.stage.Load().out.(attempting).attempts(); got > all {
		t.Errorf("%d errors are counted as %d", all, got)
	}
}

// After a reload with another format, the new filter cannot use the old filter's context. So the
// held records must be printed, and no line may be lost.
func TestReloadsOfTheFormatLoseNoLine(t *testing.T) {
	const record = "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\npid: 12, tid: 12, name: app\n  #00 pc 0000000000001000  /system/lib64/libx.so\n"
	for _, test := range []struct {
		name, input, formats string
		again                bool // lines may be doubled, since formats of another kind reread the file
	}{
		{"socket", "listen: 'unix:DIR/in'", "json markup cri auto", false},
		{"file", "files: [DIR/in]", "markup auto", false},
		{"file of another kind", "files: [DIR/in]", "json markup cri auto", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			text := "symbols: {no_default_debug_directories: true, cache_directory: DIR/cache}\npipelines:\n" +
				"  all: {input: {" + test.input + ", format: auto}, output: {file: DIR/out}}\n"
			d, stop := started(t, configuration(t, dir, text), Options{})
			path := filepath.Join(dir, "in")
			var w io.WriteCloser
			var err error
			if test.name == "socket" {
				w, err = net.Dial("unix", path)
			} else {
				w, err = os.Create(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			for i, format := range slices.Repeat(strings.Fields(test.formats), 3) {
				fmt.Fprintf(w, "%s%08d\n", record, i)
				time.Sleep(20 * time.Millisecond) // less than the silence after which held lines are printed
				if err := d.Reload(configuration(t, dir, strings.Replace(text, "auto", format, 1))); err != nil {
					t.Fatal(err)
				}
			}
			io.WriteString(w, "last\n")
			out := filepath.Join(dir, "out")
			var got []byte
			testenv.Until(t, "the last line is written", func() bool {
				got, _ = os.ReadFile(out)
				return bytes.HasSuffix(got, []byte("last\n"))
			})
			if err := stop(); err != nil {
				t.Error(err)
			}
			for i := range 3 * len(strings.Fields(test.formats)) {
				if n := bytes.Count(got, fmt.Appendf(nil, "%08d\n", i)); n == 0 || n > 1 && !test.again {
					t.Errorf("the line after reload %d is there %d times", i, n)
				}
			}
		})
	}
}
