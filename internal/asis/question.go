package asis

import (
	"encoding/hex"
	"strings"

	"github.com/symfilter/symfilter/buildid"
)

// A kind is the subject of a question.
type kind uint8

const (
	codeKind  kind = iota
	dataKind       // DATA: a variable
	frameKind      // FRAME: the local variables of a function
)

// A question is a parsed line of standard input, or a parsed argument.
type question struct {
	kind    kind
	module  string // path of the file; empty: id is set
	id      buildid.ID
	symbol  string // a name in place of an address
	addr    uint64 // with a symbol: the offset from it
	hasAddr bool   // there is an address, and no symbol
}

// A mistake is an error about a question or its file, in LLVM's words.
type mistake string

func (m mistake) Error() string { return string(m) }

const blanks = " \t\n\v\f\r"

// question reads a line as LLVM 19 does. On an error, q has the module read so far.
func (l *Line) question(line string) (q question, err error) {
	q.module, q.id = l.object, parseID(l.buildID)
	given := q.module != "" || !q.id.IsZero()
	switch word, rest, _ := strings.Cut(line, " "); {
	case word == "CODE" && len(line) > 4:
		line = rest
	case word == "DATA" && len(line) > 4:
		q.kind, line = dataKind, rest
	case word == "FRAME" && len(line) > 5:
		q.kind, line = frameKind, rest
	}
	file, id := false, false
	for line != "" {
		line = strings.TrimLeft(line, blanks)
		rest, isFile := strings.CutPrefix(line, "FILE:")
		isID := false
		if !isFile {
			rest, isID = strings.CutPrefix(line, "BUILDID:")
		}
		if !isFile && !isID {
			break
		}
		if file || id {
			return q, mistake("duplicate input file specification prefix")
		}
		file, id, line = isFile, isID, rest
	}
	switch {
	case file || id:
		line, err = q.named(line, given, id)
	case !given:
		if q.module, line = nextWord(line); q.module == "" {
			err = mistake("no input filename has been specified")
		}
	}
	if err != nil {
		return q, err
	}
	return q, q.place(line, l.program.gnu)
}

// named reads the name after FILE: or, if isID is set, after BUILDID:. It returns the rest of the
// line. It fails if given is set, since the line then already has a file.
func (q *question) named(line string, given, isID bool) (rest string, err error) {
	switch {
	case line == "" && isID:
		return "", mistake("must be followed by a hash")
	case line == "":
		return "", mistake("must be followed by an input file")
	case given:
		return "", mistake("input file has already been specified")
	}
	name, rest := nextWord(line)
	switch {
	case name == "":
		return "", mistake("unbalanced quotes in input file name")
	case !isID:
		q.module = name
	default:
		if q.id = parseID(name); q.id.IsZero() {
			return "", mistake("wrong format of build-id")
		}
	}
	return rest, nil
}

// place reads an address, or a symbol with an offset, up to the next blank.
func (q *question) place(line string, gnu bool) error {
	line = strings.Trim(line, blanks)
	if line == "" {
		return mistake("no module offset has been specified")
	}
	spec := line
	if i := strings.IndexAny(line, " \n\r"); i >= 0 {
		spec = line[:i]
	}
	digit := spec[0] >= '0' && spec[0] <= '9'
	base := uint64(0)
	if gnu {
		base = 16
		if rest, ok := strings.CutPrefix(spec, "0x"); ok {
			spec = rest
		} else {
			spec = strings.TrimPrefix(spec, "0X")
		}
	}
	var ok bool
	if q.addr, ok = parseNumber(spec, base); ok {
		q.hasAddr = true
		return nil
	}
	if digit || spec == "" {
		return mistake("expected a number as module offset")
	}
	q.symbol, q.addr = spec, 0
	if i := strings.LastIndexByte(spec, '+'); i > 0 {
		if n, ok := parseNumber(spec[i+1:], 0); ok {
			q.symbol, q.addr = spec[:i], n
		}
	}
	return nil
}

// parseNumber parses a number as LLVM does: base 0 means the base of the prefix 0x, 0b, 0o or 0.
func parseNumber(s string, base uint64) (n uint64, ok bool) {
	if base == 0 {
		base, s = baseOf(s)
	}
	for i := range len(s) {
		digit := uint64(99)
		switch c := s[i] | 0x20; {
		case s[i] >= '0' && s[i] <= '9':
			digit = uint64(s[i] - '0')
		case c >= 'a' && c <= 'z' && s[i] >= 'A':
			digit = uint64(c-'a') + 10
		}
		if digit >= base || n > (1<<64-1-digit)/base {
			return 0, false
		}
		n = n*base + digit
	}
	return n, s != ""
}

// baseOf returns the base of a number with a prefix, and the digits.
func baseOf(s string) (uint64, string) {
	if len(s) > 1 && s[0] == '0' {
		switch s[1] {
		case 'x', 'X':
			return 16, s[2:]
		case 'b', 'B':
			return 2, s[2:]
		case 'o':
			return 8, s[2:]
		}
		if s[1] >= '0' && s[1] <= '9' {
			return 8, s[1:]
		}
	}
	return 10, s
}

// nextWord returns the next word of s, which may be in quotes, and the rest. The word is empty if a
// quote has no end.
func nextWord(s string) (word, rest string) {
	s = strings.TrimLeft(s, " \n\r")
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		end := strings.IndexByte(s[1:], s[0])
		if end < 0 {
			return "", s
		}
		return s[1 : 1+end], s[2+end:]
	}
	end := strings.IndexAny(s, " \n\r")
	if end < 0 {
		end = len(s)
	}
	return s[:end], s[end:]
}

// parseID parses a build ID in hex digits. The ID is zero if s is not a build ID.
func parseID(s string) (id buildid.ID) {
	if len(s)%2 != 0 {
		s = "0" + s // as LLVM reads it
	}
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) == 0 {
		return id
	}
	id, _ = buildid.FromBytes(raw) // zero if it is too long
	return id
}
