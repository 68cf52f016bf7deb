//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// pageTool returns the path of a file that was fetched by scripts/fetch-page-tools.
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

func TestPagesAreValid(t *testing.T) {
	testenv.OnlyLong(t)
	checker := pageTool(t, "vnu-jar", "build", "dist", "vnu.jar")
	need(t, "java")
	for form, page := range pagesOfBothForms(t) {
		// The checker warns that the policy has no hash of a script or a style. The browser, which
		// compares the hashes, runs them.
		out, err := exec.Command("java", "-jar", checker, "--errors-only", "--also-check-css", "--format", "text", page).CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("No errors found")) {
			t.Errorf("%s page: %v\n%s", form, err, out)
		}
	}
}

// axe must find no accessibility problem in either colour scheme.
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
					p.enterWord(t, "book::total") // so that the window has a crash with matches
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

// A page of 100 MB must be loaded completely, and a search must find all matches in the log. Time
// and memory are measured by hand: see docs/formats/page.md.
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

// Pages of both forms must fill windows of three widths, with text on a background of the colour
// scheme. The screenshots are artifacts of the test, for people to look at.
func TestScreenshotsOfPages(t *testing.T) {
	dir := t.ArtifactDir()
	b := startChromium(t)
	for form, page := range pagesOfBothForms(t) {
		for _, width := range []int{400, 1000, 1600} {
			for _, dark := range []bool{false, true} {
				const height = 1100
				p := b.open(t, "file://"+page, pageOptions{width: width, height: height, dark: dark})
				if form == "large" {
					p.enterWord(t, "book::total")
					p.until(t, `document.querySelector("#view mark.now")`)
				} else {
					p.click(t, "[popovertarget]")
				}
				name := fmt.Sprintf("%s-%d-dark=%t.png", form, width, dark)
				shot := p.screenshot(t)
				if err := os.WriteFile(filepath.Join(dir, name), shot, 0o600); err != nil {
					t.Fatal(err)
				}
				img, err := png.Decode(bytes.NewReader(shot))
				if err != nil {
					t.Fatal(err)
				}
				if got, want := img.Bounds(), image.Rect(0, 0, width, height); got != want {
					t.Fatalf("%s: bounds %v, want %v", name, got, want)
				}
				if light, ink := tones(img); light == dark || ink < 0.01 || ink > 0.5 {
					t.Errorf("%s: light background %v, and %.3f of the window is text", name, light, ink)
				}
			}
		}
	}
}

// tones reports whether an image is light: whether its most frequent brightness is in the lighter
// half. ink is the share of the pixels in the other half.
func tones(img image.Image) (light bool, ink float64) {
	var counts [256]int
	bounds := img.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.GrayModel.Convert(img.At(x, y)).(color.Gray).Y]++
		}
	}
	most, dark := 0, 0
	for y, n := range counts {
		if n > counts[most] {
			most = y
		}
		if y < 128 {
			dark += n
		}
	}
	all := bounds.Dx() * bounds.Dy()
	if most >= 128 {
		return true, float64(dark) / float64(all)
	}
	return false, float64(all-dark) / float64(all)
}
