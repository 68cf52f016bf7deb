//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/driver"
	pprof "github.com/google/pprof/profile"
)

// asOther starts symfilter by the name of another symbolizer, and returns what it prints.
func asOther(t *testing.T, file, name string, args []string, in []byte) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(file, args...)
	cmd.Args[0] = name
	cmd.Stdin = bytes.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, said.Bytes())
	}
	return out.String(), said.String()
}

// questions returns questions about n random addresses in the sections of a file: with code set in
// those with code, otherwise in those with data.
func questions(t *testing.T, file string, n int, code bool, prefix string) []byte {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*elf.Section
	size := uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Addr > 0 && (s.Flags&elf.SHF_EXECINSTR != 0) == code {
			all = append(all, s)
			size += s.Size
		}
	}
	random := rand.New(rand.NewPCG(uint64(n), size))
	var in bytes.Buffer
	for range n {
		at := random.Uint64N(size)
		for _, s := range all {
			if at < s.Size {
				fmt.Fprintf(&in, "%s0x%x\n", prefix, s.Addr+at)
				break
			}
			at -= s.Size
		}
	}
	return in.Bytes()
}

// missingDeclarations are the answers of LLVM that lack the file of a declaration, because its
// number is in an abbreviation: see docs/drop-in.md.
var missingDeclarations = []struct{ lacks, has *regexp.Regexp }{
	{regexp.MustCompile(`(?m)^  Function start filename: $`), regexp.MustCompile(`(?m)^  Function start filename: .*$`)},
	{regexp.MustCompile(`"StartFileName":""`), regexp.MustCompile(`"StartFileName":"[^"]*"`)},
	{regexp.MustCompile(`(?m)^\?\?:\?$`), regexp.MustCompile(`(?m)^.*:\d+$`)},
}

// sameAnswer reports whether got is LLVM's answer, or LLVM's with files of declarations added.
func sameAnswer(want, got string) (same, allowed bool) {
	if want == got {
		return true, true
	}
	for _, m := range missingDeclarations {
		lines, others := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
		if len(lines) != len(others) || !m.lacks.MatchString(want) {
			continue
		}
		equal := true
		for i, line := range lines {
			if m.lacks.MatchString(line) {
				line, others[i] = m.has.ReplaceAllString(m.lacks.ReplaceAllString(line, "="), "="), m.has.ReplaceAllString(others[i], "=")
			}
			equal = equal && line == others[i]
		}
		if equal {
			return false, true
		}
	}
	return false, false
}

// dropInStyles are command lines of both programs, without the file. end ends an answer.
var dropInStyles = []struct {
	name, args, prefix, end string
	data                    bool
}{
	{"llvm-symbolizer", "", "", "\n\n", false},
	{"llvm-symbolizer", "-a --no-inlines --relativenames --no-demangle", "CODE ", "\n\n", false},
	{"llvm-symbolizer", "-p --functions=short --basenames", "", "\n\n", false},
	{"llvm-symbolizer", "--verbose", "", "\n\n", false},
	{"llvm-symbolizer", "-a --output-style=GNU", "", "\n0x", false},
	{"llvm-symbolizer", "--output-style=JSON", "", "\n", false},
	{"llvm-symbolizer", "", "DATA ", "\n\n", true},
	{"llvm-symbolizer", "--output-style=JSON", "DATA ", "\n", true},
	{"llvm-addr2line", "-afiC", "", "\n0x", false},
	{"llvm-addr2line", "-asf", "", "\n0x", false},
}

// Both programs answer equally about thousands of random addresses, but for the differences in
// docs/drop-in.md.
func TestDropInAnswersAreThoseOfLLVM(t *testing.T) {
	need(t, "llvm-symbolizer-19", "llvm-addr2line-19", "git", "g++", "clang-19")
	twin := newTraceTwin(t, "ledger", twinBuild{flags: []string{"-gdwarf-5"}, link: []string{"-shared", "-fPIC"}})
	files := map[string]string{
		"libc": "/lib/x86_64-linux-gnu/libc.so.6",
		"git":  strings.TrimSpace(run(t, nil, "sh", "-c", "command -v git")),
		"twin": filepath.Join(twin.whole, "libledger.so"),
	}
	for _, name := range []string{"fault", "traces", "libledger.so"} {
		files[name] = filepath.Join(checkout, "testdata", "backtraces", "programs", name)
	}
	files["split"] = filepath.Join(t.TempDir(), "split.so")
	run(t, nil, "clang-19", "-g", "-gsplit-dwarf", "-O2", "-fPIC", "-shared", filepath.Join(checkout, "integration", "testdata", "twin", "ledger.cc"), "-o", files["split"])
	for name, file := range files {
		need(t, file)
		n := 1000
		if name == "libc" || long() {
			n = 5000
		}
		for _, style := range dropInStyles {
			t.Run(name+" "+style.name+" "+style.prefix+style.args, func(t *testing.T) {
				in := questions(t, file, n, !style.data, style.prefix)
				args := append(strings.Fields(style.args), "-e", file)
				want, wantSaid := asOther(t, style.name+"-19", style.name, args, in)
				got, said := asOther(t, command, style.name, args, in)
				if want == "" || wantSaid != said {
					t.Errorf("LLVM prints %d bytes, and says\n%s\nsymfilter says\n%s", len(want), wantSaid, said)
				}
				answers, others := strings.Split(want, style.end), strings.Split(got, style.end)
				if len(answers) != len(others) || len(answers) < n {
					t.Fatalf("LLVM gives %d answers, symfilter %d, to %d questions", len(answers), len(others), n)
				}
				equal, allowed, wrong := 0, 0, 0
				for i, answer := range answers {
					switch same, ok := sameAnswer(answer, others[i]); {
					case same:
						equal++
					case ok:
						allowed++
					default:
						if wrong++; wrong < 4 {
							t.Errorf("LLVM (-), symfilter (+):\n%s", cmp.Diff(answer, others[i]))
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%d answers differ", wrong)
				}
				t.Logf("%d answers are equal, %d have a declaration's file that LLVM does not read", equal, allowed)
			})
		}
	}
}

// drivers are programs that start llvm-symbolizer. drive returns what the driver prints about a
// program in dir, with the symbolizer at path.
var drivers = []struct {
	name  string
	needs []string
	drive func(t *testing.T, dir, path string) string
	names string // is in the output
}{
	{"AddressSanitizer", nil, func(t *testing.T, dir, path string) string {
		return string(crash(t, dir, []string{"ASAN_SYMBOLIZER_PATH=" + path}, filepath.Join(dir, "address")))
	}, "in shop::weigh(shop::Box<long> const&, int) "},
	{"UndefinedBehaviorSanitizer", nil, func(t *testing.T, dir, path string) string {
		return started(t, "", []string{"UBSAN_OPTIONS=print_stacktrace=1:external_symbolizer_path=" + path}, filepath.Join(dir, "undefined"))
	}, "in add(int, int) "},
	{"asan_symbolize", []string{"asan_symbolize-19"}, func(t *testing.T, dir, path string) string {
		report := crash(t, dir, []string{"ASAN_OPTIONS=symbolize=0"}, filepath.Join(dir, "address"))
		return started(t, string(report), []string{"LLVM_SYMBOLIZER_PATH=" + path}, "asan_symbolize-19", "-d")
	}, "in shop::weigh(shop::Box<long> const&, int) "},
	{"pprof", nil, func(t *testing.T, dir, path string) string {
		// nm and addr2line are not in this PATH: pprof would use them without a symbolizer
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
}

// pprofFlags are the flags of pprof with the arguments of a test.
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

// Programs that start a symbolizer print the same with symfilter in its place.
func TestDriversOfSymbolizersStartSymfilter(t *testing.T) {
	need(t, "clang-19", "llvm-symbolizer-19", "g++") // g++ brings the C++ library
	need(t, sanitizerRuntime(t))
	dir := t.TempDir()
	undefined := filepath.Join(dir, "undefined.cc")
	if err := os.WriteFile(undefined, []byte("static inline int add(int a, int b) { return a + b; }\nint main(int n, char **) { return add(2147483647, n) == 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for sanitizer, source := range map[string]string{"address": filepath.Join(checkout, "integration", "testdata", "uaf.cc"), "undefined": undefined} {
		run(t, nil, "clang-19", "-x", "c++", "-g", "-O1", "-fsanitize="+sanitizer, source, "-lstdc++", "-o", filepath.Join(dir, sanitizer))
	}
	links := map[string]string{"other": strings.TrimSpace(run(t, nil, "sh", "-c", "command -v llvm-symbolizer-19")), "own": command}
	for name, target := range links {
		links[name] = filepath.Join(dir, name, "llvm-symbolizer")
		run(t, nil, "mkdir", filepath.Join(dir, name))
		run(t, nil, "ln", "-s", target, links[name])
	}
	varying := regexp.MustCompile(`0x[0-9a-f]+|==\d+==`) // addresses and numbers of processes
	writeProfile(t, filepath.Join(dir, "cpu.pprof"), filepath.Join(dir, "undefined"), "add(int, int)")
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			need(t, d.needs...)
			want := varying.ReplaceAllString(d.drive(t, dir, links["other"]), "N")
			got := varying.ReplaceAllString(d.drive(t, dir, links["own"]), "N")
			if !strings.Contains(want, d.names) {
				t.Fatalf("%q is not in\n%s", d.names, want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with llvm-symbolizer (-), with symfilter (+):\n%s", diff)
			}
		})
	}
}

// started runs a program to its end, whatever its exit status is, and returns all that it prints.
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

// writeProfile writes a profile of a program that is mapped at its link address. It has a sample at
// each address of main where LLVM finds an inlined function.
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

// The commands of docs/drop-in.md name a function.
func TestTheCommandsForADropInAnswer(t *testing.T) {
	dir := t.TempDir()
	for _, line := range linesFor(t, "drop-in.md", "TestTheCommandsForADropInAnswer") {
		line = strings.ReplaceAll(line, "testdata/", filepath.Join(checkout, "testdata")+"/")
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(command)+":/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if strings.Contains(line, "programs") && (!strings.HasPrefix(string(out), "main\n") || !strings.Contains(string(out), "fault.cc:")) {
			t.Errorf("%s prints\n%s", line, out)
		}
	}
}
