package follow

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// A stopper has a method for Options.Unpack. While the method unpacks a file, it calls stop, which
// ends the run.
type stopper struct {
	mu    sync.Mutex
	calls int // calls of unpack before the call that ends the run
	reads int // reads in that call before the end
	stop  func()
}

// arm sets the call of unpack, and the read in that call, at which stop is called. calls is the
// number of calls of unpack before that call. A nil stop is never called.
func (s *stopper) arm(calls, reads int, stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.reads, s.stop = calls, reads, stop
}

func (s *stopper) unpack(r io.Reader) (io.Reader, func(), error) {
	s.mu.Lock()
	reads, stop := s.reads, s.stop
	s.calls--
	if s.calls != -1 {
		stop = nil
	}
	s.mu.Unlock()
	if stop == nil {
		return unpackGzip(r)
	}
	if reads == 0 {
		stop()
	}
	z, done, err := unpackGzip(r)
	return readerFunc(func(p []byte) (int, error) {
		n, err := z.Read(p)
		if reads--; reads == 0 {
			stop()
		}
		return n, err
	}), done, err
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A run ends while it compares an archive with a file that was already read to its end. The next
// run must not read the archive.
func TestRunsThatEndWhileAnArchiveIsComparedDoNotReadIt(t *testing.T) {
	for name, keptOpen := range map[string]bool{"open": true, "closed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "app.log")
				s := &stopper{}
				o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Unpack: s.unpack, Poll: true, Interval: time.Second}
				if !keptOpen {
					o.RotateWait = time.Second
				}
				l := newLog()
				var all strings.Builder
				for i := range 8000 {
					fmt.Fprintf(&all, "line %d of the first file\n", i)
				}
				write(t, path, all.String())
				r := begin(t, l, o)
				r.expect(path, all.String())
				rename(t, path, path+".1")
				write(t, path, "second\n")
				all.WriteString("second\n")
				r.expect(path, all.String())
				if !keptOpen {
					time.Sleep(3 * linger)
				}
				ended := make(chan bool)
				s.arm(0, 1, func() { r.cancel(); close(ended) })
				if err := os.Link(path+".1", filepath.Join(dir, "inode")); err != nil { // keeps the inode from being reused
					t.Fatal(err)
				}
				compress(t, path+".1", false)
				rename(t, path, path+".0")
				<-ended
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
				s.arm(0, 0, nil)
				write(t, path, "third\n")
				all.WriteString("third\n")
				r = begin(t, l, o)
				time.Sleep(3 * linger)
				if got, want := l.text(path), all.String(); got != want {
					t.Errorf("got %d bytes, want %d; the last ones %.100q", len(got), len(want), got[max(0, len(got)-100):])
				}
				l.expectMessages(t, "")
			})
		})
	}
}

func TestRunsThatEndWhileTheyOpenArchivesKeepTheCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := &day{t: t, path: filepath.Join(dir, "app.log")}
		s := &stopper{}
		o := Options{Names: []string{d.path}, State: filepath.Join(dir, "state"), Unpack: s.unpack, Poll: true, Interval: time.Second}
		d.write(1)
		l := newLog()
		r := begin(t, l, o)
		for range lineage.MaxKnown {
			r.expect(d.path, d.all.String())
			rename(t, d.path, d.path+".1")
			d.write(1)
			time.Sleep(time.Second)
			if err := os.Remove(d.path + ".1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * linger)
		}
		rename(t, d.path, d.path+".1")
		d.write(5)
		r.expect(d.path, d.all.String())
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		compress(t, d.path+".1", false)
		later := time.Now().Add(100 * 365 * 24 * time.Hour) // later than all lines
		if err := os.Chtimes(d.path+".1.gz", later, later); err != nil {
			t.Fatal(err)
		}
		// the second call of unpack is for the comparison with the checkpoint
		begun := make(chan bool)
		s.arm(1, 0, func() { <-begun; r.cancel() })
		r = begin(t, l, o)
		close(begun)
		if err := <-r.done; err != nil {
			t.Fatal(err)
		}
		r.done <- nil
		s.arm(0, 0, nil)
		rename(t, d.path, d.path+".0")
		d.write(1)
		r = begin(t, l, o)
		time.Sleep(3 * linger)
		if got, want := l.text(d.path), d.all.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		l.expectMessages(t, "")
	})
}
