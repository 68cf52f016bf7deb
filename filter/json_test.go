package filter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// A jsonLine is an object of the output as other programs decode it.
type jsonLine struct {
	Text      string
	Raw       string
	Continues bool
	Elements  []struct {
		Tag    string
		Frame  uint64
		Lookup string
		Module string
		Frames []struct {
			Function, File, Offset string
			Line, Column           int
			Inlined                bool
		}
	}
}

func decodeLines(t testing.TB, out string) (lines []jsonLine) {
	t.Helper()
	for line := range strings.Lines(out) {
		var l jsonLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		lines = append(lines, l)
	}
	return lines
}

// shown returns the text of the object with its line end, as the text output has it.
func (l *jsonLine) shown(t testing.TB) string {
	text := l.Text
	if l.Raw != "" {
		b, err := base64.StdEncoding.DecodeString(l.Raw)
		if err != nil {
			t.Fatal(err)
		}
		text = string(b)
	}
	if !l.Continues {
		text += "\n"
	}
	return text
}

func loadSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(testenv.FileURL("log.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// For any log, each line of the output is an object that matches the schema, and the texts of the
// objects are the text output.
func TestJSONHoldsWhatTextShows(t *testing.T) {
	schema := loadSchema(t)
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for seed := range uint64(300) {
		in := logtest.NewGenerator(seed).Log(40)
		o.Output = Text
		if seed%3 == 0 {
			in += strings.Join(logtest.Hostile, "{{{symbol:") + "\n"
		}
		want, _ := filterString(t, o, in, nil)
		o.Output = JSON
		out, _ := filterString(t, o, in, logtest.NewGenerator(seed).Rand)
		checkJSON(t, schema, out, want)
	}
}

func checkJSON(t testing.TB, schema *jsonschema.Schema, out, want string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Fatalf("not UTF-8: %q", out)
	}
	if escaped := string(escape.AppendText(nil, out, "\n")); escaped != out { // JSON may be printed to a terminal
		t.Fatalf("this is not harmless on a terminal: %q", out)
	}
	for line := range strings.Lines(out) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		checkParse(t, line, v)
	}
	var got strings.Builder
	for _, l := range decodeLines(t, out) {
		got.WriteString(l.shown(t))
	}
	want = strings.ReplaceAll(want, "\r\n", "\n")
	// An object does not report whether its line had a line end.
	if d := cmp.Diff(strings.TrimRight(got.String(), "\n"), strings.TrimRight(want, "\n")); d != "" {
		t.Fatalf("texts of the objects (-got +text output)\n%s", d)
	}
}

// Each frame of an object must appear in the object's text, in the form that the text output has.
func TestJSONFramesAreThoseOfText(t *testing.T) {
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient, Output: JSON}
	seen := 0
	for seed := range uint64(100) {
		out, _ := filterString(t, o, logtest.NewGenerator(seed).Log(40), nil)
		for _, l := range decodeLines(t, out) {
			for _, e := range l.Elements {
				for i, f := range e.Frames {
					where := f.Function
					if where == "" {
						where = "??"
					}
					switch {
					case f.File != "":
						where += fmt.Sprintf(" %s:%d:%d", f.File, f.Line, f.Column)
					case f.Offset != "0x0":
						where += "+" + f.Offset
					}
					if e.Tag == "pc" && f.File != "" {
						where = fmt.Sprintf("%s[%s:%d]", f.Function, f.File, f.Line)
					}
					if !strings.Contains(l.Text, where) {
						t.Fatalf("frame %d of %s, %q, is not in %q", i, e.Tag, where, l.Text)
					}
					seen++
				}
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d frames compared", seen)
	}
}

// A long line must become several objects of bounded size, without loss of text.
func TestLongLinesAreSeveralObjects(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient, Output: JSON}
	head := "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n"
	for name, line := range map[string]string{
		"elements": strings.Repeat("{{{pc:0x50017a:pc}}} ", 40000),
		"text":     strings.Repeat("x", 3<<20),
	} {
		want, _ := filterString(t, Options{Symbolizer: o.Symbolizer, Patience: o.Patience}, head+line+"\nend\n", nil)
		out, _ := filterString(t, o, head+line+"\nend\n", nil)
		var got strings.Builder
		lines := decodeLines(t, out)
		for _, l := range lines {
			if len(l.Text) > 2*maxObject {
				t.Errorf("%s: an object with %d bytes of text", name, len(l.Text))
			}
			got.WriteString(l.shown(t))
		}
		if got.String() != want || len(lines) < 4 {
			t.Errorf("%s: %d objects hold %d bytes of text, want more than 3 with %d", name, len(lines), got.Len(), len(want))
		}
	}
}

// A line with many elements must become several objects of bounded size. Each element repeats the
// name of its module, so one object could have 300 MiB.
func TestManyElementsAreSeveralObjects(t *testing.T) {
	fuzztest.WithoutRace(t)
	path := "/" + strings.Repeat("n", maxName-4) + "/a"
	head := "{{{module:0:" + path + ":elf:a0}}}\n{{{module:1:" + path + "b:elf:a1}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"
	for name, line := range map[string]string{
		"addresses": strings.Repeat("{{{pc:0x1000}}}", 4000),
		"maps":      strings.Repeat("{{{mmap:0x2000:0x1000:load:0:r:0}}}{{{mmap:0x3000:0x1000:load:1:r:0}}}", 2000),
		"values":    strings.Repeat("{{{hexdict:a:0x1000}}}", 4000),
	} {
		want, _ := filterString(t, Options{}, head+line+"\nend\n", nil)
		out, _ := filterString(t, Options{Output: JSON}, head+line+"\nend\n", nil)
		var got strings.Builder
		lines := decodeLines(t, out)
		for _, l := range lines {
			got.WriteString(l.shown(t))
		}
		if got.String() != want {
			t.Errorf("%s: the objects hold %d bytes of text, want %d; they differ from byte %d on", name, got.Len(), len(want), firstDifference(got.String(), want))
		}
		for o := range strings.Lines(out) {
			if len(o) > maxElements+2*maxObject {
				t.Errorf("%s: an object of %d bytes", name, len(o))
			}
		}
	}
}

// FuzzJSON checks that the objects of any log match the schema, and that their texts are the text
// output.
func FuzzJSON(f *testing.F) {
	for seed := range uint64(6) {
		f.Add([]byte(logtest.NewGenerator(seed).Log(20)))
	}
	f.Add([]byte("<script>\u2028\xff\x00\"\\\n{{{symbol:</script>}}}\n{{{module:0:\xc3\x28\":elf:aa}}}"))
	f.Add([]byte("{{{hexdict: a:0x1\nb:0x2 c:\xff}}} x\n"))
	f.Add([]byte("a\u202e\u00ad\u2066\u2065{{{symbol:\U000e0041}}}\n{{{module:0:\u202ea.so:elf:aa}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n{{{pc:0x1000}}}\n"))
	schema := loadSchema(f)
	s := testSymbolizer(f)
	f.Fuzz(func(t *testing.T, log []byte) {
		if len(log) > 64<<10 || bytes.Contains(log, []byte("\r")) {
			return
		}
		defer fuzztest.Watch(t, log)()
		o := Options{Symbolizer: s, Patience: patient}
		want, _ := filterString(t, o, string(log), nil)
		o.Output = JSON
		out, _ := filterString(t, o, string(log), nil)
		checkJSON(t, schema, out, want)
		checkFlow(t, log, o)
	})
}
