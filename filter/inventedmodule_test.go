package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/symbolize"
)

// answersIn returns the function, file and line of all answers for a log.
func answersIn(t *testing.T, o Options, log string) (all []string) {
	t.Helper()
	o.Output, o.Dialects.Whole = JSON, true
	objects, _ := filterString(t, o, log, nil)
	for line := range strings.Lines(objects) {
		var object struct {
			Elements []struct {
				Frames []struct {
					Function, File string
					Line           int
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, e := range object.Elements {
			for _, f := range e.Frames {
				all = append(all, fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
			}
		}
	}
	return all
}

// scriptLogs returns the logs in testdata/script.
func scriptLogs(t *testing.T) (logs []string) {
	t.Helper()
	for _, archive := range logtest.Archives(t, "testdata/script/*.txtar") {
		for _, file := range archive.Files {
			if file.Name == "in" {
				logs = append(logs, string(file.Data))
			}
		}
	}
	return logs
}

// With Dialects.Elements, a log without a located frame must be printed unchanged, in any chunking.
func TestMarkupPassesAsItIs(t *testing.T) {
	none := symbolize.New(symbolize.Options{})
	defer none.Close()
	for _, log := range append(scriptLogs(t), strings.Repeat("{", 99)+"\r\nreset {{{reset:a}}}") {
		for _, d := range []Dialects{{None: true}, {NoPaths: true, Whole: true, Only: []string{"glibc"}}} {
			d.Elements = true
			got, diagnostics := filterString(t, Options{Symbolizer: none, Dialects: d}, log, rand.New(rand.NewPCG(1, 2)))
			if diff := cmp.Diff(log, got); diff != "" || diagnostics != "" {
				t.Errorf("%s\n(-log +out)\n%s", diagnostics, diff)
			}
		}
	}
}

// The markup made from a log with raw backtraces must get the same answers as the log.
func TestMarkupOfBacktracesHasTheirAnswers(t *testing.T) {
	logs := logtest.Samples(t, "../internal/dialect/testdata/*.txtar")
	for _, log := range scriptLogs(t) {
		if !strings.Contains(log, "{{{") {
			logs = append(logs, log)
		}
	}
	for _, log := range logs {
		logs = append(logs, strings.ReplaceAll(log, "c3f1b7c55", "a0a1a2a3a4a5a6a7"))
	}
	answers := 0
	for _, log := range logs {
		o := resolvingDialects(t)
		want := answersIn(t, o, log)
		answers += len(want)
		o.Dialects.Elements, o.Dialects.Whole = true, true
		made, _ := filterString(t, o, log, nil)
		o.Dialects.Elements = false
		if diff := cmp.Diff(want, answersIn(t, o, made)); diff != "" {
			t.Errorf("the log (-), its markup (+):\n%s\n%s", diff, made)
		}
	}
	if answers < 20 {
		t.Errorf("only %d answers", answers)
	}
}

// Elements in the log must be printed unchanged. After a reset, the made-up modules must be printed
// again, numbered from the start. A Filter that continues after a restart must use other numbers.
func TestMadeModulesAndTheLogsOwn(t *testing.T) {
	const (
		frame  = "a #1 0x55d01234018d  (/opt/a.out+0x40018d) (BuildId: a0a1)\n"
		module = "{{{module:%d:/opt/a.out:elf:a0a1}}}{{{mmap:0xfff%013x:0x8000000000:load:%[1]d:rx:0x00}}}\n"
		bt     = "a {{{bt:1:0xfff%013x:pc}}}\n"
		kept   = "{{{module:0:b:elf:a1}}} {{{mmap:0x1000:0x1000:load:0:rx:0}}}\n\x1b[1mx {{{pc:0x1000}}} {{{ {{{bt:0}}}\n" +
			"{{{hexdict:a = 0x1\n #1 0x55d01234018d  (/opt/a.out+0x40018d) (BuildId: a0a1)\n}}}\n"
	)
	o := Options{Symbolizer: testSymbolizer(t), Dialects: Dialects{Elements: true}}
	var out strings.Builder
	f := New(&out, o)
	write := func(s string) {
		if _, err := f.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write(frame + kept + frame + "b {{{reset}}}\n" + frame)
	context := f.AppendContext(nil)
	f = New(&out, o)
	if err := f.Restore(context); err != nil {
		t.Fatal(err)
	}
	write(frame)
	first, second := fmt.Sprintf(module, uint64(inventedID), 0), fmt.Sprintf(module, uint64(inventedID+1), uint64(inventedSize))
	at := fmt.Sprintf(bt, 0x40018d)
	want := first + at + kept + at + "b {{{reset}}}\n" + first + at + second + fmt.Sprintf(bt, uint64(inventedSize+0x40018d))
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// FuzzMade checks for every log without markup: the markup made from its raw backtraces keeps the
// text around them, has no fault, and gets the answers of the log. For the samples, a second run
// does not change the markup.
func FuzzMade(f *testing.F) {
	samples := make(map[string]bool)
	for _, log := range logtest.Samples(f, "../internal/dialect/testdata/*.txtar") {
		samples[log] = true
		f.Add([]byte(log), byte(0))
		f.Add([]byte(strings.ReplaceAll(log, "c3f1b7c55", "a0a1a2a3a4a5a6a7")), byte(1))
	}
	resolving := resolvingDialects(f)
	resolving.Dialects.Whole = true // a slow machine must not end a trace
	f.Fuzz(func(t *testing.T, log []byte, mode byte) {
		if len(log) > 64<<10 || bytes.Contains(log, markupOpen) {
			return
		}
		defer fuzztest.Watch(t, log)()
		o := resolving
		o.Dialects.Elements, o.Dialects.KeepRaw = true, mode&1 != 0
		made, _ := filterString(t, o, string(log), nil)
		if cut, _ := filterString(t, o, string(log), rand.New(rand.NewPCG(uint64(mode), 7))); cut != made {
			t.Fatalf("blocks change what comes out:\n%s", cmp.Diff(cut, made))
		}
		// A line with an element is no longer evidence for the trace around it. So if one line or
		// trace has frames of several dialects, a second run may make other markup.
		if twice, _ := filterString(t, o, made, nil); samples[string(log)] && twice != made {
			t.Fatalf("the markup changes:\n%s", cmp.Diff(made, twice))
		}
		wantText(t, string(log), made)
		if _, diagnostics := filterString(t, resolving, made, nil); diagnostics != "" {
			t.Fatalf("%s in\n%s", diagnostics, made)
		}
		if diff := cmp.Diff(answersIn(t, resolving, string(log)), answersIn(t, resolving, made)); diff != "" {
			t.Fatalf("the log (-), its markup (+):\n%s\n%s", diff, made)
		}
		fuzztest.Growth(t, log, func(log []byte) {
			f := New(io.Discard, o)
			f.Write(log)
			f.Close()
		})
	})
}

var (
	madeModuleLine = regexp.MustCompile(`^\{\{\{module:\d+:[^\n]*:elf:[0-9a-f]+\}\}\}\{\{\{mmap:0xfff[0-9a-f]{13}:0x8000000000:load:\d+:rx:0x00\}\}\}\r?\n$`)
	madePC         = regexp.MustCompile(` \{\{\{pc:0xfff[0-9a-f]{13}:pc\}\}\}`)
	madeBT         = regexp.MustCompile(`\{\{\{bt:\d+:0xfff[0-9a-f]{13}:pc\}\}\}`)
	madeNote       = regexp.MustCompile(`  (#\d+(?: \{\{\{pc:[^}]*\}\}\})?|[^ ]+: \{\{\{pc:[^}]*\}\}\})\r?\n?$`) // on its own line
)

// wantText fails the test unless made has the lines of log, in order. In these lines, elements may
// be added or replace text. Added lines may hold only modules or footnotes.
func wantText(t *testing.T, log, made string) {
	t.Helper()
	lines := slices.Collect(strings.Lines(log))
	for line := range strings.Lines(made) {
		if len(lines) > 0 {
			if line := strings.TrimSuffix(line, "\n"); madePC.ReplaceAllString(line, "") == lines[0] {
				lines = lines[1:] // the last line has no end, so its element is on the next
				continue
			}
			bt := madeBT.FindStringIndex(line)
			if madePC.ReplaceAllString(line, "") == lines[0] || bt != nil && strings.HasPrefix(lines[0], line[:bt[0]]) && strings.HasSuffix(lines[0], line[bt[1]:]) {
				lines = lines[1:]
				continue
			}
		}
		if !madeModuleLine.MatchString(line) && !madeNote.MatchString(line) {
			t.Fatalf("%q is neither of the log nor of an element; the log has %.1q", line, lines)
		}
	}
	if len(lines) > 0 {
		t.Fatalf("missing: %.1q in\n%s", lines, made)
	}
}
