package filter

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// Elements beyond a limit are printed unchanged, and text beyond a limit is not repeated for
// inlined calls. No text is lost, except parts of names that are too long.
func TestLimitsOfOneLine(t *testing.T) {
	const head = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n"
	const shown = "[[[ELF module #0x0 \"a.out\"; BuildID=a0a1a2a3a4a5a6a7 [0x500000-0x501fff](rx)]]]\n"
	many := strings.Repeat("{{{symbol:a}}}", maxPieces+2)
	prefix := strings.Repeat("p", maxRepeat) + ": "
	frame := "    #0%s  0x000000000050017a %s /src/a.cpp:%s (a.out+0x40017a)"
	for _, test := range []struct{ name, in, want string }{
		{"elements", many + "\n", strings.Repeat("a", maxPieces) + "{{{symbol:a}}}{{{symbol:a}}}\n"},
		{"a module's name", "{{{module:0:" + strings.Repeat("n", maxName+1) + ":elf:aa}}}\n",
			"[[[ELF module #0x0 \"" + strings.Repeat("n", maxName) + "…\"; BuildID=aa]]]\n"},
		{"text before inlined calls", head + prefix + "{{{bt:0:0x50017a:pc}}}!\n", shown +
			prefix + fmt.Sprintf(frame, ".1", "ns::inner(int)", "9:64") + "!\n" +
			fmt.Sprintf(frame, ".2", "ns::middle(int)", "10:63") + "!\n" +
			fmt.Sprintf(frame, "  ", "int ns::Foo::run<int>(int)", "12:66") + "!\n"},
		{"text after inlined calls", head + "{{{bt:0:0x50017a:pc}}}" + prefix + "\n", shown +
			fmt.Sprintf(frame, ".1", "ns::inner(int)", "9:64") + "\n" +
			fmt.Sprintf(frame, ".2", "ns::middle(int)", "10:63") + "\n" +
			fmt.Sprintf(frame, "  ", "int ns::Foo::run<int>(int)", "12:66") + prefix + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
			if got, _ := filterString(t, o, test.in, nil); got != test.want {
				t.Errorf("%d bytes came out, want %d; they differ from byte %d on", len(got), len(test.want), firstDifference(got, test.want))
			}
		})
	}
}

func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// An element beyond a limit must be printed unchanged, and must cause a diagnostic.
func TestLimitsOfAProcess(t *testing.T) {
	name := strings.Repeat("n", maxName)
	var in strings.Builder
	for i := range maxNames/maxName + 1 {
		fmt.Fprintf(&in, "{{{module:%d:%s:elf:aa}}}\n", i, name)
	}
	out, diagnostics := filterString(t, Options{}, in.String(), nil)
	if got := strings.Count(out, "[[[ELF module"); got != maxNames/maxName || !strings.HasSuffix(out, "]]]\n{{{module:2048:"+name+":elf:aa}}}\n") {
		t.Errorf("%d modules were taken in, want %d and one left", got, maxNames/maxName)
	}
	if want := "2049:1: module 2048 is ignored: a process may have at most 65536 modules, with 8 MiB of names\n"; diagnostics != want {
		t.Errorf("got %q, want %q", diagnostics, want)
	}
}

// If a module's ID is given to another module, the old module's name must count towards the limit
// while the old module is mapped.
func TestNamesOfReplacedModulesCount(t *testing.T) {
	const more = 10
	for _, test := range []struct {
		name string
		step int // between the maps
		left int // modules that are ignored
	}{
		{"all stay mapped", 0x1000, more},
		{"each takes the place of the last", 0, 0},
	} {
		var in strings.Builder
		for i := range maxNames/maxName + more {
			name := strings.Repeat("n", maxName-8) + fmt.Sprintf("%08d", i)
			fmt.Fprintf(&in, "{{{module:0:%s:elf:aa}}}\n{{{mmap:%#x:0x10:load:0:r:0x0}}}\n", name, 0x1000+test.step*i)
		}
		f := New(io.Discard, Options{})
		left := 0
		f.o.Diagnose = func(d Diagnostic) {
			if strings.Contains(d.Message, "is ignored") {
				left++
			}
		}
		io.WriteString(f, in.String())
		if left != test.left || f.process.space.names > maxNames {
			t.Errorf("%s: %d modules left, want %d; %d bytes of names", test.name, left, test.left, f.process.space.names)
		}
	}
}

// A Filter must not keep all of a very long first line of a hexdict, or of a long text before the
// hexdict.
func TestHexDictsHoldLittle(t *testing.T) {
	long := strings.Repeat("x", maxLine-100)
	for _, line := range []string{"{{{hexdict: A: 0x1 " + long, long + ": {{{hexdict: A: 0x1 "} {
		f := New(io.Discard, Options{})
		io.WriteString(f, line+"\n")
		if d := f.process.hex; d != nil && cap(d.body)+cap(d.prefix) > 2*maxDict {
			t.Errorf("%.20q…: %d bytes are held", line, cap(d.body)+cap(d.prefix))
		}
	}
}

// A module line must show at most maxMerged maps. The next map must begin another line.
func TestAModuleLineCollectsSoManyMaps(t *testing.T) {
	var in strings.Builder
	in.WriteString("{{{module:0:a:elf:aa}}}\n")
	for i := range maxMerged + 10 {
		fmt.Fprintf(&in, "{{{mmap:%#x:0x10:load:0:r:0x0}}}\n", 0x1000+0x20*i)
	}
	out, _ := filterString(t, Options{}, in.String(), nil)
	lines := strings.Split(out, "\n")
	if len(lines) != 3 || strings.Count(lines[0], "](r)") != maxMerged || !strings.HasPrefix(lines[1], `[[[ELF module #0x0 "a"; adds [`) {
		t.Errorf("%d lines, the first with %d maps; want 2 and %d", len(lines)-1, strings.Count(lines[0], "](r)"), maxMerged)
	}
}

// A hexdict must have footnotes only for its lines up to the limit. Later lines must be printed as
// text.
func TestAHexDictOfManyLinesEndsAtItsLimit(t *testing.T) {
	const register = "A: 0x50018d\n"
	in := dictHead + "{{{hexdict:\n" + strings.Repeat(register, maxDictLines+9) + "}}}\n"
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	head, _ := filterString(t, o, dictHead, nil)
	want := head + "{{{hexdict:\n" + strings.Repeat(register, maxDictLines-1)
	for i := range maxDictLines - 1 {
		want += fmt.Sprintf("[%d] A 0x50018d → bare+0x2\n", i+1)
	}
	want += strings.Repeat(register, 10) + "}}}\n"
	if got, _ := filterString(t, o, in, nil); got != want {
		t.Errorf("%d bytes came out, want %d; they differ from byte %d on", len(got), len(want), firstDifference(got, want))
	}
}

// Keys that ProcessKey extracts must be cut at maxKey bytes.
func TestTheHeadOfAProcessKeyCounts(t *testing.T) {
	re, err := ProcessKey(`^(\w+) `)
	if err != nil {
		t.Fatal(err)
	}
	head := strings.Repeat("k", maxKey)
	in := head + "1 {{{module:0:a:elf:aa}}}\n" + head + "2 {{{mmap:0x1000:0x10:load:0:r:0x0}}}\nx {{{mmap:0x1000:0x10:load:0:r:0x0}}}\n"
	out, _ := filterString(t, Options{ProcessKey: re}, in, nil)
	want := head + "1 [[[ELF module #0x0 \"a\"; BuildID=aa [0x1000-0x100f](r)]]]\nx {{{mmap:0x1000:0x10:load:0:r:0x0}}}\n"
	if out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
