package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/findings"
)

func TestKinds(t *testing.T) {
	read := &findings.Finding{Tool: "memcheck", Kind: "InvalidRead"}
	lost := &findings.Finding{Tool: "memcheck", Kind: "Leak_DefinitelyLost"}
	reachable := &findings.Finding{Tool: "memcheck", Kind: "Leak_StillReachable"}
	race := &findings.Finding{Tool: "tsan", Kind: "data-race"}
	memory := &findings.Finding{Tool: "rtrace", Kind: "memory"}
	for words, want := range map[string]string{
		"all":                      "read lost reachable race memory",
		"none":                     "none",
		"Leak_*":                   "lost reachable",
		"InvalidRead, data-race":   "read race",
		"memcheck/*":               "read lost reachable",
		"tsan/data-race":           "race",
		"memory":                   "memory; unknown: memory",
		"rtrace/thread":            "",
		"*/Leak_DefinitelyLost":    "lost",
		"Leak_*,none":              "error: none cannot be combined with other kinds: remove none, or all other kinds",
		"[":                        `error: "[": a [ has no ], or it ends with \`,
		"":                         "error: an empty kind: write all, none, or kinds with commas between them",
		"Leak_*,":                  "error: an empty kind: write all, none, or kinds with commas between them",
		"InvalidReed":              "; unknown: InvalidReed, near InvalidRead",
		"invalid-read":             "; unknown: invalid-read, near InvalidRead",
		"memcheck/Invalidwrite":    "; unknown: memcheck/Invalidwrite, near InvalidWrite",
		"Memcheck/InvalidRead":     "; unknown: Memcheck/InvalidRead, near memcheck/InvalidRead",
		"ASan":                     "; unknown: ASan, near asan/*",
		"asan/InvalidRead":         "; unknown: asan/InvalidRead",
		"memchek/InvalidRead":      "; unknown: memchek/InvalidRead",
		"Leek_*":                   "; unknown: Leek_*, near Leak_DefinitelyLost",
		"Leak":                     "; unknown: Leak, near Leak_DefinitelyLost",
		"heap_buffer_overflow":     "; unknown: heap_buffer_overflow, near heap-buffer-overflow",
		"heap-use-afterfree":       "; unknown: heap-use-afterfree, near heap-use-after-free",
		"LeakDefinitelyLost":       "; unknown: LeakDefinitelyLost, near Leak_DefinitelyLost",
		strings.Repeat("x", 1<<16): "; unknown: " + strings.Repeat("x", 1<<16),
	} {
		k, unknown, err := ParseKinds(words)
		var has []string
		for i, x := range []*findings.Finding{read, lost, reachable, race, memory} {
			if k.Has(x) {
				has = append(has, []string{"read", "lost", "reachable", "race", "memory"}[i])
			}
		}
		got := strings.Join(has, " ")
		switch {
		case err != nil:
			got = "error: " + err.Error()
		case k.None():
			got = "none"
		case len(unknown) > 0:
			got += "; unknown: " + unknown[0].Word
			if unknown[0].Near != "" {
				got += ", near " + unknown[0].Near
			}
		}
		if got != want {
			t.Errorf("%.60q: %.200s, want %.200s", words, got, want)
		}
	}
	var usual Kinds
	if got := fmt.Sprint(usual.Has(read), usual.Has(lost), usual.Has(reachable), usual.Has(race), usual.None()); got != "true true false true false" {
		t.Errorf("without a flag: %s", got)
	}
}

// Each kind in the expected findings of the readers' tests must be known. Otherwise ParseKinds
// would report a gate on this kind as misspelt.
func TestKindsOfReportsAreKnown(t *testing.T) {
	line := regexp.MustCompile(`(?m)^[a-z]+/(\S+) "`)
	kinds := make(map[string]bool)
	for _, pattern := range []string{"../../valgrind/testdata/findings/*.txt", "../faults/testdata/findings/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range line.FindAllStringSubmatch(string(data), -1) {
				kinds[m[1]] = true
			}
		}
	}
	for kind := range kinds {
		if !isKnown(kind) {
			t.Errorf("%s is not known", kind)
		}
	}
	if len(kinds) < 25 {
		t.Errorf("%d kinds were compared: %v", len(kinds), kinds)
	}
}
