package report

import (
	"strings"

	"github.com/symfilter/symfilter/symbolize"
)

// Unversioned returns the name of a symbol without its version, memcpy for memcpy@@GLIBC_2.14, and
// whether it had one. Symbols of debug files have versions, those of stripped libraries do not.
func Unversioned(name string) (plain string, versioned bool) {
	i := strings.IndexByte(name, '@')
	if i <= 0 || name[0] == '?' { // MSVC mangles with @
		return name, false
	}
	return name[:i], true
}

// LinkName returns the name that the linker knows for the function of f, without a symbol's
// version.
func LinkName(f *symbolize.Frame) string {
	if !f.FromSymbol {
		return f.Linkage
	}
	plain, _ := Unversioned(f.Linkage)
	return plain
}

// FuncName returns the name of f's function for display, without a symbol's version.
func FuncName(s *symbolize.Symbolizer, f *symbolize.Frame) string {
	if plain, versioned := Unversioned(f.Linkage); versioned && f.FromSymbol && s != nil {
		return s.Demangle(plain)
	}
	return f.Func
}

// Shown returns a copy of f whose function and file are as a report shows them.
func (o *Options) Shown(f *symbolize.Frame) symbolize.Frame {
	shown := *f
	shown.Func = FuncName(o.Symbolizer, f)
	if f.File != "" {
		shown.File = o.ShownFile(f.File)
	}
	return shown
}

// Closed returns a demangled name in the spelling of newer demanglers: without blanks between the
// closing brackets of templates, and with one spelling of the marks of cloned functions.
func Closed(name string) string {
	for strings.Contains(name, "> >") {
		name = strings.ReplaceAll(name, "> >", ">>")
	}
	if i := strings.Index(name, " [clone ."); i >= 0 {
		name = name[:i] + strings.ReplaceAll(strings.ReplaceAll(name[i:], " [clone .", " (."), "]", ")")
	}
	return name
}

// IsMangled reports whether name is a mangled name of C++ or Rust.
func IsMangled(name string) bool {
	return len(name) > 3 && name[0] == '_' && (name[1] == 'Z' || name[1] == 'R') && !strings.ContainsAny(name, " (<")
}

// BelowMain is the name that Valgrind gives to all functions that call main.
const BelowMain = "(below main)"

// IsBelowMain reports whether Valgrind shows a function of this name as BelowMain.
func IsBelowMain(link string) bool {
	switch link {
	case BelowMain, "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "generic_start_main", "generic_start_main.isra.0":
		return true
	}
	return false
}

// IsOutermost reports whether a function is one of those that call main or the function of a
// thread.
func IsOutermost(function string) bool {
	switch function {
	case "start_thread", "clone", "clone3", "__clone3", "__GI___clone3", "__clone", "thread_start", "asan_thread_start(void*)":
		return true
	}
	return IsBelowMain(function)
}

// EndsProgram reports whether a function, by its demangled name, is one that a runtime calls after
// the program has failed: in C and C++ from abort, a failed assertion and an exception on; in Rust
// and Go from a panic on. Own frames of programs that are linked statically may be of such
// functions.
func EndsProgram(function string) bool {
	switch function {
	case "abort", "raise", "gsignal", "kill", "tgkill", "pthread_kill", "__pthread_kill_implementation", "__pthread_kill_internal", "__GI_raise", "__GI_abort",
		"__assert", "__assert2", "__assert_fail", "__assert_fail_base", "__GI___assert_fail", "__stack_chk_fail", "__fortify_fail", "__chk_fail",
		"__libc_fatal", "__libc_message", "malloc_printerr", "panic", "rust_panic", "rust_begin_unwind", "__rust_start_panic":
		return true
	}
	return hasAnyPrefix(function, endings)
}

// endings are what the names of functions begin with for EndsProgram.
var endings = []string{
	"std::terminate", "std::__terminate", "std::rethrow_exception", "std::__throw_", "__cxa_", "__cxxabiv1::", "__gnu_cxx::__verbose_terminate_handler", "_Unwind_",
	"core::panicking::", "std::panicking::", "std::panic::", "std::sys::backtrace::", "std::sys_common::backtrace::", "std::backtrace",
	"core::option::unwrap_failed", "core::option::expect_failed", "core::result::unwrap_failed", "core::slice::index::slice_", "core::str::slice_error_fail", "alloc::alloc::handle_alloc_error",
	"runtime.gopanic", "runtime.goPanic", "runtime.panic", "runtime.throw", "runtime.fatal", "runtime.sig", "runtime.raise", "runtime.crash", "runtime.dieFromSignal",
}
