package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// The archive of a file that was read, or is older than the run, must not be read. The archive has
// the time of its compression, and another log may reuse the inode of the file. older and stopped
// are not combined, since a checkpoint has no marks of files older than the run.
func TestArchivesOfFilesThatAreGoneAreNotRead(t *testing.T) {
	for i := range 8 {
		older, reused, stopped := i&1 > 0, i&2 > 0, i&4 > 0
		if older && stopped {
			continue
		}
		t.Run(fmt.Sprintf("older=%v/reused=%v/stopped=%v", older, reused, stopped), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				d := &day{t: t, path: filepath.Join(dir, "app.log")}
				o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip, Poll: true, Interval: time.Second}
				l := newLog()
				if older {
					write(t, d.path+".1", "line 0 of another day\n")
					before := time.Now().Add(-time.Hour)
					if err := os.Chtimes(d.path+".1", before, before); err != nil {
						t.Fatal(err)
					}
				}
				d.write(10)
				r := begin(t, l, o)
				r.expect(d.path, d.all.String())
				if !older {
					shift(t, d.path, 60)
					d.write(10)
					r.expect(d.path, d.all.String())
				}
				id, _, err := lookAt(d.path + ".1")
				if err != nil {
					t.Fatal(err)
				}
				compress(t, d.path+".1", false)
				_, info, err := lookAt(d.path + ".1.gz")
				if err != nil {
					t.Fatal(err)
				}
				later := info.ModTime().Add(time.Hour) // later than all lines
				if err := os.Chtimes(d.path+".1.gz", later, later); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * linger) // time for the removed file to be closed, which frees its inode
				if reused {
					other := r.f.newSource("other.log", filepath.Join(dir, "other.log")).search.lineage
					if other.Claim(&generation{handle: &handle{id: id}}) != nil {
						t.Fatal("the inode is still in use")
					}
					other.Drop()
				}
				if stopped {
					if err := r.end(); err != nil {
						t.Fatal(err)
					}
					r = begin(t, l, o)
				}
				d.write(10)
				r.expect(d.path, d.all.String())
				shift(t, d.path, 60)
				d.write(10)
				r.expect(d.path, d.all.String())
				time.Sleep(2 * linger)
				r.expect(d.path, d.all.String())
				l.expectMessages(t, "")
			})
		})
	}
}

// A run ends after it has opened an archive, and before it opens the next file. The next run must
// read that file, although it looks older than the archive, which has the time of its compression.
func TestRunsThatEndInAnArchiveKeepWhatComesAfterIt(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		path := filepath.Join(dir, "app.log")
		o.Names, o.State, o.Unpack = []string{path}, filepath.Join(dir, "state"), unpackGzip
		l := newLog()
		write(t, path, "one\n")
		again(t, l, o, path, "one\n")
		write(t, path, "two\n")
		rename(t, path, path+".2")
		write(t, path+".1", "three\n")
		write(t, path, "four\n")
		compress(t, path+".2", false)
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(path+".2.gz", later, later); err != nil {
			t.Fatal(err)
		}

		opening, goOn := make(chan bool), make(chan bool)
		stopped := o
		stopped.Open = func(name string) (*Sink, error) {
			opening <- true
			<-goOn
			return l.open(name)
		}
		r := begin(t, l, stopped)
		<-opening
		r.cancel()
		close(goOn)
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		again(t, l, o, path, "one\ntwo\nthree\nfour\n")
		l.expectMessages(t, "")
	})
}

func TestRemovedFilesLeaveNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &day{t: t, path: filepath.Join(t.TempDir(), "app.log")}
		d.write(1)
		l := newLog()
		r := begin(t, l, Options{Names: []string{d.path}, Unpack: unpackGzip, Poll: true, Interval: time.Second})
		for range 2 * lineage.MaxBurst {
			r.expect(d.path, d.all.String())
			rename(t, d.path, d.path+".1")
			d.write(1)
			time.Sleep(time.Second)
			if err := os.Remove(d.path + ".1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * linger)
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		for name, s := range r.f.sources {
			if records, marks, _ := s.search.lineage.Size(); records != 1 || marks != lineage.MaxBurst {
				t.Errorf("%s: %d records and %d marks, want 1 and %d", name, records, marks, lineage.MaxBurst)
			}
		}
	})
}

// The archives of copies that were read must not be read again, even if there are more copies than
// lineage.MaxMarks.
func TestManyCopiesThatAreCompressedAreNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &day{t: t, path: filepath.Join(dir, "app.log")}
		d.write(10)
		l := newLog()
		r := begin(t, l, Options{Names: []string{d.path}, Unpack: unpackGzip, Poll: true, Interval: time.Second, RotateWait: time.Second})
		const copies = lineage.MaxMarks + 4
		for range copies {
			r.expect(d.path, d.all.String())
			time.Sleep(2 * linger) // the previous copy is closed
			d.write(5)             // the new lines are read from the copy
			shiftRotated(d.path, copies)
			copyTruncate(t, d.path, d.path+".1")
			d.write(10)
		}
		r.expect(d.path, d.all.String())
		time.Sleep(2 * linger)
		for i := range copies {
			name := fmt.Sprintf("%s.%d", d.path, i+1)
			if err := os.Link(name, filepath.Join(dir, fmt.Sprintf("inode-%d", i))); err != nil { // keeps the inode from being reused
				t.Fatal(err)
			}
			compress(t, name, false)
		}
		copyTruncate(t, d.path, d.path+".0")
		d.write(10)
		r.expect(d.path, d.all.String())
		time.Sleep(2 * linger)
		r.expect(d.path, d.all.String())
		l.expectMessages(t, "")
	})
}

// A run without a rotation closes more rotated files than a checkpoint has marks. The run after it
// must not read these files again.
func TestManyRotatedFilesAreKnownAfterARunWithoutRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &day{t: t, path: filepath.Join(t.TempDir(), "app.log")}
		o := Options{Names: []string{d.path}, State: d.path + "-state", Unpack: unpackGzip, Poll: true, Interval: 10 * time.Millisecond}
		l := newLog()
		d.write(1)
		r := begin(t, l, o)
		for i := range 2*lineage.MaxMarks + maxHeld {
			r.expect(d.path, d.all.String())
			rename(t, d.path, fmt.Sprintf("%s.%d", d.path, 90-i))
			d.write(1)
		}
		for _, rotates := range []bool{false, true} {
			r.expect(d.path, d.all.String())
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if rotates {
				rename(t, d.path, d.path+".1")
			}
			d.write(1)
			r = begin(t, l, o)
			time.Sleep(4 * linger)
		}
		r.expect(d.path, d.all.String())
		l.expectMessages(t, "")
	})
}

// After runs without a rotation, no run may read the archives of files that the first run has read.
// Some of these files were closed before the first run ended.
func TestArchivesAreKnownAfterRunsWithoutRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &day{t: t, path: filepath.Join(dir, "app.log")}
		o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip, Poll: true, Interval: time.Second}
		l := newLog()
		d.write(1)
		r := begin(t, l, o)
		const files = maxHeld + lineage.MaxKnown
		for i := range files {
			r.expect(d.path, d.all.String())
			rename(t, d.path, fmt.Sprintf("%s.%d", d.path, 90-i))
			d.write(5)
			time.Sleep(2 * linger)
		}
		r.expect(d.path, d.all.String())
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		for i := range files {
			name := fmt.Sprintf("%s.%d", d.path, 90-i)
			compress(t, name, false)
			later := time.Now().Add(100 * 365 * 24 * time.Hour) // later than all lines
			if err := os.Chtimes(name+".gz", later, later); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			d.write(1)
			r = begin(t, l, o)
			time.Sleep(4 * linger)
			r.expect(d.path, d.all.String())
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
		}
		rename(t, d.path, d.path+".1")
		d.write(1)
		r = begin(t, l, o)
		time.Sleep(4 * linger)
		r.expect(d.path, d.all.String())
		l.expectMessages(t, "")
	})
}

// More files than lineage.MaxKnown, all changed within burstTime, disappear during the run or after
// it. They come back compressed before the next run, which must not read them again.
func TestArchivesOfABurstAreNotReadAgain(t *testing.T) {
	for name, during := range map[string]bool{"during the run": true, "after the run": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir, elsewhere := t.TempDir(), t.TempDir()
				d := &day{t: t, path: filepath.Join(dir, "app.log")}
				o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip, Poll: true, Interval: time.Second}
				l := newLog()
				d.write(40)
				r := begin(t, l, o)
				const files = 3 * lineage.MaxMarks
				away := func(i int) string { return filepath.Join(elsewhere, fmt.Sprint(90-i)) }
				rotated := func(i int) string { return fmt.Sprintf("%s.%d", d.path, 90-i) }
				for i := range files {
					r.expect(d.path, d.all.String())
					rename(t, d.path, rotated(i))
					d.write(40) // longer than the head that identifies a file
					time.Sleep(2 * linger)
					if during {
						rename(t, rotated(i), away(i))
					}
				}
				r.expect(d.path, d.all.String())
				time.Sleep(4 * linger)
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
				for i := range files {
					if !during {
						rename(t, rotated(i), away(i))
					}
					compress(t, away(i), false)
					rename(t, away(i)+".gz", rotated(i)+".gz")
				}
				for i := range 2 {
					r = begin(t, l, o)
					time.Sleep(4 * linger)
					rename(t, d.path, fmt.Sprintf("%s.%d", d.path, 2-i)) // a rotation, so that all files are examined
					d.write(1)
					time.Sleep(4 * linger)
					r.expect(d.path, d.all.String())
					if err := r.end(); err != nil {
						t.Fatal(err)
					}
				}
				l.expectMessages(t, "")
			})
		})
	}
}

// If all files are compressed between two runs, the next run must not read the archives again. The
// archives keep the times of their files, as with most programs.
func TestFilesThatAreAllCompressedBetweenRunsAreNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &day{t: t, path: filepath.Join(dir, "app.log")}
		o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: unpackGzip, Poll: true, Interval: time.Second}
		l := newLog()
		rotated := func(i int) string { return fmt.Sprintf("%s.%d", d.path, 90-i) }
		write := func() {
			d.write(40)
			now := time.Now()
			if err := os.Chtimes(d.path, now, now); err != nil {
				t.Fatal(err)
			}
		}
		write()
		r := begin(t, l, o)
		const files = 3 * lineage.MaxMarks
		for i := range files {
			r.expect(d.path, d.all.String())
			time.Sleep(2 * time.Minute) // longer than burstTime
			rename(t, d.path, rotated(i))
			write()
			time.Sleep(4 * linger)
		}
		r.expect(d.path, d.all.String())
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		write()
		rename(t, d.path, rotated(files))
		for i := range files + 1 {
			compress(t, rotated(i), true)
		}
		write()
		r = begin(t, l, o)
		time.Sleep(4 * linger)
		r.expect(d.path, d.all.String())
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		l.expectMessages(t, "")
	})
}
