package dialect

import (
	"bytes"
	"path"
	"strings"
)

// Memcheck, Helgrind and DRD print frames in this form in Valgrind's text reports. Valgrind also
// prints them for signals.
//
//	==4711==    at 0x1091DD: ??? (in /opt/shop/inventory)
//	==4711==    by 0x485313D: ledger::Book::close(int (*)(int), int) (in /opt/shop/libledger.so)
//
// The addresses are in the process, and the report does not show where Valgrind has loaded the
// files. Valgrind subtracts one from each address except the first in a stack, even if a signal has
// interrupted the function there.
var valgrind = Dialect{
	Name: "valgrind", Who: "Valgrind's reports as text",
	Needs:  "the file at the path, and enough frames to show where it was loaded",
	Sample: "==4711==    by 0x485311A: ??? (in /opt/shop/libledger.so)",
}

// The addresses at which Valgrind usually loads a position-independent program and the dynamic
// linker (coregrind/m_ume/elf.c). Libraries follow the dynamic linker.
const (
	valgrindMain   = 0x108000
	valgrindLinker = 0x4000000
)

func matchValgrind(r *Reader, l *Line, at int) bool {
	b := l.Text
	word := at - len("at ")
	first := hasAt(b, word, "at ")
	if !first && !hasAt(b, word, "by ") {
		return false
	}
	process, start, ok := valgrindProcess(b, word)
	if !ok {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, ": ") {
		return false
	}
	name := Span{From: end + 2}
	to := len(bytes.TrimRight(b, " \t\r"))
	in := bytes.LastIndex(b[:to], []byte(" (in /"))
	if in < name.From || b[to-1] != ')' {
		return false
	}
	name.To = in
	f := l.frame()
	f.Module = r.modules.name(b[in+len(" (in ") : to-1])
	f.Process = process
	f.Start = start
	f.Inline = InlineFrames
	f.Call, f.Addr = Exact, addr
	if first {
		f.Number = 0
		f.First, f.Later = Span{word, word + 2}, "by"
	} else {
		f.Call, f.Addr, f.Less = Return, addr+1, 1
	}
	f.Kind, f.Value = Runtime, f.Addr
	switch {
	case addr < valgrindLinker:
		f.Usual = valgrindMain
	case isLinker(f.Module):
		f.Usual = valgrindLinker
	}
	switch fn := string(b[name.From:name.To]); fn {
	case "???":
		l.edit(f, Edit{name, "", Func, ""})
	case "(below main)": // means any function that calls main
	default:
		f.Symbol = valgrindSymbol(fn, first)
		l.edit(f, Edit{name, "", FuncAt, ""})
	}
	l.edit(f, Edit{Span{in + len(" ("), to - 1}, "", AtBase, ""})
	return true
}

// valgrindSymbol returns the symbol in fn, which ends with +OFFSET if Valgrind runs with
// --sym-offsets.
func valgrindSymbol(fn string, first bool) Symbol {
	if i := strings.LastIndexByte(fn, '+'); i > 0 {
		if n, end, ok := decimalAt([]byte(fn), i+1); ok && end == len(fn) {
			if !first {
				n++ // the address was decreased by one, the offset was not
			}
			return Symbol{Name: fn[:i], Offset: int64(n)}
		}
	}
	return Symbol{Name: fn, Inside: true}
}

// valgrindProcess parses the text before the word "at" or "by": ==PID== and blanks, with a time
// before the PID if --time-stamp is set. It returns the PID, and the offset of the word as the
// start of the frame.
func valgrindProcess(b []byte, word int) (process uint64, start int, ok bool) {
	end := blanksBefore(b, word)
	if word-end < 3 || end < 5 || b[end-1] != b[end-2] || !strings.ContainsRune("=*-", rune(b[end-1])) {
		return 0, 0, false
	}
	mark := b[end-2 : end]
	n, from, ok := decimalBefore(b, end-2)
	if !ok {
		return 0, 0, false
	}
	start = bytes.LastIndex(b[:from], mark)
	return uint64(n), word, start >= 0 && from-start <= len("==00:00:00:00.000 ")+len(mark)
}

func isLinker(file string) bool {
	b := path.Base(file)
	return strings.HasPrefix(b, "ld-") || strings.HasPrefix(b, "ld.so") || strings.HasPrefix(b, "ld64")
}
