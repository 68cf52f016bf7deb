package symbolize

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/symindex"
)

// dear is the source of a library with 200 units that share one line program of 4 MB. Each unit has
// a function of 16 bytes.
const dear = `
__asm__(R"(
	.section .text,"ax",@progbits
	.globl first
	.type first,@function
first:
	.fill 3200,1,0x90
	.size first,.-first
	.section .debug_abbrev,"",@progbits
	.byte 1,0x11,0,0x11,1,0x12,6,0x10,0x17,0,0,0
	.section .debug_info,"",@progbits
	.set at,0
	.rept 200
	.long 28
	.short 4
	.long 0
	.byte 8
	.byte 1
	.quad first+at
	.long 16
	.long 0
	.byte 0,0,0,0
	.set at,at+16
	.endr
	.section .debug_line,"",@progbits
	.long end-begin
begin:
	.short 4
	.long program-header
header:
	.byte 1,1,1,-5,14,13,0,1,1,1,1,0,0,0,1,0,0,1
	.byte 0
	.asciz "dear.c"
	.byte 0,0,0,0
program:
	.byte 0,9,2
	.quad first
	.fill 4000000,1,6
	.byte 1
	.byte 2,0x80,0x19
	.byte 0,1,1
end:
	.previous
)");
`

func dearFile(t *testing.T) fixture {
	return build(t, "dear", dear, "-g0", "-nostdlib").variant(t, "--compress-debug-sections=zlib")
}

// If the answers of a file cost too much, its debug information must be set aside, with a message,
// and its symbols must answer. Other files must still answer.
func TestAFileThatCostsTooMuchIsLeftAlone(t *testing.T) {
	f := dearFile(t)
	good := build(t, "shop", source)
	var notes []string
	s := open(t, Options{Notify: func(msg string) { notes = append(notes, msg) }}, oneOf{f, good})
	s.cache.memory.maxOwed = 20 << 20
	entry, first := good.symbols(t)["entry"].Value, f.symbols(t)["first"].Value
	byLine := 0
	for i := range uint64(200) {
		got := code(s, f.at(first+16*i+1))
		if strings.Contains(got, "dear.c") {
			byLine++
		} else if got != "first +"+itoa(16*i+1)+"\n" {
			t.Fatalf("frame %d: got %q", i, got)
		}
		if got := code(s, good.at(entry)); got != entryLine {
			t.Fatalf("the other file after frame %d: got %q", i, got)
		}
	}
	// each answer takes a million steps: 4 MB of a line program, at four bytes a step
	if byLine < 15 || byLine > 25 {
		t.Errorf("%d frames were answered by debug information, want some 20", byLine)
	}
	if got := s.Report(f.id, "").Fault; !strings.Contains(got, errDear.Error()) || !strings.Contains(got, "answering from symbols only") {
		t.Errorf("the report says %q", got)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], errDear.Error()) {
		t.Errorf("notified of %q, want one message", notes)
	}
}

// In an ordinary file, many answers must cost at most answerSteps each on average, so that the file
// owes nothing.
func TestOrdinaryFilesOweNothing(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{f, "here"})
	for range 100 {
		for _, a := range f.textAddresses(t) {
			code(s, f.at(a))
		}
	}
	q, err := s.acquire(context.Background(), f.at(0))
	if err != nil {
		t.Fatal(err)
	}
	defer q.e.mu.Unlock()
	if q.e.owes != 0 {
		t.Errorf("%d steps are owed", q.e.owes)
	}
}

// An index that costs too much must not be completed.
func TestAnIndexThatCostsTooMuchIsNotMade(t *testing.T) {
	f := dearFile(t)
	s := open(t, Options{}, oneFile{f, "here"})
	l := f.at(f.symbols(t)["first"].Value)
	code(s, l)
	q, err := s.acquire(context.Background(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer q.e.mu.Unlock()
	x := newIndexer(q.m.obj, q.m.dw)
	if want := int64(maxOwed + indexSteps*4000000); x.limit < want || x.limit > want+indexSteps*20000 {
		t.Errorf("an index may take %d steps, want some %d", x.limit, want)
	}
	x.limit = 30 << 20
	if err := x.plan(); err != nil {
		t.Fatal(err)
	}
	_, err = x.put(context.Background(), symindex.Dir{Path: filepath.Join(t.TempDir(), "index")}, symindex.Source{ID: f.id.Bytes()})
	if !errors.Is(err, errDear) {
		t.Errorf("put: %v, want that it costs too much", err)
	}
	if n := x.spent.Load(); n < x.limit || n > x.limit+4<<20 {
		t.Errorf("%d steps were taken, of %d", n, x.limit)
	}
}

// oneOf is a finder of several files.
type oneOf []fixture

func (all oneOf) Find(ctx context.Context, q buildid.Query, note func(buildid.Attempt)) (*buildid.File, error) {
	for _, f := range all {
		if f.id == q.ID {
			return oneFile{f, "here"}.Find(ctx, q, note)
		}
	}
	return nil, fs.ErrNotExist
}

func itoa(n uint64) string { return strconv.FormatUint(n, 10) }
