//go:build unix

package follow

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A runner tests one source: it runs the turns of the source step by step, over several runs.
type runner struct {
	*log
	t    *testing.T
	path string
	o    Options
	f    *Follower
	s    *source
	hook func() // called at each listing of a folder and each opening of a file
	lost []Event
}

func newRunner(t *testing.T, path string, o Options) *runner {
	x := &runner{log: newLog(), t: t, path: path, o: o, hook: func() {}}
	x.o.Names, x.o.Open, x.o.Poll = []string{path}, x.open, true
	x.o.State = filepath.Join(t.TempDir(), "state")
	x.o.Notify = func(e Event) {
		if e.Loss {
			x.lost = append(x.lost, e)
		}
		x.notify(e)
	}
	return x
}

func (x *runner) begin() {
	x.t.Helper()
	f := beginSteps(x.t, x.o, func() { x.hook() })
	x.f, x.s = f, f.sources[x.path]
	f.saver.restore(x.s)
}

func (x *runner) turn(n int) {
	x.t.Helper()
	buf := make([]byte, readSize)
	for range n {
		if _, err := x.s.turn(x.t.Context(), buf); err != nil {
			x.t.Fatal(err)
		}
	}
}

// save writes a checkpoint, and reports whether it covers the present state.
func (x *runner) save() bool {
	x.t.Helper()
	x.s.snapshot()
	if err := x.f.saver.save(); err != nil {
		x.t.Fatal(err)
	}
	return !x.s.dirty
}

func (x *runner) kill() {
	x.s.close()
	x.f.saver.release()
}

func (x *runner) end() {
	x.t.Helper()
	if err := x.s.finish(make([]byte, readSize), true, false); err != nil {
		x.t.Fatal(err)
	}
	x.save()
	x.kill()
}

// read runs some turns, and compares the whole output with want.
func (x *runner) read(want string) {
	x.t.Helper()
	x.turn(30)
	if got := x.text(x.path); got != want {
		x.t.Fatalf("got %q, want %q; told %s", got, want, x.messages())
	}
}

func (x *runner) losses() int { return len(x.lost) }

func TestLateLinesBesideAnUnfinishedArchiveAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	now := time.Now()
	write(t, path, "one\n")
	x := newStepper(t, path, Options{RotateWait: time.Nanosecond})
	x.read("one\n")
	rename(t, path, path+".1")
	write(t, path, "two\n")
	x.read("one\ntwo\n")
	x.age(time.Minute)
	x.read("one\ntwo\n")
	if len(x.s.old) != 0 {
		t.Fatal("the rotated file is still open")
	}
	write(t, path+".1", "late\n")
	setTime(t, path+".1", now.Add(time.Second))
	write(t, path, "three\n")
	setTime(t, path, now.Add(2*time.Second))
	x.read("one\ntwo\nthree\n")
	write(t, path+".1.gz", "a part")
	rename(t, path, path+".0")
	write(t, path, "four\n")
	setTime(t, path, now.Add(3*time.Second))
	x.read("one\ntwo\nthree\nlate\nfour\n")
}

// Late lines between the compression and the removal of a file must be read once. The archive must
// not be read.
func TestLateLinesAfterACompressionAreReadOnce(t *testing.T) {
	for _, number := range []int{1, 2} {
		for _, keepsTime := range []bool{true, false} {
			for _, held := range []bool{true, false} {
				t.Run(fmt.Sprintf("number=%d/keepsTime=%v/held=%v", number, keepsTime, held), func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "app.log")
					x := newStepper(t, path, Options{Unpack: unpackGzip})
					d := &day{t: t, path: path}
					d.write(3)
					x.read(d.all.String())
					if held {
						rename(t, path, path+".1")
					} else {
						rename(t, path, path+".3")
						d.write(3)
						rename(t, path, path+".1")
					}
					if err := os.Link(path+".1", path+".kept"); err != nil {
						t.Fatal(err)
					}
					compress(t, path+".1", keepsTime)
					rename(t, path+".kept", path+".1")
					if number == 2 {
						rename(t, path+".1.gz", path+".2.gz")
					}
					d.path = path + ".1"
					d.write(2)
					d.path = path
					d.write(2)
					setTime(t, path, time.Now().Add(time.Minute))
					x.read(d.all.String())
					os.Remove(path + ".1")
					rename(t, path, path+".0")
					d.write(2)
					x.read(d.all.String())
				})
			}
		}
	}
}

// A truncation must be noticed even if it comes after the file was opened and before its first line
// is read.
func TestTruncationsBeforeTheFirstLineAreNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		start Start
		told  string
	}{"from the beginning": {Beginning, "was truncated"}, "from the end": {End, ""}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, strings.Repeat("before\n", 40)) // more than the head that identifies a file
			x := newRunner(t, path, Options{Start: test.start})
			x.begin()
			x.turn(1) // opens the file
			truncate(t, path)
			write(t, path, "new 1\nnew 2\n")
			x.read("new 1\nnew 2\n")
			if told := x.messages(); !strings.Contains(told, test.told) {
				t.Errorf("told %q", told)
			}
			x.end()
		})
	}
}

func TestOlderFilesThatGrowAreNotReadByTheNextRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path+".1", "old\n")
	setTime(t, path+".1", time.Now().Add(-time.Hour))
	write(t, path, "one\n")
	x := newRunner(t, path, Options{})
	x.begin()
	x.read("one\n")
	write(t, path+".1", "late\n")
	rename(t, path+".1", path+".2")
	rename(t, path, path+".1")
	write(t, path, "two\n")
	x.read("one\ntwo\n")
	x.end()
	x.begin()
	x.read("one\ntwo\n")
	rename(t, path, path+".0")
	write(t, path, "three\n")
	x.read("one\ntwo\nthree\n")
	x.end()
}

// A file that is older than the run must not be read, even if it is renamed during the search. The
// test renames it at each moment of the search.
func TestOlderFilesThatAreRenamedAreNotRead(t *testing.T) {
	for at := 1; at < 20; at++ {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path+".1", "older\n")
		setTime(t, path+".1", time.Now().Add(-time.Hour))
		write(t, path+".2", "oldest\n")
		setTime(t, path+".2", time.Now().Add(-2*time.Hour))
		write(t, path, "one\n")
		x := newRunner(t, path, Options{})
		x.begin()
		calls := 0
		x.hook = func() {
			if calls++; calls == at {
				rename(t, path+".2", path+".3")
			}
		}
		x.read("one\n")
		rename(t, path, path+".0")
		write(t, path, "two\n")
		x.read("one\ntwo\n")
		x.end()
	}
}

// If the checkpoint is within a header that all copies share, reading must continue in the first
// copy.
func TestCopiesWithAHeaderAreReadInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	const head = "#Fields: date time cs-method\n"
	write(t, path, head)
	x := newRunner(t, path, Options{})
	x.begin()
	x.read(head)
	x.end()
	write(t, path, "a1\n")
	copyTruncate(t, path, path+"-20261120")
	write(t, path, head+"b1\nb2\nb3\n")
	copyTruncate(t, path, path+"-20261121")
	x.begin()
	x.read(head + "a1\n" + head + "b1\nb2\nb3\n")
	x.end()
}

func TestQuietLinesOfACopyStayQuiet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "old 1\nold 2\n")
	x := newRunner(t, path, Options{Start: End})
	x.begin()
	x.turn(1)
	x.save()
	x.kill()
	write(t, path, "new 1\n")
	copyTruncate(t, path, path+".1")
	write(t, path, "new 2\n")
	x.begin()
	x.read("new 1\nnew 2\n")
	x.end()
}

func TestCopiesOfReplacedFilesAreNoLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	x := newRunner(t, path, Options{})
	x.begin()
	x.read("one\n")
	x.end()
	write(t, path, "two\n")
	if err := os.Link(path, filepath.Join(t.TempDir(), "inode")); err != nil { // keeps the inode from being reused
		t.Fatal(err)
	}
	copyTruncate(t, path, path+".1")
	os.Remove(path)
	write(t, path, "three\n")
	x.begin()
	x.read("one\ntwo\nthree\n")
	if x.losses() > 0 {
		t.Errorf("told %s", x.messages())
	}
	x.end()
}

// The mark of a truncated file must have a time: otherwise the next run would read much older
// archives.
func TestCheckpointsOfTruncatedFilesHaveATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	if err := os.WriteFile(path+".1.gz", gzipped(t, "archived long ago\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	setTime(t, path+".1.gz", time.Now().Add(-time.Hour))
	write(t, path, "one\n")
	x := newRunner(t, path, Options{})
	x.begin()
	x.turn(1)
	truncate(t, path)
	write(t, path, "two\n")
	x.save()
	x.kill()
	truncate(t, path)
	write(t, path, "three\n")
	x.o.Unpack = unpackGzip
	x.begin()
	x.read("three\n")
	x.end()
}

func TestDamagedArchivesAreToldOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, strings.Repeat("one\n", 100))
	x := newRunner(t, path, Options{Unpack: unpackGzip})
	x.begin()
	x.turn(3)
	x.end()
	if err := os.Rename(path, filepath.Join(t.TempDir(), "inode")); err != nil {
		t.Fatal(err)
	}
	b := gzipped(t, strings.Repeat("two\n", 100))
	b[10] = 0xff // an invalid block type
	if err := os.WriteFile(path+".1.gz", b, 0o666); err != nil {
		t.Fatal(err)
	}
	setTime(t, path+".1.gz", time.Now().Add(-time.Minute))
	x.begin()
	x.turn(30)
	if n := strings.Count(x.messages(), "is damaged"); n != 1 {
		t.Errorf("told %d times, want 1: %s", n, x.messages())
	}
	x.end()
}

func TestBusyLargeFoldersAreSearched(t *testing.T) {
	for _, resumes := range []bool{false, true} {
		t.Run(fmt.Sprintf("resumes=%v", resumes), func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir)
			path := filepath.Join(dir, "app.log")
			write(t, path, "one\n")
			x := newRunner(t, path, Options{})
			x.begin()
			x.read("one\n")
			if resumes {
				x.end()
			}
			rename(t, path, path+".1")
			write(t, path, "two\n")
			if resumes {
				x.begin()
			}
			others, clock := 0, time.Duration(0)
			x.f.disk.since = func() time.Duration {
				other := func(n int) string { return filepath.Join(dir, fmt.Sprint("other", n)) }
				os.Remove(other(others))
				others++
				write(t, other(others), "")
				clock += listCheap + time.Millisecond // duration of a listing
				return clock
			}
			for range 300 {
				x.turn(1)
				clock += time.Second
			}
			x.read("one\ntwo\n")
			x.end()
		})
	}
}

func TestArchivesThatAreLeftOutAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	d := &day{t: t, path: path}
	d.write(2)
	x := newStepper(t, path, Options{Unpack: unpackGzip})
	x.read(d.all.String())
	for i := range 20 {
		d.write(3)
		x.read(d.all.String())
		os.Remove(path + ".1.gz")
		write(t, fmt.Sprintf("%s-inode%d", path, i), "") // keeps the inode from being reused
		copyTruncate(t, path, path+".1")
		compress(t, path+".1", false)
		x.read(d.all.String())
	}
	if _, _, n := x.s.search.lineage.Size(); n > 2 {
		t.Errorf("%d archives are left out, want at most 2", n)
	}
}

func TestLongArchivesAreNotUnpackedForAComparison(t *testing.T) {
	var read atomic.Int64
	path := filepath.Join(t.TempDir(), "app.log")
	const head = "#Fields: date time\n"
	write(t, path, head+"one\n")
	x := newStepper(t, path, Options{Unpack: func(r io.Reader) (io.Reader, func(), error) {
		contents, done, err := unpackGzip(r)
		return readerFunc(func(p []byte) (int, error) {
			n, err := contents.Read(p)
			read.Add(int64(n))
			return n, err
		}), done, err
	}})
	x.read(head + "one\n")
	truncate(t, path)
	write(t, path, head)
	text := head + strings.Repeat("other content\n", 1<<20)
	if err := os.WriteFile(path+".9.gz", gzipped(t, text), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.turn(t.Context(), make([]byte, readSize)); err != nil {
		t.Fatal(err)
	}
	if n := read.Load(); n > 4*unpackPart {
		t.Errorf("%d bytes of %d were unpacked, want at most %d", n, len(text), 4*unpackPart)
	}
}

// After a file was copied, truncated and renamed, reading must continue in the copy, at the offset
// before the truncation.
func TestCopiedTruncatedAndRenamedBeforeTheNextLook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\ntwo\n")
	x := newStepper(t, path, Options{})
	x.read("one\ntwo\n")
	write(t, path+".2", "one\ntwo\nthree\n")
	truncate(t, path)
	rename(t, path, path+".1")
	write(t, path, "four\n")
	x.read("one\ntwo\nthree\nfour\n")
}
