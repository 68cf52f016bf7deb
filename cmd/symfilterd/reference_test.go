package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// referencePage is the page of docs with the command line.
var referencePage = filepath.Join("..", "..", "docs", "reference", "symfilterd.md")

// The page must equal the reference made from the command line. With UPDATE=1, the test writes the
// page. internal/daemon tests the page with the keys of the configuration.
func TestTheReferenceHasWhatThereIs(t *testing.T) {
	var b strings.Builder
	b.WriteString("# symfilterd: command line\n\n" +
		"What `symfilterd --help` prints. The keys of the configuration are [on a page of their own](symfilterd-configuration.md).\n\n" +
		"<!-- Written from cmd/symfilterd/usage.go and man.go: make docs -->\n\n```text\n" + help() + "```\n\n| flag | does |\n|---|---|\n")
	for _, line := range flagLines() {
		b.WriteString("| `" + line[0] + "` | " + line[1] + " |\n")
	}
	b.WriteString("\n| status | means |\n|---|---|\n")
	for line := range strings.Lines(statuses + "\n") {
		status, text, _ := strings.Cut(strings.TrimSpace(line), "    ")
		b.WriteString("| " + status + " | " + text + " |\n")
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(referencePage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(referencePage); err != nil || string(got) != b.String() {
		t.Errorf("docs/reference/symfilterd.md has not what there is (%v): make docs writes it", err)
	}
}
