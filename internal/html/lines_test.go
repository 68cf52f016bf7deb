package html

import (
	"bytes"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// For whole lines, Lines must make the same page as Text for each line, on any number of
// processors.
func TestLinesAreThoseOfText(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var log bytes.Buffer
	kinds := []string{
		"plain\n", "tab\there\n", "\n", "\r\n", "dos\r\n", "\x1b[31mred\x1b[0m <b>\n", "été\n", "\xff\x00\r\r\n", "\x7f\n",
		strings.Repeat("x", 100) + "\n", strings.Repeat("y", blockSize) + "\n", strings.Repeat("z", 100) + "\x01\n",
	}
	for i := 0; log.Len() < 5*chunkSize; i++ {
		for range i % 23 { // runs of lines that need no escapes in a chunk
			log.WriteString("a line of a log, as most of them are\n")
		}
		log.WriteString(kinds[i%len(kinds)])
	}
	pageOf := func(write func(p *Page, b []byte)) []byte {
		return whole("log", func(p *Page) {
			p.Limit(1000, 3)
			for i, b := 0, log.Bytes(); len(b) > 0; i++ {
				n := min(len(b), 1+i*i*1000)
				n += bytes.IndexByte(b[n-1:], '\n')
				write(p, b[:n])
				if b = b[n:]; i%3 == 0 {
					p.Input("next")
				}
				p.Text([]byte("unfinished "), false)
				p.Backtrace(backtrace(string(rune('a'+i)), "frame"))
				p.Text([]byte("the beginning of "), false)
			}
		})
	}
	runtime.GOMAXPROCS(1)
	want := pageOf(func(p *Page, b []byte) {
		for line := range bytes.Lines(b) {
			p.Text(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'}), true)
		}
	})
	runtime.GOMAXPROCS(4)
	if got := pageOf((*Page).Lines); !bytes.Equal(got, want) {
		t.Errorf("the pages differ: %d bytes, want %d", len(got), len(want))
	}
}

// printableLines must stop at each byte that a chunk does not have unchanged, wherever the byte is
// in a text.
func TestPrintableLines(t *testing.T) {
	for c := range 256 {
		for at := range 70 {
			text := []byte(strings.Repeat("line\n", 14))
			text[at] = byte(c)
			want := len(text)
			if (c < ' ' || c >= 0x7f) && c != '\n' && c != '\t' {
				want = at
			}
			if got := printableLines(text); got != want {
				t.Fatalf("%#x at %d: got %d, want %d", c, at, got, want)
			}
		}
	}
}

// printable and printableLines must find the first unprintable byte, even if other such bytes in
// its word cause carries.
func TestPrintableAmongOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := []byte("aaaaaaaaaaaaaaaa ~\n\n\t\x00\x1f\x7f\x80\x9f\xa0\xff")
	for range 100_000 {
		text := make([]byte, r.IntN(80))
		for i := range text {
			text[i] = kinds[r.IntN(len(kinds)-r.IntN(8))] // makes printable bytes more frequent
		}
		end := func(others string) int {
			i := bytes.IndexFunc(text, func(c rune) bool { return (c < ' ' || c > '~') && !strings.ContainsRune(others, c) })
			if i < 0 {
				i = len(text)
			}
			return i
		}
		if got, want := printable(text), end(""); got != want {
			t.Fatalf("printable(%q) is %d, want %d", text, got, want)
		}
		if got, want := printableLines(text), end("\t\n"); got != want {
			t.Fatalf("printableLines(%q) is %d, want %d", text, got, want)
		}
	}
}

// A large page must reuse the memory of its chunks, and allocate nothing for a line.
func TestLargePagesAllocateNothingForALine(t *testing.T) {
	fuzztest.WithoutRace(t)
	p := New("log")
	p.Limit(1000, 3)
	plain := bytes.Repeat([]byte("a line of a log, as most of them are\n"), chunkSize/37)
	coloured := []byte("\x1b[31mred\x1b[0m and not")
	again := backtrace("a", "frame")
	for i := range again.Rows {
		again.Rows[i].Detail = nil
	}
	var out []byte
	for _, test := range []struct {
		name  string
		write func()
	}{
		{"28,000 plain lines", func() { p.Lines(plain) }},
		{"5,000 lines with colours", func() {
			for range 5000 {
				p.Text(coloured, true)
			}
		}},
		{"5,000 equal backtraces", func() {
			for range 5000 {
				p.Backtrace(again)
			}
		}},
	} {
		write := func() {
			test.write()
			out = p.Take(out[:0])
		}
		for range 2 * maxPacking {
			write()
		}
		// A goroutine is started for each chunk; a run has about one.
		if n := testing.AllocsPerRun(10, write); n > 8 {
			t.Errorf("%s allocate %v times", test.name, n)
		}
	}
}

// Before a page is large, it is kept as HTML and as text of chunks. Neither may be copied while the
// page grows.
func TestGrowingPagesAreNotCopied(t *testing.T) {
	fuzztest.WithoutRace(t)
	p := New("log")
	line := []byte("a line of a log, as most of them are")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for p.size < maxSmall-2*pieceSize {
		p.Text(line, true)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; p.large || n > 2*maxSmall+8*pieceSize {
		t.Errorf("a page of 14 MiB allocates %d bytes", n)
	}
	if len(p.early)+len(p.chunk.packing) == 0 {
		t.Error("no chunk of a page of 14 MiB is compressed")
	}
	for !p.large {
		p.Text(line, true)
	}
	p.End()
	if page := string(p.Take(nil)); !strings.Contains(page, "From line 2001 on") || !strings.Contains(page, `data-first="2001"`) {
		t.Error("the chunks do not begin after the head")
	}
}
