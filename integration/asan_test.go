//go:build linux

package integration

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A report in markup, filtered by symfilter, must equal the report of the same program with a
// symbolizer.
func TestAddressSanitizerReportIsAsIfSymbolizedOnline(t *testing.T) {
	need(t, "clang-19", "llvm-symbolizer-19", "g++") // g++ brings the C++ library
	need(t, sanitizerRuntime(t))
	symbolizer := strings.TrimSpace(run(t, nil, "sh", "-c", "command -v llvm-symbolizer-19"))
	dir := t.TempDir()
	for _, source := range []string{"uaf", "segv"} {
		for _, level := range []string{"-O0", "-O1"} {
			t.Run(source+level, func(t *testing.T) {
				t.Parallel()
				program := filepath.Join(dir, source+level)
				run(t, nil, "clang-19", "-x", "c++", "-g", level, "-fsanitize=address",
					filepath.Join(checkout, "integration", "testdata", source+".cc"), "-lstdc++", "-o", program)

				// with enable_symbolizer_markup=1, the sanitizer prints markup instead of
				// stack_trace_format
				offline := crash(t, dir, []string{"ASAN_OPTIONS=enable_symbolizer_markup=1"}, program)
				filtered := run(t, offline, command)
				online := string(crash(t, dir, []string{
					"ASAN_SYMBOLIZER_PATH=" + symbolizer,
					`ASAN_OPTIONS=stack_trace_format="    #%n %f %S"`,
				}, program))

				got, want := stacksOf(parseFrames(t, filtered)), onlineStacks(online)
				if len(want) == 0 || len(want[0]) < 3 {
					t.Fatalf("the sanitizer named no frames:\n%s", online)
				}
				keepNamedByBoth(got, want)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("symbolized online (-), by symfilter (+):\n%s\nsymfilter printed:\n%s", diff, filtered)
				}

				// The summary repeats the first frame, in a sentence.
				first := want[0][0]
				summaries := regexp.MustCompile(`(?m)^SUMMARY: AddressSanitizer: .*$`).FindAllString(filtered, -1)
				if file := fmt.Sprintf("%s:%d:", first.File, first.Line); len(summaries) != 1 ||
					!strings.Contains(summaries[0], " "+first.Func+" ") || !strings.Contains(summaries[0], file) || !strings.Contains(summaries[0], " #0 "+first.Func) {
					t.Errorf("got the summary %q, want one line with %s at %s", summaries, first.Func, file)
				}
			})
		}
	}
}

// sanitizerRuntime returns the path of clang's address sanitizer, which is in a separate package.
func sanitizerRuntime(t *testing.T) string {
	t.Helper()
	pattern := filepath.Join(strings.TrimSpace(run(t, nil, "clang-19", "-print-resource-dir")), "lib", "*", "libclang_rt.asan*.a")
	if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
		return found[0]
	}
	return pattern // need then reports the missing file
}

// place is a frame without its address, which differs between the runs.
type place struct {
	Func, File string
	Line       int
}

// stacksOf splits frames into stacks. As in the sanitizer's output, inlined calls are separate
// frames.
func stacksOf(frames []frame) [][]place {
	var all [][]place
	last := -1
	for _, f := range frames {
		if f.Number == 0 && last != 0 || len(all) == 0 {
			all = append(all, nil)
		}
		last = f.Number
		if f.Inline == 0 && f.Number == 0 {
			last = 1 // the next #0 begins another stack
		}
		name, _, _ := strings.Cut(f.Func, "+0x")
		name, _, _ = strings.Cut(name, "@") // the version of a symbol
		if i := strings.Index(name, "_interceptor_"); i >= 0 && strings.Trim(name[:i], "_") == "" {
			// the sanitizer does not print the prefix of its interceptor for free
			name = name[i+len("_interceptor_"):]
		}
		all[len(all)-1] = append(all[len(all)-1], place{name, f.File, f.Line})
	}
	return all
}

var onlineFrame = regexp.MustCompile(`^    #(\d+) (.*) (\S+)$`)
var sourceAt = regexp.MustCompile(`^(.*?):(\d+)(?::\d+)?$`)

// onlineStacks parses frames in the format "    #%n %f %S".
func onlineStacks(report string) [][]place {
	var all [][]place
	for line := range strings.Lines(report) {
		m := onlineFrame.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			continue
		}
		if m[1] == "0" {
			all = append(all, nil)
		}
		p := place{Func: m[2]}
		if s := sourceAt.FindStringSubmatch(m[3]); s != nil {
			p.File = strings.TrimPrefix(s[1], "./")
			fmt.Sscan(s[2], &p.Line)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

// keepNamedByBoth blanks, in frames outside of the program's source, names and files that only a or
// b has: symfilter and the sanitizer's symbolizer search debug files in different folders.
func keepNamedByBoth(a, b [][]place) {
	for i := range min(len(a), len(b)) {
		for j := range min(len(a[i]), len(b[i])) {
			x, y := &a[i][j], &b[i][j]
			own := strings.Contains(x.File+y.File, "testdata")
			if !own && (x.Func == "" || y.Func == "") {
				*x, *y = place{}, place{}
			}
			if !own && (x.File == "" || y.File == "") {
				x.File, x.Line, y.File, y.Line = "", 0, "", 0
			}
		}
	}
}
