package findings

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/internal/report"
)

// maxVerdicts bounds the paths that an Own remembers: a program of 10,000 source files has as many
// paths. At 100 bytes each, they take 2 MB.
const maxVerdicts = 16 << 10

// An OwnRule makes frames a program's own, or the system's, if their source file or object matches
// a glob. In a glob, * matches any bytes but "/", ** any bytes, and ? any byte but "/"; all other
// bytes match themselves. A glob that names a folder matches everything below it. A glob without a
// leading "/" may begin to match at any element of a path: third_party matches
// /home/me/third_party/zip/zip.c.
type OwnRule struct {
	Own  bool // false: frames of the system
	Glob string
}

// An Own distinguishes a program's own frames from the frames of its system: the C library, the
// runtimes of languages and of sanitizers, and the libraries of the distribution. A nil Own has
// only the built-in rule. An Own is safe for concurrent use.
//
// By the built-in rule, a frame belongs to the system in one of these cases:
//
//   - Its source file is below /usr/include, /usr/lib, /usr/src (except app and myapp there),
//     /usr/local/go/src or /rustc, or in the source tree of a sanitizer.
//   - Its source file is a relative path into csu, sysdeps or elf, the folders of glibc.
//   - The base name of its object is a runtime's, such as libc.so.6.
//   - Its object is below /lib or /usr/lib, or variants such as /lib64, or below
//     /usr/libexec/valgrind, and its source file is unknown, a relative path, or below /build.
//   - Its function calls main.
//   - Its source file is unknown, and sanitizers intercept its function, such as malloc or memcpy.
type Own struct {
	globs []*regexp.Regexp
	own   []bool // OwnRule.Own of each glob

	mu       sync.Mutex
	verdicts map[string]int // by path: 1 + the index of the last matching glob, or 0
}

// NewOwn returns an Own with rules after the built-in one. The last rule that matches a frame's
// source file or its object decides. It fails if a glob is empty or has only slashes.
func NewOwn(rules []OwnRule) (*Own, error) {
	o := new(Own)
	for _, r := range rules {
		if strings.Trim(r.Glob, "/") == "" {
			return nil, errors.New("empty glob")
		}
		o.globs = append(o.globs, regexp.MustCompile(globExpression(r.Glob)))
		o.own = append(o.own, r.Own)
	}
	return o, nil
}

// globExpression returns the regular expression for a glob.
func globExpression(glob string) string {
	var b strings.Builder
	b.WriteString("(?s)^")
	if glob[0] != '/' {
		b.WriteString("(?:.*/)?")
	}
	rest := strings.TrimRight(glob, "/")
	for len(rest) > 0 {
		switch n := strings.IndexAny(rest, "*?"); {
		case n < 0:
			b.WriteString(regexp.QuoteMeta(rest))
			rest = ""
		case n > 0:
			b.WriteString(regexp.QuoteMeta(rest[:n]))
			rest = rest[n:]
		case strings.HasPrefix(rest, "**"):
			b.WriteString(".*")
			rest = rest[2:]
		case rest[0] == '*':
			b.WriteString("[^/]*")
			rest = rest[1:]
		default:
			b.WriteString("[^/]")
			rest = rest[1:]
		}
	}
	b.WriteString("(?:/.*)?$")
	return b.String()
}

// Is reports whether a frame is the program's own. function is its linkage name, file its source
// file, and object the path or name of its object file. An unknown name is empty. Is allocates
// nothing for paths that it has seen before.
func (o *Own) Is(function, file, object string) bool {
	if o != nil && len(o.globs) > 0 {
		o.mu.Lock()
		last := max(o.verdict(file), o.verdict(object))
		o.mu.Unlock()
		if last > 0 {
			return o.own[last-1]
		}
	}
	return !isSystemFunction(function, file) && !isSystemPlace(file, object)
}

// A frameJudge is an Own for the frames of a stack. It remembers the last verdict, since successive
// frames often have the same source file and object. The built-in rule takes a third of the time
// for a finding.
type frameJudge struct {
	own          *Own
	file, object string
	system       bool // file and object belong to the system
}

func judgeOf(own *Own) frameJudge { return frameJudge{own: own, system: isSystemPlace("", "")} }

func (j *frameJudge) is(function, file, object string) bool {
	if j.own != nil && len(j.own.globs) > 0 {
		return j.own.Is(function, file, object)
	}
	if file != j.file || object != j.object {
		j.file, j.object, j.system = file, object, isSystemPlace(file, object)
	}
	return !j.system && !isSystemFunction(function, file)
}

// verdict returns 1 + the index of the last glob that matches path, or 0.
func (o *Own) verdict(path string) int {
	if path == "" {
		return 0
	}
	last, known := o.verdicts[path]
	if known {
		return last
	}
	for i := len(o.globs); i > 0; i-- {
		if o.globs[i-1].MatchString(path) {
			last = i
			break
		}
	}
	if len(o.verdicts) >= maxVerdicts || o.verdicts == nil {
		o.verdicts = make(map[string]int)
	}
	o.verdicts[strings.Clone(path)] = last
	return last
}

// isSystemFunction reports whether a function belongs to the system by the built-in rule.
func isSystemFunction(function, file string) bool {
	return report.IsBelowMain(function) || file == "" && isInterceptor(function)
}

// isSystemPlace reports whether a source file or an object belongs to the system by the built-in
// rule.
func isSystemPlace(file, object string) bool {
	if isRuntime(object[strings.LastIndexByte(object, '/')+1:]) {
		return true
	}
	relative := file != "" && file[0] != '/'
	if relative && isGlibcSource(file) || hasAnyPrefix(file, systemSources) && !hasAnyPrefix(file, ownSources) || containsAny(file, runtimeSources) {
		return true
	}
	return hasAnyPrefix(object, systemObjects) && (file == "" || relative || strings.HasPrefix(file, "/build/"))
}

// isInterceptor reports whether a sanitizer's runtime provides function, a linkage or demangled
// name. Such a function belongs to the runtime, or replaces one: malloc, another function of the C
// library, operator new or operator delete. LLVM links the runtime into the program, so the object
// does not identify the runtime.
func isInterceptor(function string) bool {
	switch function {
	case "malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
		"memcpy", "memmove", "memset", "memcmp", "memchr", "strlen", "strnlen", "strcpy", "strncpy", "strcat", "strncat", "strcmp", "strncmp",
		"strcasecmp", "strncasecmp", "strchr", "strrchr", "strstr", "strdup", "strndup", "__strdup", "strtol", "strtoll", "atoi", "atol",
		"printf", "fprintf", "sprintf", "snprintf", "vprintf", "vfprintf", "vsprintf", "vsnprintf", "scanf", "sscanf",
		"qsort", "qsort_r", "bsearch", "read", "write", "pread", "pwrite", "fread", "fwrite", "fgets", "recv", "send", "puts", "wcslen", "wcscpy",
		"pthread_create", "pthread_mutex_lock", "pthread_mutex_unlock", "pthread_join",
		"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm":
		return true
	}
	return hasAnyPrefix(function, interceptors)
}

// Prefixes and parts of paths of the built-in rule.
var (
	systemSources = []string{"/usr/include/", "/usr/lib/", "/usr/src/", "/usr/local/go/src/", "/rustc/"}
	// the guides of Docker's official images put programs here
	ownSources     = []string{"/usr/src/app/", "/usr/src/myapp/"}
	runtimeSources = []string{"/libsanitizer/", "/compiler-rt/lib/"}
	systemObjects  = []string{"/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/libx32/", "/usr/libexec/valgrind/"}
	interceptors   = []string{
		"__interceptor_", "___interceptor_", "__interceptor_trampoline_", "__asan_", "__hwasan_", "__lsan_", "__msan_", "__tsan_", "__ubsan_", "__sanitizer_",
		"__asan::", "__hwasan::", "__lsan::", "__msan::", "__tsan::", "__ubsan::", "__sanitizer::", "operator new", "operator delete",
	}
	// runtimes are the beginnings of the base names of runtime libraries.
	runtimes = []string{
		"libc.so", "libc-2.", "libc.musl-", "ld-linux", "ld-musl-", "ld-2.", "ld64.so", "ld.so", "libm.so", "libm-2.", "libmvec.so",
		"libpthread.so", "libpthread-2.", "libdl.so", "libdl-2.", "librt.so", "librt-2.",
		"libstdc++.so", "libgcc_s.so", "libc++.so", "libc++abi.so", "libunwind.so", "libgomp.so",
		"libasan.so", "liblsan.so", "libtsan.so", "libubsan.so", "libhwasan.so", "libclang_rt.", "vgpreload_",
		"linux-vdso.so", "linux-gate.so", "[vdso]", "[vsyscall]",
	}
)

// isRuntime reports whether base is the base name of a runtime's object file.
func isRuntime(base string) bool {
	return len(base) > 0 && (base[0] == 'l' || base[0] == '[' || base[0] == 'v') && hasAnyPrefix(base, runtimes)
}

// isGlibcSource reports whether a relative path leads into a folder that only glibc has at the top
// of its sources: ./csu/../sysdeps/nptl/libc_start_call_main.h.
func isGlibcSource(path string) bool {
	top := true
	for path != "" {
		element, rest, more := strings.Cut(path, "/")
		switch element {
		case "", ".":
		case "..":
			top = true
		case "csu", "sysdeps", "elf":
			if top && more {
				return true
			}
			top = false
		default:
			top = false
		}
		path = rest
	}
	return false
}

func hasAnyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}
