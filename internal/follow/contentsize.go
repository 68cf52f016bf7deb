package follow

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

const (
	gzipMagic   = "\x1f\x8b"
	gzipTrailer = 8       // bytes: CRC32 and ISIZE (RFC 1952, section 2.3.1)
	xzFooter    = 12      // bytes ("The .xz File Format" 1.2.1, section 2.1.2)
	maxIndex    = 1 << 20 // bytes of the index of an xz file that are read
	// the most that DEFLATE makes of a byte: two bits stand for 258 bytes (RFC 1951, section 3.2.5)
	maxDeflate = 1032
)

// damagedSize returns the size of the contents of an archive that cannot be unpacked because of err.
// A gzip file that ends early has no size: its last bytes are some of its contents.
func (g *generation) damagedSize(err error) (size int64, known bool) {
	var head [len(gzipMagic)]byte
	if _, e := g.handle.ReadAt(head[:], 0); e == nil && string(head[:]) == gzipMagic && errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, false
	}
	return g.contentSize()
}

// contentSize returns the size of the contents of a compressed file, as the file itself has it: at
// the end of a gzip file, where it is modulo 4 GiB, in the header of zstd, or in the index of xz. It
// returns false if it has none. Files that hold several compressed ones may have the size of one.
func (h *handle) contentSize() (size int64, known bool) {
	info, err := h.Stat()
	if err != nil {
		return 0, false
	}
	packed := info.Size()
	head := make([]byte, 18) // the longest header of zstd
	n, err := h.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return 0, false
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)) && packed > 10+gzipTrailer:
		var end [4]byte
		if _, err := h.ReadAt(end[:], packed-4); err != nil {
			return 0, false
		}
		size = int64(binary.LittleEndian.Uint32(end[:]))
		return size, size/maxDeflate <= packed
	case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
		return zstdContentSize(head[4:])
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return h.xzContentSize(packed)
	}
	return 0, false
}

// zstdContentSize returns Frame_Content_Size of a frame header after its magic number (RFC 8878,
// section 3.1.1.1).
func zstdContentSize(header []byte) (size int64, known bool) {
	if len(header) == 0 {
		return 0, false
	}
	d := header[0]
	single := d>>5&1 == 1
	at := 1 + []int{0, 1, 2, 4}[d&3]
	if !single {
		at++ // Window_Descriptor
	}
	n := []int{0, 2, 4, 8}[d>>6]
	if n == 0 && single {
		n = 1
	}
	if n == 0 || len(header) < at+n {
		return 0, false
	}
	var b [8]byte
	copy(b[:], header[at:at+n])
	v := binary.LittleEndian.Uint64(b[:])
	if n == 2 {
		v += 256
	}
	return int64(v), v>>62 == 0
}

// xzContentSize adds up the sizes in the index of the last stream (section 4).
func (h *handle) xzContentSize(packed int64) (size int64, known bool) {
	footer := make([]byte, xzFooter)
	if packed < 2*xzFooter {
		return 0, false
	}
	if _, err := h.ReadAt(footer, packed-xzFooter); err != nil || string(footer[10:]) != "YZ" {
		return 0, false
	}
	length := (int64(binary.LittleEndian.Uint32(footer[4:])) + 1) * 4
	if length > min(maxIndex, packed-2*xzFooter) {
		return 0, false
	}
	index := make([]byte, length)
	if _, err := h.ReadAt(index, packed-xzFooter-length); err != nil || index[0] != 0 {
		return 0, false
	}
	index = index[1:]
	number := func() (v uint64) {
		v, n := binary.Uvarint(index)
		if known = known && n > 0; known {
			index = index[n:]
		}
		return v
	}
	known = true
	for records := number(); known && records > 0; records-- {
		number() // Unpadded Size
		n := number()
		if known = known && n>>62 == 0 && size+int64(n) >= size; known {
			size += int64(n)
		}
	}
	return size, known
}
