package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// completer returns a command of the library that makes completions, with the flags of cmd.
func completer(cmd *command) *cobra.Command {
	root := &cobra.Command{
		Use:               "symfilter",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			return completeArgument(cmd, args, word)
		},
		Run: func(*cobra.Command, []string) {},
	}
	newConfig().define(root.Flags(), cmd.in)
	for o := range allOptions() {
		if o.in&cmd.in != 0 && o.words != nil {
			root.RegisterFlagCompletionFunc(o.name, cobra.FixedCompletions(o.words(), cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return root
}

// completeArgument offers words for an argument. The first word of a command line is usually the
// name of a log: commands are offered only if no file's name begins with the word.
func completeArgument(cmd *command, args []string, word string) (offered []string, how cobra.ShellCompDirective) {
	switch {
	case cmd.words != nil && len(args) == 0:
		return cmd.words(), cobra.ShellCompDirectiveNoFileComp
	case cmd.words != nil:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case cmd.name != "" || len(args) > 0 || word == "":
		return nil, cobra.ShellCompDirectiveDefault
	}
	if files, _ := os.ReadDir("."); slices.ContainsFunc(files, func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), word) }) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, other := range commands() {
		if other.name != "" && strings.HasPrefix(other.name, word) {
			offered, how = append(offered, other.name), cobra.ShellCompDirectiveNoFileComp
		}
	}
	return offered, how
}

// complete answers a shell that asks how the command line d goes on.
func (d dispatched) complete(std standard) error {
	root := completer(d.command)
	root.SetArgs(append([]string{d.asked}, d.args...))
	root.SetOut(std.text)
	root.SetErr(std.err)
	return root.Execute()
}

// runCompletion prints the script for a shell.
func runCompletion(_ *config, args []string, std standard) (int, error) {
	root := completer(commandNamed(""))
	var err error
	switch args[0] {
	case "bash":
		err = root.GenBashCompletionV2(std.text, true)
	case "zsh":
		err = root.GenZshCompletion(std.text)
	case "fish":
		err = root.GenFishCompletion(std.text, true)
	default:
		err = root.GenPowerShellCompletionWithDesc(std.text)
	}
	return exitOK, err
}
