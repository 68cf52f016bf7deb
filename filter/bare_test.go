package filter

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/markup"
)

const bareModule = "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x2000:load:0:rx:0x400000}}}\n"

// The output and the counts must be the same with and without bareLines.
func TestBareLinesAreFilteredAsOthers(t *testing.T) {
	frames := strings.Repeat("{{{bt:0:0x50017a}}}\n{{{bt:1:0x50017a:ra}}}\n{{{bt:2:0x50018d:pc}}}\n{{{bt:10000:0x50018d:pc}}}\n", 3)
	for name, log := range map[string]string{
		"frames":         bareModule + frames,
		"text around":    bareModule + "before\n" + frames + "after {{{bt:1:0x50018d:ra}}} \n" + frames + "end",
		"line ends":      bareModule + frames + strings.ReplaceAll(frames, "\n", "\r\n") + frames,
		"unresolved":     bareModule + frames + "{{{bt:1:0x501fff:ra}}}\n{{{bt:0:0x0}}}\n{{{bt:1:0x99:ra}}}\n" + frames,
		"reset":          bareModule + frames + "{{{reset}}}\n" + frames + bareModule + frames,
		"another module": bareModule + frames + "{{{module:1:b.out:elf:b0b1}}}\n" + frames,
		"open module":    bareModule + frames + "{{{module:1:b.out:elf:b0b1}}}\n{{{mmap:0x700000:0x2000:load:1:rx:0x0}}}\n" + frames,
		"a hexdict":      bareModule + frames + "{{{hexdict:a\n" + frames + "}}}\n" + frames,
		"a trace":        bareModule + frames + "    #0 0x50017a  (/opt/a.out+0x40017a)\n" + frames + "    #1 0x50018d  (/opt/a.out+0x40018d)\n" + frames,
		"colours":        bareModule + frames + "\x1b[31m\n" + frames,
	} {
		for _, color := range []Color{ColorKeep, ColorAlways, ColorNever} {
			var outputs [2]string
			var filters [2]*Filter
			for i := range filters {
				var out bytes.Buffer
				f := New(&out, Options{Symbolizer: testSymbolizer(t), Patience: patient, Color: color})
				f.bare = f.bare && i > 0
				if _, err := io.WriteString(f, log); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				filters[i], outputs[i] = f, out.String()
			}
			slow, fast := filters[0], filters[1]
			if outputs[0] != outputs[1] {
				t.Errorf("%s: got\n%s\nwant\n%s", name, outputs[1], outputs[0])
			}
			if innerOf(fast).Line() != innerOf(slow).Line() || fast.elements != slow.elements || fast.answered != slow.answered || fast.outcomes != slow.outcomes || fast.failed != slow.failed {
				t.Errorf("%s: got line %d, %d elements, %d named, %v, %d failed; want %d, %d, %d, %v, %d", name,
					innerOf(fast).Line(), fast.elements, fast.answered, fast.outcomes, fast.failed, innerOf(slow).Line(), slow.elements, slow.answered, slow.outcomes, slow.failed)
			}
		}
	}
}

// Frames at a recently resolved address must take the fast path, and must not allocate memory.
func TestHotBareLinesTakeNoMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	f := New(io.Discard, Options{Symbolizer: testSymbolizer(t), Patience: patient})
	io.WriteString(f, bareModule)
	var log []byte
	for i := range 300 {
		log = fmt.Appendf(log, "{{{bt:%d:0x50017a:ra}}}\n", i)
	}
	write := func() {
		if _, err := f.Write(log); err != nil {
			t.Fatal(err)
		}
	}
	write()
	if n := bareLines(f, log, len(log)); n != len(log) {
		t.Errorf("%d of %d bytes are bare lines", n, len(log))
	}
	if n := testing.AllocsPerRun(100, write); n >= 1 {
		t.Errorf("300 frames allocate %v times", n)
	}
}

// bareFrame must read a line as package markup does, or reject it.
func FuzzBareFrame(f *testing.F) {
	for _, line := range []string{
		"{{{bt:0:0x1}}}\n", "{{{bt:9999:0x0123456789abcdef:ra}}}\n", "{{{bt:007:0xABCDEF:pc}}}\n", "{{{bt:1:0x1:ra:text}}}\n",
		"{{{bt:12345:0x1}}}\n", "{{{bt::0x1}}}\n", "{{{bt:1:0x}}}\n", "{{{bt:1:0x0123456789abcdef0}}}\n", "{{{bt:1:0x1}}}\r\n", "{{{bt:1:0x1:ra}}}",
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, n := bareFrame(line)
		if n == 0 {
			return
		}
		want, message, size := markup.LeadingBT(line)
		if n != size+1 || line[n-1] != '\n' || len(message) > 0 || e != (frameFields{want.Frame, want.Addr, want.Kind}) {
			t.Errorf("%q: got %+v and %d bytes, want %+v and %d", line, e, n, want, size+1)
		}
	})
}
