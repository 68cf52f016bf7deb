package findings

import (
	"fmt"
	"testing"
)

func TestFramesOfTheSystem(t *testing.T) {
	const app, lib, libc = "/opt/acme/bin/app", "/usr/lib/x86_64-linux-gnu/libzip.so.4", "/lib/x86_64-linux-gnu/libc.so.6"
	for _, test := range []struct {
		function, file, object string
		own                    bool
	}{
		{"main", "/home/me/main.c", app, true},
		{"main", "", app, true},
		{"main", "src/main.c", app, true},
		{"", "", app, true},
		{"", "", "", true},
		{"_start", "", app, false},
		{"_ZNSt6vectorIiE2atEm", "/usr/include/c++/12/bits/stl_vector.h", app, false},
		{"f", "/usr/includes/a.h", app, true},
		{"f", "/usr/src/linux/lib/string.c", app, false},
		{"f", "/usr/src/app/main.c", app, true},
		{"f", "/usr/src/myapp/main.c", app, true},
		{"f", "/rustc/9fc6b4312/library/core/src/panicking.rs", app, false},
		{"runtime.main", "/usr/local/go/src/runtime/proc.go", app, false},
		{"__libc_start_call_main", "./csu/../sysdeps/nptl/libc_start_call_main.h", "libc", false},
		{"call_init", "../elf/dl-init.c", app, false},
		{"main", "src/elf/read.c", app, true},
		{"main", "elf", app, true},
		{"main", "/home/me/elf/read.c", app, true},
		{"memcpy", "../../../../src/libsanitizer/asan/asan_interceptors.cpp", app, false},
		{"abort", "./stdlib/abort.c", libc, false},
		{"abort", "/home/me/glibc/stdlib/abort.c", libc, false},
		{"abort", "", "libc.so.6", false},
		{"", "", "libstdc++.so.6.0.30", false},
		{"", "", "[vdso]", false},
		{"", "", "libcrypt.so.1", true},
		{"zip_open", "", lib, false},
		{"zip_open", "./lib/zip_open.c", lib, false},
		{"zip_open", "/build/libzip-1.7/lib/zip_open.c", lib, false},
		{"zip_open", "/home/me/libzip/lib/zip_open.c", lib, true},
		{"f", "", "/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so", false},
		{"f", "", "/usr/local/lib/libmine.so", true},
		{"f", "", "/libfoo.so", true},
	} {
		var none *Own
		if got := none.Is(test.function, test.file, test.object); got != test.own {
			t.Errorf("%s, %s, %s: own is %v", test.function, test.file, test.object, got)
		}
	}
}

func TestTheLastRuleThatMatchesDecides(t *testing.T) {
	own := func(glob string) OwnRule { return OwnRule{Own: true, Glob: glob} }
	system := func(glob string) OwnRule { return OwnRule{Glob: glob} }
	for _, test := range []struct {
		rules        []OwnRule
		file, object string
		own          bool
	}{
		{[]OwnRule{system("third_party")}, "/home/me/third_party/zip.c", "app", false},
		{[]OwnRule{system("third_party")}, "third_party/zip.c", "app", false},
		{[]OwnRule{system("third_party")}, "/home/me/my_third_party/zip.c", "app", true},
		{[]OwnRule{system("/third_party")}, "/home/me/third_party/zip.c", "app", true},
		{[]OwnRule{system("/home/*")}, "/home/me/a/b.c", "app", false},
		{[]OwnRule{system("/home/*.c")}, "/home/me/b.c", "app", true},
		{[]OwnRule{system("/home/**.c")}, "/home/me/b.c", "app", false},
		{[]OwnRule{system("b.?")}, "/home/me/b.c", "app", false},
		{[]OwnRule{own("/usr/lib/acme/")}, "", "/usr/lib/acme/libx.so", true},
		{[]OwnRule{own("libc.so.6")}, "./stdlib/abort.c", "/lib/libc.so.6", true},
		{[]OwnRule{own("libacme*"), system("libacme_zip.so")}, "", "/usr/lib/libacme_zip.so", false},
		{[]OwnRule{system("libacme_zip.so"), own("libacme*")}, "", "/usr/lib/libacme_zip.so", true},
		{[]OwnRule{system("app"), own("/home")}, "/home/me/a.c", "app", true},
		{[]OwnRule{own("/home"), system("app")}, "/home/me/a.c", "app", false},
		{[]OwnRule{system("[vdso]"), own("a+(b")}, "/home/a+(b/c.c", "", true},
	} {
		o, err := NewOwn(test.rules)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := o.Is("f", test.file, test.object); got != test.own {
				t.Errorf("%v: %q, %q: own is %v", test.rules, test.file, test.object, got)
			}
		}
	}
	for _, glob := range []string{"", "/"} {
		if _, err := NewOwn([]OwnRule{system(glob)}); err == nil {
			t.Errorf("%q is a rule", glob)
		}
	}
}

func TestKnownPathsAreJudgedWithoutAllocation(t *testing.T) {
	o, err := NewOwn([]OwnRule{{Glob: "third_party"}})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() { o.Is("f", "/src/a.c", "/opt/app") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for i := range 3 * maxVerdicts {
		o.Is("f", fmt.Sprint(i), "")
	}
	if n := len(o.verdicts); n > maxVerdicts {
		t.Errorf("%d paths are remembered, want at most %d", n, maxVerdicts)
	}
}

// A frameJudge must return the same as Own.Is for each frame of a stack.
func TestFramesOfAStackAreJudgedAlike(t *testing.T) {
	globs, err := NewOwn([]OwnRule{{Own: true, Glob: "/lib/libc.so.6"}, {Glob: "/src/third_party"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []*Own{nil, globs} {
		judge := judgeOf(own)
		for range 2 {
			for _, function := range []string{"f", "malloc", "__libc_start_main", ""} {
				for _, file := range []string{"", "/src/a.c", "/src/third_party/a.c", "./csu/a.c", "/usr/include/a.h"} {
					for _, object := range []string{"", "/opt/app", "/lib/libc.so.6", "/usr/lib/libx.so"} {
						if got, want := judge.is(function, file, object), own.Is(function, file, object); got != want {
							t.Errorf("%q %q %q: %v, alone %v", function, file, object, got, want)
						}
					}
				}
			}
		}
	}
}
