package housetest

import (
	"strconv"
	"strings"
	"testing"
)

type threatRow struct{ threat, tests string }

// threatRows returns the 35 threats of SECURITY.md, whose numbers must be consecutive.
func threatRows(t *testing.T) (all []threatRow) {
	t.Helper()
	const threats = 35
	_, section, found := strings.Cut(string(read(t, "SECURITY.md")), "\n## The threats, one by one\n")
	if !found {
		t.Fatal("SECURITY.md has no table of threats")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.SplitSeq(section, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !tableRow.MatchString(line) || len(cells) != 4 || cells[0] == "#" {
			continue
		}
		all = append(all, threatRow{cells[1], cells[3]})
		if cells[0] != strconv.Itoa(len(all)) {
			t.Errorf("row %d has the number %s", len(all), cells[0])
		}
	}
	if len(all) != threats {
		t.Errorf("the table has %d rows, want %d", len(all), threats)
	}
	return all
}

func TestEveryThreatNamesItsTest(t *testing.T) {
	for i, row := range threatRows(t) {
		if !testName.MatchString(row.tests) && !script.MatchString(row.tests) && !strings.Contains(row.tests, "`make ") {
			t.Errorf("threat %d (%s) names no test", i+1, row.threat)
		}
	}
}

func TestSecurityStatesWhatRemains(t *testing.T) {
	_, remains, _ := strings.Cut(string(read(t, "SECURITY.md")), "\n## What remains\n")
	remains, _, _ = strings.Cut(remains, "\n## ")
	for _, want := range []string{
		"A build ID is a name, not a proof", // a server of the file can forge its symbols
		"Servers learn which build IDs a log names",
		"A log can mislead",
	} {
		if !strings.Contains(remains, want) {
			t.Errorf("SECURITY.md, What remains: %q is missing", want)
		}
	}
}
