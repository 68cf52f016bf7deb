package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/startup"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// A config has the values of the flags, and values that a run derives from them.
type config struct {
	debugFlags
	serverFlags
	inputFlags
	outputFlags
	runFlags

	callgrind callgrindFlags
	changes   changeFlags
	gates     gateFlags

	suppressions suppressionsFlag
	rtrace       rtraceFlags
	profile      profileFlags
	backtraces   dialectFlags
	follow       followFlags
	container    containerFlags

	command string      // command that sets the format of the input; else empty
	dash    int         // arguments before the word --, or noDash
	child   int         // PID of the program of "symfilter run"; else 0
	closers []io.Closer // closers of the finders
}

type debugFlags struct {
	symbolPaths, objects, trees, idsFiles, debugDirs []string

	noPaths, noDefaultDirs bool
	dwp                    fileName
}

type serverFlags struct {
	servers, noServers, offline bool

	serverWords string   // value of --debuginfod-urls
	urls        []string // servers to ask
	downloads   string   // folder of debuginfod's cache; empty: none
	cacheMax    byteSize
}

type inputFlags struct {
	input     string
	fields    []string // values of --json-field
	sysroot   string
	mapFiles  []string
	maps      []*os.File // mapFiles, opened
	biasWords []string
	process   processKey

	contextFile fileName
	keys        []string // values of --json-key, separated
	reply       bool
}

type outputFlags struct {
	outputs       outputList
	output, style string // output is the form of the main output
	color         colorWhen
	prefixes      []string
	dumps         fileName

	raw, noDemangle, noInlines, basenames, noModules bool
	moduleLines                                      string

	frames   frameFlags
	source   sourceFlags
	findings findingsFlags
}

type runFlags struct {
	wait      waitFor
	maxMemory memorySize
	jobs      jobs
	baud      baud
	again     bool   // index even files that have an index
	which     string // log whose build doctor looks for; empty: none
	offsets   bool   // numbers of addr are offsets in the file
	examining bool   // the command is doctor
	report    fileName

	noIndex, noSandbox, strict, explain, quiet, verbose, version, help bool
}

// newConfig returns the flags with their defaults.
func newConfig() *config {
	return &config{dash: noDash, runFlags: runFlags{maxMemory: symbolize.DefaultMaxMemory}}
}

func run(args []string, stdin, stdout, stderr *os.File) int {
	signal.Ignore(syscall.SIGPIPE) // a write to a closed pipe fails with EPIPE, on standard output too
	// net/http logs unrequested responses, without a limit and even with --quiet
	log.SetOutput(io.Discard)
	out := &lastError{w: stdout}
	std := standard{in: stdin, out: stdout, err: stderr, text: out}
	d := dispatch(args, os.LookupEnv)
	var code int
	var err error
	switch {
	case d.asked != "":
		err = commandLine().Complete(&d.command.Command, d.asked, d.args, std.text, std.err)
	case d.llvm:
		return runLLVM(args, std)
	case d.as:
		code, err = runAs(d.args, std)
	default:
		var c *config
		var words []string
		if c, words, err = d.parse(std); c != nil {
			code, err = d.command.run(c, words, std)
		}
	}
	if errors.Is(out.err, syscall.EPIPE) {
		return exitOK // the reader of the output has closed it
	}
	if out.err != nil {
		err = fmt.Errorf("write standard output: %w", wording.Cause(out.err))
	}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "symfilter: %s; see %s --help\n", wording.Line(usage.Error()), strings.TrimSpace("symfilter "+d.command.Name))
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "symfilter: %s\n", wording.Line(err.Error()))
		return exitIO
	}
	return code
}

// A dispatched is the result of dispatch: the command, the arguments after its name, and the style
// of the flags.
type dispatched struct {
	command *command
	args    []string // after the command's name
	llvm    bool     // the flags are llvm-symbolizer's
	as      bool     // args are those of another symbolizer
	asked   string   // word with which a shell requests completions of args
}

// dispatch interprets the words that select the command or another set of flags. Only the first
// word can be a command's name. A later word, or a path such as ./man, is a log.
func dispatch(args []string, lookup func(string) (string, bool)) dispatched {
	d := dispatched{command: commandNamed(""), args: args}
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		d.asked, d.args = args[0], args[1:]
		if len(d.args) < 2 {
			return d // the first word is still being written
		}
	}
	if line, ok := containerURI(args); ok {
		d.args = line
	}
	if len(d.args) > 0 && d.args[0] != "" {
		if cmd := commandNamed(d.args[0]); cmd != nil && !(cmd.Name == "help" && isLog(d.args)) {
			d.command, d.args = cmd, d.args[1:]
		}
	}
	d.as = d.asked == "" && d.command.Name == otherCommand && len(d.args) > 0 && !strings.HasPrefix(d.args[0], "-")
	d.llvm = d.asked == "" && d.command.In&ofRuns != 0 && inStyle(args, lookup)
	return d
}

// isLog reports whether args, which begin with help, are names of logs. A file called help must
// exist. In "help PAGE", a file called PAGE must exist, too.
func isLog(args []string) bool {
	if !exists(args[0]) {
		return false
	}
	return len(args) != 2 || !slices.Contains(pages(), args[1]) || exists(args[1])
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// parse returns the values of the flags, and the other words. The values are nil after an error,
// and after a request for help or the version, which parse prints.
func (d dispatched) parse(std standard) (*config, []string, error) {
	c := newConfig()
	if d.command.isReport() {
		c.input, c.command = d.command.Name, d.command.Name
	}
	set := pflag.NewFlagSet("symfilter", pflag.ContinueOnError)
	line := commandLine()
	line.Define(set, c, d.command.In)
	if err := cli.OneDash(d.args, set); err != nil {
		return nil, nil, usageError{err}
	}
	if err := set.Parse(d.args); err != nil {
		return nil, nil, usageError{flagHint(err, set)}
	}
	c.dash = set.ArgsLenAtDash()
	switch {
	case c.help:
		_, err := io.WriteString(std.text, line.Page(&d.command.Command))
		return nil, nil, err
	case c.version:
		_, err := fmt.Fprintf(std.text, "symfilter %s\n", startup.Version())
		return nil, nil, err
	}
	if err := c.checkWords(); err != nil {
		return nil, nil, err
	}
	if d.command.isReport() {
		set.Lookup("input").Changed = true // the command takes precedence over the environment
	}
	if environment := os.Environ(); line.InEnvironment(environment) {
		words := c.runFlags
		if err := line.FromEnvironment(set, os.LookupEnv); err != nil {
			return nil, nil, usageError{err}
		}
		if c.quiet && c.verbose {
			c.quiet, c.verbose = words.quiet, words.verbose // the command line takes precedence
		}
		if !c.quiet {
			for _, message := range line.UnknownVariables(environment, set) {
				fmt.Fprintf(std.err, "symfilter: %s\n", wording.Line(message))
			}
		}
	}
	if err := line.CheckArgs(&d.command.Command, set.Args()); err != nil {
		return nil, nil, usageError{err}
	}
	return c, set.Args(), nil
}

// A lastError is a writer that keeps its last error, for code that ignores errors: the doctor, and
// code that prints texts.
type lastError struct {
	w   io.Writer
	err error
}

func (l *lastError) Write(b []byte) (int, error) {
	n, err := l.w.Write(b)
	if err != nil {
		l.err = err
	}
	return n, err
}

// A usageError reports an incorrect use of the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }
