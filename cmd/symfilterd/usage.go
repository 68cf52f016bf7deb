package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/daemon"
	"github.com/symfilter/symfilter/internal/startup"
)

// An options is a parsed command line.
type options struct {
	config string
	check  bool
	free   bool // no sandbox
	// prints help, a man page or a completion script instead of running; nil to run
	print func(io.Writer) error
}

var shells = []string{"bash", "zsh", "fish"}

// define returns the flags. The last three results are the values of flags without a field in o.
func (o *options) define() (flags *pflag.FlagSet, schema, version, help *bool) {
	flags = pflag.NewFlagSet("symfilterd", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.StringVar(&o.config, "config", "", "the configuration `FILE`")
	flags.BoolVar(&o.check, "check", false, "check the configuration and the files it names, and exit")
	flags.BoolVar(&o.free, "no-sandbox", false, "do not confine the process on Linux")
	schema = flags.Bool("schema", false, "print the JSON schema of the configuration")
	version = flags.Bool("version", false, "print the version")
	help = flags.BoolP("help", "h", false, "print this help")
	return flags, schema, version, help
}

// helpText is the part of --help before the flags.
const helpText = `symfilterd --config FILE             run the pipelines of the file
symfilterd --config FILE --check     check the file
symfilterd help configuration        all keys of the file, with defaults
symfilterd man                       print the manual page
symfilterd completion SHELL          for bash, zsh or fish

Symbolizes logs as a service: each pipeline reads log files, a socket, HTTP or
journald, replaces addresses by function, file and line, and writes to a file,
standard output, the sender or a socket. A first file:

  pipelines:
    app:
      input: {files: ["/var/log/app/*.log"]}
      output: {file: /var/log/symbolized/app.log}

`

// helpEnd is the part of --help after the flags.
const helpEnd = `
SIGHUP reads the file again and reopens outputs; a file with mistakes changes
nothing. SIGTERM ends the daemon within five seconds. Exit status: 0 after
SIGTERM, or if --check finds no mistake; 1 if the daemon cannot run, or loses
lines at its end; 2 after a mistake in the command line or in the file.
`

func help() string {
	flags, _, _, _ := new(options).define()
	return helpText + "Flags:\n" + flags.FlagUsages() + helpEnd
}

// parse reads a command line. Its errors show the correct form.
func parse(args []string) (*options, error) {
	o := &options{}
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd || len(args) > 0 && args[0] == cobra.ShellCompNoDescRequestCmd {
		o.print = func(w io.Writer) error { return complete(args, w) }
		return o, nil
	}
	flags, schema, version, wantsHelp := o.define()
	if err := flags.Parse(args); err != nil {
		var known []string
		flags.VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		return nil, fmt.Errorf("%w; the flags are %s: see symfilterd --help", err, strings.Join(known, " "))
	}
	words := flags.Args()
	word := ""
	if len(words) > 0 {
		word = words[0]
	}
	switch {
	case *wantsHelp, word == "help" && len(words) == 1:
		o.print = text(help())
	case *version:
		o.print = text("symfilterd " + startup.Version() + "\n")
	case *schema:
		o.print = text(string(daemon.Schema()))
	case word == "help" && len(words) == 2 && words[1] == "configuration":
		o.print = text(reference())
	case word == "help":
		return nil, fmt.Errorf("no help for %q; the only topic is configuration: write symfilterd help configuration", strings.Join(words[1:], " "))
	case word == "man" && len(words) == 1:
		o.print = text(manPage(startup.Release(), startup.BuiltAt()))
	case word == "completion":
		if len(words) != 2 || !slices.Contains(shells, words[1]) {
			return nil, fmt.Errorf("completion needs the name of a shell, one of %s: write symfilterd completion bash", strings.Join(shells, ", "))
		}
		o.print = func(w io.Writer) error { return script(words[1], w) }
	case word != "" && o.config == "" && len(words) == 1 && strings.ContainsAny(word, "./"):
		return nil, fmt.Errorf("%q is not a flag; write symfilterd --config %s", word, word)
	case word != "":
		return nil, fmt.Errorf("%q is not a command; the commands are help, man and completion: see symfilterd --help", word)
	case o.config == "":
		return nil, fmt.Errorf("no configuration; write symfilterd --config FILE: see symfilterd --help")
	}
	return o, nil
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// completer returns the cobra command that makes completions and the shells' scripts.
func completer() *cobra.Command {
	root := &cobra.Command{
		Use: "symfilterd", SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Run:               func(*cobra.Command, []string) {},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			switch strings.Join(args, " ") {
			case "":
				return []string{"help", "man", "completion"}, cobra.ShellCompDirectiveNoFileComp
			case "help":
				return []string{"configuration"}, cobra.ShellCompDirectiveNoFileComp
			case "completion":
				return shells, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
	}
	flags, _, _, _ := new(options).define()
	root.Flags().AddFlagSet(flags)
	root.MarkFlagFilename("config", "yaml", "yml")
	return root
}

// complete prints how a command line may continue, for a shell.
func complete(args []string, to io.Writer) error {
	root := completer()
	root.SetArgs(args)
	root.SetOut(to)
	root.SetErr(io.Discard)
	return root.Execute()
}

func script(of string, to io.Writer) error {
	root := completer()
	switch of {
	case "bash":
		if err := root.GenBashCompletionV2(to, true); err != nil {
			return err
		}
		_, err := io.WriteString(to, cli.BashWords("symfilterd"))
		return err
	case "zsh":
		return root.GenZshCompletion(to)
	}
	return root.GenFishCompletion(to, true)
}

// remarks returns the notes about a key in the reference: kind, range and default, and the keys
// that must accompany it.
func remarks(k *daemon.Key) string {
	all := []string{k.Kind()}
	if r := k.Range(); r != "" {
		all = append(all, r)
	}
	if k.Default != "" {
		all = append(all, "default "+k.Default)
	}
	if k.With != nil {
		all = append(all, "with "+strings.Join(k.With, ", "))
	}
	return strings.Join(all, "; ")
}

func title(s *daemon.Section) string { return cmp.Or(s.Path, "The file") }
