package main

import (
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/symfilter/symfilter/internal/cli"
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

// completeArgument offers words for an argument: for the first word of a command line the commands
// that it may become, and then the files. Other files are left to the shell.
func completeArgument(cmd *command, args []string, word string) (offered []string, how cobra.ShellCompDirective) {
	switch {
	case cmd.words != nil && len(args) == 0:
		return cmd.words(), cobra.ShellCompDirectiveNoFileComp
	case cmd.words != nil:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case cmd.name != "" || len(args) > 0:
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, other := range commands() {
		if other.name != "" && strings.HasPrefix(other.name, word) {
			offered = append(offered, other.name+"\t"+other.about)
		}
	}
	if offered == nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return append(offered, filesHere(word)...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// filesHere returns the names of the files and folders in the current folder that begin with word,
// as shells complete them: hidden ones only if word begins with a dot. Names with control characters,
// which would end a line or a column of the answer, are left out.
func filesHere(word string) (names []string) {
	files, _ := os.ReadDir(".")
	for _, f := range files {
		name := f.Name()
		switch {
		case !strings.HasPrefix(name, word), word == "" && name[0] == '.', strings.ContainsFunc(name, unicode.IsControl):
			continue
		case isFolder(name):
			name += "/"
		}
		names = append(names, name)
	}
	return names
}

// isFolder reports whether path is a folder, or a link to one.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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
		if err = root.GenBashCompletionV2(std.text, true); err == nil {
			_, err = io.WriteString(std.text, cli.BashWords("symfilter"))
		}
	case "zsh":
		err = root.GenZshCompletion(std.text)
	case "fish":
		err = root.GenFishCompletion(std.text, true)
	default:
		err = root.GenPowerShellCompletionWithDesc(std.text)
	}
	return exitOK, err
}
