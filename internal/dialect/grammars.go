package dialect

// allGrammars returns the grammars of all dialects. At an anchor the first grammar that matches
// wins, so specific ones come before general ones.
func allGrammars() []grammar {
	const blank = " \t\r\n" // or the end of the line
	const hex = "0abcdefABCDEF"
	return []grammar{
		{dialect: &sanitizer, direct: " ", back: "0", shape: hashNumber, next: " ", then: "(i", match: matchSanitizer},
		{dialect: &android, anchor: anchorPC, direct: "0 ", back: "0", shape: hashNumber, next: " ", then: hex, match: matchAndroid},
		{dialect: &cpptrace, direct: " ", back: "0", shape: hashNumber, window: windowCpptrace, next: " ", then: "ai", match: matchCpptrace},
		{dialect: &llvm, direct: " ", back: "0", shape: hashNumber, next: " ", match: matchLLVM},
		{dialect: &llvm, direct: " ", back: "0", shape: hashNumber, window: windowLLVM, next: " ", match: matchLLVMNamed},
		{dialect: &llvm, direct: " ", shape: wordNumber, window: windowLLVM, next: blank, match: matchLLVMPlain},
		{dialect: &chromium, direct: " ", back: "0", shape: hashNumber, next: " ", then: "(<", match: anyOf(matchChromium, matchChromiumUnknown)},
		{dialect: &node, direct: " ", before: "0", back: ":", shape: freeNumber, next: " ", match: matchNode},
		{dialect: &firefox, direct: "+ ", before: " ", back: "+", next: "])", then: "\n", match: matchFirefox},
		{dialect: &symfilter, direct: " ", back: "0", shape: hashNumber, next: " ", then: "(", match: anyOf(matchSymfilter, matchSymfilterSentence)},
		{dialect: &symfilter, direct: "+", next: " ", then: "(", match: matchSymfilterSentence},
		{dialect: &coredump, direct: " ", back: "0", shape: hashNumber, next: " ", match: matchCoredump},
		{dialect: &coredump, direct: " ", back: "0", shape: hashNumber, window: windowCoredump, next: " ", match: matchOldCoredump},
		{dialect: &gdb, direct: " ", back: "0", shape: hashNumber, next: " ", match: matchGDB},
		{dialect: &gfortran, direct: " ", back: "0", shape: hashNumber, next: " ", then: "i", match: anyOf(matchGfortran, matchFluentBit)},
		{dialect: &sanitizer, direct: " ", back: "0", shape: hashNumber, next: " ", then: "(i", match: matchNamed},
		{dialect: &tsan, direct: "+", next: ")", then: "(\n", match: anyOf(matchTSan, matchLocation)},
		{dialect: &sanitizer, direct: "+", next: ")", then: "(i\n", match: matchSummary},
		{dialect: &sanitizer, direct: " ", before: "b", back: "y", next: blank, then: "\n", match: matchMinimal},
		{dialect: &valgrind, direct: " ", before: "ab", back: "ty", words: []string{"at", "by"}, next: ":", match: matchValgrind},
		{dialect: &absl, direct: " ", before: " ", back: "@", next: " ", match: matchAbsl},
		{dialect: &glog, direct: " ", before: " ", back: "@", next: " \t", match: matchGlog},
		{dialect: &folly, anchor: anchorAt, direct: " ", shape: twoBlanks, next: " \t", match: matchFolly},
		{dialect: &envoy, direct: "[", before: " >", back: "[", next: "]", then: "\n?", match: matchEnvoy},
		{dialect: &envoy, direct: " ", back: "0", shape: hashNumber, next: blank, then: "(\n", match: matchOldEnvoy},
		{dialect: &stdTrace, direct: "[", before: " ", next: "]", then: "\n", match: matchStdTrace},
		{dialect: &boost, direct: " ", before: "0", back: "#", shape: freeNumber, next: " ", then: "i", match: matchBoost},
		{dialect: &backward, direct: " ", before: "a", back: "t", next: ",", then: "i", match: matchBackward},
		{dialect: &pytorch, direct: "(", before: " ", next: " ", then: "i", match: matchPyTorch},
		{dialect: &rust, direct: " ", before: "0", back: ":", shape: freeNumber, next: " ", then: "-", match: matchRust},
		{dialect: &seastar, direct: " ", before: "e", back: ":", match: matchSeastarList},
		{dialect: &seastar, direct: "+", next: " \n", match: matchSeastarList},
		{dialect: &seastar, direct: " ", shape: twoBlanks, window: windowSeastar, next: blank, then: "\n", match: matchSeastarLine},
		{dialect: &seastar, direct: "+\n", window: windowSeastar, next: blank, then: "\n", match: matchSeastarLine},
		{dialect: &python, direct: "[", next: "]", then: "\n", match: matchPython},
		{dialect: &gdb, direct: " \t\n", back: "\n", next: " ", then: "0", match: anyOf(gdbMap, gdbLibrary)},
		{dialect: &euStack, direct: "@", before: "]", next: "+", then: "0", match: matchEuStack},
		{dialect: &euStack, direct: "+", before: hex, next: " ", then: hex, match: unstripModule},
		{dialect: &euStack, direct: " ", back: "0", shape: hashNumber, window: windowEuStack, next: blank, match: matchPlainEuStack},
		{dialect: &perf, anchor: anchorWn, direct: "o", next: " ", then: "(", match: matchPerfUnknown},
		{dialect: &perf, direct: "+[", next: " (", then: "(0", match: matchPerfNumber},
		{dialect: &strace, direct: "[", before: " ", next: "]", then: "\n", match: matchStrace},
		{dialect: &ruby, direct: "[", before: " ", back: "[", next: "]", then: "\n", match: matchRuby},
		{dialect: &xorg, direct: "[", before: " ", back: "[", next: "]", then: "\n", match: matchXorg},
		{dialect: &glibc, direct: "[+", next: "]>", then: "(\n+>!-<a", match: matchCLibrary},
		{dialect: &breakpad, direct: " ", before: " ", back: "+", window: windowBreakpad, next: blank, then: "\n", match: matchBreakpad},
		{dialect: &clickhouse, direct: " ", before: " e", back: "@:", next: blank, then: "i0\n", match: anyOf(matchClickHouse, matchClickHouseList)},
		{dialect: &mongodb, anchor: anchorOffset, next: ":,]} \t", match: matchMongo},
		{dialect: &death, anchor: anchorIP, direct: " n", next: " ", then: "sl", match: matchDeath},
		{dialect: &jvm, direct: "+", next: "]", match: anyOf(matchJVM, matchOpenJ9)},
		{dialect: &jvm, direct: " ", back: "C", shape: twoBlanks, window: windowJVM, next: blank, then: "\n", match: matchJVMAddress},
		{dialect: &death, direct: " ", before: "daSs", back: "etrR", words: []string{"de", "at", "SR", "sr"}, next: " ,", then: letters, match: matchUnhandled},
		{dialect: &julia, direct: " ", before: "p", back: ":", next: ")", then: "a\n", match: matchJulia},
		{dialect: &cgo, anchor: anchorPCIs, direct: "P", next: "x", match: matchCgo},
		{dialect: &cgo, direct: "=", before: "c", window: windowGo, next: blank, match: matchCgoFrame},
		{dialect: &heap, direct: " ", back: "@", window: windowHeap, next: " \n", then: "0\n", match: matchHeap},
		{dialect: &bpf, anchor: anchorPath, direct: "0", match: matchBPFtrace},
		{dialect: &bpf, direct: " ", before: hex, back: hex, next: " ", then: "(", match: matchBPFUnknown},
		{dialect: &bpf, direct: " \t\n", back: "\n", next: " \t", match: matchBCC},
		{dialect: &cuda, direct: "[", next: "]", then: "i\n", match: matchHostFrame},
		{dialect: &cuda, anchor: anchorLine, window: windowCuda, match: matchHostModule},
		{dialect: &gdb, anchor: anchorLine, window: windowGDB, match: matchGDBWrapped},
		{dialect: &abrt, anchor: anchorMember, direct: "i", match: matchABRT},
		{dialect: &abrt, anchor: anchorLine, window: windowABRT, match: matchABRTFile},
		{dialect: &haproxy, direct: " ", back: "|", next: " ", then: "[", match: matchHAProxy},
		{dialect: &qnx, anchor: anchorIP, direct: " ", next: "(", match: matchQNX},
		{dialect: &xen, direct: "+", next: "/", then: "0", match: matchXen},
		{dialect: &nuttx, direct: "<", before: "[", window: windowFirmware, next: ">", then: "]", match: matchNuttXFrame},
		{dialect: &esp, direct: " :", before: "e", back: ":", next: ":", then: "0", match: matchESP},
		{dialect: &espRust, anchor: anchorLine, window: windowFirmware, match: matchESPRust},
		{dialect: &tfa, anchor: anchorLine, window: windowFirmware, match: matchTFA},
		{dialect: &esp, anchor: anchorLine, window: windowFirmware, match: matchESPAbort},
		{dialect: &nuttx, anchor: anchorLine, window: windowFirmware, match: matchNuttX},
		{dialect: &addr2line, anchor: anchorLine, window: windowFirmware, match: matchAddr2line},
		{dialect: &registers, anchor: anchorLine, window: windowFirmware | windowX86, match: matchRegisters},
		{dialect: &stackWords, anchor: anchorLine, window: windowFirmware, match: matchStackWords},
		{dialect: &kernel, direct: "+", next: "/", then: "0", match: matchKernel},
		{dialect: &kernel, direct: " :\n", back: "]?>:;t\n", shape: kernelHigh, next: blank, then: "\n", match: matchKernelAddress},
		{dialect: &optee, direct: " ", before: "CD", back: ":", next: blank, then: "\n", match: matchOPTEE},
		{dialect: &optee, direct: " ", before: " ?:0", back: "?0", shape: freeNumber, next: blank, then: "\n", match: matchOPTEE},
		{dialect: &foreign, direct: "+:", next: blank + ")", match: anyOf(matchWinDbg, matchWasm)},
		{dialect: &foreign, direct: " ", before: hex, back: hex, next: " ", then: "+", match: matchCrashReport},
		{dialect: &foreign, direct: " ", before: "st", back: "s:", words: []string{"ss", "t:"}, next: blank, then: "+\n", match: anyOf(matchMacSample, matchFaultOffset)},
	}
}

// A matcher is the match function of a grammar.
type matcher func(r *Reader, l *Line, at int) bool

// anyOf returns a matcher that tries all in order. It combines several grammars of one dialect that
// accept the same bytes.
func anyOf(all ...matcher) matcher {
	return func(r *Reader, l *Line, at int) bool {
		for _, match := range all {
			if match(r, l, at) {
				return true
			}
			l.Frames, l.edits = l.Frames[:0], l.edits[:0]
		}
		return false
	}
}

// allHeaders returns the headers of all dialects.
func allHeaders() []header {
	return []header{
		{text: string(espHashMark), fact: programLine},
		{text: string(zephyrMark), fact: programLine},
		{text: string(gnuBuildIDMark), fact: programLine},
		{text: "-xp ", fact: func(r *Reader, b []byte, _ int) { r.mapLine(b) }},
		{text: "ode: ", fact: codeLine},
		{text: "ainted", fact: kernelNamed},
		{text: "Linux version ", fact: kernelBoots},
		{text: "pc : ", fact: counterLine},
		{text: offsetMark, fact: kernelOffset},
		{text: "IP: 0033:", fact: userCounter},
		{text: "IP: 0023:", fact: userCounter},
		{text: "Stack dump", opens: windowLLVM},
		{text: "Program arguments: ", fact: programArguments},
		{text: "Crash reason:", opens: windowBreakpad | windowTrace, lasts: breakpadLines, holds: true},
		{text: "No crash", opens: windowBreakpad, holds: true},
		{text: "Found by: ", opens: windowBreakpad},
		{text: "WARNING: No symbols, ", fact: breakpadModule},
		{text: "*** Error in `", holds: true},
		{text: "== Using Valgrind-", holds: true},
		{text: "======= Backtrace: =========", holds: true},
		{text: "A fatal error has been detected by the Java Runtime", opens: windowJVM | windowTrace, lasts: jvmLines, holds: true},
		{text: "Native frames: (J=", opens: windowJVM, fact: nativeFrames},
		{text: "-- C level backtrace information", opens: windowTrace, lasts: rubyLines, holds: true},
		{text: "Backtrace for this error:", opens: windowFortran},
		{text: "heap profile: ", opens: windowHeap},
		{text: "heap_v2/", opens: windowHeap},
		{text: "MAPPED_LIBRARIES:", opens: windowTrace},
		{text: "======= Memory map: ========", opens: windowTrace},
		{text: "Register dump:", holds: true, fact: dumpsRegisters},
		{text: "Backtrace:", fact: beginsBacktrace, opens: windowSeastar | windowESPRust},
		{text: "Backtrace (use tools/stack_decode.py", opens: windowEnvoy},
		{text: "Address mapping: ", fact: envoyMapping},
		{text: "obj<", fact: envoyFile},
		{text: "Stack trace (most recent call first):", opens: windowCpptrace},
		{text: "EIP:", fact: announcesFault},
		{text: "Module: ", fact: redisModule},
		{text: "build id: ", fact: clickhouseBuild},
		{text: "build-id", fact: coredumpModule},
		{text: "Stack trace of thread ", opens: windowCoredump},
		{text: "TID ", opens: windowEuStack},
		{text: "COREDUMP_EXE=", fact: coredumpProgram},
		{text: "Executable: /", fact: coredumpProgram},
		{text: "COREDUMP_PACKAGE_JSON=", fact: func(r *Reader, b []byte, at int) { r.AddPackages(b[at+len("COREDUMP_PACKAGE_JSON="):]) }},
		{text: "<signal handler called>", fact: gdbHandler},
		{text: "[KCrash Handler]", fact: crashHandler},
		{text: "(LWP ", fact: gdbThread},
		{text: " @ 0x", fact: opteeFile},
		{text: "TEE load address @ ", fact: opteeLoad},
		gdbProgram("Reading symbols from "),
		gdbProgram("Core was generated by `"),
	}
}

// All returns all dialects, in the order of the documentation.
func All() []*Dialect {
	return []*Dialect{
		&sanitizer, &tsan, &symfilter,
		&android,
		&coredump,
		&glibc, &python,
		&gdb, &euStack,
		&clickhouse, &mongodb,
		&death, &jvm,
		&llvm,
		&chromium, &node, &firefox, &breakpad,
		&ruby, &xorg, &julia, &gfortran, &cgo, &heap,
		&valgrind,
		&perf, &strace,
		&glog, &absl, &folly, &envoy,
		&pytorch, &seastar, &rust,
		&boost, &stdTrace, &backward, &cpptrace,
		&kernel,
		&bpf, &cuda, &haproxy, &abrt,
		&qnx, &optee, &xen,
		&esp, &espRust, &tfa, &registers, &addr2line, &nuttx, &stackWords,
		&foreign,
	}
}
