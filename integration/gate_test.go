//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A gated is a folder with stripped builds of five.cc, and their debug files in debug.
type gated struct{ dir, debug string }

// gatedPrograms builds five.cc as old (-O1), as new (-O2, with moved lines), and as sixth (like
// new, with one more error).
var gatedPrograms = sync.OnceValues(func() (gated, error) {
	dir, err := os.MkdirTemp(filepath.Dir(command), "gate-")
	if err != nil {
		return gated{}, err
	}
	g := gated{dir, filepath.Join(dir, "debug")}
	source, err := os.ReadFile(filepath.Join("testdata", "valgrind", "five.cc"))
	if err != nil {
		return g, err
	}
	moved := strings.Replace(string(source), "\nnamespace store {", "\n// moved\n\nnamespace store {\n", 1)
	if err := os.MkdirAll(filepath.Join(dir, "moved"), 0o755); err != nil {
		return g, err
	}
	for name, text := range map[string]string{"five.cc": string(source), "moved/five.cc": moved} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return g, err
		}
	}
	script := "set -e; mkdir -p debug\n" +
		"g++ -g -O1 -o debug/old five.cc & one=$!\n" +
		"(cd moved && g++ -g -O2 -o ../debug/new five.cc) & two=$!\n" +
		"(cd moved && g++ -g -O2 -DSIXTH -Wno-mismatched-new-delete -o ../debug/sixth five.cc); wait $one; wait $two\n" +
		"for p in old new sixth; do strip -o $p debug/$p; done\n"
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return g, errors.New(err.Error() + "\n" + string(out))
	}
	return g, nil
})

// gate returns the built programs, and an empty folder for reports.
func gate(t *testing.T) (gated, string) {
	t.Helper()
	need(t, "valgrind", "g++", "strip")
	g, err := gatedPrograms()
	if err != nil {
		t.Fatal(err)
	}
	return g, t.TempDir()
}

// report runs a program under Valgrind. The report's name may have %p.
func (g gated) report(t *testing.T, name, program string, args ...string) {
	t.Helper()
	run(t, nil, "valgrind", append([]string{"-q", "--leak-check=full", "--xml=yes", "--xml-file=" + name, filepath.Join(g.dir, program)}, args...)...)
}

// command runs symfilter valgrind in dir. It returns the output and the gate's reasons, with
// constants for addresses, build IDs and PIDs.
func (g gated) command(t *testing.T, dir string, args ...string) (stdout, reasons string, code int) {
	t.Helper()
	cmd := exec.Command(command, append([]string{"valgrind", "--no-default-debug-directories"}, args...)...)
	cmd.Dir = dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit, ok := err.(*exec.ExitError); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	stable := func(b bytes.Buffer) string {
		s := strings.ReplaceAll(b.String(), g.dir+"/", "")
		s = regexp.MustCompile(`Address 0x[0-9a-f]+`).ReplaceAllString(s, "Address 0x1")
		s = regexp.MustCompile(`\+0x[0-9a-f]+\)`).ReplaceAllString(s, ")")
		s = regexp.MustCompile(`BuildId: [0-9a-f]+`).ReplaceAllString(s, "BuildId: ID")
		return regexp.MustCompile(`PID \d+`).ReplaceAllString(s, "PID 1")
	}
	for line := range strings.Lines(stable(errs)) {
		if reason, ok := strings.CutPrefix(line, "symfilter: gate: "); ok {
			reasons += reason
		}
	}
	return stable(out), reasons, code
}

// Known errors must be recognised although lines have moved and the optimization differs. Only the
// new error must be printed.
func TestNewErrorsOfStrippedProgramsFailGates(t *testing.T) {
	t.Parallel()
	g, dir := gate(t)
	var wait sync.WaitGroup
	for _, name := range []string{"old", "new", "sixth"} {
		wait.Go(func() { g.report(t, filepath.Join(dir, name+".xml"), name) })
	}
	wait.Wait()
	out, errs, code := g.command(t, dir, "-s", g.debug, "--baseline=base", "--baseline-update", "old.xml")
	if !strings.HasPrefix(out, "new 5, gone 0, same 0\n") || code != 0 {
		t.Errorf("the baseline: exit code %d\n%s%s", code, out, errs)
	}
	var lines []string
	for line := range strings.Lines(readFile(t, filepath.Join(dir, "base"))) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), "\t")
		lines = append(lines, strings.ReplaceAll(strings.ReplaceAll(rest, g.dir+"/", ""), "\t", " | "))
	}
	want := map[string]int{
		"": 1, // the heading
		"InvalidRead | store::Shelf<int>::beyond() | five.cc | old":                                                                                1,
		"InvalidRead | work() | five.cc | old":                                                                                                     1,
		"InvalidWrite | store::Shelf<int>::put(int) | five.cc | old":                                                                               1,
		"UninitCondition | store::undecided(store::Shelf<int>&) | five.cc | old":                                                                   1,
		"Leak_DefinitelyLost | store::lose(std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>> const&) | five.cc | old": 1,
	}
	got := make(map[string]int)
	for _, line := range lines {
		got[strings.ReplaceAll(line, g.dir+"/", "")]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines of the baseline (-want +got):\n%s", diff)
	}

	out, errs, code = g.command(t, dir, "-s", g.debug, "--baseline=base", "new.xml")
	if out != "new 0, gone 0, same 5\n" || code != 0 {
		t.Errorf("another build: exit code %d\n%s%s", code, out, errs)
	}

	const sixth = `new 1, gone 0, same 5

Mismatched free() / delete / delete [] [memcheck/MismatchedFree]
    #0 free (vgpreload_memcheck-amd64-linux.so)
    #1 store::mismatch() moved/five.cc:48:7 (sixth)
    #2 work() moved/five.cc:64:18 (sixth)
    #3 main moved/five.cc:78:14 (sixth)
    #4 (below main) sysdeps/nptl/libc_start_call_main.h:58 (libc.so.6)
 Address 0x1 is 0 bytes inside a block of size 12 alloc'd
    #0 operator new[](unsigned long) (vgpreload_memcheck-amd64-linux.so)
    #1 store::mismatch() moved/five.cc:46:21 (sixth)
    #2 work() moved/five.cc:64:18 (sixth)
    #3 main moved/five.cc:78:14 (sixth)
    #4 (below main) sysdeps/nptl/libc_start_call_main.h:58 (libc.so.6)
 once in sixth (PID 1)
 fingerprint 1f6eb754aee07d932efbf84387186064
`
	for _, args := range [][]string{{"--baseline=base", "sixth.xml"}, {"--diff", "old.xml", "sixth.xml"}, {"--diff", "old.xml", "--", "new.xml", "sixth.xml"}} {
		out, errs, code = g.command(t, dir, append([]string{"-s", g.debug}, args...)...)
		if diff := cmp.Diff(sixth, out); diff != "" || code != 4 {
			t.Errorf("%v: exit code %d (-want +got):\n%s", args, code, diff)
		}
		if want := "1 finding is new: MismatchedFree in store::mismatch(), moved/five.cc:48\n"; errs != want {
			t.Errorf("%v: got %q, want %q", args, errs, want)
		}
	}

	// Without the debug file, no error is recognised.
	out, errs, code = g.command(t, dir, "--baseline=base", "new.xml")
	const nameless = "5 findings count as new, since no frame of the program has a name: InvalidRead; InvalidWrite; UninitCondition; and 2 more; find the debug file of new (BuildId: ID)\n"
	if !strings.HasPrefix(out, "new 5, gone 5, same 0\n") || code != 4 || errs != nameless {
		t.Errorf("without the debug file: exit code %d\n%s%s", code, out, errs)
	}
}

// An error that occurs in several processes must be one finding. If the report of a process is
// truncated, as after a kill, the gate must fail.
func TestFindingsOfManyProcessesMerge(t *testing.T) {
	t.Parallel()
	g, dir := gate(t)
	g.report(t, filepath.Join(dir, "%p.xml"), "new", "15")
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil || len(files) != 16 {
		t.Fatalf("%d reports, want 16: %v", len(files), err)
	}
	args := append([]string{"-s", g.debug, "--baseline=base"}, files...)
	out, errs, code := g.command(t, dir, append(args, "--baseline-update", "--output=json")...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	type record struct {
		Record, Kind   string
		New            int
		Count, Ordinal int
		Processes      []struct{ Count int }
	}
	findings := 0
	for line := range strings.Lines(out) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		switch r.Record {
		case "changes":
			if r.New != 5 {
				t.Errorf("%d findings are new, want 5", r.New)
			}
		case "finding":
			findings++
			if r.Count != 16 || len(r.Processes) != 16 || r.Ordinal != 1 {
				t.Errorf("%s: %d times in %d processes, number %d; want 16, 16 and 1", r.Kind, r.Count, len(r.Processes), r.Ordinal)
			}
		}
	}
	if findings != 5 {
		t.Errorf("%d findings, want 5:\n%s", findings, out)
	}
	report := readFile(t, files[3])
	if err := os.WriteFile(files[3], []byte(report[:strings.LastIndex(report, "<error>")]), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errs, code = g.command(t, dir, args...)
	want := "1 report cut off, so errors may be missing: " + files[3] + ", new (PID 1)\n"
	if out != "new 0, gone 0, same 5\n" || errs != want || code != 4 {
		t.Errorf("with a report that was cut: exit code %d\n%s%q, want %q", code, out, errs, want)
	}
}

// The gate must pass, whether Valgrind traces the child processes or not.
func TestProgramsThatRunOthersPassGates(t *testing.T) {
	t.Parallel()
	g, dir := gate(t)
	run(t, nil, "gcc", "-g", "-o", filepath.Join(dir, "spawn"), filepath.Join("testdata", "valgrind", "spawn.c"))
	for _, trace := range []string{"no", "yes"} {
		run(t, nil, "valgrind", "-q", "--trace-children="+trace, "--xml=yes", "--xml-file="+filepath.Join(dir, trace+".%p.xml"), filepath.Join(dir, "spawn"))
		files, err := filepath.Glob(filepath.Join(dir, trace+".*.xml"))
		if err != nil || len(files) != 4 {
			t.Errorf("--trace-children=%s: %d reports, want 4: %v", trace, len(files), err)
		}
		if out, errs, code := g.command(t, dir, append([]string{"--gate=all"}, files...)...); code != 0 {
			t.Errorf("--trace-children=%s: exit code %d\n%s%s", trace, code, out, errs)
		}
	}
}
