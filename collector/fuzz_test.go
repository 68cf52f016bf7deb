package collector

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/symfilter/symfilter/collector/internal/conformance"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A log split into records at random lines must give the output of a Filter for the whole log. A
// log with markup may be in any batches. A log with raw backtraces must be in one batch.
func FuzzSplitIntoRecords(f *testing.F) {
	for i, name := range logs {
		f.Add([]byte(strings.Join(linesOf(f, name), "\n")), uint64(i))
	}
	f.Add([]byte("{{{module:0:a:elf:aa00}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{hexdict: A: 1\nB: 2\n}}}\n\n{{{pc:0x1004}}} 0x1 \n{{{reset}}}"), uint64(9))
	f.Add([]byte(" 0x1\n\n\n{{{hexdict: A: 0x1\n 0x2\n}}} x\r\n#0 0x1 (a+0x1) (BuildId: aa00)\n"), uint64(5))
	one := startBare(f, testConfig())
	reference := newReference(f, testConfig())
	f.Fuzz(func(t *testing.T, log []byte, seed uint64) {
		defer fuzztest.Watch(t, log)()
		checkSplit(t, one, reference, log, seed)
	})
}

// checkSplit splits a log into records, and compares the processor's output with the output of a
// Filter.
func checkSplit(t *testing.T, one *logsProcessor, reference func(string) string, log []byte, seed uint64) {
	t.Helper()
	if len(log) > 64<<10 || !utf8.Valid(log) {
		return
	}
	log = bytes.TrimSuffix(log, []byte("\n"))
	g := rand.New(rand.NewPCG(seed, 1))
	var records []string
	for rest := string(log); ; {
		n := len(rest)
		for i := range 1 + g.IntN(3) {
			if end := strings.IndexByte(rest[min(i, len(rest)):], '\n'); end >= 0 {
				n = min(i, len(rest)) + end
				if g.IntN(2) == 0 {
					break
				}
			}
		}
		records = append(records, rest[:n])
		if n == len(rest) {
			break
		}
		rest = rest[n+1:]
	}
	want := reference(string(log) + "\n")
	one.contexts.forgetAll()
	whole := batchOf("a", records...)
	raw := false
	one.do(whole)
	for _, r := range records {
		var s scan
		s.add([]byte(r))
		s.search()
		if s.marks[0] != noMark {
			is, _ := kinds([]byte(r), int(s.marks[0]))
			raw = raw || is
		}
	}
	if diff := cmp.Diff(want, bodiesOf(whole)); diff != "" {
		t.Fatalf("%d records (-filter +processor):\n%s", len(records), diff)
	}
	if raw {
		return
	}
	one.contexts.forgetAll()
	var got strings.Builder
	for len(records) > 0 {
		n := 1 + g.IntN(min(8, len(records)))
		ld := batchOf("a", records[:n]...)
		one.do(ld)
		got.WriteString(bodiesOf(ld))
		records = records[n:]
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Fatalf("in batches (-filter +processor):\n%s", diff)
	}
}

// Logs with random faults, split into records, must give the output of a Filter. This test needs no
// fuzzer.
func TestSplitIntoRecordsWithFaults(t *testing.T) {
	one, reference := startBare(t, testConfig()), newReference(t, testConfig())
	g := rand.New(rand.NewPCG(3, 4))
	for i := range 300 {
		log := []byte(strings.Join(linesOf(t, logs[i%len(logs)]), "\n"))
		for range 1 + g.IntN(10) {
			log[g.IntN(len(log))] = " 0x{}:\nab1"[g.IntN(10)]
		}
		checkSplit(t, one, reference, log, uint64(i))
		if t.Failed() {
			return
		}
	}
}

func (c *contexts) forgetAll() {
	c.close()
}

func bodiesOf(ld plog.Logs) string {
	var text strings.Builder
	for _, lr := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		text.WriteString(lr.Body().Str() + "\n")
	}
	return text.String()
}

// checkFuzzed reports rules of OTLP that a profile violates only after it was named. Names replace
// lines without a function name. So functions may become unused, and locations may become equal:
// these violations are ignored.
func checkFuzzed(t *testing.T, before, after pprofile.Profiles) {
	t.Helper()
	had := make(map[string]bool)
	for _, v := range conformance.Check(before) {
		had[v] = true
	}
	for _, v := range conformance.Check(after) {
		if !had[v] && !strings.HasPrefix(v, "nothing refers to function") && !strings.Contains(v, " is location ") {
			t.Fatalf("new violation: %s", v)
		}
	}
}
