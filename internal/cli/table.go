// Package cli renders the tables of a command line: commands, flags and topics as help pages, as
// the manual page, for completion by shells, and as the reference in docs. Flags are parsed by the
// same table.
//
// A new flag is a row of the table. FlagsPage prints it, and Page that of a command in On; ManPage
// and Reference contain it, Complete offers it, and Define has it parsed.
package cli

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Program is the tables of a command line. V holds the values of the flags.
type Program[V any] struct {
	Name        string
	About       string // a line for the manual page
	Commands    []*Command
	Groups      []Group[V]
	Topics      func() []Topic // makes the texts of all topics
	Sections    []Section      // sections of the manual page, after the flags and the topics
	Environment string         // how flags are read from the environment
	SeeAlso     []string       // pages of the manual, as in addr2line (1)

	More     CommandSet // their help pages refer to the page of all flags
	Texts    CommandSet // their only flag is --help
	Mode     CommandSet // the bit of another set of flags
	ModeName string     // the flag that chooses Mode
}

// A CommandSet is a set of commands, a bit for each.
type CommandSet uint

// A Command is what the first word of the command line names.
type Command struct {
	Name  string     // empty for the program itself
	In    CommandSet // its bit
	Args  string     // the words after the name, in the help
	Least int        // arguments
	Most  int
	Words func() []string // the arguments that it takes; nil: files
	About string          // a line for the first screen
	Text  string          // its help, before the flags: lines of at most HelpWidth
	Whole bool            // its help has Flag.More of flags that other commands have, too
}

// A Group is a group of flags under one heading of the help.
type Group[V any] struct {
	Title string
	Topic string // the topic whose page lists the flags
	Note  string // below the flags
	Flags []Flag[V]
}

// A Flag is a row of the table of flags.
type Flag[V any] struct {
	Name, Short string
	Metavar     string          // the name of the value in the help; empty for a switch
	Alone       string          // for an optional value: what the flag alone means
	Text        string          // what the flag does, for the first screen and completion
	More        string          // what the other pages add to Text
	Preset      string          // the default value, if the help shows it; it is set elsewhere
	In          CommandSet      // the commands that have the flag
	On          CommandSet      // the commands whose --help lists it, besides the only one in In
	Words       func() []string // the values, if there are few
	Field       func(*V) any    // a *bool, *string, *[]string, or a Setter; Define panics at others
}

// A Topic is a page of help that no command prints. Below its text, the page has the groups of
// flags that name the topic.
type Topic struct {
	Name    string
	About   string // for the list of topics
	Section string // the title in the manual page; empty: the manual page has its content elsewhere
	Text    string // lines of at most HelpWidth; those that begin with blanks are examples and lists
}

// A Section is a section of the manual page and of the reference. Empty lines separate paragraphs.
type Section struct{ Title, Text string }

// AllFlags is the topic whose page lists all flags. It has no text.
const AllFlags = "flags"

// Flags returns the flags of all groups.
func (p *Program[V]) Flags() iter.Seq[*Flag[V]] {
	return func(yield func(*Flag[V]) bool) {
		for g := range p.Groups {
			for i := range p.Groups[g].Flags {
				if !yield(&p.Groups[g].Flags[i]) {
					return
				}
			}
		}
	}
}

// Flag returns the first flag called name that one of the commands in has; nil if none has it.
func (p *Program[V]) Flag(name string, in CommandSet) *Flag[V] {
	for f := range p.Flags() {
		if f.Name == name && f.In&in != 0 {
			return f
		}
	}
	return nil
}

// Topic returns the topic called name, or nil.
func (p *Program[V]) Topic(name string) *Topic {
	for _, t := range p.Topics() {
		if t.Name == name {
			return &t
		}
	}
	return nil
}

// Pages returns the names of the commands and topics that have a page.
func (p *Program[V]) Pages() (names []string) {
	for _, cmd := range p.Commands {
		if cmd.Name != "" {
			names = append(names, cmd.Name)
		}
	}
	return append(names, p.topicNames()...)
}

func (p *Program[V]) topicNames() (names []string) {
	for _, t := range p.Topics() {
		names = append(names, t.Name)
	}
	return names
}

// Usage returns how the command is called.
func (p *Program[V]) Usage(cmd *Command) string {
	return strings.Join(strings.Fields(p.Name+" "+cmd.Name+" "+cmd.Args), " ")
}

// CheckArgs returns an error if the command does not take so many arguments, or not these words.
func (p *Program[V]) CheckArgs(cmd *Command, args []string) error {
	var words []string
	if cmd.Words != nil {
		words = cmd.Words()
	}
	ok := len(args) >= cmd.Least && len(args) <= cmd.Most
	if ok && len(words) > 0 && len(args) > 0 {
		ok = slices.Contains(words, args[0])
	}
	if ok {
		return nil
	}
	log := fmt.Sprintf("a log of that name is ./%s", cmd.Name)
	if len(words) > 0 && len(args) == 1 {
		return fmt.Errorf("%s: there is no %q, but %s; %s", cmd.Name, args[0], strings.Join(words, ", "), log)
	}
	return fmt.Errorf("%s: write %s; %s", cmd.Name, p.Usage(cmd), log)
}
