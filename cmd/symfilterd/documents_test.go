package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/walkthrough"
)

// Many commands in documents cannot be run in tests. Their words must at least be valid.
func TestCommandsOfDocumentsAreUnderstood(t *testing.T) {
	found := 0
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, args := range walkthrough.Commands(string(text), "symfilterd") {
				found++
				if _, err := parse(args); err != nil {
					t.Errorf("%s: symfilterd %s: %v", page, strings.Join(args, " "), err)
				}
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d commands", found)
	}
}
