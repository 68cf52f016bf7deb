package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/testenv"
)

func TestManPageNamesEveryFlag(t *testing.T) {
	page, all := commandLine().ManPage("1.2.3", "2026-11-20"), commandLine().FlagsPage()
	for o := range commandLine().Flags() {
		if !strings.Contains(page, ".TP\n.B "+cli.TroffEscape(o.Spelling())+"\n") {
			t.Errorf("--%s is not in the page", o.Name)
		}
		if !strings.Contains(all, o.Spelling()) {
			t.Errorf("--%s is not in help flags", o.Name)
		}
	}
	for _, want := range []string{
		".TH SYMFILTER 1 \"2026-11-20\" \"symfilter 1.2.3\"\n",
		".TP\n.B \\-s, \\-\\-symbol\\-path PATH\nELF file, .zip file or folder tree (repeatable)\n",
		".SS symfilter doctor [flags] [ID|FILE|LOG]\nChecks the places",
		".nf\n\\&./server",
		".SS How it runs\n",
		".SH FILES\n",
		".SH ROTATION\n",
		".SH EXIT STATUS\n.nf\n0    the log",
		".SH FINDING DEBUG FILES\nA debug file",
		".SH ELEMENTS\n",
		".SH FOLLOWING FILES\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("not in the page: %q", want)
		}
	}
}

func TestManPageIsTroff(t *testing.T) {
	shown := strings.Join(strings.Fields(testenv.ShowManPage(t, commandLine().ManPage("1.2.3", "2026-11-20"))), " ")
	for _, want := range []string{"-s, --symbol-path PATH", `"-": standard input.`} {
		if !strings.Contains(shown, want) {
			t.Errorf("not shown: %s", want)
		}
	}
}

func TestReadmeBeginsAsTheHelp(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	sentence, _, _ := strings.Cut(filterText, ". ")
	want := strings.Join(strings.Fields(sentence), " ")
	if got := strings.Join(strings.Fields(strings.TrimPrefix(string(readme), "# symfilter\n")), " "); !strings.HasPrefix(got, want) {
		t.Errorf("README begins %q, want %q", got[:min(len(got), len(want))], want)
	}
}
