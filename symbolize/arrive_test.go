package symbolize

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// A file that appears below a symbol path, or in a list, after a miss is found at the next search.
func TestAFileThatArrivesIsFound(t *testing.T) {
	f := build(t, "shop", source)
	entry := f.symbols(t)["entry"].Value
	tests := []struct {
		name   string
		finder func(dir string) Finder
		place  string
	}{
		{"below a symbol path", func(dir string) Finder {
			return buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{dir}})
		}, "new/folder/shop"},
		{"at a symbol path", func(dir string) Finder {
			return buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{filepath.Join(dir, "shop")}})
		}, "shop"},
		{"below a remembered symbol path", func(dir string) Finder {
			return buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{dir}, CacheDir: t.TempDir()})
		}, "new/folder/shop"},
		{"in a list", func(dir string) Finder { return buildid.NewIDsFile(filepath.Join(dir, "ids.txt")) }, "shop"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				if err := os.WriteFile(filepath.Join(dir, "ids.txt"), []byte(f.id.String()+" shop\n"), 0o666); err != nil {
					t.Fatal(err)
				}
				s := New(Options{Finders: []Finder{tt.finder(dir)}})
				defer s.Close()
				if _, err := s.Ask(context.Background(), nil, f.at(entry), Policy{}); !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("before: got %v, want a miss", err)
				}
				copyFile(t, filepath.Join(dir, filepath.FromSlash(tt.place)), f.path)
				time.Sleep(retryMiss + 1)
				s.Ask(context.Background(), nil, f.at(entry), Policy{}) // starts the search in the background
				synctest.Wait()
				frames, err := s.Ask(context.Background(), nil, f.at(entry), Policy{})
				if got, want := text(frames), "entry /src/shop.cc:17:35\n"; got != want {
					t.Errorf("afterwards: got %q, %v, want %q", got, err, want)
				}
			})
		})
	}
}
