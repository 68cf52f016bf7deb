//go:build linux

package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A kernelPlace is a place in a function that a kernel log names.
type kernelPlace struct {
	module, name string
	offset, size uint64 // offset of the byte to look up, and size of the function including padding
	line         int    // line in the stand-in file
}

// A kernelLog is a kernel's log with the places of its functions.
type kernelLog struct {
	text   string
	places []*kernelPlace // by frame; nil for a function that was not called
}

var kernelFunction = regexp.MustCompile(`([\w.]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)(?: \[(\w+)(?: [0-9a-f]{40})?\])?`)

// kernelLogOf returns the functions in a log, with the offsets to look up. For an instruction this
// is the logged offset, for a return address the byte before.
func kernelLogOf(t *testing.T, text string) *kernelLog {
	l := &kernelLog{text: text}
	fault := ""
	for line := range strings.Lines(text) {
		m := kernelFunction.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		p := &kernelPlace{name: m[1], offset: number(t, m[2]), size: number(t, m[3]), module: m[4]}
		switch {
		case strings.Contains(line, "RIP: "), strings.Contains(line, "WARNING: "):
			fault = m[0]
		case m[0] != fault:
			p.offset--
		}
		l.places = append(l.places, p)
	}
	return l
}

// section returns the section of a function in the module of testdata/kernel.
func (p *kernelPlace) section() string {
	switch p.name {
	case "ledger_init":
		return ".init.text"
	case "ledger_complain":
		return ".text.unlikely"
	}
	return ".text"
}

// standIn returns the assembler source of a stand-in for a module: each function has its name and
// size, and a line for each place in the log. If other is set, all functions are 64 bytes longer.
func (l *kernelLog) standIn(module string, other bool) string {
	of := make(map[string][]*kernelPlace)
	for i, p := range l.places {
		if p.module == module && p.offset < p.size {
			p.line = 1000 + i
			of[p.name] = append(of[p.name], p)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\t.file 1 \"/src/%s.c\"\n", module)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all := of[name]
		slices.SortStableFunc(all, func(a, b *kernelPlace) int { return int(a.offset) - int(b.offset) })
		fmt.Fprintf(&b, "\t.section %s,\"ax\",@progbits\n\t.type %s,@function\n%s:\n", all[0].section(), name, name)
		at := uint64(0)
		skip := func(to uint64, line int) {
			if to > at {
				fmt.Fprintf(&b, "\t.loc 1 %d\n\tnop\n", line) // a line belongs to an instruction
				if to > at+1 {
					fmt.Fprintf(&b, "\t.skip %d,0x90\n", to-at-1)
				}
				at = to
			}
		}
		for _, p := range all {
			if p.offset < at { // the same place again
				p.line = all[slices.Index(all, p)-1].line
				continue
			}
			if p.offset+1 == p.size && at+4 <= p.offset { // a return address at the end follows a call
				skip(p.offset-4, 1)
				fmt.Fprintf(&b, "\t.loc 1 %d\n\tcall .+5\n", p.line)
				at = p.size
				continue
			}
			skip(p.offset, 1)
			skip(p.offset+1, p.line)
		}
		if all[0].section() != ".text" { // .init.text and other sections end far away
			skip(at+1, 1)
			if other {
				fmt.Fprintf(&b, "\t.skip 64,0x90\n")
			}
			fmt.Fprintf(&b, "\t.size %s, .-%s\n", name, name)
			continue
		}
		end := min(all[0].size, max(at+1, all[0].size-min(all[0].size, 15))) // not a return address, since no call precedes it
		skip(end, 1)
		if other {
			fmt.Fprintf(&b, "\t.skip 64,0x90\n")
		}
		fmt.Fprintf(&b, "\t.size %s, .-%s\n", name, name)
		if end < all[0].size {
			fmt.Fprintf(&b, "\t.skip %d,0x90\n", all[0].size-end)
		}
	}
	return b.String()
}

// tree makes the files for a log below a folder, as Debian's debug packages for the kernel
// 6.1.0-56-amd64 have them.
func (l *kernelLog) tree(t *testing.T, other bool) (root string) {
	t.Helper()
	need(t, "gcc", "ld", "xz")
	root = t.TempDir()
	vmlinux := filepath.Join(root, "usr/lib/debug/boot/vmlinux-6.1.0-56-amd64")
	folder := filepath.Join(root, "usr/lib/debug/lib/modules/6.1.0-56-amd64/kernel/drivers")
	for _, dir := range []string{filepath.Dir(vmlinux), folder} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	assemble := func(module, to string) {
		source := filepath.Join(t.TempDir(), "standin.s")
		if err := os.WriteFile(source, []byte(l.standIn(module, other)), 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "gcc", "-c", "-o", to, source)
	}
	assemble("", vmlinux+".o")
	run(t, nil, "ld", "-e", "0", "-Ttext=0xffffffff81000000", "--build-id", "-o", vmlinux, vmlinux+".o")
	module := filepath.Join(folder, "ledger.ko")
	assemble("ledger", module+".o")
	run(t, nil, "ld", "-r", "--build-id", "-o", module, module+".o")
	for _, object := range []string{vmlinux + ".o", module + ".o"} {
		if err := os.Remove(object); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// want returns the log with the expected answers.
func (l *kernelLog) want() string {
	var b strings.Builder
	frames := l.places
	for line := range strings.Lines(l.text) {
		m := kernelFunction.FindStringIndex(line)
		if m == nil {
			b.WriteString(line)
			continue
		}
		p := frames[0]
		frames = frames[1:]
		if b.WriteString(line[:m[1]]); p.line != 0 {
			fmt.Fprintf(&b, " /src/%s.c:%d", p.module, p.line)
		}
		b.WriteString(line[m[1]:])
	}
	return b.String()
}

// All frames of a kernel's log must be resolved: a warning, a BUG, an oops, stacks and a panic. The
// files are found by the kernel's release, or named by the operator.
func TestReportsOfAKernelAreResolved(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "kernel", "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	l := kernelLogOf(t, string(text))
	root := l.tree(t, false)
	want := l.want()
	if n := strings.Count(want, " /src/"); n < 100 {
		t.Fatalf("%d frames in the log", n)
	}
	vmlinux := filepath.Join(root, "usr/lib/debug/boot/vmlinux-6.1.0-56-amd64")
	module := filepath.Join(root, "usr/lib/debug/lib/modules/6.1.0-56-amd64/kernel/drivers/ledger.ko")
	resolved := func(how string, args ...string) {
		t.Helper()
		if got := run(t, text, command, append(args, "-q")...); got != want {
			t.Errorf("%s:\n%s", how, otherLine(got, want))
		}
		if again := run(t, []byte(want), command, append(args, "-q")...); again != want {
			t.Errorf("%s, filtered twice:\n%s", how, otherLine(again, want))
		}
	}
	resolved("by release", "--sysroot", root)
	resolved("by --image", "--image", vmlinux, "--image", module)
	ids := strings.ReplaceAll(string(text), "[ledger]", "[ledger "+buildIDOf(t, module)+"]")
	ids = strings.ReplaceAll(ids, " #1  Debian 6.1.192-2", " #1 "+buildIDOf(t, vmlinux))
	byID := kernelLogOf(t, ids)
	byID.standIn("", false)
	byID.standIn("ledger", false)
	if got, want := run(t, []byte(ids), command, "-q", "--symbol-path", root), byID.want(); got != want {
		t.Errorf("by build ID:\n%s", otherLine(got, want))
	}
	run(t, nil, "xz", module)
	resolved("a compressed module by release", "--sysroot", root)
	resolved("a compressed module by --image", "--image", vmlinux, "--image", "ledger="+module+".xz")

	if got := run(t, text, command, "-q", "--no-paths", "--sysroot", root); got != string(text) {
		t.Errorf("--no-paths:\n%s", otherLine(got, string(text)))
	}
	if got := run(t, text, command, "-q", "--sysroot", l.tree(t, true)); got != string(text) {
		t.Errorf("another build:\n%s", otherLine(got, string(text)))
	}
}

// otherLine describes the first line in which two texts differ.
func otherLine(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// kernelFiles returns the vmlinux with debug information, the bootable image and the folder of
// headers of one kernel on this machine.
func kernelFiles(t *testing.T) (vmlinux, image, headers string) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(home, ".cache", "symfilter-kernel") // made by scripts/fetch-kernel
	image = testenv.Find(t, filepath.Join(folder, "vmlinuz-*"))
	release := strings.TrimPrefix(filepath.Base(image), "vmlinuz-")
	vmlinux, headers = filepath.Join(folder, "vmlinux-"+release), "/usr/src/linux-headers-"+release
	need(t, vmlinux, headers, "qemu-system-x86_64", "cpio", "make", "gcc")
	return vmlinux, image, headers
}

// A distribution's kernel is booted in a virtual machine with the module of testdata/kernel. Each
// frame must have llvm-symbolizer's functions and lines.
func TestReportsOfABootedKernelAreResolved(t *testing.T) {
	testenv.OnlyLong(t)
	vmlinux, image, headers := kernelFiles(t)
	dir := t.TempDir()
	run(t, nil, filepath.Join("testdata", "kernel", "boot"), image, headers, dir)
	log, err := os.ReadFile(filepath.Join(dir, "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	// a linked twin of the module, in which each function has its own address
	module, linked := filepath.Join(dir, "ledger.ko"), filepath.Join(dir, "ledger.elf")
	run(t, nil, "ld", "-e", "0", "--unresolved-symbols=ignore-all", "--noinhibit-exec", "-z", "noexecstack", "-o", linked, module)
	l := kernelLogOf(t, string(log))
	want, known := l.asLLVM(t, map[string]string{"": vmlinux, "ledger": linked})
	got := run(t, log, command, "-q", "--image", vmlinux, "--image", module)
	if got != want {
		t.Errorf("%s", otherLine(got, want))
	}
	if _, messages := explained(t, string(log), "--explain", "--image", vmlinux, "--image", module); !strings.Contains(messages, " by other bytes of the file") || strings.Contains(messages, "other code") {
		t.Errorf("the code that the log lists proves nothing:\n%s", messages)
	}
	if known < 60 { // the number of functions after "?" varies
		t.Errorf("%d frames were compared in\n%s", known, log)
	}
	for _, mark := range []string{"null", "warn", "bug", "cold", "hung"} { // lines marked in the source
		for i, line := range strings.Split(readText(t, filepath.Join("testdata", "kernel", "ledger.c")), "\n") {
			if _, comment, ok := strings.Cut(line, "// "+mark); ok && !strings.Contains(got, fmt.Sprintf("/ledger.c:%d", i+1)) {
				t.Errorf("no frame at line %d, %s%s", i+1, mark, comment)
			}
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type kernelSymbol struct{ addr, size, next uint64 }

// kernelSymbols returns a file's functions by name.
func kernelSymbols(t *testing.T, file string) map[string][]kernelSymbol {
	t.Helper()
	symbol := regexp.MustCompile(`(?m)^\s*\d+: ([0-9a-f]+)\s+(\S+) (FUNC|NOTYPE|OBJECT)\s+\S+\s+\S+\s+\d+ (\S+)$`)
	var addrs []uint64
	of := make(map[string][]kernelSymbol)
	text := run(t, nil, "llvm-readelf-19", "-hsW", file)
	thumb := uint64(0) // lowest bit of Thumb functions
	if regexp.MustCompile(`Machine:\s+ARM\n`).MatchString(text) {
		thumb = 1
	}
	all := symbol.FindAllStringSubmatch(text, -1)
	for _, m := range all {
		addrs = append(addrs, number(t, m[1])&^thumb)
	}
	slices.Sort(addrs)
	addrs = slices.Compact(addrs)
	for _, m := range all {
		if m[3] == "OBJECT" {
			continue
		}
		size, err := strconv.ParseUint(m[2], 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		s := kernelSymbol{addr: number(t, m[1]) &^ thumb, size: size}
		if i, _ := slices.BinarySearch(addrs, s.addr+1); i < len(addrs) {
			s.next = addrs[i] - s.addr
		}
		if !slices.Contains(of[m[4]], s) {
			of[m[4]] = append(of[m[4]], s)
		}
	}
	return of
}

// callEndsAt reports whether the code from start to end ends with a call according to llvm-objdump.
// It returns true for a file without code.
func callEndsAt(t *testing.T, file string, start, end uint64) bool {
	t.Helper()
	text := run(t, nil, "llvm-objdump-19", "-d", "--no-show-raw-insn", fmt.Sprintf("--start-address=%#x", start), fmt.Sprintf("--stop-address=%#x", end), file)
	code := regexp.MustCompile(`(?m)^ *[0-9a-f]+:\s+(\S+)`).FindAllStringSubmatch(text, -1)
	if len(code) == 0 {
		return true
	}
	return slices.Contains([]string{"call", "callq", "bl", "blr", "jal", "jalr"}, code[len(code)-1][1])
}

// asLLVM returns the log with llvm-symbolizer's answers for its functions, and the number of
// resolved frames. files has the modules' files.
func (l *kernelLog) asLLVM(t *testing.T, files map[string]string) (want string, known int) {
	t.Helper()
	symbols := make(map[string]map[string][]kernelSymbol)
	for module, file := range files {
		symbols[module] = kernelSymbols(t, file)
	}
	var questions strings.Builder
	asked := make(map[*kernelPlace]bool)
	for _, p := range l.places {
		var at []kernelSymbol
		for _, s := range symbols[p.module][p.name] {
			if s.next == p.size || p.module != "" && s.size < p.size {
				at = append(at, s)
			}
		}
		if len(at) != 1 || at[0].size != 0 && p.offset >= at[0].size || p.offset == 1<<64-1 {
			continue
		}
		if end := at[0].addr + p.offset + 1; p.offset+1 == p.size && !callEndsAt(t, files[p.module], at[0].addr, end) {
			continue
		}
		asked[p] = true
		fmt.Fprintf(&questions, "%s %#x\n", files[p.module], at[0].addr+p.offset)
	}
	blocks := strings.Split(run(t, []byte(questions.String()), "llvm-symbolizer-19"), "\n\n")
	var b strings.Builder
	frames := l.places
	for line := range strings.Lines(l.text) {
		m := kernelFunction.FindStringIndex(line)
		if m == nil {
			b.WriteString(line)
			continue
		}
		p := frames[0]
		frames = frames[1:]
		if !asked[p] {
			b.WriteString(line)
			continue
		}
		calls := strings.Split(strings.TrimSpace(blocks[0]), "\n")
		blocks = blocks[1:]
		place := ""
		for i := 0; i+1 < len(calls); i += 2 {
			if place = calls[i+1][:strings.LastIndexByte(calls[i+1], ':')]; strings.HasPrefix(place, "??") || strings.HasSuffix(place, ":0") && !strings.Contains(place, "/") { // the file of the symbol
				place = ""
				break
			}
			if i+2 < len(calls) {
				fmt.Fprintf(&b, "%s%s %s [inline]\n", line[:m[0]], calls[i], place)
			}
		}
		if b.WriteString(line[:m[1]]); place != "" {
			known++
			b.WriteString(" " + place)
		}
		b.WriteString(line[m[1]:])
	}
	return b.String(), known
}

// Each frame must have llvm-symbolizer's answer. If several functions of the logged size have a
// name, frames with this name must stay unresolved.
func TestRandomFunctionsOfAKernelAreResolved(t *testing.T) {
	testenv.OnlyLong(t)
	const frames = 10_000
	vmlinux, _, _ := kernelFiles(t)
	all := kernelSymbols(t, vmlinux)
	names := slices.Sorted(maps.Keys(all))
	r := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	text.WriteString("CPU: 0 PID: 71 Comm: insmod Not tainted 6.1.0-56-amd64 #1\nCall Trace:\n")
	for n := 0; n < frames; {
		name := names[r.IntN(len(names))]
		of := all[name]
		s := of[r.IntN(len(of))]
		if s.size == 0 || s.next == 0 || s.size > s.next {
			continue
		}
		fmt.Fprintf(&text, " %s+%#x/%#x\n", name, 1+r.Uint64N(s.size), s.next)
		n++
	}
	l := kernelLogOf(t, text.String())
	want, known := l.asLLVM(t, map[string]string{"": vmlinux})
	got := run(t, []byte(text.String()), command, "-q", "--image", vmlinux)
	if got != want {
		t.Errorf("%s", otherLine(got, want))
	}
	t.Logf("%d of %d frames have a line", known, frames)
	if known < frames*9/10 {
		t.Errorf("%d of %d frames have a line", known, frames)
	}
}

// The first frame of the call trace has the address of the fault, like the register pc. It must be
// looked up as logged, not one byte before.
func TestAnOopsOfArm64IsResolved(t *testing.T) {
	t.Parallel()
	need(t, "aarch64-linux-gnu-gcc", "llvm-symbolizer-19", "llvm-readelf-19")
	dir := t.TempDir()
	vmlinux := filepath.Join(dir, "vmlinux")
	run(t, nil, "aarch64-linux-gnu-gcc", "-O2", "-g", "-static", "-nostdlib", "-ffreestanding", "-e", "0", "-fdebug-prefix-map="+checkout+"=/src",
		"-o", vmlinux, filepath.Join(checkout, "integration", "testdata", "kernel", "arm64.c"))
	symbols := kernelSymbols(t, vmlinux)
	settle, init, boot := symbols["ledger_settle"][0], symbols["ledger_init"][0], symbols["start_kernel"][0]
	frame := func(name string, s kernelSymbol, offset uint64) string {
		return fmt.Sprintf("%s+%#x/%#x", name, offset, max(s.next, s.size))
	}
	var text strings.Builder
	for _, line := range []string{
		"CPU: 0 PID: 1 Comm: swapper Not tainted 6.6.0 #1",
		"pc : " + frame("ledger_settle", settle, 4),
		"lr : " + frame("ledger_init", init, init.size-8),
		"Call trace:",
		" " + frame("ledger_settle", settle, 4),
		" " + frame("ledger_init", init, init.size-8),
		" " + frame("start_kernel", boot, boot.size-8),
	} {
		text.WriteString("[    0.123456] " + line + "\n")
	}
	exact := regexp.MustCompile(`(pc : |^\[.{12}\]  ledger_settle)`)
	l := kernelLogOf(t, text.String())
	for i, line := range kernelFunctionLines(text.String()) {
		if exact.MatchString(line) && !strings.Contains(line, "RIP") {
			l.places[i].offset = number(t, kernelFunction.FindStringSubmatch(line)[2])
		}
	}
	want, known := l.asLLVM(t, map[string]string{"": vmlinux})
	if got := run(t, []byte(text.String()), command, "-q", "--image", vmlinux); got != want || known != 5 {
		t.Errorf("%d frames; %s", known, otherLine(got, want))
	}
}

func kernelFunctionLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if kernelFunction.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}
