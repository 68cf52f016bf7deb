package backtrace

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

const gdbDialect = "gdb"

// signalHandler is the text that gdb prints for the frame to which a signal handler returns.
const signalHandler = "<signal handler called>"

// gdbNumber returns the number of a frame of gdb, and the text after it:
//
//	#1  0x00007ffff7aa8f4f in __pthread_kill_internal (signo=6, threadid=<optimized out>) at ./nptl/pthread_kill.c:78
func gdbNumber(text []byte) (number uint64, rest []byte, ok bool) {
	const maxDigits = 7
	if len(text) == 0 || text[0] != '#' {
		return 0, nil, false
	}
	n := 1
	for n < len(text) && n <= maxDigits && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	number, err := strconv.ParseUint(string(text[1:n]), 10, 32)
	rest = bytes.TrimLeft(text[n:], " ")
	blanks := len(text) - n - len(rest)
	return number, rest, err == nil && len(rest) > 0 && (blanks == 2 || blanks == 1 && number >= 10)
}

// gdbFrame parses a frame of gdb that has a name. gdb may have wrapped it after an argument:
//
//	#0  total (items=0x0, n=3) at shop.cc:29
//	#6  0x00007ffff7ca8e85 in std::terminate() () from /lib/x86_64-linux-gnu/libstdc++.so.6
//	#7  <signal handler called>
//	#8  0x0000555555555469 in apply(std::function<void (int)>, int) (f=...,
func gdbFrame(text []byte) (fr findings.TraceFrame, ok bool) {
	_, line, ok := gdbNumber(bytes.TrimRight(text, " \t\r"))
	if !ok {
		return fr, false
	}
	rest := string(line)
	if rest == signalHandler {
		fr.Func = signalHandler
		return fr, true
	}
	if hex, ok := strings.CutPrefix(rest, "0x"); ok {
		address, after, ok := strings.Cut(hex, " in ")
		if fr.Address, ok = hexNumber(address, ok); !ok {
			return fr, false
		}
		rest = after
	}
	if i := strings.LastIndex(rest, ") from /"); i >= 0 {
		fr.Object = rest[i+len(") from "):]
		rest = rest[:i+1]
	} else if i := strings.LastIndex(rest, ") at "); i >= 0 {
		if file, line, column, ok := SourceAt(rest[i+len(") at "):]); ok {
			fr.File, fr.Line, fr.Column, fr.HasLine = file, line, column, true
			rest = rest[:i+1]
		}
	}
	open := argumentsIn(rest)
	if open <= 0 || rest[:open] == "??" {
		return fr, false
	}
	fr.Func = rest[:open]
	return fr, true
}

func hexNumber(s string, ok bool) (n uint64, isHex bool) {
	n, err := strconv.ParseUint(s, 16, 64)
	return n, ok && err == nil
}

// argumentsIn returns the offset of the blank before the arguments at the end of a frame, or -1 if
// the frame has no arguments. Values of arguments may have brackets that do not match, and the last
// argument may be on the next line.
func argumentsIn(frame string) int {
	switch {
	case strings.HasSuffix(frame, ")"):
		depth := 0
		for i := len(frame) - 1; i > 0; i-- {
			switch frame[i] {
			case ')':
				depth++
			case '(':
				if depth--; depth == 0 {
					if frame[i-1] == ' ' {
						return i - 1
					}
					return -1
				}
			}
		}
	case !strings.HasSuffix(frame, ","):
		return -1
	}
	return strings.Index(frame, " (")
}

// NextNamed returns the offset of the first line that may begin a stack of gdb, or len(lines).
func NextNamed(lines []byte) int {
	const first = "#0  "
	for at := 0; at < len(lines); {
		i := bytes.Index(lines[at:], []byte(first))
		if i < 0 {
			break
		}
		if at += i; at == 0 || lines[at-1] == '\n' {
			return at
		}
		at += len(first)
	}
	return len(lines)
}
