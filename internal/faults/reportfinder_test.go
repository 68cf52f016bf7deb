package faults

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/symbolize"
)

var update = flag.Bool("update", false, "write what comes out into the files of testdata")

// patient lets a filter wait a minute for debug files, longer than any test needs.
var patient = filter.Patience{Local: time.Minute, Servers: time.Minute}

// testSymbolizer returns a symbolizer with the debug files of filter's tests.
func testSymbolizer(t testing.TB) *symbolize.Symbolizer {
	t.Helper()
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../filter/testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return s
}

// findingsIn returns the findings of a log.
func findingsIn(t testing.TB, log []byte, o filter.Options) *findings.Collection {
	t.Helper()
	s := findings.New(nil)
	o.Printer = NewFinder(s, "test.log", nil, o.Paths)
	f := filter.New(io.Discard, o)
	for len(log) > 0 { // lines are cut by writes
		n := min(len(log), 1000)
		if _, err := f.Write(log[:n]); err != nil {
			t.Fatal(err)
		}
		log = log[n:]
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// listed returns findings and processes as text.
func listed(s *findings.Collection) string {
	var b strings.Builder
	for i, p := range s.Processes() {
		fmt.Fprintf(&b, "process %d: %s pid %q complete %v\n", i, p.Tool, p.PID, p.Complete)
	}
	for _, x := range s.All() {
		fmt.Fprintf(&b, "%s/%s %q :%d memory %d, %d bytes in %d blocks, seen %v\n", x.Tool, x.Kind, x.Message, x.Ordinal, x.Memory, x.Bytes, x.Blocks, x.Seen)
		for _, d := range x.Detail {
			fmt.Fprintf(&b, "  | %s\n", d)
		}
		for _, tr := range x.Traces {
			fmt.Fprintf(&b, "  role %d %q\n", tr.Role, tr.Message)
			for _, f := range tr.Frames {
				own := " "
				if f.IsOwn {
					own = "*"
				}
				fmt.Fprintf(&b, "   %s %s", own, f.Func)
				if f.HasLine {
					fmt.Fprintf(&b, " %s:%d:%d", filepath.Base(f.File), f.Line, f.Column)
				}
				if f.Object != "" {
					fmt.Fprintf(&b, " (%s+0x%x)", filepath.Base(f.Object), f.Offset)
				}
				if f.Inlined {
					b.WriteString(" inlined")
				}
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// Each file of testdata/findings has a log and its findings.
func TestFindingsOfLogs(t *testing.T) {
	paths, err := filepath.Glob("testdata/findings/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil || len(a.Files) != 2 {
				t.Fatal(err, len(a.Files))
			}
			got := listed(findingsIn(t, a.Files[0].Data, filter.Options{Symbolizer: testSymbolizer(t), Patience: patient}))
			if *update {
				a.Files[1].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The expected kinds are from UBSan's summaries with report_error_type=1. The messages are from
// LLVM 19 and GCC 12.
func TestKindsOfRuntimeErrors(t *testing.T) {
	for message, want := range map[string]string{
		"signed integer overflow: 1 + 2147483647 cannot be represented in type 'int'":           "signed-integer-overflow",
		"unsigned integer overflow: 0 - 1 cannot be represented in type 'unsigned int'":         "unsigned-integer-overflow",
		"negation of -2147483648 cannot be represented in type 'int'; cast to an unsigned type": "signed-integer-overflow",
		"division of -2147483648 by -1 cannot be represented in type 'int'":                     "signed-integer-overflow",
		"division by zero": "integer-divide-by-zero",
		"shift exponent 40 is too large for 32-bit type 'int'":                                                     "invalid-shift-exponent",
		"shift exponent -1 is negative":                                                                            "invalid-shift-exponent",
		"left shift of negative value -5":                                                                          "invalid-shift-base",
		"index 7 out of bounds for type 'int [5]'":                                                                 "out-of-bounds-index",
		"null pointer returned from function declared to never return null":                                        "invalid-null-return",
		"null pointer passed as argument 2, which is declared to never be null":                                    "invalid-null-argument",
		"applying zero offset to null pointer":                                                                     "nullptr-with-offset",
		"addition of unsigned offset to 0x… overflowed to 0x…":                                                     "pointer-overflow",
		"pointer index expression with base 0x… overflowed to 0x…":                                                 "pointer-overflow",
		"member call on null pointer of type 'Cart'":                                                               "null-pointer-use",
		"load of null pointer of type 'int'":                                                                       "null-pointer-use",
		"load of misaligned address 0x… for type 'int', which requires 4 byte alignment":                           "misaligned-pointer-use",
		"assumption of 32 byte alignment for pointer of type 'char *' failed":                                      "alignment-assumption",
		"load of address 0x… with insufficient space for an object of type 'int'":                                  "insufficient-object-size",
		"member call on address 0x… which does not point to an object of type 'Cart'":                              "dynamic-type-mismatch",
		"execution reached the end of a value-returning function without returning a value":                        "missing-return",
		"execution reached an unreachable program point":                                                           "unreachable-call",
		"variable length array bound evaluates to non-positive value -1":                                           "non-positive-vla-index",
		"load of value 5, which is not a valid value for type 'bool'":                                              "invalid-bool-load",
		"load of value 5, which is not a valid value for type 'Color'":                                             "invalid-enum-load",
		"1e+30 is outside the range of representable values of type 'int'":                                         "float-cast-overflow",
		"implicit conversion from type 'int' of value 300 (32-bit, signed) to type 'char' changed the value to 44": "implicit-conversion",
		"call to function f through pointer to incorrect function type 'void (*)(int)'":                            "function-type-mismatch",
		"control flow integrity check for type 'A' failed during virtual call":                                     "cfi-bad-type",
		"passing zero to ctz(), which is not a valid argument":                                                     "invalid-builtin-use",
		"an error of later versions":                                                                               "undefined-behavior",
	} {
		if got := runtimeKind(message); got != want {
			t.Errorf("%s: got %s, want %s", message, got, want)
		}
	}
}

// FuzzFindings checks for any log that its findings are complete, and that their number and text
// are bounded by its size.
func FuzzFindings(f *testing.F) {
	paths, _ := filepath.Glob("testdata/findings/*.txtar")
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	for _, log := range logtest.Samples(f, "../dialect/testdata/*.txtar") {
		f.Add([]byte(log))
	}
	f.Add([]byte(logtest.NewGenerator(1).Log(20)))
	o := filter.Options{Symbolizer: testSymbolizer(f), Patience: patient}
	f.Fuzz(func(t *testing.T, log []byte) {
		defer fuzztest.Watch(t, log)()
		s := findingsIn(t, log, o)
		bytes := 0
		for _, x := range s.All() {
			if x.Kind == "" || x.Message == "" || x.Tool == "" || len(x.Fingerprint) != 32 || x.Count() == 0 {
				t.Errorf("a finding is not complete: %+v", x)
			}
			bytes += len(x.Message)
			for i := range x.Traces {
				bytes += len(x.Traces[i].Message)
			}
		}
		if max := 4*len(log) + 1000*len(s.All()); bytes > max || len(s.Processes()) > 1+len(log) || len(s.All()) > len(log) {
			t.Errorf("%d findings with %d bytes of %d processes, of a log of %d bytes", len(s.All()), bytes, len(s.Processes()), len(log))
		}
	})
}

// Lines outside of reports must not be copied, and equal reports of a process must be kept once.
func TestFindingsOfLargeLogsAllocateLittle(t *testing.T) {
	fuzztest.WithoutRace(t)
	a, err := txtar.ParseFile("testdata/findings/asan.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, lines string
		most        float64 // allocations of 1,000 times the lines
	}{
		{"plain", strings.Repeat("10:00:00 INFO worker-7 an error: none, at 7 o'clock\n", 20), 2},
		{"reports", string(a.Files[0].Data), 250_000},
	} {
		s := findings.New(nil)
		f := filter.New(io.Discard, filter.Options{Symbolizer: testSymbolizer(t), Patience: patient, Printer: NewFinder(s, "log", nil, filter.Paths{})})
		lines := []byte(c.lines)
		f.Write(lines)
		f.Write(lines) // the last stack may be held back
		kept := len(s.All())
		if got := testing.AllocsPerRun(1, func() {
			for range 1000 {
				f.Write(lines)
			}
		}); got > c.most {
			t.Errorf("%s: %v allocations, at most %v", c.name, got, c.most)
		}
		if len(s.All()) != kept {
			t.Errorf("%s: %d findings, then %d", c.name, kept, len(s.All()))
		}
	}
}
