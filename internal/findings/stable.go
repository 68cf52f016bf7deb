package findings

import (
	"strings"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// StableName returns the linkage name of a function without the parts that depend on the build: a
// symbol's version, the suffixes of clones, and the hash in a Rust name. For a C++ function that
// other translation units cannot call, it returns the name without namespace, class and arguments:
// GCC records only that name if the function is inlined.
func StableName(f *symbolize.Frame) string {
	name, _ := report.Unversioned(f.Linkage[:min(len(f.Linkage), maxLinkage)])
	if i := strings.Index(name, " [clone "); i > 0 {
		name = name[:i]
	}
	name = report.WithoutCloneSuffix(name)
	switch {
	case !strings.HasPrefix(name, "_Z"):
		if i := strings.IndexByte(name, '<'); i > 0 && !strings.HasPrefix(name, "operator") {
			name = name[:i]
		}
	case isInternal(name):
		if base := baseName(f.Func); base != "" {
			name = base
		}
	default:
		// _ZN4core9panicking5panic17h0123456789abcdefE: the hash changes with the compiler's
		// version
		if n := len(name) - len("17h0123456789abcdefE"); n > 0 && strings.HasPrefix(name[n:], "17h") && name[len(name)-1] == 'E' && isHex(name[n+3:len(name)-1]) {
			name = name[:n] + "E"
		}
	}
	return name
}

// loggedName returns the name of a function without the parts that depend on the build or the tool:
// namespaces, classes and arguments. Frames with logged names have no linkage names, and demanglers
// differ in the spelling of arguments.
func loggedName(f *symbolize.Frame) string {
	name, _ := report.Unversioned(f.Func)
	if name == "" {
		name, _ = report.Unversioned(f.Linkage)
	}
	name = name[:min(len(name), maxLinkage)]
	if i := strings.Index(name, " (."); i > 0 { // f(int) (.isra.0)
		name = name[:i]
	}
	if !strings.ContainsAny(name, " (") {
		name = report.WithoutCloneSuffix(name)
	}
	switch base := baseName(name); base {
	case "":
		return name
	case "operator": // baseName takes () for parameters
		return "operator()"
	default:
		return base
	}
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// isInternal reports whether a mangled name may belong to a function with internal linkage: static,
// in an unnamed namespace, or local to a function. The function may also be the instance of a
// template for a lambda or a local type. isInternal is seldom true for other names, whose stable
// names are then too short.
func isInternal(mangled string) bool {
	switch {
	case strings.HasPrefix(mangled, "_ZL"), strings.HasPrefix(mangled, "_ZZ"):
		return true
	case strings.Contains(mangled, "_GLOBAL__N_"), strings.Contains(mangled, "IZ"), strings.Contains(mangled, "Ul"):
		return true
	}
	rest, nested := strings.CutPrefix(mangled, "_ZN") // _ZN4acmeL4openEi: acme::open is static
	for rest = strings.TrimLeft(rest, "rVKRO"); nested && rest != ""; {
		n := 0
		for len(rest) > 0 && '0' <= rest[0] && rest[0] <= '9' && n < maxLinkage {
			n, rest = n*10+int(rest[0]-'0'), rest[1:]
		}
		if n == 0 || n >= len(rest) {
			return len(rest) > 1 && rest[0] == 'L' && '1' <= rest[1] && rest[1] <= '9'
		}
		rest = rest[n:]
	}
	return false
}

// baseName returns the name of a function from its demangled name, without return type, namespaces,
// classes, template arguments and parameters: sum for long ledger::(anonymous
// namespace)::sum<int>(int) const. The result is empty for a name of another form.
func baseName(demangled string) string {
	s, _, _ := strings.Cut(demangled, " [clone ")
	for _, mark := range []string{"&&", "&", " ", "volatile", " ", "const", " "} {
		s = strings.TrimSuffix(s, mark)
	}
	if strings.HasSuffix(s, ")") {
		s = s[:opening(s)]
	}
	if i := strings.LastIndex(s, "[abi:"); i > 0 && strings.HasSuffix(s, "]") {
		s = s[:i]
	}
	if i := strings.LastIndex(s, "operator"); i >= 0 && (i == 0 || s[i-1] == ':' || s[i-1] == ' ') {
		return s[i:]
	}
	if strings.HasSuffix(s, ">") {
		s = s[:opening(s)]
	}
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')', '>', '}':
			depth++
		case '(', '<', '{':
			depth--
		case ':', ' ':
			if depth == 0 {
				return s[i+1:]
			}
		}
	}
	return s
}

// opening returns the offset of the bracket that the last byte of s closes, or 0.
func opening(s string) int {
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')', '>', '}':
			depth++
		case '(', '<', '{':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}
