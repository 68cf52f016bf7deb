package main

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/symfilter/symfilter/internal/input"
)

// A reading is the format in which inputs are read, and what on the command line chose it.
type reading struct {
	format  input.Format
	because string // --input=markup, or the command callgrind; empty if the format is recognized
	table   bool   // a profile is printed as a table, after the lines that are not of it
}

// reading returns how the inputs are read.
func (c *config) reading() reading {
	r := reading{format: c.inputFormat(), table: c.output != outputJSON && c.output != outputHTML && c.output != outputCallgrind}
	switch {
	case r.format == input.Auto:
	case c.command != "":
		r.because = "the command " + c.command
	case c.deciding() != nil && (c.input == "" || c.input == input.Auto.String()):
		r.because = c.deciding().flag()
	default:
		r.because = "--input=" + c.input
	}
	return r
}

// maxSniffed bounds how far into an input a sniffer looks, in bytes: plain text must cost nothing.
const maxSniffed = 4 << 20

// headSize is the number of bytes that decide the format of an input.
const headSize = 4 << 10

// A sniffer finds out whether symfilter can resolve anything in the text of an input. Its methods
// are safe for concurrent use.
type sniffer struct {
	reading reading
	lines   bool // the input is not unpacked, since its name is not that of a compressed file

	mu     sync.Mutex
	past   bool // an earlier run has printed the text that comes
	seen   int
	head   []byte       // the first kindSize bytes; headSize if the format is given
	begins input.Format // recognized by the head, if the format is given
	kind   *fileKind    // nil for a log
	markup bool         // an element was seen
}

// look examines the next bytes of the text.
func (s *sniffer) look(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookHead(b)
	if s.seen += len(b); s.markup || s.kind != nil || s.seen > maxSniffed {
		return
	}
	s.markup = bytes.Contains(b, []byte("{{{"))
}

// lookHead examines the next bytes of the text if they belong to its beginning.
func (s *sniffer) lookHead(b []byte) {
	size := kindSize
	if s.reading.because != "" {
		size = headSize
	}
	n := min(size-len(s.head), len(b))
	if n <= 0 || s.past {
		return
	}
	s.head = append(s.head, b[:n]...)
	s.kind = kindOf(s.head)
	if s.reading.because != "" && s.begins == input.Auto {
		s.begins = input.Recognise(s.head)
	}
}

// setPast sets whether an earlier run has printed the text that comes.
func (s *sniffer) setPast(past bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past = past
}

// hint returns what to do with an input in which nothing was resolved; "" if there is nothing to
// report. packed is how the input is compressed, or empty.
func (s *sniffer) hint(name, packed string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r := s.reading; {
	case s.lines && s.kind != nil && s.kind.program != "":
		return "begins like " + s.kind.name + ", and is printed unchanged, since its name is not that of a compressed file; write " + s.kind.program + " -dc " + name + " | symfilter"
	case s.kind != nil:
		return s.kind.hint(name, packed)
	case r.misread(s.begins):
		return fmt.Sprintf("begins like %s, but is read as %s because of %s: leave that out", formatNames[s.begins], formatNames[r.format], r.because)
	case s.markup && r.format == input.Callgrind && r.table: // lines that are not of the profile are filtered
	case s.markup && r.format == input.Callgrind:
		return "has symbolizer markup, which is not a part of a profile and is left out because of " + r.because + ": leave that out"
	case s.markup && (r.format == input.Valgrind || r.format == input.RTrace):
		return "has symbolizer markup, which is not resolved because of " + r.because + ": leave that out"
	}
	return ""
}

// misread reports whether an input that begins like the format begins is read as something else.
// The lines of a container may be read as any log.
func (r reading) misread(begins input.Format) bool {
	switch begins {
	case input.Auto, input.Markup, r.format:
		return false
	case input.CRI, input.Docker, input.JSON, input.Journal:
		return r.format >= input.Valgrind
	}
	return r.because != ""
}

// formatNames are the formats, as messages name them.
var formatNames = [input.RTrace + 1]string{
	input.Markup:    "a log",
	input.CRI:       "a container's log of CRI",
	input.Docker:    "a container's log of Docker",
	input.JSON:      "a log of JSON lines",
	input.Journal:   "a journal in journald's export format",
	input.Valgrind:  "an XML report of Valgrind",
	input.Callgrind: "a profile of Callgrind",
	input.RTrace:    "a report of sp-rtrace",
}
