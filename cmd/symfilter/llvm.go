package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/asis"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/llvmfilter"
	"github.com/symfilter/symfilter/internal/startup"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

const llvmText = `symfilter --filter-markup [options] <log

Works like llvm-symbolizer --filter-markup of LLVM 19: same layout, messages and
options, also from LLVM_SYMBOLIZER_OPTS and @FILE. Reads standard input only: a
FILE on the command line is taken for an address and ignored, without a message.

      --basenames, -s      print source files without their folders
      --relativenames      print source files without the compilation directory
      --functions[=KIND], -f
                           names of functions: linkage, short or none
      --no-demangle        print mangled names (the opposite: --demangle, -C)
      --color[=WHEN]       always, auto or never; without a value: always
      --debug-file-directory DIR
                           folder with .build-id (repeatable; /usr/lib/debug)
      --obj FILE, -e       ELF file, matched by build ID (repeatable)
      --dwp FILE           split debug information of the files
      --fallback-debug-path DIR
                           for debug links, in place of /usr/lib/debug
      --no-debuginfod      ask no server, even if DEBUGINFOD_URLS is set
Accepted, without effect on markup, as by llvm-symbolizer: -a -i -p --adjust-vma
--build-id --cache-size --debuginfod --default-arch --dsym-hint --inlines
--no-inlines --output-style --print-source-context-lines --relative-address
--untag-addresses --verbose, and addresses.

`

// llvmHelp returns the text of --filter-markup --help.
func llvmHelp() string {
	var own []string
	for o := range commandLine().Flags() {
		name := "--" + o.Name
		if _, theirs := llvmAlone()[name]; o.In&ofLLVM != 0 && !theirs && !llvmTakes(name) {
			own = append(own, name)
		}
	}
	return llvmText + cli.Wrap("symfilter's own flags: "+strings.Join(own, ", ")+". --explain with --verbose also lists the files used.", 0) +
		"\nExits with 0 whatever the log contains, and with 1 for a wrong option.\n"
}

// exitOption is llvm-symbolizer's exit code for unknown options.
const exitOption = 1

// runLLVM runs the program in the llvm style, and returns the exit code.
func runLLVM(args []string, std standard) int {
	stdout, stderr := std.out, std.err
	c := newConfig()
	o := &llvmOptions{own: pflag.NewFlagSet("symfilter", pflag.ContinueOnError)}
	line := commandLine()
	line.Define(o.own, c, ofLLVM)
	o.parse(asis.Expand(append(asis.ShellWords(os.Getenv(llvmEnv)), args...)))
	if lines := o.errors(); len(lines) > 0 {
		for _, line := range lines {
			fmt.Fprintf(stderr, "error: %s\n", wording.Line(line))
		}
		return exitOption
	}
	switch {
	case o.help:
		io.WriteString(stdout, llvmHelp())
		return exitOK
	case o.version:
		fmt.Fprintf(stdout, "symfilter %s\n", startup.Version())
		return exitOK
	}
	if err := line.FromEnvironment(o.own, os.LookupEnv); err != nil {
		fmt.Fprintf(stderr, "symfilter: %s; see symfilter --filter-markup --help\n", wording.Line(err.Error()))
		return exitUsage
	}
	if bad := o.badNumber(); bad != "" {
		io.WriteString(stderr, wording.Line(bad)) // llvm-symbolizer does not end this line
		return exitOption
	}
	for _, hint := range o.hints {
		if !strings.HasSuffix(hint, ".dSYM") {
			fmt.Fprintf(stderr, "Warning: invalid dSYM hint: \"%s\" (must have the '.dSYM' extension).\n", wording.Line(hint))
		}
	}
	return filterLLVM(c, o, std.in, stdout, stderr)
}

// llvmSymbols opens a Symbolizer with o that follows the rules of LLVM. fallback is the folder of
// files that debug links name; empty: the default.
func (c *config) llvmSymbols(fallback string, o symbolize.Options) (*symfilter.Opened, error) {
	o.Reaching, o.OldRustAsLLVM, o.NoAlt = true, true, true
	return c.openSymbols(fallback, o)
}

// openSymbols opens a Symbolizer with o. fallback is as in llvmSymbols.
func (c *config) openSymbols(fallback string, o symbolize.Options) (*symfilter.Opened, error) {
	o.LinkDirs = []string{cmp.Or(fallback, symfilter.DebugDir)}
	return symfilter.Symbols{NoIndex: c.noIndex, MaxMemory: int64(c.maxMemory), Symbolizer: o}.Open()
}

// filterLLVM filters stdin to stdout like LLVM's filter, and returns the exit code. A read error
// does not change the code, as in LLVM.
func filterLLVM(c *config, o *llvmOptions, stdin, stdout, stderr *os.File) int {
	offHeap := startup.LimitHeap(int64(c.maxMemory))
	diag := &diagnostics{w: stderr, quiet: c.quiet}
	defer c.close()
	var network []symbolize.Finder
	c.noServers = o.noServers
	if servers, err := c.client(os.Getenv, &diagnostics{w: stderr, quiet: true}, &statusLine{}); err != nil {
		diag.printf("%v", err)
	} else if len(c.urls) > 0 { // without servers, LLVM does not read the cache
		network = append(network, servers)
	}
	c.confine(diag, []string{o.dwp, o.fallback}, true)
	opened, err := c.llvmSymbols(o.fallback, symbolize.Options{
		Finders: c.llvmFinders(), Servers: network, OffHeap: offHeap, Names: o.names, DWP: o.dwp,
	})
	if err != nil { // fails only for servers, which were checked
		diag.printf("%v", err)
		return exitIO
	}
	defer closeSoon(opened)
	sym := opened.Symbolizer
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	options := llvmfilter.Options{
		Symbolizer: sym,
		Context:    ctx,
		Wait:       c.wait.Duration,
		NoDemangle: o.noDemangle || c.noDemangle,
		Paths:      o.paths,
		Color:      o.inColor(c.color, hasColors(stdout)),
		DiagColor:  hasColors(stderr),
		InPlace:    isTerminal(stdout),
	}
	if options.Paths == llvmfilter.AbsolutePaths && c.basenames {
		options.Paths = llvmfilter.Basenames
	}
	var said io.Writer = stderr
	if c.quiet {
		said = nil
	}
	s := &stream{out: stdout, diag: diag, stop: newStopper(cancel, lastWords, patience, nil)}
	s.engine = func(*os.File, string, bool) engine {
		return engine{WriteCloser: llvmfilter.New(stdout, said, options)}
	}
	enlargePipe(stdout)
	if isTerminal(stderr) && o.arguments {
		diag.printf("FILEs and addresses on the command line are ignored with --filter-markup")
	}
	if isTerminal(stdin) && isTerminal(stderr) {
		diag.printf("reading from the terminal; end with Ctrl-D; --filter-markup --help prints help")
	}
	code := s.exit(s.files([]string{"-"}, stdin))
	if c.explain {
		explainLLVM(diag, sym, o.verbose)
	}
	if code == exitIO && !s.unwritten {
		return exitOK
	}
	return code
}

// llvmFinders returns finders for the files and folders in flags, and for LLVM's folder of debug
// files if no flag replaces it. As in LLVM, the module's own path is not used.
func (c *config) llvmFinders() []symbolize.Finder {
	finders := []symbolize.Finder{} // nil would select the command's default finders
	if paths := slices.Concat(c.objects, c.symbolPaths); len(paths) > 0 {
		p := buildid.OpenSymbolPath(buildid.SymbolPathOptions{Paths: paths, CacheDir: symfilter.UserCacheDir()})
		c.closers = append(c.closers, p)
		finders = append(finders, p)
	}
	debugDirs := c.debugDirs
	if debugDirs == nil {
		debugDirs = []string{symfilter.DebugDir}
	}
	for _, dir := range slices.Concat(c.trees, debugDirs) {
		finders = append(finders, buildid.NewTree(dir))
	}
	return finders
}

// inColor reports whether colours are printed. As in llvm-symbolizer, an unknown value turns them
// on.
func (o *llvmOptions) inColor(when colorWhen, terminal bool) bool {
	value := o.color
	switch {
	case o.colored:
		return true
	case !o.valued:
		value = string(when)
	}
	switch value {
	case "never":
		return false
	case "auto":
		return terminal
	case "":
		return terminal || o.valued
	}
	return true
}

// hasColors reports whether llvm-symbolizer uses colours on the terminal f. llvm-symbolizer ignores
// NO_COLOR.
func hasColors(f *os.File) bool {
	if !isTerminal(f) {
		return false
	}
	term := os.Getenv("TERM")
	begins := func(prefix string) bool { return strings.HasPrefix(term, prefix) }
	return slices.ContainsFunc([]string{"screen", "xterm", "vt100", "rxvt"}, begins) ||
		term == "ansi" || term == "cygwin" || term == "linux" || strings.HasSuffix(term, "color")
}

// explainLLVM prints the modules without a debug file, and the searched places. verbose adds the
// files in use.
func explainLLVM(diag *diagnostics, sym *symbolize.Symbolizer, verbose bool) {
	for _, r := range sym.Reports() {
		switch {
		case r.Path != "" && verbose:
			diag.line("%s: using %s (%s)", r.ID, r.Path, r.Holds)
		case r.Path == "" && r.Fault != "":
			diag.line("unresolved: %s (BuildID=%s): %s", r.Name, r.ID, r.Fault)
		case r.Path == "":
			diag.line("unresolved: %s (BuildID=%s): no debug file; looked for at:", r.Name, r.ID)
			for _, a := range r.Attempts {
				diag.line("  %s: %s", a.Where, a.Reason)
			}
		}
	}
}
