package buildid

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// zipMagic begins an archive that is not empty.
const zipMagic = "PK\x03\x04"

// errBadZip is wrapped by errors for archives that are damaged, exceed the limits, or use
// unsupported features.
var errBadZip = errors.New("not all of this zip file can be used")

// isZip reports whether a file with this name and beginning is searched as an archive.
func isZip(name string, head []byte) bool {
	return strings.EqualFold(filepath.Ext(name), ".zip") && strings.HasPrefix(string(head), zipMagic)
}

// A limitedReader fails after left bytes of r.
type limitedReader struct {
	r    io.ReaderAt
	left int64 // bytes; negative: no limit
}

func (d *limitedReader) ReadAt(p []byte, off int64) (int, error) {
	if d.left >= 0 {
		if d.left < int64(len(p)) {
			return 0, fmt.Errorf("%w: its directory has more than %d bytes", errBadZip, maxZipDirectory)
		}
		d.left -= int64(len(p))
	}
	return d.r.ReadAt(p, off)
}

// openZip reads the directory of the archive of size bytes in r.
func openZip(r io.ReaderAt, size int64) (*zip.Reader, error) {
	if err := checkDirectoryEnd(r, size); err != nil {
		return nil, err
	}
	dear := &limitedReader{r, maxZipDirectory}
	z, err := zip.NewReader(dear, size)
	switch {
	case errors.Is(err, zip.ErrFormat) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return nil, fmt.Errorf("%w: %v", errBadZip, err)
	// insecure names are harmless: they are only printed
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, err
	case len(z.File) > maxZipMembers:
		return nil, fmt.Errorf("%w: more than %d members", errBadZip, maxZipMembers)
	}
	dear.left = -1
	return z, nil
}

// checkDirectoryEnd fails if a possible end record of the archive's directory claims more than
// maxZipMembers members. archive/zip allocates memory for as many members as fit into the file's
// size, and a sparse file can have any size.
func checkDirectoryEnd(r io.ReaderAt, size int64) error {
	const (
		record     = "PK\x06\x06" // end record of ZIP64, the only format with more than 65,535 members
		recordLen  = 56
		members    = 32 // offset of the number of members
		locator    = "PK\x06\x07"
		locatorLen = 20
		most       = 65<<10 + locatorLen // bytes: archive/zip looks for the end in the last 65 KiB
	)
	tail := make([]byte, min(size, most))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for i := 0; ; i++ {
		next := bytes.Index(tail[min(i, len(tail)):], []byte(locator))
		if next < 0 {
			return nil // without ZIP64 there are at most 65,535 members
		}
		if i += next; len(tail)-i < locatorLen {
			return nil
		}
		at := binary.LittleEndian.Uint64(tail[i+8:])
		var b [recordLen]byte
		if at > uint64(size) {
			continue
		}
		n, err := r.ReadAt(b[:], int64(at))
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == recordLen && string(b[:4]) == record && binary.LittleEndian.Uint64(b[members:]) > maxZipMembers {
			return fmt.Errorf("%w: more than %d members", errBadZip, maxZipMembers)
		}
	}
}

// checkMember fails if m exceeds the limits, is encrypted, or uses an unknown compression method.
func checkMember(m *zip.File) error {
	switch {
	case m.Method != zip.Store && m.Method != zip.Deflate:
		return fmt.Errorf("%w: %.100q uses an unknown compression method, number %d", errBadZip, m.Name, m.Method)
	case m.Flags&1 != 0:
		return fmt.Errorf("%w: %.100q is encrypted", errBadZip, m.Name)
	case m.UncompressedSize64 > maxZipMember:
		return fmt.Errorf("%w: %.100q is too large, %d bytes", errBadZip, m.Name, m.UncompressedSize64)
	case m.Method == zip.Store && m.UncompressedSize64 != m.CompressedSize64:
		return fmt.Errorf("%w: %.100q is not compressed, but its compressed and uncompressed sizes differ", errBadZip, m.Name)
	case m.UncompressedSize64 > zipRatioFrom && m.UncompressedSize64/maxZipRatio > m.CompressedSize64:
		return fmt.Errorf("%w: %.100q has a stated size of %d bytes, more than %d compressed bytes can inflate to", errBadZip, m.Name, m.UncompressedSize64, m.CompressedSize64)
	}
	return nil
}

// readMembers returns the members of the archive in r with build IDs. It does not open archives in
// the archive. If it returns both members and an error, it refused other members.
func readMembers(ctx context.Context, r io.ReaderAt, size int64) ([]member, error) {
	z, err := openZip(r, size)
	if err != nil {
		return nil, err
	}
	var members []member
	var refused error // why the first refused member was refused
	budget := int64(maxZipHeads)
	for i, m := range z.File {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if m.UncompressedSize64 < uint64(len(elf.ELFMAG)) || len(m.Name) > maxPath {
			continue
		}
		if err := checkMember(m); err != nil {
			refused = cmp.Or(refused, err)
			continue
		}
		id, cost, err := readMember(r, size, m, min(budget, zipHead))
		if budget -= cost; budget <= 0 {
			return nil, fmt.Errorf("%w: too many members to examine", errBadZip)
		}
		if err != nil && passing(err) {
			return nil, err
		}
		if err == nil {
			members = append(members, member{m.Name, i, id})
		}
	}
	return members, refused
}

// readMember returns the ID in m's note, and the number of bytes that it inflated to find the note.
// It inflates at most limit bytes.
func readMember(r io.ReaderAt, size int64, m *zip.File, limit int64) (ID, int64, error) {
	if m.Method == zip.Store {
		stored, err := storedMember(r, size, m)
		if err != nil {
			return ID{}, 0, err
		}
		id, err := Read(stored, stored.Size())
		return id, 0, err
	}
	body, err := m.Open()
	if err != nil {
		return ID{}, 0, err
	}
	defer body.Close()
	head := &inflatedHead{r: body, limit: limit}
	id, err := Read(head, int64(m.UncompressedSize64))
	return id, int64(len(head.buf)), err
}

func storedMember(r io.ReaderAt, size int64, m *zip.File) (*io.SectionReader, error) {
	off, err := m.DataOffset()
	if err != nil {
		return nil, err
	}
	if off > size || m.UncompressedSize64 > uint64(size-off) {
		return nil, fmt.Errorf("%w: %.100q extends beyond the end of the file", errBadZip, m.Name)
	}
	return io.NewSectionReader(r, off, int64(m.UncompressedSize64)), nil
}

// An inflatedHead gives random access to the first limit bytes of a stream.
type inflatedHead struct {
	r     io.Reader
	buf   []byte
	limit int64
}

func (h *inflatedHead) ReadAt(p []byte, off int64) (int, error) {
	end := off + int64(len(p))
	if off < 0 || end > h.limit {
		return 0, fmt.Errorf("%w: the first %d bytes of a member do not contain the member's build ID, and later bytes are not inflated", errBadZip, h.limit)
	}
	if more := int(end) - len(h.buf); more > 0 {
		had := len(h.buf)
		h.buf = slices.Grow(h.buf, more)[:end]
		n, err := io.ReadFull(h.r, h.buf[had:])
		if err != nil {
			h.buf = h.buf[:had+n]
			return 0, err
		}
	}
	return copy(p, h.buf[off:]), nil
}

// inflate writes m to a temporary file in dir and verifies its checksum.
func inflate(ctx context.Context, m *zip.File, dir string) (_ *tempFile, err error) {
	if err := checkMember(m); err != nil {
		return nil, err
	}
	body, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer body.Close()
	t, err := newTempFile(dir)
	if err != nil {
		return nil, fmt.Errorf("inflate %.100q of %d bytes: %w", m.Name, m.UncompressedSize64, err)
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	size := int64(m.UncompressedSize64)
	in := &summed{ctx: ctx, r: io.LimitReader(body, size+1), sum: crc32.NewIEEE()}
	n, err := io.CopyBuffer(struct{ io.Writer }{t.File}, in, make([]byte, sumChunk))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && passing(err):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: inflate %.100q: %v", errBadZip, m.Name, err)
	case n != size:
		return nil, fmt.Errorf("%w: %.100q has %d bytes, not %d", errBadZip, m.Name, n, size)
	case in.sum.Sum32() != m.CRC32:
		return nil, fmt.Errorf("%w: the checksum of %.100q is %08x, not %08x", errBadZip, m.Name, in.sum.Sum32(), m.CRC32)
	}
	t.size = size
	return t, nil
}

// A summed is a reader that computes the checksum of its bytes. It fails once ctx is done.
type summed struct {
	ctx context.Context
	r   io.Reader
	sum hash.Hash32
}

func (s *summed) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

// A tempFile is a temporary file that is removed when it is closed, or earlier.
type tempFile struct {
	*os.File
	size    int64
	removed bool
}

func newTempFile(dir string) (*tempFile, error) {
	f, err := os.CreateTemp(dir, tempPrefix)
	if err != nil {
		return nil, err
	}
	return &tempFile{File: f, removed: os.Remove(f.Name()) == nil}, nil
}

func (t *tempFile) Close() error {
	err := t.File.Close()
	if !t.removed {
		err = errors.Join(err, os.Remove(t.Name()))
	}
	return err
}
