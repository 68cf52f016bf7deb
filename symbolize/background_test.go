package symbolize

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
)

// eager returns a Symbolizer that makes an index after eight lookups.
func eager(t *testing.T, dir string, f fixture) *Symbolizer {
	s := open(t, Options{IndexDir: dir}, oneFile{fixture: f})
	s.background.part, s.background.least = 1<<40, 1
	return s
}

// indexOf reports whether f's module answers from an index.
func indexOf(t *testing.T, s *Symbolizer, f fixture) bool {
	t.Helper()
	e, err := s.cache.entry(f.id, "")
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.module != nil && e.module.index != nil
}

// answers returns the frames at each address.
func answers(t *testing.T, s *Symbolizer, f fixture, addrs []uint64) (all [][]Frame) {
	t.Helper()
	for _, a := range addrs {
		frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, frames)
	}
	return all
}

func same(a, b [][]Frame) bool { return slices.EqualFunc(a, b, slices.Equal[[]Frame]) }

func TestIndexIsMadeInTheBackground(t *testing.T) {
	for name, flags := range map[string][]string{"plain": nil, "compressed": {"-gz=zlib"}} {
		t.Run(name, func(t *testing.T) {
			f := build(t, "shop "+name, source, flags...)
			addrs := f.textAddresses(t)
			dir := filepath.Join(t.TempDir(), "symfilter")
			s := eager(t, dir, f)
			want := answers(t, s, f, addrs[:7])
			if entries, _ := os.ReadDir(dir); len(entries) > 0 || s.background.busy.Load() {
				t.Error("an index was begun after 7 lookups")
			}
			want = append(want, answers(t, s, f, addrs[7:])...)
			s.tasks.Wait()
			if got := answers(t, s, f, addrs); !same(got, want) {
				t.Error("the index says something else")
			}
			s.tasks.Wait()
			if !indexOf(t, s, f) {
				t.Error("the index is not in use")
			}
			e, _ := s.cache.entry(f.id, "")
			if n := e.module.obj.Footprint(); n > 64<<10 {
				t.Errorf("%d bytes of sections are still held", n)
			}

			next := open(t, Options{IndexDir: dir}, oneFile{fixture: f})
			if got := answers(t, next, f, addrs); !same(got, want) || !indexOf(t, next, f) {
				t.Error("the next run does not answer from the index, or otherwise")
			}
		})
	}
}

// Examinations of a file, which each raw backtrace in a log causes, are not lookups: they are not a
// reason to make an index.
func TestExaminationsAreNotAReasonForAnIndex(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.textAddresses(t)
	s := eager(t, t.TempDir(), f)
	answers(t, s, f, addrs[:7])
	for range 2 * accountEvery {
		if err := s.examine(context.Background(), f.id, "", func(*object.File) {}); err != nil {
			t.Fatal(err)
		}
	}
	if s.background.busy.Load() {
		t.Error("an index was begun after 7 lookups and many examinations")
	}
	answers(t, s, f, addrs[7:])
	s.tasks.Wait()
	if !indexOf(t, s, f) {
		t.Error("no index was made after 8 lookups and more")
	}
}

func TestNoIndexIsMadeWithoutADirectory(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.textAddresses(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", filepath.Join(file, "below")} {
		s := eager(t, dir, f)
		answers(t, s, f, addrs)
		s.tasks.Wait()
		if indexOf(t, s, f) {
			t.Errorf("an index in %q", dir)
		}
	}
}

func TestIndexThatDoesNotFitIsMadeAgain(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.textAddresses(t)
	dir := t.TempDir()
	if _, err := indexFile(context.Background(), f.path, access.IndexOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	plain := open(t, Options{}, oneFile{fixture: f})
	want := answers(t, plain, f, addrs)
	path := filepath.Join(dir, f.id.String()+".symindex")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoil := map[string]func(b []byte) []byte{
		"cut":           func(b []byte) []byte { return b[:len(b)/2] },
		"empty":         func(b []byte) []byte { return nil },
		"first section": func(b []byte) []byte { b[600] ^= 4; return b },
		"last byte":     func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"header":        func(b []byte) []byte { b[40] ^= 1; return b },
		"version":       func(b []byte) []byte { b[8]++; return b },
	}
	for name, spoil := range spoil {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, spoil(slices.Clone(good)), 0o600); err != nil {
				t.Fatal(err)
			}
			s := eager(t, dir, f)
			if got := answers(t, s, f, addrs); !same(got, want) {
				t.Error("a spoilt index is believed")
			}
			s.tasks.Wait()
			next := open(t, Options{IndexDir: dir}, oneFile{fixture: f})
			if got := answers(t, next, f, addrs); !same(got, want) {
				t.Error("the next run answers otherwise")
			}
			if b, err := os.ReadFile(path); err == nil && name != "first section" && !slices.Equal(b, good) {
				t.Error("the index is not what it was")
			}
		})
	}
	t.Run("another file", func(t *testing.T) {
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
		now := time.Now().Add(time.Hour)
		if err := os.Chtimes(f.path, now, now); err != nil {
			t.Fatal(err)
		}
		s := open(t, Options{IndexDir: dir}, oneFile{fixture: f})
		answers(t, s, f, addrs[:1])
		if indexOf(t, s, f) {
			t.Error("the index of a file from before is in use")
		}
	})
}

func TestIndexIsTheSameHoweverManyMakeIt(t *testing.T) {
	f := build(t, "shop", indexSource, "-O2", "-ffunction-sections")
	var first []byte
	for _, workers := range []int{1, 2, 5} {
		dir := t.TempDir()
		if _, err := indexFile(context.Background(), f.path, access.IndexOptions{Dir: dir, Workers: workers}); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, f.id.String()+".symindex"))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		} else if !slices.Equal(first, b) {
			t.Errorf("%d workers make another index", workers)
		}
	}
}
