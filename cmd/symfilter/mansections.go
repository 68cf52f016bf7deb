package main

import "github.com/symfilter/symfilter/internal/cli"

// environmentOfFlags describes the variables of flags in the page of all flags, the manual page and
// the reference.
const environmentOfFlags = "Each flag is also read from the environment, under its name in upper case with SYMFILTER_ before it: --symbol-path from SYMFILTER_SYMBOL_PATH. The values of repeatable flags are separated as in PATH; those of --limit, --mod-funcname and --mod-filename by line ends. The command line takes precedence. A variable with such a name but without a flag is reported."

// The sections of the manual page after the flags and the topics.
var manSections = [...]cli.Section{
	{Title: "ENVIRONMENT", Text: environmentOfFlags + `

NO_COLOR, CLICOLOR_FORCE and TERM are respected unless --color is given; with --style=llvm only TERM. LLVM_SYMBOLIZER_OPTS holds words of the command line, for --style=llvm only.

DEBUGINFOD_URLS and DEBUGINFOD_CACHE_PATH name the servers and their cache. These and the other variables whose names begin with DEBUGINFOD_ are read as gdb and elfutils read them.`},
	{Title: "FILES", Text: `$XDG_CACHE_HOME/symfilter, or ~/.cache/symfilter: indexes of debug files, and what was learned about folders.

$XDG_CACHE_HOME/debuginfod_client, or ~/.cache/debuginfod_client: files downloaded from servers. /etc/debuginfod: the system's servers.`},
	{Title: "CHECKPOINTS", Text: `The file of --state records how much of each followed file was printed. A checkpoint is written within 100 ms of output, and after each MiB, unless that takes more than 2 % of the time. If symfilter is killed, the next run prints again what was printed since the last checkpoint; no line is lost.

On Linux, output to a pipe or socket counts as printed once its reader has read it: if the reader dies, the next run prints the rest again. When symfilter ends, it gives the reader 0.4 s to read it. symfilter does not notice if the reader loses lines that it has read; a byte sent over a network counts as read once the other machine has received it.

Every 5 s, if there was output, and at the end, symfilter syncs the output, if that is a file, and then the checkpoint. After a power cut, the next run continues from the last checkpoint that was synced: on Linux, lines printed since then are printed twice, and none is lost. On other systems a power cut cannot be distinguished from the end of the process.

A symbolic link, or a file that holds anything but a checkpoint, is refused with status 1 and not changed.

If the disk of the output is full, symfilter --follow waits for space, and retries at least every 5 s. Other errors end it with status 1, with a checkpoint of what was written.`},
	{Title: "ROTATION", Text: `A file belongs to a log if its name is one that rotation gives: numbers, dates, times and words such as old, after the log's name or before its last dot. All such files that appeared since the last check are read, the oldest first. A renamed file is read until it is removed, or for --rotate-wait after its last line, so that late lines are printed; at most 8 renamed files of one log are kept open.

A file that is removed or truncated before symfilter has seen it is lost. The loss is reported, with its size if that is known: bytes that were seen and not read, and files that had the name for too short a time. With --poll, and on network file systems, a file that appears and disappears between two checks leaves no trace.

If a log was copied and truncated, the part that was not read is read from the copy.

If a file is renamed and compressed (gzip, zstd, xz or bzip2) before it was read to its end, reading continues in the compressed file. symfilter recognizes that file by its text, at the beginning and just before the position up to which it was read; its time need not have been kept. Files that were rotated and compressed as a whole in the meantime are read, too, in order; compressed files that existed before are not. A file that is damaged, unpacks to more than 1,100 times its size, or is compressed in another way, is reported, with the size of the loss if that is known.

If more files are followed than may be open (ulimit -n), files that were read to their end are closed, and opened again when they grow.

Limits:

A renamed file that is closed, because 8 younger ones are open or --rotate-wait is over, is next examined when the log is rotated again, like one that was still empty when the previous run ended: lines that are written later and removed before that are lost without a message.

If the name is a symbolic link that now leads to another file, the previous file counts as such a renamed file. The next run finds it only if its name is a rotated form of the new file's name, or if the link led to it last.

If the name, or the file to which it links, is missing at the start, symfilter waits for it, and reads it from its beginning, with files of the log that were rotated since the start.

If cp makes a copy beside the log, under a name that rotation would give, the copy is not printed if it begins like the current file or one of the renamed files that are open (at most 8), and its last lines are not all the same. Otherwise it is printed as another file.

If the copy of a truncated log is incomplete, and shorter than what was read, it is taken for another file and printed as a whole.

symfilter remembers the last 16 files that were read and removed, the last 8 after a restart, and up to 64 if they were written to within one minute. If more are compressed between two checks by a program that does not keep their times, the others are printed again. A compressed file that belongs to no known file is left out if it was last written before the log was; --verbose names it.

After a read error (EIO) symfilter reports the error and retries. A file that its server has replaced (ESTALE) is closed, and searched for by its name: if it holds what was read, reading continues there, otherwise at its beginning. A renamed file that the next run cannot read counts as gone.

If a sync of the output fails, symfilter reports it and syncs again; what was printed since the last one that succeeded may be lost, although it counts as printed, since the system may have dropped it.`},
	{Title: "SIGNALS", Text: `After an interrupt (Ctrl-C), symfilter keeps reading for at most one second, so that the producer of the log can finish. After a termination signal it prints what is complete, and ends. A second signal ends it at once.

A hang-up signal (SIGHUP) does not end a run that follows files or reads from a pipe or socket, since log collectors and logrotate send it to have files opened again: with --follow all files are examined at once. It ends such a run only if the terminal at which it was started is gone, or disappears within a second. It always ends other runs. With nohup it is ignored.`}}
