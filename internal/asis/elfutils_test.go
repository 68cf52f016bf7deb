package asis

import (
	"strings"
	"testing"
)

// The expected texts are output of elfutils 0.188 for a program with .debug_aranges.
func TestAnswersAreThoseOfElfutils(t *testing.T) {
	const file = "../../testdata/backtraces/programs/traces"
	const length = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >::_M_length(unsigned long)"
	for _, test := range []struct{ name, args, in, want, said string }{
		{"a line", "", "2d92\n", "/usr/include/c++/12/bits/basic_string.h:229:26\n", ""},
		{"an inlined call", "-afC", "0x2d92", "0x0000000000002d92\n" + length + " inlined at /usr/include/c++/12/bits/basic_string.h:267:11 in print()\n/usr/include/c++/12/bits/basic_string.h:229:26\n", ""},
		{"pretty", "-fxs --pretty-print", "2d92", "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_lengthEm _ZL5printv+0x3b2 (.text) at basic_string.h:229:26\n", ""},
		{"no symbol", "-S", "5000\n0\n400000\n", "()+0x5000\n??:0\n()+0\n??:0\n??\n??:0\n", ""},
		{"the end of a section", "-x", "61c0", "_end (.bss)\n??:0\n", ""},
		{"a symbol", "-f", "main+1", "main\n/src/shop/traces.cc:189:33\n", ""},
		{"no question", "-a", "\nnowhere\n1 2\n", "", "eu-addr2line: cannot find symbol 'nowhere'\neu-addr2line: cannot find symbol '1 2'\n"},
		{"beyond a symbol", "-a", "main+0x10000", "0x0000000000012330\n??:0\n", "eu-addr2line: offset 0x10000 lies outside contents of 'main'\n"},
		{"a section", "-j .text", "10", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, out, said := session(t, "eu-addr2line", append(strings.Fields(test.args), "-e", file)...)
			code := s.Run(strings.NewReader(test.in))
			if (code != 0) != (test.want == "") {
				t.Errorf("exit code %d", code)
			}
			if got := out.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if got := said.String(); got != test.said {
				t.Errorf("said %q, want %q", got, test.said)
			}
		})
	}
}

// Flags that symfilter lacks and files that it cannot read must be refused.
func TestElfutilsCommandLines(t *testing.T) {
	p := Named("eu-addr2line")
	if l := p.Parse("eu-addr2line", "", strings.Fields("-Cx --exec app -fiS -A --relative 1")); l.Refusal() != "" || l.file != "app" || l.mangled || !l.symbols || l.paths != relativePaths {
		t.Errorf("got %+v, %q", l, l.Refusal())
	}
	for args, want := range map[string]string{
		"-k":            "eu-addr2line: -k needs a running kernel, a process or a core dump, which symfilter does not read; name the file with -e\n",
		"-p 1":          "eu-addr2line: -p needs a running kernel, a process or a core dump, which symfilter does not read; name the file with -e\n",
		"--flags":       "eu-addr2line: --flags needs the flags of line tables, which symfilter does not read\n",
		"-z":            "eu-addr2line: invalid option -- 'z'\n" + elfutilsUsage,
		"--kernel=file": "eu-addr2line: option '--kernel' doesn't allow an argument\n" + elfutilsUsage,
	} {
		if got := p.Parse("eu-addr2line", "", strings.Fields(args)).Refusal(); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	for file, want := range map[string]string{"none": "none: No such file or directory\n", ".": ".: invalid file descriptor\n", "elfutils_test.go": "elfutils_test.go: not a valid ELF file\n"} {
		s, _, said := session(t, "eu-addr2line", "-e", file, "1")
		if code := s.Run(nil); code != 1 || said.String() != "eu-addr2line: "+want {
			t.Errorf("%s: exit code %d, said %q", file, code, said)
		}
	}
}
