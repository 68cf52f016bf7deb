//go:build unix

package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A weaver logs, rotates and compresses in small steps. A step happens when the searching source
// lists a folder or opens a file.
type weaver struct {
	day
	rand  *rand.Rand
	steps []func() // steps that have not happened yet
	files int      // rotations so far
	// for pods: files have different names, which only their times can order
	clock   time.Time
	starts  int      // starts of the container
	rotated string   // the file to compress next
	trace   []string // steps so far
}

type weaveStyle func(w *weaver)

var weaveStyles = map[string]weaveStyle{
	"numbers": (*weaver).rotatesNumbers,
	"dates":   (*weaver).rotatesDates,
	"copies":  (*weaver).rotatesCopies,
	"links":   (*weaver).rotatesLinks,
	"plain":   (*weaver).rotatesPlain,
	"pods":    (*weaver).rotatesPods,
}

// step adds a step. The step does nothing if its file does not exist.
func (w *weaver) step(what string, do func() error) {
	w.steps = append(w.steps, func() {
		switch err := do(); {
		case err == nil:
			w.trace = append(w.trace, what)
		case !errors.Is(err, fs.ErrNotExist):
			w.t.Fatal(what, err)
		}
	})
}

func (w *weaver) moves(from, to string) {
	w.step(fmt.Sprintf("%s becomes %s", filepath.Base(from), filepath.Base(to)), func() error { return os.Rename(from, to) })
}

// shifts renames the rotated files with at least the number first.
func (w *weaver) shifts(first int) {
	for i := w.files; i >= first; i-- {
		for _, end := range []string{"", ".gz"} {
			w.moves(fmt.Sprintf("%s.%d%s", w.path, i, end), fmt.Sprintf("%s.%d%s", w.path, i+1, end))
		}
	}
}

// packs compresses one file into another, and then removes the first.
func (w *weaver) packs(from, to string) {
	var packed []byte // nil: the file does not exist
	var at time.Time
	w.step("a part of "+filepath.Base(to), func() error {
		packed = nil
		info, err := os.Stat(from)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		at, packed = info.ModTime(), gzipped(w.t, string(text))
		return os.WriteFile(to, packed[:w.rand.IntN(len(packed))], 0o666)
	})
	next := func(what string, do func() error) {
		w.step(what, func() error {
			if packed == nil {
				return fs.ErrNotExist
			}
			return do()
		})
	}
	next("the whole "+filepath.Base(to), func() error { return errors.Join(os.WriteFile(to, packed, 0o666), w.ticks(to)) })
	if w.keepsTime {
		next("the time of "+filepath.Base(to), func() error { return os.Chtimes(to, time.Time{}, at) })
	}
	next("no "+filepath.Base(from), func() error { return os.Remove(from) })
}

func (w *weaver) writes(path string, n int) {
	w.step(fmt.Sprintf("%d lines", n), func() error {
		last := w.path
		w.path = path
		w.day.write(n)
		w.path = last
		return w.ticks(path)
	})
}

// ticks gives the file at path a later time than all other files. It does nothing if the style of
// rotation needs no times.
func (w *weaver) ticks(path string) error {
	if w.clock.IsZero() {
		return nil
	}
	w.clock = w.clock.Add(time.Second)
	return os.Chtimes(path, time.Time{}, w.clock)
}

// renews renames the file to name, may add late lines to it, and begins the next file.
func (w *weaver) renews(name string) {
	w.moves(w.path, name)
	if w.rand.IntN(4) == 0 {
		w.writes(name, 1+w.rand.IntN(3))
	}
	if w.rand.IntN(3) == 0 {
		w.writes(w.path, 1+w.rand.IntN(5))
	} else {
		w.step("an empty file", func() error { return os.WriteFile(w.path, nil, 0o666) })
	}
}

// rotatesNumbers compresses the rotated file under its next number, or under its own number, at
// once or one rotation later.
func (w *weaver) rotatesNumbers() {
	first, second := w.path+".1", w.path+".2"
	switch w.rand.IntN(3) {
	case 0:
		w.shifts(2)
		w.moves(first+".gz", second+".gz")
		w.packs(first, second+".gz")
		w.renews(first)
	case 1:
		w.shifts(1)
		w.renews(first)
		w.packs(first, first+".gz")
	case 2:
		w.shifts(1)
		w.renews(first)
		w.packs(second, second+".gz")
	}
}

// rotatesDates renames the file by a date, and compresses it or the previous file.
func (w *weaver) rotatesDates() {
	name := func(n int) string { return fmt.Sprintf("%s-202611%02d", w.path, n) }
	w.renews(name(w.files + 1))
	n := w.files + w.rand.IntN(2)
	w.packs(name(n), name(n)+".gz")
}

func (w *weaver) rotatesCopies() {
	w.shifts(1)
	copied := w.path + ".1"
	var text []byte
	w.step("a part of a copy", func() (err error) {
		if text, err = os.ReadFile(w.path); err != nil {
			return err
		}
		return os.WriteFile(copied, text[:w.rand.IntN(len(text))], 0o666)
	})
	w.step("a copy", func() error { return os.WriteFile(copied, text, 0o666) })
	w.step("truncated", func() error { return os.Truncate(w.path, 0) })
	if w.rand.IntN(2) == 0 {
		w.packs(copied, copied+".gz")
	}
}

func (w *weaver) rotatesPlain() {
	w.shifts(1)
	w.renews(w.path + ".1")
}

// rotatesPods rotates like the kubelet, below the link to a container's log. It renames the file by
// a date and compresses the previous file, or the container restarts with another file.
func (w *weaver) rotatesPods() {
	log := func() string { return filepath.Join(filepath.Dir(w.path), fmt.Sprintf("pod/%d.log", w.starts)) }
	if w.rand.IntN(4) == 0 {
		w.starts++
		w.rotated = ""
		w.linksTo(fmt.Sprintf("pod/%d.log", w.starts))
		return
	}
	name := fmt.Sprintf("%s.20261101-0000%02d", log(), w.files)
	w.moves(log(), name)
	w.step("an empty file", func() error { return errors.Join(os.WriteFile(w.path, nil, 0o666), w.ticks(w.path)) })
	if w.rotated != "" {
		w.packs(w.rotated, w.rotated+".gz")
	}
	w.rotated = name
}

func (w *weaver) rotatesLinks() { w.linksTo(fmt.Sprintf("run-%d.log", w.files+1)) }

func (w *weaver) linksTo(name string) {
	if w.rand.IntN(2) == 0 {
		path := filepath.Join(filepath.Dir(w.path), name)
		w.step(name, func() error { return errors.Join(os.WriteFile(path, nil, 0o666), w.ticks(path)) })
	}
	w.step("a link to "+name, func() error { return os.Symlink(name, w.path+".new") })
	w.moves(w.path+".new", w.path)
	if w.rand.IntN(2) == 0 {
		w.writes(w.path, 1+w.rand.IntN(5))
	}
}

// happens runs the next steps, each with the given probability. It stops at the first step that it
// does not run.
func (w *weaver) happens(probability float64) {
	for len(w.steps) > 0 && w.rand.Float64() < probability {
		do := w.steps[0]
		w.steps = w.steps[1:]
		do()
	}
}

// A weaving is a source whose turns alternate with the steps of a weaver.
type weaving struct {
	*weaver
	*runner
	saved int // bytes of output that the checkpoint covers
}

// begin begins a run. The first turn only opens files.
func (x *weaving) begin() {
	x.trace = append(x.trace, "BEGIN")
	x.runner.begin()
	x.turns(1)
	x.save()
}

func (x *weaving) turns(n int) {
	for range n {
		before := len(x.text(x.path))
		x.turn(1)
		if n := strings.Count(x.text(x.path)[before:], "\n"); n > 0 {
			x.trace = append(x.trace, fmt.Sprintf("READ %d", n))
		}
	}
}

// save writes a checkpoint. It keeps the earlier state if a file cannot be read now.
func (x *weaving) save() {
	if x.runner.save() {
		x.saved = len(x.text(x.path))
		x.trace = append(x.trace, "SAVE")
	}
}

// end ends or kills the run. After a kill, output without a checkpoint is removed, since the next
// run prints it again.
func (x *weaving) end(killed bool) {
	if killed {
		x.trace = append(x.trace, "KILL")
		x.out[x.path].Truncate(x.saved)
		x.kill()
	} else {
		x.trace = append(x.trace, "END")
		x.runner.end()
	}
}

// Each line must be read once, even if steps of rotations, ends of runs and kills happen at any
// moment of a search.
func TestSearchesAmongRotationsReadEachLineOnce(t *testing.T) {
	seeds := uint64(fuzztest.LongOr(3_000, 50))
	for name := range weaveStyles {
		for seed := range seeds {
			if !t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { weave(t, name, seed) })
			}) {
				return // one failure is enough
			}
		}
	}
}

func weave(t *testing.T, name string, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	w := &weaver{day: day{t: t, path: filepath.Join(dir, "app.log"), keepsTime: random.IntN(2) == 0}, rand: random}
	x := &weaving{weaver: w, runner: newRunner(t, w.path, Options{Unpack: unpackGzip})}
	x.hook = func() { x.happens(0.6) }
	switch name {
	case "plain":
		x.o.Unpack = nil
	case "links", "pods":
		if name == "pods" {
			w.clock = time.Now().AddDate(100, 0, 0) // later than the time of the file system
		}
		target := map[string]string{"links": "run-0.log", "pods": "pod/0.log"}[name]
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "pod"), 0o777), os.Symlink(target, w.path)); err != nil {
			t.Fatal(err)
		}
	}
	w.day.write(3)
	x.begin()
	x.turns(1)
	wait := func() { time.Sleep(time.Duration(random.IntN(4)*random.IntN(8)) * time.Second) }
	for range 3 + random.IntN(8) {
		w.writes(w.path, 1+random.IntN(30))
		weaveStyles[name](w)
		w.files++
		x.turns(random.IntN(4))
		switch random.IntN(8) {
		case 0, 1:
			wait()
			x.turns(1)
		case 2, 3:
			x.save()
		case 4, 5:
			x.end(random.IntN(2) == 0)
			x.happens(0.9)
			wait()
			x.begin()
		}
	}
	x.happens(1)
	w.day.write(1)
	for range 30 {
		x.turns(2)
		time.Sleep(time.Second)
	}
	got, want, told := strings.SplitAfter(x.text(w.path), "\n"), strings.SplitAfter(w.all.String(), "\n"), x.messages()
	if !slices.Equal(got, want) || x.losses() > 0 {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("got %d lines, want %d; after line %d got %.60q and want %.60q; told %q\n%s", len(got), len(want), i, got[min(i, len(got)-1)], want[min(i, len(want)-1)], told, strings.Join(x.trace, "\n"))
	}
	x.end(false)
}
