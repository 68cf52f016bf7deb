package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/input"
)

// commands are those that addCommands knows.
var commands = []string{"completion", "man", "doctor", "index"}

// completeCommand offers commands in place of a first word that is the head of their names. As a rule it is that of a log's: files go before.
func completeCommand(_ *cobra.Command, args []string, word string) (offered []string, how cobra.ShellCompDirective) {
	if files, _ := os.ReadDir("."); len(args) > 0 || word == "" ||
		slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), word) }) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, name := range append(append(formatCommands(), commands...), "help") {
		if strings.HasPrefix(name, word) {
			offered, how = append(offered, name), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return offered, how
}

// addCommands adds the subcommands where args begin with one: a FILE of that
// name behind others, or as ./man, is a log. A command that runs sets c from its
// flags, and code.
func addCommands(root *cobra.Command, c *config, code *int, args []string) {
	completing := len(args) > 0 && strings.HasPrefix(args[0], "__complete")
	if completing {
		describe(root.Flags())
		for name, words := range map[string][]string{"color": {"auto", "always", "never"}, "input": input.Names(), "output": outputs(), "style": {styleOurs, styleLLVM}, "tree": trees(), "process-key": {"fuchsia", "logcat", "syslog"}} {
			root.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
		args = args[1:]
		root.ValidArgsFunction = completeCommand
	}
	if len(args) == 0 || !slices.Contains(commands, args[0]) {
		return
	}
	root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
	completion := &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			describe(root.Flags())
			return writeCompletion(root, args[0])
		},
	}
	completion.SetHelpFunc(printHelp(completionHelp))
	man := &cobra.Command{
		Use:  "man",
		Args: cobra.NoArgs,

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), manPage(reference, release(version()), builtAt()))
			return err
		},
	}
	man.SetHelpFunc(printHelp(manHelp))
	examine := &cobra.Command{
		Use:  "doctor [flags] [BUILD-ID]",
		Args: cobra.MaximumNArgs(1),

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return usageError{err}
			}
			*code, err = doctor(cmd.Context(), c, append(args, "")[0], cmd.OutOrStdout(), cmd.ErrOrStderr())
			return err
		},
	}
	c.define(examine.Flags())
	examine.SetHelpFunc(printHelp(doctorHelp))
	for _, cmd := range []*cobra.Command{completion, man, examine, indexCommand(code)} {
		check := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usageError{fmt.Errorf("%s: write symfilter %s; a log of that name is ./%s", cmd.Name(), cmd.Use, cmd.Name())}
			}
			return nil
		}
		root.AddCommand(cmd)
	}
}

const (
	completionHelp = `symfilter completion bash|zsh|fish|powershell

Prints what makes a shell complete symfilter's flags:

  bash        source <(symfilter completion bash)
  zsh         symfilter completion zsh >"${fpath[1]}/_symfilter"
  fish        symfilter completion fish >~/.config/fish/completions/symfilter.fish
  powershell  symfilter completion powershell | Out-String | Invoke-Expression

To filter a log with the name completion, write ./completion.
`
	doctorHelp = `symfilter doctor [flags] [BUILD-ID]

Says whether the places where debug files are looked for are in order: the
folders that flags name, debuginfod's cache, and its servers, each of which is
asked once. With a BUILD-ID, also where its debug file is, or all places where
it is not. The flags are those of symfilter. Exits with 1 if anything is out of
order, or there is no such file. It also reports which restrictions of the
sandbox this system has.

To filter a log with the name doctor, write ./doctor.
`
	manHelp = `symfilter man

Prints the manual page, in the language of troff: symfilter man | man -l -
Its date is SOURCE_DATE_EPOCH, or that of the commit it was built from.

To filter a log with the name man, write ./man.
`
)

// commandHelp is what --help prints behind each of commands.
var commandHelp = map[string]string{"completion": completionHelp, "man": manHelp, "doctor": doctorHelp, "index": indexHelp}

func printHelp(text string) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, _ []string) { io.WriteString(cmd.OutOrStdout(), text) }
}

func writeCompletion(root *cobra.Command, shell string) error {
	w := root.OutOrStdout()
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(w, true)
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	}
	return root.GenPowerShellCompletionWithDesc(w)
}

// helpColumn is where the help says what flags do.
const helpColumn = 27

// splitFlag splits a line of the help about a flag: how it is written, and
// what it does. It is no such line where names is empty.
func splitFlag(line string) (names, text string) {
	names = strings.TrimLeft(line, " ")
	if indent := len(line) - len(names); indent == 0 || indent > 6 || names == "" || names[0] != '-' {
		return "", ""
	}
	end := len(line)
	if i := strings.Index(line[6:], "  "); i >= 0 {
		end = 6 + i
	} else if len(line) > helpColumn && line[helpColumn-1] == ' ' {
		end = helpColumn
	}
	return strings.TrimSpace(line[:end]), strings.TrimSpace(line[end:])
}

// describe gives the flags the descriptions that the help has.
func describe(flags *pflag.FlagSet) {
	text := reference
	switch {
	case flags.Lookup("tree") != nil:
		text += callgrindHelp
	case flags.Lookup("leaks") != nil:
		text += rtraceHelp
	}
	for line := range strings.Lines(text) {
		names, text := splitFlag(strings.TrimSuffix(line, "\n"))
		for _, word := range strings.FieldsFunc(names, func(r rune) bool { return strings.ContainsRune(" ,[=", r) }) {
			if f := flags.Lookup(strings.TrimPrefix(word, "--")); f != nil && strings.HasPrefix(word, "--") {
				f.Usage = text
			}
		}
	}
}

// builtAt returns the date of a reproducible build: SOURCE_DATE_EPOCH, or that
// of the commit; "" when neither is known.
func builtAt() string {
	if seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly)
	}
	date, _, _ := strings.Cut(buildSetting("vcs.time"), "T")
	return date
}
