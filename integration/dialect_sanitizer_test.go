//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sanitizerReports are programs with one report each. They run twice, without address space
// randomization, so both runs have the same addresses.
var sanitizerReports = []struct {
	name, source string
	flags        []string
	input        string // content of the file in the argument
	long         bool   // with TEST_LONG only
}{
	{name: "use-after-free", source: "uaf.cc", flags: []string{"-O1", "-fsanitize=address"}},
	{name: "use-after-free-no-pie", source: "uaf.cc", flags: []string{"-O0", "-no-pie", "-fsanitize=address"}, long: true},
	{name: "use-after-free-O2", source: "uaf.cc", flags: []string{"-O2", "-fsanitize=address"}, long: true},
	{name: "signal", source: "segv.cc", flags: []string{"-O0", "-no-pie", "-fsanitize=address"}},
	{name: "signal-O2", source: "segv.cc", flags: []string{"-O2", "-fsanitize=address"}, long: true},
	{name: "leak", source: "sanitizer/leak.cc", flags: []string{"-O1", "-fsanitize=leak"}},
	{name: "leak-in-asan", source: "sanitizer/leak.cc", flags: []string{"-O2", "-fsanitize=address"}, long: true},
	{name: "undefined", source: "sanitizer/undefined.cc", flags: []string{"-O1", "-fsanitize=undefined"}},
	{name: "undefined-O0", source: "sanitizer/undefined.cc", flags: []string{"-O0", "-no-pie", "-fsanitize=undefined"}, long: true},
	{name: "race", source: "sanitizer/race.cc", flags: []string{"-O1", "-fsanitize=thread"}},
	{name: "race-O2", source: "sanitizer/race.cc", flags: []string{"-O2", "-fsanitize=thread"}, long: true},
	{name: "uninitialized", source: "sanitizer/uninitialized.cc", flags: []string{"-O1", "-fsanitize=memory", "-fsanitize-memory-track-origins"}, long: true},
	{name: "fuzzer", source: "sanitizer/fuzz.cc", flags: []string{"-O1", "-fsanitize=fuzzer,address"}, input: "abc", long: true},
}

// The filtered report of a stripped program must equal the report of the same program with debug
// information and a symbolizer, even if the sanitizer has already named frames in libc.
func TestSanitizerReportsAreAsPrintedOnline(t *testing.T) {
	need(t, "clang-19", "llvm-symbolizer-19", "g++", "strip", "setarch")
	need(t, sanitizerRuntime(t))
	for _, r := range sanitizerReports {
		if r.long && !long() {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			s := newSanitized(t, "clang-19", r.source, r.flags)
			var args []string
			if r.input != "" {
				args = []string{filepath.Join(s.dir, "input")}
				if err := os.WriteFile(args[0], []byte(r.input), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			online := s.report(t, true, args...)
			s.color = "always"
			colored := s.report(t, true, args...)
			s.color = "never"
			s.strip(t)
			half, offline := s.report(t, true, args...), s.report(t, false, args...)
			if !strings.Contains(online, " in ") && !strings.Contains(online, filepath.Base(r.source)+":") || !strings.Contains(offline, "inventory+0x") {
				t.Fatalf("not as expected; online:\n%s\noffline:\n%s", online, offline)
			}
			wantInRecords(t, []byte(offline), "--debug-file-directory", s.debug)
			for name, log := range map[string]string{"without a symbolizer": offline, "without debug information": half} {
				if got := s.filtered(t, log); beyondMain.ReplaceAllString(got, "") != online {
					t.Errorf("%s: online (-), filtered (+):\n%s", name, cmp.Diff(online, got))
				} else if again := s.filtered(t, got); again != got {
					t.Errorf("%s: filtered once (-), twice (+):\n%s", name, cmp.Diff(got, again))
				}
			}
			s.color = "always"
			if got := s.filtered(t, s.report(t, false, args...)); beyondMain.ReplaceAllString(got, "") != colored {
				t.Errorf("in colour: online (-), filtered (+):\n%s", cmp.Diff(colored, got))
			}
		})
	}
}

// The filtered report must name the variable like ThreadSanitizer with debug information, which
// prints the variable's name, size and address.
func TestVariablesOfRacesAreAsPrintedOnline(t *testing.T) {
	need(t, "clang-19", "llvm-symbolizer-19", "g++", "strip", "setarch")
	need(t, sanitizerRuntime(t))
	t.Parallel()
	s := newSanitized(t, "clang-19", "sanitizer/global.cc", []string{"-O1", "-fsanitize=thread"})
	online := s.report(t, true)
	s.strip(t)
	half := s.report(t, true)
	if !strings.Contains(online, "'inventory::accounts' of size 48 at") || !strings.Contains(half, "'??'") {
		t.Fatalf("not as expected; online:\n%s\nwithout debug information:\n%s", online, half)
	}
	got := s.filtered(t, half)
	if diff := cmp.Diff(online, beyondMain.ReplaceAllString(got, "")); diff != "" {
		t.Errorf("online (-), filtered (+):\n%s", diff)
	}
	if again := s.filtered(t, got); again != got {
		t.Errorf("filtered once (-), twice (+):\n%s", cmp.Diff(got, again))
	}
	other := strings.ReplaceAll(half, buildIDOf(t, s.program), strings.Repeat("ab", 20))
	if got := s.filtered(t, other); got != other {
		t.Errorf("with the build ID of another program (-), filtered (+):\n%s", cmp.Diff(other, got))
	}
}

// A regular expression in the form of ClusterFuzz's must match each frame of a filtered report.
func TestClusterFuzzReadsFilteredReports(t *testing.T) {
	need(t, "clang-19", "g++", "strip", "setarch")
	need(t, sanitizerRuntime(t))
	s := newSanitized(t, "clang-19", "uaf.cc", []string{"-O1", "-fsanitize=address"})
	s.strip(t)
	out := s.filtered(t, s.report(t, false))
	frame := regexp.MustCompile(`^\s*#(\d+)\s+([xX0-9a-fA-F]+)\s+(?:in\s+(.*?)\s+)?(?:\(((.*)\+([xX0-9a-fA-F]+))\)|(\S+?):(\d+)(?::(\d+))?)(?:\s+\(BuildId: [0-9a-f]+\))?$`)
	var named []string
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "    #") {
			continue
		}
		m := frame.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not a frame: %q", line)
		} else if filepath.Base(m[7]) == "uaf.cc" {
			named = append(named, m[1]+" "+m[3]+" "+m[8])
		}
	}
	want := []string{
		"0 shop::Box<long>::get(int) const 11", "1 shop::weigh(shop::Box<long> const&, int) 14", "2 main::$_1::operator()() const 33",
		"3 int shop::run<main::$_1>(main::$_1) 22", "4 main 33",
		"1 main 29",
		"1 shop::Box<long>::Box(long) 9", "2 shop::pack(long) 16", "3 main 28",
	}
	if diff := cmp.Diff(want, named); diff != "" {
		t.Errorf("frames in uaf.cc (-want +got):\n%s\n%s", diff, out)
	}
}

// The first run has no debug files, and prints the located frames. A second run with the debug
// files must print the same as a single run.
func TestFramesAreLocatedByOneRunAndNamedByAnother(t *testing.T) {
	need(t, "clang-19", "g++", "strip", "setarch")
	need(t, sanitizerRuntime(t))
	s := newSanitized(t, "clang-19", "uaf.cc", []string{"-O1", "-fsanitize=address"})
	s.strip(t)
	log := string(crash(t, s.dir, []string{"ASAN_OPTIONS=enable_symbolizer_markup=1"}, s.program))
	for _, lines := range []string{"full", "short", "none"} {
		form := "--module-lines=" + lines
		if lines == "full" {
			form = "--no-default-debug-directories" // the default form
		}
		want := s.filtered(t, log, form, "--no-default-debug-directories")
		located := run(t, []byte(log), command, form, "--no-default-debug-directories", "--no-paths")
		if strings.Contains(located, "uaf.cc") || !strings.Contains(want, "uaf.cc:33") {
			t.Fatalf("one is not as expected:\n%s\n%s", located, want)
		}
		if got := s.filtered(t, located, "--no-default-debug-directories"); got != want {
			t.Errorf("module lines %s: one run (-), two runs (+):\n%s", lines, cmp.Diff(want, got))
		}
	}
}

// Reports of GCC 12's sanitizers, which have no build IDs, must be resolved. The calls before the
// return addresses must prove the file, and refute another build.
func TestReportsOfGCCAreResolvedByTheirFiles(t *testing.T) {
	need(t, "g++", "strip", "setarch")
	flags := []string{"-fsanitize=address"}
	for _, more := range [][]string{{"-O1"}, {"-O1", "-no-pie"}} {
		if len(more) > 1 && !long() {
			continue
		}
		t.Run(strings.Join(more, ""), func(t *testing.T) {
			t.Parallel()
			s := newSanitized(t, "g++", "uaf.cc", append(more, flags...))
			s.strip(t)
			log := []byte(s.report(t, false))
			w := &traceTwin{dir: s.dir, program: s.program, whole: s.whole, debug: s.debug}
			calls := []string{
				"uaf.cc:11", "uaf.cc:14", "uaf.cc:33", "uaf.cc:22", "uaf.cc:33", // the use
				"uaf.cc:10", "uaf.cc:18", "uaf.cc:30", "uaf.cc:22", "uaf.cc:29", // the free
				"uaf.cc:9", "uaf.cc:16", "uaf.cc:28", // the allocation
				"uaf.cc:11", "uaf.cc:14", "uaf.cc:33", "uaf.cc:22", // the summary
			}
			if diff := cmp.Diff(calls, places(w.frames(t, log))); diff != "" {
				t.Errorf("calls (-), frames (+):\n%s\n%s\n%s", diff, log, w.text(t, log))
			}
			if text := w.text(t, log); !strings.Contains(text, " in malloc ") {
				t.Errorf("the interceptor of malloc is not named:\n%s", text)
			}
			other := newSanitized(t, "g++", "uaf.cc", append([]string{"-O0"}, flags...))
			other.strip(t)
			run(t, nil, "cp", other.program, s.program)
			if got := places(w.frames(t, log, "--debug-file-directory", other.debug)); len(got) > 0 {
				t.Errorf("another build answers %q", got)
			}
		})
	}
}

func places(frames []twinFrame) (all []string) {
	for _, f := range frames {
		for _, s := range f.Frames {
			if base := filepath.Base(s.File); base == "uaf.cc" {
				all = append(all, fmt.Sprintf("%s:%d", base, s.Line))
			}
		}
	}
	return all
}

// A sanitized is a program built with a sanitizer.
type sanitized struct {
	dir     string
	program string
	whole   string // folder of the program with debug information, after it is stripped
	debug   string // --debug-file-directory
	color   string // the option color of reports: never or always
}

func newSanitized(t *testing.T, compiler, source string, flags []string) *sanitized {
	t.Helper()
	dir := t.TempDir()
	s := &sanitized{dir: dir, program: filepath.Join(dir, "inventory"), whole: filepath.Join(dir, "whole"), debug: filepath.Join(dir, "debug"), color: "never"}
	args := append([]string{"-x", "c++", "-g", "-fno-omit-frame-pointer", "-Wl,--build-id"}, flags...)
	run(t, nil, compiler, append(args, filepath.Join(checkout, "integration", "testdata", source), "-lstdc++", "-o", s.program)...)
	return s
}

// strip strips the program, and moves its debug information to the folder of debug files.
func (s *sanitized) strip(t *testing.T) {
	t.Helper()
	id := buildIDOf(t, s.program)
	whole := filepath.Join(s.whole, filepath.Base(s.program))
	link := filepath.Join(s.debug, ".build-id", id[:2], id[2:]+".debug")
	for _, folder := range []string{s.whole, filepath.Dir(link)} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(s.program, whole); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(whole, link); err != nil {
		t.Fatal(err)
	}
	run(t, nil, "strip", "-o", s.program, whole)
}

// beyondMain matches frames outside of main and of a thread's first function. ThreadSanitizer omits
// them if it has their names.
var beyondMain = regexp.MustCompile(`(?m)^    #\d+ (?:__tsan_thread_start_func|__libc_start_call_main) .* \(.*\n`)

// runs matches the parts that differ between runs at the same addresses: IDs of processes and
// threads, and whether a thread has ended.
var runs = regexp.MustCompile(`==\d+==|\(pid=\d+\)|tid=\d+, (?:running|finished)|T\d{2,}\)|INFO: Seed: \d+|in \d+ ms`)

// report returns the program's report without the parts that differ between runs. The environment
// has the same length with and without a symbolizer, so that stack addresses are equal.
func (s *sanitized) report(t *testing.T, symbolize bool, args ...string) string {
	t.Helper()
	cmd := exec.Command("setarch", append([]string{"-R", s.program}, args...)...)
	symbolizer, err := exec.LookPath("llvm-symbolizer-19")
	if err != nil {
		symbolizer = "/usr/bin/llvm-symbolizer-19" // as in the recordings
	}
	options := "symbolize=0:print_stacktrace=1:color=" + s.color + ":external_symbolizer_path=" + symbolizer
	if symbolize {
		options = strings.Replace(options, "symbolize=0", "symbolize=1", 1)
	}
	cmd.Env = os.Environ()
	for _, tool := range []string{"ASAN", "LSAN", "MSAN", "TSAN", "UBSAN"} {
		cmd.Env = append(cmd.Env, tool+"_OPTIONS="+options)
	}
	out, _, _ := producers.do(t, cmd, nil, true)
	if !bytes.Contains(out, []byte("SUMMARY: ")) && !bytes.Contains(out, []byte(": runtime error: ")) {
		t.Fatalf("%s reports nothing:\n%s", s.program, out)
	}
	return string(runs.ReplaceAll(out, []byte("(a run)")))
}

func (s *sanitized) filtered(t *testing.T, report string, args ...string) string {
	t.Helper()
	return run(t, []byte(report), command, append([]string{"--debug-file-directory", s.debug}, args...)...)
}
