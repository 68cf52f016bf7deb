package publish

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/symbolize"
)

// at returns a frame; line 0 means that only the object file is known.
func at(function, linkage, file string, line uint32, object string) *findings.TraceFrame {
	return &findings.TraceFrame{
		Frame:  symbolize.Frame{Func: function, Linkage: linkage, File: file, Line: line, Column: 9, HasLine: line > 0},
		Object: object, Address: 0x4011f6, Offset: 0x11f6,
	}
}

// aRead returns an invalid read with three stacks, as reported by Memcheck.
func aRead() *findings.Finding {
	use := []*findings.TraceFrame{
		at("Pool::operator[](int) const", "_ZNK4PoolixEi", "/src/app/pool.h", 31, "/opt/app"),
		at("main", "main", "/src/app/main.cc", 12, "/opt/app"),
	}
	free := append([]*findings.TraceFrame{at("free", "free", "", 0, "/usr/libexec/valgrind/vgpreload.so")}, use[1:]...)
	return &findings.Finding{
		Source: findings.FromValgrind, Tool: "memcheck", Kind: "InvalidRead", Message: "Invalid read of size 4", Memory: findings.MemoryFreed,
		Traces: []findings.Trace{
			{Frames: use},
			{Role: findings.RoleFreed, Message: "Address 0x4DD1054 is 4 bytes inside a block of size 40 free'd", Frames: free},
			{Role: findings.RoleAllocated, Message: "Block was alloc'd at", Frames: free},
		},
	}
}

func lost(kind, function string, bytes uint64) *findings.Finding {
	return &findings.Finding{
		Source: findings.FromValgrind, Tool: "memcheck", Kind: kind, Message: "40 bytes in 1 blocks are lost in loss record 1 of 2", Bytes: bytes, Blocks: 1,
		Traces: []findings.Trace{{Frames: []*findings.TraceFrame{
			at("malloc", "malloc", "", 0, "/usr/libexec/valgrind/vgpreload.so"),
			at(function, function, "/src/app/leak.cc", 7, "/opt/app"),
		}}},
	}
}

// results returns a result with one process, which has these findings.
func results(all ...*findings.Finding) *Result {
	r := &Result{Collection: findings.New(nil), Version: "v1.2.3", Base: "/src/app"}
	p := r.Begin(findings.Process{Input: "report.xml", Source: findings.FromValgrind, Tool: "memcheck", Command: []string{"/opt/app", "-v"}, PID: "7", Complete: true})
	for _, x := range all {
		add(r, p, x)
	}
	return r
}

func add(r *Result, process int, x *findings.Finding) {
	x.Identify(nil)
	r.Add(process, x, 1)
}

// sample returns four processes, one of them without findings, and findings of three tools; one
// report is truncated.
func sample() *Result {
	r := results(aRead(), lost("Leak_StillReachable", "keep", 8), lost("Leak_DefinitelyLost", "leak", 40))
	second := r.Begin(findings.Process{Input: "report.xml", Source: findings.FromValgrind, Tool: "memcheck", Command: []string{"/opt/app", "-v"}, PID: "8"})
	add(r, second, aRead())
	r.Begin(findings.Process{Input: "clean.xml", Source: findings.FromValgrind, Tool: "memcheck", Command: []string{"./clean"}, PID: "9", Complete: true})
	log := r.Begin(findings.Process{Input: "server.log", Source: findings.FromLog, Complete: true})
	add(r, log, &findings.Finding{
		Source: findings.FromLog, Tool: "tsan", Kind: "data race", Message: "data race on a \x1b[31mname\u202e of 'x' & <y>",
		Traces: []findings.Trace{
			{Message: "Write of size 4 at 0x7b04 by thread T1:", Frames: []*findings.TraceFrame{at("main::{lambda()#1}::operator()() const", "_ZZ4mainENKUlvE_clEv", "/src/app/sub dir/ä#1%.cc", 3, "/opt/app")}},
			{Role: findings.RoleOther, Message: "Previous write of size 4 at 0x7b04 by main thread:", Frames: []*findings.TraceFrame{at("main", "main", "/usr/include/x.h", 4, "/opt/app")}},
		},
	})
	add(r, log, &findings.Finding{Source: findings.FromLog, Tool: "asan", Kind: "SEGV", Message: "SEGV on unknown address."})
	return r
}

func printed(t testing.TB, print func(io.Writer, *Result) error, r *Result) string {
	t.Helper()
	var b bytes.Buffer
	if err := print(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// golden compares got with a file in testdata; UPDATE=1 writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindingsAreAsBuildsReadThem(t *testing.T) {
	finding, strict := sample(), sample()
	finding.JUnit.ByFinding = true
	strict.JUnit.Strict = true
	for _, tt := range []struct {
		name  string
		print func(io.Writer, *Result) error
		r     *Result
	}{
		{"sarif", SARIF, sample()},
		{"junit", JUnit, sample()},
		{"junit-finding", JUnit, finding},
		{"junit-xunit", JUnit, strict},
		{"codequality", CodeQuality, sample()},
	} {
		t.Run(tt.name, func(t *testing.T) { golden(t, tt.name, printed(t, tt.print, tt.r)) })
	}
}

func TestNamesAreRelativeToTheRepository(t *testing.T) {
	r := &Result{Base: "/home/me/app", Bases: []string{"/data/app"}, Resolve: func(name string) string {
		return strings.Replace(name, "link/", "real/", 1)
	}}
	for _, tt := range []struct{ name, path, uri string }{
		{"/home/me/app/src/a.c", "src/a.c", "src/a.c"},
		{"/data/app/src/a.c", "src/a.c", "src/a.c"},
		{"/home/me/app/link/a.c", "real/a.c", "real/a.c"},
		{"/home/me/app/src/../a.c", "a.c", "a.c"},
		{"./src//a.c", "src/a.c", "src/a.c"},
		{"src/a.c", "src/a.c", "src/a.c"},
		{"../lib/a.c", "/home/me/lib/a.c", "file:///home/me/lib/a.c"},
		{"../app/a.c", "a.c", "a.c"},
		{"../../../../a.c", "/a.c", "file:///a.c"},
		{"/home/me/application/a.c", "/home/me/application/a.c", "file:///home/me/application/a.c"},
		{"/usr/include/a b.h", "/usr/include/a b.h", "file:///usr/include/a%20b.h"},
		{`C:\src\a.c`, "C:/src/a.c", "file:///C:/src/a.c"},
		{`src\a.c`, "src/a.c", "src/a.c"},
		{"http://x/a.c", "http:/x/a.c", "http%3A/x/a.c"},
		{"git:a.c", "git:a.c", "git%3Aa.c"},
		{"<built-in>", "<built-in>", "%3Cbuilt-in%3E"},
		{"ä#?%.c", "ä#?%.c", "%C3%A4%23%3F%25.c"},
		{"", "unknown", "unknown"},
		{".", "unknown", "unknown"},
		{"/", "/", "file:///"},
		{"//host/a.c", "/host/a.c", "file:///host/a.c"},
	} {
		if got, _ := r.path(tt.name); got != tt.path {
			t.Errorf("path(%q) = %q, want %q", tt.name, got, tt.path)
		}
		if got := r.uri(tt.name); got != tt.uri {
			t.Errorf("uri(%q) = %q, want %q", tt.name, got, tt.uri)
		}
	}
}

func TestTextsAreCutAndVisible(t *testing.T) {
	long := strings.Repeat("ä", 300)
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"short", 5, "short"},
		{"longer", 5, "lo..."},
		{long[:2*255], 255, long[:2*255]},
		{long, 255, long[:2*252] + "..."},
		{"a\x1b[31m\n\u202eb\xff", 100, `a\x1b[31m\x0a\u202eb\xff`},
	} {
		if got := visible(tt.text, tt.most); got != tt.want {
			t.Errorf("visible(%q, %d) = %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}
