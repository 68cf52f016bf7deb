package symbolize

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/idtest"
)

func TestDebugLinksAreFollowed(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.textAddresses(t)
	full := everything(t, open(t, Options{}, oneFile{f, "here"}), f, addrs)
	bare := everything(t, open(t, Options{}, oneFile{f.variant(t, "--strip-debug"), "here"}), f, addrs)
	src := filepath.Dir(f.path)
	in(t, src, "objcopy", "--only-keep-debug", "shop.so", "shop.dbg")
	in(t, src, "llvm-objcopy-19", "-R", ".symtab", "shop.dbg", "shop.nosym")
	in(t, src, "objcopy", "--strip-debug", "shop.so", "stripped")
	in(t, src, "objcopy", "--strip-debug", "--add-gnu-debuglink=shop.dbg", "shop.so", "linked")
	in(t, src, "cp", "shop.dbg", "keep.dbg")
	in(t, src, "mv", "shop.nosym", "shop.dbg")
	in(t, src, "objcopy", "--strip-debug", "--add-gnu-debuglink=shop.dbg", "shop.so", "linked.nosym")
	in(t, src, "mv", "shop.dbg", "shop.nosym")
	at := func(name string) string { return filepath.Join(src, name) }
	tests := []struct {
		name    string
		program string
		debug   string
		where   string // path below the folder of the program or, with %, below the folder of links
		want    string
	}{
		{"beside", "linked", "keep.dbg", "shop.dbg", full},
		{"in .debug", "linked", "keep.dbg", ".debug/shop.dbg", full},
		{"below a folder of links", "linked", "keep.dbg", "%", full},
		{"no symbols in the debug file", "linked.nosym", "shop.nosym", "shop.dbg", full},
		{"another sum", "linked", "shop.nosym", "shop.dbg", bare},
		{"no link", "stripped", "keep.dbg", "shop.dbg", bare},
		{"nowhere", "linked", "keep.dbg", "other.dbg", bare},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, links := t.TempDir(), t.TempDir()
			program := fixture{filepath.Join(dir, "shop.so"), f.id}
			copyFile(t, program.path, at(tt.program))
			place := filepath.Join(dir, tt.where)
			if tt.where == "%" {
				place = filepath.Join(links, dir, "shop.dbg")
			}
			copyFile(t, place, at(tt.debug))
			s := open(t, Options{LinkDirs: []string{links}}, oneFile{program, "here"})
			if got := everything(t, s, program, addrs); got != tt.want {
				t.Errorf("got\n%.600s\nwant\n%.600s", got, tt.want)
			}
		})
	}

	t.Run("by ID first", func(t *testing.T) {
		dir, tree := t.TempDir(), t.TempDir()
		program := fixture{filepath.Join(dir, "shop.so"), f.id}
		copyFile(t, program.path, at("linked"))
		copyFile(t, filepath.Join(dir, "shop.dbg"), at("keep.dbg"))
		place := fixture{at("keep.dbg"), f.id}.place(t, tree)
		s := open(t, Options{}, oneFile{program, "here"}, buildid.NewTree(tree))
		if got := everything(t, s, program, addrs); got != full {
			t.Errorf("got\n%.600s\nwant\n%.600s", got, full)
		}
		if r := s.Report(f.id, ""); r.Path != place {
			t.Errorf("%s is used, want %s", r.Path, place)
		}
	})

	t.Run("before servers", func(t *testing.T) {
		dir := t.TempDir()
		program := fixture{filepath.Join(dir, "shop.so"), f.id}
		copyFile(t, program.path, at("linked"))
		copyFile(t, filepath.Join(dir, "shop.dbg"), at("keep.dbg"))
		server := finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
			t.Error("a server was asked for a file that is at hand")
			return nil, fs.ErrNotExist
		})
		s := open(t, Options{Servers: []Finder{server}}, oneFile{program, "here"})
		if got := everything(t, s, program, addrs); got != full {
			t.Errorf("got\n%.600s\nwant\n%.600s", got, full)
		}
	})

	t.Run("symbols of one file, debug information of another", func(t *testing.T) {
		tree := t.TempDir()
		fixture{at("shop.nosym"), f.id}.place(t, tree)
		s := open(t, Options{}, oneFile{fixture{at("stripped"), f.id}, "here"}, buildid.NewTree(tree))
		if got := everything(t, s, f, addrs); got != full {
			t.Errorf("got\n%.600s\nwant\n%.600s", got, full)
		}
		if n := s.cache.memory.mapped.Load(); n != 2 {
			t.Errorf("%d files are counted, want 2", n)
		}
	})
}

func TestSupplementaryFilesAreFound(t *testing.T) {
	f := build(t, "shop", source)
	addrs := f.textAddresses(t)
	full := everything(t, open(t, Options{}, oneFile{f, "here"}), f, addrs)
	src := filepath.Dir(f.path)
	alt := func(name string, flags ...string) {
		in(t, src, "cp", "shop.so", name)
		in(t, src, "cp", "shop.so", name+".other")
		in(t, src, "dwz", append(flags, "-m", name+".alt", "-M", "../sup/shop.alt", "-h", name, name+".other")...)
	}
	alt("gnu")
	alt("five", "--dwarf-5")
	altID := idtest.Of(t, filepath.Join(src, "gnu.alt"))
	bare := everything(t, open(t, Options{NoAlt: true}, oneFile{fixture{filepath.Join(src, "gnu"), f.id}, "here"}), f, addrs)
	if bare == full {
		t.Fatal("dwz moved no names")
	}
	tests := []struct {
		name    string
		program string
		place   func(t *testing.T, dir, links string) Finder // puts the supplementary file
		o       Options
		want    string
		fault   string
	}{
		{"beside", "gnu", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(dir, "../sup/shop.alt"), filepath.Join(src, "gnu.alt"))
			return nil
		}, Options{}, full, ""},
		{"in .dwz", "gnu", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(links, ".dwz/shop.alt"), filepath.Join(src, "gnu.alt"))
			return nil
		}, Options{}, full, ""},
		{"by a finder", "gnu", func(t *testing.T, dir, links string) Finder {
			tree := t.TempDir()
			fixture{filepath.Join(src, "gnu.alt"), altID}.place(t, tree)
			return finderFunc(func(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
				if q.ID == altID && q.Kind != buildid.Alt {
					t.Errorf("the supplementary file is looked for as kind %d", q.Kind)
				}
				return buildid.NewTree(tree).Find(ctx, q, note)
			})
		}, Options{}, full, ""},
		{"not wanted", "gnu", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(dir, "../sup/shop.alt"), filepath.Join(src, "gnu.alt"))
			return nil
		}, Options{NoAlt: true}, bare, ""},
		{"nowhere", "gnu", func(t *testing.T, dir, links string) Finder { return nil }, Options{}, bare, "supplementary file"},
		{"another", "gnu", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(dir, "../sup/shop.alt"), f.path)
			return nil
		}, Options{}, bare, "supplementary file"},
		{"of DWARF 5", "five", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(dir, "../sup/shop.alt"), filepath.Join(src, "five.alt"))
			return nil
		}, Options{}, full, ""},
		{"of DWARF 5, another", "five", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(dir, "../sup/shop.alt"), filepath.Join(src, "gnu.alt"))
			return nil
		}, Options{}, bare, "supplementary file"},
		{"of DWARF 5, itself", "five", func(t *testing.T, dir, links string) Finder {
			copyFile(t, filepath.Join(dir, "../sup/shop.alt"), filepath.Join(src, "five"))
			return nil
		}, Options{}, bare, "supplementary file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, links := t.TempDir(), t.TempDir()
			dir := filepath.Join(root, "bin")
			program := fixture{filepath.Join(dir, "shop.so"), f.id}
			copyFile(t, program.path, filepath.Join(src, tt.program))
			finders := []Finder{oneFile{program, "here"}}
			if finder := tt.place(t, dir, links); finder != nil {
				finders = append(finders, finder)
			}
			tt.o.LinkDirs = []string{links}
			s := open(t, tt.o, finders...)
			if got := everything(t, s, program, addrs); got != tt.want {
				t.Errorf("got\n%.600s\nwant\n%.600s", got, tt.want)
			}
			if got := s.Report(f.id, "").Fault; (got == "") != (tt.fault == "") || !strings.Contains(got, tt.fault) {
				t.Errorf("the report says %q, want %q", got, tt.fault)
			}
		})
	}
}

// With NoAlt, answers equal LLVM's answers without the supplementary file.
func TestWithoutSupplementaryFileAsLLVM(t *testing.T) {
	f := build(t, "shop", source)
	src := filepath.Dir(f.path)
	in(t, src, "cp", "shop.so", "other")
	in(t, src, "dwz", "-m", "shop.alt", "-h", "shop.so", "other")
	sameAsLLVM(t, open(t, Options{Reaching: true, NoAlt: true}, oneFile{f, "here"}), f, f.textAddresses(t))
}
