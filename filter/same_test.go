package filter

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/pagetest"
	"github.com/symfilter/symfilter/report"
)

// titles returns the titles of the backtraces of a page: of new ones and of others.
func titles(t *testing.T, log string) []string {
	t.Helper()
	page, _ := pageOf(t, []byte(log), Options{Symbolizer: testSymbolizer(t), Patience: patient, Look: Look{Own: new(report.Own)}})
	p, err := pagetest.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range p.Find("summary", "") {
		if strings.HasPrefix(s, "Backtrace") {
			all = append(all, s)
		}
	}
	return all
}

// Backtraces without debug files differ by the places of their frames in the modules. A report that
// repeats its first frame in its last line has no further backtrace.
func TestBacktracesWithoutNamesDifferByTheirPlaces(t *testing.T) {
	log, err := os.ReadFile("../testdata/asan.log")
	if err != nil {
		t.Fatal(err)
	}
	got := titles(t, strings.Repeat(string(log), 2))
	want := []string{
		"Backtrace 1: server+0x3fa6", "Backtrace 2: server+0x3f75", "Backtrace 3: server+0x4039",
		"Backtrace 1 again", "Backtrace 2 again", "Backtrace 3 again",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
