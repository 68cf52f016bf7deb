package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// referencePage is the page of docs with the commands, flags and topics.
var referencePage = filepath.Join("..", "..", "docs", "reference", "symfilter.md")

// The page must equal the reference made from the tables of commands, flags and topics. With
// UPDATE=1, the test writes the page.
func TestTheReferenceHasWhatTheTablesHave(t *testing.T) {
	want := "# symfilter: commands, flags, topics\n\n" +
		"What `symfilter help` prints, on one page. `symfilter man | man -l -` has it, too.\n\n" +
		"<!-- Written from the tables in cmd/symfilter (commands.go, options.go, topics.go): make docs -->\n\n" +
		commandLine().Reference(testenv.Wrapped)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(referencePage); err != nil || string(got) != want {
		t.Errorf("docs/reference/symfilter.md has not what the tables have (%v): make docs writes it", err)
	}
}
