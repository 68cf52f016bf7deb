package filter

import "strings"

// buildPrefixes are what the paths of source files begin with that were compiled in a folder of a
// build system: no reader has these folders. A * stands for one element.
var buildPrefixes = []string{
	"/build/*/",                   // Debian and Ubuntu, with a random element
	"/builddir/build/BUILD/",      // Fedora
	"/rustc/*/",                   // Rust's libraries, with the commit
	"/tmp/nix-build-*/",           // Nix
	"/proc/self/cwd/",             // Bazel
	"/tmp/go-build*/",             // cgo
	"/*/*/.cargo/registry/src/*/", // a registry of Cargo
	"/*/.cargo/registry/src/*/",
	"/usr/local/cargo/registry/src/*/",
}

// cleanPath returns the path of a source file without build prefixes, and without elements . and
// .. : ./csu/../sysdeps/x86/start.S is sysdeps/x86/start.S. A path that begins with .. loses that,
// too.
func cleanPath(path string) string {
	if path == "" || path[0] != '/' && path[0] != '.' && !strings.Contains(path, "/.") && !strings.Contains(path, "//") {
		return path
	}
	if strings.Contains(path, "/.") || strings.Contains(path, "//") || path[0] == '.' {
		path = withoutDots(path)
	}
	if path[0] != '/' {
		return path
	}
	for _, p := range buildPrefixes {
		if rest := withoutPrefix(path, p); rest != "" {
			return rest
		}
	}
	return path
}

// withoutDots removes the elements . and .. of a path.
func withoutDots(path string) string {
	var kept []string
	for element := range strings.SplitSeq(path, "/") {
		switch {
		case element == "" || element == ".":
		case element == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		case element == "..":
		default:
			kept = append(kept, element)
		}
	}
	if len(kept) == 0 {
		return path
	}
	clean := strings.Join(kept, "/")
	if path[0] == '/' {
		clean = "/" + clean
	}
	return clean
}

// withoutPrefix returns the rest of path after a prefix, or "" if path does not begin with it.
func withoutPrefix(path, prefix string) string {
	for {
		i := strings.IndexByte(prefix, '*')
		if i < 0 {
			rest, _ := strings.CutPrefix(path, prefix)
			if len(rest) == len(path) {
				return ""
			}
			return rest
		}
		if !strings.HasPrefix(path, prefix[:i]) {
			return ""
		}
		_, rest, _ := strings.Cut(path[i:], "/")
		path, prefix = "/"+rest, prefix[i+1:]
	}
}
