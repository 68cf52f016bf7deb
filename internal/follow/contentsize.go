package follow

import (
	"errors"
	"io"

	"github.com/symfilter/symfilter/internal/unpack"
)

// damagedSize returns the size of the contents of an archive with the damage err. The size is
// unknown for a truncated gzip file, whose last bytes are not the recorded size.
func (g *generation) damagedSize(err error) (size int64, known bool) {
	if f, _ := g.format(); f == unpack.Gzip && errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, false
	}
	return g.contentSize()
}

// format returns the format of a compressed file, or nil if the format is unknown. The error is a
// damage if the file ends within its first bytes.
func (h *handle) format() (*unpack.Format, error) {
	head := make([]byte, unpack.LongestMagic)
	n, err := h.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	f, undecided := unpack.FormatOf(head[:n])
	if undecided {
		return nil, damage{io.ErrUnexpectedEOF, true}
	}
	return f, nil
}

// contentSize returns the size of the contents, if the compressed file records it.
func (h *handle) contentSize() (size int64, known bool) {
	info, err := h.Stat()
	if err != nil {
		return 0, false
	}
	return unpack.ContentSize(h, info.Size())
}
