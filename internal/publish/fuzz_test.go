package publish

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/symbolize"
)

// fuzzed returns a result made from the NUL-separated fields of data.
func fuzzed(data string) *Result {
	fields := strings.Split(data, "\x00")
	next := func() string {
		if len(fields) == 0 {
			return ""
		}
		f := fields[0]
		fields = fields[1:]
		return f
	}
	r := &Result{Collection: findings.New(nil), Base: next(), Version: next()}
	r.SARIF.Category = next()
	text := []byte(next())
	r.Text = func(string) []byte { return text }
	var entries []gate.Entry
	for len(fields) > 0 {
		head := next()
		bit := func(n int) bool { return len(head) > n/8 && head[n/8]>>(n%8)&1 == 1 }
		p := r.Begin(findings.Process{
			Input: next(), Source: findings.Source(next()), Tool: next(), Command: strings.Split(next(), " "), PID: next(), Complete: bit(0),
		})
		for range 1 + len(head)%3 {
			x := &findings.Finding{Source: findings.FromLog, Tool: next(), Kind: next(), Message: next(), Memory: findings.Memory(len(head) % 4), Detail: []string{next()}}
			for i := range len(head) % 4 {
				tr := findings.Trace{Role: findings.Role(i), Message: next()}
				for k := range len(head) % 5 {
					tr.Frames = append(tr.Frames, &findings.TraceFrame{
						Frame:  symbolize.Frame{Func: next(), Linkage: next(), File: next(), Line: uint32(len(head)), Column: uint32(k), HasLine: bit(1 + k)},
						Object: next(), Offset: uint64(k),
					})
				}
				x.Traces = append(x.Traces, tr)
			}
			x.Identify(nil)
			if x = r.Add(p, x, 1); x != nil && bit(6) {
				entries = append(entries, gate.Entry{Fingerprint: x.Fingerprint})
			}
		}
		if bit(7) {
			r.Left++
			r.Empty = append(r.Empty, next())
		}
	}
	if entries != nil {
		r.Changes = gate.Compare(r.Collection, entries, time.Time{})
	}
	return r
}

func FuzzPublish(f *testing.F) {
	f.Add("/src\x00v1\x00nightly\x00a\nb\x00\xff\x7f\x00a.xml\x00valgrind\x00memcheck\x00./a -v\x007\x00memcheck\x00InvalidRead\x00Invalid read\x00Address 0x5 is here\x00f\x00f\x00/src/a.c\x00/opt/a")
	f.Add(strings.Repeat("\x00]]>&<\"'\x1b\u202e\ufffe\uffff[](1){0}\xff", 200))
	f.Add(strings.Repeat("abcd\x00../../a b#?%:\\", 100))
	f.Add(strings.Repeat("\xff\xffgit://x/y\x00C:\\a\x00", 100))
	f.Fuzz(func(t *testing.T, data string) {
		if len(data) > 4<<10 { // validation compares each rule with all others
			return
		}
		defer fuzztest.Watch(t, data)()
		for i := range 4 {
			r := fuzzed(data)
			r.JUnit = JUnitOptions{ByFinding: i&1 == 1, Strict: i&2 == 2}
			r.SARIF.LineHash = i&1 == 1
			readJUnit(t, r)
			if i > 1 {
				continue
			}
			text := printed(t, SARIF, r)
			for _, c := range text {
				if c != '\n' && (c < ' ' || c == 0x7f || c == '\u202e') {
					t.Fatalf("character %q in:\n%s", c, text)
				}
			}
			checkSARIF(t, text)
			log := new(sarifLog)
			if err := json.Unmarshal([]byte(text), log); err != nil {
				t.Fatal(err)
			}
			checkGitHub(t, log)
			readCodeQuality(t, r)
			if got, want := len(log.allResults()), len(r.All()); got < want && len(log.Runs) < maxTools {
				t.Errorf("%d results of %d findings: %s", got, want, fmt.Sprint(log.notices()))
			}
		}
	})
}
