//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// crashMaps holds the modules and maps of a log, found by a few regular expressions.
type crashMaps struct {
	names map[string]string // module ID to name
	maps  []crashMap
	bts   []uint64
}

type crashMap struct {
	addr, size, rel uint64
	module          string // ID
}

var (
	moduleElement = regexp.MustCompile(`\{\{\{module:([^:}]*):([^:}]*):elf:[0-9a-f]+\}\}\}`)
	mmapElement   = regexp.MustCompile(`\{\{\{mmap:(0x[0-9a-f]+|0+):(0x[0-9a-f]+):load:([^:}]*):[rwx]+:(0x[0-9a-f]+|0+)\}\}\}`)
	btElement     = regexp.MustCompile(`\{\{\{bt:(\d+):(0x[0-9a-f]+)\}\}\}`)
)

func readMaps(t *testing.T, log string) crashMaps {
	t.Helper()
	number := func(s string) uint64 {
		if strings.Trim(s, "0") == "" {
			return 0
		}
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c := crashMaps{names: map[string]string{}}
	for _, m := range moduleElement.FindAllStringSubmatch(log, -1) {
		c.names[m[1]] = m[2]
	}
	for _, m := range mmapElement.FindAllStringSubmatch(log, -1) {
		c.maps = append(c.maps, crashMap{number(m[1]), number(m[2]), number(m[4]), m[3]})
	}
	for i, m := range btElement.FindAllStringSubmatch(log, -1) {
		if m[1] != strconv.Itoa(i) {
			t.Fatalf("frame %s follows frame %d", m[1], i-1)
		}
		c.bts = append(c.bts, number(m[2]))
	}
	if len(c.names) == 0 || len(c.maps) == 0 || len(c.bts) < 5 {
		t.Fatalf("no crash in the log:\n%s", log)
	}
	return c
}

// codeAt returns the module and the module-relative address of the code at addr. If maps overlap,
// the later one is valid.
func (c crashMaps) codeAt(addr uint64) (name string, rel uint64, ok bool) {
	for _, m := range slices.Backward(c.maps) {
		if addr >= m.addr && addr-m.addr < m.size {
			return c.names[m.module], addr - m.addr + m.rel, true
		}
	}
	return "", 0, false
}

// checkFrames compares the frames in out with the frames in the log: all must be present, in order,
// with the module and offset of the call. The log does not show which addresses are return
// addresses. So two kinds of frames may keep the logged address: the first frame, and a frame at
// the first byte of a function. No call can precede such a byte, for example in the trampoline of a
// signal handler.
func checkFrames(t *testing.T, c crashMaps, out string) map[int][]frame {
	t.Helper()
	byNumber := map[int][]frame{}
	for _, f := range parseFrames(t, out) {
		byNumber[f.Number] = append(byNumber[f.Number], f)
	}
	for i, addr := range c.bts {
		name, rel, ok := c.codeAt(addr - 1)
		frames := byNumber[i]
		switch {
		case !ok && !regexp.MustCompile(fmt.Sprintf(`(?m)^\s*#%d\s+0x[0-9a-f]+ \(no module\)$`, i)).MatchString(out):
			t.Errorf("frame %d, address %#x: want it shown without a module", i, addr)
		case ok && len(frames) == 0:
			t.Errorf("frame %d, address %#x: not shown", i, addr)
		case ok && filepath.Base(frames[0].Module) == filepath.Base(name) && frames[0].Rel == rel+1 && (i == 0 || beginsFunction(frames[0])):
		case ok && (filepath.Base(frames[0].Module) != filepath.Base(name) || frames[0].Rel != rel):
			t.Errorf("frame %d, address %#x: got (%s+%#x), want (%s+%#x)", i, addr, frames[0].Module, frames[0].Rel, name, rel)
		}
	}
	return byNumber
}

// beginsFunction reports whether a frame without a line is at the first byte of its symbol.
func beginsFunction(f frame) bool {
	return f.File == "" && f.Func != "" && !strings.Contains(f.Func, "+0x")
}

// clang crashes, and symfilter runs without flags. In files of this machine, each frame that a
// symbol covers must show the function.
func TestClangCrashShowsEveryFrame(t *testing.T) {
	need(t, "clang-19", "setarch", "llvm-nm-19", "llvm-cxxfilt-19")
	log := string(crash(t, filepath.Join("..", "testdata", "clang"), []string{"LLVM_ENABLE_SYMBOLIZER_MARKUP=1"},
		"setarch", "-R", "clang-19", "-fsyntax-only", "-fno-crash-diagnostics", "crash.c"))
	c := readMaps(t, log)
	out := run(t, []byte(log), command)
	shown := checkFrames(t, c, out)

	symbols := map[string][]dynamicSymbol{}
	named := 0
	for i, addr := range c.bts {
		name, rel, _ := c.codeAt(addr - 1)
		if _, err := os.Stat(name); err != nil {
			continue
		}
		if symbols[name] == nil {
			symbols[name] = dynamicSymbols(t, name)
		}
		want := covering(t, symbols[name], rel)
		if len(want) == 0 || len(shown[i]) == 0 {
			continue
		}
		named++
		f := shown[i][len(shown[i])-1] // the physical function, after its inlined calls
		got, _, _ := strings.Cut(f.Func, "+0x")
		if f.File == "" && !slices.Contains(want, got) || got == "" {
			t.Errorf("frame %d, %s+%#x: got %q, want one of %q", i, name, rel, f.Func, want)
		}
	}
	if named < 10 {
		t.Errorf("only %d frames have a dynamic symbol: clang is not what this test takes it for", named)
	}
	if t.Failed() {
		t.Logf("symfilter printed:\n%s", out)
	}
}

type dynamicSymbol struct {
	addr, size uint64
	name       string
}

func dynamicSymbols(t *testing.T, path string) []dynamicSymbol {
	t.Helper()
	var all []dynamicSymbol
	for line := range strings.Lines(run(t, nil, "llvm-nm-19", "-D", "--defined-only", "--print-size", path)) {
		var s dynamicSymbol
		var kind string
		if n, _ := fmt.Sscanf(line, "%x %x %s %s", &s.addr, &s.size, &kind, &s.name); n == 4 && strings.ContainsAny(kind, "tTwWi") {
			s.name, _, _ = strings.Cut(s.name, "@")
			all = append(all, s)
		}
	}
	return append(all, dynamicSymbol{}) // a zero symbol: the slice is never nil
}

// covering returns the demangled names of the symbols that cover rel.
func covering(t *testing.T, symbols []dynamicSymbol, rel uint64) []string {
	t.Helper()
	var names bytes.Buffer
	for _, s := range symbols {
		if rel >= s.addr && rel-s.addr < s.size {
			fmt.Fprintln(&names, s.name)
		}
	}
	if names.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSpace(run(t, names.Bytes(), "llvm-cxxfilt-19")), "\n")
}

// LLVM truncates addresses to 32 bits, so in testdata/clang-crash.log the executable seems to be
// inside a library. All frames must be shown nevertheless.
func TestTruncatedMapsLoseNoFrame(t *testing.T) {
	path := filepath.Join("..", "testdata", "clang-crash.log")
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := readMaps(t, string(log))
	if !slices.ContainsFunc(c.maps, func(m crashMap) bool {
		return slices.ContainsFunc(c.maps, func(o crashMap) bool { return o != m && m.addr >= o.addr && m.addr-o.addr < o.size })
	}) {
		t.Fatal("no maps overlap: the fixture does not test anything")
	}
	checkFrames(t, c, run(t, nil, command, path))
}

// symfilter and llvm-symbolizer must agree on the frames of README's log.
func TestFramesAgreeWithLLVM(t *testing.T) {
	need(t, "llvm-symbolizer-19")
	log, err := os.ReadFile(filepath.Join("..", "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	debug := "--debug-file-directory=" + filepath.Join("..", "testdata", "debug")
	named := func(frames []frame) []frame {
		return slices.DeleteFunc(frames, func(f frame) bool { return f.File == "" })
	}
	got := named(parseFrames(t, run(t, log, command, debug, "--no-default-debug-directories")))
	want := named(parseFrames(t, run(t, log, "llvm-symbolizer-19", "--filter-markup", "--no-debuginfod", debug)))
	if len(want) < 10 {
		t.Fatalf("llvm-symbolizer names %d frames", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("llvm-symbolizer (-), symfilter (+):\n%s", diff)
	}
}
