package layout

import (
	"path"
	"strings"
)

// buildPrefixes lists leading folders of source paths that exist only on the machine of the build.
// Each part between slashes is a pattern of [path.Match]. In /build, folders such as glibc-6V9RKT,
// reproducible-path or hello-2.12 are made by a build system. Others, such as src, may belong to
// the program.
var buildPrefixes = []string{
	"/build/*-*/",                 // Debian, Ubuntu and Nix
	"/build/source/",              // Nix
	"/builddir/build/BUILD/",      // Fedora
	"/rustc/*/",                   // Rust's libraries, with the commit
	"/tmp/nix-build-*/",           // Nix
	"/proc/self/cwd/",             // Bazel
	"/tmp/go-build*/",             // cgo
	"/*/*/.cargo/registry/src/*/", // a registry of Cargo
	"/*/.cargo/registry/src/*/",
	"/usr/local/cargo/registry/src/*/",
}

// CleanPath removes a build prefix, and the elements . and .. from the path of a source file. For
// example, ./csu/../sysdeps/x86/start.S becomes sysdeps/x86/start.S. A leading .. is also removed.
func CleanPath(file string) string {
	if file == "" || file[0] != '/' && file[0] != '.' && !strings.Contains(file, "/.") && !strings.Contains(file, "//") {
		return file
	}
	if strings.Contains(file, "/.") || strings.Contains(file, "//") || file[0] == '.' {
		file = WithoutDots(file)
	}
	if file[0] != '/' {
		return file
	}
	for _, p := range buildPrefixes {
		if rest := withoutPrefix(file, p); rest != "" {
			return rest
		}
	}
	return file
}

// WithoutDots resolves the elements . and .. of a path, and removes empty elements. An element ..
// without a folder before it is removed. If no element is left, WithoutDots returns the path
// unchanged.
func WithoutDots(path string) string {
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

// withoutPrefix returns the part of an absolute path after prefix, or "" if nothing follows it or
// the path does not begin with it. Each element of prefix is a pattern of [path.Match].
func withoutPrefix(full, prefix string) string {
	rest := full[1:]
	for pattern := range strings.SplitSeq(strings.Trim(prefix, "/"), "/") {
		element, after, more := strings.Cut(rest, "/")
		if ok, _ := path.Match(pattern, element); !ok || !more {
			return ""
		}
		rest = after
	}
	return rest
}
