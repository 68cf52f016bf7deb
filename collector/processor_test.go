package collector

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/collector/internal/metadata"
	"github.com/symfilter/symfilter/filter"
)

const debugFiles = "../testdata/debug"

// testConfig returns the default configuration with the repository's debug files.
func testConfig() *Config {
	c := createDefaultConfig().(*Config)
	c.Symbols.DebugFileDirectories = []string{debugFiles}
	c.Patience.Local = 10 * time.Second
	return c
}

// linesOf returns the lines of a log of the repository.
func linesOf(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// start starts a processor, which is shut down at the end of the test.
func start(t testing.TB, c *Config, host component.Host) (processor.Logs, *consumertest.LogsSink) {
	t.Helper()
	sink := new(consumertest.LogsSink)
	p, err := NewFactory().CreateLogs(context.Background(), processortest.NewNopSettings(metadata.Type), c, sink)
	if err != nil {
		t.Fatal(err)
	}
	if host == nil {
		host = componenttest.NewNopHost()
	}
	if err := p.Start(context.Background(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return p, sink
}

// batchOf returns records of a process with the given bodies.
func batchOf(process string, bodies ...string) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.instance.id", process)
	records := rl.ScopeLogs().AppendEmpty().LogRecords()
	for _, body := range bodies {
		records.AppendEmpty().Body().SetStr(body)
	}
	return ld
}

func consume(t testing.TB, p processor.Logs, ld plog.Logs) {
	t.Helper()
	if err := p.ConsumeLogs(context.Background(), ld); err != nil {
		t.Fatal(err)
	}
}

// recordsOf returns all records in a sink, in order.
func recordsOf(sink *consumertest.LogsSink) (all []plog.LogRecord) {
	for _, ld := range sink.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, lr := range sl.LogRecords().All() {
					all = append(all, lr)
				}
			}
		}
	}
	return all
}

// textOf returns the bodies of all records in a sink, one a line.
func textOf(sink *consumertest.LogsSink) string {
	var text strings.Builder
	for _, lr := range recordsOf(sink) {
		text.WriteString(lr.Body().Str() + "\n")
	}
	return text.String()
}

// filtered returns the output of a Filter for a whole log, with the options of c.
func filtered(t testing.TB, c *Config, log string) string {
	t.Helper()
	return newReference(t, c)(log)
}

// newReference returns a function that filters a whole log with the options of c. Debug files stay
// open between its calls.
func newReference(t testing.TB, c *Config) func(log string) string {
	t.Helper()
	o := symfilter.Symbols{DebugDirs: c.Symbols.DebugFileDirectories, NoDefaultDebugDirs: true, NoPaths: !c.Symbols.ModulePaths, NoCache: true}
	opened, err := o.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return func(log string) string {
		var out strings.Builder
		f := filter.New(&out, filter.Options{
			Symbolizer:  opened.Symbolizer,
			Cache:       opened.Cache,
			ModuleLines: filter.ModuleLinesRaw,
			Patience:    filter.Patience{Local: 10 * time.Second},
			Dialects:    filter.Dialects{NoPaths: !c.Symbols.ModulePaths, Whole: true, Complete: opened.Complete},
		})
		f.Write([]byte(log))
		f.Close()
		return out.String()
	}
}

var logs = []string{"crash.log", "asan.log", "clang-crash.log"}

// Records with one line each, in batches of any size, must give the output of a Filter. So must one
// record with the whole log.
func TestRecordsHaveTheOutputOfAFilter(t *testing.T) {
	for _, name := range logs {
		lines := linesOf(t, name)
		want := filtered(t, testConfig(), strings.Join(lines, "\n")+"\n")
		for _, size := range []int{1, 7, len(lines)} {
			if name != "crash.log" && size < len(lines) {
				// frames without build IDs need the other frames of their trace in the batch
				continue
			}
			p, sink := start(t, testConfig(), nil)
			for i := 0; i < len(lines); i += size {
				consume(t, p, batchOf("a", lines[i:min(i+size, len(lines))]...))
			}
			if diff := cmp.Diff(want, textOf(sink)); diff != "" {
				t.Errorf("%s, %d records in a batch (-filter +processor):\n%s", name, size, diff)
			}
		}
		p, sink := start(t, testConfig(), nil)
		consume(t, p, batchOf("a", strings.Join(lines, "\n")))
		if diff := cmp.Diff(want, textOf(sink)); diff != "" {
			t.Errorf("%s, one record (-filter +processor):\n%s", name, diff)
		}
	}
	if got := filtered(t, testConfig(), strings.Join(linesOf(t, "crash.log"), "\n")); !strings.Contains(got, "ledger.cc:27:16") {
		t.Errorf("nothing is resolved:\n%s", got)
	}
}

// Text bodies, the first configured field that is a string, and configured attributes must be
// filtered. Bytes, other fields and other attributes must stay unchanged.
func TestFieldsAndAttributes(t *testing.T) {
	const frame, named = "{{{bt:0:0x00007ffff7fbd917:pc}}}", "ledger.cc:27:16"
	head := linesOf(t, "crash.log")[4:32]
	for _, test := range []struct {
		name string
		set  func(lr plog.LogRecord)
		get  func(lr plog.LogRecord) string
		want bool
	}{
		{"body", func(lr plog.LogRecord) { lr.Body().SetStr(frame) }, func(lr plog.LogRecord) string { return lr.Body().Str() }, true},
		{"field", func(lr plog.LogRecord) { lr.Body().SetEmptyMap().PutStr("log", frame) }, func(lr plog.LogRecord) string { return get(lr.Body().Map(), "log") }, true},
		{"other field", func(lr plog.LogRecord) { lr.Body().SetEmptyMap().PutStr("user", frame) }, func(lr plog.LogRecord) string { return get(lr.Body().Map(), "user") }, false},
		{"the first field that is a string", func(lr plog.LogRecord) {
			m := lr.Body().SetEmptyMap()
			m.PutInt("message", 1)
			m.PutStr("log", frame)
			m.PutStr("MESSAGE", "x")
		}, func(lr plog.LogRecord) string { return get(lr.Body().Map(), "log") }, true},
		{"bytes", func(lr plog.LogRecord) { lr.Body().SetEmptyBytes().FromRaw([]byte(frame)) }, func(lr plog.LogRecord) string { return lr.Body().AsString() }, false},
		{"stack trace", func(lr plog.LogRecord) { lr.Attributes().PutStr("exception.stacktrace", "at\n"+frame) }, func(lr plog.LogRecord) string { return get(lr.Attributes(), "exception.stacktrace") }, true},
		{"other attribute", func(lr plog.LogRecord) { lr.Attributes().PutStr("note", frame) }, func(lr plog.LogRecord) string { return get(lr.Attributes(), "note") }, false},
	} {
		p, sink := start(t, testConfig(), nil)
		consume(t, p, batchOf("a", head...))
		ld := batchOf("a", "")
		test.set(ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0))
		consume(t, p, ld)
		all := recordsOf(sink)
		if got := test.get(all[len(all)-1]); strings.Contains(got, named) != test.want {
			t.Errorf("%s: %q", test.name, got)
		}
	}
}

func get(m pcommon.Map, name string) string {
	if v, ok := m.Get(name); ok {
		return v.AsString()
	}
	return ""
}

// A stack trace that begins with a reset must have its own modules, and must not change the modules
// of the process.
func TestStackTraceWithItsOwnModules(t *testing.T) {
	lines := linesOf(t, "crash.log")
	head, frame := lines[4:32], lines[33]
	p, sink := start(t, testConfig(), nil)
	consume(t, p, batchOf("a", head...))
	ld := batchOf("a", frame, frame, frame)
	records := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords()
	records.At(1).Attributes().PutStr("exception.stacktrace", "{{{reset}}}"+frame)
	records.At(2).Attributes().PutStr("exception.stacktrace", strings.Join(head, "\n")+"\n"+frame)
	consume(t, p, ld)
	all := recordsOf(sink)[len(head):]
	for i, want := range []string{"", "#0 0x7ffff7fbd917 (no module)", "ledger.cc:27:16"} {
		if got := all[i].Body().Str(); !strings.Contains(got, "ledger.cc:27:16") {
			t.Errorf("record %d: %q", i, got)
		}
		if got := get(all[i].Attributes(), "exception.stacktrace"); !strings.Contains(got, want) {
			t.Errorf("the trace of record %d: %q, want %q in it", i, got, want)
		}
	}
}

// Processes in one batch, and in concurrent batches, must not get each other's modules.
func TestProcessesAreKeptApart(t *testing.T) {
	lines := linesOf(t, "crash.log")
	want := filtered(t, testConfig(), strings.Join(lines, "\n")+"\n")
	p, sink := start(t, testConfig(), nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for _, line := range lines {
				ld := batchOf(fmt.Sprint(i), line)
				batchOf(fmt.Sprint(i+16), line).ResourceLogs().MoveAndAppendTo(ld.ResourceLogs())
				consume(t, p, ld)
			}
		})
	}
	all.Wait()
	got := map[string]*strings.Builder{}
	for _, ld := range sink.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			process := get(rl.Resource().Attributes(), "service.instance.id")
			if got[process] == nil {
				got[process] = new(strings.Builder)
			}
			got[process].WriteString(rl.ScopeLogs().At(0).LogRecords().At(0).Body().Str() + "\n")
		}
	}
	if len(got) != 32 {
		t.Errorf("%d processes, want 32", len(got))
	}
	for process, text := range got {
		if diff := cmp.Diff(want, text.String()); diff != "" {
			t.Errorf("process %s (-filter +processor):\n%s", process, diff)
		}
	}
}

// A hexdict that spans several records must be resolved, even if records of other processes are
// between them.
func TestHexDictOverSeveralRecords(t *testing.T) {
	head := linesOf(t, "crash.log")[4:32]
	for _, test := range []struct {
		name     string
		together bool
	}{{"a", true}, {"a", false}, {strings.Repeat("a", 2*maxKey), false}} {
		name, together := test.name, test.together
		p, sink := start(t, testConfig(), nil)
		consume(t, p, batchOf(name, head...))
		all := []plog.Logs{batchOf(name, "{{{hexdict: A: 1"), batchOf("b", "B: 2"), batchOf(name, "PC: 0x7ffff7fbd917"), batchOf(name, "}}}"), batchOf(name, "plain")}
		if together {
			for _, ld := range all[1:] {
				ld.ResourceLogs().MoveAndAppendTo(all[0].ResourceLogs())
			}
			all = all[:1]
		}
		for _, ld := range all {
			consume(t, p, ld)
		}
		got := textOf(sink)
		got = got[strings.Index(got, "{{{hexdict"):]
		if !strings.Contains(got, "ledger.cc:27") || !strings.HasSuffix(got, "\nplain\n") {
			t.Errorf("%d bytes of key, together %t:\n%s", len(name), together, got)
		}
	}
}
