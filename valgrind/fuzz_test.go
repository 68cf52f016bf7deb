package valgrind

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// marked returns a complete error element with the given number.
func marked(number string) string {
	return "\n<error>\n  <unique>" + number + "</unique>\n  <kind>Marked</kind>\n  <what>marked " + number + "</what>\n  <stack>\n    <frame>\n      <ip>0x5" + number[2:] + "</ip>\n    </frame>\n  </stack>\n</error>\n"
}

// FuzzValgrind checks that no text between two errors causes a panic, a hang or unbounded memory.
// The text must not become an element, and both errors must be read, whatever the sizes of the
// blocks.
func FuzzValgrind(f *testing.F) {
	for _, dir := range []string{"records", "markup"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(names) == 0 {
			f.Fatalf("%d seeds, %v", len(names), err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(a.Files[0].Data)
		}
	}
	f.Add([]byte("<threadname><error></threadname><stack><frame><frame><ip>0x1</ip><stack></frame>"))
	f.Add([]byte(strings.Repeat("<a>", 100) + strings.Repeat("</a>", 60)))
	f.Add([]byte(strings.Repeat("<a>", maxDepth-1) + "<stack><frame><ip>0x1</ip></frame>"))
	f.Add([]byte("<rawtext>\n<![CDATA[</rawtext>]><![CDATA[> ]]]]><![CDATA[>]]]>"))
	f.Add([]byte("<rawtext>\n<![CDATA[a]]> <![CDATA[bcdefghijklmnop]]>x"))
	f.Add([]byte("<clientmsg><text>&#x41;&lt;&bad;&#99999999;</text><rawtext><![CDATA[ ]]]]><![CDATA[>]]></rawtext>"))
	maps := fixtures(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		input := []byte("<?xml version=\"1.0\"?>\n<valgrindoutput>\n" + marked("0xfeed1") + string(data) + "\n" + marked("0xfeed2") + "</valgrindoutput>\n")
		whole := records(input, len(input))
		if in := records(input, 7); in != whole {
			t.Errorf("in blocks of 7 bytes:\n%s\nwhole:\n%s", in, whole)
		}
		o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: maps}}
		fuzztest.Growth(t, data, func(data []byte) { markupOf(t, []byte("<valgrindoutput>"+string(data)), 1<<20, o) })
		text := markupOf(t, input, 64, o)
		var out bytes.Buffer
		w := NewReport(&out, o)
		w.Write(input)
		w.Close()
		for line := range strings.Lines(out.String()) {
			if !json.Valid([]byte(line)) {
				t.Errorf("no JSON: %s", line)
			}
		}
		for _, number := range []string{"0xfeed1", "0xfeed2"} {
			if number == "0xfeed2" && opens(data) {
				break
			}
			heading := fmt.Sprintf("marked %s [Marked %[1]s]\n    #0    0x%016x (no module)\n", number, 0x5feed0+uint64(number[6]-'0'))
			if !strings.Contains(text, heading) {
				t.Errorf("%s is lost in\n%s", number, text)
			}
			if !strings.Contains(out.String(), `"unique":"`+number+`"`) {
				t.Errorf("%s is lost in\n%s", number, out.String())
			}
		}
		turns, frames := 0, 0
		tracker := newTracker(&Options{})
		r := NewReader(func(rec *Record) error {
			if rec.Name == document || rec.Name == "/"+document {
				turns++
			}
			for _, it := range rec.Items {
				if it.Name == "stack" && !it.Leaf {
					frames += len(tracker.appendSites(nil, rec.Frames[it.First:it.Last]))
				}
			}
			return nil
		})
		r.Write(input)
		r.Close()
		if n := len(frameLine.FindAllString(text, -1)); n < frames {
			t.Errorf("%d of %d frames are in\n%s", n, frames, text)
		}
		if n := resets(text); n > turns {
			t.Errorf("%d resets of %d documents in\n%s", n, turns, text)
		}
	})
}

// frameLine matches the line of a function in a stack, but not of an inlined call.
var frameLine = regexp.MustCompile(`(?m)^ *#\d+    |\{\{\{bt:\d+:0x`)

// opens reports whether text after data may belong to an element that begins in data.
func opens(data []byte) bool {
	for _, s := range []string{"<!", "<?", "usercomment", "rawtext", "threadname", "<"} {
		if i := bytes.LastIndex(data, []byte(s)); i >= 0 && (s != "<" || !bytes.Contains(data[i:], []byte(">"))) {
			return true
		}
	}
	return false
}

// resets counts the resets in text that begin a process. It does not count a reset directly before
// a module.
func resets(text string) (n int) {
	var s markup.Scanner
	text = strings.ReplaceAll(text, "{{{reset}}}\n{{{module", "{{{module")
	for line := range strings.Lines(text) {
		s.Reset([]byte(line))
		for {
			tok, ok := s.Next()
			if !ok {
				break
			}
			if tok.Kind == markup.Elem && tok.Tag == markup.TagReset {
				n++
			}
		}
	}
	return n
}
