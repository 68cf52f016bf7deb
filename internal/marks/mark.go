package marks

import (
	"bytes"
	"strings"
)

var (
	markupOpen = []byte("{{{")
	newline    = []byte{'\n'}
)

// findOpenGo is FindOpen for any processor.
func findOpenGo(b []byte) (at, lines int) {
	at = bytes.Index(b, markupOpen)
	if at < 0 {
		at = len(b)
	}
	return at, bytes.Count(b[:at], newline)
}

// A Mark is a set of three-byte strings: each is one byte of First, followed by Rest.
type Mark struct {
	First, Rest string
	Bucket      int // bucket in the tables of a Set, below 8
}

// marks are the strings that a Search finds.
//
// For the vector search the marks are in eight buckets, which share tables. Several marks in one
// bucket make false candidates. This distribution makes few in logs and texts of many kinds.
var marks = []Mark{
	{"{", "{{", 0},
	{"@", " 0", 0},
	{"w", "n]", 1},
	{"mK", "0x", 1}, // the end of a colour; MayMatch looks for its beginning
	{"]", ":0", 2},
	{"p", "c ", 3},
	{"p", "c\x1b", 5},
	{" n", "ip", 3},
	{`"`, `o"`, 4},
	{"\t<>", "0x", 4},
	{"P", "C=", 5},
	{" ", "(/", 5},
	{"d", "_o", 6},
	{" [(@+\n", "0x", 7},
}

// escapedMarks returns the marks as they are in JSON strings, where quotes, TAB, ESC, line ends, <
// and > are escaped. A quote precedes the first byte of a string.
func escapedMarks() (all []Mark) {
	for _, m := range marks {
		for _, c := range []byte(m.First) {
			switch c {
			case '\t', '\n':
				m.First += map[byte]string{'\t': "t", '\n': `n"`}[c]
			case '<', '>':
				m.First += map[byte]string{'<': "cC", '>': "eE"}[c]
			}
		}
		m.Rest = strings.NewReplacer(`"`, `\`, "\x1b", `\`).Replace(m.Rest)
		all = append(all, m)
	}
	return append(all, Mark{`"`, `o"`, 3}) // of MongoDB, whose frames are in the JSON of the line itself
}

// counterMarks are the register names RIP and EIP, in upper, lower and mixed case. Other words,
// such as "script", contain them, too.
var counterMarks = []Mark{{"rReE", "ip", 0}, {"rReE", "IP", 1}, {"rReE", "Ip", 2}, {"rReE", "iP", 3}}
