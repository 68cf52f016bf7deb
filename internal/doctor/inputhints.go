package doctor

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/symfilter/symfilter/internal/input"
)

// A Reading is the format of the inputs, and the words of the command line that selected it.
type Reading struct {
	Format  input.Format
	Because string // --input=markup, or the command callgrind; empty: detected
	Table   bool   // a profile is printed as a table, after other lines
}

// maxSniffed bounds the bytes that a Sniffer examines, since plain text must cost little.
const maxSniffed = 4 << 20

// HeadSize is the number of bytes that decide the format of an input.
const HeadSize = 4 << 10

// A Sniffer finds out whether an input has anything that symfilter can resolve. It is safe for
// concurrent use.
type Sniffer struct {
	Reading Reading
	// Lines is set if the input is not unpacked, since its name has no suffix of a compressed file.
	Lines bool

	mu     sync.Mutex
	past   bool // an earlier run has printed the following text
	seen   int
	head   []byte       // first kindSize bytes; HeadSize if the format is given
	begins input.Format // format of the head, if a format is given
	kind   *fileKind    // nil for a log
	markup bool         // an element was seen
}

// Look examines the next bytes of the text.
func (s *Sniffer) Look(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookHead(b)
	if s.seen += len(b); s.markup || s.kind != nil || s.seen > maxSniffed {
		return
	}
	s.markup = bytes.Contains(b, []byte("{{{"))
}

func (s *Sniffer) lookHead(b []byte) {
	size := kindSize
	if s.Reading.Because != "" {
		size = HeadSize
	}
	n := min(size-len(s.head), len(b))
	if n <= 0 || s.past {
		return
	}
	s.head = append(s.head, b[:n]...)
	s.kind = kindOf(s.head)
	if s.Reading.Because != "" && s.begins == input.Auto {
		s.begins = input.Recognise(s.head)
	}
}

// SetPast sets whether an earlier run has already printed the text that Look gets from now on.
func (s *Sniffer) SetPast(past bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = past
}

// Hint returns advice for an input in which nothing was resolved, or "". packed names the
// compression of the input, or is empty.
func (s *Sniffer) Hint(name, packed string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.Reading; {
	case s.Lines && s.kind != nil && s.kind.program != "":
		return "begins like " + s.kind.name + ", and is printed unchanged, since its name has no suffix such as .gz; write " + s.kind.program + " -dc " + name + " | symfilter"
	case s.kind != nil:
		return s.kind.hint(name, packed)
	case r.misread(s.begins):
		return fmt.Sprintf("begins like %s, but is read as %s because of %s; run symfilter without it", formatNames[s.begins], formatNames[r.Format], r.Because)
	// if the profile is printed as a table, lines outside of the profile are filtered, with their
	// markup
	case s.markup && r.Format == input.Callgrind && r.Table:
	case s.markup && r.Format == input.Callgrind:
		return "has symbolizer markup, which is not part of a profile and is ignored because of " + r.Because + "; run symfilter without it"
	case s.markup && (r.Format == input.Valgrind || r.Format == input.RTrace):
		return "has symbolizer markup, which is not resolved because of " + r.Because + "; run symfilter without it"
	}
	return ""
}

// NotProfile describes a file that begins with start and is not a profile. It returns "" for an
// unknown kind. name is the file's name in a command.
func NotProfile(start []byte, name string) string {
	kind := kindOf(start)
	switch begins := input.Recognise(start); {
	case kind != nil:
		return "is " + kind.name
	case begins == input.Valgrind, begins == input.Callgrind, begins == input.RTrace:
		return "begins like " + formatNames[begins] + ": write symfilter " + begins.String() + " " + name
	}
	return ""
}

// misread reports whether an input is read in a format that does not fit begins, the format of its
// first bytes. A container log, JSON lines or a journal may be read as any kind of log.
func (r Reading) misread(begins input.Format) bool {
	switch begins {
	case input.Auto, input.Markup, r.Format:
		return false
	case input.CRI, input.Docker, input.JSON, input.Journal:
		return r.Format >= input.Valgrind
	}
	return r.Because != ""
}

var formatNames = [input.RTrace + 1]string{
	input.Markup:    "a log",
	input.CRI:       "a container log in CRI format",
	input.Docker:    "a log of Docker's json-file driver",
	input.JSON:      "a log of JSON lines",
	input.Journal:   "a journal in journald's export format",
	input.Valgrind:  "an XML report of Valgrind",
	input.Callgrind: "a profile of Callgrind",
	input.RTrace:    "a report of sp-rtrace",
}
