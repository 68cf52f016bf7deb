package filter

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/logtest"
	"github.com/symfilter/symfilter/symbolize"
)

// resolvingDialects returns options that resolve many frames of the samples: one small program is
// the file of all modules.
func resolvingDialects(t testing.TB) Options {
	image := Image{Path: filepath.Join("testdata", "debug", ".build-id", "b0", "b1b2b3b4b5b6b7.debug")}
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	for _, name := range []string{"", "libledger.so", "inventory", "a.out"} {
		image.Name = name
		o.Dialects.Images = append(o.Dialects.Images, image)
	}
	return o
}

// A backtrace without any resolved frame must be printed unchanged, byte by byte.
func TestUnresolvedBacktracesAreUntouched(t *testing.T) {
	none := symbolize.New(symbolize.Options{})
	defer none.Close()
	for _, log := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		for _, noHold := range []bool{false, true} {
			got, _ := filterString(t, Options{Symbolizer: none, Dialects: Dialects{NoPaths: true, NoHold: noHold}}, log, nil)
			if diff := cmp.Diff(log, got); diff != "" {
				t.Errorf("(-log +out)\n%s", diff)
			}
		}
	}
}

// If Flush has printed the beginning of a line, the line must still be printed only once. The rest
// gets its answer only if the answer does not change the printed text.
func TestFramesWhoseBeginningWasPrintedArePrintedOnce(t *testing.T) {
	none := symbolize.New(symbolize.Options{})
	defer none.Close()
	resolving := resolvingDialects(t)
	for _, log := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		inPieces := func(o Options, part int) string {
			var out strings.Builder
			f := New(&out, o)
			for line := range strings.Lines(log) {
				at := len(line) * part / 4
				for _, piece := range []string{line[:at], line[at:]} {
					io.WriteString(f, piece)
					f.Flush()
				}
			}
			f.Close()
			return out.String()
		}
		whole, _ := filterString(t, resolving, log, nil)
		known := make(map[string]bool)
		for _, text := range []string{whole, log} {
			for line := range strings.Lines(text) {
				known[line] = true
			}
		}
		for part := range 4 {
			if diff := cmp.Diff(log, inPieces(Options{Symbolizer: none, Dialects: Dialects{NoPaths: true}}, part)); diff != "" {
				t.Fatalf("cut at %d/4 (-log +out)\n%s", part, diff)
			}
			for line := range strings.Lines(inPieces(resolving, part)) {
				if !known[line] {
					t.Errorf("cut at %d/4: printed %q, which is neither a line of the log nor of the log in one piece", part, line)
				}
			}
		}
	}
}

// recordedFirmware is a folder of dumps of firmware and the firmware's ELF files.
var recordedFirmware = filepath.Join("..", "integration", "testdata", "firmware", "recorded")

// seedBytes bounds an input of FuzzDialect: with larger inputs, the fuzzer executes few and spends
// its time on minimizing them.
const seedBytes = 4 << 10

var anyNumber = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F]*`)

// seedsOf cuts parts out of log and adds them to the map named of, by dialect and line. A part has
// a line with a frame or map, and the next line. Before the line it has as few lines as the dialect
// needs to recognize the line. Lines that differ only in numbers share a part. seedsOf adds the
// names of all dialects in log to seen.
func seedsOf(log string, firmware bool, of map[string]string, seen map[string]bool) {
	lines := strings.SplitAfter(log, "\n")
	for i, names := range linesOf(lines, firmware) {
		seen[names] = true
		key := names + " " + anyNumber.ReplaceAllString(lines[i], "0")
		if names == "" || of[key] != "" {
			continue
		}
		for before := 0; ; before = 2*before + 1 {
			from := max(0, i-before)
			part := lines[from:min(i+2, len(lines))]
			if linesOf(part[:i-from+1], firmware)[i-from] == names || from == 0 {
				of[key] = strings.Join(part, "")
				break
			}
		}
	}
}

// linesOf returns, for each line, the dialects of its frames, "map", or "".
func linesOf(lines []string, firmware bool) []string {
	names := make([]string, len(lines))
	r := dialect.NewReader(nil)
	r.Firmware = firmware
	for i, line := range lines {
		r.Past = func(n int64) []byte { return []byte(strings.Join(lines[max(0, i-int(n)):i], "")) }
		l := r.Line([]byte(strings.TrimRight(line, "\r\n")), int64(i)+1)
		if l != nil && l.Map {
			names[i] = "map"
		}
		if l != nil && len(l.Frames) > 0 {
			names[i] = l.Frames[0].Dialect.Name
		}
	}
	return names
}

// Bits of FuzzDialect's argument mode.
const (
	modeKeepRaw  = 1 << iota
	modeFirmware // the files are of firmware
	modeColored
	modeCheck // this bit and the next choose a check: see FuzzDialect
)

// dialectSeeds adds a seed of FuzzDialect for each form of each dialect. It reports an error for a
// dialect without a seed.
func dialectSeeds(f *testing.F) {
	of, firmware := make(map[string]string), make(map[string]string)
	seen := make(map[string]bool)
	for _, log := range logtest.Samples(f, "../internal/dialect/testdata/*.txtar") {
		seedsOf(log, false, of, seen)
	}
	for _, name := range []string{"riscv.log", "cortexm.log"} {
		log, err := os.ReadFile(filepath.Join(recordedFirmware, name))
		if err != nil {
			f.Fatal(err)
		}
		seedsOf(string(log), true, firmware, seen)
	}
	for _, archive := range logtest.Archives(f, "../internal/dialect/testdata/firmware.txtar") {
		for i := 0; i < len(archive.Files); i += 2 {
			seedsOf(string(archive.Files[i].Data), true, firmware, seen)
		}
	}
	n := 0
	for mode, parts := range []map[string]string{0: of, modeFirmware: firmware} {
		for _, key := range slices.Sorted(maps.Keys(parts)) {
			log := parts[key]
			if len(log) > seedBytes {
				continue
			}
			name, _, _ := strings.Cut(key, " ")
			delete(seen, name)
			variant := mode | n&modeKeepRaw | n>>1%4*modeCheck
			if n%16 == 15 {
				variant |= modeColored
			}
			f.Add([]byte(strings.ReplaceAll(log, "c3f1b7c55", "a0a1a2a3a4a5a6a7")), byte(variant))
			n++
		}
	}
	delete(seen, "")
	for name := range seen {
		f.Errorf("no seed has a frame of the dialect %s", name)
	}
}

// FuzzDialect checks that no log changes if nothing in it is resolved. It also makes one of four
// checks, which mode chooses, since all four would be slow. A second filter changes nothing; blocks
// of any size give the same output; JSON has the text; the work is linear.
func FuzzDialect(f *testing.F) {
	dialectSeeds(f)
	firmware := []Image{{Path: filepath.Join(recordedFirmware, "riscv.elf")}, {Path: filepath.Join(recordedFirmware, "cortexm.elf")}}
	schema := loadSchema(f)
	none := symbolize.New(symbolize.Options{})
	f.Cleanup(func() { none.Close() })
	resolving := resolvingDialects(f)
	resolving.Dialects.Whole = true   // a slow machine must not end a trace
	resolving.Dialects.NoPaths = true // files on this machine must not change the output
	f.Fuzz(func(t *testing.T, log []byte, mode byte) {
		if len(log) > seedBytes || bytes.Contains(log, markupOpen) {
			return
		}
		if mode&modeColored != 0 {
			log = bytes.ReplaceAll(log, []byte("\n"), []byte("\x1b[0m\r\n\x1b[31m"))
		}
		defer fuzztest.Watch(t, log)()
		untouched := Options{Symbolizer: none, Dialects: Dialects{NoPaths: true, Whole: true}}
		if got, _ := filterString(t, untouched, string(log), nil); got != string(log) {
			t.Fatalf("nothing is resolved, but the log changes:\n%s", cmp.Diff(string(log), got))
		}
		o := resolving
		o.Dialects.KeepRaw = mode&modeKeepRaw != 0
		if mode&modeFirmware != 0 {
			o.Dialects.Images = firmware
		}
		whole, _ := filterString(t, o, string(log), nil)
		switch mode / modeCheck % 4 {
		case 0:
			if twice, _ := filterString(t, o, whole, nil); twice != whole {
				t.Fatalf("a filtered log changes:\n%s", cmp.Diff(whole, twice))
			}
		case 1:
			if cut, _ := filterString(t, o, string(log), rand.New(rand.NewPCG(uint64(mode), 7))); cut != whole {
				t.Fatalf("blocks change what comes out:\n%s", cmp.Diff(cut, whole))
			}
		case 2:
			o.Output = JSON
			objects, _ := filterString(t, o, string(log), nil)
			checkJSON(t, schema, objects, whole)
		case 3:
			fuzztest.Growth(t, log, func(log []byte) {
				f := New(io.Discard, o)
				f.Write(log)
				f.Close()
			})
		}
	})
}

// A second filter must not change a filtered log. Blocks of any size must give the same output, and
// JSON must have the text. FuzzDialect checks this for parts of the samples, this test for whole
// samples.
func TestSamplesInBlocksTwiceAndAsJSON(t *testing.T) {
	schema := loadSchema(t)
	for i, log := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		log = strings.ReplaceAll(log, "c3f1b7c55", "a0a1a2a3a4a5a6a7")
		o := resolvingDialects(t)
		o.Dialects.Whole = true
		want, _ := filterString(t, o, log, nil)
		if cut, _ := filterString(t, o, log, rand.New(rand.NewPCG(uint64(i), 7))); cut != want {
			t.Errorf("blocks change what comes out:\n%s", cmp.Diff(cut, want))
		}
		if twice, _ := filterString(t, o, want, nil); twice != want {
			t.Errorf("a filtered log changes:\n%s", cmp.Diff(want, twice))
		}
		o.Output = JSON
		objects, _ := filterString(t, o, log, nil)
		checkJSON(t, schema, objects, want)
	}
}

// JSON objects of raw frames match the schema, whether the frames are resolved or not.
func TestFramesOfBacktracesMatchTheSchema(t *testing.T) {
	schema := loadSchema(t)
	for _, log := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		for _, o := range []Options{resolvingDialects(t), {Symbolizer: testSymbolizer(t), Dialects: Dialects{NoPaths: true}}} {
			o.Dialects.Whole = true
			text, _ := filterString(t, o, log, nil)
			o.Output = JSON
			objects, _ := filterString(t, o, log, nil)
			checkJSON(t, schema, objects, text)
		}
	}
}

// A panic in package dialect or judge must cost only the answers of a line or of a trace, and must
// be reported.
func TestFaultsOfDialectsCostAnswers(t *testing.T) {
	const log = "one\n/opt/shop/libledger.so(+0x1154) [0x7f31c2a01154]\ntwo\n"
	for name, fail := range map[string]func(*Filter){
		"of a line": func(f *Filter) { f.tracer.reader.Past = func(int64) []byte { panic("a fault") } },
		"of a trace": func(f *Filter) {
			f.tracer.begin()
			f.tracer.trace.Open = func(*dialect.Frame) *judge.Image { panic("a fault") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var messages []string
			f := New(&out, Options{Symbolizer: testSymbolizer(t), Diagnose: func(d Diagnostic) { messages = append(messages, d.Message) }})
			fail(f)
			for range 2 {
				io.WriteString(f, log)
			}
			f.Close()
			if diff := cmp.Diff(log+log, out.String()); diff != "" {
				t.Errorf("(-log +out)\n%s", diff)
			}
			if len(messages) == 0 || !strings.Contains(messages[0], "please report this bug") {
				t.Errorf("the fault is not reported: %q", messages)
			}
		})
	}
}

// Lines with colours get the same answers as the lines without colours. All colours stay, even
// within text that an answer replaces. Added lines of inlined calls end the colour that they
// repeat.
func TestColoursOfFramesAreKept(t *testing.T) {
	fuzztest.WithoutRace(t)
	sequences := regexp.MustCompile(`\x1b\[[0-9;]*[mK]`)
	o := resolvingDialects(t)
	o.Dialects.Whole = true
	for _, log := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		want, _ := filterString(t, o, log, nil)
		for name, colored := range map[string]string{
			"line": regexp.MustCompile(`(?m)^.+$`).ReplaceAllString(log, "\x1b[31m$0\x1b[0m"),
			"word": regexp.MustCompile(`[^\s]+`).ReplaceAllString(log, "\x1b[1;33m$0\x1b[m"),
			"end":  regexp.MustCompile(`(?m)$`).ReplaceAllString(log, "\x1b[K"),
		} {
			got, _ := filterString(t, o, colored, nil)
			if diff := cmp.Diff(want, sequences.ReplaceAllString(got, "")); diff != "" {
				t.Errorf("colours around each %s (-plain +coloured):\n%s", name, diff)
			}
			for s, n := range counts(sequences.FindAllString(colored, -1)) {
				if strings.Count(got, s) < n {
					t.Errorf("colours around each %s: %q is %d times in the log, %d times in the output:\n%q", name, s, n, strings.Count(got, s), got)
				}
			}
			if name == "line" && strings.Count(got, "\x1b[31m") != strings.Count(got, "\x1b[0m") {
				t.Errorf("a colour does not end:\n%q", got)
			}
			if twice, _ := filterString(t, o, got, nil); twice != got {
				t.Errorf("colours around each %s, filtered once (-), twice (+):\n%s", name, cmp.Diff(got, twice))
			}
		}
	}
}

func counts(all []string) map[string]int {
	n := make(map[string]int)
	for _, s := range all {
		n[s]++
	}
	return n
}
