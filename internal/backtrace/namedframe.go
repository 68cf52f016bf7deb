package backtrace

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/findings"
)

// isNamedIn reports whether the answer a has no frames, but its logged line may name the function.
func isNamedIn(a *filter.Resolved, line []byte) bool {
	if len(a.Frames) > 0 {
		return false
	}
	switch a.Dialect {
	case "sanitizer":
		return bytes.Contains(line, []byte(" in "))
	case "gdb":
		return !bytes.Contains(line, []byte(" in ?? ("))
	case "kernel":
		return true
	case "tsan":
		return !bytes.Contains(line, []byte("<null> <null>"))
	}
	return false
}

// kernelFunction returns the function in a kernel's frame, such as vfs_write+0xc7/0x3f0, or "".
func kernelFunction(line []byte) string {
	at := bytes.Index(line, []byte("+0x"))
	if at < 0 {
		return ""
	}
	return string(line[bytes.LastIndexAny(line[:at], " ([<:")+1 : at])
}

// namedFrame returns a frame that the producer has named, in one of these forms:
//
//	#1 0x7f31c2a01153 in main /src/main.cc:7:3
//	#1 0x7f31c2a01153 in main (/opt/shop/inventory+0x1153) (BuildId: 3a0a920c3f1b7c55)
//	#1 main /src/main.cc:7:3 (inventory+0x1153) (BuildId: 3a0a920c3f1b7c55)
//	#1 main <null> (inventory+0x1153)
func namedFrame(text []byte) (fr findings.TraceFrame, ok bool) {
	line := strings.TrimRight(string(text), " \t")
	hash := strings.LastIndex(line, " #")
	if strings.HasPrefix(line, "#") {
		hash = -1
	} else if hash < 0 {
		return fr, false
	}
	rest := strings.TrimLeft(line[hash+2:], "0123456789")
	rest = strings.TrimLeft(rest, " ")
	inAddress := strings.HasPrefix(rest, "0x")
	if inAddress {
		address, after, _ := strings.Cut(rest, " ")
		fr.Address, _ = strconv.ParseUint(address[2:], 16, 64)
		rest, ok = strings.CutPrefix(strings.TrimLeft(after, " "), "in ")
		if !ok {
			return fr, false
		}
	}
	if i := strings.LastIndex(rest, " (BuildId: "); i > 0 {
		rest = rest[:i]
	}
	if i := strings.LastIndex(rest, "+0x"); i > 0 && strings.HasSuffix(rest, ")") {
		open := strings.LastIndex(rest[:i], " (/")
		if open < 0 {
			open = strings.LastIndex(rest[:i], " (")
		}
		if open >= 0 {
			fr.Object = rest[open+2 : i]
			fr.Offset, _ = strconv.ParseUint(rest[i+3:len(rest)-1], 16, 64)
			rest = rest[:open]
		}
	}
	rest = strings.TrimSuffix(rest, " <null>")
	if file, line, column, ok := SourceAt(rest); ok {
		from := strings.LastIndex(file, " /")
		if from < 0 {
			from = strings.LastIndexByte(file, ' ')
		}
		if from >= 0 {
			rest = strings.TrimSuffix(file[:from], " at")
			fr.File, fr.Line, fr.Column, fr.HasLine = file[from+1:], line, column, true
		}
	}
	if rest != "<null>" {
		fr.Func = rest
	}
	return fr, fr.Func != "" || fr.HasLine || fr.Object != ""
}
