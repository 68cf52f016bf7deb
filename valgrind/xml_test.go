package valgrind

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/symbolize"
)

// xmlOf returns the XML of a report that is written in blocks of a size.
func xmlOf(t *testing.T, input []byte, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := NewXML(&out, Options{})
	for rest := input; len(rest) > 0; {
		n := min(size, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// checkWellFormed checks every document with the strict decoder of encoding/xml.
func checkWellFormed(t *testing.T, all string) {
	t.Helper()
	if all != "" && !strings.HasPrefix(all, "<?xml") {
		t.Fatalf("%.80q… begins no document", all)
	}
	for doc := range strings.SplitSeq(all, "<?xml version=\"1.0\"?>\n") {
		d := xml.NewDecoder(strings.NewReader(doc))
		roots, depth := 0, 0
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in\n%s", err, doc)
			}
			switch tok.(type) {
			case xml.StartElement:
				if depth == 0 {
					roots++
				}
				depth++
			case xml.EndElement:
				depth--
			}
		}
		if roots != 1 && doc != "" {
			t.Fatalf("%d root elements in\n%s", roots, doc)
		}
	}
}

// frameXML is a frame as Valgrind writes it.
const frameXML = "    <frame>\n      <ip>0x401000</ip>\n      <obj>/bin/app</obj>\n    </frame>\n"

// errorXML returns an error as Valgrind writes it.
func errorXML(number int, what string) string {
	return fmt.Sprintf("\n<error>\n  <unique>%#x</unique>\n  <what>%s</what>\n  <stack>\n%s  </stack>\n</error>\n", number, what, frameXML)
}

func TestXMLIsMadeWellFormed(t *testing.T) {
	const (
		begin = "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n"
		end   = "\n</valgrindoutput>\n"
		head  = "\n<pid>7</pid>\n"
	)
	for _, test := range []struct{ name, in, want string }{
		{"what is well-formed stays", begin + head + errorXML(1, "a &lt; b") + end, begin + head + errorXML(1, "a &lt; b") + end},
		{"layouts of other producers stay", "<?xml version=\"1.0\"?>\n\n<valgrindoutput><pid>7</pid>\n\t<error><what>a</what><new>b<!-- c --><old/></new></error>" + end,
			"<?xml version=\"1.0\"?>\n\n<valgrindoutput><pid>7</pid>\n\t<error><what>a</what><new>b<!-- c --><old/></new></error>" + end},
		{"texts are escaped", begin + head + errorXML(1, "a < b && c\x1b\xff") + end, begin + head + errorXML(1, `a &lt; b &amp;&amp; c\x1b`+"\uFFFD") + end},
		{"comments are escaped", begin + "\n<usercomment><a>&</b></usercomment>\n" + head + end, begin + "\n<usercomment>&lt;a>&amp;&lt;/b></usercomment>\n" + head + end},
		{"a killed process", begin + head + errorXML(1, "a")[:60], begin + head + "\n<error>\n  <unique>0x1</unique>\n  <what>a</what>\n  <stack>\n<!-- the rest is missing -->\n\n  </stack>\n</error>" + "\n" + end},
		{"a fork has two tails", begin + head + errorXML(1, "a") + end + errorXML(2, "b") + end, begin + head + errorXML(1, "a") + errorXML(2, "b") + end},
		{"an interrupted process continues in a document of its own", begin + head + errorXML(1, "a") + begin + "\n<pid>8</pid>\n" + errorXML(2, "b") + end + errorXML(3, "c") + end,
			begin + head + errorXML(1, "a") + end + begin + "\n<pid>8</pid>\n" + errorXML(2, "b") + end + begin + head + errorXML(3, "c") + end},
		{"text that is not XML", begin + head + "\nlost & found\n" + errorXML(1, "a") + end, begin + head + "\nlost &amp; found\n" + errorXML(1, "a") + end},
		{"text before the report", "==7== warning <1>\n" + begin + head + end, begin + "==7== warning &lt;1>\n" + head + end},
		{"zeros", begin + head + "\x00\x00\x00\n" + errorXML(1, "a") + end, begin + head + missingText + "\n" + errorXML(1, "a") + end},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := xmlOf(t, []byte(test.in), len(test.in))
			checkWellFormed(t, got)
			if got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A record that is too long to keep must be one element in the output, whichever of its parts is
// not well-formed.
func TestLongRecordsStayOneElement(t *testing.T) {
	fuzztest.WithoutRace(t)
	frames := strings.Repeat(frameXML, maxItems/2)
	for _, lines := range []string{"", "  <auxwhat>not & escaped</auxwhat>\n"} {
		in := "<?xml version=\"1.0\"?>\n\n<valgrindoutput>\n\n<error>\n  <what>a</what>\n  <stack>\n" + frames + "  </stack>\n" + lines + "  <stack>\n" + frames + frames + "  </stack>\n" + lines + "</error>\n\n</valgrindoutput>\n"
		got := xmlOf(t, []byte(in), 64<<10)
		checkWellFormed(t, got)
		if want := strings.ReplaceAll(in, " & ", " &amp; "); got != want {
			t.Error(difference(got, want))
		}
	}
}

// difference describes where two texts differ first.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	return fmt.Sprintf("at byte %d: got %q, want %q", i, got[max(0, i-50):min(len(got), i+200)], want[max(0, i-50):min(len(want), i+200)])
}

// Each process must have a separate document, and at most 65 documents may be open at a time.
func TestDocumentsOfProcessesAreBounded(t *testing.T) {
	open, most, ended := 0, 0, 0
	w := NewXMLDocuments(func() (Document, error) {
		open++
		most = max(most, open)
		return &countedDocument{&open, &ended}, nil
	}, Options{})
	const processes = 1000
	for range processes {
		io.WriteString(w, "<?xml version=\"1.0\"?>\n<valgrindoutput>\n<pid>1</pid>\n")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if ended != processes || open != 0 || most > maxNesting+1 {
		t.Errorf("%d of %d documents ended, %d stayed open, at most %d were", ended, processes, open, most)
	}
}

type countedDocument struct{ open, ended *int }

func (d *countedDocument) Write(p []byte) (int, error) { return len(p), nil }
func (d *countedDocument) End(string) error            { *d.open--; *d.ended++; return nil }

// FuzzXML checks that the XML of any report is well-formed, has all errors, and keeps its errors
// and frames if it is written again.
func FuzzXML(f *testing.F) {
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
	f.Add([]byte("<a>\x00&#1;]]><![CDATA[\x01]]]]><![CDATA[>]]></a><x y='z'/><!-- -- --><a:b:c/>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		fuzztest.Growth(t, data, func(data []byte) { xmlOf(t, data, 1<<20) })
		got := xmlOf(t, data, 1<<20)
		checkWellFormed(t, got)
		if in := xmlOf(t, data, 7); in != got {
			t.Errorf("in blocks of 7 bytes: %s", difference(in, got))
		}
		if again := xmlOf(t, []byte(got), 1<<20); strings.Count(again, "<error>") != strings.Count(got, "<error>") || strings.Count(again, "<frame>") != strings.Count(got, "<frame>") {
			t.Errorf("written again:\n%s\nbefore:\n%s", again, got)
		}
		input := []byte("<?xml version=\"1.0\"?>\n<valgrindoutput>\n" + string(data) + "\n" + marked("0xfeed2") + "</valgrindoutput>\n")
		if !opens(data) && !strings.Contains(xmlOf(t, input, 1<<20), "<unique>0xfeed2</unique>") {
			t.Errorf("0xfeed2 is lost")
		}
		var out bytes.Buffer
		w := NewXMLDocuments(func() (Document, error) { return following{&out}, nil }, Options{ReportOptions: symbolize.ReportOptions{}})
		w.Write(data)
		w.Close()
	})
}

// NewXML must restore names that were removed from frames, and the frames of inlined calls. It must
// do so in any layout, and in records that are not well-formed.
func TestNamesAreAddedToFrames(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(recorded, "lines.xml"))
	if err != nil {
		t.Fatal(err)
	}
	frame := regexp.MustCompile(`    <frame>\n(      <ip>.*</ip>\n      <obj>/srv/.*</obj>\n)      <fn>.*</fn>\n      <dir>.*</dir>\n      <file>.*</file>\n      <line>.*</line>\n    </frame>\n`)
	withoutNames := func(part string) string { return frame.ReplaceAllString(part, "    <frame>\n$1    </frame>\n") }
	parts := strings.Split(strings.NewReplacer("</frame>\n", "</frame>\n\x00", "<stack>\n", "<stack>\n\x00").Replace(string(whole)), "\x00")
	bare := ""
	for i, part := range parts {
		isInlined := i+1 < len(parts) && part != parts[i+1] && withoutNames(part) == withoutNames(parts[i+1])
		if !isInlined {
			bare += withoutNames(part)
		}
	}
	write := func(in string) string {
		o, _ := recordedOptions(t)
		at, err := os.Open(filepath.Join(recorded, "lines.map"))
		if err != nil {
			t.Fatal(err)
		}
		defer at.Close()
		m, err := ReadMap(at)
		if err != nil {
			t.Fatal(err)
		}
		o.Maps = []Map{m}
		var out bytes.Buffer
		w := NewXML(&out, o)
		if _, err := io.WriteString(w, in); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		checkWellFormed(t, out.String())
		return out.String()
	}
	want := strings.TrimRight(string(whole), "\n") + "\n"
	if diff := cmp.Diff(want, write(bare)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	compact := func(s string) string { return regexp.MustCompile(`>\s+<`).ReplaceAllString(s, "><") }
	if got := compact(write(compact(bare))); got != compact(want) {
		t.Errorf("without blanks: %s", difference(got, compact(want)))
	}
	escaped := strings.ReplaceAll(want, "<what>", "<what>a &amp; b ")
	if got := write(strings.ReplaceAll(bare, "<what>", "<what>a & b ")); got != escaped {
		t.Errorf("in records that are not well-formed: %s", difference(got, escaped))
	}
}
