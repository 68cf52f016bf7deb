//go:build linux

package integration

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A kernelPlace is a place in a function of a log of a kernel.
type kernelPlace struct {
	module, name string
	offset, size uint64 // of the byte that is looked up, and of the function with what follows it
	line         int    // in the stand-in for the file
}

// A kernelLog is a log of a kernel with the places of its functions.
type kernelLog struct {
	text   string
	places []*kernelPlace // by frame; nil for a function that nothing has called
}

var kernelFunction = regexp.MustCompile(`([\w.]+)\+0x([0-9a-f]+)/0x([0-9a-f]+)(?: \[(\w+)\])?`)

// kernelLogOf returns the places in a log: of the instruction if the line is about one, else of the
// byte before.
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

// standIn returns the source of a file in which each function of a module has its name, its size and a
// line for each place in the log. If other is set, all functions are 64 bytes longer.
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
				fmt.Fprintf(&b, "\t.loc 1 %d\n\tnop\n", line) // the line is that of an instruction
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
			skip(p.offset, 1)
			skip(p.offset+1, p.line)
		}
		if all[0].section() != ".text" { // the end of such a section is not near
			if other {
				fmt.Fprintf(&b, "\t.skip 64,0x90\n")
			}
			fmt.Fprintf(&b, "\t.size %s, .-%s\n", name, name)
			continue
		}
		end := max(at, all[0].size-min(all[0].size, 15))
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

// kernelTree makes the files for a log below a folder: those of the kernel 6.1.0-56-amd64, as Debian's
// packages of debug information have them.
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
	assemble("ledger", filepath.Join(folder, "ledger.ko"))
	return root
}

// want returns the log with the answers.
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

// The log of a kernel that has reported a warning, a BUG, an oops, stacks and a panic: each function
// is found by the release of the kernel, or by files that the operator names.
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

// otherLine returns the first lines in which two texts differ.
func otherLine(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d: got %q, want %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}
