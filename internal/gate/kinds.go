package gate

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

// Kinds are the kinds of findings that fail a gate. The zero value has all kinds except the
// harmless ones: memory that is still reachable, and memory that only lost memory refers to.
type Kinds struct {
	set      bool
	patterns []string // patterns of path.Match, each for a kind or for tool/kind
	all      bool
	none     bool
}

// None reports whether the gate is off: neither a finding nor a missing report fails it.
func (k *Kinds) None() bool { return k.none }

// Has reports whether k has the kind of the finding.
func (k *Kinds) Has(x *findings.Finding) bool {
	if !k.set {
		return !slices.Contains(harmless, x.Kind)
	}
	return k.all || slices.ContainsFunc(k.patterns, func(p string) bool { return matches(p, x.Kind) || matches(p, x.Tool+"/"+x.Kind) })
}

func matches(pattern, kind string) bool {
	ok, err := path.Match(pattern, kind)
	return ok && err == nil
}

// ParseKinds parses all, none, or kinds separated by commas: patterns of [path.Match], where
// TOOL/KIND is a kind of one tool. It also returns the words that match no known kind: a gate on a
// misspelt kind would never fail. Any kind of sp-rtrace is known, since the reports name the kinds.
func ParseKinds(words string) (k Kinds, unknown []UnknownKind, err error) {
	k.set = true
	for word := range strings.SplitSeq(words, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "all":
			k.all = true
			continue
		case word == "none" && words == word:
			k.none = true
			return k, nil, nil
		case word == "none":
			return k, nil, errors.New("none cannot be combined with other kinds: remove none, or all other kinds")
		case word == "":
			return k, nil, errors.New("an empty kind: write all, none, or kinds with commas between them")
		}
		if _, err := path.Match(word, ""); err != nil {
			return k, nil, fmt.Errorf("%q: a [ has no ], or it ends with \\", word)
		}
		k.patterns = append(k.patterns, word)
		if !isKnown(word) && !strings.HasPrefix(word, string(findings.FromRTrace)+"/") {
			unknown = append(unknown, UnknownKind{word, nearKind(word)})
		}
	}
	return k, unknown, nil
}

// An UnknownKind is a word that matches no known kind.
type UnknownKind struct {
	Word string
	Near string // similar known kind, or ""
}

// knownKinds returns the kinds of Valgrind's tools, of the sanitizers, and of other crashes in
// logs.
func knownKinds() []string { return slices.Concat(valgrindKinds, LogKinds()) }

// ValgrindKinds returns the kinds of the errors of Valgrind's tools.
func ValgrindKinds() []string { return slices.Clone(valgrindKinds) }

// LogKinds returns the kinds of the errors in logs.
func LogKinds() []string { return slices.Concat(sanitizerKinds, crashKinds) }

// isKnown reports whether word matches a known kind, and a known tool if it has one before a slash.
func isKnown(word string) bool {
	return isOneOf(word, valgrindTools, valgrindKinds) || isOneOf(word, logTools, LogKinds())
}

// isOneOf reports whether word matches one of kinds. If word has the form TOOL/KIND, the tool must
// also match one of tools.
func isOneOf(word string, tools, kinds []string) bool {
	is := func(pattern string, names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return matches(pattern, name) })
	}
	if tool, kind, ok := strings.Cut(word, "/"); ok {
		return is(tool, tools) && is(kind, kinds)
	}
	return is(word, kinds)
}

// NotOfValgrind returns the first word of k that matches neither a kind nor a tool of Valgrind, or
// "".
func (k *Kinds) NotOfValgrind() string {
	for _, word := range k.patterns {
		if !isOneOf(word, valgrindTools, valgrindKinds) {
			return word
		}
	}
	return ""
}

// nearKind returns the known kind that word probably means, or "". word may differ from this kind
// in case, in marks between words, in one or two letters, or in its end. If only the case of a tool
// is wrong, nearKind returns word with the tool in lower case. For the name of a tool, it returns
// TOOL/*.
func nearKind(word string) string {
	if tool, kind, ok := strings.Cut(word, "/"); ok {
		if lower := strings.ToLower(tool) + "/" + kind; lower != word && isKnown(lower) {
			return lower
		}
		word = kind
		if isKnown(kind) { // a kind of another tool, or of an unknown one
			return ""
		}
	}
	if lower := strings.ToLower(word); isKnown(lower + "/*") {
		return lower + "/*"
	}
	plain := func(s string) string {
		return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(s))
	}
	known := knownKinds()
	for _, kind := range known {
		if plain(kind) == plain(word) {
			return kind
		}
	}
	if i := strings.IndexAny(word, "*?["); i >= 0 { // Leek_* is like Leak_DefinitelyLost
		word = word[:i]
	}
	word = plain(word)
	if len(word) < 4 || len(word) > 64 {
		return ""
	}
	for _, apart := range []int{0, min(2, len(word)/4)} {
		for _, kind := range known {
			p := plain(kind)
			if distance(p, word) <= apart || len(p) > len(word) && distance(p[:len(word)], word) <= min(1, apart) {
				return kind
			}
		}
	}
	return ""
}

// distance returns how many bytes must be inserted, removed or replaced to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// harmless are the kinds that fail a gate only if the gate names them or all kinds.
var harmless = []string{"Leak_StillReachable", "Leak_IndirectlyLost", "indirect-leak"}

// Tools of Valgrind, and other tools with findings in logs.
var (
	valgrindTools = []string{"memcheck", "helgrind", "drd", "exp-sgcheck", "exp-ptrcheck"}
	logTools      = []string{
		"asan", "hwasan", "lsan", "msan", "tsan", "ubsan", "dfsan", "rtsan", "tysan", "nsan", "memprofiler", "scudo", "libfuzzer",
		"crash", "kasan", "kmsan", "kcsan", "kfence", "gwp-asan",
	}
)

// valgrindKinds are the kinds of Memcheck, Helgrind and DRD up to Valgrind 3.25, and the signal
// that ends the program.
var valgrindKinds = []string{
	"InvalidRead", "InvalidWrite", "InvalidJump", "InvalidFree", "InvalidMemPool", "MismatchedFree",
	"InvalidSize", "InvalidAlignment", "InvalidSizeAndAlignment", "MismatchedAllocateDeallocateSize", "MismatchedAllocateDeallocateAlignment",
	"UninitCondition", "UninitValue", "SyscallParam", "ClientCheck", "CoreMemError", "Overlap", "FishyValue", "ReallocSizeZero",
	"Leak_DefinitelyLost", "Leak_IndirectlyLost", "Leak_PossiblyLost", "Leak_StillReachable",
	"FdBadClose", "FdBadUse", "FdNotClosed", "FatalSignal",
	"Race", "UnlockUnlocked", "UnlockForeign", "UnlockBogus", "PthAPIerror", "LockOrder", "Misc", "Dubious",
	"ConflictingAccess", "MutexErr", "CondErr", "CondDestrErr", "CondRaceErr", "CondWaitErr", "SemaphoreErr", "BarrierErr", "RwlockErr",
	"HoldtimeErr", "GenericErr", "InvalidThreadId", "UnimpHgClReq", "UnimpDrdClReq", "ClientReq",
	"Heap", "SorG", "Arith", "SysParam",
}

// sanitizerKinds are the kinds of AddressSanitizer, HWAddressSanitizer, ThreadSanitizer,
// MemorySanitizer, LeakSanitizer and UndefinedBehaviorSanitizer: the words of their reports, with
// hyphens for blanks.
var sanitizerKinds = []string{
	"heap-buffer-overflow", "heap-use-after-free", "stack-buffer-overflow", "stack-buffer-underflow", "stack-use-after-return",
	"stack-use-after-scope", "stack-overflow", "global-buffer-overflow", "dynamic-stack-buffer-overflow", "container-overflow",
	"double-free", "bad-free", "alloc-dealloc-mismatch", "new-delete-type-mismatch", "memcpy-param-overlap", "negative-size-param",
	"calloc-overflow", "allocation-size-too-big", "out-of-memory", "odr-violation", "use-after-poison", "intra-object-overflow",
	"initialization-order-fiasco", "invalid-pointer-pair", "unknown-crash", "tag-mismatch", "invalid-free", "allocation-tail-overwritten",
	"SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "wild-access", "wild-jump",
	"data-race", "lock-order-inversion", "thread-leak", "destroy-of-a-locked-mutex", "double-lock-of-a-mutex", "unlock-of-an-unlocked-mutex",
	"signal-unsafe-call-inside-of-a-signal", "signal-handler-spoils-errno", "use-of-uninitialized-value", "direct-leak", "indirect-leak",
	"signed-integer-overflow", "unsigned-integer-overflow", "integer-divide-by-zero", "invalid-shift-exponent", "invalid-shift-base",
	"mul-overflow", "add-overflow", "sub-overflow", "negate-overflow", "divrem-overflow", "out-of-bounds-index", "local-out-of-bounds",
	"invalid-null-return", "invalid-null-argument", "nullptr-with-offset", "nullptr-after-nonzero-offset", "pointer-overflow",
	"null-pointer-use", "null-pointer-use-with-nullability", "misaligned-pointer-use", "alignment-assumption", "insufficient-object-size",
	"dynamic-type-mismatch", "missing-return", "unreachable-call", "non-positive-vla-index", "invalid-bool-load", "invalid-enum-load",
	"float-cast-overflow", "implicit-conversion", "function-type-mismatch", "cfi-bad-type", "invalid-builtin-use", "undefined-behavior",
}

// crashKinds are the kinds of other crashes in logs. The kinds of the Linux kernel's sanitizers are
// last.
var crashKinds = []string{
	"panic", "fatal", "assertion", "terminate", "crash", "stack-smashing", "buffer-overflow", "heap-corruption", "access-violation",
	"general-protection-fault", "oops", "BUG", "WARNING", "gwp-asan",
	"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS",
	"slab-out-of-bounds", "slab-use-after-free", "use-after-free", "stack-out-of-bounds", "global-out-of-bounds", "vmalloc-out-of-bounds",
	"vmalloc-use-after-free", "alloca-out-of-bounds", "out-of-bounds", "null-ptr-deref", "wild-memory-access", "user-memory-access",
	"invalid-access", "uninit-value", "kernel-infoleak", "array-index-out-of-bounds", "shift-out-of-bounds", "division-overflow",
}
