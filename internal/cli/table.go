// Package cli renders the tables of a command line: its commands, flags and topics. The tables
// become help pages, the manual page, completions for shells, and the reference in docs. The table
// of flags also parses them.
//
// A new flag is a row of the table. FlagsPage, ManPage, Reference and, for commands in On, Page
// show the flag. Complete offers it, and Define registers it.
package cli

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// A Program has the tables of a command line. V is the type that holds the values of the flags.
type Program[V any] struct {
	Name        string
	About       string // line for the manual page
	Commands    []*Command
	Groups      []Group[V]
	Topics      func() []Topic // makes the texts of all topics
	Sections    []Section      // sections of the manual page, after the flags and the topics
	Environment string         // how flags are read from the environment
	SeeAlso     []string       // pages of the manual, such as addr2line (1)

	More     CommandSet // commands whose help refers to the page of all flags
	Texts    CommandSet // commands whose only flag is --help
	Mode     CommandSet // bit for flags of another style of command line
	ModeName string     // flag that selects Mode
}

// A CommandSet is a set of commands, with a bit for each.
type CommandSet uint

// A Command is a word that may begin the command line.
type Command struct {
	Name  string     // empty for the program itself
	In    CommandSet // bit of the command
	Args  string     // words after the name, in the help
	Least int        // arguments
	Most  int
	Words func() []string // allowed arguments; nil: files
	About string          // line for the first screen
	Text  string          // help above the flags: lines of at most HelpWidth
	Whole bool            // the help includes Flag.More of shared flags
}

// A Group is a group of flags under one heading of the help.
type Group[V any] struct {
	Title string
	Topic string // topic whose page lists the flags
	Note  string // printed below the flags
	Flags []Flag[V]
}

// A Flag is a row of the table of flags.
type Flag[V any] struct {
	Name, Short string
	Metavar     string // name of the value in the help; empty for a switch
	Alone       string // value without =VALUE; empty if the flag needs a value or is a switch
	Text        string // text for the first screen and completion
	More        string // addition to Text on other pages
	// default value in the help, if any; the program sets it elsewhere
	Preset string
	In     CommandSet      // commands that have the flag
	On     CommandSet      // commands whose --help lists the flag; not needed if In has one command
	Words  func() []string // allowed values, if there are few
	// a *bool, *string, *[]string, or a Setter; Define panics for any other type
	Field func(*V) any
}

// A Topic is a help page that belongs to no command. Below its text, the page lists the groups of
// flags that name the topic.
type Topic struct {
	Name    string
	About   string // text for the list of topics
	Section string // title in the manual page; empty: that page has the content elsewhere
	// lines of at most HelpWidth; examples and lists begin with blanks
	Text string
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

// Flag returns the first flag called name that a command in the given set has, or nil.
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

// Pages returns the names of the commands and topics with a page.
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

// Usage returns the synopsis of the command.
func (p *Program[V]) Usage(cmd *Command) string {
	return strings.Join(strings.Fields(p.Name+" "+cmd.Name+" "+cmd.Args), " ")
}

// CheckArgs returns an error if the command does not take this number of arguments, or if its Words
// lack the first argument.
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
	log := fmt.Sprintf("to read a log named %[1]s, write ./%[1]s", cmd.Name)
	if len(words) > 0 && len(args) == 1 {
		return fmt.Errorf("%s: there is no %q; write one of %s; %s", cmd.Name, args[0], strings.Join(words, ", "), log)
	}
	return fmt.Errorf("%s: write %s; %s", cmd.Name, p.Usage(cmd), log)
}
