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

// A weaver logs, rotates and compresses in small steps, which happen while a source looks at its
// files: at any listing and any opening.
type weaver struct {
	day
	rand  *rand.Rand
	steps []func() // those that have not happened yet
	files int      // rotations so far
	// of pods: there are files of different names, which only their times can order
	clock   time.Time
	starts  int      // of the container
	rotated string   // the file that is to be compressed
	trace   []string // what has happened
}

// A weaveStyle adds the steps of a rotation.
type weaveStyle func(w *weaver)

var weaveStyles = map[string]weaveStyle{
	"numbers": (*weaver).rotatesNumbers,
	"dates":   (*weaver).rotatesDates,
	"copies":  (*weaver).rotatesCopies,
	"links":   (*weaver).rotatesLinks,
	"plain":   (*weaver).rotatesPlain,
	"pods":    (*weaver).rotatesPods,
}

// step adds a step. It does nothing if its file does not exist.
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

// shifts renames the rotated files from number first on.
func (w *weaver) shifts(first int) {
	for i := w.files; i >= first; i-- {
		for _, end := range []string{"", ".gz"} {
			w.moves(fmt.Sprintf("%s.%d%s", w.path, i, end), fmt.Sprintf("%s.%d%s", w.path, i+1, end))
		}
	}
}

// packs compresses a file to another one and then removes it.
func (w *weaver) packs(from, to string) {
	var packed []byte // nil if there is no file
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

// writes adds lines to the file at path.
func (w *weaver) writes(path string, n int) {
	w.step(fmt.Sprintf("%d lines", n), func() error {
		last := w.path
		w.path = path
		w.day.write(n)
		w.path = last
		return w.ticks(path)
	})
}

// ticks gives a file a later time than all others, if the style needs that.
func (w *weaver) ticks(path string) error {
	if w.clock.IsZero() {
		return nil
	}
	w.clock = w.clock.Add(time.Second)
	return os.Chtimes(path, time.Time{}, w.clock)
}

// renews renames the file to name, adds late lines to it, and begins the next file.
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

// rotatesNumbers rotates in one of three ways: a file is compressed under its next number, at once,
// or one rotation later.
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

// rotatesDates renames a file by a date, and compresses it or the one before.
func (w *weaver) rotatesDates() {
	name := func(n int) string { return fmt.Sprintf("%s-202611%02d", w.path, n) }
	w.renews(name(w.files + 1))
	n := w.files + w.rand.IntN(2)
	w.packs(name(n), name(n)+".gz")
}

// rotatesCopies copies the file, truncates it, and compresses the copy.
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

// rotatesPlain renames files by numbers. None is compressed.
func (w *weaver) rotatesPlain() {
	w.shifts(1)
	w.renews(w.path + ".1")
}

// rotatesPods does what kubelet does behind the link to a container's log: it renames the file by a
// date and compresses the one before, or the container starts again with the next file.
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

// rotatesLinks makes the path a link to a new file. No file is compressed.
func (w *weaver) rotatesLinks() { w.linksTo(fmt.Sprintf("run-%d.log", w.files+1)) }

// linksTo makes the path a link to a new file.
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

// happens runs steps: one, with this probability, and as many more.
func (w *weaver) happens(probability float64) {
	for len(w.steps) > 0 && w.rand.Float64() < probability {
		do := w.steps[0]
		w.steps = w.steps[1:]
		do()
	}
}

// A weaving is a source whose runs are woven into the steps of a weaver.
type weaving struct {
	*weaver
	*runner
	saved int // bytes of the output that the checkpoint covers
}

// begin begins a run. Its first turn opens files only.
func (x *weaving) begin() {
	x.trace = append(x.trace, "BEGIN")
	x.runner.begin()
	x.turns(1)
	x.save()
}

// turns runs turns of the source.
func (x *weaving) turns(n int) {
	for range n {
		before := len(x.text(x.path))
		x.turn(1)
		if n := strings.Count(x.text(x.path)[before:], "\n"); n > 0 {
			x.trace = append(x.trace, fmt.Sprintf("READ %d", n))
		}
	}
}

// save writes a checkpoint. It may keep an earlier state, if a file cannot be read at this moment.
func (x *weaving) save() {
	if x.runner.save() {
		x.saved = len(x.text(x.path))
		x.trace = append(x.trace, "SAVE")
	}
}

// end ends the run, or kills it: then what was printed after the checkpoint does not count, as the
// next run prints it again.
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

// Whatever happens to the files between two steps of a search, and wherever in it a run ends or is
// killed: each line is read once, in order.
func TestSearchesAmongRotationsReadEachLineOnce(t *testing.T) {
	seeds := uint64(fuzztest.LongOr(3_000, 50))
	for name := range weaveStyles {
		for seed := range seeds {
			if !t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { weave(t, name, seed) })
			}) {
				return // one is enough to read
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
			w.clock = time.Now().AddDate(100, 0, 0) // after that of the file system
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
