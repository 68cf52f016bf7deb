package llvmfilter

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	inventory = filepath.Join("..", "..", "testdata", "debug")
	handmade  = filepath.Join("..", "..", "filter", "testdata", "debug")
)

func tree(dir string) string { return "--debug-file-directory=" + dir }

// compare filters in by both filters.
func compare(t *testing.T, in string, flags ...string) {
	t.Helper()
	wantOut, wantSaid := byLLVM(t, in, flags)
	gotOut, gotSaid := byUs(t, in, flags, nil)
	if gotOut != wantOut {
		t.Errorf("standard output with %s: %s", flags, firstDifference(gotOut, wantOut))
	}
	if gotSaid != wantSaid {
		t.Errorf("standard error with %s: %s", flags, firstDifference(gotSaid, wantSaid))
	}
}

func TestRealLogs(t *testing.T) {
	for _, name := range []string{"crash.log", "clang-crash.log"} {
		log, err := os.ReadFile(filepath.Join("..", "..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, flags := range flagSets {
			compare(t, string(log), append([]string{tree(inventory)}, flags...)...)
		}
	}
}

// flagSets are what generated logs are filtered with.
var flagSets = [][]string{
	{},
	{"--color"},
	{"--color=never", "--no-demangle"},
	{"--color=always", "--functions=none"},
	{"--functions=short", "--basenames"},
	{"--color=always", "--functions=linkage", "--relativenames"},
}

// names are for symbol elements.
var names = []string{
	"_ZN2ns5innerEi", "main", "i", "", "_Z1fv", "__Z1fv", "___Z1fv", "____Z1fv", "_RNvC6_123foo3bar", " _Z1fv", "_Z1fv.cold", ".\x00", "_Z",
	"_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZZ1fvENKUlvE_clEv", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "_Z1f\x00v", "a b", "?",
}

// Generated logs come out as LLVM's filter prints them. It starts slowly: many
// logs are filtered in one run, with marks between them in both outputs.
func TestGeneratedLogs(t *testing.T) {
	need(t, llvmSymbolizer)
	batch, batches := 50, 20
	if long() {
		batch, batches = 100, 100
	}
	for i := range batches {
		flags := flagSets[i%len(flagSets)]
		t.Run(fmt.Sprint(i, flags), func(t *testing.T) {
			g := newGenerator(t, uint64(i))
			var logs []string
			var in strings.Builder
			for n := range batch {
				logs = append(logs, g.log())
				fmt.Fprintf(&in, "{{{reset}}}\n%s%d {{{Mark}}}\n%s", mark, n, logs[n])
			}
			all := append([]string{tree(inventory), tree(handmade)}, flags...)
			wantOut, wantSaid := byLLVM(t, in.String(), all)
			var r *rand.Rand
			if i%2 == 1 {
				r = g.Rand
			}
			gotOut, gotSaid := byUs(t, in.String(), all, r)
			if gotOut == wantOut && gotSaid == wantSaid {
				return
			}
			differ := 0
			outs, wantOuts, saids, wantSaids := split(gotOut), split(wantOut), split(gotSaid), split(wantSaid)
			for n := range logs {
				key := fmt.Sprint(n)
				if outs[key] == wantOuts[key] && saids[key] == wantSaids[key] {
					continue
				}
				if differ++; differ <= 3 {
					t.Errorf("log\n%s\nstandard output: %s\nstandard error: %s", escaped(logs[n]),
						firstDifference(outs[key], wantOuts[key]), firstDifference(saids[key], wantSaids[key]))
				}
			}
			t.Errorf("%d of %d logs differ", differ, len(logs))
		})
	}
}

const mark = "=== "

// split returns the parts of an output by the number in the mark before them.
func split(s string) map[string]string {
	parts := map[string]string{}
	for _, p := range strings.Split(s, mark) {
		n, _, _ := strings.Cut(p, " ")
		parts[n] += p
	}
	return parts
}

func newGenerator(t testing.TB, seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), symbols: names}
	for _, dir := range []string{inventory, handmade} {
		files, err := filepath.Glob(filepath.Join(dir, ".build-id", "*", "*.debug"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, f := range files {
			g.binaries = append(g.binaries, readBinary(t, f))
		}
	}
	return g
}
