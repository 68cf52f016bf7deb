package main

import (
	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/input"
)

// An option is a row of the table of flags. Registration, every help page, the manual page and
// completion are made from the table.
type option struct {
	name, short string
	metavar     string            // the name of the value in the help; empty for a switch
	alone       string            // for an optional value: what the flag alone means
	text        string            // what the flag does, for the first screen and completion
	more        string            // what the other pages add to text
	preset      string            // the default value, if the help shows it
	group       group             // of flags, in the help
	in          commandSet        // the commands that have the flag
	on          commandSet        // the commands whose --help lists it
	words       func() []string   // the values, if there are few
	field       func(*config) any // a *bool, *string, *[]string or pflag.Value
}

// A commandSet is a set of commands.
type commandSet uint

const (
	ofFilter commandSet = 1 << iota
	ofValgrind
	ofCallgrind
	ofRTrace
	ofDoctor
	ofIndex
	ofText // the commands that print a text of the program's own
	ofLLVM // the style of llvm-symbolizer

	ofReports = ofValgrind | ofCallgrind | ofRTrace
	ofRuns    = ofFilter | ofReports
	ofMost    = ofRuns | ofDoctor
	ofAll     = ofMost | ofIndex
)

// A group is a group of flags under one heading of the help.
type group int

const (
	debugGroup group = iota
	serverGroup
	inputGroup
	outputGroup
	followGroup
	runGroup
	callgrindGroup
	rtraceGroup
	indexGroup
	groupCount
)

// groups are the headings, and what stands below the flags of a group.
var groups = [groupCount]struct{ title, note string }{
	debugGroup: {"Where debug files are, by build ID, in the order of the search",
		"Then the module's own path, if the file there has that build ID; then the cache of debuginfod, and the servers that DEBUGINFOD_URLS names."},
	serverGroup:    {"Servers of debug files", ""},
	inputGroup:     {"What is read, plain or compressed with gzip", ""},
	outputGroup:    {"What is printed", ""},
	followGroup:    {"Files that are still being written", ""},
	runGroup:       {"How it runs", ""},
	callgrindGroup: {"Flags of symfilter callgrind alone", ""},
	rtraceGroup:    {"Flags of symfilter rtrace alone: what is kept of a report, in this order", ""},
	indexGroup:     {"Flags of symfilter index alone", ""},
}

// options is the table. Its rows are in the order of the help.
var options = [...]option{
	{name: "symbol-path", short: "s", metavar: "PATH", group: debugGroup, in: ofMost | ofLLVM, on: ofRuns,
		text:  "ELF file, .zip file or folder tree",
		field: func(c *config) any { return &c.symbolPaths }},
	{name: "obj", metavar: "FILE", group: debugGroup, in: ofMost | ofLLVM,
		text:  "one ELF file",
		field: func(c *config) any { return &c.objects }},
	{name: "build-id-dir", metavar: "DIR", group: debugGroup, in: ofMost | ofLLVM,
		text:  "folder with files named like ab/cdef.debug",
		field: func(c *config) any { return &c.trees }},
	{name: "ids-txt", metavar: "FILE", group: debugGroup, in: ofMost,
		text:  "file with a build ID and a path on each line",
		field: func(c *config) any { return &c.idsFiles }},
	{name: "debug-file-directory", metavar: "DIR", preset: defaultDebugDir, group: debugGroup, in: ofMost | ofLLVM, on: ofFilter,
		text:  "with .build-id",
		field: func(c *config) any { return &c.debugDirs }},
	{name: "no-paths", group: debugGroup, in: ofMost,
		text:  "open no program or library at a path that a log or report names",
		field: func(c *config) any { return &c.noPaths }},
	{name: "dwp", metavar: "FILE", group: debugGroup, in: ofMost,
		text:  "package of split debug information, if it is not beside the file it belongs to",
		field: func(c *config) any { return &c.dwp }},

	{name: "debuginfod-urls", metavar: "URLS", group: serverGroup, in: ofMost | ofLLVM,
		text:  "servers, separated by blanks; system: those that /etc/debuginfod names",
		field: func(c *config) any { return &c.serverWords }},
	{name: "debuginfod", group: serverGroup, in: ofMost,
		text:  "ask the system's servers if no others are named",
		field: func(c *config) any { return &c.servers }},
	{name: "no-debuginfod", group: serverGroup, in: ofMost,
		text:  "ask no server; the cache is still read",
		field: func(c *config) any { return &c.noServers }},
	{name: "offline", group: serverGroup, in: ofMost | ofLLVM,
		text:  "use no network",
		field: func(c *config) any { return &c.offline }},
	{name: "cache-max", metavar: "SIZE", group: serverGroup, in: ofMost | ofLLVM,
		text:  "limit of the cache; files not read for longest are removed first",
		field: func(c *config) any { return &c.cacheMax }},

	{name: "input", metavar: "FORMAT", group: inputGroup, in: ofMost, words: input.Names,
		text:  "auto (default), markup, cri, docker, valgrind, callgrind or rtrace",
		more:  "cri and docker are logs of containers, as Kubernetes and Docker's json-file keep them, and are printed in that form; valgrind is XML; auto recognizes the format by the first 4 KiB, or by what has come after 100 ms of silence",
		field: func(c *config) any { return &c.input }},
	{name: "sysroot", metavar: "DIR", group: inputGroup, in: ofMost, on: ofReports,
		text:  "where the files that a report or profile names are, if not at /",
		field: func(c *config) any { return &c.sysroot }},
	{name: "map", metavar: "FILE", group: inputGroup, in: ofMost, on: ofValgrind,
		text:  "where the files were loaded: /proc/PID/maps, or the --log-file of valgrind -v -v --xml-file=...",
		field: func(c *config) any { return &c.mapFiles }},
	{name: "bias", metavar: "OBJ=0xADDR", group: inputGroup, in: ofMost, on: ofValgrind,
		text:  "where one file was loaded, less where it was linked",
		field: func(c *config) any { return &c.biasWords }},

	{name: "inclusive", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind,
		text:  "order by the cost of a function and all that it called",
		field: func(c *config) any { return &c.callgrind.inclusive }},
	{name: "tree", metavar: "WHOM", preset: "none", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind, words: trees,
		text:  "with each function also print: caller, calling, both or none",
		field: func(c *config) any { return &c.callgrind.tree }},
	{name: "threshold", metavar: "PERCENT", preset: "99", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind,
		text:  "list functions until they have this share of the cost",
		more:  "with --inclusive: those that each cost more than the rest of it",
		field: func(c *config) any { return &c.callgrind.threshold }},
	{name: "show", metavar: "EVENTS", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind,
		text:  "columns: events of the profile, derived events, and sums such as Sum=Ir+10*D1mr, separated by commas",
		field: func(c *config) any { return &c.callgrind.show }},
	{name: "sort", metavar: "EVENTS", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind,
		text:  "order by these events; otherwise in the order of the columns",
		field: func(c *config) any { return &c.callgrind.sort }},
	{name: "source", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind,
		text:  "also print source files below the current folder, with the cost of each line",
		field: func(c *config) any { return &c.callgrind.source }},
	{name: "source-root", metavar: "DIR", group: callgrindGroup, in: ofCallgrind, on: ofCallgrind,
		text:  "print source files below this folder instead",
		field: func(c *config) any { return &c.callgrind.roots }},

	{name: "depth", metavar: "N", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "the first N frames of each backtrace",
		field: func(c *config) any { return &c.rtrace.depth }},
	{name: "resource", metavar: "MASK", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "calls for these types of resources, <1>, <2>, ... (hex)",
		field: func(c *config) any { return &c.rtrace.resources }},
	{name: "call-address", metavar: "ADDR", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "calls from this address, or from a range 0x...-0x...",
		field: func(c *config) any { return (*ranges)(&c.rtrace.processing.Addresses) }},
	{name: "include", metavar: "FILE", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "calls whose indexes this file lists, one on a line",
		field: func(c *config) any { return &c.rtrace.include }},
	{name: "exclude", metavar: "FILE", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "calls whose indexes this file does not list",
		field: func(c *config) any { return &c.rtrace.exclude }},
	{name: "context", metavar: "MASK", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "calls within these contexts, @1, @2, ... (hex); 0: calls in no context",
		field: func(c *config) any { return &c.rtrace.contexts }},
	{name: "leaks", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "what was allocated and not freed, with totals",
		field: func(c *config) any { return &c.rtrace.processing.Leaks }},
	{name: "compress", group: rtraceGroup, in: ofRTrace, on: ofRTrace,
		text:  "one entry for all calls with the same backtrace",
		field: func(c *config) any { return &c.rtrace.processing.Compress }},
	{name: "sort", metavar: "ORDER", preset: "size-asc", group: rtraceGroup, in: ofRTrace, on: ofRTrace, words: orders,
		text:  "order of these entries: size, size-asc, count or count-asc",
		field: func(c *config) any { return &c.rtrace.sort }},

	{name: "output", metavar: "FORM", group: outputGroup, in: ofMost, on: ofRuns, words: outputs,
		text:  "text (default), json (an object per line) or markup",
		more:  "of a profile also callgrind, and of a report of sp-rtrace also rtrace: the input with names",
		field: func(c *config) any { return &c.output }},
	{name: "color", metavar: "WHEN", alone: "always", group: outputGroup, in: ofMost | ofLLVM, on: ofFilter, words: colors,
		text:  "auto, always or never; without a value: always",
		field: func(c *config) any { return (*string)(&c.color) }},
	{name: "raw", group: outputGroup, in: ofMost,
		text:  "pass control characters to a terminal unchanged",
		field: func(c *config) any { return &c.raw }},
	{name: "no-demangle", group: outputGroup, in: ofMost | ofLLVM,
		text:  "print names as the linker has them",
		field: func(c *config) any { return &c.noDemangle }},
	{name: "no-inlines", group: outputGroup, in: ofMost,
		text:  "print one frame for each address, without inlined calls",
		field: func(c *config) any { return &c.noInlines }},
	{name: "basenames", group: outputGroup, in: ofMost | ofLLVM, on: ofFilter,
		text:  "print source files without their folders",
		field: func(c *config) any { return &c.basenames }},
	{name: "prefix-map", metavar: "OLD=NEW", group: outputGroup, in: ofMost, on: ofReports,
		text:  "print NEW for OLD at the start of source paths",
		more:  "also in the paths at which the files of a report or profile are looked for",
		field: func(c *config) any { return &c.prefixes }},
	{name: "omit-module-lines", group: outputGroup, in: ofMost,
		text:  "leave out the lines that list modules",
		field: func(c *config) any { return &c.noModules }},
	{name: "dumpfile-output", metavar: "FILE", group: outputGroup, in: ofMost,
		text:  "write the dump files in the log as a JSON list, like Fuchsia's symbolizer",
		field: func(c *config) any { return &c.dumps }},
	{name: "style", metavar: "STYLE", group: outputGroup, in: ofMost | ofLLVM, on: ofFilter, words: styles,
		text:  "llvm: like llvm-symbolizer, with its flags",
		field: func(c *config) any { return &c.style }},
	{name: "filter-markup", group: outputGroup, in: ofMost,
		text:  "the same as --style=llvm; --filter-markup --help lists the flags",
		field: func(c *config) any { return &markupFlag{&c.style} }},

	{name: "follow", short: "F", group: followGroup, in: ofMost, on: ofFilter,
		text:  "keep reading FILEs as they grow, across rotation",
		more:  "files are followed by name: across rename, removal and truncation; a quoted pattern also finds new files",
		field: func(c *config) any { return &c.follow.on }},
	{name: "state", metavar: "FILE", group: followGroup, in: ofMost, on: ofFilter,
		text:  "with -F: checkpoint from which the next run continues",
		more:  "no line is lost and few are printed twice, even if symfilter or the reader of its output is killed",
		field: func(c *config) any { return &c.follow.state }},
	{name: "start-at", metavar: "WHEN", group: followGroup, in: ofMost,
		text:  "where to start in files without a checkpoint: beginning (default), end or DURATION",
		more:  "with DURATION: at the beginning of files written to within that time, rotated ones included",
		field: func(c *config) any { return &c.follow.start }},
	{name: "poll", group: followGroup, in: ofMost,
		text:  "check the files regularly instead of waiting for events",
		more:  "file systems known to give no events are always checked so",
		field: func(c *config) any { return &c.follow.poll }},
	{name: "rotate-wait", metavar: "TIME", group: followGroup, in: ofMost,
		text:  "how long a renamed file is kept open after its last line, for late ones",
		more:  "by default until it is removed",
		field: func(c *config) any { return &c.follow.wait }},
	{name: "with-filename", short: "H", group: followGroup, in: ofMost,
		text:  "begin each line with the name of its file",
		more:  "with --output=json each object has it",
		field: func(c *config) any { return &c.follow.withName }},

	{name: "process-key", metavar: "KEY", group: runGroup, in: ofMost, words: processKeys,
		text:  "what distinguishes the processes of one log: fuchsia, logcat, syslog or a REGEXP with a group",
		field: func(c *config) any { return &c.process }},
	{name: "wait", metavar: "DURATION", group: runGroup, in: ofMost | ofLLVM, on: ofFilter,
		text:  "longest wait for a debug file (2s; 90s for FILEs)",
		field: func(c *config) any { return &c.wait }},
	{name: "max-memory", metavar: "SIZE", preset: "512M", group: runGroup, in: ofMost | ofLLVM,
		text:  "limit of memory in bytes, such as 512M or 2G",
		field: func(c *config) any { return &c.maxMemory }},
	{name: "no-index", group: runGroup, in: ofMost | ofLLVM,
		text:  "keep no index of debug files for the next run",
		field: func(c *config) any { return &c.noIndex }},
	{name: "again", group: indexGroup, in: ofIndex, on: ofIndex,
		text:  "replace indexes that exist",
		field: func(c *config) any { return &c.again }},
	{name: "no-sandbox", group: runGroup, in: ofAll | ofLLVM, on: ofIndex,
		text:  "keep the rights that are given up on Linux before a log or file is read",
		more:  "they are: starting other programs; sockets, if no server is named; writing, except to the folders named and the caches",
		field: func(c *config) any { return &c.noSandbox }},
	{name: "strict", group: runGroup, in: ofMost, on: ofFilter,
		text:  "exit with 3 if an address stayed unresolved",
		field: func(c *config) any { return &c.strict }},
	{name: "explain", group: runGroup, in: ofMost | ofLLVM, on: ofFilter,
		text:  "at the end: what stayed unresolved, why, what to do",
		field: func(c *config) any { return &c.explain }},
	{name: "quiet", short: "q", group: runGroup, in: ofAll | ofLLVM, on: ofFilter | ofIndex,
		text:  "print no diagnostics",
		field: func(c *config) any { return &c.quiet }},
	{name: "verbose", short: "v", group: runGroup, in: ofMost, on: ofFilter,
		text:  "print all diagnostics, and at the end the files used",
		field: func(c *config) any { return &c.verbose }},
	{name: "version", group: runGroup, in: ofAll, on: ofFilter,
		text:  "print the version",
		field: func(c *config) any { return &c.version }},
	{name: "help", short: "h", group: runGroup, in: ofAll | ofText, on: ofFilter,
		text:  "print this help",
		field: func(c *config) any { return &c.help }},
}

// The words that flags of few values take.
func outputs() []string {
	return []string{outputText, outputJSON, outputMarkup, outputCallgrind, outputRTrace}
}
func colors() []string      { return []string{"auto", "always", "never"} }
func styles() []string      { return []string{styleOurs, styleLLVM} }
func trees() []string       { return []string{"none", "caller", "calling", "both"} }
func orders() []string      { return []string{"size", "size-asc", "count", "count-asc"} }
func processKeys() []string { return []string{"fuchsia", "logcat", "syslog"} }

// define adds the flags of the commands in to set; they write to c.
func (c *config) define(set *pflag.FlagSet, in commandSet) {
	for i := range options {
		o := &options[i]
		if o.in&in == 0 {
			continue
		}
		f := set.VarPF(o.valueIn(c), o.name, o.short, o.text)
		f.NoOptDefVal = o.alone
		if o.metavar == "" {
			f.NoOptDefVal = "true"
		}
	}
}

// valueIn returns the value of the flag in c.
func (o *option) valueIn(c *config) pflag.Value {
	switch p := o.field(c).(type) {
	case *bool:
		return (*truth)(p)
	case *[]string:
		return &stringList{list: p}
	case *string:
		return &word{p, o.words}
	case pflag.Value:
		return p
	}
	panic("--" + o.name + " has a value of no known type")
}

// repeatable reports whether the flag may be given more than once.
func (o *option) repeatable() bool {
	switch o.field(&config{}).(type) {
	case *[]string, *ranges:
		return true
	}
	return false
}

// find returns the first flag called name that one of the commands in has; nil if none has it.
func find(name string, in commandSet) *option {
	for i := range options {
		if o := &options[i]; o.name == name && o.in&in != 0 {
			return o
		}
	}
	return nil
}
