package main

import "github.com/symfilter/symfilter/internal/cli"

// topics is the table of topics, in the order of the help.
func topics() []cli.Topic {
	return []cli.Topic{
		{Name: "elements", About: "elements in a log, and how they are printed", Section: "ELEMENTS", Text: elementsText},
		{Name: "dialects", About: "the backtraces without markup that are resolved", Section: "BACKTRACES WITHOUT MARKUP", Text: dialectsText()},
		{Name: "finding", About: "how debug files are found", Section: "FINDING DEBUG FILES", Text: findingText},
		{Name: "source", About: "source lines below frames, and links to them", Section: "SOURCE LINES AND LINKS", Text: sourceHelp},
		{Name: "findings", About: "errors of programs as results for builds", Section: "RESULTS FOR BUILDS", Text: findingsHelp},
		{Name: "follow", About: "files that are still being written", Section: "FOLLOWING FILES", Text: followText},
		{Name: "collectors", About: "rsyslog, syslog-ng, containerd and other programs", Section: "IN OTHER PROGRAMS' PIPELINES", Text: collectorsText},
		{Name: "devices", About: "logs of serial ports, firmware and kernels", Section: "DEVICES", Text: devicesText},
		{Name: "gates", About: "what makes a build fail: new errors, costs above limits", Section: "GATES", Text: gatesText + kindsHelp()},
		{Name: "exit-status", About: "what the exit status means", Section: "EXIT STATUS", Text: exitText},
		{Name: cli.AllFlags, About: "all flags"},
	}
}

const (
	elementsText = `A log with symbolizer markup describes a process and its addresses in elements
between {{{ and }}}.

These describe the process, and are printed as one line for each module:

  {{{reset}}}                     a process begins: forget modules and maps
  {{{module:0:app:elf:c0ffee00}}} module 0, named app, has this build ID
  {{{mmap:0x1000:0x2000:load:0:rx:0x0}}}
                                  0x2000 bytes of module 0 are mapped at 0x1000,
                                  from its address 0x0 on

These are replaced by their meaning:

  {{{bt:1:0x1234:ra}}}            a frame of a backtrace: number and address
  {{{pc:0x1234}}}                 an address of code
  {{{data:0x5678}}}               an address of data: a variable and its member
  {{{symbol:_Z3addii}}}           a name, demangled
  {{{hexdict:RIP: 0x1234 }}}      registers: kept, with footnotes for addresses
  {{{dumpfile:TYPE:NAME}}}        kept: see --dumpfile-output

After the address of a bt or pc, :ra means a return address, which is looked up
one byte before, and :pc means the exact address. Without either, frame 0 of a
backtrace is exact, and other frames and pc elements are return addresses. If
that address has no line, but the other of the two has one, the other is used.

Unknown elements and the text around elements are unchanged. An address without
a name is printed with its module, offset and build ID; an address outside of
all maps is printed as (no module), or between [[[ and ]]].

The format: https://llvm.org/docs/SymbolizerMarkupFormat.html
`
	findingText = `A debug file is found by its build ID, which a log or report gives for each
module. Each build of a program has its own build ID: readelf -n PROGRAM prints
it, and gcc and clang write it with -Wl,--build-id. A file with another build ID
is never used.

The first file with debug information ends the search. Until then, the best of
the other files is used: one with a full symbol table rather than one with
dynamic symbols only. If a stripped file names its debug file in .gnu_debuglink,
symfilter looks for it as gdb does: beside the stripped file, in the folder
.debug there, and below the folders of debug files.

  symfilter -s out/symbols crash.log        files, folders and .zip files
  symfilter -s app.debug -s lib.debug crash.log
  DEBUGINFOD_URLS=https://debuginfod.elfutils.org symfilter crash.log

A file that a server sends is kept in debuginfod's cache, for the next run.
Lines wait for a debug file as long as --wait allows. Then they are printed with
the names known so far.

If names are missing, a line on standard error counts the addresses by module,
and suggests a next step. The line comes at the end, and at most once an hour
while files are followed; --quiet leaves it out. These commands print more:

  symfilter --explain crash.log   where each file was looked for, what to do
  symfilter doctor crash.log      which modules have debug files
  symfilter doctor BUILD-ID       the same for one build ID
`
	findingsHelp = `These outputs have the errors of all inputs, in forms for builds, code hosts and
editors:

  symfilter valgrind --output=text --output=sarif:v.sarif report.*.xml
  symfilter valgrind --output=junit:v.xml --output=codequality:v.json *.xml

  sarif         SARIF 2.1.0: GitHub's code scanning, GitLab, Jenkins, editors
  junit         test results: a suite for each report, a case for each process
  codequality   GitLab's Code Quality report

Errors of several processes that have the same fingerprint are one result, with
a count. A fingerprint does not change when lines move, or with the compiler's
optimization. Names of files are relative to the current folder: run symfilter
in the root of the repository, with --prefix-map if it was built elsewhere.

An error is shown at the innermost frame of the program's own code, which --own
and --system select. A truncated report and errors that did not fit in memory
are also results, so that an incomplete run never looks clean.

The SARIF file stays within GitHub's limits: 25,000 results for each tool, of
which GitHub shows 5,000, and 10 MB after compression. Faults come before
warnings and notes, and the file reports how many findings were left out. GitHub
recognizes a result by its stack, or with --sarif-hash=line by its source line,
as it does for other tools.
`
	sourceHelp = `--source prints source lines below the frames of the program's own code:

  symfilter --source --source-root=. --prefix-map=/build/app=. crash.log
  symfilter --source=8 --debuginfod crash.log

The text of a source file comes from the debug information, if it is embedded
there (clang -gdwarf-5 -gembed-source), from a file below --source-root, or from
a debuginfod server that is named. --prefix-map translates paths in debug
information to paths on this machine. An absolute path must be below a root, a
folder of --source-root. A relative path is looked for in each root, and in the
current folder if that is below a root. Files elsewhere are never opened, and
the end of a path alone is never enough to find a file. symfilter -v shows where
each file was looked for.

If debug information has a checksum of the file, as clang writes it, another
version of the file is reported and not shown. Without a checksum, the text may
be from another version, which is reported once for each file.

--source-url turns files and lines into links, on terminals that have colours
(--hyperlink changes that). TEMPLATE is one of

  file, vscode, vscodium, emacs, kitty, textmate, macvim
  github:OWNER/REPO@REV     gitlab: and forgejo: likewise; URL@REV for a site
  cgit:URL@REV              of your own
  debuginfod                the first server
  https://code.example/{rel}?line={line}

with the fields {path} (absolute), {rel} (below a root), {line}, {column},
{host} and {build_id}. A source line has no link if a field is not known.
`
	followText = `symfilter --follow prints the contents of FILEs, and then new lines in them,
until a signal ends it.

  symfilter --follow app.log
  symfilter --follow --state app.state '/var/log/app/*.log'
  symfilter --follow -H --start-at=end server.log worker.log

--follow follows a file by name, like tail -F. If log rotation renames the file,
symfilter reads it to its end, and then the new file of that name. A truncated
file is read from its beginning. Lines that were removed or truncated before
symfilter could read them are reported. A quoted pattern, such as '*.log', also
finds files that appear later, except files that --exclude-path excludes.

If a renamed file is compressed (gzip, zstd, xz, bzip2) before it was read to
its end, symfilter continues in the compressed file. On SIGHUP, it examines all
files at once.

With --state, the next run continues where this one ended or was killed: no line
is lost, and few lines are printed twice. One process at a time can use a state
file. A line counts as printed once the reader of a pipe has read it.

Reports and profiles are printed when symfilter ends or their file is replaced.
If the disk of the output is full, symfilter waits for space.
`
	collectorsText = `Programs that collect logs start symfilter, write to its standard input, and
start it again if it ends. They send SIGHUP when logs are rotated, which does
not end symfilter.

  symfilter --process-key=syslog --context-file=app.context

--context-file keeps modules and maps of the input, so that frames after a
restart are resolved even if their module was logged before. The file is written
within a second after a change, at SIGHUP and at the end. One process at a time
can use a file.

--process-key distinguishes the processes in one stream; in lines of JSON and
journals, --json-key does. Each process has its own modules and maps.

  symfilter --input=json --json-key=hostname,syslogtag --reply

With --reply, each line is answered with one object: the members that change, or
{}. This is for programs that edit a message by the answer, such as rsyslog's
mmexternal. No line is held back. If a backtrace without build IDs comes in
several messages, each frame must show on its own which file ran.

Complete examples for rsyslog, syslog-ng and containerd are in the folder
examples of symfilter's source. symfilter container-log is for containerd.
`
	devicesText = `A FILE may be a serial port. Its log is printed until Ctrl-C; the exit status is
then 0:

  symfilter /dev/ttyUSB0
  symfilter --baud 921600 /dev/serial/by-id/usb-Espressif_*

The port is set to 115200 baud or --baud, eight bits, raw: every byte is passed
on, and an unfinished line, such as a prompt, after 100 ms of silence. Nothing
is sent to the device. A port that disappears, because the board restarts or is
unplugged, is opened again when it returns. If a port does not exist yet, and
its path is in /dev or --baud is given, symfilter waits for it. If neither
standard input nor standard output is a terminal, it waits at most --wait, 90 s
by default.

Dumps of firmware have only addresses. --image names the ELF file with debug
information (not the .bin or .hex that is flashed):

  symfilter --image build/app.elf /dev/ttyUSB0              ESP32
  symfilter --image build/zephyr/zephyr.elf serial.log      Zephyr
  symfilter --image app.elf --image rom.elf /dev/ttyACM0    code in two files

symfilter reads the registers pc, lr, ra, epc and elr; backtraces of ESP-IDF, of
Rust's esp-backtrace, of NuttX and of Trusted Firmware-A; lists for addr2line.
Such a line is followed by a line for each address, such as "--- 0x400d1234:
app_main at main.c:12". --dialects=auto,stack-words also names the words of a
dumped stack that may be return addresses; some of these words are left over
from calls that have ended.

If the log shows that another build runs, symfilter reports that and resolves
nothing. At its start, ESP-IDF logs a SHA-256, Zephyr its version, and others
"GNU Build ID:". A return address without a call before it also shows another
build. --force-image resolves the addresses anyway.

The functions of a Linux kernel are found by its build ID or release:

  dmesg | symfilter
  symfilter --image vmlinux --image ledger=ledger.ko oops.log
`
	gatesText = `A gate can make a build fail: symfilter prints the result, and exits with 4 if
the gate fails.

Errors in reports of Valgrind, sanitizer errors and crashes in logs, and leaks
in reports of sp-rtrace:

  symfilter --gate=all test.log                     any error
  symfilter --baseline=app.base --baseline-update report.*.xml
  symfilter --baseline=app.base report.*.xml        any new error
  symfilter --diff main/*.xml -- branch/*.xml       any error new in branch

An error is recognized by its fingerprint: its kind and the names of the
program's own functions, without lines, addresses and processes. So the
fingerprint does not change if lines move or the optimization changes, and the
number of occurrences does not matter. The output begins with the numbers of
changes, followed by the new errors in full, and a line for each error that is
gone. Other outputs, such as --output=codequality:FILE, have all errors.

A baseline is a file to commit. Each line is an accepted error; with
until=2027-03-01 at the end of its line, an error is accepted until that day.
You may remove lines and add comments that begin with #. --baseline-update adds
new errors and removes errors that are gone; other lines are not changed. Each
set of reports needs its own file, since errors in reports that are not read
would seem gone.

--gate=Leak_*,InvalidFree fails only for these kinds, --gate=memcheck/* for all
kinds of a tool, --gate=none never. The default is all kinds except
Leak_StillReachable, Leak_IndirectlyLost and indirect-leak.

A gate also fails if an error may be hidden, because a report is cut off, or the
findings need more than --max-memory. It fails if none of an error's own frames
has a name, because a debug file is missing. With the commands valgrind and
rtrace, it also fails if an input has no report.

Limits of the costs in profiles of Callgrind:

  symfilter callgrind --limit main:Ir=25M callgrind.out.4711
  symfilter callgrind --limit 'Ir=+1%' --diff main.out branch.out
  symfilter callgrind --limit 'parse(int):Ir=+5%' --diff old.* -- new.*

A limit is [SCOPE:]EVENT=BOUND. SCOPE is FUNCTION for a function and all that it
called, FUNCTION.self for its own cost, or [OBJECT], such as [libz.so], for the
self costs of an object's functions. A limit without a SCOPE is for the total.
BOUND is a cost, such as 700000, 700k, 1.5M or 2G. With --diff it may be a
change: +5% allows at most this increase, and -5% requires at least this
decrease. After the table, each limit has a line that ends with "holds" or
"exceeded". A limit for a missing function or object fails.

FUNCTION is the linkage name, or the name as the table prints it, without a
level of recursion such as '2. The arguments may be left out if no other
function has that name. A limit for main leaves out the dynamic loader, whose
cost depends on libraries.

With --diff or --limit, a profile that was cut off always fails, since its costs
are incomplete. A profile without costs fails, too.

Runs of a program with the same input, arguments and environment have equal
costs, unless the program depends on addresses or time. setarch -R runs a
program without random addresses.
`
	exitText = `  0    the log was printed, even if addresses stayed unresolved
  1    an input could not be read, or the output could not be written
  2    wrong usage
  3    with --strict: an address stayed unresolved, and nothing else went wrong
  4    a gate failed: see symfilter help gates
  128 + N  signal N ended symfilter: 130 after Ctrl-C, 143 after SIGTERM; but
       after Ctrl-C at a serial port the exit status is 0

If one of several FILEs cannot be read, the others are printed, and the exit
status is 1. If the reader of the output closes it, as head does, symfilter
exits with 0 and prints no error.

symfilter addr also has these exit statuses. symfilter doctor exits with 1 if a
place of debug files has a fault, or a debug file that is needed was not found.
symfilter index exits with 1 if a file could not be indexed.

A shell uses the exit status of the last command of a pipe. With set -o pipefail
it uses the last exit status in the pipe that is not 0:

  set -o pipefail
  ./server 2>&1 | symfilter --strict >server.log
`
)
