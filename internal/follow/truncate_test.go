package follow

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func truncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
}

// expectMessages waits for an event for each pattern, which must match it.
func (r *running) expectMessages(patterns ...string) {
	r.t.Helper()
	r.until(fmt.Sprintf("%d events", len(patterns)), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.events) >= len(patterns)
	})
	events := strings.Split(r.messages(), "\n")
	for i, pattern := range patterns {
		if len(events) != len(patterns) || !regexp.MustCompile("^(?:"+pattern+")$").MatchString(events[i]) {
			r.t.Fatalf("told\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(patterns, "\n"))
		}
	}
}

func TestTruncatedFilesAreReadFromTheirBeginning(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "one\ntwo\n")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.expect(path, "one\ntwo\n")
		truncate(t, path)
		r.expectMessages(`app.log: was truncated, for the 1st time; lost: anything written in the [0-9.]+m?s before the truncation`)
		write(t, path, "three\n")
		r.expect(path, "one\ntwo\nthree\n")
		truncate(t, path)
		write(t, path, "4\n")
		r.expect(path, "one\ntwo\nthree\n4\n")
	})
}

func TestTruncationEndsAnUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\nunfinished")
	r := begin(t, newLog(), Options{Names: []string{path}})
	r.expect(path, "one\n")
	truncate(t, path)
	write(t, path, "two\n")
	r.expect(path, "one\nunfinished\ntwo\n")
	r.expectMessages(`app.log: was truncated, for the 1st time; .*`)
}

func TestTruncationCountsWhatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	for n, want := range map[int]int64{10: 0, keepSize: 0, keepSize + 1: keepSize + 1, 2 * rereadSize: 2 * rereadSize} {
		if err := os.WriteFile(path, []byte("one\n"+strings.Repeat("x", n)), 0o666); err != nil {
			t.Fatal(err)
		}
		var got string
		s, read := generationOf(t, path, &got)
		read()
		truncate(t, path)
		line, lost := s.kept()
		if err := read(); err != errTruncated || lost != want || int64(len(line)) != int64(n)-want || got != "one\n" {
			t.Errorf("%d bytes: %v, %d bytes kept, %d lost, and %q printed; want %d lost", n, err, len(line), lost, got, want)
		}
	}
}

// generationOf opens the file at path. It returns a function that appends all new lines of the file
// to got.
func generationOf(t *testing.T, path string, got *string) (g *generation, read func() error) {
	t.Helper()
	g, err := newDisk(nil).openGeneration(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	buf := make([]byte, readSize)
	return g, func() error {
		for {
			more, err := g.lines(t.Context(), buf, func(p []byte, quiet bool) error {
				*got += string(p)
				return nil
			})
			if err != nil || !more {
				return err
			}
		}
	}
}

func TestTruncatedAndGrownBeforeTheNextLook(t *testing.T) {
	banner := strings.Repeat("the same banner in each file\n", 20)
	for name, first := range map[string]string{"other beginning": "one\n", "same beginning": banner + "one\n"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, first)
			l, g := newLog(), newGate()
			r := begin(t, l, Options{Names: []string{path}, Open: l.gated(g)})
			<-g.waiting
			truncate(t, path)
			second := banner + strings.Repeat("two\n", 1000)
			write(t, path, second)
			g.open()
			r.expect(path, first+second)
			r.expectMessages(`app.log: was truncated, for the 1st time; .*`)
		})
	}
}

func TestHolesAfterTruncationAreSkipped(t *testing.T) {
	for _, size := range []int{100, 1 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			f, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			first := strings.Repeat("x", size) + "\n"
			io.WriteString(f, first)
			r := begin(t, newLog(), Options{Names: []string{path}})
			r.expect(path, first)
			truncate(t, path)
			io.WriteString(f, "two\n\x00three\n")
			want := first + "two\n\x00three\n"
			r.expect(path, want)
			io.WriteString(f, "four\n")
			r.expect(path, want+"four\n")
		})
	}
}

func TestCopiesOfTruncatedFilesAreReadToTheirEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	l, g := newLog(), newGate()
	r := begin(t, l, Options{Names: []string{path}, Open: l.gated(g)})
	<-g.waiting
	write(t, path, "two\nunfinished")
	copyTruncate(t, path, path+".1")
	write(t, path, "three\n")
	g.open()
	r.expect(path, "one\ntwo\nunfinished\nthree\n")
	r.expectMessages(`app.log: was truncated, for the 1st time; the rest of the old content is read from app.log.1; bytes written after this copy are lost`)
	write(t, path, "four\n")
	r.expect(path, "one\ntwo\nunfinished\nthree\nfour\n")
	rename(t, path+".1", path+".2")
	copyTruncate(t, path, path+".1")
	write(t, path, "five\n")
	r.expect(path, "one\ntwo\nunfinished\nthree\nfour\nfive\n")
	rename(t, path, path+".0")
	write(t, path, "six\n")
	r.expect(path, "one\ntwo\nunfinished\nthree\nfour\nfive\nsix\n")
}

func copyTruncate(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, 0o666); err != nil {
		t.Fatal(err)
	}
	truncate(t, from)
}

// A truncation may lose unread lines, but no line may be torn, repeated or out of order. At least
// one truncation must be reported. Each line has 16 bytes, so none crosses a page: the system may
// show the part on the first page before the rest.
func TestTruncationLosesOnlyItsWindow(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			path := filepath.Join(t.TempDir(), "app.log")
			numbered := func(n int) string { return fmt.Sprintf("line %010d\n", n) }
			write(t, path, numbered(0))
			all := followers(t, path)
			expectAll(all, path, numbered(0))
			n, truncations := 1, 0
			for range 8 {
				for range random.IntN(2000) {
					write(t, path, numbered(n))
					n++
				}
				time.Sleep(time.Duration(random.IntN(2)) * 20 * time.Millisecond)
				truncate(t, path)
				truncations++
			}
			last := numbered(n)
			write(t, path, last)
			for _, r := range all {
				r.until("the last line", func() bool { return strings.HasSuffix(r.text(path), last) })
				at := -1
				for line := range strings.Lines(r.text(path)) {
					var n int
					if _, err := fmt.Sscanf(line, "line %d\n", &n); err != nil || n <= at {
						t.Fatalf("got %q behind line %d", line, at)
					}
					at = n
				}
				if told := strings.Count(r.messages(), "was truncated"); told < 1 || told > truncations {
					t.Errorf("told %d truncations of %d", told, truncations)
				}
			}
		})
	}
}

// If a file is truncated and rewritten all the time, each line must be printed at most once.
func TestHeadsAndLinesAreOfOneContent(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "")
	f, err := New(Options{Names: []string{path}, Open: newLog().open})
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.disk.openGeneration(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	w, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	done := make(chan bool)
	go func() {
		defer close(done)
		for n := 0; n < 60000; {
			w.Truncate(0)
			for range 1 + n%5 { // 16 bytes each: see TestTruncationLosesOnlyItsWindow
				fmt.Fprintf(w, "line %010d\n", n)
				n++
			}
		}
	}()
	last, looks, buf := -1, 0, make([]byte, readSize)
	for ended := false; !ended; looks++ {
		select {
		case <-done:
			ended = true
		default:
		}
		_, err := g.lines(t.Context(), buf, func(p []byte, quiet bool) error {
			for line := range strings.Lines(string(p)) {
				var n int
				if _, err := fmt.Sscanf(line, "line %d\n", &n); err != nil || n <= last {
					t.Fatalf("got %q behind line %d", line, last)
				}
				last = n
			}
			return nil
		})
		if errors.Is(err, errTruncated) {
			err = g.rewind()
		}
		if err != nil && !errors.Is(err, errTruncated) {
			t.Fatal(err)
		}
	}
	t.Logf("%d looks, last line %d", looks, last)
}
