package faults

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/findings"
)

// runtimeError parses a line of UBSan. The line names the source file and line, so no frame is
// needed.
//
//	/src/shop.c:7:3: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type 'int'
func runtimeError(text []byte) (h reportHeader, ok bool) {
	line := string(text)
	const mark = ": runtime error: "
	i := strings.Index(line, mark)
	if i < 0 {
		return h, false
	}
	place, number, column, ok := backtrace.SourceAt(line[:i])
	if !ok && !strings.HasSuffix(place, "<unknown>") {
		return h, false // such as the panics of Go
	}
	h = reportHeader{mode: ofRuntimeError, tool: "ubsan", line: number, column: column}
	h.message = withoutAddresses(line[i+len(mark):])
	h.kind = runtimeKind(h.message)
	if ok {
		h.file = place
		if at := strings.LastIndexAny(place, " \t|"); at >= 0 { // after the name of a container, or a time
			h.file, h.at = place[at+1:], at+1
			if slash := strings.LastIndex(place, " /"); slash >= 0 { // a folder with a blank
				h.file, h.at = place[slash+1:], slash+1
			}
		}
	}
	return h, true
}

// runtimeKinds are the kinds of UBSan's errors, by a part of their messages. The first match wins.
// The names are from LLVM's ubsan_checks.inc: UBSan prints them in summaries with
// report_error_type=1.
var runtimeKinds = []struct{ part, kind string }{
	{"unsigned integer overflow", "unsigned-integer-overflow"},
	{"signed integer overflow", "signed-integer-overflow"},
	{"negation of ", "signed-integer-overflow"},
	{"division of ", "signed-integer-overflow"},
	{"division by zero", "integer-divide-by-zero"},
	{"shift exponent ", "invalid-shift-exponent"},
	{"left shift of ", "invalid-shift-base"},
	{"out of bounds", "out-of-bounds-index"},
	{"access out of bounds", "local-out-of-bounds"},
	{"nullability", "null-pointer-use-with-nullability"},
	{"null pointer returned", "invalid-null-return"},
	{"null pointer passed", "invalid-null-argument"},
	{"offset to null pointer", "nullptr-with-offset"},
	{"produced null pointer", "nullptr-after-nonzero-offset"},
	{"pointer index expression", "pointer-overflow"},
	{" offset to ", "pointer-overflow"},
	{" offset from ", "pointer-overflow"},
	{"null pointer", "null-pointer-use"},
	{"assumption of", "alignment-assumption"},
	{"misaligned address", "misaligned-pointer-use"},
	{"insufficient space", "insufficient-object-size"},
	{"does not point to an object", "dynamic-type-mismatch"},
	{"end of a value-returning function", "missing-return"},
	{"unreachable program point", "unreachable-call"},
	{"variable length array bound", "non-positive-vla-index"},
	{"not a valid value for type 'bool'", "invalid-bool-load"},
	{"not a valid value for type", "invalid-enum-load"},
	{"outside the range of representable values", "float-cast-overflow"},
	{"implicit conversion", "implicit-conversion"},
	{"incorrect function type", "function-type-mismatch"},
	{"control flow integrity", "cfi-bad-type"},
	{"passing zero to", "invalid-builtin-use"},
}

// runtimeKind returns the kind of a runtime error.
func runtimeKind(message string) string {
	for i := range runtimeKinds {
		if k := &runtimeKinds[i]; strings.Contains(message, k.part) {
			return k.kind
		}
	}
	return "undefined-behavior"
}

// minimalError returns the error that a line of UBSan's minimal runtime reports:
//
//	ubsan: mul-overflow by 0x000055deef130c9d
func minimalError(line []byte) (x findings.Finding, ok bool) {
	_, rest, ok := bytes.Cut(line, []byte("ubsan: "))
	kind, _, by := bytes.Cut(rest, []byte(" by 0x"))
	if !ok || !by || len(kind) == 0 || bytes.IndexByte(kind, ' ') >= 0 {
		return x, false
	}
	return findings.Finding{Tool: "ubsan", Kind: string(kind), Message: string(kind)}, true
}
