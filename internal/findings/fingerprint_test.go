package findings

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/symbolize"
)

// fingerprintOf returns the fingerprint of frames, innermost first, between blanks. A frame is a
// name, name@OBJECT for a system frame, @OBJECT for a system frame without a name, or +OBJECT for
// an own frame without a name.
func fingerprintOf(stack string) string {
	var s Stack
	for frame := range strings.FieldsSeq(stack) {
		name, object, system := strings.Cut(frame, "@")
		if unnamed, ok := strings.CutPrefix(frame, "+"); ok {
			name, object = "", unnamed
		}
		s.addFrame(&symbolize.Frame{Linkage: name}, object, !system)
	}
	return s.fingerprint([]byte("log/1\x00SIGSEGV"))
}

// addFrame adds a frame as Identify does. f is nil if the address is unresolved; object is the path
// or name of the object file.
func (s *Stack) addFrame(f *symbolize.Frame, object string, own bool) {
	name := ""
	if f != nil {
		name = StableName(f)
	}
	s.add(name, object[strings.LastIndexByte(object, '/')+1:], own)
}

// All stacks of a group must have one fingerprint, which no other group may have.
func TestFingerprintsAreStable(t *testing.T) {
	seen := map[string]string{}
	for _, group := range [][]string{
		{
			"peek invalid main",
			"peek.constprop.0 invalid.isra.0.cold main",
			"memcpy@libc.so.6 peek invalid main __libc_start_main@libc.so.6",
			"__memmove_avx@libc.so.6 memcpy@libc.so.6 peek invalid main",
			"peek peek peek invalid main",
			"peek invalid peek invalid peek invalid main",
		},
		{"invalid main"},
		{"invalid peek main"},
		{"peekinvalid main"},
		{"a b c d e f g h", "a b c d e f g h i j"},
		{"a b c d e f g"},
		{"+app main", "+/opt/v1/app main", "+/opt/v2/app main", "+app +app main"},
		{"raise@libc.so.6 abort@libc.so.6 x@ y@", "@libc.so.6 raise@libc.so.6 @libc.so.6 abort@libc.so.6 x@ y@ z@"},
		{"@/lib/libc.so.6 @/lib/ld.so", "@libc.so.6 @libc.so.6 @ld.so"},
		{""},
	} {
		want := fingerprintOf(group[0])
		for _, stack := range group {
			if got := fingerprintOf(stack); got != want {
				t.Errorf("%s: got %s, want %s as of %s", stack, got, want, group[0])
			}
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%s and %s have the same fingerprint", group[0], other)
		}
		seen[want] = group[0]
	}
	// version 1: it must match stored baselines forever
	if got, want := fingerprintOf("peek invalid main"), "de7006f92d7dfca9cd6a26a06941a97a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A Stack must keep at most 16 names of bounded length, and must allocate nothing for a frame.
func TestStacksAreBounded(t *testing.T) {
	var s Stack
	long := strings.Repeat("x", 2*maxLinkage)
	for i := range 100 {
		s.addFrame(&symbolize.Frame{Linkage: strconv.Itoa(i) + long}, strconv.Itoa(i)+long, i%2 == 0)
		s.addFrame(nil, strconv.Itoa(i)+long, false)
	}
	names := slices.Concat(s.own.names[:], s.named.names[:], s.objects.names[:])
	if n := len(strings.Join(names, "")); n > 16*maxLinkage {
		t.Errorf("%d bytes of names are kept", n)
	}
	main := symbolize.Frame{Linkage: "main.isra.0"}
	if n := testing.AllocsPerRun(10, func() {
		s = Stack{}
		s.addFrame(&main, "/opt/app", true)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// crashing prints the addresses of its stack from within an inlined call and from within a
// constructor.
const crashing = `#include <execinfo.h>
#include <stdio.h>
static inline __attribute__((always_inline)) void peek() {
	void *stack[64];
	int n = backtrace(stack, 64);
	for (int i = 0; i < n; i++) printf("%p ", stack[i]);
	printf("\n");
}
namespace acme {
struct Book {
	int pages;
	__attribute__((noinline)) Book(int n) : pages(n) { peek(); }
	template <class T> int read(T n) { if (n > 0) return read(n - 1) + 1; peek(); asm volatile(""); return pages; }
};
static int open(int n) { Book b(n); asm volatile(""); return b.read((long)n) + b.pages; }
namespace {
struct Shelf { template <class T> int look(T t) { return t(); } };
}
static int look(int n) { Shelf s; return s.look([=] { return open(n); }); }
}
int main(int argc, char **) { return acme::look(argc + 2) > 100; }
`

// The fingerprints must be the same at all levels of optimization, and after lines have moved.
// Inlined calls count as frames.
func TestFingerprintsOfOtherBuildsAreEqual(t *testing.T) {
	testenv.Need(t, "g++")
	var want []string
	for i, flags := range []string{"-O0", "-O2", "-O3 -DMOVED"} {
		dir := t.TempDir()
		source := crashing
		if strings.Contains(flags, "MOVED") {
			source = "\n\n" + source
		}
		if err := os.WriteFile(filepath.Join(dir, "prog.cc"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		app := filepath.Join(dir, fmt.Sprint("app", i))
		build := exec.Command("g++", append(strings.Fields(flags), "-g", "-no-pie", "-fno-pie", "-Wl,--build-id", "-o", app, "prog.cc")...)
		build.Dir = dir
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", flags, err, out)
		}
		out, err := exec.Command(app).Output()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(string(out)) {
			got = append(got, fingerprintOfAddresses(t, app, strings.Fields(line)))
		}
		if want == nil {
			want = got
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 2 || got[0] == got[1] {
			t.Errorf("g++ %s: got %v, want %v", flags, got, want)
		}
	}
}

// fingerprintOfAddresses returns the fingerprint of a stack of return addresses of a program that
// is loaded at its link address.
func fingerprintOfAddresses(t *testing.T, app string, addresses []string) string {
	t.Helper()
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: []string{app}})}})
	defer s.Close()
	o := &report.Options{Symbolizer: s, Wait: time.Minute}
	objects, asker := report.NewObjects(o, 1, false), report.NewAsker(o)
	defer objects.Close()
	f := objects.Named(app)
	if f.Err != nil {
		t.Fatal(f.Err)
	}
	var stack Stack
	var own *Own
	for _, a := range addresses {
		addr, ok := report.Hex([]byte(strings.TrimPrefix(a, "0x")))
		if !ok {
			t.Fatal(a)
		}
		if !report.Covers(f.Code, addr) {
			continue
		}
		got := asker.Frames(nil, f, addr-1)
		if len(got.Frames) == 0 {
			t.Fatalf("%#x: %v", addr, got.Err)
		}
		for i := range got.Frames {
			fr := &got.Frames[i]
			stack.addFrame(fr, app, own.Is(fr.Linkage, fr.File, app))
		}
	}
	return stack.fingerprint([]byte("log/1"))
}

// loggedName must remove the parts of names that tools spell differently.
func TestLoggedNames(t *testing.T) {
	for name, want := range map[string]string{
		"main":                                "main",
		"memcpy@@GLIBC_2.14":                  "memcpy",
		"sort.isra.0":                         "sort",
		"deposit(void*)":                      "deposit",
		"shop::Box<long>::get(int) const":     "get",
		"int shop::run<main::$_1>(main::$_1)": "run",
		"run<main(int, char**)::<lambda()> >": "run",
		"main::$_1::operator()() const":       "operator()",
		"operator()":                          "operator()",
		"(anonymous namespace)::compare(void const*, void const*)": "compare",
		"compare(void const*, void const*) (.cold)":                "compare",
		"compare(int) [clone .cold]":                               "compare",
		"core::panicking::panic_bounds_check":                      "panic_bounds_check",
		"shop::main::{{closure}}":                                  "{{closure}}",
		"operator delete(void*)":                                   "operator delete",
		"<lambda()>":                                               "<lambda()>",
		"":                                                         "",
	} {
		if got := loggedName(&symbolize.Frame{Func: name}); got != want {
			t.Errorf("loggedName(%q) = %q, want %q", name, got, want)
		}
	}
}
