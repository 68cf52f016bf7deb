package main

import (
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/daemon"
)

const (
	description = `symfilterd runs the pipelines of a configuration file. Each reads the lines of one input, replaces addresses by function, file and line as symfilter does, and writes to one output.

Nothing is queued: an output that blocks stops the reading of its input. Input is acknowledged only after it is written: files by a checkpoint in the state folder, HTTP requests and journal uploads by the response. Senders to other sockets get no acknowledgement, so lines in flight are lost if the machine or the daemon dies; datagrams that arrive too fast are lost, and counted.

Environment variables in the file are not expanded.`
	signals = `SIGHUP reads the configuration again, and opens outputs again at their names. Unchanged pipelines continue; in changed pipelines, connections and followed files continue with the new options. A file with mistakes changes nothing; its mistakes are logged.

SIGTERM and SIGINT end the daemon: it stops reading, writes what it has read, and saves checkpoints, within five seconds.`
	statuses = `0    after SIGTERM or SIGINT, or after the end of all inputs; or --check finds no mistake
1    the daemon cannot run: an address in use, an output that cannot be opened; or lines were lost at the end, since an output did not accept them
2    a mistake in the command line or in the configuration`
	files = `The state folder has the checkpoints of followed files and the contexts of connections. It can be removed while the daemon is stopped; files are then read from start_at.

The folder symbols.cache_directory, or $XDG_CACHE_HOME, has downloaded debug files and indexes.`
	environment = `DEBUGINFOD_URLS is read if symbols.debuginfod_urls is system. NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS and JOURNAL_STREAM have the meaning that systemd gives them.`
)

// manPage returns the manual page in troff format: the same bytes for the same version and date.
func manPage(version, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH SYMFILTERD 8 %q %q\n.nh\n.ad l\n.SH NAME\nsymfilterd \\- symbolize logs as a service\n", date, cli.TroffEscape("symfilterd "+version))
	b.WriteString(".SH SYNOPSIS\n.nf\n" + cli.TroffEscape("symfilterd --config FILE [--check]\nsymfilterd --schema | --version | --help\nsymfilterd help configuration\nsymfilterd man\nsymfilterd completion SHELL") + "\n.fi\n")
	b.WriteString(".SH DESCRIPTION\n" + cli.Troff(description) + ".SH OPTIONS\n")
	for _, line := range flagLines() {
		b.WriteString(".TP\n.B " + cli.TroffEscape(line[0]) + "\n" + cli.TroffEscape(line[1]) + "\n")
	}
	b.WriteString(".SH CONFIGURATION\n")
	all := daemon.Sections()
	for i := range all {
		s := &all[i]
		b.WriteString(".SS " + cli.TroffEscape(title(s)) + "\n" + cli.TroffEscape(plain(s.Text)) + "\n")
		for j := range s.Keys {
			k := &s.Keys[j]
			b.WriteString(".TP\n.B " + cli.TroffEscape(k.Name) + "\n" + cli.TroffEscape(plain(k.Text)+" ("+remarks(k)+")") + "\n")
		}
	}
	for _, section := range [][2]string{{"SIGNALS", signals}, {"FILES", files}, {"ENVIRONMENT", environment}} {
		b.WriteString(".SH " + section[0] + "\n" + cli.Troff(section[1]))
	}
	b.WriteString(".SH EXIT STATUS\n.nf\n" + cli.TroffEscape(statuses) + "\n.fi\n")
	b.WriteString(".SH SEE ALSO\n.BR symfilter (1),\n.BR systemd\\-journal\\-upload (8),\n.BR logrotate (8)\n")
	return b.String()
}

// flagLines returns the form and the description of each flag.
func flagLines() (all [][2]string) {
	flags, _, _, _ := new(options).define()
	for line := range strings.Lines(flags.FlagUsages()) {
		spelling, text, _ := strings.Cut(strings.TrimSpace(line), "   ")
		all = append(all, [2]string{spelling, strings.TrimSpace(text)})
	}
	return all
}

// plain removes Markdown's markup from text.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }

// reference returns the help about the configuration.
func reference() string {
	var b strings.Builder
	b.WriteString("The configuration of symfilterd: one YAML file\n")
	all := daemon.Sections()
	for i := range all {
		s := &all[i]
		b.WriteString("\n" + title(s) + ":\n" + indented(plain(s.Text), 2))
		for j := range s.Keys {
			k := &s.Keys[j]
			b.WriteString("  " + k.Name + " (" + remarks(k) + ")\n" + indented(plain(k.Text), 6))
		}
	}
	return b.String()
}

// indented returns text as a paragraph of at most 80 columns, indented by columns.
func indented(text string, columns int) string {
	var b strings.Builder
	indent := strings.Repeat(" ", columns)
	line := indent
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+1+len([]rune(word)) > 80 {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		line += word + " "
	}
	return b.String() + strings.TrimRight(line, " ") + "\n"
}
