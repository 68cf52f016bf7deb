//go:build linux

package integration

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dropInDifferences are command lines of testdata/asis/cases.txt whose answers differ from LLVM's,
// for reasons in docs/drop-in.md. Replacing old by new in LLVM's output gives symfilter's.
var dropInDifferences = []struct{ name, old, new string }{
	{"data-object", `data\.c:11`, "data.c:3"},
	{"object-sections", `main::\$_0::operator\(\)\(int\) const\n(.*:0:3)\nshop::stock\n.*`, "shop::stock\n$1"},
	{"only-empty-ranges", `spare\n.*:4:29`, "??\n??:0:0"},
	{"discarded-code-range", `spare\n.*:4`, "??\n??:0"},
	{"split-dwarf-data", `\?\?:\?`, "DIR/calls.cc:9"},
	{"object-riscv", `warning: failed to compute relocation: .*\n`, ""},
	{"short-file", `section header table goes past the end of the file: e_shoff = (0x\w+)\nexit status 1`, "section headers: 17 at $1 reach beyond the end of the file (100 bytes); program headers: 6 at 0x40 reach beyond the end of the file (100 bytes)\nexit status 0"},
	{"frame-types", `standard error:\n`, "standard error:\nllvm-symbolizer: FRAME: symfilter does not read local variables, and answers as if functions had none\n"},
	{"output-style-json-frame", `standard error:\n`, "standard error:\nllvm-symbolizer: FRAME: symfilter does not read local variables, and answers as if functions had none\n"},
}

// Except for dropInDifferences, both outputs and the exit status must equal LLVM's.
func TestDropInAnswersToLLVMsOwnCases(t *testing.T) {
	need(t, "clang-19", "ld.lld-19", "llvm-dwp-19", "llvm-symbolizer-19", "llvm-addr2line-19")
	sources := filepath.Join(checkout, "integration", "testdata", "asis")
	dir, tools := t.TempDir(), t.TempDir()
	inFolder := func(env []string, command string) string {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), append(env, "PWD="+dir, "LC_ALL=C")...)
		var errors strings.Builder
		cmd.Stderr = &errors
		out, _ := cmd.Output()
		return fmt.Sprintf("%sstandard error:\n%sexit status %d", out, errors.String(), cmd.ProcessState.ExitCode())
	}
	if built := inFolder(nil, "sh "+filepath.Join(sources, "build.sh")+" "+sources); !strings.HasSuffix(built, "exit status 0") {
		t.Fatal(built)
	}
	for _, name := range []string{"llvm-symbolizer", "llvm-addr2line"} {
		other := strings.TrimSpace(run(t, nil, "sh", "-c", "command -v "+name+"-19"))
		run(t, nil, "mkdir", "-p", filepath.Join(tools, "other"), filepath.Join(tools, "own"))
		run(t, nil, "ln", "-s", other, filepath.Join(tools, "other", name))
		run(t, nil, "ln", "-s", command, filepath.Join(tools, "own", name))
	}
	address := addressesIn(t, dir)
	equal := 0
	for line := range strings.Lines(readFile(t, filepath.Join(sources, "cases.txt"))) {
		name, command, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			command = address(command)
			answer := func(folder string) string {
				return strings.ReplaceAll(inFolder([]string{"PATH=" + filepath.Join(tools, folder) + ":/usr/bin:/bin"}, command), dir, "DIR")
			}
			want, got := answer("other"), answer("own")
			if want == got {
				equal++
			}
			for _, d := range dropInDifferences {
				if d.name == name {
					if want == got {
						t.Errorf("the answers do not differ any more: remove %s from the list", name)
					}
					want = regexp.MustCompile(d.old).ReplaceAllString(want, d.new)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s\nLLVM (-), symfilter (+):\n%s", command, diff)
			}
		})
	}
	t.Logf("%d answers are equal, %d differ as documented", equal, len(dropInDifferences))
	if equal < 240 {
		t.Errorf("only %d answers are equal", equal)
	}
}

// addressesIn returns a function that replaces each @FILE:SYMBOL+N in a command by an address: N
// bytes after the symbol of a file in dir.
func addressesIn(t *testing.T, dir string) func(command string) string {
	t.Helper()
	place := regexp.MustCompile(`@([\w.]+):([\w.]+)(?:\+(\d+))?`)
	files := make(map[string]map[string]uint64)
	return func(command string) string {
		return place.ReplaceAllStringFunc(command, func(word string) string {
			m := place.FindStringSubmatch(word)
			if files[m[1]] == nil {
				files[m[1]] = addressesOf(t, filepath.Join(dir, m[1]))
			}
			addr, ok := files[m[1]][m[2]]
			offset, _ := strconv.ParseUint("0"+m[3], 10, 64)
			if !ok {
				t.Errorf("no symbol %s in %s", m[2], m[1])
			}
			return fmt.Sprintf("%#x", addr+offset)
		})
	}
}

// addressesOf returns the addresses of a file's symbols.
func addressesOf(t *testing.T, path string) map[string]uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]uint64)
	for _, s := range symbols {
		if _, ok := all[s.Name]; !ok {
			all[s.Name] = s.Value
		}
	}
	return all
}
