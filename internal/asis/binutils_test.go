package asis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The expected texts are the output of binutils 2.40, except for the first one. There, binutils
// lacks the inlined call, since it does not read DW_FORM_rnglistx.
func TestAnswersAreThoseOfBinutils(t *testing.T) {
	for _, test := range []struct{ name, args, in, want string }{
		{"one line", "-afiCps", "3fa6\n", "0x0000000000003fa6: Server::cost(Request const&) const at server.cc:34\n (inlined by) Server::answer() at server.cc:41\n"},
		{"a symbol", "-f", "main+1\n", "_ZN5QueueI7RequestEC2Ev\n/src/server/server.cc:52\n"},
		{"callers", "-fi", "  0x4031 x\n", "_ZN6Server7receiveEi\n/src/server/server.cc:29\nmain\n/src/server/server.cc:54\n"},
		{"a demangled symbol", "-a", "Server::answer()\n", "0x0000000000003f50\n/src/server/server.cc:38\n"},
		{"no line", "-f -j .text", "40\n", "deregister_tm_clones\ncrtstuff.c:?\n"},
		{"no address", "-f", "\n", "??\n??:0\n"},
		{"a word", "-pf", "zz\n", "?? ??:0\n"},
		{"not in the file", "", "ffffffffffffffffffff\n", "??:0\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, out, said := session(t, "addr2line", append(strings.Fields(test.args), "-e", program)...)
			if code := s.Run(strings.NewReader(test.in)); code != 0 || said.Len() > 0 {
				t.Errorf("exit code %d, said %q", code, said)
			}
			if got := out.String(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// Words must be parsed as by getopt_long, with the messages of binutils.
func TestBinutilsCommandLinesAreReadByGetopt(t *testing.T) {
	p := Named("addr2line")
	l := p.Parse("addr2line", "", strings.Fields("3fa6 --ex app -fiC --func --sec=.text -- -1"))
	if l.Refusal() != "" || l.file != "app" || !l.named || !l.inlines || l.mangled || l.section != ".text" || strings.Join(l.Questions, " ") != "3fa6 -1" {
		t.Errorf("got %+v", l)
	}
	for args, want := range map[string]string{
		"-z":             "addr2line: invalid option -- 'z'\n" + binutilsUsage,
		"-fe":            "addr2line: option requires an argument -- 'e'\n" + binutilsUsage,
		"--exe":          "addr2line: option '--exe' requires an argument\n" + binutilsUsage,
		"--re=1":         "addr2line: option '--recurse-limit' doesn't allow an argument\n" + binutilsUsage,
		"--exex":         "addr2line: unrecognized option '--exex'\n" + binutilsUsage,
		"--demangle=foo": "addr2line: unknown demangling style `foo'\n",
	} {
		if got := p.Parse("addr2line", "", strings.Fields(args)).Refusal(); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestFilesThatBinutilsCannotReadEndTheSession(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	text, library, empty := write("text", "text of some length"), write("library", "!<arch>\n"), write("empty", "")
	for args, want := range map[string]string{
		"-e " + dir + "/none":            "'" + dir + "/none': No such file\n",
		"-e " + dir:                      "Warning: '" + dir + "' is a directory\n",
		"-e " + text:                     text + ": file format not recognized\n",
		"-e " + library:                  library + ": cannot get addresses from archive\n",
		"-e " + empty:                    "",
		"-j .none -e " + program:         program + ": cannot find section .none\n",
		"-b none -e " + program:          program + ": invalid bfd target\n",
		"-b elf32-i386 -s -e " + program: "",
	} {
		s, _, said := session(t, "addr2line", append(strings.Fields(args), "1")...)
		code := s.Run(nil)
		if want != "" {
			want = "addr2line: " + want
		}
		if ok := strings.Contains(args, "elf32"); said.String() != want || code != 1 != ok {
			t.Errorf("%s: exit code %d, said %q, want %q", args, code, said, want)
		}
	}
}

// Names of C++ must be printed in the form of libiberty.
func TestNamesAreThoseOfLibiberty(t *testing.T) {
	s, _, _ := session(t, "addr2line", "-e", program)
	b := &binutils{Session: s}
	for name, want := range map[string]string{
		"_ZNSt6vectorIS_IiSaIiEESaIS1_EE4sizeEv": "std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> > > >::size()",
		"_ZrsR1AS_ILb0EE":                        "operator>>(A&, A<false>)",
		"_ZZ4mainENKUlifE0_clEif":                "main::{lambda(int, float)#2}::operator()(int, float) const",
		"_Z3foov.isra.0.cold":                    "foo() [clone .isra.0] [clone .cold]",
		"._Z3foov@@V1":                           ".foo()@@V1",
		"_RNvCs1234_7mycrate3foo":                "mycrate::foo",
		"plain":                                  "plain",
		"_ZN12_GLOBAL__N_11fIN3BoxIiEEEEvT_":     "void (anonymous namespace)::f<Box<int> >(Box<int>)",
	} {
		if got := b.demangled(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Each answer must arrive before the client writes its next question.
func TestAnswersOfBinutilsAreOutAtOnce(t *testing.T) {
	s, _, _ := session(t, "addr2line", "-e", program)
	takeTurns(t, s, "3fa6\n", "/src/server/server.cc:34\n")
}
