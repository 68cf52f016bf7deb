package input

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A logForm is a format of logs that wraps the lines of a program. seal wraps a log, and open
// returns the lines. open fails the test if it cannot parse a record.
type logForm struct {
	name   string
	format Format
	seal   func(g *generator, log string) string
	open   func(t *testing.T, log string) string
}

// eachLine returns a function that seals each line of a log.
func eachLine(seal func(g *generator, line string) string) func(g *generator, log string) string {
	return func(g *generator, log string) string {
		var b strings.Builder
		for line := range strings.Lines(log) {
			b.WriteString(seal(g, strings.TrimSuffix(line, "\n")))
		}
		return b.String()
	}
}

// logForms returns all forms: with one record for each line, and with one record for the whole log.
func logForms() []logForm {
	stdout := func(g *generator, line string) string { return g.sealed("stdout", line, true) }
	inside := func(g *generator, line string) string {
		record, _ := json.Marshal(map[string]string{"msg": line, "level": "error"})
		return g.sealed("stdout", string(record), true)
	}
	joined := func(texts []string) string { return strings.Join(texts, "\n") + "\n" }
	lines := func(f Format) func(*testing.T, string) string {
		return func(t *testing.T, log string) string { return joined(opened(t, f, log)) }
	}
	records := func(f Format) func(*testing.T, string) string {
		return func(t *testing.T, log string) string { return joined(textsOf(t, f, log)) }
	}
	one := func(f Format) func(*testing.T, string) string {
		return func(t *testing.T, log string) string { return strings.Join(textsOf(t, f, log), "") }
	}
	return []logForm{
		{"cri", CRI, eachLine(stdout), lines(CRI)},
		{"docker", Docker, eachLine(stdout), lines(Docker)},
		{"json in cri", CRI, eachLine(inside), func(t *testing.T, log string) string {
			var texts []string
			for _, line := range opened(t, CRI, log) {
				var record struct{ Msg string }
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Fatalf("%v: %q", err, line)
				}
				texts = append(texts, record.Msg)
			}
			return joined(texts)
		}},
		{"json", JSON, eachLine(sealedRecord), records(JSON)},
		{"journal", Journal, eachLine(sealedRecord), records(Journal)},
		{"one string", JSON, sealedRecord, one(JSON)},
		{"one message", Journal, sealedRecord, one(Journal)},
	}
}

// dialectSamples returns the samples of all dialects. With sampleOptions, many frames in each
// sample are resolved.
func dialectSamples(t testing.TB) (logs []string) {
	t.Helper()
	paths, err := filepath.Glob("../dialect/testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	// the first line makes the address of the first frame exact
	logs = append(logs, "plain\n------ STACK TRACE ------\nEIP:\n/opt/a.out(+0x18b) [0x55d0c0a0018b]\n\nBacktrace:\n/opt/a.out(+0x18d) [0x55d0c0a0018d]\n")
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(archive.Files); i += 2 {
			log := strings.ToValidUTF8(string(archive.Files[i].Data), "?")
			logs = append(logs, log, strings.ReplaceAll(log, "c3f1b7c55", "a0a1a2a3a4a5a6a7"))
		}
	}
	return logs
}

// sampleOptions returns options that use one small program for the modules of all samples.
func sampleOptions(t testing.TB) filter.Options {
	t.Helper()
	o := dialectOptions(t)
	image, err := filepath.Abs("../../filter/testdata/debug/.build-id/b0/b1b2b3b4b5b6b7.debug")
	if err != nil {
		t.Fatal(err)
	}
	o.Dialects.Images = nil
	for _, name := range []string{"", "libledger.so", "inventory", "a.out"} {
		o.Dialects.Images = append(o.Dialects.Images, filter.Image{Name: name, Path: image})
	}
	return o
}

// filtered returns the output of a filter for a log without envelopes.
func filtered(o filter.Options, log string) string {
	var out bytes.Buffer
	f := filter.New(&out, o)
	io.WriteString(f, log)
	f.Close()
	return out.String()
}

// The filtered texts in envelopes must be the same as for a log without envelopes: as text, as
// markup, and as text made from that markup.
func TestSamplesInEnvelopes(t *testing.T) {
	fuzztest.WithoutRace(t)
	text := sampleOptions(t)
	markup := text
	markup.Dialects.Elements = true
	for i, log := range dialectSamples(t) {
		want, made := filtered(text, log), filtered(markup, log)
		again := filtered(text, made)
		for _, form := range logForms() {
			g := &generator{Rand: rand.New(rand.NewPCG(uint64(i), 1)), format: form.format}
			in := form.seal(g, log)
			inside := envelope(t, form.format, markup, in, g.Rand)
			for _, test := range []struct{ name, out, want string }{
				{"text", envelope(t, form.format, text, in, g.Rand), want},
				{"markup", inside, made},
				{"text of markup", envelope(t, form.format, text, inside, g.Rand), again},
			} {
				if diff := cmp.Diff(test.want, form.open(t, test.out)); diff != "" {
					t.Errorf("%s in %s (-alone +inside):\n%s\n%s", test.name, form.name, diff, in)
				}
			}
			if once := envelope(t, form.format, markup, inside, nil); once != inside {
				t.Errorf("markup in %s changes: %s", form.name, cmp.Diff(inside, once))
			}
		}
	}
}

func TestObjectsOfRecordsHaveTheFrames(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := sampleOptions(t)
	o.Output = filter.JSON
	members := regexp.MustCompile(`^(\{"v":1)(?:,"time":"[^"]+","stream":"stdout")?(?:,"field":"(?:message|MESSAGE|msg|stack_trace|error.stack_trace|exception.stacktrace)")?`)
	withFrames := func(objects string) (lines []string) {
		for line := range strings.Lines(objects) {
			if strings.Contains(line, `"elements":`) {
				lines = append(lines, members.ReplaceAllString(line, "$1"))
			}
		}
		return lines
	}
	for i, log := range dialectSamples(t) {
		want := withFrames(filtered(o, log))
		for _, form := range logForms() {
			g := &generator{Rand: rand.New(rand.NewPCG(uint64(i), 1)), format: form.format}
			if diff := cmp.Diff(want, withFrames(envelope(t, form.format, o, form.seal(g, log), nil))); diff != "" {
				t.Errorf("objects of %s (-alone +inside):\n%s", form.name, diff)
			}
		}
	}
}

// Each JSON object must stay an object, whatever its members.
func TestLinesOfJSONStayObjects(t *testing.T) {
	fuzztest.WithoutRace(t)
	const markup = `{{{module:0:a:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}`
	frames := []string{"/opt/a.out(+0x18d) [0x55d0c0a0018d]", "    #0 0x55d0c0a0018d (/opt/a.out+0x40018d) (BuildId: a0a1a2a3a4a5a6a7)", "{{{bt:0:0x50018d:pc}}}", "{{{symbol:_ZN2ns5innerEi}}}", markup}
	lines := []string{`{"message":"` + markup + `"}`, `{"message":"."}`}
	for _, frame := range frames {
		lines = append(lines, `{"message":"`+frame+`"}`, `{"other":"`+frame+`"}`, `{"a":["`+frame+`",1], "b":{}}`, `{"`+frame+`":1}`, `{"a":"`+frame+`","b":"`+frame+`\n"} `)
	}
	for _, frame := range []string{`{"msg":"Frame","attr":{"frame":{"b":"55D0C0A00000","o":"18D"}}}`, `{"backtrace":[{"b":"55D0C0A00000","o":"18D"},{"b":"1","o":"2"}, {"o":"17B","b":"55D0C0A00000" } ]}`} {
		lines = append(lines, `{"backtrace":[{"b":"55D0C0A00000","o":"1"}],"processInfo":{"somap":[{"b":"55D0C0A00000","path":"/opt/a.out","buildId":"A0A1A2A3A4A5A6A7"}]}}`, frame)
	}
	log := strings.Join(lines, "\n") + "\n"
	for _, sample := range dialectSamples(t) {
		for line := range strings.Lines(sample) {
			if json.Valid([]byte(line)) && line[0] == '{' {
				log += line
			}
		}
	}
	o := sampleOptions(t)
	for name, change := range map[string]func(*filter.Options){
		"text":     func(*filter.Options) {},
		"keep raw": func(o *filter.Options) { o.Dialects.KeepRaw = true },
		"coloured": func(o *filter.Options) { o.Color = filter.ColorAlways },
		"markup":   func(o *filter.Options) { o.Dialects.Elements = true },
		"objects":  func(o *filter.Options) { o.Output = filter.JSON },
	} {
		o := o
		change(&o)
		out := envelope(t, JSON, o, log, nil)
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) || line[0] != '{' {
				t.Errorf("%s: not an object: %s", name, line)
			}
		}
		if again := envelope(t, JSON, o, out, nil); again != out && name != "objects" {
			t.Errorf("%s: filtered twice: %s", name, cmp.Diff(out, again))
		}
		if name == "text" && (!strings.Contains(out, `"symbolized":["`) || !strings.Contains(out, `{"other":"ns::inner(int)"}`)) {
			t.Errorf("nothing is resolved in the members of objects:\n%s", out)
		}
	}
}
