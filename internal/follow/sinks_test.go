package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A reports has an Options.Open whose sinks print only when they are closed, like the sinks of
// reports.
type reports struct {
	printed []string // outputs of the closed sinks, in the order of closing
	kept    []string // lines held by each sink, in the order of opening
	closes  []int
}

func (r *reports) open(string) (*Sink, error) {
	i := len(r.kept)
	r.kept, r.closes = append(r.kept, ""), append(r.closes, 0)
	return &Sink{
		WriteCloser: reportWriter{
			func(p []byte) (int, error) { r.kept[i] += string(p); return len(p), nil },
			func() error { r.closes[i]++; r.printed = append(r.printed, r.kept[i]); return nil },
		},
		Rotated: func() (*Sink, error) { return r.open("") },
	}, nil
}

type reportWriter struct {
	write func(p []byte) (int, error)
	close func() error
}

func (w reportWriter) Write(p []byte) (int, error) { return w.write(p) }
func (w reportWriter) Close() error                { return w.close() }

// unstarted returns a Follower for tests that run turns themselves. Listings take no time, so a
// busy machine changes nothing.
func unstarted(t *testing.T, o Options) *Follower {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	f.watcher = newWatcher(nil, f.notify)
	calls := time.Duration(0)
	f.disk.since = func() time.Duration { calls++; return calls }
	return f
}

// turns runs turns of the source at path until nothing is left to do. Run is not called.
func turns(t *testing.T, f *Follower, path string) *source {
	t.Helper()
	s := f.sources[path]
	buf := make([]byte, readSize)
	for range 10 {
		if _, err := s.turn(t.Context(), buf); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestEachSinkIsClosedOnce(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *source){
		"renamed":   func(t *testing.T, s *source) { rename(t, s.path, s.path+".1") },
		"truncated": func(t *testing.T, s *source) { truncate(t, s.path) },
		"copied":    func(t *testing.T, s *source) { copyTruncate(t, s.path, s.path+".1") },
		"removed": func(t *testing.T, s *source) {
			if err := os.Remove(s.path); err != nil {
				t.Fatal(err)
			}
			turns(t, s.f, s.path)
			s.cur.moved = time.Now().Add(-linger) // as if it had been removed before linger
			turns(t, s.f, s.path)
			if s.cur != nil {
				t.Fatal("the removed file is still read")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "callgrind.out")
			var r reports
			f := unstarted(t, Options{Names: []string{path}, Open: r.open})
			want := []string{"the first report\nof two lines\n", "the second report\nof two lines\n", "the third report\nof two lines\n"}
			for i, text := range want {
				if i > 0 {
					change(t, f.sources[path])
				}
				write(t, path, text)
				turns(t, f, path)
			}
			s := f.sources[path]
			if err := s.finish(make([]byte, readSize), false, false); err != nil {
				t.Fatal(err)
			}
			s.close()
			if d := cmp.Diff(r.printed, want); d != "" {
				t.Errorf("(-got +want)\n%s", d)
			}
			if slices.ContainsFunc(r.closes, func(n int) bool { return n != 1 }) {
				t.Errorf("closes of each: %v", r.closes)
			}
		})
	}
}

func TestASinkOfSeveralFilesIsClosedAfterTheLast(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	var r reports
	f := unstarted(t, Options{Names: []string{path}, Open: r.open})
	write(t, path, "one\n")
	s := turns(t, f, path)
	next := s.out.Rotated
	s.out.Rotated = nil // the first file's sink gets the lines of the second file, too
	rename(t, path, path+".2")
	write(t, path, "two\n")
	turns(t, f, path)
	s.out.Rotated = next
	rename(t, path, path+".1")
	write(t, path, "three\n")
	turns(t, f, path)
	s.old[0].moved, s.old[0].looked = time.Now().Add(-linger), time.Time{}
	turns(t, f, path)
	if len(s.old) != 1 || len(r.printed) != 0 {
		t.Fatalf("%d rotated files are read, %q is printed; want one, and nothing", len(s.old), r.printed)
	}
	s.old[0].moved, s.old[0].looked = time.Now().Add(-linger), time.Time{}
	turns(t, f, path)
	if err := s.finish(make([]byte, readSize), false, false); err != nil {
		t.Fatal(err)
	}
	s.close()
	if d := cmp.Diff(r.printed, []string{"one\ntwo\n", "three\n"}); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

// A holding sink prints its lines when it is closed or suspended. Until then they are its context.
type holding struct {
	printed string
	sinks   int
	replays bool // the sinks have no context
}

func (h *holding) open(string) (*Sink, error) {
	h.sinks++
	held, quiet, end := "", false, int64(0)
	print := func() error {
		h.printed += held
		if held != "" {
			end = int64(len(h.printed))
		}
		held = ""
		return nil
	}
	return &Sink{
		WriteCloser: reportWriter{func(p []byte) (int, error) {
			if !quiet {
				held += string(p)
			}
			return len(p), nil
		}, print},
		Written: func() int64 { return end },
		Quiet:   func(on bool) { quiet = on },
		Rotated: func() (*Sink, error) { return h.open("") },
		Context: func(dst []byte) ([]byte, bool) { return append(dst, held...), !h.replays },
		Restore: func(context []byte) error { held = string(context); return nil },
	}, nil
}

// Lines that the sinks of rotated files hold back must be printed, whether the run ends by SIGTERM
// or SIGKILL.
func TestWhatRotatedFilesHoldBackIsPrinted(t *testing.T) {
	for _, replays := range []bool{false, true} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("replays %v, killed %v", replays, killed), func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "app.log")
				h := holding{replays: replays}
				follower := func() *Follower {
					f := unstarted(t, Options{Names: []string{path}, State: filepath.Join(dir, "state"), Open: h.open})
					f.saver.restore(f.sources[path])
					return f
				}
				write(t, path, "one\n")
				f := follower()
				turns(t, f, path)
				rename(t, path, path+".1")
				write(t, path, "two\n")
				s := turns(t, f, path)
				s.snapshot()
				if !killed {
					if err := s.finish(nil, true, false); err != nil {
						t.Fatal(err)
					}
					if h.printed != "one\n" {
						t.Errorf("at the end %q is printed", h.printed)
					}
					s.snapshot()
				}
				if err := f.saver.save(); err != nil {
					t.Fatal(err)
				}
				f.saver.release()
				s.close()
				write(t, path, "three\n")
				f = follower()
				s = turns(t, f, path)
				if err := s.finish(make([]byte, readSize), false, false); err != nil {
					t.Fatal(err)
				}
				s.close()
				f.saver.release()
				if want := "one\ntwo\nthree\n"; h.printed != want {
					t.Errorf("got %q, want %q", h.printed, want)
				}
			})
		}
	}
}
