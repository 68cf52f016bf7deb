//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/valgrind"
)

// addedLine matches lines that --output=valgrind adds to a report: names, and whole frames.
var addedLine = regexp.MustCompile(`^ *(</?frame>|<ip>0x[0-9A-F]+</ip>|<obj>.*</obj>|<fn>.*</fn>|<dir>.*</dir>|<file>.*</file>|<line>\d+</line>)$`)

// checkXML compares the report of a stripped program, the file called name, with the XML that
// symfilter prints for it. Each printed document must be well-formed and have the records of the
// report. If the report was already well-formed, the documents may only add lines to it. full holds
// the debug file.
func checkXML(t *testing.T, name, full string) {
	t.Helper()
	need(t, "xmllint")
	report, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "documents") + "/"
	again := run(t, nil, command, "-q", "--output=valgrind", "--output=valgrind:"+dir, "-s", full, name)
	files, err := filepath.Glob(dir + "*.named.xml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d documents, %v", len(files), err)
	}
	run(t, nil, "xmllint", append([]string{"--noout"}, files...)...)
	if n := strings.Count(again, "<?xml"); n != len(files) {
		t.Errorf("%d documents in one file, %d in files of their own", n, len(files))
	}
	if len(files) == 1 {
		if content := fileText(t, files[0]); content != again {
			t.Errorf("the document in a folder is not that of standard output")
		}
	}
	compareAgain(t, report, []byte(again))
	if _, err := producers.combined(t, exec.Command("xmllint", "--noout", name)); err != nil {
		return
	}
	want := strings.Split(strings.TrimRight(string(report), "\n"), "\n")
	added := 0
	for line := range strings.SplitSeq(strings.TrimRight(again, "\n"), "\n") {
		if len(want) > 0 && line == want[0] {
			want = want[1:]
			continue
		}
		if !addedLine.MatchString(line) {
			t.Fatalf("the line %q was added", line)
		}
		added++
	}
	if len(want) > 0 {
		t.Errorf("%q and %d more lines are missing", want[0], len(want)-1)
	}
	if added == 0 {
		t.Error("nothing was added")
	}
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// compareAgain fails the test unless two reports have the same records. The second report may have
// more names, and additional frames with the address of the frame after them.
func compareAgain(t *testing.T, before, after []byte) {
	t.Helper()
	want, got := recordsOf(before), recordsOf(after)
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("record %d: got\n%s\nwant\n%s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
}

// controls matches the control characters that XML cannot contain.
var controls = regexp.MustCompile(`[\x00-\x08\x0b\x0c\x0e-\x1f]`)

// recordsOf returns the records of a report as text. For a frame, the text has only the address and
// the object. Successive frames with the same address appear once.
func recordsOf(report []byte) (all []string) {
	r := valgrind.NewReader(func(rec *valgrind.Record) error {
		if strings.HasSuffix(rec.Name, "valgrindoutput") || rec.Name == "" && rec.Text == nil {
			return nil
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s %q\n", rec.Name, rec.Text)
		for _, it := range rec.Items {
			text := it.Text
			if it.Name == "" {
				text = bytes.TrimSpace(text)
			}
			fmt.Fprintf(&b, "%d %s %v %s\n", it.Depth, it.Name, it.Leaf, controls.ReplaceAllStringFunc(string(text), func(s string) string { return fmt.Sprintf(`\x%02x`, s[0]) }))
			last := ""
			for _, f := range rec.Frames[it.First:it.Last] {
				if at := fmt.Sprintf("  %#x %q %s\n", f.IP, f.RawIP, f.Obj); at != last {
					b.WriteString(at)
					last = at
				}
			}
		}
		all = append(all, b.String())
		return nil
	})
	r.Write(report)
	r.Close()
	return all
}

// An again describes a run of Valgrind: the build of the program, the tool and its options.
// symfilter then reads the run's report and prints it as XML.
type again struct {
	name  string
	build []string
	from  string
	tool  []string
	args  []string
}

// agains returns runs in addition to the twins: runs of every tool, with options that change the
// XML.
func agains() (all []again) {
	builds := []struct {
		name string
		argv []string
		from string
	}{
		{"c_O0", with(gcc, "-O0"), "mem.c"}, {"c_O2", with(gcc, "-O2"), "mem.c"},
		{"cpp_O1", with(gxx, "-O1"), "race.cpp"}, {"cpp_clang", []string{"clang++-19", "-gdwarf-4", "-O2", "-pthread"}, "race.cpp"},
	}
	options := []struct {
		name string
		tool []string
	}{
		{"leaks", []string{"--leak-check=full", "--show-leak-kinds=all", "--track-origins=yes"}},
		{"comment", []string{"--xml-user-comment=<a>&</b> ]]>"}},
		{"suppressions", []string{"--gen-suppressions=all", "--leak-check=full"}},
		{"callers", []string{"--num-callers=2", "--leak-check=summary"}},
		{"helgrind", []string{"--tool=helgrind", "--history-level=full"}},
		{"helgrind_suppressions", []string{"--tool=helgrind", "--gen-suppressions=all"}},
		{"drd", []string{"--tool=drd", "--show-confl-seg=yes"}},
		{"drd_traces", []string{"--tool=drd", "--trace-mutex=yes", "--trace-fork-join=yes"}},
		{"below_main", []string{"--show-below-main=yes"}},
	}
	for _, b := range builds {
		for _, o := range options {
			a := again{name: b.name + "_" + o.name, build: b.argv, from: b.from, tool: o.tool}
			if b.from == "mem.c" {
				a.args = []string{"rRlupsdmtfr"}
			}
			all = append(all, a)
		}
	}
	for i, args := range []string{"re", "rfR", "k", "rt"} { // exec, fork, killed, a thread with the name <&
		all = append(all, again{name: "end_" + args, build: builds[i%2].argv, from: "mem.c", tool: []string{"--trace-children=yes"}, args: []string{args}})
	}
	return all
}

// symfilter must print the reports of all these runs as XML. With the reports of the twins, there
// must be at least 60.
func TestReportsAreWrittenAgain(t *testing.T) {
	if !long() {
		t.Skip("TEST_LONG: the reports of twins are enough")
	}
	need(t, "valgrind", "gcc", "g++", "clang-19", "strip", "xmllint")
	source := filepath.Join(checkout, "integration", "testdata", "valgrind")
	dir := t.TempDir()
	built := map[string]bool{}
	all := agains()
	if n := len(all) + len(twins); n < 60 {
		t.Errorf("%d reports with those of twins, want 60", n)
	}
	for _, a := range all {
		key := strings.Join(a.build, " ") + a.from
		full := filepath.Join(dir, regexp.MustCompile(`\W`).ReplaceAllString(key, "_"))
		if !built[key] {
			built[key] = true
			if err := os.MkdirAll(filepath.Join(full, "bare"), 0o755); err != nil {
				t.Fatal(err)
			}
			prog := filepath.Join(full, "prog")
			run(t, nil, a.build[0], append(slices.Clone(a.build[1:]), "-Wl,--build-id", "-o", prog, filepath.Join(source, a.from))...)
			run(t, nil, "strip", "-o", filepath.Join(full, "bare", "prog"), prog)
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "report.xml")
			args := append([]string{"--xml=yes", "--xml-file=" + name}, a.tool...)
			cmd := exec.Command("valgrind", append(append(args, filepath.Join(full, "bare", "prog")), a.args...)...)
			cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
			if out, err := producers.combined(t, cmd); cmd.ProcessState == nil {
				t.Fatalf("valgrind: %v\n%s", err, out)
			}
			checkXML(t, name, filepath.Join(full, "prog"))
		})
	}
}
