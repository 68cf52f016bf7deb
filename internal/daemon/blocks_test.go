package daemon

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// A chunked is a reader whose Reads return the parts one by one. A part that does not fit is
// returned by several Reads.
type chunked struct{ parts [][]byte }

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.parts) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.parts[0])
	if c.parts[0] = c.parts[0][n:]; len(c.parts[0]) == 0 {
		c.parts = c.parts[1:]
	}
	return n, nil
}

func TestBlocksAreWholeLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var want []byte
	var source chunked
	add := func(n, size int) {
		for range n {
			part := bytes.Repeat([]byte{'a'}, random.IntN(size)+1)
			for range random.IntN(3) {
				part[random.IntN(len(part))] = '\n'
			}
			want = append(want, part...)
			source.parts = append(source.parts, part)
		}
	}
	add(100, 100)
	add(20, 2*block)
	add(300, 100)
	add(3, 2*block)
	b := blocks{r: &source}
	defer b.free()
	var got []byte
	sizes := map[bool]int{} // number of blocks, by whether they are small
	for {
		p, err := b.next()
		if err == nil && p[len(p)-1] != '\n' && len(p) < block {
			t.Fatalf("a block of %d bytes ends within a line", len(p))
		}
		if cap(p) == len(p) {
			t.Fatal("there is no room for a line end")
		}
		got = append(got, p...)
		sizes[b.large == nil]++
		if err != nil {
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes, want %d", len(got), len(want))
	}
	if sizes[true] < 200 || sizes[false] < 20 {
		t.Errorf("%d blocks are small, %d large", sizes[true], sizes[false])
	}
}
