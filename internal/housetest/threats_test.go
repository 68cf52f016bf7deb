package housetest

import (
	"strconv"
	"strings"
	"testing"
)

// Each of the 34 threats of ARCHITECTURE.md, numbered without a gap, names a test, a script or a
// make target in its last column.
func TestEveryThreatNamesItsTest(t *testing.T) {
	const threats = 34
	_, section, found := strings.Cut(string(read(t, "ARCHITECTURE.md")), "\n### The threats, one by one\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no table of threats")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows := 0
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !tableRow.MatchString(line) || len(cells) != 4 || cells[0] == "#" {
			continue
		}
		rows++
		if cells[0] != strconv.Itoa(rows) {
			t.Errorf("row %d has the number %s", rows, cells[0])
		}
		if held := cells[3]; !testName.MatchString(held) && !script.MatchString(held) && !strings.Contains(held, "`make ") {
			t.Errorf("threat %s (%s) names no test", cells[0], cells[1])
		}
	}
	if rows != threats {
		t.Errorf("the table has %d rows, want %d", rows, threats)
	}
}

// SECURITY.md states the threats that symfilter cannot prevent.
func TestSecurityStatesWhatRemains(t *testing.T) {
	_, remains, _ := strings.Cut(string(read(t, "SECURITY.md")), "\n## What remains\n")
	remains, _, _ = strings.Cut(remains, "\n## ")
	for _, want := range []string{
		"A build ID is a name, not a proof", // whoever serves a file can forge its symbols
		"Servers learn which build IDs a log names",
		"A log can mislead",
	} {
		if !strings.Contains(remains, want) {
			t.Errorf("SECURITY.md, What remains: %q is missing", want)
		}
	}
}
