package dialect

import "bytes"

// allGrammars returns the grammars of all dialects. Of those that may match at the same anchor the
// first that matches counts, so specific ones come before general ones.
func allGrammars() []grammar {
	return []grammar{
		{dialect: &sanitizer, direct: " ", back: "0", match: matchSanitizer},
		{dialect: &tsan, direct: "+", match: matchTSan},
		{dialect: &sanitizer, direct: "+", match: matchSummary},
		{dialect: &glibc, direct: "[", match: matchGlibc},
	}
}

// allHeaders returns the headers of all dialects.
func allHeaders() []header {
	return []header{
		{text: "-xp ", fact: func(r *Reader, b []byte, _ int) { r.mapLine(b) }},
		{text: "*** Error in `", holds: true},
		{text: "======= Backtrace: =========", holds: true},
		{text: "======= Memory map: ========", opens: windowTrace},
	}
}

// All returns all dialects, in the order in which they are documented.
func All() []*Dialect {
	return []*Dialect{&sanitizer, &tsan, &glibc}
}

var _ = bytes.Index
