package valgrind

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/report"
)

// findingsIn returns the findings of a report.
func findingsIn(t *testing.T, xml []byte, o Options) *findings.Collection {
	t.Helper()
	s := findings.New(nil)
	w := newFinder(s, "report.xml", nil, o)
	for len(xml) > 0 { // writes end within records
		n := min(len(xml), 1000)
		if _, err := w.Write(xml[:n]); err != nil {
			t.Fatal(err)
		}
		xml = xml[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// listed returns findings and processes as text.
func listed(s *findings.Collection) string {
	var b strings.Builder
	for i, p := range s.Processes() {
		fmt.Fprintf(&b, "process %d: %s pid %s %q complete %v\n", i, p.Tool, p.PID, p.Command, p.Complete)
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
				fmt.Fprintf(&b, "   %s 0x%x %s (%s) %s:%d:%d %s+0x%x inlined %v\n", own, f.Address, f.Func, f.Linkage, filepath.Base(f.File), f.Line, f.Column, filepath.Base(f.Object), f.Offset, f.Inlined)
			}
		}
	}
	return b.String()
}

// compareFindings compares findings with a golden file; UPDATE=1 writes the file.
func compareFindings(t *testing.T, golden string, s *findings.Collection) {
	t.Helper()
	got := listed(s)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFindingsOfReports(t *testing.T) {
	scripts(t, func(t *testing.T, xml []byte) {
		name := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		compareFindings(t, filepath.Join("testdata", "findings", name+".txt"), findingsIn(t, xml, Options{}))
	})
}

// The findings must have the frames of the JSON report, which another test compares with Valgrind's
// own frames.
func TestFindingsOfStrippedPrograms(t *testing.T) {
	for _, name := range []string{"lines", "names"} {
		t.Run(name, func(t *testing.T) {
			xml, err := os.ReadFile(filepath.Join(recorded, name+".xml"))
			if err != nil {
				t.Fatal(err)
			}
			o, _ := recordedOptions(t)
			o.Ahead = readAhead(t, xml, o)
			compareFindings(t, filepath.Join("testdata", "findings", "recorded_"+name+".txt"), findingsIn(t, xml, o))
		})
	}
}

// Leaks follow the state FINISHED, so a report that ends among the leaks must be incomplete.
func TestCutReportsAreNotComplete(t *testing.T) {
	const begin = "<?xml version=\"1.0\"?>\n<valgrindoutput>\n<protocolversion>4</protocolversion>\n<pid>7</pid><tool>memcheck</tool>\n"
	const finished = "<status><state>FINISHED</state></status>\n"
	const args = "<args><vargv><exe>valgrind</exe></vargv><argv><exe>./a</exe></argv></args>\n"
	const running = "<status><state>RUNNING</state></status>\n"
	const leak = "<error><unique>0x1</unique><kind>Leak_DefinitelyLost</kind><xwhat><text>1 byte</text><leakedbytes>1</leakedbytes></xwhat></error>\n"
	const end = "</valgrindoutput>\n"
	for xml, want := range map[string]string{
		begin + finished + leak + end:            "[true]",
		begin + finished + leak:                  "[false]",
		begin + finished + leak[:40]:             "[false]",
		begin + leak + end:                       "[false]",
		begin:                                    "[false]",
		begin + args:                             "[true]", // a child before exec
		begin + args[:40]:                        "[false]",
		begin + args + running:                   "[false]",
		begin + args + leak:                      "[false]",
		begin + args + running + finished + end:  "[true]",
		begin + finished + end + begin:           "[true false]",
		begin + begin + finished + end:           "[true true]", // a program started by exec
		begin + begin[:50] + finished + end:      "[false true]",
		begin + finished + end + begin + leak:    "[true false]",
		begin + finished + begin + leak + end:    "[true false]",
		begin + finished + leak + end + "\x00":   "[true]",
		begin + finished + leak + end + "stdout": "[true]",
	} {
		var got []bool
		for _, p := range findingsIn(t, []byte(xml), Options{}).Processes() {
			got = append(got, p.Complete)
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%v, want %s:\n%s", got, want, xml)
		}
	}
}

// The traces of a race must be the stacks of both accesses, followed by the stacks that created the
// threads.
func TestThreadsOfARaceAreTraces(t *testing.T) {
	stack := func(ip, fn string) string {
		return "<stack><frame><ip>" + ip + "</ip><obj>/bin/a</obj><fn>" + fn + "</fn></frame></stack>"
	}
	xml := "<?xml version=\"1.0\"?>\n<valgrindoutput>\n<tool>helgrind</tool>\n" +
		"<announcethread><hthreadid>1</hthreadid><isrootthread></isrootthread></announcethread>\n" +
		"<announcethread><hthreadid>2</hthreadid>" + stack("0x10", "start_two") + "</announcethread>\n" +
		"<announcethread><hthreadid>3</hthreadid>" + stack("0x20", "start_three") + "</announcethread>\n" +
		"<error><unique>0x0</unique><tid>3</tid><kind>Race</kind><xwhat><text>Possible data race during read of size 4 at 0x1 by thread #3</text><hthreadid>3</hthreadid></xwhat>" + stack("0x30", "reader") +
		"<xauxwhat><text>This conflicts with a previous write of size 4 by thread #2</text><hthreadid>2</hthreadid></xauxwhat>" + stack("0x40", "writer") +
		"<xauxwhat><text>and thread #3, #1</text><hthreadid>3</hthreadid><hthreadid>1</hthreadid></xauxwhat></error>\n</valgrindoutput>\n"
	all := findingsIn(t, []byte(xml), Options{}).All()
	if len(all) != 1 {
		t.Fatalf("%d findings, want 1", len(all))
	}
	var got []string
	for _, tr := range all[0].Traces {
		got = append(got, tr.Message+": "+tr.Frames[0].Func)
	}
	want := []string{": reader", "This conflicts with a previous write of size 4 by thread #2: writer", "Thread #3 was created: start_three", "Thread #2 was created: start_two"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFindingsOfManyProcessesAreBounded(t *testing.T) {
	const budget, processes = 1 << 20, 20000
	s := findings.New(report.NewBudget(budget, nil))
	w := newFinder(s, "report.xml", nil, Options{}).(*finder)
	for i := range processes {
		fmt.Fprintf(w, "<?xml version=\"1.0\"?>\n<valgrindoutput>\n<pid>%d</pid>\n<args><argv><exe>./a</exe><arg>%s</arg></argv></args>\n%s</valgrindoutput>\n", i, strings.Repeat("x", 1000), errorXML(1, "a"))
		if len(w.runs) > maxNesting+1 || len(w.byPID) > maxProcesses {
			t.Fatalf("%d runs and %d PIDs are kept", len(w.runs), len(w.byPID))
		}
	}
	w.Close()
	kept := 0
	for _, p := range s.Processes() {
		kept += 256
		for _, arg := range p.Command {
			kept += len(arg)
		}
	}
	if kept > budget || s.Left == 0 {
		t.Errorf("%d bytes of %d processes were kept, and %d findings left out", kept, len(s.Processes()), s.Left)
	}
}

func TestLongErrorsAreOneFinding(t *testing.T) {
	fuzztest.WithoutRace(t)
	xml := "<valgrindoutput>\n<error>\n<unique>0x0</unique>\n<kind>K</kind>\n<stack>\n" + strings.Repeat(frameXML, maxItems+1) + "</stack>\n</error>\n</valgrindoutput>\n"
	if all := findingsIn(t, []byte(xml), Options{}).All(); len(all) != 1 || all[0].Kind != "K" {
		t.Errorf("%d findings, want one of the kind K", len(all))
	}
}
