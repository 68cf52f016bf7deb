package filter

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The processes of a stream are enough to resolve the frames of the next one, which another
// process of symfilter reads.
func TestProcessesGoOnInAnotherStream(t *testing.T) {
	const modules = "[1] {{{module:0:one.so:elf:aabb}}}\n[1] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" +
		"[2] {{{module:0:two.so:elf:ccdd}}}\n[2] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"
	const frame = "[1] at {{{pc:0x1234:pc}}}\n"
	raw := "==7==    0x400000-0x401000 \t/usr/bin/app\n"
	key := regexp.MustCompile(`^\[(\d)`)
	for _, test := range []struct {
		name         string
		o            Options
		first, after string
		want         string
	}{
		{"without a key", Options{}, modules, frame, "[1] at two.so+0x234 (BuildId: ccdd)\n"},
		{"with a key", Options{ProcessKey: key}, modules, frame, "[1] at one.so+0x234 (BuildId: aabb)\n"},
		{"a module line that collects its maps is of the first", Options{}, "{{{module:0:one.so:elf:aabb}}}\n", "{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" + frame,
			"[[[ELF module #0x0 \"one.so\"; adds [0x1000-0x1fff](rx)]]]\n[1] at one.so+0x234 (BuildId: aabb)\n"},
		{"an unfinished line is of the first", Options{}, modules + "{{{pc:0x1", frame, "[1] at two.so+0x234 (BuildId: ccdd)\n"},
		{"an open hexdict goes on", Options{}, modules + "{{{hexdict: RIP: 0x1234\n", " RAX: 0x0\n}}}\n" + frame,
			" RAX: 0x0\n}}}\n[1] at two.so+0x234 (BuildId: ccdd)\n"},
		{"facts of raw backtraces", Options{Symbolizer: testSymbolizer(t)}, raw, "plain\n", "plain\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := New(io.Discard, test.o)
			io.WriteString(f, test.first)
			context := AppendProcesses(f, nil)
			var out bytes.Buffer
			g := New(&out, test.o)
			if err := g.Restore(context); err != nil {
				t.Fatal(err)
			}
			if g.InDict() != f.InDict() {
				t.Errorf("a hexdict is open: %t, want %t", g.InDict(), f.InDict())
			}
			if ProcessesChanged(g) {
				t.Error("the processes have changed before the first line")
			}
			if diff := cmp.Diff(string(context), string(AppendProcesses(g, nil))); diff != "" {
				t.Errorf("the context (-), that of what was restored (+):\n%s", diff)
			}
			io.WriteString(g, test.after)
			g.Close()
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestChangesOfProcessesAreKnown(t *testing.T) {
	f := New(io.Discard, Options{ProcessKey: regexp.MustCompile(`^\[(\d)`)})
	for _, step := range []struct {
		lines string
		want  bool
	}{
		{"plain\n", false},
		{"[1] {{{module:0:one.so:elf:aabb}}}\n", true},
		{"[1] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n", true},
		{"[1] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n", false},
		{"[1] at {{{pc:0x1234}}}\n[2] at {{{pc:0x1234}}}\n[1] at {{{pc:0x1234}}}\n", false},
		{"[2] {{{hexdict:\n", true},
		{"[2] }}}\n", true},
		{"[1] {{{reset}}}\n", true},
	} {
		io.WriteString(f, step.lines)
		if got := ProcessesChanged(f); got != step.want {
			t.Errorf("after %q: %t, want %t", step.lines, got, step.want)
		}
	}
}

// A caller that knows the process of each line names it.
func TestProcessesAreNamedByTheCaller(t *testing.T) {
	var out strings.Builder
	f := New(&out, Options{ProcessKey: regexp.MustCompile(`(.)`)})
	for _, step := range [][2]string{
		{"one", "{{{module:0:one.so:elf:aabb}}}\n"},
		{"two", "{{{module:0:two.so:elf:ccdd}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"},
		{"one", "{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{pc:0x1234:pc}}}\n"},
		{"two", "{{{pc:0x1234:pc}}}\n"},
		{"", "{{{pc:0x1234:pc}}}\n"},
	} {
		Enter(f, []byte(step[0]))
		io.WriteString(f, step[1])
	}
	f.Close()
	const want = "[[[ELF module #0x0 \"one.so\"; BuildID=aabb]]]\n" +
		"[[[ELF module #0x0 \"two.so\"; BuildID=ccdd [0x1000-0x1fff](rx)]]]\n" +
		"[[[ELF module #0x0 \"one.so\"; adds [0x1000-0x1fff](rx)]]]\n" +
		"one.so+0x234 (BuildId: aabb)\ntwo.so+0x234 (BuildId: ccdd)\n[[[pc:0x1234:pc]]]\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
