package dialect

import "bytes"

// allGrammars returns the grammars of all dialects. Of those that may match at the same anchor the
// first that matches counts, so specific ones come before general ones.
func allGrammars() []grammar {
	return []grammar{
		{dialect: &android, anchor: anchorPC, direct: "0 ", back: "0", match: matchAndroid},
		{dialect: &cpptrace, direct: " ", back: "0", window: windowCpptrace, match: matchCpptrace},
		{dialect: &llvm, direct: " ", back: "0", match: matchLLVM},
		{dialect: &llvm, direct: " ", back: "0", window: windowLLVM, match: matchLLVMNamed},
		{dialect: &llvm, direct: " ", window: windowLLVM, match: matchLLVMPlain},
		{dialect: &chromium, direct: " ", back: "0", match: matchChromium},
		{dialect: &chromium, direct: " ", back: "0", match: matchChromiumUnknown},
		{dialect: &node, direct: " ", back: ":", match: matchNode},
		{dialect: &firefox, direct: "+", back: "+", match: matchFirefox},
		{dialect: &firefox, direct: " ", back: "+", match: matchFirefox},
		{dialect: &sanitizer, direct: " ", back: "0", match: matchSanitizer},
		{dialect: &own, direct: " ", back: "0", match: matchOwn},
		{dialect: &own, direct: " ", back: "0", match: matchOwnSentence},
		{dialect: &coredump, direct: " ", back: "0", match: matchCoredump},
		{dialect: &gdb, direct: " ", back: "0", match: matchGDB},
		{dialect: &sanitizer, direct: " ", back: "0", match: matchNamed},
		{dialect: &tsan, direct: "+", match: matchTSan},
		{dialect: &sanitizer, direct: "+", match: matchSummary},
		{dialect: &valgrind, direct: " ", back: "ty", match: matchValgrind},
		{dialect: &absl, direct: " ", back: "@", match: matchAbsl},
		{dialect: &glog, direct: " ", back: "@", match: matchGlog},
		{dialect: &folly, anchor: anchorAt, direct: " ", match: matchFolly},
		{dialect: &envoy, direct: "[", back: "[", window: windowEnvoy, match: matchEnvoy},
		{dialect: &stdTrace, direct: "[", match: matchStdTrace},
		{dialect: &boost, direct: " ", back: "#", match: matchBoost},
		{dialect: &backward, direct: " ", back: "t", match: matchBackward},
		{dialect: &pytorch, direct: "(", match: matchPyTorch},
		{dialect: &rust, direct: " ", back: ":", match: matchRust},
		{dialect: &seastar, direct: " +", back: ":+", match: matchSeastarList},
		{dialect: &seastar, direct: " +\n", window: windowSeastar, match: matchSeastarLine},
		{dialect: &python, direct: "[", match: matchPython},
		{dialect: &glibc, direct: "[", match: matchMtrace},
		{dialect: &gdb, direct: " \t\n", back: "\n", match: gdbMap},
		{dialect: &gdb, direct: " \t\n", back: "\n", match: gdbLibrary},
		{dialect: &euStack, direct: "@", match: matchEuStack},
		{dialect: &euStack, direct: " \t\n", match: unstripModule},
		{dialect: &perf, anchor: anchorWn, match: matchPerfUnknown},
		{dialect: &perf, direct: "+", match: matchPerfNamed},
		{dialect: &perf, direct: "[", match: matchPerfMap},
		{dialect: &strace, direct: "[", match: matchStrace},
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
		{text: "Stack dump", opens: windowLLVM},
		{text: "Program arguments: ", fact: programArguments},
		{text: "*** Error in `", holds: true},
		{text: "== Using Valgrind-", holds: true},
		{text: "======= Backtrace: =========", holds: true},
		{text: "A fatal error has been detected by the Java Runtime", opens: windowJVM | windowTrace, lasts: jvmLines, holds: true},
		{text: "Native frames: (J=", opens: windowJVM, fact: nativeFrames},
		{text: "======= Memory map: ========", opens: windowTrace},
		{text: "Register dump:", holds: true, fact: dumpsRegisters},
		{text: "Backtrace:", fact: beginsBacktrace, opens: windowSeastar},
		{text: "Backtrace (use tools/stack_decode.py", opens: windowEnvoy},
		{text: "Address mapping: ", fact: envoyMapping},
		{text: "Stack trace (most recent call first):", opens: windowCpptrace},
		{text: "EIP:", fact: announcesFault},
		{text: "Module: ", fact: redisModule},
		{text: "build id: ", fact: clickhouseBuild},
		{text: "build-id", fact: coredumpModule},
		{text: "COREDUMP_EXE=", fact: coredumpProgram},
		{text: "Executable: /", fact: coredumpProgram},
		{text: "COREDUMP_PACKAGE_JSON=", fact: func(r *Reader, b []byte, at int) { r.facts.AddPackages(b[at+len("COREDUMP_PACKAGE_JSON="):]) }},
		{text: "<signal handler called>", fact: gdbHandler},
		gdbProgram("Reading symbols from "),
		gdbProgram("Core was generated by `"),
	}
}

// All returns all dialects, in the order in which they are documented.
func All() []*Dialect {
	return []*Dialect{
		&sanitizer, &tsan, &own,
		&android,
		&coredump,
		&glibc, &python,
		&gdb, &euStack,
		&clickhouse, &mongodb,
		&death, &jvm,
		&llvm,
		&chromium, &node, &firefox,
		&valgrind,
		&perf, &strace,
		&glog, &absl, &folly, &envoy,
		&pytorch, &seastar, &rust,
		&boost, &stdTrace, &backward, &cpptrace,
	}
}

var _ = bytes.Index
