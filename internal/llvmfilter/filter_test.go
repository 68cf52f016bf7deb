package llvmfilter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

func TestEveryLineIsOutWhenItIsWritten(t *testing.T) {
	var out, said bytes.Buffer
	f := New(&out, &said, Options{})
	for _, step := range []struct{ in, out, said string }{
		{"a\nb", "a\n", ""},
		{"c {{{symbol:x", "", ""},
		{"}}}\n{{{module:0:m:elf:aa}}}\n", "bc x\n[[[ELF module #0x0 \"m\"; BuildID=aa", ""},
		{"{{{mmap:0:0x10:load:0:r:0}}}\n{{{X}}}", "", ""},
		{"\n", " [0x0-0xf](r)]]]\n\n", "error: tags must be all lowercase characters\n{{{X}}}\n   ^\n"},
	} {
		out.Reset()
		said.Reset()
		if _, err := io.WriteString(f, step.in); err != nil {
			t.Fatal(err)
		}
		if out.String() != step.out || said.String() != step.said {
			t.Errorf("after %q: got %q and %q, want %q and %q", step.in, out.String(), said.String(), step.out, step.said)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// The diagnostics are recorded from a terminal. A message about an exact number of fields is
// coloured as a whole. In other messages only the severity is coloured.
func TestDiagnosticsInColor(t *testing.T) {
	const in = "{{{A}}}\n{{{symbol}}}\n{{{symbol:a:b}}}\n{{{pc}}}\n{{{data:0:a}}}\n{{{pc:0:pc:x}}}\n{{{module:0:m:elf:aa}}}\n{{{mmap:0:1:load:0:r:0}}}\n{{{pc:0}}}\n"
	const want = "\x1b[0;1;31merror: \x1b[0mtags must be all lowercase characters\n{{{A}}}\n   \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;31merror: expected 1 field(s); found 0\n\x1b[0m{{{symbol}}}\n         \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;35mwarning: expected 1 field(s); found 2\n\x1b[0m{{{symbol:a:b}}}\n         \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;31merror: \x1b[0mexpected at least 1 field(s); found 0\n{{{pc}}}\n     \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;35mwarning: expected 1 field(s); found 2\n\x1b[0m{{{data:0:a}}}\n       \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;31merror: \x1b[0mno mmap covers address\n{{{data:0:a}}}\n        \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;35mwarning: \x1b[0mexpected at most 2 field(s); found 3\n{{{pc:0:pc:x}}}\n     \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;31merror: \x1b[0mno mmap covers address\n{{{pc:0:pc:x}}}\n      \x1b[0;32m^\x1b[0m\n" +
		"\x1b[0;1;31merror: \x1b[0mcould not find build ID\n"
	var said bytes.Buffer
	f := New(io.Discard, &said, Options{DiagColor: true})
	if _, err := io.WriteString(f, in); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(said.String(), want); d != "" {
		t.Errorf("-got +want\n%s", d)
	}
}

func TestReadFrom(t *testing.T) {
	log, err := os.ReadFile(filepath.Join("..", "..", "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	want, wantSaid := byUs(t, string(log), nil, nil)
	sym := symbolize.New(symbolize.Options{})
	defer sym.Close()
	var out, said bytes.Buffer
	f := New(&out, &said, Options{Symbolizer: sym})
	if n, err := f.ReadFrom(iotest.OneByteReader(bytes.NewReader(log))); n != int64(len(log)) || err != nil {
		t.Errorf("ReadFrom = %d, %v", n, err)
	}
	broken := errors.New("broken")
	if _, err := f.ReadFrom(iotest.ErrReader(broken)); err != broken {
		t.Errorf("got %v, want the reader's error", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if out.String() != want || said.String() != wantSaid {
		t.Error(firstDifference(out.String(), want), firstDifference(said.String(), wantSaid))
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

func TestTheWritersErrorIsKept(t *testing.T) {
	broken := errors.New("broken")
	f := New(brokenWriter{broken}, brokenWriter{errors.New("nobody listens")}, Options{})
	for range 2 {
		if _, err := io.WriteString(f, "a\n{{{B}}}\n"); err != broken {
			t.Errorf("Write: got %v, want the writer's error", err)
		}
	}
	if err := f.Close(); err != broken {
		t.Errorf("Close: got %v, want the writer's error", err)
	}
	f = New(io.Discard, brokenWriter{broken}, Options{})
	if _, err := io.WriteString(f, "{{{B}}}\n"); err != nil {
		t.Errorf("Write: got %v of the writer of diagnostics", err)
	}
}

// finderFunc lets a function serve as a finder.
type finderFunc func(context.Context) (*buildid.File, error)

func (f finderFunc) Find(ctx context.Context, _ buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	return f(ctx)
}

func TestOneElementWaitsForAFile(t *testing.T) { synctest.Test(t, testOneElementWaitsForAFile) }

func testOneElementWaitsForAFile(t *testing.T) {
	sym := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{finderFunc(func(ctx context.Context) (*buildid.File, error) {
		<-ctx.Done()
		return nil, fs.ErrNotExist
	})}})
	defer sym.Close()
	log := "{{{module:0:m:elf:aabb}}}\n{{{mmap:0:0x1000:load:0:r:0}}}\n" + strings.Repeat("{{{bt:0:0x1}}}\n", 1000)
	var out, said bytes.Buffer
	begin := time.Now()
	f := New(&out, &said, Options{Symbolizer: sym, Wait: 20 * time.Millisecond})
	if _, err := io.WriteString(f, log); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took != 20*time.Millisecond {
		t.Errorf("1000 elements waited %v, want 20ms", took)
	}
	if got := strings.Count(out.String(), "[[[bt:0:0x1]]]"); got != 1000 {
		t.Errorf("%d raw elements, want 1000", got)
	}
	if got := strings.Count(said.String(), "error: could not find build ID\n"); got != 1000 {
		t.Errorf("%d errors, want 1000", got)
	}

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out.Reset()
	f = New(&out, io.Discard, Options{Symbolizer: sym, Context: ctx})
	if _, err := io.WriteString(f, log); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "[[[bt:0:0x1]]]"); got != 1000 {
		t.Errorf("cancelled: %d raw elements, want 1000", got)
	}
}

func TestLinesBeyondTheLimitPassAsTheyAre(t *testing.T) {
	long := strings.Repeat("{{{symbol:_Z1fv}}} {{{B}}}", maxLine/26+1)
	in := "{{{module:0:m:elf:aa}}}\n" + long + "\nx {{{symbol:_Z1fv}}}\n" + long
	want := "[[[ELF module #0x0 \"m\"; BuildID=aa]]]\n" + long + "\nx f()\n" + long + "\n"
	for _, size := range []int{len(in), 1 << 20} {
		sym := symbolize.New(symbolize.Options{})
		var out, said bytes.Buffer
		f := New(&out, &said, Options{Symbolizer: sym})
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if _, err := io.WriteString(f, rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want || said.Len() != 0 {
			t.Errorf("in pieces of %d: %d bytes came out, want %d; %d bytes of diagnostics", size, out.Len(), len(want), said.Len())
		}
		sym.Close()
	}
}

// Each error repeats its line: a million errors in one line could print terabytes. The diagnostics
// of each line must stay within maxEcho and maxRepeat.
func TestErrorsOfOneLineAreLimited(t *testing.T) {
	in := strings.Repeat("{{{B}}}", 1<<16)
	var said bytes.Buffer
	f := New(io.Discard, &said, Options{})
	for range 2 { // each line has its own limit
		said.Reset()
		if _, err := io.WriteString(f, in+"\n"); err != nil {
			t.Fatal(err)
		}
		if most := maxEcho + maxRepeat*len(in); said.Len() > most+2*len(in)+100 || said.Len() < most/2 {
			t.Errorf("%d bytes of diagnostics", said.Len())
		}
		if !strings.HasSuffix(said.String(), "^\nerror: too many errors in one line; the rest of them are not shown\n") {
			t.Errorf("they end in %.200q", said.String()[said.Len()-200:])
		}
	}
}

func TestModulesAndMapsAreLimited(t *testing.T) {
	var said bytes.Buffer
	f := New(io.Discard, &said, Options{})
	var in bytes.Buffer
	for i := range maxModules + 1 {
		fmt.Fprintf(&in, "{{{module:%d:m:elf:aa}}}\n", i)
	}
	for i := range maxMaps + 1 { // in descending order: the worst for a sorted list
		fmt.Fprintf(&in, "{{{mmap:%#x:1:load:1:r:0}}}\n", 2*(maxMaps+1-i))
	}
	if _, err := f.Write(in.Bytes()); err != nil {
		t.Fatal(err)
	}
	const most = 512 // moves for each insertion; one sorted list would move half of all maps
	if f.maps.moved > maxMaps*most {
		t.Errorf("%d maps were moved to insert %d, want at most %d for each", f.maps.moved, maxMaps, most)
	}
	if _, err := io.WriteString(f, "{{{reset}}}\n{{{module:0:m:elf:aa}}}\n{{{mmap:0:1:load:0:r:0}}}\n"); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("error: too many modules\n{{{module:%d:m:elf:aa}}}\n          ^\nerror: too many mmaps\n{{{mmap:0x2:1:load:1:r:0}}}\n        ^\n", maxModules)
	if d := cmp.Diff(said.String(), want); d != "" {
		t.Errorf("-got +want\n%s", d)
	}
	if f.maps.count != 1 || len(f.modules) != 1 {
		t.Errorf("after the reset there are %d maps and %d modules", f.maps.count, len(f.modules))
	}
}

func TestMapsOfOneLineAreLimited(t *testing.T) {
	var said bytes.Buffer
	f := New(io.Discard, &said, Options{})
	in := "{{{module:0:m:elf:aa}}}\n" + strings.Repeat("{{{mmap:0x1000:0:load:0:r:0}}}\n", maxMaps+1)
	if _, err := io.WriteString(f, in); err != nil {
		t.Fatal(err)
	}
	if want := "error: too many mmaps\n{{{mmap:0x1000:0:load:0:r:0}}}\n        ^\n"; said.String() != want {
		t.Errorf("got %.200q, want %q", said.String(), want)
	}
}

func TestMapsAreFoundInWhateverOrderTheyCame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var list mapList
	first := map[uint64]*mapping{}
	for range 20 * maxRun {
		m := &mapping{addr: r.Uint64N(20 * maxRun)}
		got := list.insert(m)
		if first[m.addr] == nil {
			first[m.addr] = m
		}
		if got != first[m.addr] {
			t.Fatalf("insert at %d: got another than the first", m.addr)
		}
	}
	if list.count != len(first) {
		t.Errorf("%d maps are counted, want %d", list.count, len(first))
	}
	addrs := slices.Sorted(maps.Keys(first))
	for addr := range uint64(20*maxRun + 2) {
		i, found := slices.BinarySearch(addrs, addr)
		if found {
			i++
		}
		var wantBelow, wantAbove *mapping
		if i > 0 {
			wantBelow = first[addrs[i-1]]
		}
		if i < len(addrs) {
			wantAbove = first[addrs[i]]
		}
		if below, above := list.around(addr); below != wantBelow || above != wantAbove {
			t.Fatalf("around(%d) = %v, %v; want %v, %v", addr, below, above, wantBelow, wantAbove)
		}
	}
}

func TestNamesOfModulesAreLimited(t *testing.T) {
	var said bytes.Buffer
	f := New(io.Discard, &said, Options{})
	name := strings.Repeat("n", maxContext/8)
	for i := range 9 {
		fmt.Fprintf(f, "{{{module:%d:%s:elf:aa}}}\n", i, name)
	}
	if got := len(f.modules); got != 8 {
		t.Errorf("%d modules are known, want 8", got)
	}
	if !strings.HasPrefix(said.String(), "error: too many modules\n") {
		t.Errorf("got %.200q", said.String())
	}
}
