package unpack

import (
	"bufio"
	"compress/bzip2"
	"io"
)

const bzip2Block = 900_000 * 4 // bytes that the decoder takes for the largest block

func openBzip2(packed *bufio.Reader, memory *lease, _ io.Reader) (io.Reader, error) {
	if err := memory.take(bzip2Block); err != nil {
		return nil, err
	}
	in := &bzip2Members{b: packed, n: -len("BZh9")}
	return &bzip2Reader{bzip2.NewReader(in), in}, nil
}

// A bzip2Reader reads all members of a file with one decoder, since each decoder needs memory for a
// whole block.
type bzip2Reader struct {
	z  io.Reader
	in *bzip2Members
}

func (r *bzip2Reader) Read(p []byte) (int, error) {
	n, err := r.z.Read(p)
	if n > 0 {
		r.in.n = 0
	}
	return n, err
}

// A bzip2Members is the input of the decoder. It returns io.EOF after the last member of the file.
// A member ends with the 48 bits of bzip2End and a 32-bit checksum, at any bit of a byte. The
// decoder reads single bytes, and has at most 7 unused bits when it returns the last bytes of a
// block. After the last block, the member therefore ends in the tenth byte that the decoder reads.
type bzip2Members struct {
	b       *bufio.Reader
	n       int    // bytes read since bytes were last unpacked; negative within a member's header
	hi, low uint64 // the last 16 bytes read
}

func (m *bzip2Members) ReadByte() (byte, error) {
	if m.n == 10 && m.isEnd() {
		if f, _, _ := peekFormat(m.b); f != Bzip2 {
			return 0, io.EOF
		}
		m.n = -len("BZh9")
	}
	c, err := m.b.ReadByte()
	if err == nil {
		m.n++
		m.hi, m.low = m.hi<<8|m.low>>56, m.low<<8|uint64(c)
	}
	return c, err
}

// isEnd reports whether a member ends at the last byte.
func (m *bzip2Members) isEnd() bool {
	for unused := range 8 { // number of bits that fill the last byte
		shift := 32 + unused
		end := (m.low>>shift | m.hi<<(64-shift)) & (1<<48 - 1)
		if end == 0x177245385090 {
			return true
		}
	}
	return false
}

func (m *bzip2Members) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := m.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
}
