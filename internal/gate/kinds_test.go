package gate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/report"
)

func TestKinds(t *testing.T) {
	read := &report.Finding{Tool: "memcheck", Kind: "InvalidRead"}
	lost := &report.Finding{Tool: "memcheck", Kind: "Leak_DefinitelyLost"}
	reachable := &report.Finding{Tool: "memcheck", Kind: "Leak_StillReachable"}
	race := &report.Finding{Tool: "tsan", Kind: "data race"}
	memory := &report.Finding{Tool: "rtrace", Kind: "memory"}
	for words, want := range map[string]string{
		"all":                      "read lost reachable race memory",
		"none":                     "none",
		"Leak_*":                   "lost reachable",
		"InvalidRead, data race":   "read race",
		"memcheck/*":               "read lost reachable",
		"tsan/data race":           "race",
		"memory":                   "memory; unknown: memory",
		"*/Leak_DefinitelyLost":    "lost",
		"Leak_*,none":              "lost reachable; unknown: none",
		"[":                        `error: "[": a bracket or a backslash is not closed`,
		"":                         "error: an empty kind: write all, none, or kinds with commas between them",
		"Leak_*,":                  "error: an empty kind: write all, none, or kinds with commas between them",
		"InvalidReed":              `error: there is no kind "InvalidReed"; did you mean InvalidRead?`,
		"invalid-read":             `error: there is no kind "invalid-read"; did you mean InvalidRead?`,
		"memcheck/Invalidwrite":    `error: there is no kind "memcheck/Invalidwrite"; did you mean InvalidWrite?`,
		"Leek_*":                   `error: there is no kind "Leek_*"; did you mean Leak_DefinitelyLost?`,
		"Leak":                     `error: there is no kind "Leak"; did you mean Leak_DefinitelyLost?`,
		"heap_buffer_overflow":     `error: there is no kind "heap_buffer_overflow"; did you mean heap-buffer-overflow?`,
		"heap-use-afterfree":       `error: there is no kind "heap-use-afterfree"; did you mean heap-use-after-free?`,
		"LeakDefinitelyLost":       `error: there is no kind "LeakDefinitelyLost"; did you mean Leak_DefinitelyLost?`,
		strings.Repeat("x", 1<<16): "; unknown: " + strings.Repeat("x", 1<<16),
	} {
		k, unknown, err := ParseKinds(words)
		var has []string
		for i, x := range []*report.Finding{read, lost, reachable, race, memory} {
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
			got += "; unknown: " + strings.Join(unknown, " ")
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
