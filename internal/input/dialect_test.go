package input

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// dialectOptions returns options that also resolve the frames of /opt/a.out, a fixture of package
// filter. Held traces are not released by time.
func dialectOptions(t testing.TB) filter.Options {
	t.Helper()
	o := testOptions(t)
	image, err := filepath.Abs("../../filter/testdata/debug/.build-id/a0/a1a2a3a4a5a6a7.debug")
	if err != nil {
		t.Fatal(err)
	}
	o.Dialects = filter.Dialects{Images: []filter.Image{{Name: "a.out", Path: image}}, Whole: true}
	o.Cache = filter.NewCache(0)
	return o
}

// traceLine returns a random line: of a backtrace, of markup, or other text.
func traceLine(g *generator) string {
	return pick(g, "", "plain", "[7] ", `at "0x17b" `) + pick(g,
		"/opt/a.out(+0x18d) [0x55d0c0a0018d]", "/opt/a.out(+0x17b) [0x55d0c0a0017b]", "/opt/a.out(+0x9999) [0x55d0c0a09999]",
		"/opt/a.out(+0x17b) [0x55d0c0a0017b]", "/opt/none.so(+0x17b) [0x55d0c0b0017b]",
		"    #0 0x55d0c0a0018d (/opt/a.out+0x40018d) (BuildId: a0a1a2a3a4a5a6a7)",
		"    #1 0x55d0c0a0017b (/opt/a.out+0x40017b)", "    #2 0x55d0c0a0017b  (<unknown module>)",
		pick(g, "00400000-00401000 r-xp 00000000 08:01 12 /opt/a.out", "plain", "plain", "plain", "plain"), "======= Backtrace: =========", "\t0x12", "\xff", "",
		"{{{reset}}}", "{{{module:1:b.so:elf:b0b1b2b3b4b5b6b7}}}", "{{{mmap:0x700000:0x1000:load:1:r:0x0}}}",
		"{{{bt:0:0x50017a:pc}}}", "{{{hexdict: A: 0x50018d", "}}}", "plain", "plain", "plain")
}

// hasMaps reports whether the log may have a list of maps after a trace. After a restart within the
// list, frames that need its earlier maps stay unresolved.
func hasMaps(log string) bool { return strings.Contains(log, " r-xp ") }

func traceLog(g *generator) []string {
	lines := []string{maps, "."}
	for range 5 + g.IntN(30) {
		line := traceLine(g)
		if strings.Contains(line, "{{{m") {
			line += "." // modules and maps are not merged
		}
		lines = append(lines, line)
		for g.IntN(3) == 0 {
			lines = append(lines, "plain")
		}
	}
	return lines
}

// Backtraces in containers must be held and resolved as in a log without envelopes, whatever the
// sizes of the blocks.
func TestBacktracesInContainers(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := dialectOptions(t)
	for _, output := range []filter.Output{filter.Text, filter.JSON} {
		o.Output = output
		for _, format := range []Format{CRI, Docker} {
			for seed := range uint64(30) {
				g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), format: format}
				lines := traceLog(g)
				if format == Docker {
					for i := range lines {
						lines[i] = strings.ToValidUTF8(lines[i], "?")
					}
				}
				in, ended := g.log(lines, []string{"stdout"}, false)
				var plain bytes.Buffer
				f := filter.New(&plain, o)
				io.WriteString(f, strings.Join(ended, "\n")+"\n")
				f.Close()
				out := envelope(t, format, o, in, g.Rand)
				got, want := out, plain.String()
				if output == filter.Text {
					got = strings.Join(opened(t, format, out), "\n") + "\n"
				} else {
					got = regexp.MustCompile(`(?m)^(\{"v":1),"time":"[^"]+","stream":"std(?:out|err)"`).ReplaceAllString(out, "$1")
				}
				if d := cmp.Diff(got, want); d != "" {
					t.Fatalf("%v, output %d, seed %d: (-got +want)\n%s\nlog:\n%s", format, output, seed, d, in)
				}
				for cut := range in {
					if hasMaps(in) {
						break
					}
					if in[cut] == '\n' && g.IntN(4) == 0 || g.IntN(200) == 0 {
						if got := interrupted(t, format, o, in, cut+g.IntN(2)); got != out {
							t.Fatalf("%v, output %d, seed %d, cut at %d: (-restored +uninterrupted)\n%s\n%s", format, output, seed, cut, cmp.Diff(got, out), in)
						}
					}
				}
			}
		}
	}
}

func TestTracesOfContainersAreOutAfterSilence(t *testing.T) {
	o := dialectOptions(t)
	o.Dialects.Whole = false
	const in = "2026-11-20T10:00:01Z stdout F /opt/a.out(+0x18d) [0x55d0c0a0018d]\n2026-11-20T10:00:02Z stdout F plain\n"
	const want = "2026-11-20T10:00:01Z stdout F /opt/a.out(+0x18d) [0x55d0c0a0018d] bare+0x1\n2026-11-20T10:00:02Z stdout F plain\n"
	var out bytes.Buffer
	w := newWriter(CRI, o, &out)
	io.WriteString(w, in)
	if out.Len() > 0 || !w.Unfinished() {
		t.Errorf("%q is out before the trace ends; unfinished: %v", out.String(), w.Unfinished())
	}
	if err := w.Flush(); err != nil || out.String() != want || w.Unfinished() {
		t.Errorf("%v: got %q, want %q", err, out.String(), want)
	}
}

func TestHeldEnvelopesAreBounded(t *testing.T) {
	fuzztest.WithoutRace(t)
	o := dialectOptions(t)
	line := `{"log":"/opt/a.out(+0x18d) [0x55d0c0a0018d]\n","stream":"stdout","attrs":{"a":"` + strings.Repeat("x", 900<<10) + `"},"time":"2026-11-20T10:00:01Z"}` + "\n"
	w := newWriter(Docker, o, io.Discard)
	for range 40 {
		io.WriteString(w, line)
		if e := w.dst.(*Envelope); e.out.queued > maxQueued+4<<20 {
			t.Fatalf("%d bytes are held", e.out.queued)
		}
	}
	w.Close()
}

// BenchmarkContainerPlain measures lines without frames. The case "dialects" should take little
// more time than the case "none".
func BenchmarkContainerPlain(b *testing.B) {
	line := "2016-10-06T00:17:09.669794202Z stdout F GET /index.html 200 1024 bytes in 0.3 ms {\"a\": {\"b\": 1}}\n"
	docker := "{\"log\":\"GET /index.html 200 1024 bytes in 0.3 ms {\\\"a\\\": {\\\"b\\\": 1}}\\n\",\"stream\":\"stdout\",\"time\":\"2019-01-01T11:11:11.111111111Z\"}\n"
	for name, none := range map[string]bool{"dialects": false, "none": true} {
		for format, line := range map[Format]string{CRI: line, Docker: docker} {
			b.Run(name+"/"+format.String(), func(b *testing.B) {
				o := dialectOptions(b)
				o.Dialects.None = none
				block := []byte(strings.Repeat(line, 2500))
				w := newWriter(format, o, io.Discard)
				b.SetBytes(int64(len(block)))
				for b.Loop() {
					w.Write(block)
				}
			})
		}
	}
}
