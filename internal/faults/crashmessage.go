package faults

import (
	"bytes"
	"math/bits"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/internal/findings"
)

// crashes are texts in crash messages of programs and kernels, with their kinds. A backtrace
// after such a line is the backtrace of a crash.
var crashes = []struct{ part, kind string }{
	{"panicked at ", "panic"},       // Rust
	{"panic: ", "panic"},            // Go, FreeBSD
	{"fatal error: ", "fatal"},      // Go
	{"Assertion ", "assertion"},     // glibc, musl, bionic, LLVM
	{"assertion ", "assertion"},     // BSD
	{"Check failed: ", "assertion"}, // glog, Chromium
	{"CHECK failed", "assertion"},   // Abseil
	{"Check failure ", "assertion"},
	{"*** stack smashing detected ***", "stack-smashing"}, // glibc
	{"*** buffer overflow detected ***", "buffer-overflow"},
	{"double free or corruption", "heap-corruption"},
	{"corrupted ", "heap-corruption"},
	{"free(): ", "heap-corruption"},
	{"malloc(): ", "heap-corruption"},
	{"realloc(): ", "heap-corruption"},
	{"munmap_chunk(): ", "heap-corruption"},
	{"terminate called", "terminate"},    // libstdc++
	{"terminating due to ", "terminate"}, // libc++
	{"terminating with ", "terminate"},
	{"BUG: KASAN: ", "KASAN"},
	{"BUG: KMSAN: ", "KMSAN"},
	{"BUG: KCSAN: ", "KCSAN"},
	{"BUG: KFENCE: ", "KFENCE"},
	{"UBSAN: ", "UBSAN"},
	{"kernel BUG at ", "BUG"},
	{"BUG: ", "BUG"},
	{"Oops", "oops"},
	{"general protection fault", "general-protection-fault"},
	{"Unable to handle kernel ", "oops"},
	{"Kernel panic ", "panic"},
	{"WARNING: CPU: ", "WARNING"},
	{"WARNING: possible ", "WARNING"}, // lockdep
	{"WARNING: suspicious ", "WARNING"},
	{"WARNING: inconsistent ", "WARNING"},
	{"Segmentation fault", "SIGSEGV"},
	{"Segmentation violation", "SIGSEGV"},
	{"SIGSEGV", "SIGSEGV"},
	{"SIGABRT", "SIGABRT"},
	{"SIGBUS", "SIGBUS"},
	{"SIGFPE", "SIGFPE"},
	{"SIGILL", "SIGILL"},
	{"SIGTRAP", "SIGTRAP"},
	{"SIGSYS", "SIGSYS"},
	{"signal 11", "SIGSEGV"}, // with Linux's numbers, since most logs are written there
	{"signal 6", "SIGABRT"},
	{"signal 7", "SIGBUS"},
	{"signal 8", "SIGFPE"},
	{"signal 4", "SIGILL"},
	{"SEGV_", "SIGSEGV"},
	{"Access violation", "access-violation"},
	{"EXCEPTION_ACCESS_VIOLATION", "access-violation"},
	{"Guru Meditation Error", "panic"}, // ESP-IDF
	{"Aborted at ", "SIGABRT"},         // glog
	{"Aborting on shard ", "SIGABRT"},  // Seastar
	{"GWP-ASan detected", "gwp-asan"},
	{"Stack dump:", "crash"}, // LLVM's programs
	{"PLEASE submit a bug report", "crash"},
	{"PLEASE ATTACH", "crash"},
}

// crashParts has the texts of crashes, with the same indexes.
var crashParts = sync.OnceValue(func() *phrases {
	var texts []string
	for i := range crashes {
		texts = append(texts, crashes[i].part)
	}
	return newPhrases(texts)
})

// Bounds of a crash's message.
const (
	maxMessageLength = 200 // bytes
	// lines between the message and the backtrace: Android prints the registers
	maxMessageLines = 24
)

// crashIn returns the crash of the first crash message in lines, which precede a backtrace. It
// reads only the last 1+maxMessageLines of them.
func crashIn(lines []byte) (x findings.Finding, ok bool) {
	for n := bytes.Count(lines, newline); n > 1+maxMessageLines; n-- {
		lines = lines[bytes.IndexByte(lines, '\n')+1:]
	}
	parts := crashParts()
	for at, set := parts.next(lines, 0); set != 0; at, set = parts.next(lines, at+1) {
		if at == 0 || !isLetter(lines[at-1]) {
			line, rest, _ := bytes.Cut(lines[at:], newline)
			next, _, _ := bytes.Cut(rest, newline)
			return crash(crashes[bits.TrailingZeros64(set)].kind, string(line), string(next)), true
		}
	}
	return x, false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// crash returns the crash of a kind. text is the rest of the line with the message, and next
// the line after that.
func crash(kind, text, next string) findings.Finding {
	x := findings.Finding{Tool: "crash", Kind: kind}
	switch {
	case strings.HasPrefix(kind, "SIG"):
		x.Message = kind
		return x
	case strings.HasPrefix(text, "BUG: K"), kind == "UBSAN": // the kernel's sanitizers
		x.Tool = strings.ToLower(kind)
		_, text, _ = strings.Cut(strings.TrimPrefix(text, "BUG: "), ": ")
		text, _, _ = strings.Cut(text, " in ")
		x.Kind = kindWord(text)
		x.Memory = memoryOfKind(x.Kind)
	case kind == "WARNING":
		if _, at, ok := strings.Cut(text, " at "); ok && strings.HasPrefix(text, "WARNING: CPU: ") {
			place, _, _ := strings.Cut(at, " ")
			text = "WARNING: at " + place
		}
	case kind == "oops", kind == "BUG", kind == "general-protection-fault":
		for _, mark := range []string{" for address", ", address", " at virtual address", " for non-canonical", ", probably for"} {
			if i := strings.Index(text, mark); i > 0 {
				text = text[:i]
			}
		}
	case kind == "panic" && strings.HasSuffix(text, ":") && !strings.HasPrefix(next, "stack backtrace"):
		text += " " + strings.TrimSpace(next)
	}
	if i := strings.Index(text, "+0x"); i > 0 {
		text = text[:i]
	}
	text = strings.TrimRight(strings.TrimSpace(withoutAddresses(text)), " *:")
	x.Message = strings.ToValidUTF8(text[:min(len(text), maxMessageLength)], "\uFFFD")
	return x
}
