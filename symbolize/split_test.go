package symbolize

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/idtest"
)

// buildIn compiles text to dir/out/shop.o, with dir as the compilation directory, and links it to
// dir/shop.so.
func buildIn(t testing.TB, dir, compiler, text string, flags ...string) fixture {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shop.cc"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	in(t, dir, compiler, append([]string{"-fPIC", "-O2", "-c", "shop.cc", "-o", "out/shop.o"}, flags...)...)
	in(t, dir, "g++", "-shared", "-Wl,--build-id=sha1", "-o", "shop.so", "out/shop.o")
	f := fixture{path: filepath.Join(dir, "shop.so")}
	f.id = idtest.Of(t, f.path)
	return f
}

// in runs a command in dir.
func in(t testing.TB, dir, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // llvm-dwp loops on some inputs
	defer cancel()
	cmd := exec.CommandContext(ctx, tool(t, name), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// everything returns the answers of s for all addresses of f's code, formatted like
// llvm-symbolizer.
func everything(t testing.TB, s *Symbolizer, f fixture, addrs []uint64) string {
	t.Helper()
	var b strings.Builder
	for _, a := range addrs {
		frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%#x\n%s", a, asLLVM(frames))
	}
	return b.String()
}

// sameAsLLVM compares all answers of s for f with llvm-symbolizer.
func sameAsLLVM(t testing.TB, s *Symbolizer, f fixture, addrs []uint64, flags ...string) {
	t.Helper()
	want := f.llvm(t, addrs, flags...)
	differ := 0
	for _, a := range addrs {
		frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if got := asLLVM(frames); got != want[a] {
			if differ++; differ < 4 {
				t.Errorf("%#x\n got\n%s\nwant\n%s", a, got, want[a])
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d addresses differ", differ, len(addrs))
	}
}

func TestSplitUnitsAreThoseOfLLVM(t *testing.T) {
	tests := []struct {
		name, compiler string
		flags          []string
		pack           string // the tool that makes the package; empty: no package
	}{
		{"gcc 5", "g++", []string{"-gdwarf-5"}, ""},
		{"gcc 4", "g++", []string{"-gdwarf-4"}, ""},
		{"gcc 5, type units", "g++", []string{"-gdwarf-5", "-fdebug-types-section"}, ""},
		{"gcc 4, compressed", "g++", []string{"-gdwarf-4", "-gz"}, ""},
		{"clang 5", "clang++-19", []string{"-gdwarf-5"}, ""},
		{"clang 4", "clang++-19", []string{"-gdwarf-4"}, ""},
		{"clang 5, inlined calls in the skeleton", "clang++-19", []string{"-gdwarf-5", "-fsplit-dwarf-inlining"}, ""},
		{"package of clang 5", "clang++-19", []string{"-gdwarf-5"}, "llvm-dwp-19"},
		{"package of clang 4", "clang++-19", []string{"-gdwarf-4"}, "llvm-dwp-19"},
		{"package of gcc 4", "g++", []string{"-gdwarf-4"}, "dwp"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := buildIn(t, dir, tt.compiler, source, append(tt.flags, "-gsplit-dwarf")...)
			addrs := f.textAddresses(t)
			if tt.pack != "" {
				in(t, dir, tt.pack, "-e", "shop.so", "-o", "shop.so.dwp")
				remove(t, filepath.Join(dir, "out/shop.dwo"))
			}
			s := open(t, Options{Reaching: true}, oneFile{f, "here"})
			sameAsLLVM(t, s, f, addrs)
			if tt.pack != "" {
				given := filepath.Join(t.TempDir(), "given")
				move(t, given, filepath.Join(dir, "shop.so.dwp"))
				sameAsLLVM(t, open(t, Options{Reaching: true, DWP: given}, oneFile{f, "here"}), f, addrs, "--dwp="+given)
				sameAsLLVM(t, open(t, Options{Reaching: true}, oneFile{f, "here"}), f, addrs)
			}
			if r := s.Report(f.id, ""); r.Fault != "" {
				t.Errorf("the report says: %s", r.Fault)
			}
		})
	}
}

func remove(t testing.TB, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// move renames a file into a folder, which it makes if necessary.
func move(t testing.TB, to, from string) {
	t.Helper()
	copyFile(t, to, from)
	remove(t, from)
}

// A split unit is found where it was compiled, or next to the program. A package is found next to
// the program. Without either, the line table and symbols answer, and the Report names the missing
// file.
func TestSplitUnitsAreFound(t *testing.T) {
	base := t.TempDir()
	f := buildIn(t, base, "clang++-19", source, "-gdwarf-5", "-gsplit-dwarf", "-fno-split-dwarf-inlining")
	addrs := f.textAddresses(t)
	in(t, base, "llvm-dwp-19", "-e", "shop.so", "-o", "shop.dwp")
	dwo, dwp := filepath.Join(base, "keep.dwo"), filepath.Join(base, "keep.dwp")
	full := everything(t, open(t, Options{}, oneFile{f, "here"}), f, addrs)
	move(t, dwo, filepath.Join(base, "out/shop.dwo"))
	move(t, dwp, filepath.Join(base, "shop.dwp"))
	bare := everything(t, open(t, Options{}, oneFile{f, "here"}), f, addrs)
	if full == bare || !strings.Contains(bare, "shop.cc:") {
		t.Fatal("without the split unit the answers are the same, or have no lines")
	}
	other := buildIn(t, t.TempDir(), "clang++-19", source+"\nint another;", "-gdwarf-5", "-gsplit-dwarf")
	otherDwo := filepath.Join(filepath.Dir(other.path), "out/shop.dwo")

	tests := []struct {
		name  string
		place func(t *testing.T, dir string) // puts other files near dir/shop.so
		want  string
		fault string // in the report
	}{
		{"nowhere", func(*testing.T, string) {}, bare, "out/shop.dwo: no such file"},
		{"beside, in its folder", func(t *testing.T, dir string) { copyFile(t, filepath.Join(dir, "out/shop.dwo"), dwo) }, full, ""},
		{"beside", func(t *testing.T, dir string) { copyFile(t, filepath.Join(dir, "shop.dwo"), dwo) }, full, ""},
		{"another build's, and the right one elsewhere", func(t *testing.T, dir string) {
			copyFile(t, filepath.Join(dir, "out/shop.dwo"), otherDwo)
			copyFile(t, filepath.Join(dir, "shop.dwo"), dwo)
		}, full, ""},
		{"a file of another build", func(t *testing.T, dir string) { copyFile(t, filepath.Join(dir, "shop.dwo"), otherDwo) }, bare, "a file of another build"},
		{"no ELF file", func(t *testing.T, dir string) { write(t, filepath.Join(dir, "shop.dwo"), "junk") }, bare, "shop.dwo: "},
		{"an ELF file without units", func(t *testing.T, dir string) { copyFile(t, filepath.Join(dir, "shop.dwo"), f.path) }, bare, "a file of another build"},
		{"a FIFO", func(t *testing.T, dir string) { in(t, dir, "mkfifo", "shop.dwo") }, bare, "not a regular file"},
		{"a package", func(t *testing.T, dir string) { copyFile(t, filepath.Join(dir, "shop.so.dwp"), dwp) }, full, ""},
		{"a package that is a FIFO", func(t *testing.T, dir string) {
			in(t, dir, "mkfifo", "shop.so.dwp")
			copyFile(t, filepath.Join(dir, "shop.dwo"), dwo)
		}, full, ""},
		{"a package that is none", func(t *testing.T, dir string) {
			copyFile(t, filepath.Join(dir, "shop.so.dwp"), f.path)
			copyFile(t, filepath.Join(dir, "shop.dwo"), dwo)
		}, full, ""},
		{"a damaged package", func(t *testing.T, dir string) {
			copyFile(t, filepath.Join(dir, "shop.so.dwp"), dwp)
			damage(t, filepath.Join(dir, "shop.so.dwp"), ".debug_cu_index")
			copyFile(t, filepath.Join(dir, "shop.dwo"), dwo)
		}, full, ".debug_cu_index"},
		{"a package of another program", func(t *testing.T, dir string) {
			in(t, filepath.Dir(other.path), "llvm-dwp-19", "-e", "shop.so", "-o", filepath.Join(dir, "shop.so.dwp"))
			copyFile(t, filepath.Join(dir, "shop.dwo"), dwo)
		}, full, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			moved := fixture{filepath.Join(dir, "shop.so"), f.id}
			copyFile(t, moved.path, f.path)
			tt.place(t, dir)
			s := open(t, Options{}, oneFile{moved, "here"})
			if got := everything(t, s, moved, addrs); got != tt.want {
				t.Errorf("got\n%.1000s\nwant\n%.1000s", got, tt.want)
			}
			if got := s.Report(f.id, "").Fault; (got == "") != (tt.fault == "") || !strings.Contains(got, tt.fault) {
				t.Errorf("the report says %q, want %q", got, tt.fault)
			}
		})
	}

	t.Run("of a debug file in a tree", func(t *testing.T) {
		for _, name := range []string{"shop.debug.dwp", "shop.dwp", "shop.dwo"} {
			dir := t.TempDir()
			debug := filepath.Join(dir, "usr/lib/shop.debug")
			in(t, base, "objcopy", "--only-keep-debug", f.path, filepath.Join(base, "shop.debug"))
			copyFile(t, debug, filepath.Join(base, "shop.debug"))
			from := dwp
			if strings.HasSuffix(name, ".dwo") {
				from = dwo
			}
			copyFile(t, filepath.Join(filepath.Dir(debug), name), from)
			hex := f.id.String()
			place := filepath.Join(dir, ".build-id", hex[:2], hex[2:]+".debug")
			if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(debug, place); err != nil {
				t.Fatal(err)
			}
			s := open(t, Options{}, buildid.NewTree(dir))
			if got := everything(t, s, f, addrs); got != full {
				t.Errorf("%s: got\n%.1000s\nwant\n%.1000s", name, got, full)
			}
		}
	})
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// In a program with many split units, few of their files may be open at a time. The memory for them
// must be in the ledger.
func TestSplitFilesAreFewAndCounted(t *testing.T) {
	fuzztest.WithoutRace(t)
	const units, most = 100, 64
	dir := t.TempDir()
	args := []string{"-fPIC", "-O2", "-g", "-gsplit-dwarf", "-c"}
	var objects []string
	for i := range units {
		write(t, filepath.Join(dir, fmt.Sprintf("u%d.c", i)), fmt.Sprintf("static inline int in%d(volatile int *p) { return *p * %d; }\nint out%d(volatile int *p) { return in%d(p); }\n", i, i+3, i, i))
		args = append(args, fmt.Sprintf("u%d.c", i))
		objects = append(objects, fmt.Sprintf("u%d.o", i))
	}
	in(t, dir, "gcc", args...)
	in(t, dir, "gcc", append([]string{"-shared", "-Wl,--build-id=sha1", "-o", "shop.so"}, objects...)...)
	f := fixture{path: filepath.Join(dir, "shop.so")}
	f.id = idtest.Of(t, f.path)
	s := open(t, Options{}, oneFile{f, "here"})
	symbols := f.symbols(t)
	for range 2 {
		for i := range units {
			got := code(s, f.at(symbols[fmt.Sprintf("out%d", i)].Value))
			if !strings.HasPrefix(got, fmt.Sprintf("in%d ", i)) {
				t.Fatalf("unit %d: got %q", i, got)
			}
			if n := s.cache.memory.mapped.Load(); n > 1+most || n != int64(2+i) && n <= int64(1+i) && i < most-1 {
				t.Fatalf("%d files are counted after %d units, want at most %d", n, i+1, 1+most)
			}
		}
	}
	e := s.cache.all()[0]
	e.mu.Lock()
	if n := e.module.dw.Linked(); n != most {
		t.Errorf("%d files of split units are open, want %d", n, most)
	}
	before := e.module.dw.Footprint()
	e.module.dw.Shrink(before / 2)
	if n := e.module.dw.Footprint(); n > before/2 || n == 0 {
		t.Errorf("%d bytes are held after Shrink(%d)", n, before/2)
	}
	e.module.dw.Shrink(0)
	if n, files := e.module.dw.Footprint(), e.module.dw.Linked(); n != 0 || files != 0 {
		t.Errorf("%d bytes and %d files are held after Shrink(0)", n, files)
	}
	e.mu.Unlock()
	if got := code(s, f.at(symbols["out7"].Value)); !strings.HasPrefix(got, "in7 ") {
		t.Errorf("after Shrink: got %q", got)
	}
	e.mu.Lock()
	s.cache.shut(e)
	e.mu.Unlock()
	if n := s.cache.memory.mapped.Load(); n != 0 {
		t.Errorf("%d files are counted once the module is closed", n)
	}
}

// If a split unit's file is truncated while it is mapped, the module must be set aside, and none of
// its files may stay open.
func TestSplitFileThatShrinks(t *testing.T) {
	dir := t.TempDir()
	f := buildIn(t, dir, "clang++-19", source, "-gdwarf-5", "-gsplit-dwarf")
	s := open(t, Options{}, oneFile{f, "here"})
	l := f.at(f.symbols(t)["entry"].Value)
	if got := code(s, l); !strings.HasPrefix(got, "entry ") || s.cache.memory.mapped.Load() != 2 {
		t.Fatalf("got %q with %d files mapped", got, s.cache.memory.mapped.Load())
	}
	if err := os.Truncate(filepath.Join(dir, "out/shop.dwo"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := s.Ask(context.Background(), nil, l, Policy{})
	var fault *FaultError
	if !errors.As(err, &fault) {
		t.Errorf("got %v, want a FaultError", err)
	}
	if n := s.cache.memory.mapped.Load(); n != 0 {
		t.Errorf("%d files are counted, want none", n)
	}
}
