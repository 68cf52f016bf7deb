package publish

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/findings"
)

// bytes of a printer's buffer
const bufferSize = 64 << 10

// maxTools is the maximum number of runs that GitHub accepts in a file. Each tool has one run.
const maxTools = 20

// ruleID returns the rule that a finding breaks, such as memcheck/InvalidRead. Besides the slash,
// the ID has only letters, digits, dots, hyphens and underscores, at most 255 bytes in all.
func ruleID(tool, kind string) string {
	id := identifier(tool, "symfilter") + "/" + identifier(kind, "error")
	return id[:min(len(id), maxName)]
}

// identifier returns s in the characters allowed in a rule's ID. If none of them is left, it
// returns empty.
func identifier(s, empty string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	s = strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'a' <= r|0x20 && r|0x20 <= 'z', r == '.', r == '_':
			return r
		}
		return '-'
	}, s), "-.")
	if s == "" {
		return empty
	}
	return s
}

// A tool describes a tool that finds errors: its ID, its name, and the URL of its documentation.
type tool struct{ id, name, uri string }

var tools = [...]tool{
	{"memcheck", "Valgrind Memcheck", "https://valgrind.org/docs/manual/mc-manual.html"},
	{"helgrind", "Valgrind Helgrind", "https://valgrind.org/docs/manual/hg-manual.html"},
	{"drd", "Valgrind DRD", "https://valgrind.org/docs/manual/drd-manual.html"},
	{"asan", "AddressSanitizer", "https://clang.llvm.org/docs/AddressSanitizer.html"},
	{"hwasan", "HWAddressSanitizer", "https://clang.llvm.org/docs/HardwareAssistedAddressSanitizerDesign.html"},
	{"lsan", "LeakSanitizer", "https://clang.llvm.org/docs/LeakSanitizer.html"},
	{"msan", "MemorySanitizer", "https://clang.llvm.org/docs/MemorySanitizer.html"},
	{"tsan", "ThreadSanitizer", "https://clang.llvm.org/docs/ThreadSanitizer.html"},
	{"ubsan", "UndefinedBehaviorSanitizer", "https://clang.llvm.org/docs/UndefinedBehaviorSanitizer.html"},
	{"libfuzzer", "libFuzzer", "https://llvm.org/docs/LibFuzzer.html"},
	{"crash", "Crashes", ""},
	{"rtrace", "sp-rtrace", ""},
	{"", "symfilter", ""},
}

// toolOf returns the tool with this ID. An unknown tool has only the ID, which is also its name.
func toolOf(id string) tool {
	for _, t := range tools {
		if t.id == id {
			return t
		}
	}
	return tool{id: id, name: visible(id, maxName)}
}

// tagsOf returns the tags of a rule, at most 5. GitHub shows at most 10.
func tagsOf(c *class) []string {
	tags := []string{"correctness"}
	if c.memory {
		tags[0] = "security"
	}
	return append(tags, weaknesses(c.cwe)...)
}

// weaknesses returns GitHub's tags for CWE numbers (Common Weakness Enumeration).
func weaknesses(cwe []int) (tags []string) {
	for _, n := range cwe {
		tags = append(tags, "external/cwe/cwe-"+strconv.Itoa(n))
	}
	return tags
}

// precision returns, in GitHub's words, how likely a finding of a class is a fault.
func (c *class) precision() string {
	if c.unsure {
		return "medium"
	}
	return "very-high"
}

// level returns the severity in the words of SARIF.
func (s severity) level() string { return [...]string{"note", "warning", "error"}[s] }

// weight ranks a class: by severity, then by accesses to memory, then by certainty.
func (c *class) weight() int {
	w := 4 * int(c.severity)
	if c.memory {
		w += 2
	}
	if !c.unsure {
		w++
	}
	return w
}

// byWeight sorts findings by weight, then by lost bytes. Equal findings keep their order.
func byWeight(all []*findings.Finding) {
	slices.SortStableFunc(all, func(a, b *findings.Finding) int {
		return cmp.Or(classIn(b).weight()-classIn(a).weight(), cmp.Compare(b.Bytes, a.Bytes))
	})
}
