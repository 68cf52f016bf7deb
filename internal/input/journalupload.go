package input

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Bounds that let an entry of an upload be filtered as a whole: see maxLine. Longer values are cut.
const (
	maxFieldName = 256       // bytes of a name; journald's own limit is 64
	maxMessage   = 512 << 10 // bytes of a value of MESSAGE
	maxPackages  = 240 << 10 // bytes of COREDUMP_PACKAGE_JSON; a longer one is omitted
	maxOther     = 4 << 10   // bytes of other values
	maxEntry     = 768 << 10 // bytes of an entry
)

// uploadFields are the kept fields of an upload.
var uploadFields = []string{
	message, journalRealtime, journalMachine, journalBoot, journalPID, journalSyslogPID, journalHost, journalIdent,
	journalComm, journalUnit, journalPriority, coredumpProgram, coredumpPackages,
}

// JournalEntries reads an upload by systemd-journal-upload: a journal in the export format. It
// keeps the fields that [NewJournalLines] prints or needs. It skips other fields, such as the
// memory of a program in COREDUMP. The zero value is for a new upload. A JournalEntries is not safe
// for concurrent use.
type JournalEntries struct {
	Cut int64 // omitted bytes of messages: a message or an entry is too long

	entry []byte // kept fields of the current entry
	has   bool   // the entry has a message
	begun bool   // the current entry has begun

	name  []byte // unfinished name of a field
	value []byte // value of a kept field so far
	keep  int    // maximum bytes of value; 0: the field is skipped
	state entryState
	size  []byte // bytes so far of the length of a binary value
	left  uint64 // remaining bytes of a binary value
}

// An entryState is the part of a field to which the next byte belongs.
type entryState uint8

const (
	inName entryState = iota
	inText            // value after "="
	inSize            // length of a binary value
	inBinary
	inEnd // line end after a binary value
)

// Append appends to dst the entries that end in p, each with the empty line after it. It omits
// entries without a message. An error means that the upload is damaged and that its rest cannot be
// read.
func (j *JournalEntries) Append(dst, p []byte) ([]byte, error) {
	for len(p) > 0 {
		switch j.state {
		case inName:
			n := bytes.IndexAny(p, "=\n")
			part := p
			if n >= 0 {
				part = p[:n]
			}
			j.name = append(j.name, part[:min(len(part), maxFieldName+1)]...)
			if len(j.name) > maxFieldName || !isFieldName(j.name) {
				return dst, fmt.Errorf("%.40q is not a field name in journald's export format", j.name)
			}
			if n < 0 {
				j.begun = true
				return dst, nil
			}
			end := p[n] == '\n'
			p = p[n+1:]
			switch {
			case end && len(j.name) == 0:
				dst = j.finish(dst)
			case end:
				j.begin(inSize)
			case len(j.name) == 0:
				return dst, fmt.Errorf("a field of an entry has no name")
			default:
				j.begin(inText)
			}
		case inText:
			n := bytes.IndexByte(p, '\n')
			if n < 0 {
				j.take(p)
				return dst, nil
			}
			j.take(p[:n])
			j.endField()
			p = p[n+1:]
		case inSize:
			n := min(8-len(j.size), len(p))
			j.size = append(j.size, p[:n]...)
			p = p[n:]
			if len(j.size) == 8 {
				j.left = binary.LittleEndian.Uint64(j.size)
				j.size, j.state = j.size[:0], inBinary
				if j.left == 0 {
					j.state = inEnd
				}
			}
		case inBinary:
			n := int(min(j.left, uint64(len(p))))
			j.take(p[:n])
			p = p[n:]
			if j.left -= uint64(n); j.left == 0 {
				j.state = inEnd
			}
		case inEnd:
			if p[0] != '\n' {
				return dst, fmt.Errorf("the binary field %.40q does not have the length that it states", j.name)
			}
			j.endField()
			p = p[1:]
		}
	}
	return dst, nil
}

// Unfinished reports whether the last entry is incomplete.
func (j *JournalEntries) Unfinished() bool { return j.begun }

func isFieldName(b []byte) bool {
	return !bytes.ContainsFunc(b, func(c rune) bool { return (c < 'A' || c > 'Z') && c != '_' && (c < '0' || c > '9') })
}

// begin begins the value of the field with the name just read.
func (j *JournalEntries) begin(state entryState) {
	j.begun, j.state = true, state
	j.value = j.value[:0]
	switch name := string(j.name); {
	case name == message:
		j.keep = maxMessage
	case name == coredumpPackages:
		j.keep = maxPackages
	case slices.Contains(uploadFields, name):
		j.keep = maxOther
	default:
		j.keep = 0
	}
	j.keep = min(j.keep, max(0, maxEntry-len(j.entry)-len(j.name)-16))
}

func (j *JournalEntries) take(p []byte) {
	n := min(len(p), j.keep-len(j.value))
	j.value = append(j.value, p[:n]...)
	switch {
	case n == len(p):
	case string(j.name) == message:
		j.Cut += int64(len(p) - n)
	default:
		j.keep = len(j.value) // cut
	}
}

// endField adds the field to the entry, unless the field is skipped.
func (j *JournalEntries) endField() {
	isMessage := string(j.name) == message
	cut := len(j.value) >= j.keep && string(j.name) == coredumpPackages
	if j.keep > 0 && !cut {
		j.has = j.has || isMessage
		j.entry = append(j.entry, j.name...)
		if bytes.ContainsFunc(j.value, func(c rune) bool { return c < ' ' && c != '\t' }) {
			j.entry = binary.LittleEndian.AppendUint64(append(j.entry, '\n'), uint64(len(j.value)))
		} else {
			j.entry = append(j.entry, '=')
		}
		j.entry = append(append(j.entry, j.value...), '\n')
	}
	j.name, j.state = j.name[:0], inName
	if cap(j.value) > maxScratch {
		j.value = nil
	}
}

// finish appends the entry if it has a message.
func (j *JournalEntries) finish(dst []byte) []byte {
	if j.has {
		dst = append(append(dst, j.entry...), '\n')
	}
	j.has, j.begun = false, false
	if j.entry = j.entry[:0]; cap(j.entry) > maxScratch {
		j.entry = nil
	}
	return dst
}
