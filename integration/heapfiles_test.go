//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"
)

// A heapTool is a tool of Valgrind that writes a file about memory, with its flags. FILE is the
// file's name. A name ending with .ms selects Massif's format.
type heapTool struct {
	name  string
	flags []string
	long  bool // with TEST_LONG only
}

// The flag --show-below-main makes the stacks of stripped and unstripped programs equal. Without
// it, stacks end with main if Valgrind knows this name, otherwise with the callers of main.
var heapTools = []heapTool{
	{"dhat", []string{"--tool=dhat", "--show-below-main=yes", "--dhat-out-file=FILE"}, false},
	{"massif", []string{"--tool=massif", "--show-below-main=yes", "--massif-out-file=FILE"}, false},
	{"xtree", []string{"--tool=memcheck", "--show-below-main=yes", "--xtree-memory=full", "--xtree-memory-file=FILE.ms"}, false},
	{"dhat_folders", []string{"--tool=dhat", "--show-below-main=yes", "--fullpath-after=", "--dhat-out-file=FILE"}, true},
	{"dhat_copy", []string{"--tool=dhat", "--mode=copy", "--show-below-main=yes", "--dhat-out-file=FILE"}, true},
	{"massif_mangled", []string{"--tool=massif", "--demangle=no", "--show-below-main=yes", "--massif-out-file=FILE"}, true},
}

// varying matches the parts that differ between runs.
var varying = regexp.MustCompile(`(?m)^,"pid":\d+$|^time=\d+$`)

// A heapTwin is a folder with testdata/profile/shop.cc and its library, compiled. The program runs
// at one path, first with debug information, then stripped.
type heapTwin struct {
	dir   string
	debug string // --debug-file-directory
}

func newHeapTwin(t *testing.T, compiler string, flags ...string) *heapTwin {
	t.Helper()
	need(t, "valgrind", "ms_print", compiler, "strip", "readelf")
	w := &heapTwin{t.TempDir(), t.TempDir()}
	source := filepath.Join(checkout, "integration", "testdata", "profile")
	flags = append([]string{"-g", "-Wl,--build-id"}, flags...)
	run(t, nil, compiler, append(flags[:len(flags):len(flags)], "-fPIC", "-shared", "-o", filepath.Join(w.dir, "libshelf.so"), filepath.Join(source, "shelf.cc"))...)
	run(t, nil, compiler, append(flags[:len(flags):len(flags)], "-o", filepath.Join(w.dir, "shop"), filepath.Join(source, "shop.cc"), "-L", w.dir, "-lshelf", "-Wl,-rpath,"+w.dir)...)
	return w
}

// strip strips the program and its library, and keeps their debug files.
func (w *heapTwin) strip(t *testing.T) {
	t.Helper()
	for _, name := range []string{"shop", "libshelf.so"} {
		file := filepath.Join(w.dir, name)
		id := buildIDOf(t, file)
		folder := filepath.Join(w.debug, ".build-id", id[:2])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "objcopy", "--only-keep-debug", file, filepath.Join(folder, id[2:]+".debug"))
		run(t, nil, "strip", file)
	}
}

// record runs the program under Valgrind, and returns the file's path and content.
func (w *heapTwin) record(t *testing.T, tool heapTool, suffix string) (file, content string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), tool.name+suffix)
	args := []string{"-q"}
	for _, f := range tool.flags {
		if strings.Contains(f, "FILE.ms") {
			file += ".ms"
		}
		args = append(args, strings.ReplaceAll(f, "FILE", strings.TrimSuffix(file, ".ms")))
	}
	cmd := exec.Command("valgrind", append(args, "./shop")...)
	cmd.Dir = w.dir
	if out, err := producers.combined(t, cmd); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// Massif's files contain their own names
	return file, varying.ReplaceAllString(strings.ReplaceAll(string(data), file, "FILE"), "")
}

// named returns symfilter's output for a file. It uses no debug files of the system, since
// Valgrind's tools do not use all of them.
func (w *heapTwin) named(t *testing.T, file string, flags ...string) string {
	t.Helper()
	args := append([]string{"profile", "--quiet", "--no-default-debug-directories", "--debug-file-directory", w.debug}, flags...)
	return run(t, nil, command, append(args, file)...)
}

func TestFilesOfStrippedProgramsAreThoseOfTheirTwins(t *testing.T) {
	for _, build := range []struct {
		compiler string
		flags    []string
		long     bool
	}{
		{"g++", []string{"-O1"}, false},
		{"g++", []string{"-O2", "-no-pie"}, true},
		{"g++", []string{"-O0"}, true},
		{"clang++-19", []string{"-O2", "-gdwarf-4"}, true}, // Valgrind 3.19 finds no inlined calls in clang's DWARF 5
	} {
		if build.long && !long() {
			continue
		}
		t.Run(build.compiler+strings.Join(build.flags, ""), func(t *testing.T) {
			w := newHeapTwin(t, build.compiler, build.flags...)
			want := make(map[string]string)
			for _, tool := range heapTools {
				if !tool.long || long() {
					_, want[tool.name] = w.record(t, tool, ".twin")
				}
			}
			w.strip(t)
			for _, tool := range heapTools {
				if tool.long && !long() {
					continue
				}
				t.Run(tool.name, func(t *testing.T) {
					file, content := w.record(t, tool, "")
					if content == want[tool.name] || !strings.Contains(content, "??? (in "+w.dir) {
						t.Fatal("the stripped program has names")
					}
					got := varying.ReplaceAllString(strings.ReplaceAll(w.named(t, file), file, "FILE"), "")
					if d := cmp.Diff(want[tool.name], got); d != "" {
						t.Errorf("the twin's file -, symfilter's +\n%s", d)
					}
				})
			}
		})
	}
}

// ms_print's output for the named file must equal its output for the twin's file.
func TestMsPrintReadsFilesWithNames(t *testing.T) {
	w := newHeapTwin(t, "g++", "-O1")
	tool := heapTools[1]
	twin, _ := w.record(t, tool, ".twin")
	w.strip(t)
	file, _ := w.record(t, tool, "")
	named := filepath.Join(t.TempDir(), "named")
	if err := os.WriteFile(named, []byte(strings.ReplaceAll(w.named(t, file), file, twin)), 0o644); err != nil {
		t.Fatal(err)
	}
	got, want := run(t, nil, "ms_print", named), run(t, nil, "ms_print", twin)
	if d := cmp.Diff(strings.ReplaceAll(want, twin, "FILE"), strings.NewReplacer(twin, "FILE", named, "FILE").Replace(got)); d != "" {
		t.Errorf("twin -, symfilter +\n%s", d)
	}
	if !strings.Contains(want, "Shelf::add(int) (shelf.cc:") {
		t.Error("the twin has no name for a function of its library")
	}
}

var (
	totalOfDHAT   = regexp.MustCompile(`"tb":(\d+)`)
	totalOfMassif = regexp.MustCompile(`heap_tree=peak\nn\d+: (\d+) `)
)

// In pprof's form, the values of all samples must add up to the bytes in the file.
func TestStacksOfDHATAndMassifHaveAllBytes(t *testing.T) {
	w := newHeapTwin(t, "g++", "-O1")
	w.strip(t)
	for tool, total := range map[int]*regexp.Regexp{0: totalOfDHAT, 1: totalOfMassif} {
		file, content := w.record(t, heapTools[tool], "")
		p := parsePprof(t, w.named(t, file, "--output=pprof"))
		if err := p.CheckValid(); err != nil {
			t.Error(err)
		}
		want := int64(0)
		for _, m := range total.FindAllStringSubmatch(content, -1) {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			want += n
		}
		value := slices.IndexFunc(p.SampleType, func(v *pprof.ValueType) bool { return v.Type == p.DefaultSampleType })
		got := int64(0)
		for _, s := range p.Sample {
			got += s.Value[value]
		}
		if got != want || want == 0 {
			t.Errorf("%s: the samples have %d bytes, the file %d", heapTools[tool].name, got, want)
		}
		if name, id := filepath.Base(p.Mapping[0].File), p.Mapping[0].BuildID; name != "shop" || id != buildIDOf(t, filepath.Join(w.dir, "shop")) {
			t.Errorf("the first mapping is %s, %s", name, id)
		}
		functions := ""
		for _, l := range p.Location {
			names := ""
			for _, line := range l.Line {
				names += line.Function.Name + "\n"
			}
			functions += names + "\n"
		}
		for _, names := range []string{"fresh\nbox(int)\n\n", "(anonymous namespace)::fill(Shelf&, int)\n", "main\n"} {
			if !strings.Contains(functions, names) {
				t.Errorf("%s: no location has %q:\n%s", heapTools[tool].name, names, functions)
			}
		}
	}
}
