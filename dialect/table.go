package dialect

import "bytes"

// allGrammars returns the grammars of all dialects. Of those that may match at the same anchor the
// first that matches counts, so specific ones come before general ones.
func allGrammars() []grammar {
	return []grammar{
		{dialect: &android, anchor: anchorPC, direct: "0 ", back: "0", match: matchAndroid},
		{dialect: &sanitizer, direct: " ", back: "0", match: matchSanitizer},
		{dialect: &own, direct: " ", back: "0", match: matchOwn},
		{dialect: &own, direct: " ", back: "0", match: matchOwnSentence},
		{dialect: &sanitizer, direct: " ", back: "0", match: matchNamed},
		{dialect: &tsan, direct: "+", match: matchTSan},
		{dialect: &sanitizer, direct: "+", match: matchSummary},
		{dialect: &valgrind, direct: " ", back: "ty", match: matchValgrind},
		{dialect: &python, direct: "[", match: matchPython},
		{dialect: &glibc, direct: "[", match: matchMtrace},
		{dialect: &glibc, direct: "[", match: matchGlibc},
		{dialect: &glibc, match: matchExecinfo},
		{dialect: &clickhouse, direct: " ", back: "@", match: matchClickHouse},
		{dialect: &mongodb, anchor: anchorOffset, match: matchMongo},
		{dialect: &death, anchor: anchorIP, direct: " n", match: matchDeath},
		{dialect: &jvm, direct: "+", match: matchJVM},
		{dialect: &jvm, direct: "+", match: matchOpenJ9},
		{dialect: &jvm, direct: " ", back: "C", window: windowJVM, match: matchJVMAddress},
		{dialect: &death, direct: " ", back: "etrR", match: matchUnhandled},
	}
}

// allHeaders returns the headers of all dialects.
func allHeaders() []header {
	return []header{
		{text: "-xp ", fact: func(r *Reader, b []byte, _ int) { r.mapLine(b) }},
		{text: "ode: ", fact: codeLine},
		{text: "pc : ", fact: counterLine},
		{text: "*** Error in `", holds: true},
		{text: "== Using Valgrind-", holds: true},
		{text: "======= Backtrace: =========", holds: true},
		{text: "A fatal error has been detected by the Java Runtime", opens: windowJVM | windowTrace, lasts: jvmLines, holds: true},
		{text: "Native frames: (J=", opens: windowJVM, fact: nativeFrames},
		{text: "======= Memory map: ========", opens: windowTrace},
		{text: "Register dump:", holds: true, fact: dumpsRegisters},
		{text: "Backtrace:", fact: beginsBacktrace},
		{text: "EIP:", fact: announcesFault},
		{text: "Module: ", fact: redisModule},
		{text: "build id: ", fact: clickhouseBuild},
	}
}

// All returns all dialects, in the order in which they are documented.
func All() []*Dialect {
	return []*Dialect{
		&sanitizer, &tsan, &own,
		&android,
		&glibc, &python,
		&clickhouse, &mongodb,
		&death, &jvm,
		&valgrind,
	}
}

var _ = bytes.Index
