//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// staleForms are the formats of traces without build IDs. write appends a trace of a program loaded
// at base. addrs are the return addresses of its frames, relative to the file; if exact is set, the
// first is the address of an instruction.
var staleForms = []struct {
	name  string
	exact bool // the first address belongs to an instruction, not to a return
	asan  bool // the program is built with GCC's AddressSanitizer
	base  uint64
	write func(b *strings.Builder, base uint64, addrs []uint64)
}{
	{"access", false, true, 0x55d0c0a00000, func(b *strings.Builder, base uint64, addrs []uint64) {
		fmt.Fprintf(b, "==71==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010 at pc %#x bp 0x7ffe3d2c1a20 sp 0x7ffe3d2c1a18\nREAD of size 4 at 0x602000000010 thread T0\n", base+addrs[0])
		for i, addr := range addrs {
			fmt.Fprintf(b, "    #%d %#x  (/opt/shop/shop+%#x)\n", i, base+addr-1, addr-1)
		}
	}},
	{"signal", true, true, 0x55d0c0a00000, func(b *strings.Builder, base uint64, addrs []uint64) {
		fmt.Fprintf(b, "==71==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc %#x bp 0x7ffe3d2c1a20 sp 0x7ffe3d2c1a18 T0)\n", base+addrs[0])
		for i, addr := range addrs {
			addr -= min(uint64(i), 1)
			fmt.Fprintf(b, "    #%d %#x  (/opt/shop/shop+%#x)\n", i, base+addr, addr)
		}
	}},
	{"glibc", false, false, 0x55d0c0a00000, func(b *strings.Builder, base uint64, addrs []uint64) {
		for _, addr := range addrs {
			fmt.Fprintf(b, "/opt/shop/shop(+%#x) [%#x]\n", addr, base+addr)
		}
	}},
	{"gdb", true, false, 0x555555554000, func(b *strings.Builder, base uint64, addrs []uint64) {
		b.WriteString("Reading symbols from /opt/shop/shop...\n(No debugging symbols found in /opt/shop/shop)\n")
		for i, addr := range addrs {
			fmt.Fprintf(b, "#%-2d 0x%016x in ?? ()\n", i, base+addr)
		}
	}},
	{"jvm", true, false, 0x55d0c0a00000, func(b *strings.Builder, base uint64, addrs []uint64) {
		b.WriteString("# A fatal error has been detected by the Java Runtime Environment:\n#\nNative frames: (J=compiled Java code, A=aot compiled Java code, j=interpreted, Vv=VM code, C=native code)\n")
		for _, addr := range addrs {
			fmt.Fprintf(b, "C  [shop+%#x]\n", addr)
		}
		fmt.Fprintf(b, "\nDynamic libraries:\n%x-%x r-xp 00000000 fe:01 4711                       /opt/shop/shop\n", base, base+0x100000)
	}},
	{"coredump", true, false, 0x55d0c0a00000, func(b *strings.Builder, base uint64, addrs []uint64) {
		b.WriteString("Process 10330 (shop) of user 0 dumped core.\n\nStack trace of thread 10330:\n")
		for i, addr := range addrs {
			fmt.Fprintf(b, "#%d  0x%016x n/a (/opt/shop/shop + %#x)\n", i, base+addr, addr)
		}
	}},
	{"valgrind", true, false, 0x108000, func(b *strings.Builder, base uint64, addrs []uint64) {
		b.WriteString("==4711== Invalid read of size 4\n")
		for i, addr := range addrs {
			word := "at"
			if i > 0 {
				word, addr = "by", addr-1
			}
			fmt.Fprintf(b, "==4711==    %s 0x%X: ??? (in /opt/shop/shop)\n", word, base+addr)
		}
	}},
}

type shopBuild struct {
	path      string
	functions []*shopFunction
	callers   map[uint64][]shopCall // by the start of the called function
	indirect  []shopCall
	reports   []shopCall // calls that report an error of AddressSanitizer
}

type shopFunction struct {
	name         string
	start        uint64
	instructions []uint64
	body         int      // instructions before the padding at the end
	calls        []uint64 // return addresses
}

// A shopCall is a call or, if tail is set, a jump to another function. The field from is the
// calling function. The field returns is the address after the instruction.
type shopCall struct {
	from    *shopFunction
	returns uint64
	tail    bool
}

// A shops links builds of the program in testdata/stale. It keeps the object files for later
// builds.
type shops struct {
	dir     string
	objects map[string]string
}

func newShops(t *testing.T) *shops {
	return &shops{dir: t.TempDir(), objects: make(map[string]string)}
}

var shopObjects = []string{"main", "text", "ledger", "parse", "tasks", "roads"}

func (s *shops) object(t *testing.T, name, compiler string, flags []string) string {
	t.Helper()
	key := strings.Join(append([]string{name, compiler}, flags...), " ")
	if s.objects[key] == "" {
		s.objects[key] = filepath.Join(s.dir, fmt.Sprintf("%d.o", len(s.objects)))
		source := filepath.Join(checkout, "integration", "testdata", "stale", name+".cc")
		run(t, nil, compiler, slices.Concat([]string{"-std=c++17", "-g", "-c", source, "-o", s.objects[key]}, flags)...)
	}
	return s.objects[key]
}

// build links the program. The objects in changed are compiled from the second version.
func (s *shops) build(t *testing.T, compiler string, flags []string, changed ...string) *shopBuild {
	t.Helper()
	path := filepath.Join(s.dir, fmt.Sprintf("shop%d", len(s.objects)), strings.Join(changed, "-"))
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(path, "shop")
	args := []string{"-o", path, "-Wl,--build-id=none"}
	for _, name := range shopObjects {
		with := flags
		if slices.Contains(changed, name) {
			with = slices.Concat(flags, []string{"-DVERSION=2"})
		}
		args = append(args, s.object(t, name, compiler, with))
	}
	for _, flag := range flags {
		if strings.HasPrefix(flag, "-fsanitize") {
			args = append(args, flag)
		}
	}
	if strings.HasPrefix(compiler, "clang") {
		args = append(args, "-lstdc++")
	}
	run(t, nil, compiler, args...)
	return disassembled(t, path)
}

// disassembled reads the functions and calls of a program from objdump's output.
func disassembled(t *testing.T, path string) *shopBuild {
	t.Helper()
	b := &shopBuild{path: path, callers: make(map[uint64][]shopCall)}
	var f *shopFunction
	var open *shopCall
	var target uint64
	names := make(map[uint64]*shopFunction)
	var jumps []struct {
		shopCall
		to uint64
	}
	for line := range strings.Lines(run(t, nil, "objdump", "-d", "--no-show-raw-insn", "-j", ".text", path)) {
		var addr uint64
		if n, _ := fmt.Sscanf(line, "%x <", &addr); n == 1 && strings.HasSuffix(line, ">:\n") {
			name := strings.TrimSuffix(line[strings.IndexByte(line, '<')+1:], ">:\n")
			f = &shopFunction{name: name, start: addr}
			names[addr] = f
			open = nil
			if strings.HasPrefix(name, "_Z") || name == "main" {
				b.functions = append(b.functions, f)
			}
			continue
		}
		at, text, ok := strings.Cut(strings.TrimSpace(line), ":\t")
		if n, _ := fmt.Sscanf(at, "%x", &addr); !ok || n != 1 || f == nil {
			continue
		}
		f.instructions = append(f.instructions, addr)
		if word, _, _ := strings.Cut(text, " "); !strings.HasPrefix(word, "nop") && word != "cs" && word != "xchg" && word != "data16" {
			f.body = len(f.instructions)
		}
		if open != nil {
			open.returns = addr
			f.calls = append(f.calls, addr)
			if target != 0 {
				b.callers[target] = append(b.callers[target], *open)
			} else {
				b.indirect = append(b.indirect, *open)
			}
			open = nil
		}
		word, rest, _ := strings.Cut(text, " ")
		target = 0
		fmt.Sscanf(strings.TrimSpace(rest), "%x <", &target)
		switch {
		case word == "call":
			open = &shopCall{from: f}
			if strings.Contains(rest, "<__asan_report_") {
				target = ^uint64(0)
			}
		case strings.HasPrefix(word, "j") && target != 0:
			jumps = append(jumps, struct {
				shopCall
				to uint64
			}{shopCall{from: f, tail: true}, target})
		}
	}
	b.reports = b.callers[^uint64(0)]
	delete(b.callers, ^uint64(0))
	for _, j := range jumps {
		if names[j.to] != nil && j.to != j.from.start {
			b.callers[j.to] = append(b.callers[j.to], j.shopCall)
		}
	}
	if len(b.functions) < 50 || len(b.callers) < 50 {
		t.Fatalf("%d functions, %d are called, in %s", len(b.functions), len(b.callers), path)
	}
	return b
}

// chain returns the addresses of a stack of at most n frames: an address in a random function, and
// return addresses in its callers.
func (b *shopBuild) chain(random *rand.Rand, n int, exact, report bool) (addrs []uint64) {
	f := b.functions[random.IntN(len(b.functions))]
	switch {
	case exact:
		addrs = []uint64{f.instructions[random.IntN(f.body)]}
	case report && len(b.reports) > 0:
		c := b.reports[random.IntN(len(b.reports))]
		f, addrs = c.from, []uint64{c.returns}
	case len(f.calls) == 0:
		return b.chain(random, n, exact, report)
	default:
		addrs = []uint64{f.calls[random.IntN(len(f.calls))]}
	}
	for tails := 0; len(addrs) < n && tails < 8 && f.name != "main"; {
		from := b.callers[f.start]
		if len(from) == 0 {
			if from = b.indirect; len(from) == 0 {
				break
			}
		}
		c := from[random.IntN(len(from))]
		if f = c.from; c.tail {
			tails++
			continue
		}
		addrs = append(addrs, c.returns)
	}
	return addrs
}

// A shopFilter filters traces, with the path of a build in place of /opt/shop/shop.
type shopFilter struct{ opened *symfilter.Opened }

// names filters a trace of the program at path. For each frame it returns the printed functions,
// files and lines, or "" if the frame has no answer. If base is not 0, the program is used without
// proof, as loaded at base.
func (s *shopFilter) names(t *testing.T, log string, frames int, path string, base uint64, logged time.Time) (all []string) {
	t.Helper()
	log = strings.ReplaceAll(log, "/opt/shop/shop", path)
	o := filter.Options{Symbolizer: s.opened.Symbolizer, Cache: s.opened.Cache, Patience: filter.Patience{Local: time.Minute}, Output: filter.JSON}
	o.Dialects = filter.Dialects{Whole: true, Logged: func() time.Time { return logged }}
	if base != 0 {
		o.Dialects.Images, o.Dialects.ForceImages = []filter.Image{{Name: "shop", Path: path, Base: base, HasBase: true}}, true
	}
	var out bytes.Buffer
	f := filter.New(&out, o)
	io.WriteString(f, log)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var object struct{ Elements []twinFrame }
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatal(err)
		}
		for _, e := range object.Elements {
			if e.Tag != "frame" {
				continue
			}
			var b strings.Builder
			for _, call := range e.Frames {
				fmt.Fprintf(&b, "%s %s:%d\n", call.Function, filepath.Base(call.File), call.Line)
			}
			if i := slices.Index(all, ""); len(all) == frames { // a footnote after the maps
				all[i] = b.String()
			} else {
				all = append(all, b.String())
			}
		}
	}
	return all
}

// A program is rebuilt after its log was written. At most one in 10,000 frames may get a wrong name
// or line if the log's time is known. If it is unknown, at most one in 8,000 may, and one more
// frame for chance. The log cannot show that a line has moved without a change of code.
func TestFramesOfReplacedBuildsGetNoWrongNames(t *testing.T) {
	fuzztest.WithoutRace(t)
	need(t, "g++", "objdump")
	s := newShops(t)
	type pair struct {
		name      string
		ran       *shopBuild
		asan      bool
		there     []*shopBuild
		thereName []string
	}
	var pairs []*pair
	add := func(name, compiler string, flags []string, others func(p *pair)) {
		p := &pair{name: name, ran: s.build(t, compiler, flags)}
		for _, f := range flags {
			p.asan = p.asan || strings.HasPrefix(f, "-fsanitize")
		}
		others(p)
		pairs = append(pairs, p)
	}
	changed := func(p *pair, compiler string, flags []string) {
		for _, name := range fuzztest.LongOr(shopObjects, []string{"ledger", "tasks"}) {
			p.there = append(p.there, s.build(t, compiler, flags, name))
			p.thereName = append(p.thereName, "changed "+name)
		}
		if fuzztest.Long() {
			p.there = append(p.there, s.build(t, compiler, flags, shopObjects...))
			p.thereName = append(p.thereName, "changed all")
		}
	}
	other := func(p *pair, compiler string, flags ...string) {
		p.there = append(p.there, s.build(t, compiler, flags))
		p.thereName = append(p.thereName, strings.Join(append([]string{compiler}, flags...), " "))
	}
	gcc, asan := []string{"-O2"}, []string{"-O1", "-fsanitize=address"}
	add("gcc -O2", "g++", gcc, func(p *pair) {
		changed(p, "g++", gcc)
		if fuzztest.Long() {
			other(p, "g++", "-O1")
			other(p, "g++", "-O2", "-fno-inline")
			other(p, "clang++-19", "-O2")
		}
	})
	add("gcc ASan", "g++", asan, func(p *pair) {
		changed(p, "g++", asan)
		if fuzztest.Long() {
			other(p, "g++", "-O2", "-fsanitize=address")
		}
	})
	if fuzztest.Long() {
		add("clang -O2", "clang++-19", gcc, func(p *pair) {
			changed(p, "clang++-19", gcc)
			other(p, "clang++-19", "-O1")
			other(p, "g++", "-O2")
		})
		add("gcc -O0", "g++", []string{"-O0"}, func(p *pair) {
			changed(p, "g++", []string{"-O0"})
			other(p, "g++", "-O0", "-fno-omit-frame-pointer", "-fcf-protection=none")
		})
	}
	opened, err := symfilter.Symbols{CacheDir: t.TempDir()}.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	symbols := &shopFilter{opened}
	random := rand.New(rand.NewPCG(1, 2))
	type tally struct{ frames, right, named, wrong, timedNamed, timedWrong int }
	sums := make(map[string]*tally)
	count := func(keys []string, add tally) {
		for _, k := range keys {
			if sums[k] == nil {
				sums[k] = new(tally)
			}
			c := sums[k]
			c.frames, c.right, c.named, c.wrong = c.frames+add.frames, c.right+add.right, c.named+add.named, c.wrong+add.wrong
			c.timedNamed, c.timedWrong = c.timedNamed+add.timedNamed, c.timedWrong+add.timedWrong
		}
	}
	for n := range fuzztest.LongOr(20000, 600) {
		form := &staleForms[n%len(staleForms)]
		var of []*pair
		for _, p := range pairs {
			if p.asan == form.asan {
				of = append(of, p)
			}
		}
		p := of[random.IntN(len(of))]
		there := random.IntN(len(p.there))
		addrs := p.ran.chain(random, 1+random.IntN(8), form.exact, form.name == "access")
		var b strings.Builder
		form.write(&b, form.base, addrs)
		names := func(path string, base uint64, logged time.Time) []string {
			all := symbols.names(t, b.String(), len(addrs), path, base, logged)
			if len(all) != len(addrs) {
				t.Fatalf("%d of %d frames are read:\n%s", len(all), len(addrs), b.String())
			}
			return all
		}
		other, unknown := p.there[there].path, time.Time{}
		truth, right := names(p.ran.path, form.base, unknown), names(p.ran.path, 0, unknown)
		got, timed := names(other, 0, unknown), names(other, 0, time.Unix(1, 0))
		for i := range addrs {
			one := tally{frames: 1}
			if truth[i] == "" {
				t.Errorf("no name for %#x in %s:\n%s", addrs[i], p.ran.path, b.String())
			}
			if right[i] != "" {
				one.right = 1
				if right[i] != truth[i] {
					t.Errorf("%s: %#x of the file that ran is %q, want %q in\n%s", form.name, addrs[i], right[i], truth[i], b.String())
				}
			}
			if got[i] != "" {
				one.named = 1
				if got[i] != truth[i] {
					one.wrong = 1
					t.Logf("%s, %s, %s: frame %d of %d, %q for %q\n%s", form.name, p.name, p.thereName[there], i, len(addrs), got[i], truth[i], b.String())
				}
			}
			if timed[i] != "" {
				one.timedNamed = 1
				if timed[i] != truth[i] {
					one.timedWrong = 1
				}
			}
			count([]string{"all", "form " + form.name, "ran " + p.name, "there " + p.thereName[there], fmt.Sprintf("frames %d", len(addrs))}, one)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(sums)) {
		c := sums[k]
		t.Logf("%-64s %6d frames: %6d are named by the right file; by another one %5d, %3d wrong; if its time is known %5d, %d wrong",
			k, c.frames, c.right, c.named, c.wrong, c.timedNamed, c.timedWrong)
	}
	if all := sums["all"]; all.wrong > 1+all.frames/8000 || all.timedWrong*10000 > all.frames || all.right*4 < all.frames*3 {
		t.Errorf("of %d frames, %d get a wrong name, %d if the time of the log is known, and %d get names from the right file", all.frames, all.wrong, all.timedWrong, all.right)
	}
}
