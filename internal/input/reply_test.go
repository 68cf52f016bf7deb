package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// newReplyWriter returns a Writer that passes its lines to a Reply.
func newReplyWriter(o filter.Options, out io.Writer, keys, fields []string) *Writer {
	return New(JSON, Translators{Container: func(Format) io.WriteCloser { return NewReply(o, out, keys, fields) }})
}

// A reply must be written in the same Write as the end of its line.
func TestReplies(t *testing.T) {
	for _, s := range scripts(t, "reply") {
		t.Run(s.name(), func(t *testing.T) {
			var keys, fields []string
			for name, value := range s.options() {
				switch name {
				case "keys":
					keys = strings.Split(value, ",")
				case "fields":
					fields = strings.Split(value, ",")
				default:
					t.Fatalf("option %q?", name)
				}
			}
			var out bytes.Buffer
			w := newReplyWriter(testOptions(t), &out, keys, fields)
			n := 0
			for line := range strings.Lines(string(s.Files[0].Data)) {
				for _, part := range []string{line[:len(line)/2], line[len(line)/2:]} {
					if _, err := io.WriteString(w, part); err != nil {
						t.Fatal(err)
					}
				}
				if n++; bytes.Count(out.Bytes(), newline) != n {
					t.Fatalf("after %q: %d replies, want %d", line, bytes.Count(out.Bytes(), newline), n)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			s.check(t, out.String())
		})
	}
}

func TestEachLineHasOneReply(t *testing.T) {
	const (
		modules = `{"msg":"{{{module:0:inventory:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}"}` + "\n"
		listed  = `{"msg":"[[[ELF module #0x0 \"inventory\"; BuildID=a0a1a2a3a4a5a6a7 [0x500000-0x500fff](rx)]]]"}` + "\n"
	)
	long := `{"msg":"` + strings.Repeat("x", 3*maxLine) + `"}`
	for _, test := range []struct{ name, in, want string }{
		{"no line", "", ""},
		{"no line end", `{"msg":"{{{symbol:_Z1fv}}}"}`, `{"msg":"f()"}` + "\n"},
		{"too long", long + "\n" + `{"msg":"{{{symbol:_Z1fv}}}"}` + "\n", "{}\n" + `{"msg":"f()"}` + "\n"},
		{"too long, and no line end", long, "{}\n"},
		{"CRLF", "{}\r\n" + `{"msg":"{{{symbol:_Z1fv}}}"}` + "\r\n", "{}\n" + `{"msg":"f()"}` + "\n"},
		{"too much output", modules + `{"msg":"` + strings.Repeat(`{{{bt:0:0x50017a:pc}}}\n`, 40_000) + `"}` + "\n", listed + "{}\n"},
	} {
		for _, size := range []int{1 << 30, 1000, 7} {
			var out bytes.Buffer
			w := newReplyWriter(testOptions(t), &out, nil, nil)
			for in := test.in; in != ""; {
				n := min(size, len(in))
				if size < 1000 && len(in) > 10_000 {
					n = 10_000
				}
				io.WriteString(w, in[:n])
				in = in[n:]
			}
			w.Close()
			if out.String() != test.want {
				t.Errorf("%s: got %.200q, want %q", test.name, out.String(), test.want)
			}
		}
	}
}

func TestProcessesOfRepliesAreKept(t *testing.T) {
	o := testOptions(t)
	o.Limits.Processes = 4
	record := func(pid, text string) string { return `{"pid":"` + pid + `","msg":"` + text + `"}` + "\n" }
	const modules = "{{{module:0:inventory:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}"
	first := newReplyWriter(o, io.Discard, []string{"pid"}, nil)
	for _, pid := range []string{"a", "b", strings.Repeat("c", 300) + "1", strings.Repeat("c", 300) + "2"} {
		if first.ProcessesChanged() {
			t.Error("the processes have changed without a line")
		}
		io.WriteString(first, record(pid, modules))
		if !first.ProcessesChanged() {
			t.Errorf("the processes have not changed after %q", pid)
		}
	}
	context, ok := first.AppendProcesses(nil)
	if !ok {
		t.Fatal("no context")
	}
	var out bytes.Buffer
	second := newReplyWriter(o, &out, []string{"pid"}, nil)
	if err := second.Remember(context); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []string{"a", "b", strings.Repeat("c", 300) + "1", "d"} {
		io.WriteString(second, record(pid, "{{{pc:0x500140:pc}}}"))
	}
	known := `{"msg":"leaf(int)[/src/a.cpp:16]"}` + "\n"
	unknown := `{"msg":"[[[pc:0x500140:pc]]]"}` + "\n"
	if diff := cmp.Diff(unknown+unknown+known+unknown, out.String()); diff != "" { // three of five processes fit, beside the process of lines without a key
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestProcessesOfRecords(t *testing.T) {
	const one, two = "{{{module:0:one.so:elf:aabb}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}", "{{{module:0:two.so:elf:ccdd}}}{{{mmap:0x1000:0x1000:load:0:rx:0}}}"
	listed := func(name, id string) string {
		return `[[[ELF module #0x0 "` + name + `"; BuildID=` + id + ` [0x1000-0x1fff](rx)]]]`
	}
	const frame = "{{{pc:0x1234:pc}}}"
	seals := map[Format]func(pid int, text string) string{
		JSON: func(pid int, text string) string {
			return fmt.Sprintf(`{"a":{"pid":%d},"tag":"t","msg":%q}`+"\n", pid, text)
		},
		CRI: func(pid int, text string) string {
			return fmt.Sprintf(`2016-10-06T00:17:09.669794202Z stdout F {"a":{"pid":%d},"tag":"t","msg":%q}`+"\n", pid, text)
		},
		Journal: func(pid int, text string) string {
			return fmt.Sprintf("__CURSOR=s=1\n_PID=%d\nMESSAGE=%s\n\n", pid, text)
		},
	}
	keys := map[Format][]string{JSON: {"a.pid", "tag"}, CRI: {"a.pid", "tag"}, Journal: {"_BOOT_ID", "_PID"}}
	for format, seal := range seals {
		want, in := "", ""
		for _, record := range []struct {
			pid       int
			text, out string
		}{
			{1, one, listed("one.so", "aabb")}, {2, two, listed("two.so", "ccdd")}, {3, "plain", "plain"},
			{1, frame, "one.so+0x234 (BuildId: aabb)"}, {2, frame, "two.so+0x234 (BuildId: ccdd)"}, {3, frame, "[[[pc:0x1234:pc]]]"},
			{1, "{{{hexdict:", "{{{hexdict:"}, {2, frame, "two.so+0x234 (BuildId: ccdd)"}, {1, "}}}", "}}}"},
		} {
			in += seal(record.pid, record.text)
			want += seal(record.pid, record.out)
		}
		var out bytes.Buffer
		e := NewEnvelope(format, filter.Options{}, &out)
		e.KeyBy(keys[format]...)
		io.WriteString(e, in)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%v: (-want +got)\n%s", format, diff)
		}
		context := e.AppendContext(nil)
		again := NewEnvelope(format, filter.Options{}, &out)
		again.KeyBy(keys[format]...)
		if err := again.Restore(context); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		io.WriteString(again, seal(1, frame))
		if got, want := out.String(), seal(1, "one.so+0x234 (BuildId: aabb)"); got != want {
			t.Errorf("%v, restored: got %q, want %q", format, got, want)
		}
	}
}

func TestHeldTracesEndAtOtherProcesses(t *testing.T) {
	frame := func(pid, n int) string {
		return fmt.Sprintf(`{"pid":%d,"msg":"    #%d 0x55d0c8a0%04x in f%d (/no/such/app+0x%x)"}`+"\n", pid, n, 0x100+n, n, 0x100+n)
	}
	const header = `{"pid":1,"msg":"==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000000010"}` + "\n"
	var in string
	held := false
	var out bytes.Buffer
	e := NewEnvelope(JSON, testOptions(t), &out)
	e.KeyBy("pid")
	for _, record := range []string{header, frame(1, 0), frame(1, 1), frame(2, 0), frame(1, 2), `{"pid":2,"msg":"plain"}` + "\n", frame(2, 1), "not JSON\n", frame(1, 3), frame(2, 2)} {
		in += record
		io.WriteString(e, record)
		held = held || e.Unfinished()
		if !strings.HasPrefix(in, out.String()) {
			t.Fatalf("after %s: printed\n%s", record, out.String())
		}
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !held {
		t.Error("nothing was held back")
	}
}

func TestRepliesCostLittle(t *testing.T) {
	r := NewReply(testOptions(t), io.Discard, []string{"hostname", "syslogtag"}, []string{"msg"})
	line := func(msg string) []byte {
		return []byte(`{"msg":"` + msg + `","rawmsg":"<13>` + msg + `","hostname":"web","syslogtag":"app[1]:","pri":13}` + "\n")
	}
	r.Write(line("{{{module:0:inventory:elf:a0a1a2a3a4a5a6a7}}}{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}"))
	for name, b := range map[string][]byte{"plain": line("a line of text, as most are"), "a frame": line("at {{{pc:0x500140:pc}}}")} {
		r.Write(b)
		if n := testing.AllocsPerRun(100, func() { r.Write(b) }); n > 0 {
			t.Errorf("%s takes %v allocations", name, n)
		}
	}
}

func BenchmarkReply(b *testing.B) {
	r := NewReply(testOptions(b), io.Discard, []string{"hostname", "syslogtag"}, []string{"msg"})
	line := []byte(`{ "msg": " 00:06:44.997 INFO balance 825.00", "rawmsg": "<13>Nov 20 10:00:00 web app[1]: 00:06:44.997 INFO  balance 825.00", "timereported": "2026-11-20T10:00:00+00:00", "hostname": "web", "syslogtag": "app[1]:", "inputname": "imptcp", "fromhost": "localhost", "fromhost-ip": "127.0.0.1", "pri": "13", "syslogfacility": "1" }` + "\n")
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		r.Write(line)
	}
}

func TestKeysOfLines(t *testing.T) {
	for line, want := range map[string]string{
		`{"host":"a","pid":7}`:                       "a 7",
		`{"pid":"7","host":"a\u0062"}`:               "ab 7",
		`{"host":"a"}`:                               "a ",
		`{"pid":7.5e1,"host":"a","pid":8}`:           "a 8",
		`{"pid":null,"x":{"pid":9},"y":[{"pid":1}]}`: " null",
		`{"pid":{"a":[1]}}`:                          ` {"a":[1]}`,
		`{"host":"a b","pid":"c"}`:                   `a\ b c`,
		`{"host":"a","pid":"b c"}`:                   `a b\ c`,
		`{"host":"a\\","pid":"b"}`:                   `a\\ b`,
		`{"x":1}`:                                    "",
		`{"host":""}`:                                "",
		`{"host":"a"`:                                "",
		`host`:                                       "",
	} {
		if got := string((&keyReader{names: []string{"host", "pid"}}).append(nil, []byte(line))); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if got := string((&keyReader{names: []string{"b", "a"}}).append(nil, []byte(`{"a":1,"b":2}`))); got != "2 1" {
		t.Errorf("in another order: %q", got)
	}
	line := []byte(`{"host":"a","pid":7,"msg":"text"}`)
	keys, key := keyReader{names: []string{"host", "pid"}}, make([]byte, 0, 64)
	if n := testing.AllocsPerRun(100, func() { key = keys.append(key[:0], line) }); n > 0 {
		t.Errorf("a key takes %v allocations", n)
	}
}

func FuzzReply(f *testing.F) {
	for _, s := range scripts(f, "reply") {
		f.Add(s.Files[0].Data)
	}
	o := testOptions(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		defer fuzztest.Watch(t, in)()
		if len(in) > 64<<10 {
			return
		}
		fuzztest.Growth(t, in, func(in []byte) {
			r := NewReply(o, io.Discard, []string{"hostname", "a.b"}, nil)
			r.Write(in)
			r.Close()
		})
		var out bytes.Buffer
		r := NewReply(o, &out, []string{"hostname", "a.b"}, nil)
		r.Write(in)
		r.Close()
		lines := bytes.Count(in, newline)
		if len(in) > 0 && in[len(in)-1] != '\n' {
			lines++
		}
		n := 0
		for reply := range bytes.Lines(out.Bytes()) {
			n++
			var object map[string]any
			if json.Unmarshal(reply, &object) != nil {
				t.Fatalf("%q is not an object in JSON", reply)
			}
		}
		if n != lines {
			t.Errorf("%d replies to %d lines", n, lines)
		}
		again, _ := bytes.CutSuffix(r.AppendProcesses(nil), newline)
		if err := NewReply(o, io.Discard, nil, nil).Restore(again); err != nil {
			t.Errorf("the context is refused: %v", err)
		}
	})
}
