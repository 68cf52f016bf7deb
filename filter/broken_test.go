package filter

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// If filtering a line panics, the line must be printed unchanged, and other lines must not be
// affected.
func TestAPanicCostsOneLine(t *testing.T) {
	const head = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n"
	const in = head + "before\n{{{symbol:_Z1fv}}} {{{pc:nonsense}}} \x1b[31mred\n{{{symbol:_Z1gv}}}\nafter\n"
	const shown = "[[[ELF module #0x0 \"a.out\"; BuildID=a0a1a2a3a4a5a6a7 [0x500000-0x501fff](rx)]]]\n"
	for _, test := range []struct {
		name string
		o    Options
		want string
	}{
		{"text", Options{}, shown + "before\n{{{symbol:_Z1fv}}} {{{pc:nonsense}}} \x1b[31mred\ng()\nafter\n"},
		{"a terminal", Options{Terminal: true, Color: ColorNever}, shown + "before\n{{{symbol:_Z1fv}}} {{{pc:nonsense}}} \\x1b[31mred\ng()\nafter\n"},
		{"JSON", Options{Output: JSON}, `{"v":1,"text":` + strconv.Quote(strings.TrimSuffix(shown, "\n")) + `,"elements":[{"tag":"module","id":0,"module":"a.out","build_id":"a0a1a2a3a4a5a6a7","maps":[{"start":"0x500000","end":"0x501fff","mode":"rx","offset":"0x400000"}]}]}` + "\n" +
			`{"v":1,"text":"before"}` + "\n" + `{"v":1,"text":"{{{symbol:_Z1fv}}} {{{pc:nonsense}}} \u001b[31mred"}` + "\n" +
			`{"v":1,"text":"g()","elements":[{"tag":"symbol","name":"_Z1gv","demangled":"g()"}]}` + "\n" + `{"v":1,"text":"after"}` + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var reports []string
			test.o.Symbolizer, test.o.Patience = testSymbolizer(t), patient
			broken := true
			test.o.Diagnose = func(d Diagnostic) {
				if broken {
					broken = false
					panic("a fault of the embedding program")
				}
				reports = append(reports, fmt.Sprintf("%d: %s", d.Line, d.Message[:strings.Index(d.Message, "\n")]))
			}
			var out bytes.Buffer
			f := New(&out, test.o)
			if _, err := f.Write([]byte(in)); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			want := []string{"4: symfilter failed on this line, which is printed unchanged; please report this bug: a fault of the embedding program"}
			if diff := cmp.Diff(want, reports); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

// If filtering panics for every line, no text may be lost, whatever the lengths of the lines.
func TestPanicsLoseNoText(t *testing.T) {
	line := strings.Repeat("{{{symbol:_Z1fv}}}text ", 20_000) + "\n"
	in := strings.Repeat("plain\n"+line, 3)
	var out bytes.Buffer
	f := New(&out, Options{Diagnose: func(Diagnostic) { panic("always") }})
	bad := strings.ReplaceAll(in, "_Z1fv}}}text \n", "_Z1fv}}}{{{pc:x}}}\n") // the fault is last
	for _, b := range bytes.SplitAfter([]byte(bad), []byte(" ")) {
		if _, err := f.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if out.String() != bad {
		t.Errorf("%d bytes came out of %d; they differ from byte %d on", out.Len(), len(bad), firstDifference(out.String(), bad))
	}
}

func TestAPanicOfTheWriterReachesTheCaller(t *testing.T) {
	defer func() {
		if got := recover(); got != "broken writer" {
			t.Errorf("recovered %v, want the writer's panic", got)
		}
	}()
	f := New(brokenWriter{}, Options{})
	f.Write([]byte("{{{symbol:_Z1fv}}}\n"))
	t.Error("Write returned")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { panic("broken writer") }

// Streams that share a symbolizer and a cache must not share their contexts. In each stream, the
// same module number and the same address belong to another build.
func TestStreamsAreIsolated(t *testing.T) {
	const lines = 2000
	symbolizer, cache := testSymbolizer(t), NewCache(0)
	in := func(id string, at int) string {
		return fmt.Sprintf("{{{module:0:prog:elf:%s}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x%x}}}\n", id, at) +
			strings.Repeat("{{{bt:0:0x50017a:pc}}}\n", lines)
	}
	streams := []struct{ in, frame string }{
		{in("a0a1a2a3a4a5a6a7", 0x400000), "int ns::Foo::run<int>(int) /src/a.cpp:12:66 (prog+0x40017a)"},
		{in("a0a1a2a3a4a5a6a7", 0), "(prog+0x17a) (BuildId: a0a1a2a3a4a5a6a7)"},
		{in("b0b1b2b3b4b5b6b7", 0x400000), "(prog+0x40017a) (BuildId: b0b1b2b3b4b5b6b7)"},
	}
	var all sync.WaitGroup
	for _, s := range streams {
		all.Go(func() {
			var out bytes.Buffer
			f := New(&out, Options{Symbolizer: symbolizer, Cache: cache, Patience: patient})
			for i := 0; i < len(s.in); i += 97 {
				f.Write([]byte(s.in[i:min(len(s.in), i+97)]))
			}
			f.Close()
			if got := strings.Count(out.String(), s.frame); got != lines {
				t.Errorf("%d of %d frames are %q; the first lines:\n%.600s", got, lines, s.frame, out.String())
			}
		})
	}
	all.Wait()
}
