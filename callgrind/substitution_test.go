package callgrind

import "testing"

// Names must be changed as cg_annotate, sed and Perl change them.
func TestSubstitutions(t *testing.T) {
	for _, c := range []struct{ expr, name, want string }{
		{"s/a/b/", "banana", "bbnana"},
		{"s/a/b/g", "banana", "bbnbnb"},
		{"s/A/b/gi", "banana", "bbnbnb"},
		{"s/.a$//", "banana", "bana"},
		{"s#/build-[0-9]+/#/build/#", "/build-42/a.c", "/build/a.c"},
		{`s/\/old\//\/new\//`, "/old/a.c", "/new/a.c"},
		{`s/(\w+)::(\w+)/\2::\1/`, "ns::f(int)", "f::ns(int)"},
		{`s/(\w+)::(\w+)/$2 ${1}x/`, "ns::f(int)", "f nsx(int)"},
		{`s/f/a$b\$c\n/`, "f", "a$b$cn"},
		{"s/x/y/", "f", "f"},

		{"a/b/", "", `"a/b/" is not of the form s/OLD/NEW/`},
		{"s", "", `"s" is not of the form s/OLD/NEW/`},
		{"s/a/b", "", `"s/a/b" has no third /: write s/OLD/NEW/`},
		{"s/a/b/x", "", `"s/a/b/x" has the flag 'x'; the flags are g and i`},
		{"s//b/", "", "the expression to replace is empty"},
		{"s/(/b/", "", "error parsing regexp: missing closing ): `(`"},
	} {
		s, err := ParseSubstitution(c.expr)
		got := s.replaced(c.name)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s of %q: %q, want %q", c.expr, c.name, got, c.want)
		}
	}
}

// A function's key must not include versions, levels of recursion and other facts that differ
// between builds.
func TestNamesAcrossBuilds(t *testing.T) {
	for _, c := range []struct {
		what func(string) string
		name string
		want string
	}{
		{withoutVersion, "libz.so.1.2.13", "libz.so"},
		{withoutVersion, "libc-2.31.so", "libc.so"},
		{withoutVersion, "libc.so.6", "libc.so"},
		{withoutVersion, "libc.so.debug", "libc.so.debug"},
		{withoutVersion, "ld-linux-x86-64.so.2", "ld-linux-x86-64.so"},
		{withoutVersion, "prog-1.2", "prog-1.2"},
		{withoutLevel, "fib'2", "fib"},
		{withoutLevel, "f'main'(below main)", "f"},
		{withoutLevel, "f(int)'2'main", "f(int)"},
		{withoutLevel, "operator<(A, B)'3", "operator<(A, B)"},
		{withoutLevel, "<T as Trait<&'a str>>::f", "<T as Trait<&'a str>>::f"},
		{withoutLevel, "<T as Trait<&'a str>>::f'2", "<T as Trait<&'a str>>::f"},
		{withoutHash, "core::panicking::panic::h0123456789abcdef", "core::panicking::panic"},
		{withoutHash, "core::panicking::panic::h0123456789abcdeg", "core::panicking::panic::h0123456789abcdeg"},
		{withoutHash, "::h0123456789abcdef", "::h0123456789abcdef"},
		{calledAs, "/build/old/prog -n 5", "prog -n 5"},
		{calledAs, "prog", "prog"},
	} {
		if got := c.what(c.name); got != c.want {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
}
