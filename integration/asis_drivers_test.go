//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/driver"
	pprof "github.com/google/pprof/profile"

	"github.com/symfilter/symfilter/internal/testenv"
)

// A driven symbolizer is started by another program, the driver.
type driven struct {
	name  string
	needs []string
	// drive runs the driver on a program in dir, and returns its output. path is the path of
	// llvm-symbolizer; other symbolizers are in the same folder.
	drive func(t *testing.T, dir, path string) string
	names string // a part of the output
}

var drivers = []driven{
	{"AddressSanitizer", nil, func(t *testing.T, dir, path string) string {
		return string(crash(t, dir, []string{"ASAN_SYMBOLIZER_PATH=" + path}, filepath.Join(dir, "address")))
	}, "in shop::weigh(shop::Box<long> const&, int) "},
	{"UndefinedBehaviorSanitizer", nil, func(t *testing.T, dir, path string) string {
		return started(t, "", []string{"UBSAN_OPTIONS=print_stacktrace=1:external_symbolizer_path=" + path}, filepath.Join(dir, "undefined"))
	}, "in add(int, int) "},
	{"ThreadSanitizer", nil, func(t *testing.T, dir, path string) string {
		return started(t, "", []string{"TSAN_SYMBOLIZER_PATH=" + path}, filepath.Join(dir, "thread"))
	}, "#0 bump(int) "},
	{"MemorySanitizer", nil, func(t *testing.T, dir, path string) string {
		return started(t, "", []string{"MSAN_SYMBOLIZER_PATH=" + path}, filepath.Join(dir, "memory"))
	}, "in main "},
	{"asan_symbolize", []string{"asan_symbolize-19"}, func(t *testing.T, dir, path string) string {
		report := crash(t, dir, []string{"ASAN_OPTIONS=symbolize=0"}, filepath.Join(dir, "address"))
		return started(t, string(report), []string{"LLVM_SYMBOLIZER_PATH=" + path}, "asan_symbolize-19", "-d")
	}, "in shop::weigh(shop::Box<long> const&, int) "},
	{"pprof", nil, func(t *testing.T, dir, path string) string {
		// without nm and addr2line in PATH, pprof must use the symbolizer
		t.Setenv("PATH", filepath.Dir(path))
		t.Setenv("PPROF_TMPDIR", dir)
		output := filepath.Join(t.TempDir(), "text")
		flags := &pprofFlags{FlagSet: flag.NewFlagSet("pprof", flag.ContinueOnError), args: []string{
			"-tools=" + filepath.Dir(path), "-symbolize=local:demangle=full", "-raw", "-output=" + output, filepath.Join(dir, "cpu.pprof"),
		}}
		if err := driver.PProf(&driver.Options{Flagset: flags}); err != nil {
			t.Fatal(err)
		}
		return readFile(t, output)
	}, "add(int, int) "},
	{"google-pprof", []string{"google-pprof"}, func(t *testing.T, dir, path string) string {
		tools := "--tools=/usr/bin/,addr2line:" + filepath.Join(filepath.Dir(path), "llvm-addr2line")
		return run(t, nil, "google-pprof", tools, "--text", "--lines", filepath.Join(dir, "calls"), filepath.Join(dir, "cpu.prof"))
	}, "shop::add (inline) "},
	{"decode_stacktrace.sh", nil, func(t *testing.T, dir, path string) string {
		log := "Call Trace:\n " + weigh + "+0x45/0x70\n plain+0x4/0x10\n main+0xe/0x20\nRIP: 0010:" + weigh + "+0x20/0x70\n"
		return started(t, log, []string{"LLVM=" + filepath.Dir(path) + "/"}, "bash", kernelScript(t, "decode_stacktrace.sh"), filepath.Join(dir, "calls"), "none", dir)
	}, "calls.cc:18 "},
	{"faddr2line", nil, func(t *testing.T, dir, path string) string {
		env := []string{"CROSS_COMPILE=" + filepath.Dir(path) + "/llvm-"}
		return started(t, "", env, "bash", kernelScript(t, "faddr2line"), filepath.Join(dir, "calls"), weigh+"+0x45", "plain+0x4", weigh+"+0x54/0x70")
	}, "(inlined by) "},
	{"google-pprof with addr2line", []string{"google-pprof"}, func(t *testing.T, dir, path string) string {
		tools := "--tools=/usr/bin/,addr2line:" + filepath.Join(filepath.Dir(path), "binutils", "addr2line")
		return run(t, nil, "google-pprof", tools, "--text", "--lines", filepath.Join(dir, "calls"), filepath.Join(dir, "cpu.prof"))
	}, "shop::add (inline) "},
	{"perf script --inline", nil, func(t *testing.T, dir, path string) string {
		return perfPrints(t, dir, path, "script", "--inline")
	}, "(inlined)"},
	{"perf script with lines", nil, func(t *testing.T, dir, path string) string {
		return perfPrints(t, dir, path, "script", "-F", "+srcline")
	}, "spin.c:"},
	{"perf report", nil, func(t *testing.T, dir, path string) string {
		return perfPrints(t, dir, path, "report", "--stdio", "-s", "srcline")
	}, "spin.c:"},
	{"perf annotate", nil, func(t *testing.T, dir, path string) string {
		return perfPrints(t, dir, path, "annotate", "--stdio", "-l", "work")
	}, "spin.c:"},
}

// spinning is a program without libraries. Its samples are in an inlined function.
const spinning = `static inline __attribute__((always_inline)) int mix(int a) {
  for (volatile int i = 0; i < 200; i++) a = a * 3 + i;
  return a;
}
__attribute__((noinline)) int work(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += mix(i);
  return sum;
}
void begin(void) {
  volatile int sum = work(400000);
  __asm__ volatile("syscall" : : "a"(60), "D"(0), "r"(sum));
  __builtin_unreachable();
}
`

// perfPrints returns the output of a perf command about samples of the program spin in dir. perf
// finds addr2line by PATH.
func perfPrints(t *testing.T, dir, path string, args ...string) string {
	t.Helper()
	testenv.OnlyLong(t)
	need(t, "perf")
	data := filepath.Join(dir, "perf.data")
	if _, err := os.Stat(data); err != nil {
		out := started(t, "", nil, "perf", "record", "-q", "-B", "-N", "-e", "cpu-clock:u", "-F", "500", "--call-graph", "dwarf,1024", "-o", data, filepath.Join(dir, "spin"))
		if strings.Contains(out, "perf_event_paranoid") {
			testenv.Forbidden(t, "to record with perf", out)
		}
	}
	env := []string{"PATH=" + filepath.Join(filepath.Dir(path), "binutils") + ":" + os.Getenv("PATH")}
	out := started(t, "", env, "perf", append(args, "-i", data)...)
	return regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(out, "") // one of the comments is a random tip
}

// weigh is the linkage name of a function in testdata/asis/calls.cc. Calls are inlined into it.
const weigh = "_ZN4shop5weighERKNS_3BoxIlEEi"

// kernelScript returns the path of a script of Linux, fetched by scripts/fetch-kernel.
func kernelScript(t *testing.T, name string) string {
	t.Helper()
	testenv.OnlyLong(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return testenv.Find(t, filepath.Join(home, ".cache", "symfilter-kernel", name))
}

// pprofFlags passes the arguments of a test to pprof, in place of the command line.
type pprofFlags struct {
	*flag.FlagSet
	args []string
}

func (*pprofFlags) ExtraUsage() string     { return "" }
func (*pprofFlags) AddExtraUsage(_ string) {}

func (f *pprofFlags) StringList(name, value, usage string) *[]*string {
	return &[]*string{f.String(name, value, usage)}
}

func (f *pprofFlags) Parse(func()) []string {
	if f.FlagSet.Parse(f.args) != nil {
		return nil
	}
	return f.Args()
}

// racing has a data race that ThreadSanitizer always finds: relaxed operations order nothing. The
// thread runs until the race was found, since the report says whether it is running.
const racing = `#include <pthread.h>
static int shared, done;
static void bump(int by) { shared += by; }
static void *run(void *) {
  bump(1);
  __atomic_store_n(&done, 1, __ATOMIC_RELAXED);
  while (__atomic_load_n(&done, __ATOMIC_RELAXED) == 1) sched_yield();
  return nullptr;
}
int main() {
  pthread_t t;
  pthread_create(&t, nullptr, run, nullptr);
  while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {}
  bump(2);
  __atomic_store_n(&done, 2, __ATOMIC_RELAXED);
  pthread_join(t, nullptr);
}
`

// compileDriven compiles the programs for the drivers.
func compileDriven(t *testing.T, dir string) {
	t.Helper()
	for sanitizer, source := range map[string]string{
		"address":   readFile(t, filepath.Join(checkout, "integration", "testdata", "uaf.cc")),
		"undefined": "static inline int add(int a, int b) { return a + b; }\nint main(int n, char **) { return add(2147483647, n) == 0; }\n",
		"memory":    "#include <stdlib.h>\nint main() { int *p = static_cast<int *>(malloc(4)); if (*p == 3) abort(); }\n",
		"thread":    racing,
	} {
		path := filepath.Join(dir, sanitizer)
		if err := os.WriteFile(path+".cc", []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "clang-19", "-g", "-O1", "-fsanitize="+sanitizer, path+".cc", "-lstdc++", "-o", path)
	}
	spin := filepath.Join(dir, "spin")
	if err := os.WriteFile(spin+".c", []byte(spinning), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "clang-19", "-g", "-O2", "-fasynchronous-unwind-tables", "-nostdlib", "-static", "-Wl,-e,begin", spin+".c", "-o", spin)
	calls := filepath.Join(checkout, "integration", "testdata", "asis", "calls.cc")
	run(t, nil, "clang-19", "-g", "-O1", "-no-pie", calls, "-o", filepath.Join(dir, "calls"))
	writeProfile(t, filepath.Join(dir, "cpu.pprof"), filepath.Join(dir, "undefined"), "add(int, int)")
	writeOldProfile(t, filepath.Join(dir, "cpu.prof"), filepath.Join(dir, "calls"))
}

// linksTo makes two folders in dir, called other and own, and returns the path of llvm-symbolizer
// in each. Both have the names llvm-symbolizer, llvm-addr2line and binutils/addr2line: links to the
// original tools in the first folder, and links to symfilter in the second. llvm-readelf is LLVM's
// in both.
func linksTo(t *testing.T, dir string) (other, own string) {
	t.Helper()
	for _, name := range []string{"llvm-symbolizer", "llvm-addr2line", "llvm-readelf"} {
		original := strings.TrimSpace(run(t, nil, "sh", "-c", "command -v "+name+"-19"))
		other, own = filepath.Join(dir, "other"), filepath.Join(dir, "own")
		run(t, nil, "mkdir", "-p", other, own)
		run(t, nil, "ln", "-s", original, filepath.Join(other, name))
		if name != "llvm-readelf" { // scripts need this name
			original = command
		}
		run(t, nil, "ln", "-s", original, filepath.Join(own, name))
	}
	for folder, target := range map[string]string{other: strings.TrimSpace(run(t, nil, "sh", "-c", "command -v addr2line")), own: command} {
		run(t, nil, "mkdir", filepath.Join(folder, "binutils"))
		run(t, nil, "ln", "-s", target, filepath.Join(folder, "binutils", "addr2line"))
	}
	return filepath.Join(other, "llvm-symbolizer"), filepath.Join(own, "llvm-symbolizer")
}

func TestDriversOfSymbolizersStartSymfilter(t *testing.T) {
	need(t, "clang-19", "llvm-symbolizer-19", "llvm-addr2line-19", "addr2line", "g++") // g++ brings the C++ library
	need(t, sanitizerRuntime(t))
	dir := t.TempDir()
	compileDriven(t, dir)
	other, own := linksTo(t, dir)
	varying := regexp.MustCompile(`0x[0-9a-f]+|==\d+==|[pt]id=\d+`) // addresses and process IDs
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			need(t, d.needs...)
			want := varying.ReplaceAllString(d.drive(t, dir, other), "N")
			got := varying.ReplaceAllString(d.drive(t, dir, own), "N")
			if !strings.Contains(want, d.names) {
				t.Fatalf("%q is not in\n%s", d.names, want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with llvm-symbolizer (-), with symfilter (+):\n%s", diff)
			}
		})
	}
}

// started runs a program, and returns both outputs, whatever the exit status.
func started(t *testing.T, in string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(in)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatal(err)
	}
	return string(out)
}

// writeProfile writes a profile of a program at its link address. It has a sample at each address
// of main at which LLVM finds function as the innermost call.
func writeProfile(t *testing.T, path, program, function string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	m := &pprof.Mapping{ID: 1, Start: text.Addr &^ 0xfff, Limit: (text.Addr + text.Size + 0xfff) &^ 0xfff, Offset: text.Offset &^ 0xfff, File: program}
	p := &pprof.Profile{SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "count"}}, Mapping: []*pprof.Mapping{m}}
	var in strings.Builder
	var addrs []uint64
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		for a := s.Value; s.Name == "main" && a < s.Value+s.Size; a++ {
			fmt.Fprintf(&in, "%#x\n", a)
			addrs = append(addrs, a)
		}
	}
	out, _ := asOther(t, "llvm-symbolizer-19", "llvm-symbolizer", []string{"--obj=" + program}, []byte(in.String()))
	for i, answer := range strings.Split(out, "\n\n") {
		if strings.HasPrefix(answer, function+"\n") {
			l := &pprof.Location{ID: uint64(len(p.Location) + 1), Mapping: m, Address: addrs[i]}
			p.Location = append(p.Location, l)
			p.Sample = append(p.Sample, &pprof.Sample{Location: []*pprof.Location{l}, Value: []int64{1}})
		}
	}
	w, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Write(w), w.Close()); err != nil || len(p.Sample) == 0 {
		t.Fatalf("%d samples: %v", len(p.Sample), err)
	}
}

// writeOldProfile writes a profile of gperftools for a program at a fixed address. It has samples
// in weigh and in the calls inlined into weigh.
func writeOldProfile(t *testing.T, path, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, symbols := f.Section(".text"), addressesOf(t, program)
	words := []uint64{0, 3, 0, 10000, 0} // header size, version, period in microseconds
	for i := range uint64(100) {
		words = append(words, i+1, 2, symbols[weigh]+i, symbols["main"]+8)
	}
	words = append(words, 0, 1, 0)
	var data bytes.Buffer
	if err := binary.Write(&data, binary.LittleEndian, words); err != nil {
		t.Fatal(err)
	}
	from := text.Addr &^ 0xfff
	fmt.Fprintf(&data, "%08x-%08x r-xp %08x 00:00 0 %s\n", from, (text.Addr+text.Size+0xfff)&^0xfff, from-(text.Addr-text.Offset), program)
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
