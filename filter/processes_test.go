package filter

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The output of AppendProcesses must be enough to resolve frames in the next stream, which another
// run of symfilter reads.
func TestProcessesGoOnInAnotherStream(t *testing.T) {
	const modules = "[1] {{{module:0:one.so:elf:aabb}}}\n[1] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n" +
		"[2] {{{module:0:two.so:elf:ccdd}}}\n[2] {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"
	const frame = "[1] at {{{pc:0x1234:pc}}}\n"
	const raw = "======= Backtrace: =========\n/usr/bin/app(+0x18d)[0x55d0c8a0018d]\n" +
		"======= Memory map: ========\n55d0c8a00000-55d0c8a01000 r-xp 00000000 fe:01 1835021    /usr/bin/app\n"
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
			context := innerOf(f).AppendProcesses(nil)
			if got := bytes.Contains(context, []byte(`"facts":`)); got != (test.first == raw) {
				t.Errorf("the context has facts: %t", got)
			}
			var out bytes.Buffer
			g := New(&out, test.o)
			if err := g.Restore(context); err != nil {
				t.Fatal(err)
			}
			if innerOf(g).InDict() != innerOf(f).InDict() {
				t.Errorf("a hexdict is open: %t, want %t", innerOf(g).InDict(), innerOf(f).InDict())
			}
			if innerOf(g).ProcessesChanged() {
				t.Error("the processes have changed before the first line")
			}
			if diff := cmp.Diff(string(context), string(innerOf(g).AppendProcesses(nil))); diff != "" {
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
		if got := innerOf(f).ProcessesChanged(); got != step.want {
			t.Errorf("after %q: %t, want %t", step.lines, got, step.want)
		}
	}
}

// ProcessesChanged and Outcome.Changed must report new maps, including those of a restarted
// program, but no lines without maps.
func TestChangesOfFactsAreKnown(t *testing.T) {
	crash := func(base string) string {
		return "======= Backtrace: =========\n/usr/bin/app(+0x18d)[0x" + base + "18d]\n======= Memory map: ========\n" +
			base + "000-" + base + "fff r-xp 00000000 fe:01 1835021    /usr/bin/app\n"
	}
	f, l := New(io.Discard, Options{Symbolizer: testSymbolizer(t)}), NewLines(Options{Symbolizer: testSymbolizer(t)})
	var c Context
	for _, step := range []struct {
		lines string
		want  bool
	}{
		{crash("55d0c8a00"), true},
		{"plain\n", false},
		{crash("56aa11200"), true},
		{"plain\n", false},
	} {
		io.WriteString(f, step.lines)
		if got := innerOf(f).ProcessesChanged(); got != step.want {
			t.Errorf("a Filter after %q: %t, want %t", step.lines, got, step.want)
		}
		if _, got := l.Append(nil, &c, []byte(step.lines)); got.Changed != step.want {
			t.Errorf("Lines after %q: %t, want %t", step.lines, got.Changed, step.want)
		}
	}
}

// Enter must distinguish keys that differ only after maxKey bytes.
func TestLongKeysOfTheCallerAreToldApart(t *testing.T) {
	var out strings.Builder
	f := New(&out, Options{})
	for _, step := range [][2]string{
		{"1", "{{{module:0:one.so:elf:aabb}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"},
		{"2", "{{{pc:0x1234:pc}}}\n"},
		{"1", "{{{pc:0x1234:pc}}}\n"},
	} {
		innerOf(f).Enter([]byte(strings.Repeat("k", maxKey) + step[0]))
		io.WriteString(f, step[1])
	}
	f.Close()
	const want = "[[[ELF module #0x0 \"one.so\"; BuildID=aabb [0x1000-0x1fff](rx)]]]\n[[[pc:0x1234:pc]]]\none.so+0x234 (BuildId: aabb)\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// After a call of Enter, Options.ProcessKey must have no effect.
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
		innerOf(f).Enter([]byte(step[0]))
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

func innerOf(f *Filter) *inner { return (*inner)(f) }
