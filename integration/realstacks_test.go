//go:build linux

package integration

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A stackProgram is a program of Debian. While it runs, its stack is recorded at some of its calls
// of malloc.
type stackProgram struct {
	machine string   // Debian's name of the machine
	command []string // the program, below root, and its arguments
	files   []string // base names of the files whose frames are resolved
	every   int      // one stack is recorded per this many calls of malloc
}

var stackPrograms = []stackProgram{
	{"amd64", []string{"usr/bin/x86_64-linux-gnu-objdump", "-dl", "@PROGRAM"}, []string{"x86_64-linux-gnu-objdump", "libbfd-2.40-system.so"}, 10},
	{"amd64", []string{"usr/bin/x86_64-linux-gnu-as", "-o", "as.out", "@ASSEMBLER"}, []string{"x86_64-linux-gnu-as"}, 1},
	{"amd64", []string{"usr/bin/x86_64-linux-gnu-ld.bfd", "-shared", "-o", "ld.out", "@OBJECT"}, []string{"x86_64-linux-gnu-ld.bfd", "libbfd-2.40-system.so"}, 1},
	{"amd64", []string{"usr/bin/x86_64-linux-gnu-ld.gold", "-shared", "-o", "gold.out", "@OBJECT"}, []string{"x86_64-linux-gnu-ld.gold"}, 1},
	{"amd64", []string{"usr/lib/jvm/java-17-openjdk-amd64/bin/java", "-XX:-UsePerfData", "-version"}, []string{"libjvm.so"}, 7},
	{"amd64", []string{"usr/bin/ceph-kvstore-tool", "rocksdb", "no-store", "list"}, []string{"ceph-kvstore-tool"}, 3},
	{"amd64", []string{"usr/bin/osdmaptool", "--createsimple", "20", "map"}, []string{"libceph-common.so.2"}, 3},
	{"amd64", []string{"usr/bin/radosgw", "-n", "client.x", "--no-mon-config", "-m", "127.0.0.1", "-f", "--run-dir=.", "--admin-socket="}, []string{"libradosgw.so.2.0.0"}, 7},
	{"arm64", []string{"usr/bin/aarch64-linux-gnu-objdump", "-dl", "@PROGRAM"}, []string{"aarch64-linux-gnu-objdump", "libbfd-2.40-system.so"}, 10},
	{"arm64", []string{"usr/bin/aarch64-linux-gnu-ld.gold", "-shared", "-o", "gold.out", "@OBJECT"}, []string{"aarch64-linux-gnu-ld.gold"}, 1},
	// the C library of armhf has no unwind tables
	{"armhf", []string{"usr/bin/arm-linux-gnueabihf-ld.gold", "-shared", "-o", "gold.out", "@OBJECT"}, []string{"arm-linux-gnueabihf-ld.gold"}, 1},
	{"riscv64", []string{"usr/bin/riscv64-linux-gnu-objdump", "-dl", "@PROGRAM"}, []string{"riscv64-linux-gnu-objdump", "libbfd-2.44-system.so"}, 10},
	{"riscv64", []string{"usr/bin/riscv64-linux-gnu-as", "-o", "as.out", "@ASSEMBLER"}, []string{"riscv64-linux-gnu-as"}, 1},
	{"riscv64", []string{"usr/bin/riscv64-linux-gnu-ld.bfd", "-shared", "-o", "ld.out", "@OBJECT"}, []string{"riscv64-linux-gnu-ld.bfd", "libbfd-2.44-system.so"}, 1},
}

// stackTools has the compiler for each machine and the emulator, if one is needed.
var stackTools = map[string]struct{ compiler, emulator string }{
	"amd64":   {"gcc", ""},
	"arm64":   {"aarch64-linux-gnu-gcc", "qemu-aarch64"},
	"armhf":   {"arm-linux-gnueabihf-gcc", "qemu-arm"},
	"riscv64": {"riscv64-linux-gnu-gcc", "qemu-riscv64"},
}

// stackForms are forms in which programs print a stack without modules, if they find no symbols.
var stackForms = []struct {
	name, before, frame, after string // frame has the number and the address
	less                       uint64 // subtracted from the return address
	wide                       bool   // only 64-bit programs print this form
}{
	{"glog", "*** Check failure stack trace: ***\n", "    @ %#18[2]x  (unknown)\n", "", 0, false},
	{"absl", "*** SIGABRT received at time=1795342953 on cpu 0 ***\n", "    @ %#18[2]x  (unknown)  (unknown)\n", "", 0, false},
	{"folly", "*** Aborted at 1795342953 (Unix time, try 'date -d @1795342953') ***\n", "    @ %016[2]x (unknown)\n", "", 0, false},
	{"rust", "stack backtrace:\n", "%4[1]d: %#18[2]x - <unknown>\n", "", 0, false},
	{"fluentbit", "[2026/11/20 10:00:00] [engine] caught signal (SIGSEGV)\n", "#%-2[1]d 0x%[2]x      in  ???() at ???:0\n", "", 1, false},
	{"envoy", "", "[2024-01-02 03:04:05.678][12][critical][backtrace] [./source/server/backtrace.h:96] #%[1]d: [%#[2]x]\n", "", 0, false},
	{"clickhouse", "2026.11.20 10:00:00.123456 [ 4711 ] {} <Fatal> BaseDaemon: Stack trace:", " 0x%016[2]x", "\n", 0, true},
	{"seastar", "", "%#[2]x\n", "", 0, true},
}

// A stacksIn has stacks of one process, each with frames in the file at path. It also has the load
// bias of that file and the address ranges of its code.
type stacksIn struct {
	path   string
	bias   uint64 // load bias of the file
	code   [][2]uint64
	stacks [][]uint64 // absolute addresses, innermost first
}

// has reports whether an address is in the file's code.
func (s *stacksIn) has(addr uint64) bool {
	return slices.ContainsFunc(s.code, func(r [2]uint64) bool { return r[0] <= addr && addr < r[1] })
}

// place returns a return address relative to the file. For 32-bit ARM it clears the lowest bit,
// which only selects the instruction set.
func (s *stacksIn) place(addr uint64, machine string) uint64 {
	if machine == "armhf" {
		addr &^= 1
	}
	return addr - s.bias
}

// run runs the program and returns its stacks and maps in the format of stacks.c.
func (p *stackProgram) run(t *testing.T, root, dir string) string {
	t.Helper()
	tool := stackTools[p.machine]
	need(t, tool.compiler, "eu-addr2line")
	source := filepath.Join("testdata", "stacks", "stacks.c")
	library, object, assembler := filepath.Join(dir, "stacks.so"), filepath.Join(dir, "stacks.o"), filepath.Join(dir, "stacks.s")
	run(t, nil, tool.compiler, "-O2", "-fPIC", "-shared", "-funwind-tables", "-o", library, source)
	run(t, nil, tool.compiler, "-O2", "-g", "-fPIC", "-c", "-o", object, source)
	run(t, nil, tool.compiler, "-O2", "-g", "-fPIC", "-S", "-o", assembler, source)
	program := filepath.Join(root, p.command[0])
	args := []string{program}
	for _, arg := range p.command[1:] {
		args = append(args, strings.NewReplacer("@PROGRAM", program, "@OBJECT", object, "@ASSEMBLER", assembler).Replace(arg))
	}
	lib := filepath.Join(root, "usr", "lib", "x86_64-linux-gnu")
	out := filepath.Join(dir, "stacks")
	env := []string{"STACKS_FILE=" + out, "STACKS_EVERY=" + strconv.Itoa(p.every)}
	if tool.emulator == "" {
		env = append(env, "LD_PRELOAD="+library, "LD_LIBRARY_PATH="+lib+":"+filepath.Join(lib, "ceph"))
	} else {
		need(t, tool.emulator)
		args = append([]string{tool.emulator, "-L", root, "-E", "LD_PRELOAD=" + library}, args...)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), append(env, "CEPH_CONF=/dev/null", "HOME="+dir)...)
	printed, err := cmd.CombinedOutput()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, printed)
	}
	return string(data)
}

// realStacks returns the stacks in text that have at least this many frames in the file with the
// given base name. Of stacks with the same frames in this file, it returns only the first.
func realStacks(t *testing.T, text, name string, frames int) *stacksIn {
	t.Helper()
	s := &stacksIn{}
	seen := make(map[string]bool)
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 6 || filepath.Base(fields[5]) != name || seen[fields[0]] {
			continue
		}
		seen[fields[0]] = true
		var begin, end, offset uint64
		if _, err := fmt.Sscanf(fields[0]+" "+fields[2], "%x-%x %x", &begin, &end, &offset); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if s.path = fields[5]; fields[1] == "r-xp" {
			s.code = append(s.code, [2]uint64{begin, end})
		}
		if offset == 0 && (s.bias == 0 || begin < s.bias) {
			s.bias = begin // because the file's lowest segment has the link-time address 0
		}
	}
	known := make(map[string]bool)
	for line := range strings.Lines(text) {
		words, ok := strings.CutPrefix(line, "stack ")
		if !ok {
			continue
		}
		var addrs, inside []uint64
		for word := range strings.FieldsSeq(words) {
			addr, err := strconv.ParseUint(word, 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			if addrs = append(addrs, addr); s.has(addr) {
				inside = append(inside, addr)
			}
		}
		if key := fmt.Sprint(inside); len(inside) >= frames && !known[key] {
			known[key] = true
			s.stacks = append(s.stacks, addrs)
		}
	}
	return s
}

// A namedStack is symfilter's output for a stack.
type namedStack struct {
	form     string
	inside   int // frames in the file
	frames   []twinFrame
	addrs    []uint64
	messages string // standard error
}

// nameStack formats a stack in the form stackForms[form], and returns symfilter's output for it.
// debug is the folder of debug files.
func nameStack(t *testing.T, s *stacksIn, stack []uint64, form int, debug string) (named namedStack) {
	t.Helper()
	f := stackForms[form]
	log := f.before
	for i, addr := range stack {
		log += fmt.Sprintf(f.frame, i, addr-f.less)
		if s.has(addr) {
			named.inside++
		}
	}
	cmd := exec.Command(command, "--output=json", "--wait", "5m", "--dialects=auto,addresses", "--image", s.path, "--debug-file-directory", debug)
	var messages strings.Builder
	cmd.Stdin, cmd.Stderr = strings.NewReader(log+f.after), &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", f.name, err, &messages)
	}
	named.form, named.frames, named.addrs, named.messages = f.name, framesIn(t, string(out)), stack, messages.String()
	if len(named.frames) != len(stack) {
		t.Fatalf("%s has %d frames, want %d:\n%s%s", f.name, len(named.frames), len(stack), log, out)
	}
	return named
}

// A stackScore counts, by group, all stacks and the stacks with names for all frames in the file.
type stackScore struct{ named, all map[string]int }

func (c *stackScore) add(t *testing.T, s *stacksIn, machine string, stack *namedStack, truth *truthTable) {
	t.Helper()
	file, named, reason := machine+" "+filepath.Base(s.path), 0, ""
	for i, f := range stack.frames {
		addr := stack.addrs[i]
		if len(f.Frames) == 0 {
			if s.has(addr) {
				reason = f.Reason
			}
			continue
		}
		named++
		if said, right := truth.equals(s.place(addr, machine), f); !s.has(addr) || !right {
			t.Errorf("%s, %s: %#x is %s\n%s", file, stack.form, addr, said, stack.messages)
		}
	}
	if named != stack.inside {
		t.Logf("%s, %s: %d of %d frames have names: %s", file, stack.form, named, stack.inside, reason)
	}
	for _, group := range []string{"all", machine, file, stack.form, fmt.Sprintf("%2d frames", min(stack.inside, 12))} {
		if c.all[group]++; named == stack.inside {
			c.named[group]++
		}
	}
}

// Nearly all stacks of real programs, printed as addresses alone, must get names from the stripped
// program and a tree of debug files. No name may be wrong.
func TestBasesOfRealStacksAreInferred(t *testing.T) {
	testenv.OnlyLong(t)
	const most = 25 // stacks per file
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(home, ".cache", "symfilter-stacks") // filled by scripts/fetch-stacks
	for machine := range stackTools {
		need(t, filepath.Join(cache, machine, "whole"))
	}
	score := stackScore{make(map[string]int), make(map[string]int)}
	rng, form := rand.New(rand.NewPCG(5, 6)), 0
	for _, p := range stackPrograms {
		root, dir := filepath.Join(cache, p.machine, "tree"), t.TempDir()
		tree := filepath.Join(root, "usr", "lib", "debug")
		text := p.run(t, root, dir)
		for _, name := range p.files {
			s := realStacks(t, text, name, 5)
			if len(s.stacks) == 0 {
				t.Errorf("%s has no stacks", name)
				continue
			}
			rng.Shuffle(len(s.stacks), func(i, j int) { s.stacks[i], s.stacks[j] = s.stacks[j], s.stacks[i] })
			var stacks []namedStack
			var places []uint64
			for _, stack := range s.stacks[:min(len(s.stacks), most)] {
				for form++; p.machine == "armhf" && stackForms[form%len(stackForms)].wide; form++ {
				}
				stacks = append(stacks, nameStack(t, s, stack, form%len(stackForms), tree))
				for _, addr := range stack {
					if s.has(addr) {
						places = append(places, s.place(addr, p.machine))
					}
				}
			}
			slices.Sort(places)
			truth := truthOf(t, debugFile(t, s.path, tree), slices.Compact(places))
			for i := range stacks {
				score.add(t, s, p.machine, &stacks[i], &truth)
			}
		}
	}
	for _, group := range slices.Sorted(maps.Keys(score.all)) {
		t.Logf("%s: %d of %d", group, score.named[group], score.all[group])
	}
	if named, all := score.named["all"], score.all["all"]; named*100 < all*99 || all < 300 {
		t.Errorf("%d of %d stacks have their names, want 99 %% of at least 300", named, all)
	}
	for machine := range stackTools {
		if named, all := score.named[machine], score.all[machine]; named*100 < all*95 || all < 20 {
			t.Errorf("%s: %d of %d stacks have their names, want 95 %% of at least 20", machine, named, all)
		}
	}
}
