package symbolize

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is the source of a shared library with inlined calls, templates, a cold part and data.
// Only the symbol table names some of its functions and labels.
const source = `
#include <stdlib.h>
namespace shop {
template <class T> struct box { T items[4]; T get(int i) const { return items[i & 3] * 7; } };
volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) { sink = x; return x + sink; }
static inline __attribute__((always_inline)) int middle(int x) { return inner(x) * inner(x + 1); }
__attribute__((noinline, cold)) void fail(int x) { sink = -x; abort(); }
__attribute__((noinline)) int price(const box<int> &b, int x) {
  if (x < 0) fail(x);
  return middle(b.get(x)) + 1;
}
__attribute__((noinline)) static int local(int x) { return [x](int y) { sink = y; return x * y; }(sink); }
}
extern "C" {
int table[6] = {1, 2, 3, 4, 5, 6};
int entry(int x) { shop::box<int> b = {{x, 2, 3, 4}}; return shop::price(b, x) + shop::local(x); }
}
__asm__(".pushsection .text\n.globl bare\n.type bare,@function\nbare:\n nop\n nop\n nop\n ret\n.size bare,.-bare\n.popsection\n"
        ".pushsection .data\n.globl label\nlabel:\n.quad 1\n.quad 2\n.popsection\n");
`

// tool returns name. It skips the test if the program is missing.
func tool(t testing.TB, name string) string {
	t.Helper()
	testenv.Need(t, name)
	return name
}

func run(t testing.TB, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(tool(t, name), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// A fixture is a built library.
type fixture struct {
	path string
	id   buildid.ID
}

// build compiles text as a shared library whose build ID is derived from its name.
func build(t testing.TB, name, text string, flags ...string) fixture {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, name+".cc")
	if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(name))
	id, err := buildid.FromBytes(sum[:20])
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{path: filepath.Join(dir, name+".so"), id: id}
	args := []string{"-shared", "-fPIC", "-O2", "-g", "-fdebug-prefix-map=" + dir + "=/src", "-Wl,--build-id=0x" + hex.EncodeToString(sum[:20]), "-o", f.path, src}
	run(t, "g++", append(args, flags...)...)
	return f
}

// as returns a copy of f with the build ID that build derives from name.
func (f fixture) as(t testing.TB, name string) fixture {
	t.Helper()
	data, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(name))
	id, err := buildid.FromBytes(sum[:20])
	if err != nil {
		t.Fatal(err)
	}
	f2 := fixture{path: filepath.Join(t.TempDir(), name+".so"), id: id}
	if err := os.WriteFile(f2.path, bytes.ReplaceAll(data, f.id.Bytes(), id.Bytes()), 0o666); err != nil {
		t.Fatal(err)
	}
	return f2
}

// variant returns a copy of f made by objcopy with these flags.
func (f fixture) variant(t testing.TB, flags ...string) fixture {
	t.Helper()
	f2 := fixture{path: filepath.Join(t.TempDir(), filepath.Base(f.path)), id: f.id}
	run(t, "objcopy", append(flags, f.path, f2.path)...)
	return f2
}

// place copies f into the tree at dir.
func (f fixture) place(t testing.TB, dir string) (path string) {
	t.Helper()
	hex := f.id.String()
	path = filepath.Join(dir, ".build-id", hex[:2], hex[2:]+".debug")
	copyFile(t, path, f.path)
	return path
}

// copyFile replaces the file at the path to with a copy of the file at the path from, by renaming.
func copyFile(t testing.TB, to, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o777)
	}
	if err == nil {
		err = os.WriteFile(to+".new", data, 0o666)
	}
	if err == nil {
		err = os.Rename(to+".new", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// symbols returns the symbols of f by name, from .symtab or, without it, .dynsym.
func (f fixture) symbols(t testing.TB) map[string]elf.Symbol {
	t.Helper()
	e, err := elf.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	all, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]elf.Symbol)
	for _, s := range all {
		byName[s.Name] = s
	}
	return byName
}

func (f fixture) at(addr uint64) Location { return Location{ID: f.id, Name: "shop.so", Addr: addr} }

// oneFile is a finder with one file.
type oneFile struct {
	fixture
	where string
}

func (o oneFile) Find(_ context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	f, err := buildid.Open(o.path, o.where, q.ID)
	if err != nil {
		note(buildid.Attempt{Where: o.where, Reason: err.Error()})
	}
	return f, err
}

type finderFunc func(context.Context, buildid.Query, func(buildid.Attempt)) (*buildid.File, error)

func (f finderFunc) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	return f(ctx, q, note)
}

// open returns a Symbolizer that is closed at the end of the test.
func open(t testing.TB, o Options, finders ...Finder) *Symbolizer {
	t.Helper()
	o.Finders = finders
	s := New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// text formats each frame as a line: name, file:line:column if known, the offset from the symbol if
// not 0, and "inlined" for an inlined call.
func text(frames []Frame) string {
	var b strings.Builder
	for _, f := range frames {
		fmt.Fprintf(&b, "%s", f.Func)
		if f.HasLine {
			fmt.Fprintf(&b, " %s:%d:%d", f.File, f.Line, f.Column)
		}
		if f.Offset != 0 {
			fmt.Fprintf(&b, " +%d", f.Offset)
		}
		if f.Inlined {
			b.WriteString(" inlined")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// code returns the frames at l as text, or the error.
func code(s *Symbolizer, l Location) string {
	frames, err := s.Ask(context.Background(), nil, l, Policy{})
	if err != nil {
		return err.Error()
	}
	return text(frames)
}

// damage overwrites a section of the file at path with bytes of 0xff.
func damage(t testing.TB, path, section string) {
	t.Helper()
	e, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Section(section)
	e.Close()
	if s == nil {
		t.Fatalf("%s has no section %s", path, section)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(io.NewOffsetWriter(f, int64(s.Offset)), strings.NewReader(strings.Repeat("\xff", int(s.Size)))); err != nil {
		t.Fatal(err)
	}
}
