package profile

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	pprof "github.com/google/pprof/profile"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// listedPlaces implements Places with the frames of a list, and records the arguments of Learn.
type listedPlaces struct {
	program string
	frames  map[uint64][]symbolize.Frame
	facts   []string
	closed  bool
}

// newListedPlaces reads a list of frames: address, linkage name, name and file:line, separated by
// TABs. Frames at the same address are listed innermost first.
func newListedPlaces(list string) *listedPlaces {
	p := &listedPlaces{frames: make(map[uint64][]symbolize.Frame)}
	for line := range strings.Lines(list) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		addr, _ := strconv.ParseUint(strings.TrimPrefix(fields[0], "0x"), 16, 64)
		f := symbolize.Frame{Linkage: fields[1], Func: fields[2]}
		if file, number, ok := strings.Cut(fields[3], ":"); ok {
			n, _ := strconv.ParseUint(number, 10, 32)
			f.File, f.Line, f.HasLine = file, uint32(n), true
			f.Dir = strings.LastIndexByte(file, '/') + 1
		}
		if all := p.frames[addr]; len(all) > 0 {
			all[len(all)-1].Inlined = true
		}
		p.frames[addr] = append(p.frames[addr], f)
	}
	return p
}

func (p *listedPlaces) Learn(f, inner report.RawFrame) {
	how := "after"
	if f.Exact {
		how = "at"
	}
	fact := fmt.Sprintf("%s %#x %s", how, f.Addr, f.Object)
	if inner != (report.RawFrame{}) {
		fact += fmt.Sprintf(" calls %#x", inner.Addr)
	}
	p.facts = append(p.facts, fact)
}

func (p *listedPlaces) Frames(f report.RawFrame) ([]symbolize.Frame, buildid.ID) {
	return p.frames[f.Addr], buildid.ID{}
}

func (p *listedPlaces) Close() { p.closed = true }

// Each txtar holds a profile of DHAT or Massif, the frames at its addresses, and the wanted output
// in each format.
func TestFilesOfValgrindGetNames(t *testing.T) {
	names, err := filepath.Glob("testdata/valgrind/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("%d files, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			input, list := a.Files[0].Data, string(a.Files[1].Data)
			if strings.Contains(name, "unended") {
				input = bytes.TrimSuffix(input, []byte("\n"))
			}
			for _, f := range a.Files[2:] {
				places := newListedPlaces(list)
				o := Options{Places: func(program string) Places { places.program = program; return places }}
				form, show, _ := strings.Cut(f.Name, " ")
				got := ""
				switch form {
				case "own":
					got = printed(t, input, Own, View{}, o)
				case "folded":
					got = printed(t, input, Folded, View{Show: show}, o)
				case "pprof":
					p, err := pprof.ParseData([]byte(printed(t, input, Pprof, View{}, o)))
					if err != nil {
						t.Fatal(err)
					}
					got = p.String() + "\n"
				case "facts":
					printed(t, input, Own, View{}, o)
					got = "program " + places.program + "\n" + strings.Join(places.facts, "\n") + "\n"
				default:
					t.Fatalf("no form %q", form)
				}
				if !places.closed {
					t.Error("the places were not closed")
				}
				if d := cmp.Diff(string(f.Data), got); d != "" {
					t.Errorf("%s (-want, +got):\n%s\n%s", f.Name, d, got)
				}
			}
		})
	}
}

// However a file is divided into pieces, its parts must be the same, and together they must be the
// file.
func TestPartsOfDHATFilesAreWholeInAnyPieces(t *testing.T) {
	for _, file := range []string{
		`{"dhatFileVersion":2` + "\n" + `,"cmd":"./a \"b\" \\","bklt":true,"pps":[{"tb":1,"fs":[1, 2]},{"fs":[]}],"ftbl":["[root]","0x1: f \"x\\","0x2: ???"]}` + "\n",
		`{"pps":[{"fs":[1,{"a":[2]}]}],"other":{"ftbl":["x"],"pps":[{"fs":[1]}]},"ftbl":[1,["a"],"b"]} {"ftbl":["c"]}`,
		`{"a":1]}"ftbl":["x"]`,
		`{"ftbl":["unfinished`,
		`{"pps":[{"tb":12`,
		`[1,2]`,
		"\x00\xff{",
	} {
		parts := func(size int) (all []string) {
			var s dhatScanner
			s.part = func(p dhatPart, b []byte) error {
				if n := len(all) - 1; p == dhatText && n >= 0 && strings.HasPrefix(all[n], "0 ") {
					all[n] += string(b)
				} else {
					all = append(all, fmt.Sprintf("%d %s", p, b))
				}
				return nil
			}
			for piece := range slices.Chunk([]byte(file), size) {
				if err := s.write(piece, false); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.write(nil, true); err != nil {
				t.Fatal(err)
			}
			return all
		}
		want := parts(len(file))
		whole := ""
		for _, part := range want {
			_, text, _ := strings.Cut(part, " ")
			whole += text
		}
		if whole != file {
			t.Errorf("got %q of %q", whole, file)
		}
		for size := range len(file) {
			if d := cmp.Diff(parts(size+1), want); d != "" {
				t.Errorf("%q in pieces of %d bytes: got -, want +\n%s", file, size+1, d)
			}
		}
	}
}

// Texts of any length must be copied.
func TestLongTextsOfDHATFilesAreCopied(t *testing.T) {
	long := strings.Repeat("x", maxDHATToken+10)
	for _, file := range []string{
		`{"dhatFileVersion":2,"cmd":"` + long + `","pps":[],"ftbl":["[root]"]}`,
		`{"dhatFileVersion":2,"pps":[],"ftbl":["[root]","0x1: ` + long + `"]}`,
		`{"dhatFileVersion":2,"pps":[{"fs":[` + strings.Repeat("1,", maxDHATToken/2+10) + `1]}],"ftbl":["[root]","0x1: f"]}`,
		`{"dhatFileVersion":2,"x":` + strings.Repeat("1", maxDHATToken+10) + `,"pps":[],"ftbl":["[root]"]}`,
	} {
		got := printed(t, []byte(file), Own, View{}, Options{})
		if got, _, _ := strings.Cut(got, "\n"); got != file && !strings.HasPrefix(got, file+"! ") {
			t.Errorf("%.60q: %d bytes became %d", file, len(file), len(got))
		}
	}
}

// A large file in a pipe is refused: it cannot be read twice, so it would have to be held in
// memory.
func TestLargeDHATFilesInPipesAreRefused(t *testing.T) {
	file := `{"dhatFileVersion":2,"pps":[` + strings.Repeat(`{"fs":[1]},`, 1<<20)
	budget := report.NewBudget(32<<20, nil)
	_, err := Read(iotest.OneByteReader(strings.NewReader(file[:4<<10])), Options{Options: report.Options{Memory: budget}})
	if err != nil {
		t.Error(err)
	}
	_, err = Read(strings.NewReader(file), Options{Options: report.Options{Memory: budget}})
	const want = "more than 8 MiB: too large for the memory limit; raise the limit with --max-memory, or name the file instead of piping it: a named file may have any size"
	if !errors.Is(err, ErrTooLarge) || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// If the frames of a file cannot be counted, or are too many, the frame numbers in stacks must not
// change.
func TestStacksKeepNumbersOfFramesThatAreNotCounted(t *testing.T) {
	const begin = `{"dhatFileVersion":2,"pps":[{"tb":1,"fs":[1,2]}],"ftbl":["[root]"`
	for _, tt := range []struct{ name, frames, note string }{
		{"a number", `,7,"0x1: ???","0x2: ???"]}`, "the file is cut off or damaged in its list of frames: 1 of at least 3 were read"},
		{"a list", `,["0x1: ???"],"0x2: ???"]}`, "the file is cut off or damaged in its list of frames: 1 of at least 3 were read"},
		{"a text that is too long", `,"0x1: ` + strings.Repeat("x", 2*maxDHATToken) + `","0x2: ???"]}`, "the file is cut off or damaged in its list of frames: 1 of at least 3 were read"},
		{"too many", strings.Repeat(`,"a"`, maxDHATFrames) + `]}`, fmt.Sprintf("the file has %d frames; frames after the first %d get no names", maxDHATFrames+1, maxDHATFrames)},
	} {
		file := begin + tt.frames
		got := printed(t, []byte(file), Own, View{}, everywhere())
		if want := file + "! " + tt.note + "\n"; got != want {
			t.Errorf("%s: got %d bytes that end with %.200q, want %d", tt.name, len(got), got[max(0, len(got)-200):], len(want))
		}
	}
}

// A regular file is read twice, and only its frames are kept: memory must not grow with the file's
// size.
func TestLargeDHATFilesTakeLittleMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	size := fuzztest.LongOr(512<<20, 24<<20)
	f, err := os.Create(filepath.Join(t.TempDir(), "dhat.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	w.WriteString("{\"dhatFileVersion\":2\n,\"mode\":\"heap\",\"bklt\":true,\"cmd\":\"./app\"\n,\"pps\":\n [")
	points := 0
	for written := 0; written < size; points++ {
		if points > 0 {
			w.WriteString("\n ,")
		}
		n, _ := fmt.Fprintf(w, "{\"tb\":%d,\"tbk\":4\n  ,\"tl\":172496\n  ,\"mb\":400,\"mbk\":4\n  ,\"acc\":[-8,400,-9,200]\n  ,\"fs\":[1,2,3,%d,%d,%d,4]\n  }", points, points%900+5, points%901+5, points%902+5)
		written += n
	}
	w.WriteString("\n ]\n,\"ftbl\":\n [\"[root]\"")
	for i := range 910 {
		fmt.Fprintf(w, "\n ,\"0x%X: ??? (in /opt/app)\"", 0x109000+i)
	}
	w.WriteString("\n ]\n}\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	before := fuzztest.Allocated()
	p, err := Read(f, everywhere())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got := &counter{}
	if err := p.Write(got, Own, View{}); err != nil {
		t.Fatal(err)
	}
	if n := fuzztest.Allocated() - before; n > 4<<20 {
		t.Errorf("%d bytes were allocated for a file of %d bytes", n, size)
	}
	if got.points != points || got.inlined != 910 {
		t.Errorf("%d points with %d inlined calls were printed, want %d and 910", got.points, got.inlined, points)
	}
}

// The snapshots of a Massif file repeat the same frames. The texts of a frame must be made only
// once.
func TestLargeMassifFilesTakeLittleMemory(t *testing.T) {
	fuzztest.WithoutRace(t)
	var in bytes.Buffer
	in.WriteString("desc: (none)\ncmd: ./app\ntime_unit: i\n")
	nodes := 0
	for snapshot := 0; in.Len() < 8<<20; snapshot++ {
		fmt.Fprintf(&in, "#-----------\nsnapshot=%d\n#-----------\nheap_tree=detailed\nn100: 100 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.\n", snapshot)
		for i := range 100 {
			fmt.Fprintf(&in, " n0: 1 0x%X: ??? (in /opt/app)\n", 0x109000+i)
			nodes++
		}
	}
	p, err := Read(bytes.NewReader(in.Bytes()), everywhere())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var out bytes.Buffer
	out.Grow(6 * in.Len())
	before := fuzztest.Allocated()
	if err := p.Write(&out, Own, View{}); err != nil {
		t.Fatal(err)
	}
	if n := fuzztest.Allocated() - before; n > 4<<20 {
		t.Errorf("%d bytes were allocated for a file of %d bytes", n, in.Len())
	}
	if n := bytes.Count(out.Bytes(), []byte(": out (a.c:1)\n")); n != nodes {
		t.Errorf("%d of %d nodes have names", n, nodes)
	}
}

// A counter counts the points and the inlined calls in the lines of a file.
type counter struct {
	points, inlined int
	unfinished      []byte
}

func (c *counter) Write(p []byte) (int, error) {
	c.unfinished = append(c.unfinished, p...)
	whole := c.unfinished[:bytes.LastIndexByte(c.unfinished, '\n')+1]
	c.points += bytes.Count(whole, []byte(`{"tb":`))
	c.inlined += bytes.Count(whole, []byte(`: in\n\" (in `))
	c.unfinished = append(c.unfinished[:0], c.unfinished[len(whole):]...)
	return len(p), nil
}

func FuzzDHAT(f *testing.F) {
	names, _ := filepath.Glob("testdata/valgrind/dhat*.txtar")
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isDHAT(data) {
			return
		}
		defer fuzztest.Watch(t, data)()
		fuzzTrace(t, data)
		if !json.Valid(data) {
			return
		}
		o := everywhere()
		got := []byte(withoutNotes(t, data, o))
		if !json.Valid(got) {
			t.Errorf("%q is not JSON", got)
		}
	})
}

func FuzzMassif(f *testing.F) {
	names, _ := filepath.Glob("testdata/valgrind/massif*.txtar")
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(a.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if !isMassif(data) {
			return
		}
		defer fuzztest.Watch(t, data)()
		fuzzTrace(t, data)
		if got := withoutNotes(t, data, everywhere()); strings.Count(got, "\n") < bytes.Count(data, []byte("\n")) {
			t.Errorf("lines of %q are missing in %q", data, got)
		}
	})
}

// everywhere returns Options whose Places have two frames at every address.
func everywhere() Options {
	return Options{Places: func(string) Places { return everyPlace{} }}
}

type everyPlace struct{}

func (everyPlace) Learn(f, inner report.RawFrame) {}
func (everyPlace) Close()                         {}
func (everyPlace) Frames(report.RawFrame) ([]symbolize.Frame, buildid.ID) {
	return []symbolize.Frame{{Func: "in\n\"", Inlined: true}, {Func: "out", File: "a.c", Line: 1, HasLine: true}}, buildid.ID{}
}

// fuzzTrace checks that data is printed unchanged if no frame gets a name. It also prints data with
// names in the forms Text, Folded and Pprof, to find panics.
func fuzzTrace(t *testing.T, data []byte) {
	if got := withoutNotes(t, data, Options{}); got != string(data) {
		t.Errorf("%q became %q", data, got)
	}
	for _, form := range []Output{Text, Folded, Pprof} {
		printed(t, data, form, View{}, everywhere())
	}
}

// withoutNotes returns the output in the form Own, without diagnostics.
func withoutNotes(t *testing.T, data []byte, o Options) string {
	p, err := Read(bytes.NewReader(data), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var out strings.Builder
	if err := p.Write(&out, Own, View{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
