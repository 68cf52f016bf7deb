package findings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

func TestMessageClassHasNoNumbers(t *testing.T) {
	for _, tt := range []struct{ message, class string }{
		{"Invalid read of size 4", "Invalid read of size N"},
		{"1,234 bytes in 1 blocks are definitely lost in loss record 3 of 17", "N bytes in N blocks are definitely lost in loss record N of N"},
		{"Address 0x4DD1054 is 4 bytes inside a block of size 40 free'd", "Address N is N bytes inside a block of size N free'd"},
		{"conversion to int32_t", "conversion to int32_t"},
		{"pthread_mutex_lock/2 x86", "pthread_mutex_lock/N x86"},
		{"at 0x", "at Nx"},
		{"1,", "N,"},
		{"", ""},
	} {
		if got := string(appendMessageClass(nil, tt.message)); got != tt.class {
			t.Errorf("appendMessageClass(%q) = %q, want %q", tt.message, got, tt.class)
		}
	}
}

// anError returns a finding with a frame of libc, and one for each of the functions.
func anError(functions ...string) *Finding {
	x := &Finding{Source: FromValgrind, Tool: "memcheck", Kind: "InvalidRead", Message: "Invalid read of size 4"}
	frames := []*TraceFrame{{Frame: symbolize.Frame{Func: "memcpy", Linkage: "memcpy"}, Object: "/lib/libc.so.6"}}
	for i, name := range functions {
		frames = append(frames, &TraceFrame{
			Frame:  symbolize.Frame{Func: name, Linkage: name, File: "/src/" + name + ".c", Line: uint32(i + 1), HasLine: true},
			Object: "/opt/app",
		})
	}
	x.Traces = []Trace{{Frames: frames}, {Role: RoleFreed, Message: "freed by", Frames: frames}}
	return x
}

func TestOwnFrameIsTheInnermostOfTheProgram(t *testing.T) {
	x := anError("copy", "main")
	x.Identify(nil)
	if f := x.OwnFrame(); f == nil || f.Func != "copy" || x.Place() != f {
		t.Errorf("OwnFrame = %+v, Place = %+v, want copy", f, x.Place())
	}
	x.Traces[0].Frames[1].HasLine = false
	if f := x.Place(); f.Func != "main" {
		t.Errorf("Place = %s, want main, which has a line", f.Func)
	}
	x.Traces[0].Frames[2].HasLine = false
	if f := x.Place(); f.Func != "copy" {
		t.Errorf("Place = %s, want copy, the own frame", f.Func)
	}
	x.Traces[0].Frames[0].HasLine, x.Traces[0].Frames[0].File = true, "memcpy.c"
	if f := x.Place(); f.Func != "copy" {
		t.Errorf("Place = %s, want copy: memcpy is not own", f.Func)
	}
	lone := &Finding{}
	lone.Identify(nil)
	if lone.OwnFrame() != nil || lone.Place() != nil {
		t.Error("a finding without traces has a frame")
	}
}

func TestFingerprintsDifferByWhatHappenedNotByNumbers(t *testing.T) {
	base := anError("copy", "main")
	for _, tt := range []struct {
		name   string
		change func(*Finding)
		equal  bool
	}{
		{"size", func(x *Finding) { x.Message = "Invalid read of size 8" }, true},
		{"line", func(x *Finding) { x.Traces[0].Frames[1].Line = 99 }, true},
		{"detail", func(x *Finding) { x.Detail = []string{"thread 2"} }, true},
		{"message", func(x *Finding) { x.Message = "Invalid write of size 4" }, false},
		{"kind", func(x *Finding) { x.Kind = "InvalidWrite" }, false},
		{"tool", func(x *Finding) { x.Tool = "drd" }, false},
		{"source", func(x *Finding) { x.Source = FromLog }, false},
		{"freed", func(x *Finding) { x.Memory = MemoryFreed }, false},
		{"function", func(x *Finding) { x.Traces[0].Frames[1].Linkage = "paste" }, false},
		{"other trace", func(x *Finding) { x.Traces = x.Traces[:1] }, true},
		{"NUL in a field", func(x *Finding) { x.Tool, x.Kind = "memcheck\x00InvalidRead", "" }, false},
	} {
		base.Identify(nil)
		x := anError("copy", "main")
		tt.change(x)
		x.Identify(nil)
		if got := x.Fingerprint == base.Fingerprint; got != tt.equal {
			t.Errorf("%s: equal fingerprints: %v, want %v", tt.name, got, tt.equal)
		}
	}
}

// listing returns a line for each finding: its function, its ordinal, the number of its
// occurrences, and the number in each process.
func listing(s *Collection) string {
	var b strings.Builder
	for _, x := range s.All() {
		fmt.Fprintf(&b, "%s:%d %d", x.Place().Func, x.Ordinal, x.Count())
		for _, o := range x.Seen {
			fmt.Fprintf(&b, " %s=%d", s.Process(o.Process).PID, o.Count)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestEqualFindingsOfProcessesMerge(t *testing.T) {
	s := New(nil)
	for pid, names := range [][]string{{"a", "b", "a"}, {"a"}, {"b", "a", "a", "a"}} {
		p := s.Begin(Process{PID: fmt.Sprint(pid)})
		for _, name := range names {
			x := anError(name)
			x.Identify(nil)
			if s.Add(p, x, 1) == nil {
				t.Fatal("a finding was left out")
			}
		}
	}
	s.Occurred(s.All()[0], 2, 40)
	const want = "a:1 43 0=1 1=1 2=41\n" +
		"b:1 2 0=1 2=1\n" +
		"a:2 2 0=1 2=1\n" +
		"a:3 1 2=1\n"
	if got := listing(s); got != want {
		t.Errorf("findings:\n%s\nwant:\n%s", got, want)
	}
}

func TestFindingsBeyondTheBudgetAreCounted(t *testing.T) {
	s := New(report.NewBudget(10_000, nil))
	p := s.Begin(Process{})
	for i := range 100 {
		x := anError(fmt.Sprint("f", i))
		x.Identify(nil)
		s.Add(p, x, 1)
	}
	if n := len(s.All()); n == 0 || int64(n)+s.Left != 100 {
		t.Errorf("%d findings are kept, and %d were left out, of 100", n, s.Left)
	}
}
