package appearance

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

func TestShortNames(t *testing.T) {
	for name, want := range map[string]string{
		"main": "main",
		"std::vector<int, std::allocator<int>>::at(unsigned long)": "std::vector<…>::at(unsigned long)",
		"void f<a<b>, c>(d<e> const&)":                             "void f<…>(d<…> const&)",
		"std::map<int, std::function<int (int)> >::find":           "std::map<…>::find",
		"bool operator< <int>(A<int>, B)":                          "bool operator< <…>(A<…>, B)",
		"std::operator<< <char>(std::ostream<char>&)":              "std::operator<< <…>(std::ostream<…>&)",
		"X<a>::operator()<b, c>(b) const":                          "X<…>::operator()<…>(b) const",
		"bool std::operator==<a, b<c>>(d<a>)":                      "bool std::operator==<…>(d<…>)",
		"X<a>::operator d<b>() const":                              "X<…>::operator d<…>() const",
		"X<a>::operator->() const":                                 "X<…>::operator->() const",
		"X<a>::operator<=>(X<a>)":                                  "X<…>::operator<=>(X<…>)",
		"<a::B<u8> as c::D<u8>>::e":                                "<a::B<…> as c::D<…>>::e",
		"core::iter::map<F<fn() -> u8>>::next":                     "core::iter::map<…>::next",
		"f<g":                                                      "f<g",
		"f>g<":                                                     "f>g<",
		"":                                                         "",
		"myoperator<int>":                                          "myoperator<…>",
	} {
		if got := ShortName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "a\tb": 9, "\x1b[0;1mab\x1b[0m": 2, "é": 1, "e\u0301": 1, "短い": 4,
		"\x1b]8;;https://example.org/\x1b\\a.c:1\x1b]8;;\x1b\\": 5, "\x1b[": 1, "\x1b]8;;": 4,
	} {
		if got, _ := columns([]byte(text), 0); got != want {
			t.Errorf("%q: got %d columns, want %d", text, got, want)
		}
	}
}
