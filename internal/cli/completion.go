package cli

import (
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// Shells returns the shells that Script supports.
func Shells() []string { return []string{"bash", "zsh", "fish", "powershell"} }

// Script writes the completion script for a shell.
func (p *Program[V]) Script(w io.Writer, shell string) error {
	root := p.completer(p.Commands[0])
	switch shell {
	case "bash":
		err := root.GenBashCompletionV2(w, true)
		if err == nil {
			_, err = io.WriteString(w, BashWords(p.Name))
		}
		return err
	case "zsh":
		return root.GenZshCompletion(w)
	case "fish":
		return root.GenFishCompletion(w, true)
	default:
		return root.GenPowerShellCompletionWithDesc(w)
	}
}

// Complete prints how the command line of cmd may continue after args. asked is the hidden command
// by which the shell's script requests completions, such as __complete.
func (p *Program[V]) Complete(cmd *Command, asked string, args []string, stdout, stderr io.Writer) error {
	root := p.completer(cmd)
	root.SetArgs(append([]string{asked}, args...))
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.Execute()
}

// completer returns a cobra command that makes completions, with the flags of cmd.
func (p *Program[V]) completer(cmd *Command) *cobra.Command {
	root := &cobra.Command{
		Use:               p.Name,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			return p.completeArgument(cmd, args, word)
		},
		Run: func(*cobra.Command, []string) {},
	}
	p.Define(root.Flags(), new(V), cmd.In)
	for f := range p.Flags() {
		if f.In&cmd.In != 0 && f.Words != nil {
			root.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(f.Words(), cobra.ShellCompDirectiveNoFileComp))
		}
	}
	return root
}

// completeArgument offers words for an argument. If cmd has Words, it offers them for the first
// argument, and nothing for later arguments. For the first word of a command line, it offers
// commands and files that begin with word. For other arguments, the shell completes files.
func (p *Program[V]) completeArgument(cmd *Command, args []string, word string) (offered []string, how cobra.ShellCompDirective) {
	switch {
	case cmd.Words != nil && len(args) == 0:
		return cmd.Words(), cobra.ShellCompDirectiveNoFileComp
	case cmd.Words != nil:
		return nil, cobra.ShellCompDirectiveNoFileComp
	case cmd.Name != "" || len(args) > 0:
		return nil, cobra.ShellCompDirectiveDefault
	}
	for _, other := range p.Commands {
		if other.Name != "" && strings.HasPrefix(other.Name, word) {
			offered = append(offered, other.Name+"\t"+other.About)
		}
	}
	if offered == nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return append(offered, filesHere(word)...), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// filesHere returns the files and folders here whose names begin with word. As in shells, hidden
// files need a word that begins with a dot. Names with control characters, which would end a line
// or a column of the answer, are left out.
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
