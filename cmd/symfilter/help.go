package main

// What --help prints: a screen.
const help = usage + `
Where debug files are, by build ID; first come, first asked:
  -s, --symbol-path PATH   ELF file, .zip, or folder at any depth (repeatable)
      --debug-file-directory DIR  with .build-id (repeatable; /usr/lib/debug)
  and the module's own name, when it is the path of a file with that build ID;
  then debuginfod's cache, and its servers if DEBUGINFOD_URLS names any.

What is printed:
      --output FORM        text, json (an object a line), or markup as it came
      --color[=WHEN]       auto, always or never; alone: always
      --basenames          source files without their folders
      --style llvm         what llvm-symbolizer --filter-markup prints

How it runs:
  -F, --follow             go on with what is written to FILEs, across rotation
      --state FILE         with -F: where to go on when it is started again
      --wait DURATION      longest wait for a module's file (2s; 90s for a FILE)
      --strict             exit with 3 if anything stayed unresolved
      --explain            afterwards: what stayed unresolved, why, what to do
  -q, --quiet              no diagnostics
  -v, --verbose            all diagnostics, and afterwards the files used
      --version, -h, --help

All flags:  symfilter man | man -l -
`

// usage begins the help and the manual page: how to call it, what it is, and
// examples.
const usage = `symfilter [flags] [FILE...]
symfilter valgrind|callgrind|rtrace [flags] [FILE...]  the same, of that format
symfilter doctor [flags] [BUILD-ID]   are folders, cache and servers in order
symfilter index PATH...               make indexes of debug files beforehand
symfilter completion bash|zsh|fish|powershell
symfilter man                         the manual page, with all flags
symfilter help [COMMAND]              what --help behind it prints

Prints logs that hold symbolizer markup with every address turned into
function, file and line. Reads standard input without FILE, or for "-".

  adb logcat -v raw | symfilter -s out/symbols
  ssh host journalctl -f -o cat | symfilter --debug-file-directory /mnt/debug
  symfilter --color --explain crash.log | less -R
`

// reference describes all flags, for the manual page and for completion.
const reference = usage + `
Where debug files are, by build ID; first come, first asked:
  -s, --symbol-path PATH   ELF file, .zip, or folder at any depth (repeatable)
      --obj FILE           one ELF file (repeatable)
      --build-id-dir DIR   folder with ab/cdef.debug (repeatable)
      --ids-txt FILE       lines of a build ID and a path (repeatable)
      --debug-file-directory DIR  with .build-id (repeatable; /usr/lib/debug)
  and the module's own name, when it is the path of a file with that build ID;
  then debuginfod's cache, and its servers if DEBUGINFOD_URLS names any.
      --no-paths           no program or library is opened where a log or report
                           says that it is
      --dwp FILE           package of split debug information, where it is not
                           beside the file that it belongs to

Servers of debug files:
      --debuginfod-urls U  servers, separated by blanks; system: those named in
                           /etc/debuginfod
      --debuginfod         with the system's servers where no others are named
      --no-debuginfod      no server; the cache is read
      --offline            nothing from a network
      --cache-max SIZE     of the cache; what was longest unread goes first

What is read, plain or packed with gzip:
      --input FORMAT       markup; cri or docker (logs of containers, as
                           Kubernetes and json-file keep them; so they come
                           out); valgrind (XML); callgrind (profiles); rtrace
                           (of sp-rtrace); auto recognises which by the first
                           4 KiB, or what comes before 100 ms of silence
      --sysroot DIR        where the files are that a report or profile names
      --map FILE           where they were loaded: /proc/PID/maps, or the log of
                           valgrind -v -v (repeatable)
      --bias OBJ=0xADDR    where one was loaded, less where it was linked
                           (repeatable)

What is printed:
      --output FORM        text, json (an object a line), or markup as it came
                           or, of such inputs, callgrind or rtrace: with names
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

Files that are still written:
  -F, --follow             go on with what is written to FILEs, by name: across
                           rename, removal and truncation. A pattern in quotes
                           is for new files, too
      --state FILE         checkpoint, from which the next run goes on: no line
                           is lost, few come twice, also if this or the reader
                           of its pipe is killed
      --start-at WHEN      what is not in it: beginning, end, or DURATION (files
                           written to that recently, those rotated too)
      --poll               look again and again, where no events come (found out
                           where the file system is known)
      --rotate-wait TIME   how long a renamed file is kept open after its last
                           line, for late ones; else until it is removed
  -H, --with-filename      begin each line with its file's name; with
                           --output=json each object has it

How it runs:
      --process-key KEY    what tells processes of one log apart: a REGEXP with
                           a group, or fuchsia, logcat or syslog
      --wait DURATION      longest wait for a module's file (2s; 90s for a FILE)
      --max-memory SIZE    bytes of memory, as 512M (default) or 2G
      --no-index           nothing is kept of debug files for the next run
      --no-sandbox         keep what is given up on Linux before a log is read:
                           other programs, sockets if no server is named, and
                           writing but to the folders named and of the caches
      --strict             exit with 3 if anything stayed unresolved
      --explain            afterwards: what stayed unresolved, why, what to do
  -q, --quiet              no diagnostics
  -v, --verbose            all diagnostics, and afterwards the files used
      --version, -h, --help
Each flag is also read from the environment: SYMFILTER_SYMBOL_PATH=a:b
`
