package page

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/pagetest"
)

// titles returns the titles of the backtraces of a page, both new and repeated ones.
func titles(t *testing.T, log string) []string {
	t.Helper()
	page, _ := pageOf(t, []byte(log), filter.Options{Symbolizer: testSymbolizer(t), Patience: patient, Display: filter.Display{Own: new(findings.Own)}})
	p, err := pagetest.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, s := range p.Find("summary", "") {
		if strings.HasPrefix(s, "Backtrace ") {
			all = append(all, s)
		}
	}
	return all
}

// Without debug files, the offsets of frames in their modules must distinguish backtraces. The last
// line of a report, which repeats its first frame, must not count as another backtrace.
func TestBacktracesWithoutNamesDifferByTheirPlaces(t *testing.T) {
	log, err := os.ReadFile("../../testdata/asan.log")
	if err != nil {
		t.Fatal(err)
	}
	got := titles(t, strings.Repeat(string(log), 2))
	want := []string{
		"Backtrace 1, used: server+0x3fa6", "Backtrace 2, freed: server+0x3f75", "Backtrace 3, allocated: server+0x4039",
		"Backtrace 1 again", "Backtrace 2 again", "Backtrace 3 again",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each file in testdata/pages has a log, and the expected outline of its page.
func TestOutlinesOfPages(t *testing.T) {
	paths, err := filepath.Glob("testdata/pages/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no logs: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil || len(a.Files) != 2 {
				t.Fatal(err, len(a.Files))
			}
			page, text := pageOf(t, a.Files[0].Data, filter.Options{Symbolizer: testSymbolizer(t), Patience: patient, Display: filter.Display{Own: new(findings.Own)}})
			got := checkPage(t, page, text).Outline()
			if *update {
				a.Files[1].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
