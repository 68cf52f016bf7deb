package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// A fileID tells files apart that exist at the same time: device and inode.
type fileID struct{ dev, ino uint64 }

// errIrregular says that a name stands for something that is no regular file.
var errIrregular = errors.New("not a regular file")

// errTruncated says that what was read of a file is no longer what it holds.
var errTruncated = errors.New("truncated")

// A generation is one file that a name stood for, open.
type generation struct {
	*handle
	head  []byte  // its first bytes, headSize at most
	out   *outlet // where its lines go
	size  int64   // when it was looked at last
	mtime time.Time
	gone  bool // it has no name any more

	off    int64  // of what is to be written next, the beginning of a line
	look   int64  // how far the file was searched for the line's end
	recent []byte // what stood before look: recentSize bytes, or the unfinished line if that has keepSize at most

	silent  int64     // lines that end up to here are quiet
	skips   bool      // if these are many, the first of them need not be read
	hole    bool      // the file began anew: zero bytes at its beginning are none of the log
	moved   time.Time // when it grew last
	looked  time.Time // for late lines
	largest int64     // bytes that it held at the last look; more than were read, if that takes long
	until   int64     // what is behind that may be younger than what another file has; 0: none is
	copied  bool      // it is a copy, which does not grow
}

// openRegular opens path if it is a regular file. Nothing else is opened: that
// alone may do harm, or never return.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, irregular(info)
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err = f.Stat()
	if err == nil && !info.Mode().IsRegular() { // it has changed in between
		err = irregular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// irregular returns the error about what is no regular file.
func irregular(info fs.FileInfo) error {
	what := "a device"
	switch m := info.Mode(); {
	case m.IsDir():
		what = "a folder"
	case m&fs.ModeNamedPipe != 0:
		what = "a FIFO"
	case m&fs.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("%w but %s", errIrregular, what)
}

// openGeneration opens the file that path stands for, to be read from its
// beginning.
func (d *disk) openGeneration(path string) (*generation, error) {
	h, info, err := d.openHandle(path)
	if err != nil {
		return nil, err
	}
	g := &generation{handle: h, size: info.Size(), mtime: info.ModTime(), moved: time.Now()}
	if err := g.readHead(); err != nil {
		h.Close()
		return nil, err
	}
	return g, nil
}

// readHead reads more of the head if there is more. It returns errTruncated if
// what was there is not there any more.
func (g *generation) readHead() error {
	if len(g.head) == headSize {
		return nil
	}
	b := make([]byte, headSize)
	n, err := g.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return err
	}
	if !bytes.HasPrefix(b[:n], g.head) {
		return errTruncated
	}
	g.head = bytes.Clone(b[:n])
	return nil
}

func (g *generation) close() { g.Close() }

// unfinished reports whether bytes were seen behind the last line end.
func (g *generation) unfinished() bool { return g.look > g.off }

// seek makes reading go on at off, the beginning of a line.
func (g *generation) seek(off int64) error {
	before := make([]byte, min(off, recentSize))
	if _, err := g.ReadAt(before, off-int64(len(before))); err != nil && err != io.EOF {
		return err
	}
	g.off, g.look, g.recent = off, off, before
	return nil
}

// lines gives the whole lines that came since the last call to emit, at most
// what buf holds, or one longer line. quiet says that they are not to be
// printed. It reports whether there may be more, and errTruncated if what was
// read before has changed; other errors are emit's, or of reading.
func (g *generation) lines(ctx context.Context, buf []byte, emit func(p []byte, quiet bool) error) (more bool, err error) {
	info, err := g.Stat()
	if err != nil {
		return false, err
	}
	size, mtime := info.Size(), info.ModTime()
	g.gone = links(info) == 0
	switch {
	case size < g.look:
		g.size, g.mtime = size, mtime
		return false, errTruncated
	case size == g.look && mtime.Equal(g.mtime):
		return false, nil
	}
	before := g.largest
	defer func() {
		if err == nil { // else it may be of other lines by now
			g.largest = size
		} else {
			g.largest = before
		}
	}()
	g.size, g.mtime = size, mtime
	if err := g.readHead(); err != nil {
		return false, err
	}
	if g.hole && g.look == 0 {
		if at := skipHole(g.f, 0, size); at > 0 {
			if err := g.seek(at); err != nil {
				return false, err
			}
		}
	}

	if g.look-g.off > rereadSize { // a hole has no line end
		if at := skipHole(g.f, g.look, size); at > g.look+readSize {
			g.look, g.recent = at, make([]byte, recentSize)
			return true, nil
		}
	}
	begin := g.look - int64(min(len(g.recent), recentSize))
	if g.look-g.off <= rereadSize {
		begin = min(begin, g.off)
	}
	if g.until > 0 {
		buf = buf[:min(int64(len(buf)), max(g.until, g.look)-begin)]
	}
	n, err := g.ReadAt(buf, begin)
	if err != nil && err != io.EOF {
		return false, err
	}
	seen := int(g.look - begin)
	if n < seen || !bytes.HasSuffix(g.recent, tail(buf[:seen], len(g.recent))) {
		return false, errTruncated
	}
	if n == seen {
		return g.until > 0 && size > g.look, nil
	}
	g.moved = time.Now()
	b := buf[:n]
	if g.hole && g.look == g.off {
		zeros := n - seen - len(bytes.TrimLeft(b[seen:], "\x00"))
		g.off += int64(zeros)
		g.look = g.off
		if seen += zeros; seen == n {
			g.remember(b)
			return true, nil
		}
		g.hole = false
	}

	more = n == len(buf)
	if begin > g.off || bytes.IndexByte(b[seen:], '\n') < 0 && more {
		return g.longLine(ctx, b[seen:], buf, emit)
	}
	g.look = begin + int64(n)
	end := bytes.LastIndexByte(b, '\n') + 1
	start := int(g.off - begin)
	if end <= seen {
		end = start
	}
	whole := b[start:end]
	off := g.off
	g.off += int64(len(whole))
	g.remember(b)
	if err := g.give(off, whole, emit); err != nil {
		g.off = off
		return false, err
	}
	return more, nil
}

// tail returns the last n bytes of b, or all.
func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// remember keeps what is needed of b, which ends at g.look.
func (g *generation) remember(b []byte) {
	n := recentSize
	if u := g.look - g.off; u > recentSize && u <= keepSize {
		n = int(u)
	}
	g.recent = append(g.recent[:0], tail(b, n)...)
	if cap(g.recent) > 2*n+recentSize {
		g.recent = bytes.Clone(g.recent)
	}
}

// give gives whole lines, which begin at off, to emit.
func (g *generation) give(off int64, lines []byte, emit func(p []byte, quiet bool) error) error {
	if off < g.silent {
		n := int(min(g.silent-off, int64(len(lines))))
		n = bytes.LastIndexByte(lines[:n], '\n') + 1
		if n > 0 {
			if err := emit(lines[:n], true); err != nil {
				return err
			}
		}
		lines = lines[n:]
		if len(lines) > 0 {
			g.silent = 0 // the line that is unfinished there is printed
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return emit(lines, false)
}

// longLine searches b, which was read at g.look, for the end of a line that is
// too long to be read again each time; when it is there the line is given in
// parts.
func (g *generation) longLine(ctx context.Context, b, buf []byte, emit func(p []byte, quiet bool) error) (more bool, err error) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		g.look += int64(len(b))
		g.remember(b)
		return true, nil
	}
	return true, g.inParts(ctx, g.look+int64(i)+1, buf, emit)
}

// inParts gives what stands before end, the end of a line, in parts that
// together are one line, whatever happens.
func (g *generation) inParts(ctx context.Context, end int64, buf []byte, emit func(p []byte, quiet bool) error) error {
	quiet := end <= g.silent
	for at := g.off; at < end; {
		n, err := g.ReadAt(buf[:min(int64(len(buf)), end-at)], at)
		if ctx.Err() != nil {
			err = ctx.Err()
		} else if n == 0 && (err == nil || err == io.EOF) {
			err = errTruncated
		} else if n > 0 {
			err = nil
		}
		if err != nil {
			if at > g.off {
				emit([]byte{'\n'}, quiet)
			}
			return err
		}
		if err := emit(buf[:n], quiet); err != nil {
			return err
		}
		at += int64(n)
	}
	return g.seek(end)
}

// skip leaves out quiet lines, if there are more than lookBack bytes of them.
func (g *generation) skip() error {
	g.skips = false
	if from := g.silent - lookBack; from > g.off {
		return g.seek(from) // in the midst of a line, whose rest is quiet
	}
	return nil
}

// endLine gives the unfinished line, and end behind it: nothing more is to come.
func (g *generation) endLine(ctx context.Context, buf, end []byte, emit func(p []byte, quiet bool) error) error {
	n := g.look - g.off
	if n == 0 {
		return nil
	}
	if n+int64(len(end)) > int64(len(buf)) {
		if err := g.inParts(ctx, g.look, buf, emit); err != nil || len(end) == 0 {
			return err
		}
		return emit(end, false)
	}
	m, err := g.ReadAt(buf[:n], g.off)
	if err != nil && err != io.EOF {
		return err
	}
	off := g.off
	g.off, g.look = g.off+int64(m), g.off+int64(m)
	g.remember(buf[:m])
	return g.give(off, append(buf[:m], end...), emit)
}

// kept returns the bytes of the unfinished line that were kept, and how many
// were not.
func (g *generation) kept() (line []byte, lost int64) {
	n := g.look - g.off
	if n > int64(len(g.recent)) {
		return nil, n
	}
	return tail(g.recent, int(n)), 0
}

// A mark is what a checkpoint says of a place in a file: which file it is, and
// what stands around the place.
type mark struct {
	Dev    uint64    `json:"dev"`
	Ino    uint64    `json:"ino"`
	Head   string    `json:"head"` // hash of the first bytes
	Len    int       `json:"len"`  // how many
	Off    int64     `json:"off"`
	Before string    `json:"before"` // hash of up to recentSize bytes before Off
	Time   time.Time `json:"time"`   // of the file's last change
}

// mark returns the mark of where lines were written up to.
func (g *generation) mark() (mark, error) {
	before := tail(g.recent, recentSize)
	if n := min(g.off, recentSize); g.look != g.off || int64(len(before)) < n {
		before = make([]byte, n)
		if _, err := g.ReadAt(before, g.off-n); err != nil {
			return mark{}, err
		}
	}
	return mark{g.id.dev, g.id.ino, hash(g.head), len(g.head), g.off, hash(before), g.mtime}, nil
}

// hash tells bytes of a log apart without showing them.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// sameBeginning reports whether the file begins as that of m did.
func (m mark) sameBeginning(g *generation) bool {
	return m.Len >= 0 && len(g.head) >= m.Len && m.Off >= 0 && hash(g.head[:m.Len]) == m.Head
}

// holds reports whether all that was read of the file of m is in that of g.
func (m mark) holds(g *generation) bool {
	if g.size < m.Off || !m.sameBeginning(g) {
		return false
	}
	before := make([]byte, min(m.Off, recentSize))
	if _, err := g.ReadAt(before, m.Off-int64(len(before))); err != nil && err != io.EOF {
		return false
	}
	return hash(before) == m.Before
}
