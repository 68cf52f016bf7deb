//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asOther starts symfilter under the name of another symbolizer, and returns both outputs.
func asOther(t *testing.T, file, name string, args []string, in []byte) (stdout, stderr string) {
	t.Helper()
	return outputOf(t, file, name, args, in, 0)
}

// outputOf starts file under the given name, and returns both outputs. The exit code must not
// exceed most.
func outputOf(t *testing.T, file, name string, args []string, in []byte, most int) (stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(file, args...)
	cmd.Args[0] = name
	cmd.Stdin = bytes.NewReader(in)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil && (cmd.ProcessState == nil || cmd.ProcessState.ExitCode() < 0 || cmd.ProcessState.ExitCode() > most) {
		t.Fatalf("%s: %v\n%s", cmd, err, said.Bytes())
	}
	return out.String(), said.String()
}

// questions returns n lines: prefix, and a random address in the sections of a file that have code,
// or data if code is not set.
func questions(t *testing.T, file string, n int, code bool, prefix string) []byte {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*elf.Section
	size := uint64(0)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Addr > 0 && (s.Flags&elf.SHF_EXECINSTR != 0) == code {
			all = append(all, s)
			size += s.Size
		}
	}
	random := rand.New(rand.NewPCG(uint64(n), size))
	var in bytes.Buffer
	for range n {
		at := random.Uint64N(size)
		for _, s := range all {
			if at < s.Size {
				fmt.Fprintf(&in, "%s0x%x\n", prefix, s.Addr+at)
				break
			}
			at -= s.Size
		}
	}
	return in.Bytes()
}

// missingDeclarations match answers in which LLVM lacks the file of a declaration, since the file's
// number is in an abbreviation: see docs/drop-in.md.
var missingDeclarations = []struct{ lacks, has *regexp.Regexp }{
	{regexp.MustCompile(`(?m)^  Function start filename: $`), regexp.MustCompile(`(?m)^  Function start filename: .*$`)},
	{regexp.MustCompile(`"StartFileName":""`), regexp.MustCompile(`"StartFileName":"[^"]*"`)},
	{regexp.MustCompile(`(?m)^\?\?:\?$`), regexp.MustCompile(`(?m)^.*:\d+$`)},
}

// sameAnswer compares got with LLVM's answer. same is set if they are equal. allowed is set if they
// differ at most in files of declarations that only got has.
func sameAnswer(want, got string) (same, allowed bool) {
	if want == got {
		return true, true
	}
	for _, m := range missingDeclarations {
		lines, others := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
		if len(lines) != len(others) || !m.lacks.MatchString(want) {
			continue
		}
		equal := true
		for i, line := range lines {
			if m.lacks.MatchString(line) {
				line, others[i] = m.has.ReplaceAllString(m.lacks.ReplaceAllString(line, "="), "="), m.has.ReplaceAllString(others[i], "=")
			}
			equal = equal && line == others[i]
		}
		if equal {
			return false, true
		}
	}
	return false, false
}

// dropInStyles are command lines of LLVM's tools and of symfilter, without the file. prefix begins
// each line of input, and end is the text that ends an answer.
var dropInStyles = []struct {
	name, args, prefix, end string
	data                    bool
}{
	{"llvm-symbolizer", "", "", "\n\n", false},
	{"llvm-symbolizer", "-a --no-inlines --relativenames --no-demangle", "CODE ", "\n\n", false},
	{"llvm-symbolizer", "-p --functions=short --basenames", "", "\n\n", false},
	{"llvm-symbolizer", "--verbose", "", "\n\n", false},
	{"llvm-symbolizer", "-a --output-style=GNU", "", "\n0x", false},
	{"llvm-symbolizer", "--output-style=JSON", "", "\n", false},
	{"llvm-symbolizer", "", "DATA ", "\n\n", true},
	{"llvm-symbolizer", "--output-style=JSON", "DATA ", "\n", true},
	{"llvm-addr2line", "-afiC", "", "\n0x", false},
	{"llvm-addr2line", "-asf", "", "\n0x", false},
}

// For random addresses, the answers may differ from LLVM's only as described in docs/drop-in.md.
func TestDropInAnswersAreThoseOfLLVM(t *testing.T) {
	need(t, "llvm-symbolizer-19", "llvm-addr2line-19", "git", "g++", "clang-19")
	twin := newTraceTwin(t, "ledger", twinBuild{flags: []string{"-gdwarf-5"}, link: []string{"-shared", "-fPIC"}})
	files := map[string]string{
		"libc": "/lib/x86_64-linux-gnu/libc.so.6",
		"git":  strings.TrimSpace(run(t, nil, "sh", "-c", "command -v git")),
		"twin": filepath.Join(twin.whole, "libledger.so"),
	}
	for _, name := range []string{"fault", "traces", "libledger.so"} {
		files[name] = filepath.Join(checkout, "testdata", "backtraces", "programs", name)
	}
	files["split"] = filepath.Join(t.TempDir(), "split.so")
	run(t, nil, "clang-19", "-g", "-gsplit-dwarf", "-O2", "-fPIC", "-shared", filepath.Join(checkout, "integration", "testdata", "twin", "ledger.cc"), "-o", files["split"])
	for name, file := range files {
		need(t, file)
		n := 1000
		if name == "libc" || long() {
			n = 5000
		}
		for _, style := range dropInStyles {
			t.Run(name+" "+style.name+" "+style.prefix+style.args, func(t *testing.T) {
				in := questions(t, file, n, !style.data, style.prefix)
				args := append(strings.Fields(style.args), "-e", file)
				want, wantSaid := asOther(t, style.name+"-19", style.name, args, in)
				got, said := asOther(t, command, style.name, args, in)
				if want == "" || wantSaid != said {
					t.Errorf("LLVM prints %d bytes, and says\n%s\nsymfilter says\n%s", len(want), wantSaid, said)
				}
				answers, others := strings.Split(want, style.end), strings.Split(got, style.end)
				if len(answers) != len(others) || len(answers) < n {
					t.Fatalf("LLVM gives %d answers, symfilter %d, to %d questions", len(answers), len(others), n)
				}
				equal, allowed, wrong := 0, 0, 0
				for i, answer := range answers {
					switch same, ok := sameAnswer(answer, others[i]); {
					case same:
						equal++
					case ok:
						allowed++
					default:
						if wrong++; wrong < 4 {
							t.Errorf("LLVM (-), symfilter (+):\n%s", cmp.Diff(answer, others[i]))
						}
					}
				}
				if wrong > 0 {
					t.Errorf("%d answers differ", wrong)
				}
				t.Logf("%d answers are equal, %d have a declaration's file that LLVM does not read", equal, allowed)
			})
		}
	}
}

func TestTheCommandsForADropInAnswer(t *testing.T) {
	dir := t.TempDir()
	for _, line := range linesFor(t, "drop-in.md", "TestTheCommandsForADropInAnswer") {
		line = strings.ReplaceAll(line, "testdata/", filepath.Join(checkout, "testdata")+"/")
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(command)+":/usr/bin:/bin")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		if strings.Contains(line, "programs") && (!strings.HasPrefix(string(out), "main\n") || !strings.Contains(string(out), "fault.cc:")) {
			t.Errorf("%s prints\n%s", line, out)
		}
	}
}
