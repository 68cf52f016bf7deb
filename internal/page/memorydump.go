package page

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/backtrace"
)

// dumpMark is in the line before a sanitizer's dump of shadow memory with its legend, about 30
// lines that few readers need.
var dumpMark = []byte("around the buggy address")

const dumpTitle = "Bytes around the address"

// foldDump begins a fold of the page at a line with dumpMark. It ends the fold before the first
// line after the dump.
func (p *Page) foldDump(text []byte) {
	switch {
	case len(text) <= backtrace.MaxBetween && bytes.Contains(text, dumpMark):
		p.html.Fold(dumpTitle)
		p.dump = true
	case p.dump && !isDump(text):
		p.html.Unfold()
		p.dump = false
	}
}

// isDump reports whether a line after dumpMark looks like part of a dump by AddressSanitizer,
// HWAddressSanitizer or the kernel's KASAN.
//
//	=>0x508000000000: fa fa fa fa[fd]fd fd fd fd fd fd fd fd fd fd fd
//	  Heap left redzone:       fa
//	[   12.345678] >ffff8881058d6f80: fb fb fb fb fb fb fb fb fb fb fb fb fb fb fb fb
func isDump(text []byte) bool {
	if end := bytes.Index(text, []byte("] ")); end > 0 && text[0] == '[' {
		text = text[end+len("] "):]
	}
	if bytes.HasPrefix(text, []byte("Shadow byte legend")) || bytes.HasPrefix(text, []byte("Tags for short granules")) {
		return true
	}
	return len(text) > 1 && (text[0] == ' ' || text[0] == '>' || text[0] == '=' && text[1] == '>')
}

// nextDump returns the offset of the first line with dumpMark, or the length of lines.
func nextDump(lines []byte) int {
	if at := bytes.Index(lines, dumpMark); at >= 0 {
		return bytes.LastIndexByte(lines[:at], '\n') + 1
	}
	return len(lines)
}
