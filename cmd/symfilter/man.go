package main

import (
	"fmt"
	"strings"
)

// What the manual page says behind the help.
const (
	manEnvironment = `NO_COLOR, CLICOLOR_FORCE and TERM are heeded unless --color is given; with --style=llvm only TERM. LLVM_SYMBOLIZER_OPTS holds words of the command line, with --style=llvm only.

DEBUGINFOD_URLS and DEBUGINFOD_CACHE_PATH name the servers and their cache; those and others that begin with DEBUGINFOD_ are read as gdb and elfutils read them.`
	manFiles = `$XDG_CACHE_HOME/symfilter, or ~/.cache/symfilter: indexes of debug files, and what is known of folders.

$XDG_CACHE_HOME/debuginfod_client, or ~/.cache/debuginfod_client: what servers sent. /etc/debuginfod: the system's servers.`
	manState = `The file of --state holds up to where each followed file was printed. A checkpoint is written within 100 ms of output, and after each MiB, unless it takes more than 2 % of the time. If symfilter is killed, the next run prints again what was printed since the last one; no line is lost.

On Linux, output to a pipe or socket counts as printed when its reader has read it: if the reader dies, the next run prints the rest again. When symfilter ends, the reader gets 0.4 s to read it. What a reader has read, and lost, is not known here; of a network connection a byte counts when the other machine has received it.

After a power cut, checkpoints count up to the last sync, which comes 5 s after output and at the end, after one of the output if that is a file: on Linux, lines printed since then come twice, and none is lost. Elsewhere a power cut is not told from the end of the process.

A symbolic link, or a file that holds anything but a checkpoint, is refused with status 1 and left as it is.

If the disk of the output is full, symfilter --follow waits for space, and tries at least each 5 s; other errors end it with status 1, with a checkpoint of what was written.`
	manRotation = `A file belongs to a log if rotation gives it its name: numbers, dates, times and words such as old, after the log's name or before its last dot. All that came since the last look are read, the oldest first. A renamed file is kept open until it is removed, at most 8 of one log: what is written to it late is printed.

What is removed or truncated before it is seen is lost. This is reported, with its size as far as that is known: bytes that were seen and not read, and files that had the name for too short a time. With --poll, and on network file systems, a file that comes and goes between two looks leaves no trace.

If a log was copied and truncated, what was not read of it is read from the copy.

If more files are followed than the limit of open files allows (ulimit -n), those that are read to their end are closed, and opened again when they grow.`
	manExit    = `0: the log was passed on, addresses that stayed unresolved included. 1: an input or output error. 2: called wrongly. 3: with --strict, something stayed unresolved. 128 and the number of the signal that ended it. An output that was closed ends it quietly with 0.`
	manSignals = `Interrupt (Ctrl-C) leaves the producer of the log one second for its last words. Termination and hang-up print what is complete. A second signal ends it at once.`
)

// manPage renders the tables of commands and flags as a manual page in the language of troff: the
// same bytes for the same version and date.
func manPage(version, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SYMFILTER 1 %q %q\n.nh\n.ad l\n.SH NAME\nsymfilter \\- print logs with addresses replaced by function, file and line\n.SH SYNOPSIS\n.nf\n", date, troff("symfilter "+version))
	for _, cmd := range commands() {
		b.WriteString(troff(cmd.usage()) + "\n")
	}
	b.WriteString(".fi\n")
	for _, cmd := range commands() {
		if cmd.name == "" {
			b.WriteString(".SH DESCRIPTION\n" + troffText(cmd.text) + ".SH COMMANDS\n")
		} else {
			b.WriteString(".SS " + troff(cmd.usage()) + "\n" + troffText(cmd.text))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	for _, g := range options {
		b.WriteString(".SS " + troff(g.title) + "\n")
		for i := range g.flags {
			o := &g.flags[i]
			b.WriteString(".TP\n.B " + troff(o.spelling()) + "\n" + troff(o.fullText()+o.remarks()) + "\n")
		}
		if g.note != "" {
			b.WriteString(".P\n" + troff(g.note) + "\n")
		}
	}
	for _, section := range [][2]string{{"ENVIRONMENT", environmentOfFlags + "\n\n" + manEnvironment}, {"FILES", manFiles}, {"CHECKPOINTS", manState}, {"EXIT STATUS", manExit}, {"SIGNALS", manSignals}} {
		b.WriteString(".SH " + section[0] + "\n" + troffText(section[1]))
	}
	b.WriteString(".SH SEE ALSO\n.BR llvm-symbolizer (1),\n.BR addr2line (1)\n")
	return b.String()
}

// troffText renders paragraphs, which empty lines separate. Those that begin with blanks are examples.
func troffText(text string) string {
	var b strings.Builder
	for i, paragraph := range strings.Split(strings.TrimSuffix(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".P\n")
		}
		if example := strings.ReplaceAll("\n"+paragraph, "\n  ", "\n"); strings.HasPrefix(paragraph, "  ") {
			b.WriteString(".nf\n" + troff(example[1:]) + "\n.fi\n")
		} else {
			b.WriteString(troff(paragraph) + "\n")
		}
	}
	return b.String()
}

// release returns the first word of a version: the rest does not fit the foot
// of a page.
func release(version string) string {
	word, _, _ := strings.Cut(version, " ")
	return word
}

// troff escapes what troff would interpret: backslashes, dashes, and dots and
// quotes that begin a line.
func troff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
