//go:build unix

package follow

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clocks are ways to set the clock. Each returns the time of the i-th file of a test.
var clocks = map[string]func(now time.Time, i int) time.Time{
	"set back":     func(now time.Time, i int) time.Time { return now.Add(-time.Hour + time.Duration(i)*time.Second) },
	"set forward":  func(now time.Time, i int) time.Time { return now.Add(time.Hour + time.Duration(i)*time.Second) },
	"of one tick":  func(now time.Time, _ int) time.Time { return now },
	"back, of one": func(now time.Time, _ int) time.Time { return now.Add(-time.Hour) },
}

// rotatedAs returns the name of the i-th of n rotated files, oldest first, by style.
var rotatedAs = map[string]func(path string, i, n int) string{
	"shifted": func(path string, i, n int) string { return fmt.Sprintf("%s.%d", path, n-i) },
	"counted": func(path string, i, n int) string { return fmt.Sprintf("%s.%d", path, 9+i) },
	"dated":   func(path string, i, n int) string { return fmt.Sprintf("%s-2026010%d", path, 1+i) },
}

// No line may be lost if the clock is set, or if files have equal times, while the log is followed
// or between two runs.
func TestClocksThatAreSetLoseNothing(t *testing.T) {
	const files = 4
	for clock, timeOf := range clocks {
		for names, name := range rotatedAs {
			for _, stopped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/stopped=%v", clock, names, stopped), func(t *testing.T) {
					dir := t.TempDir()
					path := filepath.Join(dir, "app.log")
					write(t, path+".old", "before\n")
					setTime(t, path+".old", time.Now().Add(-2*time.Hour))
					write(t, path, "first\n")
					l, g := newLog(), newGate()
					o := Options{Names: []string{path}, State: filepath.Join(dir, "state")}
					if !stopped {
						o.Open = l.gated(g)
					}
					r := begin(t, l, o)
					if stopped {
						r.expect(path, "first\n")
						if err := r.end(); err != nil {
							t.Fatal(err)
						}
					} else {
						<-g.waiting
					}
					now := time.Now()
					write(t, path, "rest\n")
					rename(t, path, name(path, 0, files))
					want := "first\nrest\n"
					for i := 1; i < files; i++ {
						text := fmt.Sprintf("file %d\n", i)
						write(t, name(path, i, files), text)
						setTime(t, name(path, i, files), timeOf(now, i))
						want += text
					}
					write(t, path, "last\n")
					setTime(t, path, timeOf(now, files))
					want += "last\n"
					if stopped {
						r = begin(t, l, o)
					} else {
						g.open()
					}
					r.expect(path, want)
					if told := r.messages(); told != "" {
						t.Errorf("told %s", told)
					}
				})
			}
		}
	}
}

func TestFilesOfOneTickKeepTheirOrder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state")}
	l := newLog()
	write(t, path, "one\n")
	again(t, l, o, path, "one\n")
	rename(t, path, filepath.Join(dir, "elsewhere"))
	now := time.Now()
	for i, text := range []string{"two\n", "three\n", "four\n", "five\n"} {
		name := fmt.Sprintf("%s.%d", path, 12-i)
		write(t, name, text)
		setTime(t, name, now)
	}
	write(t, path, "six\n")
	setTime(t, path, now)
	again(t, l, o, path, "one\ntwo\nthree\nfour\nfive\nsix\n")
}

func TestUnpackedArchivesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	write(t, path, "one\n")
	write(t, path+".2.gz", "compressed")
	x := newStepper(t, path, Options{})
	x.read("one\n")
	rename(t, path, path+".1")
	write(t, path, "two\n")
	x.read("one\ntwo\n")
	unpacked := filepath.Join(dir, "unpacked")
	write(t, unpacked, "unpacked\n")
	setTime(t, unpacked, time.Now().Add(-24*time.Hour))
	rename(t, unpacked, path+".2")
	rename(t, path, path+".0")
	write(t, path, "three\n")
	x.read("one\ntwo\nthree\n")
	os.Remove(path + ".2.gz")
	for i, text := range []string{"four\n", "five\n", "six\n"} { // searches without the archive
		rename(t, path, fmt.Sprintf("%s.0%d", path, i))
		write(t, path, text)
		x.read("one\ntwo\nthree\n" + strings.Join([]string{"four\n", "five\n", "six\n"}[:i+1], ""))
	}
}

// If a link gets another target between two runs, the next run must read the rest of the old file
// first, then the files in between.
func TestLinksThatGoElsewhereBetweenRuns(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	file := func(i int) string { return filepath.Join(dir, "data", fmt.Sprintf("run-%d.log", i)) }
	if err := os.Mkdir(filepath.Dir(file(0)), 0o777); err != nil {
		t.Fatal(err)
	}
	link := func(i int) {
		t.Helper()
		if err := os.Symlink(filepath.Join("data", filepath.Base(file(i))), path+".new"); err != nil {
			t.Fatal(err)
		}
		rename(t, path+".new", path)
	}
	write(t, file(7), "another\n")
	write(t, file(8), "one\n")
	link(8)
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state")}
	l := newLog()
	again(t, l, o, path, "one\n")
	write(t, file(8), "two\n")
	for i, text := range []string{"three\n", "four\n", "five\n"} {
		write(t, file(9+i), text)
		link(9 + i)
	}
	again(t, l, o, path, "one\ntwo\nthree\nfour\nfive\n")
	write(t, file(11), "six\n")
	write(t, file(12), "seven\n")
	link(12)
	again(t, l, o, path, "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
	if told := l.messages(); told != "" {
		t.Errorf("told %s", told)
	}
}

// A stepper runs the turns of one source, so that a test can change the ages of its files.
type stepper struct {
	*log
	t *testing.T
	s *source
}

func newStepper(t *testing.T, path string, o Options) *stepper {
	l := newLog()
	o.Names, o.Open, o.Notify = []string{path}, l.open, l.notify
	x := &stepper{l, t, beginSteps(t, o, nil).sources[path]}
	t.Cleanup(x.s.close)
	return x
}

// beginSteps returns a Follower for tests that run the turns themselves. Its listings take no time,
// so a busy machine changes nothing. hook, if not nil, is called at each listing of a folder and
// each opening of a file.
func beginSteps(t *testing.T, o Options, hook func()) *Follower {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.watcher = newWatcher(nil, f.notify)
	f.began = time.Now()
	calls := time.Duration(0)
	f.disk.since = func() time.Duration {
		if hook != nil {
			hook()
		}
		calls++
		return calls
	}
	return f
}

// read runs turns until all lines are read, and compares the output with want.
func (x *stepper) read(want string) {
	x.t.Helper()
	buf := make([]byte, readSize)
	for range 1000 {
		more, err := x.s.turn(x.t.Context(), buf)
		if err != nil {
			x.t.Fatal(err)
		}
		if !more {
			if got := x.text(x.s.path); got != want {
				x.t.Fatalf("got %q, want %q; told %s", got, want, x.messages())
			}
			return
		}
	}
	x.t.Fatal("no end of turns")
}

// age makes the rotated files look as if they had last grown earlier, and had not been examined
// since.
func (x *stepper) age(by time.Duration) {
	for _, g := range x.s.old {
		g.moved = g.moved.Add(-by)
		g.looked = time.Time{}
	}
}

// Rotated files must be read until they are removed. A late line in a closed file must make the
// search find that file again.
func TestRotatedFilesAreReadUntilTheyAreRemoved(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint(wait), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, "one\n")
			x := newStepper(t, path, Options{RotateWait: wait})
			x.read("one\n")
			old, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer old.Close()
			rename(t, path, path+".1")
			write(t, path, "two\n")
			x.read("one\ntwo\n")
			x.age(30 * time.Second)
			x.read("one\ntwo\n")
			io.WriteString(old, "late\n")
			x.age(0)
			x.read("one\ntwo\nlate\n")
			x.age(time.Hour)
			x.read("one\ntwo\nlate\n")
			if got, want := len(x.s.old), map[bool]int{true: 1, false: 0}[wait == 0]; got != want {
				t.Fatalf("%d rotated files are open after an hour, want %d", got, want)
			}
			io.WriteString(old, "later\n")
			x.age(0)
			rename(t, path+".1", path+".2")
			rename(t, path, path+".1")
			write(t, path, "three\n")
			x.read("one\ntwo\nlate\nlater\nthree\n")
			if err := os.Remove(path + ".1"); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(path + ".2"); err != nil {
				t.Fatal(err)
			}
			x.age(0)
			x.read(x.text(path))
			x.age(linger + time.Second)
			x.read(x.text(path))
			if n, open := len(x.s.old), x.s.f.disk.open.Load(); n != 0 || open != 1 {
				t.Errorf("%d removed files are read, %d files are open, want 0 and 1", n, open)
			}
		})
	}
}

func TestFewRotatedFilesAreKeptOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "first\n")
	x := newStepper(t, path, Options{})
	want := "first\n"
	x.read(want)
	for i := range 3 * maxHeld {
		rename(t, path, fmt.Sprintf("%s.%d", path, i))
		text := fmt.Sprintf("%d\n", i)
		write(t, path, text)
		want += text
		x.read(want)
		x.age(linger + time.Second)
	}
	x.read(want)
	if n, open := len(x.s.old), x.s.f.disk.open.Load(); n != maxHeld || open != maxHeld+1 {
		t.Errorf("%d rotated files are read, %d files are open, want %d and %d", n, open, maxHeld, maxHeld+1)
	}
	for i := range 3 * maxHeld {
		write(t, fmt.Sprintf("%s.%d", path, i), fmt.Sprintf("late %d\n", i))
	}
	rename(t, path, path+".100")
	write(t, path, "last\n")
	x.age(0)
	for range 10 {
		more, err := x.s.turn(t.Context(), make([]byte, readSize))
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
	}
	got := x.text(path)
	for i := range 3 * maxHeld {
		if n := strings.Count(got, fmt.Sprintf("late %d\n", i)); n != 1 {
			t.Errorf("line %d was printed %d times", i, n)
		}
	}
}
