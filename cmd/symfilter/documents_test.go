package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/testenv"
	"github.com/symfilter/symfilter/internal/walkthrough"
)

// Many commands in README, docs and examples cannot be run in tests. Their flags, values and
// numbers of arguments must at least be valid.
func TestCommandsOfDocumentsAreUnderstood(t *testing.T) {
	root := os.DirFS(filepath.Join("..", ".."))
	found := 0
	check := func(page string) {
		text, err := fs.ReadFile(root, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range walkthrough.Commands(string(text), "symfilter") {
			found++
			if err := understood(args); err != nil {
				t.Errorf("%s: symfilter %s: %v", page, strings.Join(args, " "), err)
			}
		}
	}
	check("README.md")
	for _, dir := range []string{"docs", "examples", "collector"} {
		if err := fs.WalkDir(root, dir, func(name string, _ fs.DirEntry, err error) error {
			if err == nil && path.Ext(name) == ".md" {
				check(name)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if found < 40 {
		t.Errorf("only %d commands", found)
	}
}

// understood parses a command line, but runs nothing.
func understood(args []string) error {
	d := dispatch(args, func(string) (string, bool) { return "", false })
	if d.llvm {
		return nil // tested in llvm_test.go
	}
	if d.as {
		p := asis.Named(d.args[0])
		if p == nil {
			return fmt.Errorf("no answers for %q", d.args[0])
		}
		if refusal := p.Parse(d.args[0], "", d.args[1:]).Refusal(); refusal != "" {
			return errors.New(refusal)
		}
		return nil
	}
	set, line := pflag.NewFlagSet("symfilter", pflag.ContinueOnError), commandLine()
	line.Define(set, newConfig(), d.command.In)
	if err := cli.OneDash(d.args, set); err != nil {
		return err
	}
	if err := set.Parse(d.args); err != nil {
		return err
	}
	return line.CheckArgs(&d.command.Command, set.Args())
}

func TestUnderstood(t *testing.T) {
	for line, want := range map[string]string{
		"-s out crash.log":    "",
		"doctor crash.log":    "",
		"--no-such crash.log": "unknown flag",
		"doctor a b":          "write symfilter doctor",
		"--max-memory=lots a": "lots",

		"as llvm-symbolizer --obj=app 0x1": "",
		"as llvm-symbolizer --no-such":     "unknown argument",
		"as addr2line -e app 1":            "",
		"as eu-addr2line -e app 1":         "",
		"as eu-addr2line --pid=1 1":        "needs a running kernel",
	} {
		err := understood(strings.Fields(line))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

// dialectsPage is the page of docs with the list of dialects.
var dialectsPage = filepath.Join("..", "..", "docs", "dialects.md")

// The page of dialects must equal the list made from the table of dialects. With UPDATE=1, the test
// writes the page.
func TestTheReferenceOfDialectsHasThemAll(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Backtraces that are read\n\n<!-- Written from the table of package internal/dialect: make docs -->\n\n" +
		testenv.Wrapped("A dialect is a form in which programs print backtraces without markup. symfilter reads all of these in one log, without a flag. "+
			"`--dialects=NAME,NAME` selects some, `--dialects=none` none. `symfilter help dialects` prints this list, with shortened samples.") + "\n\n" +
		testenv.Wrapped("**What a frame needs** is below each sample. A frame with a build ID is resolved on any machine that has the debug file. Any other frame is "+
			"resolved by the file at its path, if the frames of the trace show that it is the file that ran: its symbols are where the trace has them, and a call is "+
			"before each return address. `--image NAME=FILE` names the file if it is elsewhere, and `--image FILE@BASE` also where it was loaded. "+
			"A frame without such proof stays as it is: [A frame stays unresolved](unresolved.md) has the reasons. [Add a dialect](add-a-dialect.md) "+
			"explains how to add one that is missing here.") + "\n")
	for _, d := range dialect.All() {
		needs := "Needs " + d.Needs + "."
		if d.OnDemand {
			needs += " Left out unless `--dialects` names it."
		}
		b.WriteString("\n## " + d.Name + "\n\n" + testenv.Wrapped(d.Who+".") + "\n\n```text\n" + strings.TrimRight(d.Sample, "\n") + "\n```\n\n" + testenv.Wrapped(needs) + "\n")
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(dialectsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(dialectsPage); err != nil || string(got) != b.String() {
		t.Errorf("docs/dialects.md has not what the table has (%v): make docs writes it", err)
	}
}

func TestTheProblemMatcherMatchesTheInnermostFrame(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "ci.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "## Visual Studio Code")
	_, block, _ = strings.Cut(block, "```json\n")
	block, _, _ = strings.Cut(block, "```")
	type pattern struct {
		Regexp                      string
		Message, File, Line, Column int
	}
	var file struct {
		Tasks []struct {
			ProblemMatcher struct{ Pattern pattern }
		}
	}
	if err := json.Unmarshal([]byte(block), &file); err != nil || len(file.Tasks) != 1 {
		t.Fatalf("%d tasks, %v", len(file.Tasks), err)
	}
	p := file.Tasks[0].ProblemMatcher.Pattern
	frame := regexp.MustCompile(p.Regexp)
	log, err := os.ReadFile(filepath.Join("..", "..", "testdata", "asan.golden"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(log)) {
		if m := frame.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			got = append(got, strings.Join([]string{m[p.File], m[p.Line], m[p.Column], m[p.Message]}, "|"))
		}
	}
	want := []string{"/src/server/server.cc|34|59|Server::cost(Request const&) const"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
