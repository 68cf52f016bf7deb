package publish

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// call returns a frame of a function in the object. libc.so.6 is an object of the system.
func call(fn, linkage, object string, inlined bool) *findings.TraceFrame {
	return &findings.TraceFrame{Frame: symbolize.Frame{Func: fn, Linkage: linkage, Inlined: inlined, File: "/src/a.cc", Line: 7}, Object: object}
}

// runOf returns a run with one process, which has these findings of Memcheck.
func runOf(t testing.TB, all ...findings.Finding) *Result {
	t.Helper()
	own, err := findings.NewOwn(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := findings.New(nil)
	p := s.Begin(findings.Process{Source: findings.FromValgrind})
	for i := range all {
		x := &all[i]
		x.Source, x.Tool = findings.FromValgrind, "memcheck"
		x.Identify(own)
		s.Add(p, x, 1)
	}
	return &Result{Collection: s}
}

func finding(kind, message string, frames ...*findings.TraceFrame) findings.Finding {
	return findings.Finding{Kind: kind, Message: message, Traces: []findings.Trace{{Frames: frames}}}
}

const (
	app  = "/opt/app"
	libc = "/lib/libc.so.6"
)

// systemFrame returns a frame in the C library, without a line.
func systemFrame(name string) *findings.TraceFrame {
	return &findings.TraceFrame{Frame: symbolize.Frame{Func: name, Linkage: name}, Object: libc}
}

func TestSuppressions(t *testing.T) {
	mainFrame := call("main", "main", app, false)
	r := runOf(t,
		finding("InvalidRead", "Invalid read of size 4", call("int app::peek<int>(int const*)", "_ZN3app4peekIiEEiPKi", app, true), call("app::use(int)", "_ZN3app3useEi", app, false), mainFrame, systemFrame("__libc_start_main")),
		finding("Leak_PossiblyLost", "8 bytes in 1 blocks are possibly lost in loss record 1 of 2", systemFrame("malloc"), call("app::A::A()", "_ZN3app1AC2Ev", app, false)),
		finding("Leak_PossiblyLost", "9 bytes in 1 blocks are possibly lost in loss record 2 of 2", systemFrame("malloc"), call("app::A::A()", "_ZN3app1AC1Ev", app, false), mainFrame), // covered
		finding("UninitCondition", "Conditional jump or move depends on uninitialised value(s)", systemFrame("strlen"), systemFrame("puts"), call("f", "f", app, false)),
		// covered by the "..." of the suppression before it
		finding("UninitCondition", "Conditional jump or move depends on uninitialised value(s)", systemFrame("a"), systemFrame("b"), call("g", "g", app, false), call("f", "f", app, false)),
		finding("SyscallParam", "Syscall param write(buf) points to uninitialised byte(s)", systemFrame("write")),
		finding("FishyValue", "Argument 'size' of function malloc has a fishy (possibly negative) value: -1", systemFrame("malloc"), &findings.TraceFrame{Object: app}),
		finding("FatalSignal", "Process terminating", mainFrame),
	)
	var b bytes.Buffer
	if err := Suppressions(&b, r); err != nil {
		t.Fatal(err)
	}
	id := func(i int) string { return r.All()[i].ID() }
	want := `# Suppressions for Valgrind: --suppressions=FILE. They match if Valgrind finds the debug files, for example in
# /usr/lib/debug/.build-id.

{
   InvalidRead int app::peek<int>(int const*) ` + id(0) + `
   Memcheck:Addr4
   fun:peek<*
   fun:_ZN3app3useEi
   fun:main
}
# The next suppression matches the stripped program, and hides any Memcheck:Addr4 with calls through these files:
# {
#    InvalidRead int app::peek<int>(int const*) ` + id(0) + `
#    Memcheck:Addr4
#    obj:*/app
#    obj:*/app
# }

{
   Leak_PossiblyLost app::A::A() ` + id(1) + `
   Memcheck:Leak
   match-leak-kinds: possible
   fun:malloc
   fun:_ZN3app1AC?Ev
}
# The next suppression matches the stripped program, and hides any Memcheck:Leak with calls through these files:
# {
#    Leak_PossiblyLost app::A::A() ` + id(1) + `
#    Memcheck:Leak
#    match-leak-kinds: possible
#    fun:malloc
#    obj:*/app
# }

{
   UninitCondition f ` + id(3) + `
   Memcheck:Cond
   ...
   fun:f
}
# The next suppression matches the stripped program, and hides any Memcheck:Cond with calls through these files:
# {
#    UninitCondition f ` + id(3) + `
#    Memcheck:Cond
#    ...
#    obj:*/app
# }

{
   SyscallParam write ` + id(5) + `
   Memcheck:Param
   write(buf)
   fun:write
}

{
   FishyValue ` + id(6) + `
   Memcheck:FishyValue
   malloc(size)
   fun:malloc
   obj:*/app
}
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	file, err := ReadSuppressions(&b, "own.supp")
	if err != nil {
		t.Fatal(err)
	}
	var unneeded bytes.Buffer
	if err := file.PrintUnneeded(&unneeded, r); err != nil || unneeded.Len() > 0 {
		t.Errorf("%v: the run needs all of its own suppressions, but\n%s", err, unneeded.String())
	}
}

// A frame with only a demangled name must get the linkage name from elsewhere in the report, or
// else the line of its object file. The output must report only once that linkage names are
// missing.
func TestSuppressionsHaveLinkageNamesOfReports(t *testing.T) {
	demangled := func(name string) *findings.TraceFrame { return call(name, name, app, false) }
	r := runOf(t, finding("InvalidFree", "Invalid free()", demangled("app::A<int>::A()"), demangled("app::use(int)"), demangled("main")))
	r.KnowLinkage("app::A<int>::A()", "_ZN3app1AIiEC2Ev")
	r.KnowLinkage("app::A<int>::A()", "_ZN3app1AIiEC1Ev")
	var b bytes.Buffer
	if err := Suppressions(&b, r); err != nil {
		t.Fatal(err)
	}
	want := `# Suppressions for Valgrind: --suppressions=FILE. They match if Valgrind finds the debug files, for example in
# /usr/lib/debug/.build-id.
# The report lacks linkage names of some functions: obj: lines replace these, and hide more errors. To get the
# names, run Valgrind with --gen-suppressions=all, or name the program: --symbol-path PROGRAM.

{
   InvalidFree app::A<int>::A() ` + r.All()[0].ID() + `
   Memcheck:Free
   fun:_ZN3app1AIiEC?Ev
   obj:*/app
   fun:main
}
# The next suppression matches the stripped program, and hides any Memcheck:Free with calls through these files:
# {
#    InvalidFree app::A<int>::A() ` + r.All()[0].ID() + `
#    Memcheck:Free
#    obj:*/app
#    obj:*/app
#    obj:*/app
# }
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	file, err := ReadSuppressions(strings.NewReader("{\nname\nMemcheck:Free\nfun:_ZN3app1AIiEC2Ev\n}\n"), "a.supp")
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
	if err := file.PrintUnneeded(&b, r); err != nil || b.Len() > 0 {
		t.Errorf("a suppression by a linkage name of the report: %v %s", err, b.String())
	}
}

func TestSuppressionsHaveAtMost24Frames(t *testing.T) {
	var frames []*findings.TraceFrame
	for range 100 {
		frames = append(frames, call("f", "f", app, false))
	}
	var b bytes.Buffer
	if err := Suppressions(&b, runOf(t, finding("InvalidFree", "Invalid free()", frames...))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "   fun:f\n"); n != 24 {
		t.Errorf("%d frames, want 24", n)
	}
}

func TestNeededSuppressions(t *testing.T) {
	r := runOf(t,
		finding("Leak_DefinitelyLost", "8 bytes in 1 blocks are definitely lost in loss record 1 of 1",
			&findings.TraceFrame{Frame: symbolize.Frame{Func: "operator new(unsigned long)"}, Object: "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so"},
			call("peek(int)", "_Z4peeki", app, true), call("app::use(int)", "_ZN3app3useEi", app, false), call("main", "main", app, false)),
		finding("InvalidWrite", "Invalid write of size 8", call("main", "main", app, false)),
		finding("SyscallParam", "Syscall param write(buf) points to uninitialised byte(s)", systemFrame("write"), call("main", "main", app, false)),
	)
	r.UseSuppression("used by the run")
	for _, test := range []struct {
		block  string // the suppression without braces and name
		needed bool
	}{
		{"Memcheck:Leak\n...", true},
		{"Memcheck:Leak\nfun:_Znwm\nfun:peek", true},
		{"Memcheck:Leak\nfun:_Znwm\nfun:_Z4peeki", true}, // from a run without inlining, by --gen-suppressions
		{"Memcheck:Leak\nfun:_Zn*\n...\nfun:ma?n", true},
		{"Memcheck:Leak\n...\nfun:main\n...", true},
		{"Memcheck:Leak\n...\nfun:main\nfun:more", false},
		{"Memcheck:Leak\n...\nobj:*/app", true},
		{"Memcheck:Leak\nobj:/opt/app", false},
		{"Memcheck:Leak\n...\nsrc:a.cc:7", true},
		{"Memcheck:Leak\n...\nsrc:a.cc:8", false},
		{"Memcheck:Leak\n...\nsrc:/src/*", true},
		{"Memcheck:Leak\nmatch-leak-kinds: definite,possible\n...", true},
		{"Memcheck:Leak\nmatch-leak-kinds:all\n...", true},
		{"Memcheck:Leak\nmatch-leak-kinds: possible\n...", false},
		{"Helgrind,Memcheck:Leak\n...", true},
		{"Helgrind:Leak\n...", false},
		{"Memcheck:Addr8\nfun:main", true},
		{"Memcheck:Addr4\nfun:main", false},
		{"Memcheck:Param\nwrite(buf)\nfun:write", true},
		{"Memcheck:Param\nwrite(*)\nfun:write", true},
		{"Memcheck:Param\nread(buf)\nfun:write", false},
		{"Memcheck:Cond\nfun:main", false},
	} {
		file, err := ReadSuppressions(strings.NewReader("# a comment\n\n {\n   name\n   "+test.block+"\n}\n{\nused by the run\nMemcheck:Cond\nfun:f\n}\n"), "a.supp")
		if err != nil {
			t.Errorf("%q: %v", test.block, err)
			continue
		}
		var b bytes.Buffer
		if err := file.PrintUnneeded(&b, r); err != nil {
			t.Fatal(err)
		}
		want := "a.supp:3: name: no error needs this suppression\n"
		if test.needed {
			want = ""
		}
		if b.String() != want {
			t.Errorf("%q: got %q, want %q", test.block, b.String(), want)
		}
	}
}

func TestWhatIsNotAFileOfSuppressions(t *testing.T) {
	for in, want := range map[string]string{
		"x":                            `line 1: "x" is not the { that begins a suppression`,
		"{\nname\n":                    "line 2: the file ends within a suppression",
		"{\nname\nCond\nfun:f\n}":      `line 3: "Cond" is not TOOL:KIND`,
		"{\nname\nA:B\n}":              "line 4: the suppression has no frames",
		"{\nname\nA:B\nfun:f\nsym:g\n": `line 5: "sym:g" does not begin with fun:, obj: or src:, and is not "..."`,
		"{\nname\nA:B\n" + strings.Repeat("...\n", 25): "line 28: the suppression has more than 24 frames",
		"{\n" + strings.Repeat("x", 1<<20):             "line 2: longer than 64 KiB",
	} {
		if _, err := ReadSuppressions(strings.NewReader(in), "a"); err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %s", in, err, want)
		}
	}
}

func FuzzSuppressions(f *testing.F) {
	f.Add([]byte("{\nname\nMemcheck:Leak\nmatch-leak-kinds: definite\n...\nfun:_Zn*\nobj:*/app\nsrc:a.cc:7\n}\n"))
	f.Add([]byte("{\nname\nMemcheck:Param\nwrite(buf)\nfun:************f\n}\n"))
	r := runOf(f, finding("Leak_DefinitelyLost", "", systemFrame("malloc"), call("f<int>", "_Z1fIiEvv", app, true), call("main", "main", app, false)))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		file, err := ReadSuppressions(bytes.NewReader(data), "a")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := file.PrintUnneeded(&b, r); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n > len(file.blocks) {
			t.Errorf("%d lines for %d suppressions", n, len(file.blocks))
		}
	})
}
