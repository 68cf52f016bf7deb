package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/startup"
)

// A command is what the first word of the command line names: a row of the table of commands.
type command struct {
	name  string     // empty for the filter itself
	in    commandSet // its bit in the table of flags
	args  string     // what follows the name, in the help
	least int        // arguments
	most  int
	words func() []string // the arguments that it takes; nil: files
	about string          // a line for the first screen
	text  string          // its help, before the flags: lines of at most helpWidth
	run   func(c *config, args []string, std standard) (code int, err error)
}

// standard are the standard streams.
type standard struct {
	in, out, err *os.File
	text         io.Writer // to out; it keeps the error of what could not be written
}

const anyNumber = 1 << 30 // arguments

// commands is the table of commands, in the order of the help. It is a function because the commands
// print it.
func commands() []*command {
	return []*command{
		{in: ofFilter, args: "[flags] [FILE...]", most: anyNumber, text: filterText, run: filterAll},
		{name: "valgrind", in: ofValgrind, args: "[flags] [FILE...]", most: anyNumber, about: "read only XML reports of Valgrind", text: valgrindText, run: filterAll},
		{name: "callgrind", in: ofCallgrind, args: "[flags] [FILE...]", most: anyNumber, about: "read only profiles of Callgrind", text: callgrindText, run: filterAll},
		{name: "rtrace", in: ofRTrace, args: "[flags] [FILE...]", most: anyNumber, about: "read only reports of sp-rtrace", text: rtraceText, run: filterAll},
		{name: "profile", in: ofProfile, args: "[flags] FILE", least: 1, most: 1, about: "name the addresses of a profile", text: profileText, run: runProfile},
		{name: "addr", in: ofAddr, args: "[flags] FILE|ID ADDRESS...", least: 2, most: anyNumber, about: "resolve single addresses", text: addrText, run: runAddr},
		{name: "doctor", in: ofDoctor, args: "[flags] [ID|FILE|LOG]", most: 1, about: "check where debug files are", text: doctorText, run: runDoctor},
		{name: "index", in: ofIndex, args: "[flags] PATH...", least: 1, most: anyNumber, about: "index debug files in advance", text: indexText, run: runIndex},
		{name: containerCommand, in: ofContainer, args: "--path FILE [flags]", words: noWords, about: "write a log for containerd", text: containerText, run: runContainerLog},
		{name: "completion", in: ofText, args: "SHELL", least: 1, most: 1, words: shells, about: "for bash, zsh, fish or powershell", text: completionText, run: runCompletion},
		{name: "man", in: ofText, words: noWords, about: "print the manual page", text: manText, run: runMan},
		{name: "help", in: ofText, args: "[COMMAND|TOPIC]", most: 1, words: pages, about: "help for a command or a topic", text: helpText, run: runHelp},
	}
}

// commandNamed returns the command called name, or nil.
func commandNamed(name string) *command {
	for _, cmd := range commands() {
		if cmd.name == name {
			return cmd
		}
	}
	return nil
}

// usage returns how the command is called.
func (cmd *command) usage() string {
	return strings.Join(strings.Fields("symfilter "+cmd.name+" "+cmd.args), " ")
}

// isReport reports whether the command reads one format only.
func (cmd *command) isReport() bool { return cmd.in&ofReports != 0 }

// check returns what is wrong with the number of the arguments, or with the word that cmd takes.
func (cmd *command) check(args []string) error {
	var words []string
	if cmd.words != nil {
		words = cmd.words()
	}
	ok := len(args) >= cmd.least && len(args) <= cmd.most
	if ok && len(words) > 0 && len(args) > 0 {
		ok = slices.Contains(words, args[0])
	}
	if ok {
		return nil
	}
	log := fmt.Sprintf("a log of that name is ./%s", cmd.name)
	if len(words) > 0 && len(args) == 1 {
		return usageError{fmt.Errorf("%s: there is no %q, but %s; %s", cmd.name, args[0], strings.Join(words, ", "), log)}
	}
	return usageError{fmt.Errorf("%s: write %s; %s", cmd.name, cmd.usage(), log)}
}

func noWords() []string { return nil }
func shells() []string  { return []string{"bash", "zsh", "fish", "powershell"} }

// pages returns what help takes.
func pages() (names []string) {
	for _, cmd := range commands() {
		if cmd.name != "" {
			names = append(names, cmd.name)
		}
	}
	return append(names, topicNames()...)
}

// runHelp prints a help page.
func runHelp(_ *config, args []string, std standard) (int, error) {
	name := append(args, "")[0]
	page := ""
	if t := topicNamed(name); t != nil {
		page = t.page()
	} else {
		page = helpPage(commandNamed(name))
	}
	_, err := io.WriteString(std.text, page)
	return exitOK, err
}

func runMan(_ *config, _ []string, std standard) (int, error) {
	_, err := io.WriteString(std.text, manPage(startup.Release(), startup.BuiltAt()))
	return exitOK, err
}
