package publish

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/findings"
)

// The hash of a source line in GitHub's upload action (codeql-action, src/fingerprints.ts). The
// hash is a polynomial, modulo 2^64, over 100 UTF-16 units: the line and the text after it, without
// blanks and tabs.
const (
	hashUnits = 100
	hashBase  = 37
	hashEnd   = 0xffff // unit after the last one
)

// lineHashes returns the hashes of the lines of findings with known source text.
func (r *Result) lineHashes(all []*findings.Finding) map[*findings.Finding]string {
	hashes := make(map[*findings.Finding]string)
	if r.Text == nil {
		return hashes
	}
	byFile := make(map[string][]*findings.Finding)
	for _, x := range all {
		if p := r.place(x); p.known {
			byFile[p.file] = append(byFile[p.file], x)
		}
	}
	for file, in := range byFile {
		text := r.Text(file)
		if text == nil {
			continue
		}
		var lines []uint32
		for _, x := range in {
			lines = append(lines, r.place(x).line)
		}
		found := hashLines(text, lines)
		for _, x := range in {
			if h, ok := found[r.place(x).line]; ok {
				hashes[x] = h
			}
		}
	}
	return hashes
}

// hashLines returns the hashes of the given lines of text, counted from 1. The number after a hash
// counts the equal hashes up to that line.
func hashLines(text []byte, lines []uint32) map[uint32]string {
	wanted := slices.Clone(lines)
	slices.Sort(wanted)
	units := unitsOf(text)
	first := uint64(1) // factor of the unit that leaves the window
	for range hashUnits {
		first *= hashBase
	}
	found := make(map[uint32]string)
	seen := make(map[uint64]int)
	var hash uint64
	for i := range min(hashUnits, len(units)) {
		hash = hash*hashBase + uint64(units[i])
	}
	for range hashUnits - min(hashUnits, len(units)) {
		hash *= hashBase
	}
	line := uint32(0)
	for i := range units {
		if i == 0 || units[i-1] == '\n' {
			line++
			seen[hash]++
			if _, ok := slices.BinarySearch(wanted, line); ok {
				found[line] = strconv.FormatUint(hash, 16) + ":" + strconv.Itoa(seen[hash])
			}
		}
		var next uint64
		if i+hashUnits < len(units) {
			next = uint64(units[i+hashUnits])
		}
		hash = hash*hashBase + next - first*uint64(units[i])
	}
	return found
}

// unitsOf returns the UTF-16 units of a text without blanks and tabs. Each line end is \n, and
// hashEnd is the last unit. Invalid UTF-8 becomes U+FFFD.
func unitsOf(text []byte) []uint16 {
	units := make([]uint16, 0, len(text)+1)
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == ' ', c == '\t':
		case c == '\r':
			units = append(units, '\n')
			if i+1 < len(text) && text[i+1] == '\n' {
				i++
			}
		case c < utf8.RuneSelf:
			units = append(units, uint16(c))
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r > 0xffff {
				r -= 0x10000
				units = append(units, uint16(0xd800+r>>10))
				r = 0xdc00 + r&0x3ff
			}
			units = append(units, uint16(r))
			i += n
			continue
		}
		i++
	}
	return append(units, hashEnd)
}
