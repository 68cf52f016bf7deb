//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// pageTool returns the path of a file that scripts/fetch-page-tools fetched.
func pageTool(t *testing.T, name ...string) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(append([]string{home, ".cache", "symfilter-page-tools", "node_modules"}, name...)...)
	need(t, file)
	return file
}

// pagesOfBothForms returns a small page and a large one.
func pagesOfBothForms(t *testing.T) map[string]string {
	t.Helper()
	small, _ := crashPage(t, sourceArgs()...)
	large, _ := pageOf(t, largeLog(t, 18<<20), crashArgs()...)
	return map[string]string{"small": small, "large": large}
}

// The Nu Html Checker finds no error.
func TestPagesAreValid(t *testing.T) {
	testenv.OnlyLong(t)
	checker := pageTool(t, "vnu-jar", "build", "dist", "vnu.jar")
	need(t, "java")
	for form, page := range pagesOfBothForms(t) {
		// Its warnings are that the policy names no hash of a script or a style; the browser, which
		// compares the hashes, runs them.
		out, err := exec.Command("java", "-jar", checker, "--errors-only", "--also-check-css", "--format", "text", page).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("No errors found")) {
			t.Errorf("%s page: %v\n%s", form, err, out)
		}
	}
}

// The checker axe finds nothing that keeps a person from using a page, in both schemes of colours.
func TestPagesAreAccessible(t *testing.T) {
	testenv.OnlyLong(t)
	script, err := os.ReadFile(pageTool(t, "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	b := startChromium(t)
	for form, page := range pagesOfBothForms(t) {
		for _, o := range []pageOptions{{}, {dark: true}, {width: 400}, {width: 400, dark: true}} {
			t.Run(fmt.Sprintf("%s %+v", form, o), func(t *testing.T) {
				p := b.open(t, "file://"+page, o)
				value[any](t, p, `document.querySelectorAll("details").forEach(d => { d.open = true; })`)
				if form == "large" {
					p.until(t, `document.querySelector("#view").dataset.loaded`)
					p.enterWord(t, "book::total") // the window then has a crash, and matches in it
					p.until(t, `document.querySelector("#view mark.now")`)
				} else {
					p.click(t, "[popovertarget]")
				}
				value[any](t, p, string(script)+"; undefined")
				violations := value[[]string](t, p, `axe.run().then(r => r.violations.map(v => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 5).map(n => n.html.slice(0, 300) + " " + n.failureSummary).join("\n")))`)
				for _, v := range violations {
					t.Error(v)
				}
				if n := value[int](t, p, `axe.run().then(r => r.passes.length)`); n < 15 {
					t.Errorf("only %d rules were applied", n)
				}
			})
		}
	}
}

// A page of 100 MB is loaded whole, and a search finds all that is in the log. Its time and memory
// are measured by hand: see SPEC.md.
func TestThePageOfALogOf100MBIsLoadedWhole(t *testing.T) {
	testenv.OnlyLong(t)
	name, text := pageOf(t, largeLog(t, 100_000_000), crashArgs()...)
	b := startChromium(t)
	p := b.open(t, "file://"+name, pageOptions{})
	p.until(t, `document.querySelector("#view").dataset.loaded`)
	p.enterWord(t, "book::total")
	n := bytes.Count(bytes.ToLower([]byte(text)), []byte("book::total"))
	p.until(t, fmt.Sprintf(`document.querySelector("output").textContent === %q`, fmt.Sprintf("1 of %d", n)))
	p.isQuiet(t, "file://"+name)
}

// Screenshots of both forms of a page are for a person to look at: in three widths, light and dark.
func TestScreenshotsOfPages(t *testing.T) {
	dir := os.Getenv("TEST_SCREENSHOTS")
	if dir == "" {
		t.Skip("TEST_SCREENSHOTS=FOLDER writes screenshots of pages to the folder")
	}
	b := startChromium(t)
	for form, page := range pagesOfBothForms(t) {
		for _, width := range []int{400, 1000, 1600} {
			for _, dark := range []bool{false, true} {
				p := b.open(t, "file://"+page, pageOptions{width: width, height: 1100, dark: dark})
				if form == "large" {
					p.enterWord(t, "book::total")
					p.until(t, `document.querySelector("#view mark.now")`)
				} else {
					p.click(t, "[popovertarget]")
				}
				name := fmt.Sprintf("%s-%d-dark=%t.png", form, width, dark)
				if err := os.WriteFile(filepath.Join(dir, name), p.screenshot(t), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
