package deflate

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
	fast "github.com/klauspost/compress/gzip"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// unzip returns what another reader finds in a file of gzip, of one member.
func unzip(t *testing.T, file []byte) []byte {
	t.Helper()
	in := bytes.NewReader(file)
	r, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false)
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if in.Len() > 0 {
		t.Fatalf("%d bytes after the member", in.Len())
	}
	return text
}

// randomText returns n bytes: pieces of letters bytes, which repeat at any distance.
func randomText(r *rand.Rand, n, letters int) []byte {
	var b []byte
	for len(b) < n {
		if at := r.IntN(len(b) + 1); r.IntN(3) > 0 && at < len(b) {
			b = append(b, b[at:min(len(b), at+1+r.IntN(1+r.IntN(600)))]...)
			continue
		}
		for range 1 + r.IntN(20) {
			b = append(b, byte(r.IntN(letters)))
		}
	}
	return b[:n]
}

// logOf returns n lines of a log.
func logOf(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	for range n {
		fmt.Fprintf(&b, "2026-11-20T10:%02d:%02d.%06dZ node%02d shop[%d]: request %08x merged into segment %d\n",
			r.IntN(60), r.IntN(60), r.IntN(1e6), r.IntN(40), r.IntN(1e4), r.Uint32(), r.IntN(100))
	}
	return b.Bytes()
}

// Any text becomes a file from which another program reads the same text.
func TestTextsAreReadAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	texts := [][]byte{nil, bytes.Repeat([]byte("ab"), 1<<18), bytes.Repeat([]byte{0}, 259), logOf(r, 5000)}
	for n := range 300 {
		texts = append(texts, randomText(r, n, 4), bytes.Repeat([]byte("x"), n))
	}
	for range 60 {
		texts = append(texts, randomText(r, r.IntN(300_000), 1+r.IntN(256)))
	}
	// distances about the window, and about what the table can count
	for _, far := range []int{Window - 1, Window, Window + 1, 1<<16 - 1, 1 << 16, 1<<16 + 1} {
		again := randomText(r, 100, 256)
		texts = append(texts, append(append(again, randomText(r, far-len(again), 256)...), again...))
	}
	e := new(Encoder)
	for i, text := range texts {
		if got := unzip(t, e.AppendGzip([]byte("before"), text, nil)[len("before"):]); !bytes.Equal(got, text) {
			t.Fatalf("text %d, of %d bytes: got %d bytes", i, len(text), len(got))
		}
	}
}

// deflated returns text as blocks that end with a byte.
func deflated(text []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write(text)
	w.Flush()
	return b.Bytes()
}

// Parts that are compressed already may be anywhere in a text, also beside each other.
func TestPartsAreReadAgain(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	e := new(Encoder)
	for range 200 {
		text := randomText(r, 1+r.IntN(100_000), 60)
		var parts []Part
		for at := 0; ; {
			from := at + r.IntN(3)*r.IntN(len(text))
			to := from + 1 + r.IntN(5000)
			if to > len(text) {
				break
			}
			parts = append(parts, Part{from, to, deflated(text[from:to])})
			at = to
		}
		if got := unzip(t, e.AppendGzip(nil, text, parts)); !bytes.Equal(got, text) {
			t.Fatalf("%d parts in %d bytes: got %d bytes", len(parts), len(text), len(got))
		}
	}
}

// Frequencies that would need more bits than are allowed get the most that are.
func TestCodesHaveBoundedBits(t *testing.T) {
	c := new(codes)
	frequencies := make([]uint32, numLiterals)
	a, b := uint32(1), uint32(1)
	for i := range 24 { // a tree of depth 23
		frequencies[i*7] = a
		a, b = b, a+b
	}
	var all [numLiterals]uint8
	for _, limit := range []int{7, maxBits} {
		c.lengths(frequencies, limit, all[:])
		sum := 0
		for symbol, n := range all {
			if int(n) > limit || (n > 0) != (frequencies[symbol] > 0) {
				t.Errorf("symbol %d has %d bits, at most %d", symbol, n, limit)
			}
			if n > 0 {
				sum += 1 << (limit - int(n))
			}
		}
		if sum != 1<<limit {
			t.Errorf("codes of up to %d bits use %d places of %d", limit, sum, 1<<limit)
		}
	}
	for used := range 2 {
		clear(frequencies)
		frequencies[200] = uint32(used)
		c.lengths(frequencies, maxBits, all[:])
		if n := bytes.Count(all[:], []byte{1}); n != 2 {
			t.Errorf("with %d symbols, %d codes have one bit", used, n)
		}
	}
}

// A log takes no more bytes than by the fastest level of the library.
func TestLogsAreSmallerThanByTheLibrary(t *testing.T) {
	text := logOf(rand.New(rand.NewPCG(5, 6)), 10_000)
	var b bytes.Buffer
	w, _ := fast.NewWriterLevel(&b, fast.BestSpeed)
	w.Write(text)
	w.Close()
	if n := len(new(Encoder).AppendGzip(nil, text, nil)); n > b.Len() {
		t.Errorf("%d bytes, %d by the library", n, b.Len())
	}
	if n := len(new(Encoder).AppendGzip(nil, bytes.Repeat([]byte("0123456789abcdef"), 1<<16), nil)); n > 3000 {
		t.Errorf("1 MiB that repeats takes %d bytes", n)
	}
}

// An Encoder uses its memory again.
func TestEncodersAllocateNothing(t *testing.T) {
	fuzztest.WithoutRace(t)
	text := append(logOf(rand.New(rand.NewPCG(7, 8)), 3000), strings.Repeat("again and ", 30_000)...)
	e := new(Encoder)
	out := e.AppendGzip(nil, text, nil)
	out = make([]byte, 0, 2*cap(out))
	if n := testing.AllocsPerRun(5, func() { out = e.AppendGzip(out[:0], text, nil) }); n > 0 {
		t.Errorf("%v allocations for a text", n)
	}
}
