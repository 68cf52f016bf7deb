package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// referencePage is the reference of the command as a page of docs.
var referencePage = filepath.Join("..", "..", "docs", "reference", "symfilter.md")

// The page has the commands, flags and topics of the tables; UPDATE=1 writes it.
func TestTheReferenceHasWhatTheTablesHave(t *testing.T) {
	want := markdownReference()
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(referencePage); err != nil || string(got) != want {
		t.Errorf("docs/reference/symfilter.md has not what the tables have (%v): make docs writes it", err)
	}
}

// markdownReference returns the page.
func markdownReference() string {
	var b strings.Builder
	b.WriteString("# symfilter: commands, flags, topics\n\n" +
		"What `symfilter help` prints, on one page. `symfilter man | man -l -` has it, too.\n\n" +
		"<!-- Written from the tables in cmd/symfilter (commands.go, options.go, topics.go): make docs -->\n\n## Commands\n")
	for _, cmd := range commands() {
		b.WriteString("\n### " + strings.TrimSpace("symfilter "+cmd.name) + "\n\n```text\n" + cmd.usage() + "\n```\n\n" + markdownText(cmd.text))
	}
	b.WriteString("\n## Flags\n\n" + markdownText(environmentOfFlags+"\n"))
	for i := range options {
		g := &options[i]
		b.WriteString("\n### " + g.title + "\n\n| flag | does | of the commands |\n|---|---|---|\n")
		for j := range g.flags {
			o := &g.flags[j]
			text := o.fullText() + o.remarks()
			b.WriteString("| `" + strings.ReplaceAll(o.spelling(), "|", `\|`) + "` | " + strings.ReplaceAll(markdownLine(text), "|", `\|`) + " | " + commandsWith(o) + " |\n")
		}
		if g.note != "" {
			b.WriteString("\n" + markdownLine(g.note) + "\n")
		}
	}
	for _, t := range topics() {
		if t.section != "" {
			b.WriteString("\n## " + strings.ToUpper(t.name[:1]) + t.name[1:] + "\n\n" + markdownText(t.text))
		}
	}
	for _, section := range manSections {
		b.WriteString("\n## " + section.title[:1] + strings.ToLower(section.title[1:]) + "\n\n" + markdownText(section.text+"\n"))
	}
	return b.String()
}

// commandsWith returns the names of the commands that have the flag.
func commandsWith(o *option) string {
	var names []string
	for _, cmd := range commands() {
		switch {
		case cmd.in&o.in == 0 || cmd.in == ofText:
		case cmd.name == "":
			names = append(names, "symfilter")
		default:
			names = append(names, cmd.name)
		}
	}
	if o.in&ofLLVM != 0 {
		names = append(names, "--style=llvm")
	}
	return strings.Join(names, " ")
}

// markdownText returns paragraphs, which empty lines separate, in Markdown. Those that begin with
// blanks are examples and lists, which stay as they are.
func markdownText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		verbatim := strings.HasPrefix(paragraph, "  ") || strings.Contains(paragraph, "    ") // a list of two columns
		if verbatim {
			b.WriteString("```text\n" + strings.ReplaceAll("\n"+paragraph, "\n  ", "\n")[1:] + "\n```\n")
		} else {
			b.WriteString(testenv.Wrapped(markdownLine(paragraph)) + "\n")
		}
	}
	return b.String()
}

// flagWord matches a flag in a text, and a word in which Markdown would see a style.
var flagWord = regexp.MustCompile(`(<[^>]*>|--[a-z][a-z-]*(=[^\s,;)]*[^\s,;.:)])?|\S*[*<>_~{}\[\]]\S*[^\s,;.:)(]|\S*[*<>~{}\[\]])`)

// markdownLine returns a text in Markdown, with flags and patterns as code.
func markdownLine(text string) string {
	return flagWord.ReplaceAllStringFunc(text, func(word string) string {
		open := len(word) - len(strings.TrimLeft(word, "(\""))
		return word[:open] + "`" + word[open:] + "`"
	})
}
