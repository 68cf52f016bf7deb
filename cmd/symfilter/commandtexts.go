package main

// Texts of the help pages before the flags. Lines that begin with blanks are examples.
const (
	filterText = `Prints logs with every address replaced by function, file and line. Reads
backtraces of sanitizers, glibc, Android, gdb, systemd and many others, markup,
reports of Valgrind, Callgrind and sp-rtrace. No FILE, or "-": standard input.

  ./server 2>&1 | symfilter
  adb logcat -v raw | symfilter -s out/symbols
  symfilter --color --explain crash.log | less -R
`
	valgrindText = `Prints XML reports of Valgrind (--xml=yes: Memcheck, Helgrind, DRD and others)
as text, with the functions, files and lines that Valgrind would have printed
with the debug files. The order and the words are those of Valgrind without
--xml. Frames are printed as in logs, and the first line of an error ends in its
kind, number and thread. ERROR SUMMARY and LEAK SUMMARY come last. The program
may still be running.

  symfilter -s out/symbols report.xml | less -R
  symfilter valgrind --sysroot /mnt/device -s out/symbols report.*.xml
  symfilter --output=json report.xml | jq 'select(.record == "error") | .kind'
  valgrind --xml=yes --xml-fd=3 ./program 3>&1 >&2 | symfilter

A report does not contain the addresses at which its files were loaded:
symfilter infers them. If that fails, a diagnostic names the file, and its
frames are not changed; give the addresses with --map or --bias.

For other tools, symfilter can print the report with names as XML or as the
text of Valgrind itself (for CTest), or print suppressions for its errors:

  symfilter -s out/symbols --output=valgrind:named/ report.*.xml
  symfilter -s out/symbols --style=valgrind report.xml
  symfilter -s out/symbols --output=suppressions report.xml

--baseline, --diff and --gate make a build fail for new errors: symfilter help
gates.
`
	callgrindText = `Prints the functions of a profile and their costs; functions of stripped
programs get their names. It reads profiles of Callgrind, Cachegrind and other
producers of the format.

  symfilter callgrind -s /srv/symbols callgrind.out.4711
  symfilter callgrind --inclusive --tree=both callgrind.out.4711-* | less
  symfilter callgrind --output=callgrind callgrind.out.4711 >named.out
  symfilter callgrind --output=pprof:prof.pb.gz callgrind.out.4711

Several FILEs, such as the threads, parts or processes of a run, are one
profile; their costs are added up. symfilter FILE..., without the word
callgrind, prints a table for each.

Costs of a stripped program are exact by function. They are exact by line and
inlined call only if the profile was recorded with valgrind --tool=callgrind
--dump-instr=yes. Functions that call each other are marked with their cycle:
<cycle 1>.

--diff compares two profiles, or the sums of several, by function. Functions are
matched even if their symbols, clones or levels of recursion differ. With
--source, lines are compared, too, in files with equal text on both sides.
--limit makes a build fail if a cost has grown: symfilter help gates.

  symfilter callgrind --diff before.out after.out
  symfilter callgrind --limit 'main:Ir=+1%' --diff old.* -- new.*

--output=callgrind writes the profile with names, for KCachegrind; a profile of
Cachegrind stays readable for cg_annotate. Lines that do not belong to a profile
are printed before the table, as lines of a log.

--output=pprof, folded and speedscope write stacks, for go tool pprof, for
flamegraph.pl and similar programs, and for speedscope. Self costs and calls are
exact; a chain of three or more functions is one of several possible ones, since
a profile does not record chains. --show selects the events; folded stacks have
one.
`
	rtraceText = `Prints reports of sp-rtrace and functracer, which list what a program allocated
and freed, with every address replaced by function, file and line.

  symfilter --output=rtrace report.rtrace >resolved.rtrace
  symfilter rtrace --leaks --compress --sort=size report.rtrace | less
  symfilter rtrace --leaks --output=json report.rtrace | jq .calls
`
	profileText = `Prints a profile of addresses with functions, files and lines: pprof's format,
heap and CPU profiles of gperftools (tcmalloc), heap profiles of jemalloc, files
of Valgrind's DHAT and Massif. A profile can also be fetched from a URL.
symfilter waits at most one minute longer than the seconds=N in the URL, or than
30 s if the URL has none.

  symfilter profile -s /srv/symbols heap.prof | less
  symfilter profile --output=pprof heap.prof >named.pb.gz
  symfilter profile --output=folded --show=alloc_space heap.prof | flamegraph.pl
  symfilter profile --output=pprof http://host/debug/pprof/heap >named.pb.gz
  symfilter profile dhat.out.1234 >named.dhat          for dh_view.html
  symfilter profile massif.out.1234 >named.massif; ms_print named.massif

The result is a table of functions and the largest stacks, or with
--output=pprof a profile with names, which viewers such as go tool pprof do not
look up again. Locations that have names already keep them.

The file of an address is found by the build ID that the profile gives. A
profile of gperftools or jemalloc has no build IDs: the file at the mapped path
is used, below --sysroot if that is given. Its build ID leads to the debug file.
The file must have code of the size that was mapped; no other check is possible,
so names may be wrong if the program was replaced.

A file of DHAT or Massif is printed as the tool writes it for a program with
debug information, unless --output names another form. The load addresses of the
object files are inferred from the addresses in the file, as for Valgrind's XML;
if that fails, --map or --bias give them.
`
	addrText = `Prints the functions, files and lines at addresses of a program, library or
debug file, innermost first, with the inlined calls. Addresses are hexadecimal,
with or without 0x, and belong to the file: nm and objdump print them, and logs
print them after a +, as in (app+0x1a25). Subtract 1 from a return address.

  symfilter addr -s out/symbols libledger.so 0x1a25 0x1917
  symfilter addr eecd138796b4297ca7ee7bb08854e1173fee4bff 1a25
  symfilter addr --output=json app 0x1df8 | jq .frames
  symfilter addr vmlinux do_fault+0x30/0x160
  perf script -F ip,sym,dso,dsoff | grep -o '/[^ ()]*+0x[0-9a-f]*' |
    symfilter addr --offsets

The debug file is found as for a log. Answers have the form of addr2line
-a -i -f -p; the answer for an address of data is the variable:

  0x1a25: Pool::destroy(Pool*) at /src/pool.h:18:5
   (inlined by) Book::close() at /src/ledger.cc:31:3
  0x4158: inventory::shelves[2].refs
  0x9999: ?? (no symbol covers the address)

An ADDRESS can also be one of these. A name is a name in the symbol table, such
as _ZN4Book5closeEv, and means each symbol with this name.

  do_fault+0x30        a place in a function; offsets without 0x are decimal
  do_fault+0x30/0x160  as Linux prints it: only functions of the size 0x160; if
                       no function has this size, the answer reports that
  0x1000-0x1040        a range up to 0x1040, an answer for each line of code
  offset:0x1a25        an offset in the file; with --offsets, all numbers are
  FILE+0x1a25          an address of another FILE or build ID; also
                       FILE(+0x1a25) and FILE(main+0x10), as glibc prints it

Without ADDRESS, or with -, addresses are read from standard input. Each line is
answered before symfilter waits for another one. Without FILE, each ADDRESS
begins with the name of a file; beside a FILE, such a name needs a /.

The exit status is 0 even if an address stayed unresolved, or a line has no
address; with --strict it is then 3. Standard error has advice on such
addresses, unless -q is given.
`
	asText = `Answers like another symbolizer: llvm-symbolizer or llvm-addr2line of LLVM 19,
addr2line of GNU Binutils 2.40, or eu-addr2line of elfutils 0.188. ARGs, the
questions on standard input and the answers are those of NAME. A link to
symfilter with such a name works like this command; the name may have a target
before it and a version after it.

  symfilter as llvm-symbolizer --obj=app 0x1a25
  ln -s "$(command -v symfilter)" tools/llvm-symbolizer
  ASAN_SYMBOLIZER_PATH=tools/llvm-symbolizer ./app

The options -e -f -i -C -p -s -a and the long ones of the named program are
accepted, also from @FILE, and for LLVM from LLVM_SYMBOLIZER_OPTS and
LLVM_ADDR2LINE_OPTS. addr2line of binutils has -j SECTION, too; its -b and -r
have no effect. eu-addr2line has -A -S -x --relative --debuginfo-path. addr2line
and eu-addr2line read a.out unless -e names a file.

--dia, --dsym-hint and --relative-address of LLVM are refused, because they are
for files that are not ELF. --demangle=java, gnat and dlang of binutils are
refused, because symfilter demangles only C++ and Rust. As eu-addr2line,
symfilter refuses -F, which prints flags of line tables, and -k -K -M -p --core,
which need a running kernel, a process or a core dump. FRAME is answered as if a
function had no local variables. docs/drop-in.md in the source lists all
differences.
`
	doctorText = `Checks the places of debug files: the folders that flags name, the cache of
debuginfod, and its servers, each of which is asked once. It also reports the
sandbox restrictions that this system supports. It has the flags of symfilter.

  symfilter doctor -s out/symbols                    only the places
  symfilter doctor 93ac61ec5a8eb1396f9fbd350e3169a558528a40
  symfilter doctor /usr/bin/app                      an ELF file
  symfilter doctor crash.log                         a log, report or profile

With a build ID or an ELF file, it looks for the debug file, and prints its
path, or all places that were searched. With a log, a report or a profile, it
does so for each module in the file that may be needed, and prints the next
step. FILE - is a log on standard input.

--which searches a folder for the build that wrote a log without build IDs. The
calls before the return addresses in the log, and the names of functions, show
which build fits:

  symfilter doctor --which crash.log builds

--report prints a report to attach to a bug instead, with the same flags:

  symfilter doctor --report -s out/symbols crash.log >report.txt

From the log, the report has only addresses, build IDs, base names of modules
and the shape of unresolved lines. Read the report before you publish it.

Exits with 1 if a place of debug files has a fault, or if the debug file was not
found. For a log, it exits with 1 if a module without a debug file has addresses
that stay unresolved. With --which, it exits with 1 unless exactly one build
fits; with --report, only if the report could not be written.
`
	indexText = `Makes indexes of ELF files with debug information, or of all such files in
folders, so that later runs need not read their debug information. Indexes are
kept in $XDG_CACHE_HOME/symfilter or ~/.cache/symfilter, at most 4 GiB; the
least recently used are removed first. Files that have an index are skipped.

symfilter also makes such indexes by itself if they save time; --no-index
disables that.
`
	completionText = `Prints a script with which a shell completes commands, flags and their values.
The script for bash needs no other package.

  bash        source <(symfilter completion bash)
  zsh         symfilter completion zsh >"${fpath[1]}/_symfilter"
  fish        symfilter completion fish | source
  powershell  symfilter completion powershell | Out-String | Invoke-Expression
`
	manText = `Prints the manual page in troff format. Its date is SOURCE_DATE_EPOCH, or the
date of the commit that symfilter was built from.

  symfilter man | man -l -
`
	helpText = `Prints the first help page, the page of a COMMAND, or the page of a TOPIC:

  elements     elements in a log, and how they are printed
  dialects     the backtraces without markup that are resolved
  finding      how debug files are found
  source       source lines below frames, and links to them
  findings     errors of programs as results for builds
  follow       files that are still being written
  collectors   rsyslog, syslog-ng, containerd and other programs
  devices      logs of serial ports, firmware and kernels
  gates        what makes a build fail: new errors, costs above limits
  exit-status  what the exit status means
  flags        all flags
`
	runText = `Starts PROGRAM and filters what it writes to standard output and error.
Meanwhile, symfilter reads the maps of PROGRAM and of the processes that it
starts. So addresses without a module are resolved, too, by the mapped files.

  symfilter run -- ./server --port 8080
  symfilter run -s out/symbols -- make test

PROGRAM keeps its standard input, its process group and its terminal. PROGRAM
writes to pipes, or to a pseudo-terminal of the same size if an output is a
terminal; nothing is preloaded, traced or changed. Signals are passed on.

Exits as PROGRAM does: with its exit status, or by the same signal; with 127 if
PROGRAM is not found, with 126 if it cannot be started. If other processes still
have its output open, symfilter reads it for at most 2 s more. The command works
only on Linux.
`
	containerText = `Writes the log of a container, symbolized, for containerd (and nerdctl), which
starts it for each container and passes it the container's two streams:

  ctr run --log-uri \
    'binary:///usr/bin/symfilter?container-log=&--path=/var/log/{id}.log' ...
  nerdctl run --log-driver \
    'binary:///usr/bin/symfilter?container-log=&--path=/var/log/{id}.log' ...

A member NAME=VALUE of the URI is a flag and its value; a switch has the value
true. containerd passes each name once, and no environment variables, so servers
must be named by --debuginfod-urls. Blanks are written as %20.

Each line gets its time and stream. Lines of more than 16 KiB are cut into
parts, as by container runtimes. Each stream has its own modules and maps. The
file has mode 0640; if it is moved or removed, as by logrotate, the next lines
go to a new file. If the disk is full, the container waits once its pipes are
full, too.
`
)
