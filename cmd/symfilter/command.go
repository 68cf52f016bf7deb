package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// config is what the flags say.
type config struct {
	symbolPaths []string
	objects     []string
	trees       []string
	idsFiles    []string
	debugDirs   []string
	noPaths     bool
	dwp         fileName

	servers     bool
	noServers   bool
	offline     bool
	serverWords string   // of --debuginfod-urls
	urls        []string // of the servers that are asked
	downloads   string   // the folder of debuginfod's cache; empty: none
	cacheMax    byteSize

	input      string
	sysroot    string
	mapFiles   []string
	maps       []*os.File // of mapFiles, opened
	biasWords  []string
	output     string
	color      colorWhen
	raw        bool
	noDemangle bool
	noInlines  bool
	basenames  bool
	prefixes   []string
	noModules  bool

	dumps fileName
	style string

	process   processKey
	wait      waitFor
	maxMemory memorySize
	noIndex   bool
	noSandbox bool
	strict    bool
	explain   bool
	quiet     bool
	verbose   bool
	examining bool // this is the doctor

	callgrind callgrindFlags
	rtrace    rtraceFlags
	follow    followFlags

	closers []io.Closer // of the finders
}

// run is the program; it returns the exit code.
func run(args []string, stdin, stdout, stderr *os.File) int {
	signal.Ignore(syscall.SIGPIPE) // a write to a closed pipe fails with EPIPE, on standard output too
	if inStyle(args, os.LookupEnv) {
		return runLLVM(args, stdin, stdout, stderr)
	}
	if of, yes := wantsHelp(args); yes {
		args = append(given(of), "--help")
	}
	var c config
	args, command := withInput(args)
	code := exitOK
	cmd := &cobra.Command{
		Use:               "symfilter [flags] [FILE...]",
		Args:              cobra.ArbitraryArgs,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Version:           version(),
		RunE: func(cmd *cobra.Command, files []string) error {
			if c.style == styleLLVM { // as only we write it: --filter-markup=true
				code = runLLVM(args, stdin, stdout, stderr)
				return nil
			}
			if err := fromEnvironment(cmd.Flags(), os.LookupEnv); err != nil {
				return usageError{err}
			}
			var err error
			code, err = filterAll(&c, files, stdin, stdout, stderr)
			return err
		},
	}
	cmd.SetArgs(args)
	out := &lastError{w: stdout}
	cmd.SetOut(out)
	cmd.SetErr(stderr)
	cmd.SetVersionTemplate("symfilter {{.Version}}\n")
	cmd.SetHelpFunc(printHelp(helpOf(command)))
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{formatFlag(err, cmd.Flags())} })
	c.define(cmd.Flags())
	c.defineFormat(cmd.Flags(), command)
	addCommands(cmd, &c, &code, args)

	err := cmd.Execute()
	if errors.Is(out.err, syscall.EPIPE) {
		return exitOK // who reads us has enough
	}
	if out.err != nil {
		err = fmt.Errorf("write standard output: %w", bare(out.err))
	}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		see := "symfilter --help"
		if len(args) > 0 && commandHelp[args[0]] != "" {
			command = args[0]
		}
		if command != "" {
			see = "symfilter " + command + " --help"
		}
		fmt.Fprintf(stderr, "symfilter: %s; see %s\n", oneLine(usage.Error()), see)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "symfilter: %s\n", oneLine(err.Error()))
		return exitIO
	}
	return code
}

// A lastError is a writer that keeps the error of what could not be written:
// help and the doctor's findings are printed without looking.
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

// A usageError is a mistake in how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// version returns the module's version, with the commit where the toolchain
// recorded one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12 && !strings.Contains(v, s.Value[:12]):
			v += " " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			v += " (modified)"
		}
	}
	return v + " " + info.GoVersion
}

// buildSetting returns what the toolchain recorded about the build.
func buildSetting(key string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == key {
				return s.Value
			}
		}
	}
	return ""
}
