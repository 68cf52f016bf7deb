package bundle

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/logtest"
)

// secrets are words that must not be in a report. They have the forms of tokens, keys, addresses
// and names. Some look like numbers or build IDs.
var secrets = []string{
	"ghp_16C7e42F292c6912E7710c838347Ae178B4a", "alice", "example.com", "hunter2", "transfer_money",
	"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "deadbeefcafe4242", "4929123456789012",
}

// words have the secrets in the forms in which logs contain them.
var words = strings.Fields("token=ghp_16C7e42F292c6912E7710c838347Ae178B4a alice@example.com https://alice:hunter2@example.com/acme?key=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b " +
	"0xdeadbeefcafe4242 [0xdeadbeefcafe4242] (deadbeefcafe4242) 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b 4929123456789012 /home/alice/src/ transfer_money()")

// TestSecretsAroundFrames puts secrets of usual forms before, after and between the frames of the
// logs of all dialects, and into their folders.
func TestSecretsAroundFrames(t *testing.T) {
	lines := 0
	for _, log := range logtest.Samples(t, "../dialect/testdata/*.txtar") {
		log = strings.ReplaceAll(log, "/opt/", "/home/alice/")
		for _, form := range []string{"%[2]s %[1]s", "%[1]s %[2]s", "%[1]s,%[2]s", "%[2]s:%[1]s", "%[1]s\n%[2]s"} {
			got := reportOf(t, withWords(log, form))
			lines += strings.Count(got, "\n")
			for _, secret := range secrets {
				if at := strings.Index(got, secret); at >= 0 {
					line, _, _ := strings.Cut(got[strings.LastIndexByte(got[:at], '\n')+1:], "\n")
					t.Errorf("%q, in a log that begins %.60q: %s is in %s", form, log, secret, line)
				}
			}
		}
	}
	if lines < 2000 {
		t.Errorf("only %d lines were printed", lines)
	}
}

// withWords formats each line of log together with one of the secret words. form is the format of a
// line and a word.
func withWords(log, form string) string {
	var b strings.Builder
	n := 0
	for line := range strings.Lines(log) {
		fmt.Fprintf(&b, form+"\n", strings.TrimSuffix(line, "\n"), words[n%len(words)])
		n++
	}
	return b.String()
}

// TestReportsAreBounded checks that a report fits into a comment on GitHub, whatever the log and
// the doctor print. The report must still have lines of the log.
func TestReportsAreBounded(t *testing.T) {
	var l Log
	f := filter.New(io.Discard, filter.Options{Printer: &l})
	for i := range 3000 {
		fmt.Fprintf(f, "{{{module:%d:%s%d:elf:%040x}}}\n{{{mmap:0x%x:0x1000:load:%d:rx:0x0}}}\n", i, strings.Repeat("n", 50), i, i+1, 0x10000*(i+1), i)
		fmt.Fprintf(f, "%s {{{pc:0x%x}}} %[1]s\n", strings.Repeat("text ", 1000), 0x10000*(i+1))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r := NewRedactor(&b, "/home/alice", nil)
	for range 3000 {
		fmt.Fprintf(r, "  BAD  %s: no debug file\n", strings.Repeat("module ", 200))
	}
	l.PrintTo(r)
	got := b.String()
	if len(got) > maxReport {
		t.Errorf("%d bytes, want at most %d", len(got), maxReport)
	}
	for _, want := range []string{"more lines of symfilter doctor\n", " ... (cut)\n", "\n  9: (cut) ... xx", "\n(the rest is left out)\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q", want)
		}
	}
}

// If a long text precedes a frame in its line, the report must print the part of the line with the
// frame.
func TestFramesAfterLongTexts(t *testing.T) {
	got := reportOf(t, strings.Repeat("alice ", 100)+"#1 0x7f31c2a01153  (/home/alice/libpay.so+0xfa6) (BuildId: 3a0a920c3f1b7c57)\n")
	if !strings.Contains(got, "xxxxx #1 0x7f31c2a01153  (/xxxx/xxxxx/libpay.so+0xfa6) (BuildId: 3a0a920c3f1b7c57)\n") {
		t.Errorf("the frame is not in\n%s", got)
	}
}
