package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
)

const help = `symfilter [flags] [FILE...]
symfilter completion bash|zsh|fish|powershell
symfilter man

Prints logs that hold symbolizer markup with every address turned into
function, file and line. Reads standard input without FILE, or for "-".

  adb logcat -v raw | symfilter -s out/symbols
  ssh host journalctl -f -o cat | symfilter --debug-file-directory /mnt/debug
  symfilter --color --explain crash.log | less -R

Where debug files are, by build ID; first come, first asked:
  -s, --symbol-path PATH   ELF file, or folder of them at any depth (repeatable)
      --obj FILE           one ELF file (repeatable)
      --build-id-dir DIR   folder with ab/cdef.debug (repeatable)
      --debug-file-directory DIR  with .build-id (repeatable; /usr/lib/debug)
  and the module's own name, when it is the path of a file with that build ID.

What is printed:
      --output FORM        text, json (an object a line), or markup as it came
      --color[=WHEN]       auto, always or never; alone: always
      --raw                control characters pass to a terminal as they are
      --no-demangle        names as the linker knows them
      --no-inlines         one frame an address
      --basenames          source files without their folders
      --prefix-map OLD=NEW source paths that begin with OLD (repeatable)
      --omit-module-lines  without the lines that list modules
      --style llvm         what llvm-symbolizer prints, by its own flags
      --filter-markup      the same; --filter-markup --help lists them
      --dumpfile-output F  JSON of the dump files in the log, as Fuchsia's

How it runs:
      --process-key KEY    what tells processes of one log apart: a REGEXP with
                           a group, or fuchsia, logcat or syslog
      --wait DURATION      longest wait for a module's file (2s; 90s for a FILE)
      --max-memory SIZE    bytes of heap, as 512M (default) or 2G
      --strict             exit with 3 if anything stayed unresolved
      --explain            afterwards: what stayed unresolved, and why
  -q, --quiet              no diagnostics
  -v, --verbose            all diagnostics, and afterwards the files used
      --version, -h, --help
Each flag is also read from the environment: SYMFILTER_SYMBOL_PATH=a:b
`

// config is what the flags say.
type config struct {
	symbolPaths []string
	objects     []string
	trees       []string
	debugDirs   []string

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
	maxMemory byteSize
	strict    bool
	explain   bool
	quiet     bool
	verbose   bool
}

// run is the program; it returns the exit code.
func run(args []string, stdin, stdout, stderr *os.File) int {
	if inStyle(args, os.LookupEnv) {
		return runLLVM(args, stdin, stdout, stderr)
	}
	var c config
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
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	cmd.SetVersionTemplate("symfilter {{.Version}}\n")
	cmd.SetHelpFunc(func(*cobra.Command, []string) { io.WriteString(stdout, help) })
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	c.define(cmd.Flags())
	addCommands(cmd, args)

	err := cmd.Execute()
	var usage usageError
	switch {
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "symfilter: %s; see symfilter --help\n", oneLine(usage.Error()))
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "symfilter: %s\n", oneLine(err.Error()))
		return exitIO
	}
	return code
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
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
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
