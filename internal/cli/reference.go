package cli

import (
	"regexp"
	"strings"
	"sync"
)

// Reference renders the tables in Markdown, beginning with the commands. wrapped breaks the lines
// of a paragraph.
func (p *Program[V]) Reference(wrapped func(paragraph string) string) string {
	var b strings.Builder
	b.WriteString("## Commands\n")
	for _, cmd := range p.Commands {
		b.WriteString("\n### " + strings.TrimSpace(p.Name+" "+cmd.Name) + "\n\n```text\n" + p.Usage(cmd) + "\n```\n\n" + markdownText(cmd.Text, wrapped))
	}
	b.WriteString("\n## Flags\n\n" + markdownText(p.Environment+"\n", wrapped))
	for i := range p.Groups {
		g := &p.Groups[i]
		b.WriteString("\n### " + g.Title + "\n\n| flag | does | commands |\n|---|---|---|\n")
		for j := range g.Flags {
			f := &g.Flags[j]
			text := f.FullText() + f.remarks()
			b.WriteString("| `" + strings.ReplaceAll(f.Spelling(), "|", `\|`) + "` | " + strings.ReplaceAll(markdownLine(text), "|", `\|`) + " | " + p.commandsWith(f) + " |\n")
		}
		if g.Note != "" {
			b.WriteString("\n" + markdownLine(g.Note) + "\n")
		}
	}
	for _, t := range p.Topics() {
		if t.Section != "" {
			b.WriteString("\n## " + strings.ToUpper(t.Name[:1]) + t.Name[1:] + "\n\n" + markdownText(t.Text, wrapped))
		}
	}
	for _, section := range p.Sections {
		b.WriteString("\n## " + section.Title[:1] + strings.ToLower(section.Title[1:]) + "\n\n" + markdownText(section.Text+"\n", wrapped))
	}
	return b.String()
}

// commandsWith returns the names of the commands that have the flag, except commands whose only
// flag is --help. It adds p.ModeName if p.Mode has the flag.
func (p *Program[V]) commandsWith(f *Flag[V]) string {
	var names []string
	for _, cmd := range p.Commands {
		switch {
		case cmd.In&f.In == 0 || cmd.In == p.Texts:
		case cmd.Name == "":
			names = append(names, p.Name)
		default:
			names = append(names, cmd.Name)
		}
	}
	if f.In&p.Mode != 0 {
		names = append(names, p.ModeName)
	}
	return strings.Join(names, " ")
}

// markdownText returns paragraphs, separated by empty lines, in Markdown. Examples, which begin
// with two blanks, and lists of two columns become blocks of text.
func markdownText(text string, wrapped func(paragraph string) string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString("\n")
		}
		verbatim := strings.HasPrefix(paragraph, "  ") || strings.Contains(paragraph, "    ") // a list of two columns
		if verbatim {
			b.WriteString("```text\n" + strings.ReplaceAll("\n"+paragraph, "\n  ", "\n")[1:] + "\n```\n")
		} else {
			b.WriteString(wrapped(markdownLine(paragraph)) + "\n")
		}
	}
	return b.String()
}

// flagWord matches a flag, or a word with characters that Markdown would interpret, such as * or <.
var flagWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(<[^>]*>|--[a-z][a-z-]*(=[^\s;)]*[^\s,;.:)])?|\S*[*<>_~{}\[\]]\S*[^\s,;.:)(]|\S*[*<>~{}\[\]])`)
})

// markdownLine returns a text in Markdown, with flags and patterns as code.
func markdownLine(text string) string {
	return flagWord().ReplaceAllStringFunc(text, func(word string) string {
		open := len(word) - len(strings.TrimLeft(word, "(\""))
		return word[:open] + "`" + word[open:] + "`"
	})
}
