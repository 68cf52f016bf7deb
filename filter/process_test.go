package filter

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

func TestProcessKeyPresets(t *testing.T) {
	for _, test := range []struct{ preset, line, want string }{
		{"fuchsia", "[00135.795][1727][2405][klog] INFO: x", "1727"},
		{"fuchsia", "[12.345] 01727.02405> x", "01727"},
		{"fuchsia", "[2026-11-20 10:00:00.000][1727][2405][tag] WARN: x", "1727"},
		{"fuchsia", "no header", ""},
		{"logcat", "12-20 00:03:53.008 11002 11003 F DEBUG   : x", "11002"},
		{"logcat", "2026-12-20 00:03:53.008  1002  1103 I tag: x", "1002"},
		{"logcat", "12-20 00:03:53.008 root 11002 11003 I tag: x", "11002"},
		{"logcat", "F/DEBUG   (11002): x", "11002"},
		{"logcat", "--------- beginning of main", ""},
		{"syslog", "Nov 20 10:00:00 host app[1727]: x", "app[1727]"},
		{"syslog", "<34>1 2026-11-20T10:00:00Z host app 1727 ID47 - x", "app 1727"},
		{"syslog", "2026-11-20T10:00:00.000000+00:00 host app[1727]: x", "app[1727]"},
		{"syslog", "Nov 20 10:00:00 host kernel: x", ""},
		{`^<(\w+)>|^\((\w+)\)`, "(b) x", "b"},
	} {
		re, err := ProcessKey(test.preset)
		if err != nil {
			t.Fatal(err)
		}
		f := New(io.Discard, Options{ProcessKey: re})
		f.enterProcess([]byte(test.line))
		if got := f.process.key; got != test.want {
			t.Errorf("%s: %q: got %q, want %q", test.preset, test.line, got, test.want)
		}
	}
	for _, bad := range []string{"(", "nogroup"} {
		if _, err := ProcessKey(bad); err == nil || !strings.Contains(err.Error(), "fuchsia") {
			t.Errorf("%q: got %v, want an error that names the presets", bad, err)
		}
	}
}

func TestProcessesAreBounded(t *testing.T) {
	re, _ := ProcessKey(`^(\d+) `)
	f := New(io.Discard, Options{ProcessKey: re})
	for i := range 5 * maxProcesses {
		fmt.Fprintf(f, "%d {{{module:0:a:elf:aa}}}\n%d {{{hexdict:\n", i, i)
	}
	if len(f.all) > maxProcesses {
		t.Errorf("%d contexts, want at most %d", len(f.all), maxProcesses)
	}
	if f.openDicts > maxProcesses {
		t.Errorf("%d open hexdicts in %d contexts", f.openDicts, len(f.all))
	}
	// the latest contexts must be kept, and the oldest dropped
	var b strings.Builder
	f.w = &b
	fmt.Fprintf(f, "%d {{{mmap:0x1000:0x10:load:0:r:0x0}}}\n0 {{{mmap:0x1000:0x10:load:0:r:0x0}}}\nend\n", 5*maxProcesses-1)
	want := fmt.Sprintf("%d [[[ELF module #0x0 \"a\"; adds [0x1000-0x100f](r)]]]\n0 {{{mmap:0x1000:0x10:load:0:r:0x0}}}\nend\n", 5*maxProcesses-1)
	if d := cmp.Diff(b.String(), want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

// Options.Limits must bound the processes. Each dropped process must be reported, the longest idle
// one first.
func TestProcessesThatAreDroppedAreReported(t *testing.T) {
	re, _ := ProcessKey(`^(\w+) `)
	module := func(process string, maps int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "%s {{{module:0:a:elf:aa}}}\n", process)
		for i := range maps {
			fmt.Fprintf(&b, "%s {{{mmap:%#x:0x10:load:0:r:0x0}}}\n", process, 0x1000+i*0x20)
		}
		return b.String()
	}
	for _, test := range []struct {
		name   string
		limits Limits
		log    string
		want   []string
	}{
		{"few", Limits{}, module("a", 1) + module("b", 1) + module("c", 1), nil},
		{
			"too many", Limits{Processes: 4}, // including the context of lines without a process
			module("a", 1) + module("b", 1) + module("a", 1) + module("c", 1) + module("d", 1) + module("e", 1),
			[]string{" processes", "b processes"},
		},
		{
			"too large", Limits{ContextBytes: 100 * weightBytes},
			module("a", 30) + module("b", 30) + module("c", 30) + module("d", 30) + module("e", 1) + module("f", 1),
			[]string{" bytes", "a bytes", "b bytes"},
		},
		{"one at a time", Limits{Processes: 1}, module("a", 1) + module("b", 1), []string{" processes", "a processes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			f := New(io.Discard, Options{ProcessKey: re, Limits: test.limits, Evicted: func(key, reason string) { got = append(got, key+" "+reason) }})
			io.WriteString(f, test.log)
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
			if n := len(f.all); n > f.limits.Processes {
				t.Errorf("%d processes are held", n)
			}
		})
	}
}

func TestProcessesShareABudgetOfMaps(t *testing.T) {
	fuzztest.WithoutRace(t)
	re, _ := ProcessKey(`^(\d+) `)
	f := New(io.Discard, Options{ProcessKey: re})
	var log strings.Builder
	for p := range 32 {
		fmt.Fprintf(&log, "%d {{{module:0:a:elf:aa}}}\n", p)
		for i := range 50000 {
			fmt.Fprintf(&log, "%d {{{mmap:%#x:0x10:load:0:r:0x0}}}\n", p, 0x1000+i*0x20)
		}
		io.WriteString(f, log.String())
		log.Reset()
	}
	held := 0
	for _, p := range f.all {
		held += p.space.n
	}
	if held > maxHeld/weightBytes/4*5+maxMaps {
		t.Errorf("%d maps held, want at most %d", held, maxHeld/weightBytes/4*5+maxMaps)
	}
}

// Each dump must have the modules and maps that precede it in the log, since the last reset.
func TestDumpHasItsContext(t *testing.T) {
	var dumps []Dump
	f := New(io.Discard, Options{DumpFile: func(d Dump) bool { dumps = append(dumps, d); return true }})
	io.WriteString(f, `{{{dumpfile:early:e}}}
{{{module:1:b:elf:bb}}}
{{{module:0:a:elf:aa}}}
{{{mmap:0x2000:0x1000:load:1:rx:0x100}}}
{{{dumpfile:sancov:s.1}}} and {{{dumpfile:sancov:s.2}}}
{{{reset}}}
{{{dumpfile:late:l}}}
`)
	modules := []DumpModule{{"a", "aa", 0}, {"b", "bb", 1}}
	segments := []DumpSegment{{1, 0x2000, 0x1000, "rx", 0x100}}
	none := Dump{Modules: []DumpModule{}, Segments: []DumpSegment{}}
	want := []Dump{
		{none.Modules, none.Segments, "early", "e"},
		{modules, segments, "sancov", "s.1"},
		{modules, segments, "sancov", "s.2"},
		{none.Modules, none.Segments, "late", "l"},
	}
	if d := cmp.Diff(dumps, want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}
