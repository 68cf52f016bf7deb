package main

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/input"
)

// An option is a flag: a row of the table options. Registration, every help page, the manual page and
// completion are made from the table.
type option struct {
	name, short string
	metavar     string            // the name of the value in the help; empty for a switch
	alone       string            // for an optional value: what the flag alone means
	text        string            // what the flag does, for the first screen and completion
	more        string            // what the other pages add to text
	preset      string            // the default value, if the help shows it
	in          commandSet        // the commands that have the flag
	on          commandSet        // the commands whose --help lists it
	words       func() []string   // the values, if there are few
	field       func(*config) any // a *bool, *string, *[]string, or a type with Set(string) error
}

// A commandSet is a set of commands.
type commandSet uint

const (
	ofFilter commandSet = 1 << iota
	ofValgrind
	ofCallgrind
	ofRTrace
	ofDoctor
	ofAddr
	ofProfile
	ofIndex
	ofText // the commands that print a text of the program's own
	ofLLVM // the style of llvm-symbolizer
	ofContainer

	ofReports = ofValgrind | ofCallgrind | ofRTrace
	ofGates   = ofFilter | ofValgrind | ofRTrace
	ofRuns    = ofFilter | ofReports
	ofMost    = ofRuns | ofDoctor
	ofLogs    = ofMost | ofContainer
	ofAsking  = ofLogs | ofAddr | ofProfile // the commands that look for debug files
	ofAll     = ofAsking | ofIndex
)

// A group is a group of flags under one heading of the help.
type group struct {
	title string
	topic string // the topic whose page lists the flags
	note  string // below the flags
	flags []option
}

// allOptions returns the flags of all groups.
func allOptions() iter.Seq[*option] {
	return func(yield func(*option) bool) {
		for g := range options {
			for i := range options[g].flags {
				if !yield(&options[g].flags[i]) {
					return
				}
			}
		}
	}
}

// options is the table: groups of flags, in the order of the help. It is data, so that it costs nothing
// at the start of the program.
var options = [...]group{
	{title: "Where debug files are, by build ID, in the order of the search", topic: "finding",
		note: "Then the module's own path, debuginfod's cache, servers of DEBUGINFOD_URLS.", flags: []option{
			{name: "symbol-path", short: "s", metavar: "PATH", in: ofAsking | ofLLVM, on: ofRuns | ofAddr | ofProfile, field: func(c *config) any { return &c.symbolPaths }, text: "ELF file, .zip file or folder tree"},
			{name: "obj", metavar: "FILE", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.objects }, text: "one ELF file"},
			{name: "build-id-dir", metavar: "DIR", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.trees }, text: "folder with files named like ab/cdef.debug"},
			{name: "ids-txt", metavar: "FILE", in: ofAsking, field: func(c *config) any { return &c.idsFiles }, text: "file with a build ID and a path on each line"},
			{name: "debug-file-directory", metavar: "DIR", in: ofAsking | ofLLVM, on: ofFilter | ofAddr, field: func(c *config) any { return &c.debugDirs }, text: "holds .build-id", more: "searched before " + symfilter.DebugDir},
			{name: "no-default-debug-directories", in: ofAsking, field: func(c *config) any { return &c.noDefaultDirs }, text: "do not search " + symfilter.DebugDir},
			{name: "no-paths", in: ofLogs | ofProfile, field: func(c *config) any { return &c.noPaths }, text: "open no program or library at a path that a log or report names"},
			{name: "dwp", metavar: "FILE", in: ofAsking, field: func(c *config) any { return &c.dwp }, text: "package of split debug information (.dwp), if it is not beside its file"},
		}},
	{title: "Servers of debug files", topic: "finding", flags: []option{
		{name: "debuginfod-urls", metavar: "URLS", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.serverWords },
			text: "servers, separated by blanks; system: those that /etc/debuginfod names"},
		{name: "debuginfod", in: ofAsking, field: func(c *config) any { return &c.servers }, text: "ask the system's servers if no others are named"},
		{name: "no-debuginfod", in: ofAsking, field: func(c *config) any { return &c.noServers }, text: "ask no server; the cache is still read"},
		{name: "offline", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.offline }, text: "use no network"},
		{name: "cache-max", metavar: "SIZE", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.cacheMax }, text: "limit of the cache of debuginfod; the files unread for longest are removed first"},
	}},
	{title: "What is read, plain or compressed (gzip, zstd, xz, bzip2), in UTF-8 or UTF-16", flags: []option{
		{name: "input", metavar: "FORMAT", in: ofLogs, words: input.Names, field: func(c *config) any { return &c.input },
			text: "auto (default), markup, cri, docker, json, journal, valgrind, callgrind or rtrace",
			more: "cri and docker are logs of containers, as Kubernetes and Docker's json-file keep them, json is a log with an object in each line, journal what journalctl -o export prints; all four are printed in that form; valgrind is XML; auto recognizes the format by the first 4 KiB, or by what has come after 100 ms of silence"},
		{name: "json-field", metavar: "NAME", in: ofLogs, field: func(c *config) any { return &c.fields },
			text: "a member of JSON lines that is text of a log; instead of those that are read by default",
			more: "these are " + strings.Join(input.DefaultFields(), ", ") + ": if a line has several, all are filtered; a dot leads into an object, or is a part of the name"},
		{name: "sysroot", metavar: "DIR", in: ofLogs | ofProfile, on: ofReports | ofProfile, field: func(c *config) any { return &c.sysroot }, text: "look below DIR for the files that a log, report or profile names"},
		{name: "map", metavar: "FILE", in: ofMost | ofProfile, on: ofValgrind | ofProfile, field: func(c *config) any { return &c.mapFiles },
			text: "lists where files were loaded: a copy of /proc/PID/maps, or the --log-file of valgrind -v -v --xml-file=..."},
		{name: "bias", metavar: "OBJ=0xADDR", in: ofMost | ofProfile, on: ofValgrind | ofProfile, field: func(c *config) any { return &c.biasWords }, text: "the address at which OBJ was loaded, minus the one at which it was linked"},
	}},
	{title: "Backtraces without markup", topic: "dialects", flags: []option{
		{name: "dialects", metavar: "LIST", in: ofLogs, words: func() []string { return []string{"auto", "none"} }, field: func(c *config) any { return &c.backtraces.names },
			text: "which are resolved: auto (default: all), none, or names with commas between them, of those that symfilter help dialects lists"},
		{name: "image", metavar: "[NAME=]FILE[@BASE]", in: ofLogs, field: func(c *config) any { return &c.backtraces.images },
			text: "the file that ran, for the module NAME of a backtrace",
			more: "without NAME, for addresses without a module; BASE is the address of its first page, such as 0x7f3100000000"},
		{name: "force-image", in: ofLogs, field: func(c *config) any { return &c.backtraces.forceImages }, text: "use --image even if the log shows that another file ran"},
		{name: "keep-raw", in: ofLogs, field: func(c *config) any { return &c.backtraces.keepRaw }, text: "append names to frames, and replace nothing"},
		{name: "code", in: ofMost, field: func(c *config) any { return &c.backtraces.code }, text: "disassemble the code that the kernel lists of a crash (x86-64, arm64)"},
	}},
	{title: "What is printed", flags: []option{
		{name: "output", metavar: "FORM[:FILE]", in: ofMost, on: ofRuns, words: outputs, field: func(c *config) any { return &c.outputs },
			text: "text (default), json, html (a page) or markup",
			more: "json prints an object per line; sarif, junit and codequality print the errors that reports, and sanitizers and crashes in logs, have: see symfilter help findings; suppressions those of reports, for Valgrind; for a profile also callgrind, for a report of sp-rtrace also rtrace, for both the stacks pprof, folded and speedscope, for one of Valgrind valgrind: the input itself, with names, of Valgrind with FILE/ a file for each process; with several --output, each but one names its FILE, which gets its name when it is complete"},
		{name: "color", metavar: "WHEN", alone: "always", in: ofMost | ofLLVM, on: ofFilter, words: colors, field: func(c *config) any { return (*string)(&c.color) },
			text: "auto, always or never; without a value: always"},
		{name: "raw", in: ofMost, field: func(c *config) any { return &c.raw }, text: "pass control characters to a terminal unchanged"},
		{name: "no-demangle", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.noDemangle }, text: "print names mangled, as the linker has them"},
		{name: "no-inlines", in: ofAsking, field: func(c *config) any { return &c.noInlines }, text: "print one frame for each address, without inlined calls"},
		{name: "basenames", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.basenames }, text: "print source files without their folders"},
		{name: "prefix-map", metavar: "OLD=NEW", in: ofAsking, on: ofReports | ofProfile, field: func(c *config) any { return &c.prefixes },
			text: "print NEW for OLD at the start of source paths",
			more: "also in the paths at which the files of a report or profile are looked for"},
		{name: "module-lines", metavar: "FORM", in: ofLogs, words: moduleLines, field: func(c *config) any { return &c.moduleLines },
			text: "how modules are listed: full (default but on a terminal), short, none or raw",
			more: "short has the name without folders and the build ID, without the addresses; raw is the markup itself"},
		{name: "omit-module-lines", in: ofLogs, field: func(c *config) any { return &c.noModules }, text: "the same as --module-lines=none"},
		{name: "dumpfile-output", metavar: "FILE", in: ofMost, field: func(c *config) any { return &c.dumps }, text: "write a JSON list of the dump files that the log names, like Fuchsia's symbolizer"},
		{name: "style", metavar: "STYLE", in: ofMost | ofLLVM, words: styles, field: func(c *config) any { return &c.style }, text: "symfilter (default), llvm with its own flags, or valgrind", more: "llvm prints what llvm-symbolizer --filter-markup prints, valgrind the text that Valgrind prints without --xml, of its reports"},
		{name: "filter-markup", in: ofMost, field: func(c *config) any { return markupFlag{&c.style} }, text: "the same as --style=llvm; --filter-markup --help lists its flags"},
	}},
	{title: "How frames look on a terminal", flags: []option{
		{name: "own", metavar: "GLOB", in: ofMost, field: func(c *config) any { return ruleFlag{&c.look.rules, true} },
			text: "frames with this source file or object are the program's own, not of its system",
			more: "a glob that matches a folder matches all below it; the last --own or --system that matches decides"},
		{name: "system", metavar: "GLOB", in: ofMost, field: func(c *config) any { return ruleFlag{&c.look.rules, false} },
			text: "frames with this source file or object are of the system, as those of libc are"},
		{name: "all-frames", in: ofMost, field: func(c *config) any { return switchFlag{&c.look.allFrames} }, text: "print all frames of the system, which a terminal gets as one line",
			more: "--all-frames=false folds them in any text"},
		{name: "short-names", in: ofMost, field: func(c *config) any { return &c.look.shortNames }, text: "print an ellipsis for the arguments of templates, in names of functions"},
	}},
	{title: "Source lines, and links to them", topic: "source", flags: []option{
		{name: "source", metavar: "LINES", alone: usualSourceLines, in: ofRuns | ofAddr, field: func(c *config) any { return &c.source.lines },
			text: "print source lines below the program's own frames, LINES before and after (3)",
			more: "of a profile's table: source files below --source-root or the current folder, with the cost of each line, or with --diff its change"},
		{name: "source-root", metavar: "DIR", in: ofRuns | ofAddr, field: func(c *config) any { return &c.source.roots },
			text: "folder of source files; no other is opened",
			more: "paths are looked for below it after --prefix-map"},
		{name: "source-url", metavar: "TEMPLATE", in: ofRuns | ofAddr, field: func(c *config) any { return &c.source.url },
			text: "where links to source lines lead: vscode, github:OWNER/REPO@REV, a URL with {path} and {line}"},
		{name: "hyperlink", metavar: "WHEN", in: ofRuns | ofAddr, words: colors, field: func(c *config) any { return &c.source.hyperlink },
			text: "make links of files and lines: auto (default: on a terminal with colours), always or never"},
	}},
	{title: "What lets a build fail", topic: "gates", flags: []option{
		{name: "baseline", metavar: "FILE", in: ofGates, on: ofValgrind | ofRTrace, field: func(c *config) any { return &c.gates.baseline },
			text: "print what is new since FILE, and exit with 4 if something is"},
		{name: "baseline-update", in: ofGates, field: func(c *config) any { return &c.gates.update },
			text: "write the findings to the FILE of --baseline", more: "lines that stay keep their until=DATE"},
		{name: "gate", metavar: "KINDS", in: ofGates, field: func(c *config) any { return &c.gates.kinds },
			text: "exit with 4 if there is a finding of these kinds, or a new one: all, none, or KIND[,KIND]",
			more: "* stands for any letters, as in Leak_*; by default all kinds but Leak_StillReachable, Leak_IndirectlyLost and indirect-leak"},
		{name: "supp-check", metavar: "FILE", in: ofFilter | ofValgrind, on: ofValgrind, field: func(c *config) any { return &c.suppressions.path },
			text: "list the suppressions of Valgrind in FILE that no error of the reports needs"},
		{name: "diff", in: ofGates, on: ofValgrind | ofRTrace, field: func(c *config) any { return &c.gates.diff },
			text: "print what is new in NEW: --diff OLD NEW, or --diff OLD... -- NEW...", more: "exit with 4 if something is"},
	}},
	{title: "Errors of programs, for builds and code hosts", topic: "findings", flags: []option{
		{name: "sarif-category", metavar: "NAME", in: ofRuns, field: func(c *config) any { return &c.findings.category },
			text: "name of the results, if several files are uploaded for a commit",
			more: "a file with the same name and tool replaces the results of the one before it"},
		{name: "sarif-hash", metavar: "OF", in: ofRuns, words: sarifHashes, field: func(c *config) any { return &c.findings.hash },
			text: "by what GitHub knows a result again: stack (default), or line",
			more: "line is the hash of the source line that GitHub's upload action computes; it needs --source-root"},
		{name: "junit", metavar: "SCHEMA", in: ofRuns, words: junitSchemas, field: func(c *config) any { return &c.findings.schema },
			text: "gitlab (default), or xunit for Jenkins' xUnit plugin, whose schema allows less"},
		{name: "junit-case", metavar: "OF", in: ofRuns, words: junitCases, field: func(c *config) any { return &c.findings.cases },
			text: "what a test case is: a process (default) or a finding"},
	}},
	{title: "Files that are still being written", topic: "follow", flags: []option{
		{name: "follow", short: "F", in: ofMost, on: ofFilter, field: func(c *config) any { return &c.follow.on },
			text: "keep reading FILEs as they grow, across rotation",
			more: "files are followed by name: across rename, removal and truncation; a quoted pattern also finds new files"},
		{name: "state", metavar: "FILE", in: ofMost, field: func(c *config) any { return &c.follow.state },
			text: "with -F: checkpoint from which the next run continues",
			more: "no line is lost and few are printed twice, even if symfilter or the reader of its output is killed"},
		{name: "start-at", metavar: "WHEN", in: ofMost, field: func(c *config) any { return &c.follow.start },
			text: "where to start in files without a checkpoint: beginning (default), end or DURATION",
			more: "a DURATION, such as 1h, starts at the beginning of files that were written to within that time, including rotated ones"},
		{name: "poll", in: ofMost, field: func(c *config) any { return &c.follow.poll },
			text: "check the files regularly instead of waiting for events",
			more: "file systems known to give no events are always checked so"},
		{name: "rotate-wait", metavar: "TIME", in: ofMost, field: func(c *config) any { return &c.follow.wait },
			text: "how long a renamed file is still read after its last line",
			more: "by default until it is removed"},
		{name: "exclude-path", metavar: "GLOB", in: ofMost, field: func(c *config) any { return &c.follow.exclude },
			text: "do not follow files with this name or path",
			more: "a pattern without a slash is matched with names, any other with whole paths and with folders"},
		{name: "with-filename", short: "H", in: ofMost, field: func(c *config) any { return &c.follow.withName },
			text: "begin each line with the name of its file",
			more: "with --output=json each object has it"},
	}},
	{title: "Streams of several processes, and of other programs", topic: "collectors", flags: []option{
		{name: "process-key", metavar: "KEY", in: ofLogs, words: processKeys, field: func(c *config) any { return &c.process },
			text: "what distinguishes the processes of one log: fuchsia, logcat, syslog or a REGEXP with a group"},
		{name: "json-key", metavar: "NAMES", in: ofLogs, field: func(c *config) any { return (*nameList)(&c.keys) },
			text: "members of JSON lines, with commas between them, whose values tell one process from another",
			more: "each process has its own modules and maps; for a journal, names of its fields"},
		{name: "reply", in: ofMost, field: func(c *config) any { return &c.reply },
			text: "with --input=json: answer each line with an object of the members that change",
			more: "{} if none does; for rsyslog's mmexternal"},
		{name: "context-file", metavar: "FILE", in: ofMost, field: func(c *config) any { return &c.contextFile },
			text: "keep modules and maps of standard input over a restart",
			more: "FILE is read at the start, and written within a second after a change, after SIGHUP and at the end; for a collector of logs that starts symfilter again"},
	}},
	{title: "Serial ports", topic: "devices", flags: []option{
		{name: "baud", metavar: "RATE", preset: defaultRate, in: ofMost, field: func(c *config) any { return &c.baud },
			text: "rate of the serial port that FILE is, such as /dev/ttyUSB0",
			more: "the port is read until Ctrl-C, and looked for every second while it is not there"},
	}},
	{title: "How it runs", flags: []option{
		{name: "wait", metavar: "DURATION", in: ofAsking | ofLLVM, on: ofFilter, field: func(c *config) any { return &c.wait }, text: "longest wait for a debug file (2s; 90s for FILEs)"},
		{name: "max-memory", metavar: "SIZE", preset: "512M", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.maxMemory }, text: "limit of memory in bytes, such as 512M or 2G"},
		{name: "jobs", metavar: "N", in: ofAsking, field: func(c *config) any { return &c.jobs },
			text: "how many processors look up addresses of one file at once, 1 to 64 (as many as there are)",
			more: "the output does not depend on it"},
		{name: "no-index", in: ofAsking | ofLLVM, field: func(c *config) any { return &c.noIndex }, text: "keep no index of debug files for the next run"},
		{name: "no-sandbox", in: ofAll | ofLLVM, on: ofIndex, field: func(c *config) any { return &c.noSandbox },
			text: "do not confine the process on Linux",
			more: "confined, it cannot start other programs, use sockets if no server is named, or write outside of the folders that flags name and the caches"},
		{name: "strict", in: ofAsking, on: ofFilter | ofAddr | ofProfile, field: func(c *config) any { return &c.strict }, text: "exit with 3 if an address stayed unresolved"},
		{name: "explain", in: ofAsking | ofLLVM, on: ofFilter, field: func(c *config) any { return &c.explain }, text: "at the end: what stayed unresolved, why, what to do"},
		{name: "quiet", short: "q", in: ofAll | ofLLVM, on: ofFilter | ofIndex | ofAddr, field: func(c *config) any { return &c.quiet }, text: "print no diagnostics"},
		{name: "verbose", short: "v", in: ofAsking, on: ofFilter, field: func(c *config) any { return &c.verbose }, text: "print all diagnostics, and at the end the files used"},
		{name: "version", in: ofAll, field: func(c *config) any { return &c.version }, text: "print the version"},
		{name: "help", short: "h", in: ofAll | ofText, field: func(c *config) any { return &c.help }, text: "print this help"},
	}},
	{title: "Flags of symfilter callgrind alone", flags: []option{
		{name: "inclusive", in: ofCallgrind, field: func(c *config) any { return &c.callgrind.inclusive }, text: "order by the cost of a function and all that it called"},
		{name: "tree", metavar: "WHOM", preset: "none", in: ofCallgrind, words: trees, field: func(c *config) any { return &c.callgrind.tree },
			text: "list with each function its callers (caller), the functions that it calls (calling), both, or none"},
		{name: "threshold", metavar: "PERCENT", preset: "99", in: ofCallgrind, field: func(c *config) any { return percentage{&c.callgrind.threshold} },
			text: "list functions until their costs add up to this share",
			more: "with --inclusive: each function that costs at least 100 - PERCENT"},
		{name: "show", metavar: "EVENTS", in: ofCallgrind, field: func(c *config) any { return &c.callgrind.show },
			text: "columns, or values of stacks: events of the profile, derived events, and sums such as Sum=Ir+10*D1mr, separated by commas"},
		{name: "part", metavar: "N[,N]", in: ofCallgrind, field: func(c *config) any { return &c.callgrind.parts },
			text: "only the parts with these numbers, of all that --dump-every-bb, callgrind_control or the program itself wrote"},
		{name: "thread", metavar: "N[,N]", in: ofCallgrind, field: func(c *config) any { return &c.callgrind.threads },
			text: "only these threads, of a profile recorded with --separate-threads=yes"},
		{name: "diff", in: ofCallgrind, field: func(c *config) any { return &c.changes.diff },
			text: "compare OLD with NEW: --diff OLD NEW, or --diff OLD... -- NEW...",
			more: "functions with the largest changes first"},
		{name: "limit", metavar: "LIMIT", in: ofCallgrind, field: func(c *config) any { return &c.changes.limits },
			text: "exit with 4 if a cost is larger: Ir=700k, main:Ir=+1%; see symfilter help gates"},
		{name: "mod-funcname", metavar: "s/OLD/NEW/", in: ofCallgrind, field: func(c *config) any { return &c.changes.functions },
			text: "with --diff and --limit: change names of functions; OLD is a regular expression"},
		{name: "mod-filename", metavar: "s/OLD/NEW/", in: ofCallgrind, field: func(c *config) any { return &c.changes.files },
			text: "the same for names of source files"},
		{name: "sort", metavar: "EVENTS", in: ofCallgrind, field: func(c *config) any { return &c.callgrind.sort }, text: "order by these events; otherwise in the order of the columns"},
	}},
	{title: "Flags of symfilter rtrace alone: what is kept of a report, in this order", flags: []option{
		{name: "depth", metavar: "N", in: ofRTrace, field: func(c *config) any { return depth{&c.rtrace.processing.Depth} }, text: "the first N frames of each backtrace"},
		{name: "resource", metavar: "MASK", in: ofRTrace, field: func(c *config) any { return mask{&c.rtrace.resources} }, text: "calls for these types of resources, <1>, <2>, ... (hex)"},
		{name: "call-address", metavar: "ADDR", in: ofRTrace, field: func(c *config) any { return (*ranges)(&c.rtrace.processing.Addresses) },
			text: "calls from this address, or from a range 0x...-0x..."},
		{name: "include", metavar: "FILE", in: ofRTrace, field: func(c *config) any { return &c.rtrace.include }, text: "calls whose indexes this file lists, one on a line"},
		{name: "exclude", metavar: "FILE", in: ofRTrace, field: func(c *config) any { return &c.rtrace.exclude }, text: "calls whose indexes this file does not list"},
		{name: "context", metavar: "MASK", in: ofRTrace, field: func(c *config) any { return mask{&c.rtrace.processing.Contexts} }, text: "calls within these contexts, @1, @2, ... (hex); 0: calls in no context"},
		{name: "leaks", in: ofRTrace, field: func(c *config) any { return &c.rtrace.processing.Leaks }, text: "what was allocated and not freed, with totals"},
		{name: "compress", in: ofRTrace, field: func(c *config) any { return &c.rtrace.processing.Compress }, text: "one entry for all calls with the same backtrace"},
		{name: "sort", metavar: "ORDER", preset: "size-asc", in: ofRTrace, words: orders, field: func(c *config) any { return &c.rtrace.sort },
			text: "order of these entries: size, size-asc, count or count-asc"},
	}},
	{title: "Flags of symfilter profile alone", flags: []option{
		{name: "output", metavar: "FORM[:FILE]", in: ofProfile, words: profileOutputs, field: func(c *config) any { return profileOutput{&c.outputs} },
			text: "text, pprof, folded (a line for each stack), speedscope or own",
			more: "own prints a file of DHAT or Massif as Valgrind does, and is the default for these; text is the default for others; with FILE to a file; then the flag may be repeated"},
		{name: "show", metavar: "TYPE", in: ofProfile, field: func(c *config) any { return &c.profile.show },
			text: "values that text and folded print, such as alloc_space; by default those that the profile names"},
		{name: "inclusive", in: ofProfile, field: func(c *config) any { return &c.profile.inclusive }, text: "order by the values of a function and all that it called"},
	}},
	{title: "Flags of symfilter container-log alone", flags: []option{
		{name: "path", metavar: "FILE", in: ofContainer, field: func(c *config) any { return &c.container.path },
			text: "the log to write; {id} and {namespace} in it are those of the container"},
		{name: "format", metavar: "FORM", preset: "cri", in: ofContainer, words: containerForms, field: func(c *config) any { return &c.container.form },
			text: "form of its lines: cri, as Kubernetes has them, or json-file, as Docker has them"},
	}},
	{title: "Flags of symfilter addr alone", flags: []option{
		{name: "output", metavar: "FORM", in: ofAddr, words: answers, field: func(c *config) any { return &c.output }, text: "text (default), or json: an object for each address"},
	}},
	{title: "Flags of symfilter index alone", flags: []option{
		{name: "again", in: ofIndex, field: func(c *config) any { return &c.again }, text: "replace indexes that exist"},
	}},
}

// The words that flags of few values take.
func answers() []string     { return []string{outputText, outputJSON} }
func colors() []string      { return []string{"auto", "always", "never"} }
func moduleLines() []string { return []string{"full", "short", "none", "raw"} }
func styles() []string      { return []string{styleOurs, styleLLVM, styleValgrind} }
func trees() []string       { return []string{"none", "caller", "calling", "both"} }
func orders() []string      { return []string{"size", "size-asc", "count", "count-asc"} }
func processKeys() []string { return []string{"fuchsia", "logcat", "syslog"} }

// define adds the flags of the commands in to set; they write to c.
func (c *config) define(set *pflag.FlagSet, in commandSet) {
	for o := range allOptions() {
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

// A value is the value of a flag, as the library that parses flags wants it.
type value struct {
	set  func(string) error
	kind string
}

func (v value) Set(s string) error { return v.set(s) }
func (v value) Type() string       { return v.kind }
func (value) String() string       { return "" }

// repeated is the kind of values that are lists: completion offers their flags again.
const repeated = "stringArray"

// valueIn returns the value of the flag in c.
func (o *option) valueIn(c *config) value {
	switch p := o.field(c).(type) {
	case *bool:
		return value{kind: "bool", set: func(s string) (err error) {
			*p, err = parseBool(s)
			return err
		}}
	case *string:
		return value{set: func(s string) error {
			if o.words != nil && !slices.Contains(o.words(), s) {
				words := o.words()
				last := len(words) - 1
				return fmt.Errorf("not %s or %s", strings.Join(words[:last], ", "), words[last])
			}
			if s == "" && o.metavar == "DIR" {
				return errEmpty
			}
			*p = s
			return nil
		}}
	case *[]string:
		return value{kind: repeated, set: func(s string) error {
			if s == "" {
				return errEmpty
			}
			*p = append(*p, s)
			return nil
		}}
	case switchFlag:
		return value{kind: "bool", set: p.Set}
	case *ranges:
		return value{kind: repeated, set: p.Set}
	case ruleFlag:
		return value{kind: repeated, set: p.Set}
	case *limitList, *substitutionList:
		return value{kind: eachLine, set: p.(interface{ Set(string) error }).Set}
	case interface{ Set(string) error }:
		return value{set: p.Set}
	}
	panic("--" + o.name + " has a value of no known type")
}

var errEmpty = errors.New("an empty value, as of a variable that is not set")

// parseBool parses the value of a switch.
func parseBool(s string) (bool, error) {
	on, err := strconv.ParseBool(s)
	if err != nil {
		err = errors.New("not true or false")
	}
	return on, err
}

// find returns the first flag called name that one of the commands in has; nil if none has it.
func find(name string, in commandSet) *option {
	for o := range allOptions() {
		if o.name == name && o.in&in != 0 {
			return o
		}
	}
	return nil
}
