package cli

import (
	"strings"
	"unicode/utf8"
)

const (
	helpColumn = 27 // column of the text about a flag
	HelpWidth  = 80 // columns
)

// Page returns the help page of cmd.
func (p *Program[V]) Page(cmd *Command) string {
	var b strings.Builder
	if cmd.Name == "" {
		for _, other := range p.Commands {
			line := p.Usage(other)
			if other.About != "" {
				line += strings.Repeat(" ", max(1, 42-len(line))) + other.About
			}
			b.WriteString(line + "\n")
		}
	} else {
		b.WriteString(p.Usage(cmd) + "\n")
	}
	b.WriteString("\n" + cmd.Text)
	p.listFlags(&b, func(_ *Group[V], f *Flag[V]) bool { return f.In == cmd.In }, false)
	p.listFlags(&b, func(_ *Group[V], f *Flag[V]) bool { return f.In != cmd.In && f.In&f.On&cmd.In != 0 }, !cmd.Whole)
	if cmd.Name == "" {
		return b.String() + "\n" + Wrap("Topics: "+strings.Join(p.topicNames(), " "), 0) + "\n"
	}
	b.WriteString("\n")
	if cmd.In&p.More != 0 {
		b.WriteString("All other flags: " + p.Name + " help " + AllFlags + "\n")
	}
	return b.String() + "To filter a log with the name " + cmd.Name + ", write ./" + cmd.Name + ".\n"
}

// TopicPage returns the page of a topic.
func (p *Program[V]) TopicPage(t *Topic) string {
	if t.Name == AllFlags {
		return p.FlagsPage()
	}
	var b strings.Builder
	b.WriteString(t.Text)
	p.listFlags(&b, func(g *Group[V], _ *Flag[V]) bool { return g.Topic == t.Name }, false)
	return b.String()
}

// FlagsPage returns the page of all flags.
func (p *Program[V]) FlagsPage() string {
	var b strings.Builder
	b.WriteString("The flags of " + p.Name + "\n")
	p.listFlags(&b, func(*Group[V], *Flag[V]) bool { return true }, false)
	b.WriteString("\n" + Wrap(p.Environment, 0) + "\n")
	return b.String()
}

// listFlags writes the flags for which the function list returns true, below the title of their
// group. If brief is set, it leaves out the text Flag.More.
func (p *Program[V]) listFlags(b *strings.Builder, list func(*Group[V], *Flag[V]) bool, brief bool) {
	for i := range p.Groups {
		g := &p.Groups[i]
		head := "\n" + g.Title + ":\n"
		for j := range g.Flags {
			f := &g.Flags[j]
			if !list(g, f) {
				continue
			}
			b.WriteString(head)
			head = ""
			text := f.Text
			if !brief {
				text = f.FullText()
			}
			flagLine(b, f.Spelling(), text+f.remarks())
		}
		if head == "" && g.Note != "" {
			b.WriteString("  " + Wrap(g.Note, 2) + "\n")
		}
	}
}

// flagLine writes the spelling of a flag, with its text beside it.
func flagLine(b *strings.Builder, spelling, text string) {
	line := "      " + spelling
	if strings.HasPrefix(spelling, "-") && !strings.HasPrefix(spelling, "--") {
		line = "  " + spelling
	}
	switch n := utf8.RuneCountInString(line); {
	case n < helpColumn-1:
		line += strings.Repeat(" ", helpColumn-n)
	case n+2+utf8.RuneCountInString(text) <= HelpWidth:
		line += "  "
	case n < helpColumn:
		line += " "
	default:
		line += "\n" + strings.Repeat(" ", helpColumn)
	}
	b.WriteString(line + Wrap(text, helpColumn) + "\n")
}

// Spelling returns the form of the flag: "-s, --symbol-path PATH".
func (f *Flag[V]) Spelling() string {
	s := "--" + f.Name
	if f.Short != "" {
		s = "-" + f.Short + ", " + s
	}
	switch {
	case f.Alone != "":
		s += "[=" + f.Metavar + "]"
	case f.Metavar != "":
		s += " " + f.Metavar
	}
	return s
}

// FullText returns the complete text about the flag.
func (f *Flag[V]) FullText() string {
	if f.More == "" {
		return f.Text
	}
	return f.Text + "; " + f.More
}

// remarks returns the text after FullText: whether the flag is repeatable, and its default.
func (f *Flag[V]) remarks() string {
	var remarks []string
	if isRepeated(f.Value(new(V)).Type()) {
		remarks = append(remarks, "repeatable")
	}
	if f.Preset != "" {
		remarks = append(remarks, "default "+f.Preset)
	}
	if remarks == nil {
		return ""
	}
	return " (" + strings.Join(remarks, "; ") + ")"
}

// Wrap breaks text into lines of at most HelpWidth columns. It indents each line but the first by
// indent columns. The first line is indented already.
func Wrap(text string, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > HelpWidth:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
