package filter

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
)

// For a log in records of one or several lines, Lines print the same as a Filter. Module lines are
// left out, since a Filter holds them back for their maps. The Context is sometimes saved and
// restored, or passed to other Lines.
func TestLinesPrintWhatAFilterDoes(t *testing.T) {
	for name, o := range contextOptions(t) {
		if o.ProcessKey != nil {
			continue
		}
		o.ModuleLines = ModuleLinesNone
		if o.Output == JSON { // JSON has records of elements even for omitted lines
			o.ModuleLines = ModuleLinesRaw
		}
		o.Cache = NewCache(0)
		t.Run(name, func(t *testing.T) {
			for seed := range longOr[uint64](200, 10) {
				g := logtest.NewGenerator(seed)
				in := contextLog(g)
				want, _ := filterString(t, o, in, nil)
				all := []*Lines{NewLines(o), NewLines(o)}
				c := new(Context)
				var out []byte
				for rest := in; rest != ""; {
					n := len(rest)
					for i := range 1 + g.IntN(3) {
						if end := strings.IndexByte(rest[min(i, len(rest)):], '\n'); end >= 0 {
							n = i + end + 1
						}
					}
					saved, err := json.Marshal(c)
					if err != nil {
						t.Fatal(err)
					}
					var got Outcome
					out, got = all[g.IntN(2)].Append(out, c, []byte(rest[:n]))
					if now, _ := json.Marshal(c); string(now) != string(saved) && !got.Changed {
						t.Fatalf("seed %d: after %q Changed is false, but the context\n%s\nis now\n%s", seed, rest[:n], saved, now)
					} else if g.IntN(3) == 0 {
						c = new(Context)
						if err := json.Unmarshal(now, c); err != nil {
							t.Fatal(err)
						}
					}
					rest = rest[n:]
				}
				if d := cmp.Diff(string(out), want); d != "" {
					t.Fatalf("seed %d: (-lines +filter)\n%s", seed, d)
				}
			}
		})
	}
}

// TestOutcomes checks the Outcome of records with and without a line end.
func TestOutcomes(t *testing.T) {
	l := NewLines(Options{Symbolizer: testSymbolizer(t), Patience: patient})
	var a, b Context
	for _, step := range []struct {
		c        *Context
		in, want string
		outcome  Outcome
	}{
		{&a, "plain", "plain", Outcome{}},
		{&a, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}", `[[[ELF module #0x0 "a.out"; BuildID=a0a1a2a3a4a5a6a7]]]`, Outcome{Elements: 1, Changed: true}},
		{&a, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n", `[[[ELF module #0x0 "a.out"; BuildID=a0a1a2a3a4a5a6a7 [0x500000-0x500fff](rx)]]]` + "\n", Outcome{Elements: 2, Changed: true}},
		{&a, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}", `[[[ELF module #0x0 "a.out"; BuildID=a0a1a2a3a4a5a6a7]]]`, Outcome{Elements: 1}},
		{&a, "at {{{pc:0x50018d:pc}}}, {{{pc:0x1:pc}}}", "at bare+0x2, [[[pc:0x1:pc]]]", Outcome{Elements: 2, Resolved: 1, Unresolved: 1}},
		{&b, "at {{{pc:0x50018d:pc}}}", "at [[[pc:0x50018d:pc]]]", Outcome{Elements: 1, Unresolved: 1}},
		{&a, "at {{{pc:0x50018d:pc}}}\nand\n", "at bare+0x2\nand\n", Outcome{Elements: 1, Resolved: 1}},
		{&a, "{{{hexdict: A: 0x50018d", "{{{hexdict: A: 0x50018d", Outcome{Changed: true, InDict: true}},
		{&a, "B: 2", "B: 2", Outcome{Changed: true, InDict: true}},
		{&b, "C: 3", "C: 3", Outcome{}},
		{&a, "}}}", "}}}\n[1] A 0x50018d → bare+0x2", Outcome{Changed: true}},
		{&b, "{{{reset}}}", "", Outcome{Elements: 1, Changed: true, Contextual: true}},
		{&b, "", "", Outcome{}},
	} {
		got, outcome := l.Append([]byte("kept "), step.c, []byte(step.in))
		if string(got) != "kept "+step.want || outcome != step.outcome {
			t.Errorf("%q:\n got %q, %+v\nwant %q, %+v", step.in, got[len("kept "):], outcome, step.want, step.outcome)
		}
	}
	if _, n := l.Unresolved(); n != 2 {
		t.Errorf("%d elements stayed unresolved, want 2", n)
	}
}

// With ModuleLinesRaw, reset, module and mmap elements must be printed unchanged, for another
// filter. Other elements in their lines must be replaced by answers.
func TestRawModuleLines(t *testing.T) {
	const in = "[1] {{{reset}}}{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}} x\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}} {{{pc:0x50018d:pc}}} {{{mmap:bad}}}\n"
	for _, symbolizer := range []bool{false, true} {
		o := Options{ModuleLines: ModuleLinesRaw}
		want := strings.Replace(in, "{{{pc:0x50018d:pc}}}", "a.out+0x40018d (BuildId: a0a1a2a3a4a5a6a7)", 1)
		if symbolizer {
			o.Symbolizer, o.Patience = testSymbolizer(t), patient
			want = strings.Replace(in, "{{{pc:0x50018d:pc}}}", "bare+0x2", 1)
		}
		if got, _ := filterString(t, o, in, nil); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A Context must take little memory, and at most an eighth more than Size returns. This must hold
// for empty, filled and restored Contexts.
func TestContextsAreSmall(t *testing.T) {
	fuzztest.WithoutRace(t)
	const count, modules, maps = 200, 50, 200
	var record strings.Builder
	for i := range modules {
		fmt.Fprintf(&record, "{{{module:%d:%s:elf:%040x}}}\n", i, strings.Repeat("n", 16), i)
		for j := range maps / modules {
			fmt.Fprintf(&record, "{{{mmap:%#x:0x1000:load:%d:rx:%#x}}}\n", (i*8+j)<<20, i, j<<12)
		}
	}
	l := NewLines(Options{ModuleLines: ModuleLinesNone})
	var full Context
	out, _ := l.Append(nil, &full, []byte(record.String()))
	data, err := json.Marshal(&full)
	if err != nil || len(out) > 0 {
		t.Fatal(err, string(out))
	}
	for name, test := range map[string]struct {
		make func(c *Context)
		max  int
	}{
		"idle":         {func(c *Context) { l.Append(nil, c, []byte("a line")) }, 512},
		"with modules": {func(c *Context) { l.Append(out[:0], c, []byte(record.String())) }, 512 + 60*maps + (100+16)*modules},
		"restored":     {func(c *Context) { json.Unmarshal(data, c) }, 512 + 60*maps + (100+16)*modules},
	} {
		all := make([]*Context, count)
		before := heap()
		for i := range all {
			all[i] = new(Context)
			test.make(all[i])
		}
		got := int(heap()-before) / count
		if size := all[0].Size(); got > test.max || got > size+size/8 {
			t.Errorf("%s: %d bytes, want at most %d; Size says %d", name, got, test.max, size)
		}
		runtime.KeepAlive(all)
	}
}

// heap returns the bytes in use after a garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Records with hot frames must not cause allocations, even if the Contexts alternate.
func TestRecordsOfHotFramesAllocateNothing(t *testing.T) {
	l := NewLines(Options{Symbolizer: testSymbolizer(t), Patience: patient})
	contexts := make([]Context, 2)
	dst := make([]byte, 0, 4096)
	for i := range contexts {
		dst, _ = l.Append(dst[:0], &contexts[i], []byte("{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}"))
	}
	record := []byte("{{{bt:0:0x50017a:pc}}}")
	n := 0
	if got := testing.AllocsPerRun(100, func() {
		n++
		dst, _ = l.Append(dst[:0], &contexts[n/4%2], record)
	}); got > 0 {
		t.Errorf("got %v allocations a record, want 0", got)
	}
}

// A trace in a record must be resolved within the record. Its facts about modules must apply to
// later records of the same Context, even after a restart, and to no other Context.
func TestFactsOfRecords(t *testing.T) {
	image, err := filepath.Abs("testdata/debug/.build-id/a0/a1a2a3a4a5a6a7.debug")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	o.Dialects.Images = []Image{{Name: "a.out", Path: image}}
	l := NewLines(o)
	const (
		maps   = "00400000-00401000 r-xp 00000000 08:01 12 /opt/a.out\n"
		frame  = "/opt/a.out(+0x18d) [0x40018d]"
		later  = "/opt/x(+0x18d) [0x55d0c0a0018d]\n[0x40018d]"
		answer = "/opt/x(+0x18d) [0x55d0c0a0018d]\n[0x40018d] bare+0x1"
	)
	var a, b Context
	for i, step := range []struct {
		c        *Context
		in, want string
		outcome  Outcome
	}{
		{&a, frame + "\n" + maps, frame + " bare+0x1\n" + maps, Outcome{Elements: 1, Resolved: 1, Changed: true}},
		{&a, later, answer, Outcome{Elements: 2, Resolved: 1, Unresolved: 1}},
		{&b, later, answer, Outcome{Elements: 2, Resolved: 1, Unresolved: 1}},
		{&a, later, answer, Outcome{Elements: 2, Resolved: 1, Unresolved: 1}},
	} {
		got, outcome := l.Append(nil, step.c, []byte(step.in))
		if string(got) != step.want || outcome != step.outcome {
			t.Errorf("%d: %q:\n got %q, %+v\nwant %q, %+v", i, step.in, got, outcome, step.want, step.outcome)
		}
		saved, err := json.Marshal(step.c)
		if err != nil {
			t.Fatal(err)
		}
		if known := strings.Contains(string(saved), `"path":"/opt/a.out"`); known != (step.c == &a) {
			t.Errorf("%d: the saved Context is %s", i, saved)
		}
		size := step.c.Size()
		if *step.c = (Context{}); json.Unmarshal(saved, step.c) != nil || step.c.Size() < size*2/3 {
			t.Errorf("%d: %d bytes after a restart, %d before: %s", i, step.c.Size(), size, saved)
		}
	}
	if empty := new(Context).Size(); a.Size() < empty+50 || b.Size() != empty {
		t.Errorf("the Contexts have %d and %d bytes", a.Size(), b.Size())
	}
}
