package main

import (
	"strings"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/input"
)

// Sets of commands: one bit for each command, then unions.
const (
	ofFilter cli.CommandSet = 1 << iota
	ofValgrind
	ofCallgrind
	ofRTrace
	ofDoctor
	ofAddr
	ofProfile
	ofIndex
	ofText // commands that print one of the program's own texts
	ofLLVM // the llvm style
	ofContainer
	ofProgram // run

	ofReports = ofValgrind | ofCallgrind | ofRTrace
	ofGates   = ofFilter | ofValgrind | ofRTrace
	ofRuns    = ofFilter | ofReports
	ofMost    = ofRuns | ofDoctor
	ofLogs    = ofMost | ofContainer | ofProgram
	ofAsking  = ofLogs | ofAddr | ofProfile // commands that look for debug files
	ofAll     = ofAsking | ofIndex
)

// options is the table of flags, in groups, in the order of the help. Package cli registers the
// flags, and makes help, manual page, completion and reference from the table. A command's help
// page lists a flag that other commands share only if On has the command. newConfig sets the
// defaults that are not zero. The table is constant data, which costs nothing at the start of the
// program.
var options = [...]cli.Group[config]{
	{Title: "Where debug files are, by build ID, in the order of the search", Topic: "finding",
		Note: "Then the module's path, debuginfod's cache and the servers of DEBUGINFOD_URLS.", Flags: []cli.Flag[config]{
			{Name: "symbol-path", Short: "s", Metavar: "PATH", In: ofAsking | ofLLVM, On: ofRuns | ofAddr | ofProfile | ofProgram, Field: func(c *config) any { return &c.symbolPaths }, Text: "ELF file, .zip file or folder tree"},
			{Name: "obj", Metavar: "FILE", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.objects }, Text: "one ELF file"},
			{Name: "build-id-dir", Metavar: "DIR", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.trees }, Text: "folder with files named like ab/cdef.debug"},
			{Name: "ids-txt", Metavar: "FILE", In: ofAsking, Field: func(c *config) any { return &c.idsFiles }, Text: "file with a build ID and a path on each line"},
			{Name: "debug-file-directory", Metavar: "DIR", In: ofAsking | ofLLVM, On: ofFilter | ofAddr, Field: func(c *config) any { return &c.debugDirs }, Text: "holds .build-id", More: "searched before " + symfilter.DebugDir},
			{Name: "no-default-debug-directories", In: ofAsking, Field: func(c *config) any { return &c.noDefaultDirs }, Text: "do not search " + symfilter.DebugDir},
			{Name: "no-paths", In: ofLogs | ofProfile, Field: func(c *config) any { return &c.noPaths }, Text: "do not open programs and libraries at paths in logs and reports"},
			{Name: "dwp", Metavar: "FILE", In: ofAsking, Field: func(c *config) any { return &c.dwp }, Text: "package of split debug information (.dwp), if it is not beside its file"},
		}},
	{Title: "Servers of debug files", Topic: "finding", Flags: []cli.Flag[config]{
		{Name: "debuginfod-urls", Metavar: "URLS", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.serverWords },
			Text: "servers, separated by blanks; system means those in /etc/debuginfod"},
		{Name: "debuginfod", In: ofAsking, Field: func(c *config) any { return &c.servers }, Text: "ask the system's servers if no others are named"},
		{Name: "no-debuginfod", In: ofAsking, Field: func(c *config) any { return &c.noServers }, Text: "ask no server; the cache is still read"},
		{Name: "offline", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.offline }, Text: "use no network"},
		{Name: "cache-max", Metavar: "SIZE", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.cacheMax }, Text: "limit of debuginfod's cache; the least recently read files are removed first"},
	}},
	{Title: "What is read, plain or compressed (gzip, zstd, xz, bzip2), in UTF-8 or UTF-16", Flags: []cli.Flag[config]{
		{Name: "input", Metavar: "FORMAT", In: ofLogs, Words: input.Names, Field: func(c *config) any { return &c.input },
			Text: "auto (default), markup, cri, docker, json, journal, valgrind, callgrind or rtrace",
			More: "cri is a container log of Kubernetes; docker is a log of Docker's json-file driver; json has an object on each line; journal is the output of journalctl -o export; all four keep their format in the output; valgrind is XML; auto recognizes the format from the first 4 KiB, or from the bytes before a pause of 100 ms"},
		{Name: "json-field", Metavar: "NAME", In: ofLogs, Field: func(c *config) any { return &c.fields },
			Text: "member of JSON lines that contains log text; replaces the default members",
			More: "the defaults are " + strings.Join(input.DefaultFields(), ", ") + "; if a line has several of these members, all are filtered; in NAME, a dot separates an object from its member, or is part of the name"},
		{Name: "sysroot", Metavar: "DIR", In: ofLogs | ofProfile, On: ofReports | ofProfile, Field: func(c *config) any { return &c.sysroot }, Text: "look below DIR for files named in a log, report or profile"},
		{Name: "map", Metavar: "FILE", In: ofMost | ofProfile, On: ofValgrind | ofProfile, Field: func(c *config) any { return &c.mapFiles },
			Text: "load addresses of files: a copy of /proc/PID/maps, or the --log-file of valgrind -v -v --xml-file=..."},
		{Name: "bias", Metavar: "OBJ=0xADDR", In: ofMost | ofProfile, On: ofValgrind | ofProfile, Field: func(c *config) any { return &c.biasWords }, Text: "load address of OBJ, minus its link address"},
	}},
	{Title: "Backtraces without markup", Topic: "dialects", Flags: []cli.Flag[config]{
		{Name: "dialects", Metavar: "LIST", In: ofLogs, Words: func() []string { return []string{"auto", "none"} }, Field: func(c *config) any { return &c.backtraces.names },
			Text: "what to resolve: auto (default: all), none, or names separated by commas; symfilter help dialects lists the names"},
		{Name: "image", Metavar: "[NAME=]FILE[@BASE]", In: ofLogs, Field: func(c *config) any { return &c.backtraces.images },
			Text: "the file that ran, for the module NAME of a backtrace",
			More: "without NAME, FILE is for addresses that have no module; BASE is the address of the file's first page, such as 0x7f3100000000; if FILE is a folder, the trace must show which file in the folder ran"},
		{Name: "force-image", In: ofLogs, Field: func(c *config) any { return &c.backtraces.forceImages }, Text: "use --image even if the log shows that another file ran"},
		{Name: "keep-raw", In: ofLogs, Field: func(c *config) any { return &c.backtraces.keepRaw }, Text: "append names to frames instead of replacing text"},
		{Name: "code", In: ofMost, Field: func(c *config) any { return &c.backtraces.code }, Text: "disassemble the code that the kernel lists for a crash (x86-64, arm64)"},
	}},
	{Title: "What is printed", Flags: []cli.Flag[config]{
		{Name: "output", Metavar: "FORM[:FILE]", In: ofMost, On: ofRuns, Words: outputs, Field: func(c *config) any { return &c.outputs },
			Text: "text (default), json, html (a page) or markup",
			More: "json prints an object per line; sarif, junit and codequality print the errors in reports, and sanitizer errors and crashes in logs: see symfilter help findings; suppressions prints suppressions for the errors in reports of Valgrind; callgrind, rtrace and valgrind print a profile of Callgrind, or a report of sp-rtrace or Valgrind, with names; valgrind:FILE/ makes a file for each process; pprof, folded and speedscope print the stacks of a profile or of a report of sp-rtrace; with several --output, all except one must name a FILE, which appears under its name when it is complete"},
		{Name: "color", Metavar: "WHEN", Alone: "always", In: ofMost | ofProgram | ofLLVM, On: ofFilter | ofProgram, Words: colors, Field: func(c *config) any { return (*string)(&c.color) },
			Text: "auto, always or never; without a value: always"},
		{Name: "raw", In: ofMost, Field: func(c *config) any { return &c.raw }, Text: "pass control characters to a terminal unchanged"},
		{Name: "no-demangle", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.noDemangle }, Text: "print mangled names"},
		{Name: "no-inlines", In: ofAsking, Field: func(c *config) any { return &c.noInlines }, Text: "print one frame for each address, without inlined calls"},
		{Name: "basenames", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.basenames }, Text: "print source files without their folders"},
		{Name: "prefix-map", Metavar: "OLD=NEW", In: ofAsking, On: ofReports | ofProfile, Field: func(c *config) any { return &c.prefixes },
			Text: "print NEW for OLD at the start of source paths",
			More: "paths in a report or profile are changed before symfilter looks for their files"},
		{Name: "module-lines", Metavar: "FORM", In: ofLogs, Words: moduleLines, Field: func(c *config) any { return &c.moduleLines },
			Text: "how modules are listed: full (default except on a terminal), short, none or raw",
			More: "short has only the name without folders, and the build ID; raw is the unchanged markup"},
		{Name: "omit-module-lines", In: ofLogs, Field: func(c *config) any { return &c.noModules }, Text: "the same as --module-lines=none"},
		{Name: "dumpfile-output", Metavar: "FILE", In: ofMost, Field: func(c *config) any { return &c.dumps }, Text: "write a JSON list of the dump files that the log names, like Fuchsia's symbolizer"},
		{Name: "style", Metavar: "STYLE", In: ofMost | ofLLVM, Words: styles, Field: func(c *config) any { return &c.style }, Text: "symfilter (default), llvm with its own flags, or valgrind", More: "llvm prints logs like llvm-symbolizer --filter-markup; valgrind prints Valgrind's reports as Valgrind does without --xml"},
		{Name: "filter-markup", In: ofMost, Field: func(c *config) any { return markupFlag{&c.style} }, Text: "the same as --style=llvm; --filter-markup --help lists its flags"},
	}},
	{Title: "How frames look on a terminal", Flags: []cli.Flag[config]{
		{Name: "own", Metavar: "GLOB", In: ofMost | ofProgram, Field: func(c *config) any { return ruleFlag{&c.frames.rules, true} },
			Text: "frames with this source file or object are the program's own",
			More: "a glob that matches a folder matches all below it; the last --own or --system that matches decides"},
		{Name: "system", Metavar: "GLOB", In: ofMost | ofProgram, Field: func(c *config) any { return ruleFlag{&c.frames.rules, false} },
			Text: "frames with this source file or object are system frames, like libc's"},
		{Name: "all-frames", In: ofMost | ofProgram, Field: func(c *config) any { return switchFlag{&c.frames.allFrames} }, Text: "print all system frames, which are folded on a terminal",
			More: "--all-frames=false folds system frames in any text"},
		{Name: "short-names", In: ofMost | ofProgram, Field: func(c *config) any { return &c.frames.shortNames }, Text: "shorten template arguments in function names to an ellipsis"},
	}},
	{Title: "Source lines, and links to them", Topic: "source", Flags: []cli.Flag[config]{
		{Name: "source", Metavar: "LINES", Alone: usualSourceLines, In: ofRuns | ofAddr | ofProgram, Field: func(c *config) any { return &c.source.lines },
			Text: "print source lines below the program's own frames, LINES before and after (3)",
			More: "for a profile, source files from --source-root or the current folder are printed below the table, with the cost of each line (with --diff: the change of this cost)"},
		{Name: "source-root", Metavar: "DIR", In: ofRuns | ofAddr | ofProgram, Field: func(c *config) any { return &c.source.roots },
			Text: "folder of source files; files elsewhere are not opened",
			More: "--prefix-map is applied before a path is looked for below DIR"},
		{Name: "source-url", Metavar: "TEMPLATE", In: ofRuns | ofAddr | ofProgram, Field: func(c *config) any { return &c.source.url },
			Text: "target of links to source lines: vscode, github:OWNER/REPO@REV, or a URL with {path} and {line}"},
		{Name: "hyperlink", Metavar: "WHEN", In: ofRuns | ofAddr | ofProgram, Words: colors, Field: func(c *config) any { return &c.source.hyperlink },
			Text: "print files and lines as links: auto (default: on a terminal with colours), always or never"},
	}},
	{Title: "What makes a build fail", Topic: "gates", Flags: []cli.Flag[config]{
		{Name: "baseline", Metavar: "FILE", In: ofGates, On: ofValgrind | ofRTrace, Field: func(c *config) any { return &c.gates.baseline },
			Text: "print findings that are not in FILE, and exit with 4 if there are any"},
		{Name: "baseline-update", In: ofGates, Field: func(c *config) any { return &c.gates.update },
			Text: "write the findings to the FILE of --baseline", More: "remaining lines keep their until=DATE"},
		{Name: "gate", Metavar: "KINDS", In: ofGates, Field: func(c *config) any { return &c.gates.kinds },
			Text: "exit with 4 if there is a finding (with --baseline or --diff: a new one) of these kinds: all, none, or KIND[,KIND]",
			More: "* matches any characters, as in Leak_*; the default is all kinds except Leak_StillReachable, Leak_IndirectlyLost and indirect-leak"},
		{Name: "supp-check", Metavar: "FILE", In: ofFilter | ofValgrind, On: ofValgrind, Field: func(c *config) any { return &c.suppressions.path },
			Text: "list Valgrind suppressions in FILE that no error in the reports needs"},
		{Name: "diff", In: ofGates, On: ofValgrind | ofRTrace, Field: func(c *config) any { return &c.gates.diff },
			Text: "print findings that are new in NEW: --diff OLD NEW, or --diff OLD... -- NEW...", More: "exit with 4 if there are any"},
	}},
	{Title: "Errors of programs, for builds and code hosts", Topic: "findings", Flags: []cli.Flag[config]{
		{Name: "sarif-category", Metavar: "NAME", In: ofRuns, Field: func(c *config) any { return &c.findings.category },
			Text: "name of the results, if several files are uploaded for a commit",
			More: "a file with the same name and tool replaces the results of the previous file"},
		{Name: "sarif-hash", Metavar: "OF", In: ofRuns, Words: sarifHashes, Field: func(c *config) any { return &c.findings.hash },
			Text: "how GitHub recognizes a result: by its stack (default) or line",
			More: "line is the hash of the source line, as GitHub's upload action computes it; needs --source-root"},
		{Name: "junit", Metavar: "SCHEMA", In: ofRuns, Words: junitSchemas, Field: func(c *config) any { return &c.findings.schema },
			Text: "gitlab (default), or xunit for Jenkins' xUnit plugin, whose schema is stricter"},
		{Name: "junit-case", Metavar: "OF", In: ofRuns, Words: junitCases, Field: func(c *config) any { return &c.findings.cases },
			Text: "what a test case is: a process (default) or a finding"},
	}},
	{Title: "Files that are still being written", Topic: "follow", Flags: []cli.Flag[config]{
		{Name: "follow", Short: "F", In: ofMost, On: ofFilter, Field: func(c *config) any { return &c.follow.on },
			Text: "keep reading FILEs as they grow, across rotation",
			More: "files are followed by name: across rename, removal and truncation; a quoted pattern also finds new files"},
		{Name: "state", Metavar: "FILE", In: ofMost, Field: func(c *config) any { return &c.follow.state },
			Text: "with -F: checkpoint from which the next run continues",
			More: "no line is lost and few lines are printed twice, even if symfilter or the reader of its output is killed"},
		{Name: "start-at", Metavar: "WHEN", In: ofMost, Field: func(c *config) any { return &c.follow.start },
			Text: "where to start in files without a checkpoint: beginning (default), end or DURATION",
			More: "a DURATION, such as 1h, starts at the beginning of files that were written to within that time, including rotated files"},
		{Name: "poll", In: ofMost, Field: func(c *config) any { return &c.follow.poll },
			Text: "check the files regularly instead of waiting for events",
			More: "file systems known to give no events are always checked regularly"},
		{Name: "rotate-wait", Metavar: "TIME", In: ofMost, Field: func(c *config) any { return &c.follow.wait },
			Text: "how long a renamed file is still read after its last line",
			More: "by default, the file is read until it is removed"},
		{Name: "exclude-path", Metavar: "GLOB", In: ofMost, Field: func(c *config) any { return &c.follow.exclude },
			Text: "do not follow files with this name or path",
			More: "a pattern without a slash is compared with names; other patterns are compared with whole paths and with folders"},
		{Name: "with-filename", Short: "H", In: ofMost, Field: func(c *config) any { return &c.follow.withName },
			Text: "begin each line with the name of its file",
			More: "with --output=json, each object has the name of its file"},
	}},
	{Title: "Streams of several processes, and of other programs", Topic: "collectors", Flags: []cli.Flag[config]{
		{Name: "process-key", Metavar: "KEY", In: ofLogs, Words: processKeys, Field: func(c *config) any { return &c.process },
			Text: "how to tell the processes of one log apart: fuchsia, logcat, syslog or a REGEXP with a group"},
		{Name: "json-key", Metavar: "NAMES", In: ofLogs, Field: func(c *config) any { return (*nameList)(&c.keys) },
			Text: "names of the members of JSON lines that identify the process, separated by commas",
			More: "each process has its own modules and maps; for a journal, NAMES are names of its fields"},
		{Name: "reply", In: ofMost, Field: func(c *config) any { return &c.reply },
			Text: "with --input=json: print for each line an object with only the changed members",
			More: "{} if no member changes; for rsyslog's mmexternal"},
		{Name: "context-file", Metavar: "FILE", In: ofMost, Field: func(c *config) any { return &c.contextFile },
			Text: "keep modules and maps of standard input across a restart",
			More: "FILE is read at the start, and written within a second after a change, after SIGHUP and at the end; for log collectors that restart symfilter"},
	}},
	{Title: "Serial ports", Topic: "devices", Flags: []cli.Flag[config]{
		{Name: "baud", Metavar: "RATE", Preset: defaultRate, In: ofMost, Field: func(c *config) any { return &c.baud },
			Text: "rate of a serial port that is given as FILE, such as /dev/ttyUSB0",
			More: "the port is read until Ctrl-C; while it is missing, symfilter looks for it every second"},
	}},
	{Title: "How it runs", Flags: []cli.Flag[config]{
		{Name: "wait", Metavar: "DURATION", In: ofAsking | ofLLVM, On: ofFilter | ofProgram, Field: func(c *config) any { return &c.wait }, Text: "longest wait for a debug file (2s; 90s for FILEs)"},
		{Name: "max-memory", Metavar: "SIZE", Preset: "512M", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.maxMemory }, Text: "limit of memory in bytes, such as 512M or 2G"},
		{Name: "jobs", Metavar: "N", In: ofAsking, Field: func(c *config) any { return &c.jobs },
			Text: "how many processors look up addresses of one file at once, 1 to 64 (as many as there are)",
			More: "the output does not depend on this number"},
		{Name: "no-index", In: ofAsking | ofLLVM, Field: func(c *config) any { return &c.noIndex }, Text: "keep no index of debug files for the next run"},
		{Name: "no-sandbox", In: ofAll | ofLLVM, On: ofIndex, Field: func(c *config) any { return &c.noSandbox },
			Text: "do not confine the process on Linux",
			More: "a confined process cannot start other programs, cannot write outside the caches and the folders that flags name, and uses sockets only if a server is named"},
		{Name: "strict", In: ofAsking, On: ofFilter | ofAddr | ofProfile, Field: func(c *config) any { return &c.strict }, Text: "exit with 3 if an address stayed unresolved"},
		{Name: "explain", In: ofAsking | ofLLVM, On: ofFilter | ofProgram, Field: func(c *config) any { return &c.explain }, Text: "print why names are missing, and what to do"},
		{Name: "quiet", Short: "q", In: ofAll | ofLLVM, On: ofFilter | ofIndex | ofAddr, Field: func(c *config) any { return &c.quiet }, Text: "print no diagnostics"},
		{Name: "verbose", Short: "v", In: ofAsking, On: ofFilter, Field: func(c *config) any { return &c.verbose }, Text: "print all diagnostics, and at the end the files used"},
		{Name: "version", In: ofAll, Field: func(c *config) any { return &c.version }, Text: "print the version"},
		{Name: "help", Short: "h", In: ofAll | ofText, Field: func(c *config) any { return &c.help }, Text: "print this help"},
	}},
	{Title: "Flags of symfilter callgrind only", Flags: []cli.Flag[config]{
		{Name: "inclusive", In: ofCallgrind, Field: func(c *config) any { return &c.callgrind.inclusive }, Text: "order by the cost of a function and its callees"},
		{Name: "tree", Metavar: "WHOM", Preset: "none", In: ofCallgrind, Words: trees, Field: func(c *config) any { return &c.callgrind.tree },
			Text: "list each function with its callers (caller), the functions that it calls (calling), both, or none"},
		{Name: "threshold", Metavar: "PERCENT", Preset: "99", In: ofCallgrind, Field: func(c *config) any { return percentage{&c.callgrind.threshold} },
			Text: "list functions until their costs add up to this share",
			More: "with --inclusive: each function that costs at least (100 - PERCENT) % of the total"},
		{Name: "show", Metavar: "EVENTS", In: ofCallgrind, Field: func(c *config) any { return &c.callgrind.show },
			Text: "columns of the table, or values of stacks: events of the profile, derived events, and sums such as Sum=Ir+10*D1mr, separated by commas"},
		{Name: "part", Metavar: "N[,N]", In: ofCallgrind, Field: func(c *config) any { return &c.callgrind.parts },
			Text: "read only the parts with these numbers, as written by --dump-every-bb, callgrind_control or the program itself"},
		{Name: "thread", Metavar: "N[,N]", In: ofCallgrind, Field: func(c *config) any { return &c.callgrind.threads },
			Text: "read only these threads of a profile recorded with --separate-threads=yes"},
		{Name: "diff", In: ofCallgrind, Field: func(c *config) any { return &c.changes.diff },
			Text: "compare OLD with NEW: --diff OLD NEW, or --diff OLD... -- NEW...",
			More: "functions with the largest changes come first"},
		{Name: "limit", Metavar: "LIMIT", In: ofCallgrind, Field: func(c *config) any { return &c.changes.limits },
			Text: "exit with 4 if a cost exceeds LIMIT, such as Ir=700k or main:Ir=+1%; see symfilter help gates"},
		{Name: "mod-funcname", Metavar: "s/OLD/NEW/", In: ofCallgrind, Field: func(c *config) any { return &c.changes.functions },
			Text: "with --diff or --limit: change names of functions; OLD is a regular expression"},
		{Name: "mod-filename", Metavar: "s/OLD/NEW/", In: ofCallgrind, Field: func(c *config) any { return &c.changes.files },
			Text: "with --diff or --limit: change names of source files, in the same way"},
		{Name: "sort", Metavar: "EVENTS", In: ofCallgrind, Field: func(c *config) any { return &c.callgrind.sort }, Text: "order by these events; the default is the order of the columns"},
	}},
	{Title: "Flags of symfilter rtrace only: what to keep, applied in this order", Flags: []cli.Flag[config]{
		{Name: "depth", Metavar: "N", In: ofRTrace, Field: func(c *config) any { return depth{&c.rtrace.processing.Depth} }, Text: "the first N frames of each backtrace"},
		{Name: "resource", Metavar: "MASK", In: ofRTrace, Field: func(c *config) any { return mask{&c.rtrace.resources} }, Text: "calls for these types of resources, <1>, <2>, ... (hex)"},
		{Name: "call-address", Metavar: "ADDR", In: ofRTrace, Field: func(c *config) any { return (*ranges)(&c.rtrace.processing.Addresses) },
			Text: "calls from this address, or from a range 0x...-0x..."},
		{Name: "include", Metavar: "FILE", In: ofRTrace, Field: func(c *config) any { return &c.rtrace.include }, Text: "calls whose indexes this file lists, one per line"},
		{Name: "exclude", Metavar: "FILE", In: ofRTrace, Field: func(c *config) any { return &c.rtrace.exclude }, Text: "calls whose indexes this file does not list"},
		{Name: "context", Metavar: "MASK", In: ofRTrace, Field: func(c *config) any { return mask{&c.rtrace.processing.Contexts} }, Text: "calls within these contexts, @1, @2, ... (hex); 0: calls in no context"},
		{Name: "leaks", In: ofRTrace, Field: func(c *config) any { return &c.rtrace.processing.Leaks }, Text: "resources that were allocated and not freed, with totals"},
		{Name: "compress", In: ofRTrace, Field: func(c *config) any { return &c.rtrace.processing.Compress }, Text: "one entry for all calls with the same backtrace"},
		{Name: "sort", Metavar: "ORDER", Preset: "size-asc", In: ofRTrace, Words: orders, Field: func(c *config) any { return &c.rtrace.sort },
			Text: "order of the entries of --compress: size, size-asc, count or count-asc"},
	}},
	{Title: "Flags of symfilter profile only", Flags: []cli.Flag[config]{
		{Name: "output", Metavar: "FORM[:FILE]", In: ofProfile, Words: profileOutputs, Field: func(c *config) any { return profileOutput{&c.outputs} },
			Text: "text, pprof, folded (a line for each stack), speedscope or own",
			More: "own prints a file of DHAT or Massif in Valgrind's format, and is the default for these files; text is the default for other profiles; with FILE, the flag may be repeated"},
		{Name: "show", Metavar: "TYPE", In: ofProfile, Field: func(c *config) any { return &c.profile.show },
			Text: "the values that text and folded print, such as alloc_space; the default is the profile's"},
		{Name: "inclusive", In: ofProfile, Field: func(c *config) any { return &c.profile.inclusive }, Text: "order by the values of a function and its callees"},
	}},
	{Title: "Flags of symfilter container-log only", Flags: []cli.Flag[config]{
		{Name: "path", Metavar: "FILE", In: ofContainer, Field: func(c *config) any { return &c.container.path },
			Text: "the log to write; {id} and {namespace} become the container's ID and namespace"},
		{Name: "format", Metavar: "FORM", Preset: "cri", In: ofContainer, Words: containerForms, Field: func(c *config) any { return &c.container.form },
			Text: "form of the log's lines: cri, as in Kubernetes, or json-file, as in Docker"},
	}},
	{Title: "Flags of symfilter doctor only", Flags: []cli.Flag[config]{
		{Name: "which", Metavar: "LOG", In: ofDoctor, Field: func(c *config) any { return &c.which },
			Text: "find the build in DIR that wrote LOG, if LOG has no build IDs: symfilter doctor --which LOG DIR"},
		{Name: "report", Metavar: "FILE", Alone: standardOutput, In: ofDoctor, Field: func(c *config) any { return &c.report },
			Text: "print a report to attach to a bug, or write it to FILE, without the private text of the log",
			More: "the report contains the doctor's findings, counts of frames, and the lines with an unresolved address; in these lines, x and 0 replace private letters and digits; paths lose their folders, except below places named by flags; URLs keep only the host; see symfilter doctor --help"},
	}},
	{Title: "Flags of symfilter addr only", Flags: []cli.Flag[config]{
		{Name: "output", Metavar: "FORM", In: ofAddr, Words: answers, Field: func(c *config) any { return &c.output }, Text: "text (default), or json: an object for each address"},
		{Name: "offsets", In: ofAddr, Field: func(c *config) any { return &c.offsets }, Text: "numbers are offsets in the file, as in /proc/PID/maps, and not addresses"},
	}},
	{Title: "Flags of symfilter index only", Flags: []cli.Flag[config]{
		{Name: "again", In: ofIndex, Field: func(c *config) any { return &c.again }, Text: "replace indexes that exist"},
	}},
}

// Allowed values of flags with few values.
func answers() []string     { return []string{outputText, outputJSON} }
func colors() []string      { return []string{"auto", "always", "never"} }
func moduleLines() []string { return []string{"full", "short", "none", "raw"} }
func styles() []string      { return []string{styleOurs, styleLLVM, styleValgrind} }
func trees() []string       { return []string{"none", "caller", "calling", "both"} }
func orders() []string      { return []string{"size", "size-asc", "count", "count-asc"} }
func processKeys() []string { return []string{"fuchsia", "logcat", "syslog"} }
