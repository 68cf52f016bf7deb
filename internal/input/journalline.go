package input

import (
	"bytes"
	"io"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/escape"
)

// Fields of an entry that [NewJournalLines] prints, or that identify its process: see
// systemd.journal-fields(7).
const (
	journalRealtime  = "__REALTIME_TIMESTAMP" // microseconds since 1970
	journalMachine   = "_MACHINE_ID"
	journalBoot      = "_BOOT_ID"
	journalPID       = "_PID"
	journalSyslogPID = "SYSLOG_PID"
	journalHost      = "_HOSTNAME"
	journalIdent     = "SYSLOG_IDENTIFIER"
	journalComm      = "_COMM"
	journalUnit      = "_SYSTEMD_UNIT"
	journalPriority  = "PRIORITY"
)

// maxShown bounds the bytes of the value of each of these fields. Host names have at most 64 bytes,
// and names of programs at most 15.
const maxShown = 256

// NewJournalLines returns an Envelope for journals in the export format, of one or several
// machines. It prints the messages as lines, like journalctl. Before each line are the time in UTC,
// the host, the program and its process ID:
//
//	2026-11-22T22:48:48.123456Z host app[417]: MESSAGE
//
// In JSON, these are members of the line's object. Entries without a message are not printed. Each
// process has its own modules and maps, by _MACHINE_ID, _BOOT_ID and _PID; o.ProcessKey is not
// used.
func NewJournalLines(o filter.Options, w io.Writer) *Envelope {
	e := NewEnvelope(Journal, o, w, message)
	e.KeyBy(journalMachine, journalBoot, journalPID)
	e.lines, e.every = true, true
	e.out.records, e.out.json = true, o.Output == filter.JSON
	e.out.lines = !e.out.json
	return e
}

// An entryHead holds an entry's values of the fields above, each cut to maxShown bytes. A missing
// field is nil.
type entryHead struct {
	realtime, machine, boot, pid, syslogPID, host, ident, comm, unit, priority []byte
}

func headOf(entry []byte) (h entryHead) {
	for at := 0; at < len(entry); {
		n, _, _, end := fieldLength(entry[at:], 0)
		if n == 0 || end {
			break
		}
		name, value := fieldValue(entry[at : at+n])
		if to := h.field(string(name)); to != nil && *to == nil {
			*to = value[:min(len(value), maxShown)]
		}
		at += n
	}
	return h
}

// field returns a pointer to the field of h with this name, or nil.
func (h *entryHead) field(name string) *[]byte {
	switch name {
	case journalRealtime:
		return &h.realtime
	case journalMachine:
		return &h.machine
	case journalBoot:
		return &h.boot
	case journalPID:
		return &h.pid
	case journalSyslogPID:
		return &h.syslogPID
	case journalHost:
		return &h.host
	case journalIdent:
		return &h.ident
	case journalComm:
		return &h.comm
	case journalUnit:
		return &h.unit
	case journalPriority:
		return &h.priority
	}
	return nil
}

// time appends the time of the entry, unless it is missing or invalid.
func (h *entryHead) time(dst []byte) []byte {
	us, err := strconv.ParseInt(string(h.realtime), 10, 64)
	if err != nil || us < 0 || us > 253402300799999999 { // the end of the year 9999
		return dst
	}
	return time.UnixMicro(us).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000000Z")
}

// program returns the name of the program and its process ID. Either may be empty.
func (h *entryHead) program() (name, pid []byte) {
	if name = h.ident; len(name) == 0 {
		name = h.comm
	}
	if pid = h.pid; len(pid) == 0 {
		pid = h.syslogPID
	}
	return name, pid
}

// prefix appends the prefix of each line of the message.
func (h *entryHead) prefix(dst []byte) []byte {
	had := len(dst)
	if dst = h.time(dst); len(dst) > had {
		dst = append(dst, ' ')
	}
	if len(h.host) > 0 {
		dst = append(appendWord(dst, h.host), ' ')
	}
	name, pid := h.program()
	if len(name) == 0 && len(pid) == 0 {
		return dst
	}
	dst = appendWord(dst, name)
	if len(pid) > 0 {
		dst = append(appendWord(append(dst, '['), pid), ']')
	}
	return append(dst, ": "...)
}

// appendWord appends b. An underscore replaces each control character, each invisible character,
// and each byte that is not UTF-8. They could end or hide the line.
func appendWord(dst, b []byte) []byte {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			dst = append(dst, '_')
		} else {
			dst = append(dst, b[:n]...)
		}
		b = b[n:]
	}
	return dst
}

// members appends the JSON members of the entry for each line of the message.
func (h *entryHead) members(dst []byte) []byte {
	if t := h.time(nil); len(t) > 0 {
		dst = append(append(append(dst, `,"time":"`...), t...), '"')
	}
	dst = append(dst, `,"journal":{`...)
	had := len(dst)
	name, pid := h.program()
	for _, m := range []struct {
		name  string
		value []byte
	}{
		{"host", h.host}, {"program", name}, {"pid", pid}, {"unit", h.unit}, {"priority", h.priority},
		{"machine_id", h.machine}, {"boot_id", h.boot},
	} {
		if len(m.value) == 0 {
			continue
		}
		if len(dst) > had {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), m.name...), `":`...)
		dst, _ = escape.AppendString(dst, string(appendWord(nil, m.value)))
	}
	return append(dst, '}')
}

// shown returns the prefix for the lines of an entry, or the members for their objects.
func (e *Envelope) shown(entry []byte) []byte {
	h := headOf(entry)
	if e.out.json {
		return h.members(nil)
	}
	return h.prefix(nil)
}

// messageLines filters an entry whose message is printed as lines.
func (e *Envelope) messageLines(b []byte) {
	fields := journalFields(e.found[:0], b, e.names, e.learnField)
	e.found = fields[:0]
	if len(fields) == 0 {
		return
	}
	e.filterRecord(&seal{raw: b, fields: append([]field{}, fields...), prefix: e.shown(b)})
}

// printLines prints p, output for a line. Each line of p begins with the prefix of the record.
func (s *sealer) printLines(l *seal, p []byte) {
	for line := range bytes.Lines(p) {
		if !s.midLine && l != nil {
			s.buf = append(s.buf, l.prefix...)
		}
		s.midLine = line[len(line)-1] != '\n'
		s.print(line)
	}
}
