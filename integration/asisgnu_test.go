//go:build linux

package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// gnuPrograms returns the tested files, by name.
func gnuPrograms(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	ledger := filepath.Join(checkout, "integration", "testdata", "twin", "ledger.cc")
	files := map[string]string{
		"libc": "/lib/x86_64-linux-gnu/libc.so.6",
		"git":  strings.TrimSpace(run(t, nil, "sh", "-c", "command -v git")),
	}
	for _, name := range []string{"fault", "traces", "libledger.so"} {
		files[name] = filepath.Join(checkout, "testdata", "backtraces", "programs", name)
	}
	for name, command := range map[string]string{
		"gcc":   "g++ -gdwarf-4",
		"clang": "clang++-19 -gdwarf-5",
		"split": "clang++-19 -gdwarf-5 -gsplit-dwarf",
	} {
		files[name] = filepath.Join(dir, name)
		words := append(strings.Fields(command), "-O2", "-fPIC", "-shared", ledger, "-o", files[name])
		run(t, nil, words[0], words[1:]...)
	}
	// two copies of the program gcc, which share a supplementary file
	files["supplementary"] = filepath.Join(dir, "supplementary")
	other := filepath.Join(dir, "other")
	run(t, nil, "cp", files["gcc"], files["supplementary"])
	run(t, nil, "cp", files["gcc"], other)
	run(t, nil, "dwz", "-r", "-m", filepath.Join(dir, "shared.alt"), "-h", files["supplementary"], other)
	files["lexical"] = filepath.Join(dir, "lexical")
	run(t, nil, "gcc", "-g", "-O2", "-shared", "-fPIC", filepath.Join(checkout, "integration", "testdata", "twin", "lexical.c"), "-o", files["lexical"])
	// stripped has a debug link, bare has neither symbols nor debug information
	files["stripped"], files["bare"] = filepath.Join(dir, "stripped"), filepath.Join(dir, "bare")
	run(t, nil, "objcopy", "--only-keep-debug", files["gcc"], filepath.Join(dir, "gcc.debug"))
	run(t, nil, "strip", files["gcc"], "-o", files["bare"])
	run(t, nil, "objcopy", "--add-gnu-debuglink="+filepath.Join(dir, "gcc.debug"), files["bare"], files["stripped"])
	run(t, nil, "objcopy", "--remove-section=.note.gnu.build-id", files["bare"])
	for name, file := range files {
		if name != "bare" {
			need(t, file)
		}
	}
	return files
}

// gnuQuestions returns n addresses: of code, of data, and outside of all sections.
func gnuQuestions(t *testing.T, file string, n int) []byte {
	t.Helper()
	in := append(questions(t, file, n*8/10, true, ""), questions(t, file, n/10, false, "")...)
	random := rand.New(rand.NewPCG(uint64(n), 1))
	for range n - n*8/10 - n/10 {
		in = fmt.Appendf(in, "%x\n", random.Uint64N(1<<32))
	}
	return in
}

// flagSets returns all combinations of the one-letter flags in letters. Each combination begins
// with -a, which makes the tools mark the beginning of each answer.
func flagSets(letters string) (all []string) {
	for set := range 1 << len(letters) {
		word := "-a"
		for i := range len(letters) {
			if set>>i&1 != 0 {
				word += letters[i : i+1]
			}
		}
		all = append(all, word)
	}
	return all
}

// gnuAnswerStart matches the beginning of an answer.
var gnuAnswerStart = regexp.MustCompile(`(?m)^0x[0-9a-f]{8,}(:|$)`)

// gnuAnswers splits an output into answers.
func gnuAnswers(out string) (answers []string) {
	starts := gnuAnswerStart.FindAllStringIndex(out, -1)
	for i, at := range starts {
		end := len(out)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		answers = append(answers, out[at[0]:end])
	}
	return answers
}

var gnuPlace = regexp.MustCompile(`(?m)([^\s:]*):(\d+|\?)(?::\d+| \(discriminator \d+\))?$`)

// gnuPlaces returns the base names and the lines of an answer.
func gnuPlaces(answer string) (all []string) {
	for _, m := range gnuPlace.FindAllStringSubmatch(answer, -1) {
		line := m[2]
		if line == "?" {
			line = "0"
		}
		all = append(all, path.Base(m[1])+":"+line)
	}
	return all
}

// sameNames reports whether the answers a and b have the same functions. It also returns true if
// the numbers of calls differ, or if b has no file.
func sameNames(a, b string) bool {
	places := gnuPlaces(b)
	if len(places) != len(gnuPlaces(a)) || places[0] == "??:0" {
		return true
	}
	return gnuPlace.ReplaceAllString(a, "") == gnuPlace.ReplaceAllString(b, "")
}

// isGap reports whether an answer of symfilter has no line, but may have the file of the symbol,
// and LLVM knows no place at all. addr2line may then print the line of the preceding function.
func isGap(answer, third string) bool {
	places := gnuPlace.FindAllStringSubmatch(answer, -1)
	return len(places) == 1 && places[0][2] == "?" && slices.Equal(gnuPlaces(third), []string{"??:0"})
}

// The answers may differ from addr2line's only as described in docs/drop-in.md, and only if
// llvm-addr2line finds the same files and lines as symfilter.
func TestDropInAnswersAreThoseOfBinutils(t *testing.T) {
	need(t, "addr2line", "llvm-addr2line-19", "git", "gcc", "g++", "clang-19", "dwz", "objcopy", "strip")
	files := gnuPrograms(t)
	n, step := 300, len(files) // each file gets some sets
	if long() {
		n, step = 100_000, 1
	}
	for turn, name := range slices.Sorted(maps.Keys(files)) {
		for i, set := range flagSets("fiCps") {
			if i%step == turn%step {
				compareGNU(t, "addr2line", name, files[name], n, set)
			}
		}
	}
}

// As with Binutils, the answers may differ only as described in docs/drop-in.md. For libc, only
// lines are compared, since the functions at one address differ.
func TestDropInAnswersAreThoseOfElfutils(t *testing.T) {
	need(t, "eu-addr2line", "llvm-addr2line-19", "git", "gcc", "g++", "clang-19", "dwz", "objcopy", "strip")
	files := gnuPrograms(t)
	n, step := 300, len(files)
	if long() {
		n, step = 100_000, 1
	}
	sets := flagSets("fiCsS")
	for _, set := range flagSets("fisx") {
		sets = append(sets, set+" --pretty-print")
	}
	for turn, name := range slices.Sorted(maps.Keys(files)) {
		for i, set := range sets {
			if i%step == turn%step && (name != "libc" || !strings.Contains(set, "f")) {
				compareGNU(t, "eu-addr2line", name, files[name], n, set)
			}
		}
	}
}

// compareGNU compares the answers of a tool, and of symfilter under the tool's name, for n
// addresses of a file and a set of flags.
func compareGNU(t *testing.T, tool, name, file string, n int, set string) {
	t.Run(name+" "+set, func(t *testing.T) {
		in, args := gnuQuestions(t, file, n), append(strings.Fields(set), "-e", file)
		// elfutils exits with 1 after an address without a unit
		want, wantSaid := outputOf(t, tool, tool, args, in, 1)
		got, said := outputOf(t, command, tool, args, in, 1)
		// LLVM has no flags for symbols
		flags := strings.NewReplacer("S", "", "x", "", "--pretty-print", "-p").Replace(set)
		third, _ := asOther(t, "llvm-addr2line-19", "llvm-addr2line", append(strings.Fields(flags), "-e", file), in)
		if want == "" || wantSaid != said {
			t.Errorf("%s prints %d bytes, and says\n%s\nsymfilter says\n%s", tool, len(want), wantSaid, said)
		}
		answers, others, thirds := gnuAnswers(want), gnuAnswers(got), strings.Split("\n"+third, "\n0x")[1:]
		if len(answers) != n || len(others) != n || len(thirds) != n {
			t.Fatalf("%s gives %d answers, symfilter %d, LLVM %d, to %d questions", tool, len(answers), len(others), len(thirds), n)
		}
		equal, alone, wrong := 0, 0, 0
		for i, answer := range answers {
			switch {
			case answer == others[i]:
				equal++
			case slices.Equal(gnuPlaces(others[i]), gnuPlaces(thirds[i])) && (sameNames(answer, others[i]) || !slices.Equal(gnuPlaces(answer), gnuPlaces(others[i]))):
				alone++
			case isGap(others[i], thirds[i]) && gnuPlace.ReplaceAllString(answer, "") == gnuPlace.ReplaceAllString(others[i], ""):
				alone++
			default:
				if wrong++; wrong < 4 {
					t.Errorf("%s (-), symfilter (+):\n%s\nLLVM: %s", tool, cmp.Diff(answer, others[i]), thirds[i])
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%d answers differ", wrong)
		}
		t.Logf("%d answers are equal; in %d %s differs from LLVM, too", equal, alone, tool)
	})
}

// gnuCommands are command lines whose whole output is compared. FILE is a program.
var gnuCommands = []string{
	"-e FILE 1a25", "-fe FILE 0", "-pfiCe FILE main main+4 main+0x10 .text+1 none", "--exe=FILE --func --inl --demangle=auto --pretty 1160",
	"-C -f -j .text -e FILE 10 20", "--section .data -fe FILE 0 8 fffff", "-j .comment -e FILE 1", "-r -R -e FILE 0x1160 zz -- -1",
	"-b elf64-x86-64 -e FILE 1160", "-fsape FILE 1160 1168",
}

// The output must equal addr2line's even if arguments or lines of standard input are not addresses.
func TestDropInCommandsPrintWhatBinutilsPrints(t *testing.T) {
	need(t, "addr2line", "gcc", "g++", "dwz")
	files := gnuPrograms(t)
	for _, name := range []string{"gcc", "libledger.so", "bare"} {
		for _, line := range gnuCommands {
			args := strings.Fields(strings.ReplaceAll(line, "FILE", files[name]))
			want, _ := asOther(t, "addr2line", "addr2line", args, nil)
			got, _ := asOther(t, command, "addr2line", args, nil)
			if diff := cmp.Diff(want, got); diff != "" || want == "" {
				t.Errorf("%s %s: binutils (-), symfilter (+):\n%s", name, line, diff)
			}
		}
	}
	in := []byte("\n1160\n  1160 more\n0X1160\nmain\nmain + 1\n+5\n_ZN\x001\nffffffffffffffffffff")
	args := []string{"-afe", files["gcc"]}
	want, _ := asOther(t, "addr2line", "addr2line", args, in)
	got, _ := asOther(t, command, "addr2line", args, in)
	if diff := cmp.Diff(want, got); diff != "" || want == "" {
		t.Errorf("binutils (-), symfilter (+):\n%s", diff)
	}
}
