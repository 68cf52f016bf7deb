package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/disasm"
	"github.com/symfilter/symfilter/internal/lines"
)

// A listing is the disassembly of the code around an instruction. Linux prints the bytes of this
// code in one line of the log.
type listing struct {
	before int      // bytes of the line before the code; each line of the listing repeats them
	lines  []string // empty if the line has no listing
}

// mayList reports whether the line b may have a listing, and the operator requests listings.
func mayList(d *Dialects, b []byte) bool { return d.Code && bytes.Contains(b, []byte("Code: ")) }

// listingOf returns the listing of the line b if the operator requests listings.
func listingOf(d *Dialects, b []byte) (l listing) {
	if !mayList(d, b) {
		return l
	}
	code, ok := dialect.ListedCode(b)
	if !ok || code.Before > maxRepeat {
		return l
	}
	machine := disasm.X86
	if code.Arm64 {
		machine = disasm.Arm64
	}
	return listing{code.Before, disasm.Lines(machine, code.Bytes, code.At)}
}

// isListed reports whether next, which follows line, is the first line of line's listing. If so,
// the log was filtered before.
func isListed(d *Dialects, line, next []byte) bool {
	l := listingOf(d, line)
	if len(l.lines) == 0 {
		return false
	}
	text, _ := lines.CutEnd(next)
	return string(text) == string(line[:l.before])+l.lines[0]
}

func printListing(f *lineFilter, text, eol []byte, l listing) {
	between := eol
	if len(between) == 0 {
		between = newline
	}
	f.layout.LogBytes(text)
	for _, line := range l.lines {
		f.layout.NextLine(between)
		f.layout.LogBytes(text[:l.before])
		f.layout.Mark(line)
	}
	f.endLine(eol)
	f.sendLarge()
	f.current.text = nil
}
