package report

import (
	"strings"

	"github.com/symfilter/symfilter/symbolize"
)

// Unversioned returns the name of a symbol without its version: memcpy for memcpy@@GLIBC_2.14.
// versioned reports whether the name had a version. Symbols of debug files have versions, symbols
// of stripped libraries do not.
func Unversioned(name string) (plain string, versioned bool) {
	i := strings.IndexByte(name, '@')
	if i <= 0 || name[0] == '?' { // MSVC mangles with @
		return name, false
	}
	return name[:i], true
}

// LinkName returns the linker's name for the function of f, without a symbol's version.
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

// Shown returns a copy of f with the function and file that a report shows.
func (o *Options) Shown(f *symbolize.Frame) symbolize.Frame {
	shown := *f
	shown.Func = FuncName(o.Symbolizer, f)
	if f.File != "" {
		shown.File = o.ShownFile(f.File)
	}
	return shown
}

// Closed returns a demangled name in the spelling of newer demanglers: no blanks between the
// closing brackets of templates, and one spelling of the marks of cloned functions.
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

// BelowMain is Valgrind's name for all functions that call main.
const BelowMain = "(below main)"

// IsBelowMain reports whether Valgrind shows a function of this name as BelowMain.
func IsBelowMain(link string) bool {
	switch link {
	case BelowMain, "_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "generic_start_main", "generic_start_main.isra.0":
		return true
	}
	return false
}

// WithoutCloneSuffix removes suffixes such as .constprop.0 and .part.1.cold from a linkage name.
func WithoutCloneSuffix(name string) string {
	for end := len(name); end > 0; {
		i := strings.LastIndexByte(name[:end], '.')
		if i <= 0 {
			break
		}
		switch word := name[i+1 : end]; word {
		case "constprop", "isra", "part", "cold", "llvm", "lto_priv", "__uniq":
			name = name[:i]
		default:
			if strings.Trim(word, "0123456789") != "" {
				return name
			}
		}
		end = i
	}
	return name
}
