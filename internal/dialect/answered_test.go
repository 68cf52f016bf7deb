package dialect_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/dialect"
)

// A line that has its answer must not be read as a frame, so that a log can be filtered twice. A
// frame whose answer is on the next line may be read again.
func TestAnsweredLinesAreNoFrames(t *testing.T) {
	for _, family := range []string{"glog", "pytorch", "cxxtrace"} {
		archive, err := txtar.ParseFile(filepath.Join("testdata", family+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		answers := 0
		for _, file := range archive.Files {
			if strings.HasSuffix(file.Name, " frames") {
				continue
			}
			first, second := dialect.NewReader(nil), dialect.NewReader(nil)
			var before, after string // the lines so far, without and with their answers
			first.Past = func(int64) []byte { return []byte(before) }
			second.Past = func(int64) []byte { return []byte(after) }
			number := int64(0)
			for line := range strings.Lines(string(file.Data)) {
				number++
				text := strings.TrimSuffix(line, "\n")
				if l := first.Line([]byte(text), number); l != nil && len(l.Frames) == 1 {
					answers++
					text = answered([]byte(text), &l.Frames[0])
				}
				if l := second.Line([]byte(text), number); l != nil && len(l.Frames) == 1 && !l.Frames[0].PlaceBelow {
					t.Errorf("%s: %q is a frame of %s", file.Name, text, l.Frames[0].Dialect.Name)
				}
				before, after = before+line, after+text+"\n"
			}
		}
		if answers == 0 {
			t.Errorf("%s: no line has an answer", family)
		}
	}
}

// ThreadSanitizer's frames have only the file name of a module. The path must be read from the
// summary.
func TestSummariesNameTheFoldersOfModules(t *testing.T) {
	r := dialect.NewReader(nil)
	r.Line([]byte("    #0 <null> <null> (libpl.so+0x11ab)"), 1)
	r.Line([]byte("SUMMARY: ThreadSanitizer: data race (/opt/shop/libpl.so+0x11ab) "), 2)
	if m, _ := r.Facts().Module("libpl.so"); m.Name != "/opt/shop/libpl.so" {
		t.Errorf("libpl.so is %q, want /opt/shop/libpl.so", m.Name)
	}
}
