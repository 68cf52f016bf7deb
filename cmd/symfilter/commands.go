package main

import (
	"io"
	"os"

	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/startup"
)

// A command is a row of the table of commands.
type command struct {
	cli.Command
	run func(c *config, args []string, std standard) (code int, err error)
}

// standard are the standard streams.
type standard struct {
	in, out, err *os.File
	text         io.Writer // writes to out, and keeps the error of a failed write
}

const anyNumber = 1 << 30 // most arguments of a command without a limit

// commands is the table of commands, in the order of the help. It is a function, since the commands
// print the table: a variable would depend on itself.
func commands() []*command {
	return []*command{
		{cli.Command{In: ofFilter, Args: "[flags] [FILE...]", Most: anyNumber, Text: filterText}, filterAll},
		{cli.Command{Name: "valgrind", In: ofValgrind, Args: "[flags] [FILE...]", Most: anyNumber, About: "read only XML reports of Valgrind", Text: valgrindText, Whole: true}, filterAll},
		{cli.Command{Name: "callgrind", In: ofCallgrind, Args: "[flags] [FILE...]", Most: anyNumber, About: "read only profiles of Callgrind", Text: callgrindText, Whole: true}, filterAll},
		{cli.Command{Name: "rtrace", In: ofRTrace, Args: "[flags] [FILE...]", Most: anyNumber, About: "read only reports of sp-rtrace", Text: rtraceText, Whole: true}, filterAll},
		{cli.Command{Name: "profile", In: ofProfile, Args: "[flags] FILE", Least: 1, Most: 1, About: "name the addresses of a profile", Text: profileText}, runProfile},
		{cli.Command{Name: "addr", In: ofAddr, Args: "[flags] [FILE|ID] [ADDRESS...]", Most: anyNumber, About: "resolve single addresses", Text: addrText}, runAddr},
		{cli.Command{Name: "doctor", In: ofDoctor, Args: "[flags] [ID|FILE|LOG]", Most: 1, About: "check where debug files are", Text: doctorText}, runDoctor},
		{cli.Command{Name: "index", In: ofIndex, Args: "[flags] PATH...", Least: 1, Most: anyNumber, About: "index debug files in advance", Text: indexText}, runIndex},
		{cli.Command{Name: "run", In: ofProgram, Args: "[flags] -- PROGRAM [ARG...]", Most: anyNumber, About: "filter what a program prints", Text: runText}, startProgram},
		{cli.Command{Name: otherCommand, In: ofText, Args: "NAME [ARG...]", Least: 1, Most: anyNumber, Words: asis.Names, About: "answer like another symbolizer", Text: asText}, func(_ *config, args []string, std standard) (int, error) { return runAs(args, std) }},
		{cli.Command{Name: containerCommand, In: ofContainer, Args: "--path FILE [flags]", Words: noWords, About: "write a log for containerd", Text: containerText}, runContainerLog},
		{cli.Command{Name: "completion", In: ofText, Args: "SHELL", Least: 1, Most: 1, Words: cli.Shells, About: "for bash, zsh, fish or powershell", Text: completionText}, runCompletion},
		{cli.Command{Name: "man", In: ofText, Words: noWords, About: "print the manual page", Text: manText}, runMan},
		{cli.Command{Name: "help", In: ofText, Args: "[COMMAND|TOPIC]", Most: 1, Words: pages, About: "help for a command or a topic", Text: helpText}, runHelp},
	}
}

func commandNamed(name string) *command {
	for _, cmd := range commands() {
		if cmd.Name == name {
			return cmd
		}
	}
	return nil
}

func (cmd *command) isReport() bool { return cmd.In&ofReports != 0 }

func noWords() []string { return nil }

// pages returns the names of the pages that "symfilter help" prints.
func pages() []string { return commandLine().Pages() }

// commandLine returns all tables of the command line, which package cli renders.
func commandLine() *cli.Program[config] {
	var all []*cli.Command
	for _, cmd := range commands() {
		all = append(all, &cmd.Command)
	}
	return &cli.Program[config]{
		Name:        "symfilter",
		About:       "print logs with addresses replaced by function, file and line",
		Commands:    all,
		Groups:      options[:],
		Topics:      topics,
		Sections:    manSections[:],
		Environment: environmentOfFlags,
		SeeAlso:     []string{"llvm-symbolizer (1)", "addr2line (1)"},
		More:        ofMost,
		Texts:       ofText,
		Mode:        ofLLVM,
		ModeName:    "--style=" + styleLLVM,
	}
}

func runHelp(_ *config, args []string, std standard) (int, error) {
	name, line := append(args, "")[0], commandLine()
	page := ""
	if t := line.Topic(name); t != nil {
		page = line.TopicPage(t)
	} else {
		page = line.Page(&commandNamed(name).Command)
	}
	_, err := io.WriteString(std.text, page)
	return exitOK, err
}

func runMan(_ *config, _ []string, std standard) (int, error) {
	_, err := io.WriteString(std.text, commandLine().ManPage(startup.Release(), startup.BuiltAt()))
	return exitOK, err
}

func runCompletion(_ *config, args []string, std standard) (int, error) {
	return exitOK, commandLine().Script(std.text, args[0])
}
