package dialect

import "bytes"

// The frames of Android's crash dumps. debuggerd prints them in tombstones and in the log, and ART
// prints them for running threads. Reports by Google Play and Firebase have them, too:
//
//	#01 pc 0000000000001153  /data/app/shop/lib/arm64/libledger.so (ledger_audit+35) (BuildId: 3a0a920c…)
//	native: #00 pc 00000000000a1b2c  /apex/com.android.runtime/lib64/bionic/libc.so (syscall+28)
//	#02 pc 0x1153 libledger.so (BuildId: 3a0a920c3f1b7c55)
//
// The number after pc is the address of a byte in the call instruction. From Android 11 on it is an
// address in the ELF file; older versions print an offset: see Offsetted.
var android = Dialect{
	Name: "android", Who: "Android: tombstones, logcat, ART, Google Play, Firebase",
	Needs:  "the build ID in the frame (since Android 10), or --image",
	Sample: "      #01 pc 0000000000001153  /data/app/shop/lib/arm64/libledger.so (BuildId: 3a0a920c3f1b7c55)",
}

// matchAndroid matches a frame whose " pc" is at the given offset.
func matchAndroid(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, from, ok := decimalBefore(b, blanksBefore(b, at))
	if !ok || from < 1 || b[from-1] != '#' || !standsFree(b, from-1) {
		return false
	}
	digits := at + len(" pc")
	if !hasAt(b, digits, " ") {
		return false
	}
	if digits = blanksAfter(b, digits); hasAt(b, digits, "0x") {
		digits += len("0x")
	}
	pc, path, ok := hexAt(b, digits)
	if !ok || !hasAt(b, path, " ") {
		return false
	}
	path = blanksAfter(b, path)
	end := len(bytes.TrimRight(b, " \t\r"))
	if path >= end {
		return false
	}
	f := l.frame()
	place := end // offset at which the answer's function is inserted
	const mark = " (BuildId: "
	if i := bytes.LastIndex(b[path:end], []byte(mark)); i >= 0 {
		to := 0
		if f.ID, to, ok = r.modules.idAfter(b, path+i); !ok || to != end {
			return false
		}
		place = path + i
	}
	to := place
	named := false
	if open := functionBefore(b[path:to]); open >= 0 {
		f.Symbol, named = decimalSymbol(b[path+open+1:to-1]), true
		to = path + open - 1
	}
	name, inFile := libraryName(b[path:to])
	if !inFile && f.ID.IsZero() || len(name) == 0 || len(name) > maxPath {
		return false
	}
	f.Number, f.Start = number, from-1
	f.Module, f.Kind, f.Value, f.Call = r.modules.name(name), Offsetted, pc, Adjusted
	if !named {
		l.edit(f, Edit{Span{place, place}, " (", Decimal, ")"})
	} else {
		l.edit(f, Edit{Span{end, end}, " ", Inlined, ""})
	}
	l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
	return true
}

// functionBefore returns the offset of the "(" of the function at the end of b, the text between pc
// and the build ID: "(f(int)+35)". It returns -1 without a function.
func functionBefore(b []byte) (open int) {
	if !bytes.HasSuffix(b, []byte(")")) || bytes.HasSuffix(b, []byte("(deleted)")) {
		return -1
	}
	for i, depth := len(b)-1, 0; i > 0; i-- {
		switch b[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth > 0 {
				continue
			}
			if b[i-1] != ' ' || hasAt(b, i, "(offset 0x") {
				return -1
			}
			return i
		}
	}
	return -1
}

// decimalSymbol parses NAME+DECIMAL, or just NAME, which means NAME+0.
func decimalSymbol(b []byte) (s Symbol) {
	name := b
	if n, from, ok := decimalBefore(b, len(b)); ok && from > 1 && b[from-1] == '+' {
		name, s.Offset = b[:from-1], int64(n)
	}
	s.Name = string(name)
	return s
}

// libraryName returns the name of the library in b, a path of Android, perhaps in an archive:
// "/data/app/base.apk!libx.so", "/data/app/base.apk (offset 0x2a000)". ok is false if b names no
// library. name is then nil for Java code and for code outside of files.
func libraryName(b []byte) (name []byte, ok bool) {
	if len(b) == 0 || b[0] == '<' || b[0] == '[' || b[0] == '(' {
		return nil, false
	}
	if i := bytes.LastIndex(b, []byte(" (offset 0x")); i > 0 && b[len(b)-1] == ')' {
		b = b[:i]
	}
	plain := bytes.TrimSuffix(b, []byte(" (deleted)"))
	if i := bytes.LastIndexByte(plain, '!'); i >= 0 && i+1 < len(plain) {
		return plain[i+1:], true
	}
	for _, java := range []string{".oat", ".odex", ".jar", ".vdex", ".dex", ".art"} {
		if bytes.HasSuffix(plain, []byte(java)) {
			return nil, false
		}
	}
	if bytes.HasPrefix(b, []byte("/memfd:")) || bytes.HasPrefix(b, []byte("/dev/")) {
		return nil, false // the cache of the just-in-time compiler
	}
	// text with a blank is more likely a sentence, or an answer after the frame, than a path
	if bytes.IndexByte(plain, ' ') >= 0 {
		return b, false
	}
	return b, bytes.Contains(plain, []byte(".so")) || plain[0] == '/' && !bytes.HasSuffix(plain, []byte(".apk"))
}
