package backtrace

import (
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
)

// IsOutermost reports whether a function is runtime code that calls main or a thread's function.
func IsOutermost(function string) bool {
	switch function {
	case "start_thread", "clone", "clone3", "__clone3", "__GI___clone3", "__clone", "thread_start", "asan_thread_start(void*)":
		return true
	}
	return report.IsBelowMain(function)
}

// EndsProgram reports whether a function runs after the program has failed: in C and C++ after
// abort, a failed assertion or an exception, in Rust and Go after a panic. function is a demangled
// name. In a statically linked program, these frames look like the program's own.
func EndsProgram(function string) bool {
	switch function {
	case "abort", "raise", "gsignal", "kill", "tgkill", "pthread_kill", "__pthread_kill_implementation", "__pthread_kill_internal", "__GI_raise", "__GI_abort",
		"__assert", "__assert2", "__assert_fail", "__assert_fail_base", "__GI___assert_fail", "__stack_chk_fail", "__fortify_fail", "__chk_fail",
		"__libc_fatal", "__libc_message", "malloc_printerr", "panic", "rust_panic", "rust_begin_unwind", "__rust_start_panic":
		return true
	}
	return hasAnyPrefix(function, endings)
}

// endings are the prefixes of function names that EndsProgram looks for.
var endings = []string{
	"std::terminate", "std::__terminate", "std::rethrow_exception", "std::__throw_", "__cxa_", "__cxxabiv1::", "__gnu_cxx::__verbose_terminate_handler", "_Unwind_",
	"core::panicking::", "std::panicking::", "std::panic::", "std::sys::backtrace::", "std::sys_common::backtrace::", "std::backtrace",
	"core::option::unwrap_failed", "core::option::expect_failed", "core::result::unwrap_failed", "core::slice::index::slice_", "core::str::slice_error_fail", "alloc::alloc::handle_alloc_error",
	"runtime.gopanic", "runtime.goPanic", "runtime.panic", "runtime.throw", "runtime.fatal", "runtime.sig", "runtime.raise", "runtime.crash", "runtime.dieFromSignal",
}

// IsReporter reports whether a kernel function prints a report about one of its callers.
func IsReporter(name string) bool {
	return hasAnyPrefix(name, reporters)
}

// IsSignalFrame reports whether a function is the code to which a signal handler returns.
func IsSignalFrame(function string) bool {
	switch function {
	case signalHandler, "__restore_rt", "__restore", "__default_rt_sa_restorer", "__kernel_rt_sigreturn", "__kernel_sigreturn":
		return true
	}
	return false
}

// reporters are the prefixes of function names that IsReporter looks for.
var reporters = []string{
	"dump_stack", "__dump_stack", "show_stack", "dump_backtrace", "print_report", "print_address_description", "kasan_", "__kasan_", "__asan_", "kmsan_",
	"kcsan_", "__kcsan_", "__tsan_", "ubsan_", "__ubsan_", "kfence_", "__warn", "warn_slowpath", "panic", "__schedule_bug", "__might_resched", "lockdep_",
	"print_circular_bug", "unwind_backtrace",
}

func hasAnyPrefix(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}
