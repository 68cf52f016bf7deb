package layout

import "testing"

func TestCleanPaths(t *testing.T) {
	for path, want := range map[string]string{
		"":                 "",
		"/src/a.c":         "/src/a.c",
		"src/a.c":          "src/a.c",
		"./src/a.c":        "src/a.c",
		"/src/x/../a.c":    "/src/a.c",
		"/src/./a//b.c":    "/src/a/b.c",
		"../../src/a.c":    "src/a.c",
		"/../a.c":          "/a.c",
		"a/../../b.c":      "b.c",
		"..":               "..",
		".":                ".",
		"/":                "/",
		"/src/.hidden/a.c": "/src/.hidden/a.c",
		"/src/a..c":        "/src/a..c",
		"./csu/../sysdeps/nptl/libc_start_call_main.h":       "sysdeps/nptl/libc_start_call_main.h",
		"../../../../src/libsanitizer/asan/asan_malloc.cpp":  "src/libsanitizer/asan/asan_malloc.cpp",
		"/build/glibc-6V9RKT/glibc-2.36/nptl/pthread_kill.c": "glibc-2.36/nptl/pthread_kill.c",
		"/build/x":                                            "/build/x",
		"/build/app/src/main.c":                               "/build/app/src/main.c",
		"/build/source/a/hello.c":                             "a/hello.c",
		"/builddir/build/BUILD/zip-3.0/zip.c":                 "zip-3.0/zip.c",
		"/rustc/9fc6b431/library/core/src/panicking.rs":       "library/core/src/panicking.rs",
		"/home/me/.cargo/registry/src/index.x/serde-1.0/a.rs": "serde-1.0/a.rs",
		"/tmp/nix-build-hello-2.12.drv-0/hello.c":             "hello.c",
		"/proc/self/cwd/base/a.cc":                            "base/a.cc",
	} {
		if got := CleanPath(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
