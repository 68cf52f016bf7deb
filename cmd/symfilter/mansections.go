package main

import "github.com/symfilter/symfilter/internal/cli"

// environmentOfFlags describes the variables of flags in the help, the manual page and the
// reference.
const environmentOfFlags = "Each flag is also read from the environment, under its name in upper case, prefixed with SYMFILTER_: --symbol-path from SYMFILTER_SYMBOL_PATH. Values of a repeatable flag are separated as in PATH; values of --limit, --mod-funcname and --mod-filename are separated by line ends. The command line takes precedence. A variable with this prefix that matches no flag is reported."

// manSections follow the flags and the topics in the manual page.
var manSections = [...]cli.Section{
	{Title: "ENVIRONMENT", Text: environmentOfFlags + `

NO_COLOR, CLICOLOR_FORCE and TERM are respected unless --color is given; with --style=llvm, only TERM is respected. LLVM_SYMBOLIZER_OPTS adds words to the command line, with --style=llvm only.

DEBUGINFOD_URLS and DEBUGINFOD_CACHE_PATH name the servers and their cache. These and the other variables whose names begin with DEBUGINFOD_ are read as gdb and elfutils read them.`},
	{Title: "FILES", Text: `$XDG_CACHE_HOME/symfilter, or ~/.cache/symfilter: indexes of debug files, and lists of the build IDs in folders.

$XDG_CACHE_HOME/debuginfod_client, or ~/.cache/debuginfod_client: files downloaded from servers. /etc/debuginfod: the system's servers.`},
	{Title: "CHECKPOINTS", Text: `The file of --state records how much of each followed file was printed. A checkpoint is written within 100 ms of output, and after each MiB, unless that takes more than 2 % of the time. If symfilter is killed, the next run repeats the output since the last checkpoint; no line is lost.

On Linux, output to a pipe or socket counts as printed once the reader has read it: if the reader dies, the next run prints the unread output again. When symfilter ends, it gives the reader up to 0.4 s to read the rest of the output. symfilter does not notice if the reader loses lines after reading them; a byte sent over a network counts as read once the other machine has received it.

If the output is a file, symfilter syncs it, and then the checkpoint, at the end and every 5 s if there was output. After a power cut, the next run continues from the last checkpoint that was synced: on Linux, lines printed since then are printed twice, and none is lost. On other systems, symfilter cannot detect a power cut: it continues from the newest checkpoint, and output that was not synced is lost.

If the FILE of --state is a symbolic link, or holds anything but a checkpoint, symfilter exits with status 1 and does not change it.

If the disk of the output is full, symfilter --follow waits for space, and retries at least every 5 s. After any other error, it writes a checkpoint and exits with status 1.`},
	{Title: "ROTATION", Text: `A file belongs to a log if its name may be the result of a rotation. Such a name has a number, date, time or a word such as old, after the log's name or before its last dot. All such files that appeared since the last check are read, the oldest first. A renamed file is read until it is removed, or for --rotate-wait after its last line, so that late lines are printed. At most 8 renamed files of one log are kept open.

A file that is removed or truncated before symfilter has read it is lost. symfilter reports the loss, and the number of bytes if it is known. It also reports files that had the name for too short a time to be opened. With --poll, and on network file systems, a file that appears and disappears between two checks leaves no trace.

If a log was copied and truncated, the part that was not read is read from the copy.

If a file is renamed and compressed (gzip, zstd, xz or bzip2) before it was read to its end, reading continues in the compressed file. symfilter recognizes the compressed file by its text, at the beginning and just before the position up to which the original was read; its time need not have been kept. Files that were rotated and compressed in the meantime are read as a whole, in order; compressed files that existed before are not read. symfilter reports a file that is damaged, unpacks to more than 1,100 times its size, or is compressed in another way, with the size of the loss if it is known.

If more files are followed than may be open (ulimit -n), files that were read to their end are closed, and opened again when they grow.

Limits:

A renamed file is closed if 8 younger ones are open or --rotate-wait is over. It is next examined when the log is rotated again. If it is removed earlier, lines written after the closing are lost without a message. The lines of a renamed file that was still empty when the previous run ended are lost without a message, too.

If the name is a symbolic link that now leads to another file, the previous file counts as a renamed file that is closed. The next run finds the previous file only if its name is a rotated form of the new file's name, or if the link led to it last.

If the name, or the file to which it links, is missing at the start, symfilter waits for it and reads it from its beginning. It also reads the files of the log that were rotated since the start.

cp may make a copy beside the log, under a name that rotation would give. symfilter does not print the copy if it begins like the current file, or like one of the renamed files that are open (at most 8). If the last lines of the copy are all equal, they prove nothing, and the copy is printed like any other file.

If the copy of a truncated log is incomplete, and shorter than the part that was read, it counts as another file and is printed as a whole.

symfilter remembers the last 16 files that were read and removed, the last 8 after a restart, and up to 64 if they were written to within one minute. If a program that does not keep their times compresses more files between two checks, the other files are printed again. A compressed file that belongs to no known file is left out if it was last written before the log; --verbose names it.

After a read error (EIO) symfilter reports the error and retries. A file that its server has replaced (ESTALE) is closed and opened again by its name. If the new file holds the text that was read, reading continues after that text, otherwise at the beginning of the file. A renamed file that the next run cannot read counts as gone.

If a sync of the output fails, symfilter reports it and syncs again. Lines printed since the last successful sync count as printed, but may be lost, since the system may have dropped them.`},
	{Title: "SIGNALS", Text: `After an interrupt (Ctrl-C), symfilter keeps reading for at most one second, so that the producer of the log can finish. After a termination signal, it prints the complete lines that it has read, and ends. A second signal ends it at once.

A hang-up signal (SIGHUP) does not end a run that follows files or reads from a pipe or socket: log collectors and logrotate send it after they move files. With --follow, symfilter then examines all files at once. The signal ends such a run only if its terminal is gone, or disappears within a second. SIGHUP always ends other runs. With nohup, it is ignored.`}}
