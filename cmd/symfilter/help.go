package main

import (
	"strings"
	"unicode/utf8"
)

// The layout of help pages.
const (
	helpColumn = 27 // where the text about a flag begins
	helpWidth  = 80 // columns
)

// allFlags is the page of symfilter help flags.
const allFlags = "flags"

// helpPage returns what cmd --help prints.
func helpPage(cmd *command) string {
	var b strings.Builder
	if cmd.name == "" {
		for _, other := range commands() {
			line := other.usage()
			if other.about != "" {
				line += strings.Repeat(" ", max(1, 42-len(line))) + other.about
			}
			b.WriteString(line + "\n")
		}
	} else {
		b.WriteString(cmd.usage() + "\n")
	}
	b.WriteString("\n" + cmd.text)
	listFlags(&b, func(_ *group, o *option) bool { return o.in == cmd.in }, false)
	listFlags(&b, func(_ *group, o *option) bool { return o.in != cmd.in && o.in&o.on&cmd.in != 0 }, !cmd.isReport())
	if cmd.name == "" {
		return b.String() + "\n" + wrap("Topics: "+strings.Join(topicNames(), " "), 0) + "\n"
	}
	b.WriteString("\n")
	if cmd.in&ofMost != 0 {
		b.WriteString("All other flags: symfilter help flags\n")
	}
	return b.String() + "To filter a log with the name " + cmd.name + ", write ./" + cmd.name + ".\n"
}

// flagsPage returns what symfilter help flags prints.
func flagsPage() string {
	var b strings.Builder
	b.WriteString("The flags of symfilter\n")
	listFlags(&b, func(*group, *option) bool { return true }, false)
	b.WriteString("\n" + wrap(environmentOfFlags, 0) + "\n")
	return b.String()
}

// environmentOfFlags is in the manual page, too.
const environmentOfFlags = "Each flag is also read from the environment, under its name in upper case with SYMFILTER_ before it: --symbol-path from SYMFILTER_SYMBOL_PATH. The values of repeatable flags are separated as in PATH; those of --limit, --mod-funcname and --mod-filename by line ends. The command line takes precedence. A variable of such a name that stands for no flag is reported."

// listFlags writes the flags to list, group by group. If brief is set, it leaves out option.more.
func listFlags(b *strings.Builder, list func(*group, *option) bool, brief bool) {
	for _, g := range &options {
		head := "\n" + g.title + ":\n"
		for i := range g.flags {
			o := &g.flags[i]
			if !list(&g, o) {
				continue
			}
			b.WriteString(head)
			head = ""
			text := o.text
			if !brief {
				text = o.fullText()
			}
			flagLine(b, o.spelling(), text+o.remarks())
		}
		if head == "" && g.note != "" {
			b.WriteString("  " + wrap(g.note, 2) + "\n")
		}
	}
}

// flagLine writes how a flag is spelled, and beside it what it does.
func flagLine(b *strings.Builder, spelling, text string) {
	line := "      " + spelling
	if strings.HasPrefix(spelling, "-") && !strings.HasPrefix(spelling, "--") {
		line = "  " + spelling
	}
	switch n := utf8.RuneCountInString(line); {
	case n < helpColumn-1:
		line += strings.Repeat(" ", helpColumn-n)
	case n+2+utf8.RuneCountInString(text) <= helpWidth:
		line += "  "
	case n < helpColumn:
		line += " "
	default:
		line += "\n" + strings.Repeat(" ", helpColumn)
	}
	b.WriteString(line + wrap(text, helpColumn) + "\n")
}

// spelling returns how the flag is written: "-s, --symbol-path PATH".
func (o *option) spelling() string {
	s := "--" + o.name
	if o.short != "" {
		s = "-" + o.short + ", " + s
	}
	switch {
	case o.alone != "":
		s += "[=" + o.metavar + "]"
	case o.metavar != "":
		s += " " + o.metavar
	}
	return s
}

// fullText returns all that the help says about the flag.
func (o *option) fullText() string {
	if o.more == "" {
		return o.text
	}
	return o.text + "; " + o.more
}

// remarks returns what follows the text: whether the flag is repeatable, and its default value.
func (o *option) remarks() string {
	var remarks []string
	if isRepeated(o.valueIn(&config{}).kind) {
		remarks = append(remarks, "repeatable")
	}
	if o.preset != "" {
		remarks = append(remarks, "default "+o.preset)
	}
	if remarks == nil {
		return ""
	}
	return " (" + strings.Join(remarks, "; ") + ")"
}

// wrap breaks text between words so that no line is longer than helpWidth if each is indented by
// indent columns, which the first line already has.
func wrap(text string, indent int) string {
	var b strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case column+1+n > helpWidth:
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
