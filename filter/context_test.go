package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
)

// contextOptions returns options that differ in what their contexts store.
func contextOptions(t testing.TB) map[string]Options {
	plain := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	all := map[string]Options{"text": plain}
	with := func(name string, change func(*Options)) {
		o := plain
		change(&o)
		all[name] = o
	}
	with("colour", func(o *Options) { o.Color = ColorAlways })
	with("no colour", func(o *Options) { o.Color = ColorNever })
	with("terminal", func(o *Options) { o.Terminal, o.Color = true, ColorAlways })
	with("json", func(o *Options) { o.Output = JSON })
	with("no module lines", func(o *Options) { o.ModuleLines = ModuleLinesNone })
	with("processes", func(o *Options) { o.ProcessKey = regexp.MustCompile(`^\[(\d)`) })
	with("processes in json", func(o *Options) { o.Output, o.ProcessKey = JSON, regexp.MustCompile(`^\[(\d)`) })
	return all
}

// goOn filters in[:cut], and then in[cut:] twice: with the same Filter, and with a new Filter that
// has restored the context of the first. It returns both outputs.
func goOn(t *testing.T, o Options, in string, cut int, r *rand.Rand) (restored, uninterrupted string) {
	t.Helper()
	var out, other bytes.Buffer
	f := New(&out, o)
	flush := r.IntN(4) == 0
	for rest := in[:cut]; rest != ""; {
		n := min(len(rest), 1+r.IntN(100))
		io.WriteString(f, rest[:n])
		rest = rest[n:]
		if flush && r.IntN(4) == 0 {
			f.Flush()
		}
	}
	context := f.AppendContext(nil)
	other.Write(out.Bytes())
	g := New(&other, o)
	if err := g.Restore(context); err != nil {
		t.Fatalf("cut at %d: %v in\n%s", cut, err, context)
	}
	if d := cmp.Diff(string(g.AppendContext(nil)), string(context)); d != "" {
		t.Fatalf("cut at %d: the context of what was restored (-got +want)\n%s", cut, d)
	}
	for _, f := range []*Filter{f, g} {
		io.WriteString(f, in[cut:])
		f.Close()
	}
	return other.String(), out.String()
}

// TestContextGoesOnAsIfUninterrupted cuts generated logs after every line and within lines. A new
// Filter with the restored context must print the rest like the first Filter. There are 3 logs, or
// 100 with TEST_LONG=1.
func TestContextGoesOnAsIfUninterrupted(t *testing.T) {
	fuzztest.WithoutRace(t)
	for name, o := range contextOptions(t) {
		t.Run(name, func(t *testing.T) {
			o.Cache = NewCache(0)
			for seed := range longOr[uint64](100, 3) {
				g := logtest.NewGenerator(seed)
				in := contextLog(g)
				cuts := []int{0, len(in)}
				for i := range in {
					if in[i] == '\n' || g.IntN(200) == 0 {
						cuts = append(cuts, i+1)
					}
				}
				for _, cut := range cuts {
					if got, want := goOn(t, o, in, cut, g.Rand); got != want {
						t.Fatalf("seed %d, cut at %d, before %.80q: (-restored +uninterrupted)\n%s", seed, cut, in[cut:], cmp.Diff(got, want))
					}
				}
			}
		})
	}
}

// longOr returns long if TEST_LONG=1 is set, and short otherwise.
func longOr[T any](long, short T) T {
	if os.Getenv("TEST_LONG") == "1" {
		return long
	}
	return short
}

// contextLog returns a generated log in which hexdicts and module lines are often open.
func contextLog(g *logtest.Generator) string {
	var b strings.Builder
	for line := range strings.Lines(g.Log(25)) {
		b.WriteString(line)
		if strings.HasSuffix(line, "\n") && g.IntN(3) == 0 {
			b.WriteString(logtest.Pick(g,
				"[12.5] {{{hexdict:\n[7] RIP 0x500140\n[12.6] RAX 0x5011c0\n[13] }}} "+g.Word()+"\n",
				"[1] {{{module:0:b\x01ü{b:elf:a0a1a2a3a4a5a6a7}}} \x1b[1;31m"+g.Word()+"\n[2] {{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n[3] {{{mmap:0x501000:0x1000:load:0:rw:0x401000}}}\n",
				"[1] {{{bt:0:0x500140}}} {{{module:1:c:elf:bb}}} {{{module:2:d:elf:cc}}}{{{mmap:0x700000:0x10:load:2:-:0x0}}}\n",
				"{{{module:3:"+strings.Repeat("n", maxName+1)+":elf:aa}}}\n",
				g.Word(), g.Word()+"\n"))
		}
	}
	return b.String()
}

// Flush prints a prompt, of which a new Filter must not print any part again.
func TestContextOfAPrompt(t *testing.T) {
	fuzztest.WithoutRace(t)
	for name, o := range contextOptions(t) {
		var before, after bytes.Buffer
		f := New(&before, o)
		io.WriteString(f, "ready\n[1] name? ")
		f.Flush()
		context := f.AppendContext(nil)
		g := New(&after, o)
		if err := g.Restore(context); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(g.AppendContext(nil)), string(context)); d != "" {
			t.Errorf("%s: the context of what was restored (-got +want)\n%s", name, d)
		}
		n := before.Len()
		for _, f := range []*Filter{f, g} {
			io.WriteString(f, "{{{symbol:_Z1fv}}}\n")
			f.Close()
		}
		if d := cmp.Diff(after.String(), before.String()[n:]); d != "" {
			t.Errorf("%s: (-restored +uninterrupted)\n%s", name, d)
		}
	}
}

// After a restart within a line that is too long, the rest of the line must not be interpreted.
func TestContextOfALongLine(t *testing.T) {
	fuzztest.WithoutRace(t)
	in := strings.Repeat("é{{{symbol:_Z1fv}}} ", 3*maxLine/21) + "\n{{{symbol:_Z1fv}}}\n"
	for name, o := range contextOptions(t) {
		want, _ := filterString(t, o, in, nil)
		for _, cut := range []int{maxLine / 2, maxLine + 1<<16, 2*maxLine + 5, 2*maxLine + 6, len(in) - 20} {
			if name == "json" || name == "processes in json" || name == "terminal" {
				// with these options, the output shows in which parts a long line was written
				var b bytes.Buffer
				f := New(&b, o)
				io.WriteString(f, in[:cut])
				io.WriteString(f, in[cut:])
				f.Close()
				want = b.String()
			}
			var out bytes.Buffer
			f := New(&out, o)
			io.WriteString(f, in[:cut])
			g := New(&out, o)
			if err := g.Restore(f.AppendContext(nil)); err != nil {
				t.Fatal(err)
			}
			io.WriteString(g, in[cut:])
			g.Close()
			if out.String() != want {
				t.Errorf("%s, cut at %d: %d bytes came out, want %d; they differ from byte %d on", name, cut, out.Len(), len(want), firstDifference(out.String(), want))
			}
		}
	}
}

func TestContextIsPlainJSON(t *testing.T) {
	f := New(io.Discard, Options{ProcessKey: regexp.MustCompile(`^(\S+) `)})
	io.WriteString(f, "p1 {{{module:0:a:elf:aa}}}\np1 {{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n"+
		"\xff {{{module:7:\x1b[31m ü:elf:bb}}}\n\xff {{{hexdict: A: 0x1\n"+
		"p1 {{{module:1:lib b.so:elf:cc}}}\np1 {{{mmap:0x2000:0x1000:load:1:rw:0x10}}} \np1 unfin")
	want := strings.Join([]string{`{"v":2,"line":6,"turn":6,"grown":9,"began":5,`,
		`"process":{"key":"p1","used":6,"modules":[{"id":0,"name":"a","build_id":"aa"},{"id":1,"name":"lib b.so","build_id":"cc"}],`,
		`"maps":[{"module":0,"start":4096,"end":8191,"mode":5},{"module":1,"start":8192,"end":12287,"offset":16,"mode":6}]},`,
		`"idle":[{"key":{"base64":"/w=="},"used":4,"modules":[{"id":7,"name":"\u001b[31m ü","build_id":"bb"}],`,
		`"hexdict":{"lines":1,"prefix":{"base64":"/yA="},"body":" A: 0x1\n"}},{}],`,
		`"held":{"line":6,"id":1,"adds":true,"raw":"p1 ","before":"p1 ","after":" ","eol":"\n","process":"p1","maps":[{"start":8192,"end":12287,"offset":16,"mode":6}]},`,
		`"tail":{"text":"p1 unfin"}}`}, "")
	if d := cmp.Diff(string(f.AppendContext(nil)), want); d != "" {
		t.Errorf("(-got +want)\n%s", d)
	}
}

// A Filter without ProcessKey must restore only the process without a key.
func TestContextWithoutProcessKeys(t *testing.T) {
	const maps = "{{{module:0:a:elf:aa}}}{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n"
	f := New(io.Discard, Options{ProcessKey: regexp.MustCompile(`^(\d+) `)})
	io.WriteString(f, maps+"1 {{{module:0:b:elf:bb}}}{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}\n")
	var out strings.Builder
	g := New(&out, Options{})
	if err := g.Restore(f.AppendContext(nil)); err != nil {
		t.Fatal(err)
	}
	io.WriteString(g, "{{{pc:0x1010:pc}}}\n")
	const want = "1 [[[ELF module #0x0 \"b\"; BuildID=bb [0x1000-0x1fff](rx)]]]\na+0x10 (BuildId: aa)\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A process at its limits must be saved and restored. Without TEST_LONG=1, the process is at an
// eighth of its limits.
func TestContextIsBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	f := New(io.Discard, Options{})
	var log strings.Builder
	share := longOr(1, 8)
	name := strings.Repeat("\x01", maxNames/maxModules)
	for i := range maxModules / share {
		fmt.Fprintf(&log, "{{{module:%d:%s:elf:%0128x}}}\n", i, name, i)
		for j := range maxMaps / maxModules {
			fmt.Fprintf(&log, "{{{mmap:%#x:0x8000000000:load:%d:rwx:0xffffffffffffff00}}}\n", uint64(0x1000000000000000)+uint64(i*4+j)<<40, i)
		}
	}
	io.WriteString(f, log.String())
	if s := &f.process.space; len(s.modules) != maxModules/share || s.n < maxMaps/share-2 {
		t.Fatalf("%d modules and %d maps", len(s.modules), s.n)
	}
	context := f.AppendContext(nil)
	if len(context) > 100<<20/share {
		t.Errorf("a context of %d MiB", len(context)>>20)
	}
	g := New(io.Discard, Options{})
	if err := g.Restore(context); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(g.AppendContext(nil), context) {
		t.Error("the context of what was restored is another")
	}
}

// If a context would exceed its budget, it must omit the processes that have been idle longest.
func TestContextLeavesOutIdleProcesses(t *testing.T) {
	fuzztest.WithoutRace(t)
	f := New(io.Discard, Options{ProcessKey: regexp.MustCompile(`^(\d+) `)})
	name := strings.Repeat("n", maxName)
	for p := range 20 {
		var log strings.Builder
		for i := range 500 {
			fmt.Fprintf(&log, "%d {{{module:%d:%s:elf:aa}}}\n", p, i, name)
		}
		io.WriteString(f, log.String())
	}
	context := f.AppendContext(nil)
	if len(context) > maxIdleContext+4<<20 {
		t.Errorf("a context of %d MiB", len(context)>>20)
	}
	g := New(io.Discard, Options{ProcessKey: f.o.ProcessKey})
	if err := g.Restore(context); err != nil {
		t.Fatal(err)
	}
	for p := range 20 {
		if got, want := g.all[fmt.Sprint(p)] != nil, p >= 20-len(g.all); got != want {
			t.Errorf("process %d of %d: kept is %v, want %v", p, len(g.all), got, want)
		}
	}
}

// Restore must return the reason why it refuses a context, and must leave the Filter unchanged.
func TestRestoreRefusesOthers(t *testing.T) {
	of := func(members string) string { return `{"v":2,"line":0,"process":{}` + members + `}` }
	in := func(members string) string { return `{"v":2,"line":0,"process":{` + members + `}}` }
	const mod = `"modules":[{"id":0,"name":"a","build_id":"aa"}]`
	for context, want := range map[string]string{
		"":                     "restore the context of a log: cut off: the end is missing",
		of("")[:20]:            "cut off: the end is missing",
		"{{{context:1}}}\n":    "restore the context of a log: written by another version of symfilter: version 1, not 2",
		`{"v":3}`:              "written by another version of symfilter: version 3, not 2",
		`{}`:                   "written by another version of symfilter: version 1, not 2",
		"x":                    "restore the context of a log: damaged: invalid character 'x' looking for beginning of value",
		of("") + "\n" + of(""): "damaged: invalid character '{' after top-level value",
		of(`,"line":-1`):       "damaged: the counters are out of range",
		of(`,"grown":-1`):      "damaged: the counters are out of range",
		in(`"modules":[{"id":0,"name":"a","build_id":"zz"}]`):                       `damaged: module 0: not a build ID: "zz" has characters that are not hex digits`,
		in(`"modules":[{"id":-1}]`):                                                 "damaged: json: cannot unmarshal number -1 into Go",
		in(`"modules":[{"id":0},{"id":0}]`):                                         "damaged: two modules have the ID 0",
		in(`"modules":[{"id":0,"replaced":true}]`):                                  "damaged: module 0 is replaced and has no map",
		in(`"modules":[{"id":0,"name":"` + strings.Repeat("a", maxName+9) + `"}]`):  "damaged: the name of module 0 has 4105 bytes",
		in(`"maps":[{"module":0,"start":1,"end":2}]`):                               "damaged: map 0 refers to module 0, but the context has 0 modules",
		in(mod + `,"maps":[{"start":2,"end":1}]`):                                   "damaged: map 0 [0x2-0x1] overlaps another or is not valid",
		in(mod + `,"maps":[{"start":1,"end":2},{"start":2,"end":3}]`):               "damaged: map 1 [0x2-0x3] overlaps another or is not valid",
		in(mod + `,"maps":[{"start":0,"end":18446744073709551615}]`):                "damaged: map 0 [0x0-0xffffffffffffffff] overlaps another or is not valid",
		in(mod + `,"maps":[{"start":0,"end":1,"mode":8}]`):                          "damaged: map 0 [0x0-0x1] overlaps another or is not valid",
		in(`"hexdict":{"lines":99999}`):                                             "damaged: the open hexdict is too long",
		in(`"hexdict":{"lines":1,"body":"` + strings.Repeat("a", maxDict+1) + `"}`): "damaged: the open hexdict is too long",
		in(`"key":"` + strings.Repeat("a", maxKey+1) + `"`):                         `damaged: process 1 of 1, "aaaaaaaaaaaaaaaaaaaa", is repeated or exceeds a limit`,
		of(`,"idle":[{}]`):        `damaged: process 2 of 2, "", is repeated or exceeds a limit`,
		of(`,"idle":[{"key":7}]`): "damaged: json: cannot unmarshal number into Go",
		of(`,"held":{"id":0}`):    "damaged: the held line of module 0 is not valid",
		in(mod + `},"held":{"id":0,"maps":[{"start":2,"end":1}]`):                          "damaged: the map [0x2-0x1] is not valid",
		in(mod + `},"held":{"id":0,"json":true,"records":[7]`):                             `damaged: the element "7" of the held line is not an object`,
		in(mod + `},"held":{"id":0,"before":"` + strings.Repeat("a", maxOpenLine+1) + `"`): "damaged: the held line of module 0 is not valid",
		of(`,"tail":{"text":"\n"}`):                                                        "damaged: the unfinished last line is not valid",
		of(`,"tail":{"text":"a","passed":2}`):                                              "damaged: the unfinished last line is not valid",
		of(`,"long":{"cut":"aaaa"}`):                                                       "damaged: the unfinished long line is not valid",
		of(`,"long":{},"tail":{"text":"a"}`):                                               "damaged: the unfinished long line is not valid",
	} {
		f := New(io.Discard, Options{})
		asNew := string(f.AppendContext(nil))
		if err := f.Restore([]byte(context)); err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("%.100q:\n got %v\nwant %v", context, err, want)
		}
		if d := cmp.Diff(string(f.AppendContext(nil)), asNew); d != "" {
			t.Errorf("%.100q: the filter is not as new (-got +want)\n%s", context, d)
		}
	}
	f := New(io.Discard, Options{})
	context := f.AppendContext(nil)
	io.WriteString(f, "a line\n")
	if err := f.Restore(context); !errors.Is(err, errNotNew) {
		t.Errorf("a filter that has seen a line: got %v, want %v", err, errNotNew)
	}
}

// A Context must read the JSON of another Context. Damaged JSON must leave the Context unchanged.
func TestContextOfAProcess(t *testing.T) {
	f := New(io.Discard, Options{})
	io.WriteString(f, "{{{module:0:a:elf:aa}}}{{{mmap:0x1000:0x1000:load:0:rx:0x0}}}{{{module:0:b:elf:bb}}}{{{mmap:0x1800:0x1000:load:0:rx:0x0}}}\n{{{hexdict: A: 1\n")
	data, err := json.Marshal(&f.process.Context)
	const want = `{"v":2,"modules":[{"id":0,"name":"b","build_id":"bb"},{"id":0,"name":"a","build_id":"aa","replaced":true}],` +
		`"maps":[{"module":1,"start":4096,"end":6143,"mode":5},{"module":0,"start":6144,"end":10239,"mode":5}],"hexdict":{"lines":1,"body":" A: 1\n"}}`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v; want %s", data, err, want)
	}
	var c Context
	for _, data := range []string{want, `{"v":2,"modules":7}`, `{"v":1}`} {
		if err := json.Unmarshal([]byte(data), &c); (err == nil) != (data == want) {
			t.Errorf("%s: %v", data, err)
		}
		if got, err := json.Marshal(&c); err != nil || string(got) != want || c.Size() != f.process.Size() {
			t.Errorf("got %s of %d bytes, %v", got, c.Size(), err)
		}
	}
	if c.Reset(); c.Size() != new(Context).Size() {
		t.Errorf("after Reset it has %d bytes", c.Size())
	}
}

// A held module line must be printed even if the output format changes between two runs.
func TestHeldLineGoesOnInAnotherOutput(t *testing.T) {
	text, object := Options{}, Options{Output: JSON}
	for _, test := range []struct {
		from, to Options
		want     string
	}{
		{text, object, `{"v":1,"text":"x [[[ELF module #0x0 \"a\"; BuildID=aa [0x1000-0x100f](r)]]] y","elements":[{"tag":"module","id":0,"module":"a","build_id":"aa","maps":[{"start":"0x1000","end":"0x100f","mode":"r","offset":"0x0"}]}]}` + "\n"},
		{object, text, "x [[[ELF module #0x0 \"a\"; BuildID=aa [0x1000-0x100f](r)]]] y\n"},
	} {
		f := New(io.Discard, test.from)
		io.WriteString(f, "x {{{module:0:a:elf:aa}}} y\n")
		var out strings.Builder
		g := New(&out, test.to)
		if err := g.Restore(f.AppendContext(nil)); err != nil {
			t.Fatal(err)
		}
		io.WriteString(g, "x {{{mmap:0x1000:0x10:load:0:r:0x0}}}\n")
		g.Close()
		if d := cmp.Diff(out.String(), test.want); d != "" {
			t.Errorf("(-got +want)\n%s", d)
		}
	}
}

// FuzzRestore checks that any context is refused, or restored within the limits, and that a
// restored context can be saved and restored again.
func FuzzRestore(f *testing.F) {
	for seed := range uint64(6) {
		g := logtest.NewGenerator(seed)
		o := Options{Output: Output(seed % 2)}
		if seed%3 == 0 {
			o.ProcessKey = regexp.MustCompile(`^\[(\d)`)
		}
		in := contextLog(g)
		filter := New(io.Discard, o)
		io.WriteString(filter, in[:g.IntN(len(in))])
		f.Add(filter.AppendContext(nil), byte(seed))
	}
	s := testSymbolizer(f)
	f.Fuzz(func(t *testing.T, context []byte, mode byte) {
		if len(context) > 256<<10 {
			return
		}
		defer fuzztest.Watch(t, context)()
		o := Options{Symbolizer: s, Output: Output(mode % 2), Color: Color(mode % 3)}
		if mode%5 == 0 {
			o.ProcessKey = regexp.MustCompile(`^\[(\d)`)
		}
		var out bytes.Buffer
		filter := New(&out, o)
		if filter.Restore(context) != nil {
			return
		}
		again := filter.AppendContext(nil)
		g := New(io.Discard, o)
		if err := g.Restore(again); err != nil {
			t.Fatalf("what was taken in is refused: %v\n%s", err, again)
		}
		if got := g.AppendContext(nil); !bytes.Equal(got, again) {
			t.Fatalf("the context of what was restored (-got +want)\n%s", cmp.Diff(string(got), string(again)))
		}
		io.WriteString(filter, contextLog(logtest.NewGenerator(uint64(mode))))
		filter.Close()
	})
}
