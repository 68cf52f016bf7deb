package asis

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/symbolize"
)

func TestNamesOfProgramsAreRecognized(t *testing.T) {
	for word, want := range map[string]string{
		"llvm-symbolizer":                        "llvm-symbolizer",
		"/usr/bin/llvm-symbolizer-19":            "llvm-symbolizer",
		"x86_64-linux-gnu-llvm-symbolizer-19.1":  "llvm-symbolizer",
		"llvm-addr2line":                         "llvm-addr2line",
		"tools/aarch64-linux-gnu-llvm-addr2line": "llvm-addr2line",
		"addr2line":                              "addr2line",
		"x86_64-linux-gnu-addr2line-2.40":        "addr2line",
		"tools/eu-addr2line":                     "eu-addr2line",
	} {
		if p := Named(word); p == nil || p.Name != want {
			t.Errorf("%s: got %v, want %s", word, p, want)
		}
	}
	for _, word := range []string{"symfilter", "symfilterd", "", "-", "my-llvm-symbolizer-wrapper", "llvm-symbolizer2", "myaddr2line"} {
		if p := Named(word); p != nil {
			t.Errorf("%q: got %v", word, p)
		}
	}
}

// line parses a command line of the program called name.
func line(t *testing.T, name, env string, args ...string) *Line {
	t.Helper()
	p := Named(name)
	if p == nil {
		t.Fatalf("no program %s", name)
	}
	return p.Parse(name, env, args)
}

func TestFlagsAreReadAsByLLVM(t *testing.T) {
	l := line(t, "llvm-symbolizer", "--functions=none -a", "-fpe", "app", "-s", "--no-inlines", "--output-style", "GNU", "--adjust-vma=0x10", "0x1", "--print-source-context-lines=3", "2")
	if got := l.Refusal(); got != "" {
		t.Fatal(got)
	}
	if l.object != "app" || !l.pretty || !l.addresses || l.paths != onlyNames || l.inlines || l.style != styleGNU ||
		l.Names != symbolize.LinkageNames || l.adjust != 16 || l.context != 3 || strings.Join(l.Questions, " ") != "0x1 2" {
		t.Errorf("got %+v", l)
	}
	if l := line(t, "llvm-addr2line", ""); l.Names != symbolize.NoNames || l.inlines || !l.mangled || l.style != styleGNU {
		t.Errorf("the defaults of llvm-addr2line are %+v", l)
	}
	if l := line(t, "llvm-addr2line", "", "-fiCe", "app"); l.Names != symbolize.LinkageNames || !l.inlines || l.mangled || l.object != "app" {
		t.Errorf("llvm-addr2line -fiCe app is %+v", l)
	}
}

func TestWrongCommandLinesAreRefused(t *testing.T) {
	for args, want := range map[string]string{
		"--foo":                   "error: unknown argument '--foo'\n",
		"-x":                      "error: unknown argument '-x'\n",
		"-fx":                     "error: unknown argument '-x'\n",
		"--demangle=true":         "error: unknown argument '--demangle=true'\n",
		"--obj":                   "error: --obj: missing argument\n",
		"-ape":                    "error: -e: missing argument\n",
		"-axy --foo -e":           "error: -e: missing argument\nerror: unknown argument '-x'\nerror: unknown argument '-y'\nerror: unknown argument '--foo'\n",
		"--adjust-vma=x":          "--adjust-vma=: expected a non-negative integer, but got 'x'",
		"--build-id=xyz":          "--build-id=: expected a build ID, but got 'xyz'\n",
		"--build-id=ab --obj=app": "error: cannot specify both --build-id and --obj\n",
		"--dia":                   "error: --dia reads PDB files of Windows; symfilter reads ELF files\n",
		"--dsym-hint=a.dSYM":      "error: --dsym-hint is for Mach-O files of macOS; symfilter reads ELF files\n",
		"--relative-address":      "error: --relative-address is for addresses relative to the image base of COFF files of Windows; symfilter reads ELF files\n",
		"--\x1b[31m":              "error: unknown argument '--\\x1b[31m'\n",
	} {
		if got := line(t, "llvm-symbolizer", "", strings.Fields(args)...).Refusal(); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

// If a response file is too large or nested too deeply, the word that names it must be kept.
func TestResponseFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return "@" + path
	}
	small := write("small", "-s --color")
	large := write("large", strings.Repeat("-s ", maxResponse/3+1))
	endless := write("endless", "-s @"+filepath.Join(dir, "endless"))
	word := "@" + filepath.Join(dir, "wide") // 3^16 words
	wide := write("wide", word+" "+word+" "+word+" "+strings.Repeat(" ", maxResponse/8))
	for _, test := range []struct {
		name  string
		words []string
		want  int // words
	}{
		{"small", []string{"a", small, "b"}, 4},
		{"too large", []string{large}, 1},
		{"not there", []string{"@" + dir + "/nowhere"}, 1},
		{"a folder", []string{"@" + dir}, 1},
		{"names itself", []string{endless}, maxResponseDepth + 1},
		{"names itself three times", []string{wide}, 15},
	} {
		if got := Expand(test.words); len(got) != test.want {
			t.Errorf("%s: %d words, want %d", test.name, len(got), test.want)
		}
	}
}
