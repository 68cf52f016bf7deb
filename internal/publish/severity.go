package publish

import (
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

type severity uint8

const (
	note    severity = iota // not a fault by itself, such as memory that is still reachable
	warning                 // may be a fault, or does no harm at once
	failure                 // a fault
)

// A class groups kinds of findings with the same description, of any tool.
type class struct {
	severity severity
	memory   bool   // access to memory that the program does not own
	unsure   bool   // depends on facts that a tool cannot see: its precision is medium
	cwe      []int  // numbers in the Common Weakness Enumeration, at most 4
	about    string // description of the fault, one sentence
}

var (
	invalidRead  = class{failure, true, false, []int{125, 416}, "The program reads memory that it does not own: beyond a block, or in a block that was freed."}
	invalidWrite = class{failure, true, false, []int{787, 416}, "The program writes to memory that it does not own: beyond a block, or in a block that was freed."}
	heapOverflow = class{failure, true, false, []int{122, 125}, "The program uses memory outside a block of the heap."}
	stackAccess  = class{failure, true, false, []int{121, 125}, "The program uses memory outside a variable on the stack."}
	staticAccess = class{failure, true, false, []int{787, 125}, "The program uses memory outside an object: a global variable, a member, or an element of a container."}
	afterFree    = class{failure, true, false, []int{416}, "The program uses memory that was freed."}
	afterReturn  = class{failure, true, false, []int{562}, "The program uses a variable on the stack whose function or block has ended."}
	doubleFree   = class{failure, true, false, []int{415}, "The program frees memory that it has freed before, or that was not allocated."}
	badFree      = class{failure, true, false, []int{590}, "The program frees memory that was not allocated on the heap."}
	mismatch     = class{failure, true, false, []int{762}, "The program frees memory with a function that does not match the allocation, such as free after new."}
	uninit       = class{failure, false, false, []int{457}, "The program uses a value that was never set."}
	overlap      = class{failure, true, false, []int{475}, "The source and the destination of a copy overlap."}
	badJump      = class{failure, true, false, []int{119}, "The program jumps to an address that is not code."}
	badSize      = class{failure, false, false, []int{789}, "The program requests memory with an impossible size or alignment."}
	crash        = class{failure, true, false, []int{119}, "A signal ended the program."}
	abort        = class{failure, false, false, []int{617}, "The program aborted, because a condition that it requires does not hold."}
	caution      = class{warning, false, false, []int{617}, "The program reports that a condition that it requires does not hold, and continues."}
	exhausted    = class{failure, false, false, []int{400}, "The program has used up its stack or its memory."}
	leak         = class{failure, false, true, []int{401}, "Memory was never freed, and no pointer to it remains."}
	resourceLeak = class{failure, false, true, []int{772}, "A resource was never released."}
	possibleLeak = class{warning, false, true, []int{401}, "Memory was never freed, and only pointers into the middle of it remain."}
	reachable    = class{note, false, true, []int{401}, "Memory was not freed before the end of the program, or is lost because only lost memory points to it."}
	race         = class{warning, false, true, []int{362}, "Two threads access the same memory without synchronization, and at least one of them writes."}
	lockOrder    = class{warning, false, true, []int{833}, "Threads take the same locks in different orders, so they may wait for each other forever."}
	locking      = class{failure, false, false, []int{667}, "A lock or another synchronization object is used in a way that is not allowed."}
	threadLeak   = class{warning, false, true, []int{772}, "A thread has ended, and was neither joined nor detached."}
	signalUnsafe = class{failure, false, false, []int{479}, "A signal handler calls a function that is not safe there."}
	badDescr     = class{failure, false, false, []int{1341}, "A file descriptor is closed again or used after it was closed."}
	openDescr    = class{warning, false, false, []int{775}, "A file descriptor was not closed."}
	intOverflow  = class{failure, false, false, []int{190}, "The result of an integer calculation does not fit its type."}
	divideByZero = class{failure, false, false, []int{369}, "A number is divided by zero."}
	conversion   = class{failure, false, false, []int{681}, "A value does not fit the type that it is converted to or loaded as."}
	nullPointer  = class{failure, true, false, []int{476}, "A null pointer is used, passed or returned where none is allowed."}
	bounds       = class{failure, true, false, []int{125, 787}, "An index or a pointer leads out of its object."}
	typeConfused = class{failure, true, false, []int{843}, "An object or a function is used through a pointer to another type."}
	undefined    = class{failure, false, false, []int{758}, "The program has undefined behaviour."}
	initOrder    = class{failure, false, false, []int{696}, "A global variable is used before it is initialized, or is defined twice."}
	other        = class{failure, false, false, nil, "The tool has reported an error."}
	incomplete   = class{warning, false, false, nil, "A report is cut off, or findings were left out: errors may be missing."}
)

func classOf(kind string) *class {
	switch kind {
	// Valgrind's Memcheck: mc_errors.c, coregrind/m_errormgr.c, coregrind/m_clo_fd.c
	case "InvalidRead":
		return &invalidRead
	case "InvalidWrite":
		return &invalidWrite
	case "InvalidJump":
		return &badJump
	case "InvalidFree":
		return &doubleFree
	case "MismatchedFree", "MismatchedAllocateDeallocateSize", "MismatchedAllocateDeallocateAlignment":
		return &mismatch
	case "UninitCondition", "UninitValue", "SyscallParam", "ClientCheck":
		return &uninit
	case "Overlap":
		return &overlap
	case "FishyValue", "ReallocSizeZero", "InvalidSize", "InvalidAlignment", "InvalidSizeAndAlignment", "BadSize", "BadAlign", "UnsafeZeroSize":
		return &badSize
	case "InvalidMemPool":
		return &badFree
	case "CoreMemError":
		return &invalidWrite
	case "FatalSignal":
		return &crash
	case "Leak_DefinitelyLost":
		return &leak
	case "Leak_PossiblyLost":
		return &possibleLeak
	case "Leak_IndirectlyLost", "Leak_StillReachable":
		return &reachable
	case "FdBadClose", "FdBadUse":
		return &badDescr
	case "FdNotClosed":
		return &openDescr
	// Helgrind and DRD: hg_errors.c, drd_error.c
	case "Race", "ConflictingAccess", "CondRaceErr":
		return &race
	case "LockOrder":
		return &lockOrder
	case "UnlockUnlocked", "UnlockForeign", "UnlockBogus", "PthAPIerror", "Misc", "Dubious", "MutexErr", "CondErr", "CondDestrErr",
		"CondWaitErr", "SemaphoreErr", "BarrierErr", "RwlockErr", "HoldtimeErr", "GenericErr", "InvalidThreadId":
		return &locking
	case incompleteKind:
		return &incomplete
	}
	return sanitizerClass(strings.ReplaceAll(strings.ToLower(kind), " ", "-"))
}

// sanitizerClass returns the class of a sanitizer's kind, in lower case and without blanks.
// compiler-rt's asan_errors.h, tsan_report.cpp and ubsan_checks.inc list the kinds.
func sanitizerClass(kind string) *class {
	switch kind {
	case "heap-buffer-overflow":
		return &heapOverflow
	case "stack-buffer-overflow", "stack-buffer-underflow", "dynamic-stack-buffer-overflow":
		return &stackAccess
	case "tag-mismatch": // HWASan: beyond a block, or in a block that was freed
		return &invalidWrite
	case "stack-smashing":
		return &stackAccess
	case "heap-corruption", "gwp-asan", "kasan", "kfence":
		return &invalidWrite
	case "kmsan":
		return &uninit
	case "kcsan":
		return &race
	case "warning":
		return &caution
	case "assertion", "panic", "terminate", "fatal", "bug", "crash", "oops", "uncaught-exception", "fuzz-target-exited":
		return &abort
	case "buffer-overflow", "global-buffer-overflow", "container-overflow", "intra-object-overflow", "use-after-poison", "unknown-crash", "wild-pointer", "negative-size-param":
		return &staticAccess
	case "heap-use-after-free", "use-after-free":
		return &afterFree
	case "stack-use-after-return", "stack-use-after-scope":
		return &afterReturn
	case "double-free", "attempting-double-free":
		return &doubleFree
	case "bad-free", "invalid-free", "bad-malloc_usable_size", "bad-__sanitizer_get_allocated_size":
		return &badFree
	case "alloc-dealloc-mismatch", "new-delete-type-mismatch":
		return &mismatch
	case "use-of-uninitialized-value", "uninit-value", "kernel-infoleak":
		return &uninit
	case "segv", "bus", "fpe", "ill", "abrt", "deadly-signal", "trap", "general-protection-fault", "access-violation",
		"sigsegv", "sigbus", "sigfpe", "sigill", "sigabrt", "sigtrap", "sigsys":
		return &crash
	case "stack-overflow", "out-of-memory", "rss-limit-exceeded", "timeout", "slow-unit":
		return &exhausted
	case "allocation-size-too-big", "calloc-overflow", "reallocarray-overflow", "pvalloc-overflow", "invalid-allocation-alignment",
		"invalid-aligned-alloc-alignment", "invalid-posix-memalign-alignment":
		return &badSize
	case "initialization-order-fiasco", "odr-violation":
		return &initOrder
	case "memory-leak", "memory-leaks", "detected-memory-leaks", "leak", "direct-leak":
		return &leak
	case "indirect-leak":
		return &reachable
	case "lock-order-inversion", "lock-order-inversion-(potential-deadlock)":
		return &lockOrder
	case "thread-leak":
		return &threadLeak
	case "signed-integer-overflow", "unsigned-integer-overflow", "negation-overflow", "pointer-overflow", "shift", "shift-exponent", "shift-base",
		"add-overflow", "sub-overflow", "mul-overflow", "negate-overflow", "invalid-shift-exponent", "invalid-shift-base", "shift-out-of-bounds":
		return &intOverflow
	case "integer-divide-by-zero", "float-divide-by-zero", "division-by-zero", "divrem-overflow":
		return &divideByZero
	case "float-cast-overflow", "implicit-conversion", "implicit-unsigned-integer-truncation", "implicit-signed-integer-truncation",
		"implicit-integer-sign-change", "invalid-bool-load", "invalid-enum-load", "load-invalid-value", "bool", "enum":
		return &conversion
	case "null-ptr-deref", "null-pointer-use", "null-pointer-use-with-offset", "null", "nonnull", "nonnull-attribute", "returns-nonnull-attribute",
		"invalid-null-argument", "invalid-null-return", "null-pointer-use-with-nullability", "nullptr-with-offset",
		"nullptr-after-nonzero-offset", "nullptr-with-nonzero-offset", "nonnull-arg", "nonnull-return", "nullability-arg", "nullability-return":
		return &nullPointer
	case "out-of-bounds-index", "bounds", "insufficient-object-size", "object-size", "non-positive-vla-index", "vla-bound",
		"vla-bound-not-positive", "out-of-bounds", "local-out-of-bounds":
		return &bounds
	case "dynamic-type-mismatch", "vptr", "function-type-mismatch", "function", "cfi-bad-type", "misaligned-pointer-use", "alignment",
		"alignment-assumption", "type-mismatch", "cfi-check-fail":
		return &typeConfused
	case "undefined-behavior", "unreachable-call", "missing-return", "return", "unreachable", "builtin-unreachable",
		"invalid-builtin", "invalid-builtin-use", "invalid-objc-cast", "ubsan":
		return &undefined
	}
	switch { // kinds with details after their first words, and of other versions
	case strings.HasSuffix(kind, "-param-overlap"):
		return &overlap
	case strings.HasPrefix(kind, "data-race"), strings.HasPrefix(kind, "race"):
		return &race
	case strings.HasPrefix(kind, "heap-use-after-free"), strings.HasSuffix(kind, "-use-after-free"): // Linux: slab-use-after-free
		return &afterFree
	case strings.HasSuffix(kind, "-out-of-bounds"): // Linux: slab-out-of-bounds
		return &bounds
	case strings.HasPrefix(kind, "signal-unsafe"), strings.HasPrefix(kind, "signal-handler"):
		return &signalUnsafe
	case strings.Contains(kind, "mutex"), strings.Contains(kind, "lock-"):
		return &locking
	case strings.HasSuffix(kind, "leak"), strings.HasSuffix(kind, "leaks"):
		return &leak
	}
	return &other
}

// classIn returns the class of a finding. The kinds of sp-rtrace are types of resources that were
// not freed.
func classIn(x *findings.Finding) *class {
	switch {
	case x.Source != findings.FromRTrace:
		return classOf(x.Kind)
	case x.Kind == "memory":
		return &leak
	}
	return &resourceLeak
}

// cweOf returns the CWE numbers of a finding. For a read, a write or freed memory, it leaves out
// numbers of the class that do not apply.
func cweOf(x *findings.Finding) []int {
	switch c := classIn(x); c {
	case &invalidRead, &invalidWrite:
		if x.Memory == findings.MemoryFreed {
			return c.cwe[1:]
		}
		if x.Memory != findings.MemoryUnknown {
			return c.cwe[:1]
		}
		return c.cwe
	// the first number is for writes, the second for reads
	case &heapOverflow, &stackAccess, &staticAccess:
		if strings.Contains(x.Message, "WRITE") {
			return c.cwe[:1]
		}
		if strings.Contains(x.Message, "READ") {
			return c.cwe[1:]
		}
		return c.cwe
	default:
		return c.cwe
	}
}
