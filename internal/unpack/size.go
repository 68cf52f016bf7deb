package unpack

import (
	"encoding/binary"
	"io"

	"github.com/klauspost/compress/zstd"
)

const (
	gzipTrailer = 8       // bytes: CRC32 and ISIZE (RFC 1952, section 2.3.1)
	xzFooter    = 12      // bytes ("The .xz File Format" 1.2.1, section 2.1.2)
	maxIndex    = 1 << 20 // bytes of the index of an xz file that are read
	// the largest ratio of DEFLATE: two bits encode 258 bytes (RFC 1951, section 3.2.5)
	maxDeflate = 1032
)

// ContentSize returns the unpacked size recorded in a compressed file of packed bytes. gzip records
// it at the end, modulo 4 GiB; zstd in the header; xz in the index. known is false without a
// plausible size. If a file has several members, the size may be one member's.
func ContentSize(file io.ReaderAt, packed int64) (size int64, known bool) {
	head := make([]byte, zstd.HeaderMaxSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return 0, false
	}
	switch f, _ := FormatOf(head[:n]); {
	case f == Gzip && packed > 10+gzipTrailer:
		var end [4]byte
		if _, err := file.ReadAt(end[:], packed-4); err != nil {
			return 0, false
		}
		size = int64(binary.LittleEndian.Uint32(end[:]))
		return size, size/maxDeflate <= packed
	case f == Zstd:
		var frame zstd.Header
		known = frame.Decode(head[:n]) == nil && frame.HasFCS && frame.FrameContentSize>>62 == 0
		return int64(frame.FrameContentSize), known
	case f == XZ:
		return xzContentSize(file, packed)
	}
	return 0, false
}

// xzContentSize returns the sum of the unpacked sizes in the index of the last stream ("The .xz
// File Format" 1.2.1, section 4).
func xzContentSize(file io.ReaderAt, packed int64) (size int64, known bool) {
	footer := make([]byte, xzFooter)
	if packed < 2*xzFooter {
		return 0, false
	}
	if _, err := file.ReadAt(footer, packed-xzFooter); err != nil || string(footer[10:]) != "YZ" {
		return 0, false
	}
	length := (int64(binary.LittleEndian.Uint32(footer[4:])) + 1) * 4
	if length > min(maxIndex, packed-2*xzFooter) {
		return 0, false
	}
	index := make([]byte, length)
	if _, err := file.ReadAt(index, packed-xzFooter-length); err != nil || index[0] != 0 {
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
