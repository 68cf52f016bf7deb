package follow

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func long() bool { return os.Getenv("TEST_LONG") == "1" }

// A rotation writes numbered lines to a file, and rotates it.
type rotation struct {
	t       *testing.T
	path    string
	rand    *rand.Rand
	scheme  string // style of the names of rotated files
	keep    int    // maximum number of rotated files; 0: no limit
	f       *os.File
	n       int // lines written
	rotated int
	all     bytes.Buffer
}

func newRotation(t *testing.T, dir string, seed uint64) *rotation {
	r := &rotation{t: t, path: filepath.Join(dir, "app.log"), rand: rand.New(rand.NewPCG(seed, 0))}
	r.scheme = []string{"shifted", "counted", "dated"}[r.rand.IntN(3)]
	r.create()
	return r
}

func (r *rotation) create() {
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		r.t.Error(err)
	}
	r.f = f
}

// lines writes n lines, a few of them in two writes.
func (r *rotation) lines(n int) {
	for range n {
		line := fmt.Appendf(nil, "line %d %s\n", r.n, strings.Repeat("x", r.rand.IntN(100)))
		r.n++
		r.all.Write(line)
		if r.rand.IntN(50) == 0 {
			i := r.rand.IntN(len(line))
			r.put(line[:i])
			line = line[i:]
		}
		r.put(line)
	}
}

func (r *rotation) put(b []byte) {
	if _, err := r.f.Write(b); err != nil {
		r.t.Error(err)
	}
}

// rotate renames the file, may append a few late lines to it, and begins the next file.
func (r *rotation) rotate() {
	r.rotated++
	rename := func(from, to string) {
		if err := os.Rename(from, to); err != nil && !os.IsNotExist(err) {
			r.t.Error(err)
		}
	}
	name := func(n int) string { return fmt.Sprintf("%s.%d", r.path, n) }
	switch r.scheme {
	case "shifted": // as in logrotate, the highest number is the oldest
		last := r.rotated
		if r.keep > 0 {
			last = min(last, r.keep)
		}
		for i := last; i > 1; i-- {
			rename(name(i-1), name(i))
		}
		rename(r.path, name(1))
	case "counted":
		rename(r.path, name(r.rotated))
	case "dated":
		rename(r.path, fmt.Sprintf("%s-202611%02d-%06d", r.path, 20+r.rotated/1000, r.rotated))
	}
	if r.rand.IntN(2) == 0 {
		r.lines(r.rand.IntN(20)) // the writer has not noticed the rotation yet
	}
	r.f.Close()
	r.create()
}

// followers returns a follower with events, and one that polls.
func followers(t *testing.T, path string) (all []*running) {
	for _, poll := range []bool{false, true} {
		all = append(all, begin(t, newLog(), Options{Names: []string{path}, Poll: poll, Interval: pollInterval}))
	}
	return all
}

func expectAll(all []*running, path, want string) {
	for _, r := range all {
		r.t.Helper()
		r.expect(path, want)
	}
}

func TestRotationLosesNothing(t *testing.T) {
	const lines, renames = 20000, 9
	seeds := uint64(2)
	if long() {
		seeds = 20
	}
	for _, pause := range []time.Duration{300 * time.Millisecond, 20 * time.Millisecond, 0} {
		for seed := range seeds {
			t.Run(fmt.Sprintf("pause=%v/seed=%d", pause, seed), func(t *testing.T) {
				t.Parallel()
				w := newRotation(t, t.TempDir(), seed)
				w.lines(1)
				all := followers(t, w.path)
				// files rotated before the start are not read
				expectAll(all, w.path, w.all.String())
				for i := range renames + 1 {
					bursts := 1 + w.rand.IntN(2)
					for range bursts {
						w.lines(lines / (renames + 1) / bursts)
						time.Sleep(pause)
					}
					if i == renames {
						w.lines(lines - w.n)
					} else {
						w.rotate()
						time.Sleep(pause)
					}
				}
				for _, r := range all {
					r.expect(w.path, w.all.String())
					if told := r.messages(); told != "" {
						t.Errorf("told: %s", told)
					}
				}
			})
		}
	}
}

// No line may be lost if files are rotated every 50 ms.
func TestQuickRotationLosesNothing(t *testing.T) {
	rotations := 40
	if long() {
		rotations = 400
	}
	for _, scheme := range []string{"shifted", "counted", "dated"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			w := newRotation(t, t.TempDir(), 1)
			w.scheme, w.keep = scheme, 50
			w.lines(1)
			all := followers(t, w.path)
			expectAll(all, w.path, w.all.String())
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			var ends []int // ends of the lines of the kept files, in the order of writing
			for range rotations {
				w.lines(1 + w.rand.IntN(50))
				<-tick.C
				ends = append(ends, w.all.Len())
				if len(ends) == w.keep {
					// On a busy machine, reading the oldest file may take longer than 50 rotations.
					// The next rotation would overwrite the file, and lose its lines.
					for _, r := range all {
						r.until("the oldest file is read", func() bool { return len(r.text(w.path)) >= ends[0] })
					}
					ends = ends[1:]
				}
				w.rotate()
			}
			w.lines(10)
			expectAll(all, w.path, w.all.String())
		})
	}
}

func TestLateWritersAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	all := followers(t, path)
	expectAll(all, path, "one\n")
	old, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	rename(t, path, path+".1")
	for i := range 20 {
		fmt.Fprintf(old, "old %d\n", i)
		write(t, path, fmt.Sprintf("new %d\n", i))
		time.Sleep(50 * time.Millisecond)
	}
	io.WriteString(old, "no end")
	for _, r := range all {
		r.until("the last line of the old file, which never ends", func() bool { return strings.HasSuffix(r.text(path), "no end\n") })
		var olds, news []string
		for line := range strings.Lines(strings.TrimPrefix(r.text(path), "one\n")) {
			if strings.HasPrefix(line, "old") || line == "no end\n" {
				olds = append(olds, line)
			} else {
				news = append(news, line)
			}
		}
		if len(olds) != 21 || olds[19] != "old 19\n" || len(news) != 20 || news[19] != "new 19\n" {
			t.Errorf("got %q and %q", olds, news)
		}
	}
}

// Files rotated between two checks must be read. Files rotated before the start, archives, copies,
// and files with similar names must not be read.
func TestGenerationsBetweenTwoLooksAreCaughtUpWith(t *testing.T) {
	for _, scheme := range []string{"shifted", "counted", "dated"} {
		t.Run(scheme, func(t *testing.T) {
			dir := t.TempDir()
			w := newRotation(t, dir, 3)
			w.scheme = scheme
			write(t, w.path+".0", "before\n")
			w.lines(10)
			l := newLog()
			g := newGate()
			r := begin(t, l, Options{Names: []string{w.path}, Open: l.gated(g)})
			<-g.waiting
			for range 5 {
				w.rotate()
				w.lines(10)
			}
			write(t, w.path+".9.gz", "compressed\n")
			write(t, w.path+".1.tmp", "half of it\n")
			write(t, filepath.Join(dir, "app.log2"), "another\n")
			write(t, filepath.Join(dir, "app-2.log"), "another\n")
			write(t, filepath.Join(dir, "app.log.errors"), "another\n")
			write(t, w.path+".4-copy", w.all.String()[:400])
			g.open()
			r.expect(w.path, w.all.String())
			if err := r.end(); err != nil {
				t.Error(err)
			}
			r.expect(w.path, w.all.String())
		})
	}
}

func TestRemovedAndCreatedAgain(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "app.log")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.until("that it is missing is told", func() bool { return r.messages() == "app.log: does not exist yet; waiting for it" })
		want := ""
		for i := range 5 {
			text := fmt.Sprintf("%d one\n%d two\n", i, i)
			want += text
			write(t, path, text)
			r.expect(path, want)
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			io.WriteString(f, "removed\n")
			f.Close()
			want += "removed\n"
		}
		r.expect(path, want)
	})
}

func TestRenamedAndBack(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "one\n")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.expect(path, "one\n")
		rename(t, path, path+".1")
		write(t, path, "two\n")
		r.expect(path, "one\ntwo\n")
		rename(t, path+".1", path)
		write(t, path, "three\n")
		r.expect(path, "one\ntwo\nthree\n")
	})
}

// The names of removed files must not determine the order of the remaining files.
func TestNamesOfRemovedFilesDecideNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	l := newLog()
	var all strings.Builder
	lines := func(of int) {
		for i := range 5 {
			text := fmt.Sprintf("line %d of file %d\n", i, of)
			all.WriteString(text)
			write(t, path, text)
		}
	}
	lines(0)
	r := begin(t, l, Options{Names: []string{path}, Poll: true, Interval: time.Hour})
	r.looking(func() { r.expect(path, all.String()) })
	files := 1
	for range 3 {
		for range 3 { // each file is read before the next rotation
			shift(t, path, files)
			lines(files)
			files++
			r.looking(func() { r.expect(path, all.String()) })
		}
		seen := files
		for range 12 {
			shift(t, path, files)
			lines(files)
			files++
		}
		for i := files - seen; i < files; i++ {
			os.Remove(fmt.Sprintf("%s.%d", path, i))
		}
		r.looking(func() { r.expect(path, all.String()) })
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	r.expect(path, all.String())
}
