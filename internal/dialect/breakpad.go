package dialect

import (
	"bytes"
	"encoding/hex"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// Breakpad's minidump_stackwalk and rust-minidump print:
//
//	Thread 0 (crashed)
//	 0  libledger.so + 0x1154
//	    rax = 0x0000000000000000   rdx = 0x00007ffd6a9a0630
//	    Found by: given as instruction pointer in context
//	 1  inventory!main + 0x16
//
//	Loaded modules:
//	0x7f31c2a00000 - 0x7f31c2a04fff  libledger.so  ???  (WARNING: No symbols, libledger.so, C0920A3A1B3F557C3A0A920C3F1B7C550)
//
// The hexadecimal number is an offset from the base of the module, or from the function. It is the
// offset of an instruction in a thread's first frame, and of a return address in other frames. The
// list of modules has the first 16 bytes of their build IDs, as the fields of a GUID.
var breakpad = Dialect{
	Name: "breakpad", Who: "Breakpad's minidump_stackwalk, rust-minidump",
	Needs:  "the list of modules after the frames, and a .build-id folder; or --image",
	Sample: " 1  libledger.so + 0x1154",
}

// breakpadLines bounds the lines between the reason of the crash and the list of modules. A frame
// has up to ten lines, and a thread hundreds of frames.
const breakpadLines = maxWindow

func matchBreakpad(r *Reader, l *Line, at int) bool {
	b := l.Text
	offset, end, ok := prefixedHex(b, at)
	const plus = " + "
	if !ok || !onlyBlanks(b, end) || !endsWith(b, at, plus) {
		return false
	}
	digits := blanksAfter(b, 0) // after a log prefix, such as a time
	to := at - len(plus)
	number, from, ok := 0, digits, false
	for !ok && digits < to {
		if number, from, ok = decimalAt(b, digits); ok && hasAt(b, from, "  ") && from+2 < to && b[from+2] != ' ' {
			break
		}
		ok = false
		blank := bytes.IndexByte(b[digits:to], ' ')
		if blank < 0 {
			return false
		}
		digits = blanksAfter(b, digits+blank)
	}
	if !ok {
		return false
	}
	module := b[from+2 : to]
	f := l.frame()
	f.Number, f.Start = number, digits
	f.Kind, f.Value, f.Call = BaseOffset, offset, Return
	if number == 0 {
		f.Call = Exact
	}
	place := Span{to, end}
	if name, function, ok := bytes.Cut(module, []byte("!")); ok {
		module = name
		f.Kind, f.Symbol = InSymbol, Symbol{Name: string(function), Offset: int64(offset)}
	} else {
		l.edit(f, Edit{place, "!", Spaced, ""})
		place.From = place.To
	}
	if len(module) == 0 || len(module) > maxPath {
		return false
	}
	f.Module = r.modules.name(module)
	l.edit(f, Edit{place, " [", AtSpaced, "]"})
	return true
}

// breakpadModule reads a module from a line of Breakpad's list with "WARNING: No symbols, " at the
// given offset. A module with symbols has neither the warning nor the ID.
func breakpadModule(r *Reader, b []byte, at int) {
	rest := b[at+len("WARNING: No symbols, "):]
	comma := bytes.LastIndexByte(rest, ',')
	if comma <= 0 || comma > maxPath {
		return
	}
	digits := bytes.TrimLeft(rest[comma+1:], " ")
	prefix, ok := debugID(digits[:hexDigits(digits, 0)])
	if !ok {
		return
	}
	r.facts.AddModule(ModuleFact{Name: string(rest[:comma]), Prefix: prefix, Main: bytes.Contains(b[:at], []byte("  (main)"))})
}

// debugID returns the first 16 bytes of the build ID from an identifier of Breakpad. The identifier
// is a GUID, whose first three fields have their bytes reversed, and an age.
func debugID(digits []byte) (id buildid.ID, ok bool) {
	if len(digits) <= 32 {
		return id, false
	}
	raw := make([]byte, 16)
	if _, err := hex.Decode(raw, digits[:32]); err != nil {
		return id, false
	}
	slices.Reverse(raw[:4])
	slices.Reverse(raw[4:6])
	slices.Reverse(raw[6:8])
	id, err := buildid.FromBytes(raw)
	return id, err == nil
}
