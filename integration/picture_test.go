//go:build linux

package integration

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The picture in README must show the page that symfilter writes now. page.sha256 has the hash of
// the pictured page; docs/testdata/build.sh makes both files.
func TestThePictureOfThePageIsOfThisState(t *testing.T) {
	const picture, sum = "page.png", "page.sha256"
	dir := filepath.Join(checkout, "docs", "testdata")
	page := run(t, nil, command, "--debug-file-directory", filepath.Join(checkout, "testdata", "debug"),
		"--no-default-debug-directories", "--no-paths", "--offline", "--quiet", "--output=html", filepath.Join(checkout, "testdata", "asan.log"))
	hash := sha256.Sum256([]byte(page))
	want := hex.EncodeToString(hash[:])
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("UPDATE") != "" {
		name := filepath.Join(t.TempDir(), "page.html")
		put(name, page)
		shot, err := png.Decode(bytes.NewReader(startChromium(t).open(t, "file://"+name, pageOptions{width: 1000, height: 600}).screenshot(t)))
		if err != nil {
			t.Fatal(err)
		}
		var small bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, inFewColours(shot)); err != nil {
			t.Fatal(err)
		}
		put(filepath.Join(dir, picture), small.String())
		put(filepath.Join(dir, sum), want+"\n")
	}
	if got := strings.TrimSpace(readFile(t, filepath.Join(dir, sum))); got != want {
		t.Errorf("docs/testdata/%s is of another page: sh docs/testdata/build.sh", picture)
	}
	if _, err := png.DecodeConfig(strings.NewReader(readFile(t, filepath.Join(dir, picture)))); err != nil {
		t.Error(err)
	}
}

// inFewColours reduces a picture to its 256 most frequent colours. The file, which stays in every
// clone, then has a fourth of the bytes.
func inFewColours(shot image.Image) image.Image {
	times, bounds := map[color.Color]int{}, shot.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			times[shot.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(times), func(a, b color.Color) int { return times[b] - times[a] })
	few := image.NewPaletted(bounds, frequent[:min(len(frequent), 256)])
	draw.Draw(few, bounds, shot, bounds.Min, draw.Src)
	return few
}
