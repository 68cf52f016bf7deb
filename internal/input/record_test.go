package input

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// sealedRecord returns a record with this text, in one of the forms that programs write.
func sealedRecord(g *generator, text string) string {
	if g.format == Journal {
		return exportedEntry(g, text)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(g.IntN(2) == 0)
	e.Encode(text)
	value := strings.TrimSuffix(b.String(), "\n")
	if g.IntN(8) == 0 && len(text) > 0 { // as in output of journalctl -o json
		var bytes []string
		for _, c := range []byte(text) {
			bytes = append(bytes, strconv.Itoa(int(c)))
		}
		return fmt.Sprintf(pick(g, `{"MESSAGE":[%s]}`, `{ "__CURSOR" : "s=1", "MESSAGE" : [ %s ] }`), strings.Join(bytes, ", ")) + "\n"
	}
	return fmt.Sprintf(pick(g, `{"message":%s}`, `{"@timestamp":"2026-11-20T10:00:01Z","level":7.5e3,"message": %s , "x":[{"message":"0x1"}]}`,
		`{ "error" : { "stack_trace":%s },"ok":null}`, "\t{\"a\":\"\\u00e9\\/\",\"exception.stacktrace\":%s}\r"), value) + "\n"
}

func exportedEntry(g *generator, text string) string {
	message := "MESSAGE=" + text + "\n"
	if g.IntN(5) == 0 || strings.ContainsAny(text, "\n\x1b") {
		message = "MESSAGE\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(text)))) + text + "\n"
	}
	return "__CURSOR=s=1\n_PID=7\n" + message + pick(g, "", "_CMDLINE=a 0x17b\n", "BIN\n\x03\x00\x00\x00\x00\x00\x00\x00a\nb\n") + "\n"
}

// textsOf returns the texts in the records of a log. It does not use the tested parser.
func textsOf(t *testing.T, format Format, log string) (texts []string) {
	t.Helper()
	if format == Journal {
		return messagesOf(t, log)
	}
	for line := range strings.Lines(log) {
		var of map[string]any
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if inner, ok := of["error"].(map[string]any); ok {
			of = inner
		}
		for _, name := range []string{"message", "MESSAGE", "stack_trace", "exception.stacktrace"} {
			switch value := of[name].(type) {
			case string:
				texts = append(texts, value)
			case []any:
				var b []byte
				for _, n := range value {
					b = append(b, byte(n.(float64)))
				}
				texts = append(texts, string(b))
			}
		}
	}
	return texts
}

func messagesOf(t *testing.T, log string) (texts []string) {
	t.Helper()
	for at := 0; at < len(log); {
		line, _, ok := strings.Cut(log[at:], "\n")
		if !ok {
			t.Fatalf("the journal ends within a field: %q", log[at:])
		}
		name, value, text := strings.Cut(line, "=")
		if at += len(line) + 1; line != "" && !text {
			n := int(binary.LittleEndian.Uint64([]byte(log[at : at+8])))
			value = log[at+8 : at+8+n]
			if at += 8 + n + 1; log[at-1] != '\n' {
				t.Fatalf("%q has no line end after it", value)
			}
		}
		if name == "MESSAGE" {
			texts = append(texts, value)
		}
	}
	return texts
}

// Each record of the output must be valid, and must have the output for its own lines, whatever the
// sizes of the blocks.
func TestRecordsAreFilteredAsWhatTheyHold(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := dialectOptions(t)
	for _, color := range []filter.Color{filter.ColorKeep, filter.ColorAlways, filter.ColorNever} {
		o.Color = color
		for _, format := range []Format{JSON, Journal} {
			for seed := range uint64(20) {
				g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
				var in strings.Builder
				var plain bytes.Buffer
				f := filter.New(&plain, o)
				for _, line := range traceLog(g) {
					line = strings.ToValidUTF8(line, "?")
					if g.IntN(4) == 0 {
						line = "\x1b[1m" + line + "\x1b[0m"
					}
					if line == "" || strings.Contains(line, "{{{reset") {
						line += "." // an empty text is not filtered
					}
					several := g.IntN(6) == 0
					if several {
						line += "\n" + strings.ToValidUTF8(traceLine(g), "?") + ".\n/opt/a.out(+0x18d) [0x55d0c0a0018d]"
					}
					in.WriteString(sealedRecord(g, line))
					io.WriteString(f, line+"\n")
					if held := access.Filter(f).(position).HeldTrace(); several && held > 0 && held <= strings.Count(line, "\n")+1 {
						access.Filter(f).(releaser).Release()
					}
				}
				f.Close()
				log := in.String()
				out := envelope(t, format, o, log, g.Rand)
				if d := cmp.Diff(strings.Join(textsOf(t, format, out), "\n")+"\n", plain.String()); d != "" {
					t.Fatalf("%v, color %d, seed %d: (-got +want)\n%s\nlog:\n%s", format, color, seed, d, log)
				}
				for range 8 {
					if hasMaps(plain.String()) {
						break
					}
					cut := g.IntN(len(log))
					if got := interrupted(t, format, o, log, cut); got != out {
						t.Fatalf("%v, seed %d, cut at %d: (-restored +uninterrupted)\n%s\n%s", format, seed, cut, cmp.Diff(got, out), log)
					}
				}
			}
		}
	}
}

func TestRecordsWithoutMarksAreUntouched(t *testing.T) {
	o := dialectOptions(t)
	for _, format := range []Format{JSON, Journal} {
		for seed := range uint64(40) {
			g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
			var in strings.Builder
			for range 1 + g.IntN(20) {
				in.WriteString(sealedRecord(g, pick(g, "plain", "a\nb\n", `<"\>`, "\x1b[1m", "0x", "/opt/none.so(+0x17b) [0x55d0c0b0017b]")))
				if g.IntN(9) == 0 {
					in.WriteString(pick(g, "\n", "plain\n", "{\"message\":1}\n", "{\"message\":\"\x01\"}\n", "\x00\xff\n", "NAME\n\xff\xff\xff\xff\xff\xff\xff\xff"))
				}
			}
			log := in.String()[:in.Len()-g.IntN(30)]
			if got := envelope(t, format, o, log, g.Rand); got != log {
				t.Fatalf("%v, seed %d: (-got +want)\n%s", format, seed, cmp.Diff(got, log))
			}
			if got := interrupted(t, format, o, log, g.IntN(len(log))); got != log {
				t.Fatalf("%v, seed %d, interrupted: (-got +want)\n%s", format, seed, cmp.Diff(got, log))
			}
		}
	}
}

func TestOutputOfRecordsIsBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := dialectOptions(t)
	record := `{"message":"` + strings.Repeat(`{{{bt:0:0x50017a:pc}}}\n`, 43_000) + "\"}\n"
	in := `{"message":"` + maps + "\"}\n{\"message\":\".\"}\n" + record + record
	out := envelope(t, JSON, o, in, nil)
	if !strings.HasSuffix(out, record+record) {
		t.Errorf("%d bytes came out", len(out))
	}
}

func TestNamedFields(t *testing.T) {
	const in = `{"stack":"{{{symbol:_ZN2ns5innerEi}}}","a":{"b":"{{{symbol:_ZN2ns5innerEi}}}"},"msg":"{{{symbol:_ZN2ns5innerEi}}}"}` + "\n"
	const want = `{"stack":"ns::inner(int)","a":{"b":"ns::inner(int)"},"msg":"{{{symbol:_ZN2ns5innerEi}}}"}` + "\n"
	o := testOptions(t)
	names := []string{"a.b", "stack"}
	var out bytes.Buffer
	w := newWriter(Auto, o, &out)
	w.t.Fields = names
	w.t.Container = func(f Format) io.WriteCloser { return NewEnvelope(f, o, &out, names...) }
	io.WriteString(w, in)
	w.Close()
	if out.String() != want || w.Format() != JSON {
		t.Errorf("%v: got %s, want %s", w.Format(), out.String(), want)
	}
}

func TestAllDefaultMembersOfARecordAreFiltered(t *testing.T) {
	const raw, answer = "{{{symbol:_ZN2ns5innerEi}}}", "ns::inner(int)"
	in := `{"other":"` + raw + `","error":{"stack":"` + raw + `"}`
	for _, name := range DefaultFields() {
		if name != message {
			in += `,"` + name + `":"` + raw + `"`
		}
	}
	in += "}\n"
	want := strings.Replace(strings.ReplaceAll(in, raw, answer), answer, raw, 1)
	var out bytes.Buffer
	w := newWriter(Auto, testOptions(t), &out)
	w.t.Container = func(f Format) io.WriteCloser { return NewEnvelope(f, testOptions(t), &out) }
	io.WriteString(w, in)
	w.Close()
	if out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

// Blocks and restarts must not change the output. Each valid record must be valid in the output,
// with its other members unchanged.
func FuzzRecords(f *testing.F) {
	for seed := range uint64(8) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: []Format{JSON, Journal}[seed%2]}
		var in strings.Builder
		for _, line := range traceLog(g) {
			in.WriteString(sealedRecord(g, line))
		}
		f.Add([]byte(in.String()), byte(seed%2)<<4|byte(seed/2%3)<<5&32|byte(seed/2))
	}
	f.Add([]byte(`{"msg":"\ud83d\u0000\ud83d\ude00\/ {{{pc:0x1}}}\n","a":[0e-1,{"b":""}],"message":[123,123,123,]}`), byte(0))
	f.Add([]byte("__CURSOR=\nMESSAGE\n\x00\x00\x00\x00\x00\x00\x00\x00\n\nMESSAGE\n\xff\x00\x00\x00\x00\x00\x00\x00{{{pc:0x1}}}"), byte(16))
	o := dialectOptions(f)
	f.Fuzz(func(t *testing.T, log []byte, mode byte) {
		if len(log) > 32<<10 {
			return
		}
		defer fuzztest.Watch(t, log)()
		format := []Format{JSON, Journal}[mode>>4&1]
		o, whole := inMode(t, format, o, log, mode)
		if o.Terminal {
			return
		}
		if !o.Dialects.Elements && !bytes.Contains(log, []byte("-")) { // after a restart, modules are invented again, and maps are unknown
			if got := interrupted(t, format, o, string(log), len(log)/2); got != whole {
				t.Fatalf("an interruption changes what comes out:\n%s", cmp.Diff(got, whole))
			}
		}
		if o.Output != filter.JSON {
			wantSameRecords(t, format, o, log)
		}
		fuzztest.Growth(t, log, func(log []byte) {
			w := newWriter(format, o, io.Discard)
			w.Write(log)
			w.Close()
		})
	})
}
