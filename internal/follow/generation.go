package follow

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// errTruncated reports that bytes read before have changed or are gone.
var errTruncated = errors.New("truncated")

// A generation is one of the successive files of a followed name.
type generation struct {
	*handle
	head     []byte  // first bytes, lineage.HeadSize at most
	out      *outlet // takes its lines
	size     int64   // bytes at the last look
	mtime    time.Time
	unlinked bool // removed, without a name
	// resolved path of a symbolic link to the file; empty: unknown
	realPath string

	off  int64 // offset of the next line to write
	look int64 // the end of that line was searched for up to this offset
	// the last lineage.RecentSize bytes before look, or a longer unfinished line of at most
	// keepSize bytes
	recent []byte

	silent int64     // lines before this offset are not printed
	since  int64     // offset of the first line given to the sink for printing
	skips  bool      // if there are many quiet lines, the first of them may be skipped
	hole   bool      // the file was truncated and rewritten: skip its leading NUL bytes
	moved  time.Time // last growth
	looked time.Time // last look for late lines
	// size at the last successful look; after a truncation, the loss is computed from this size
	largest int64
	// reading stops at this offset for now: later bytes may be younger than lines in another file;
	// 0: no limit
	until        int64
	copied       bool // the file does not grow: a copy of a truncated file, or compressed
	namedArchive bool // the file has the name of a compressed file
	// contents of a compressed file, to which all offsets refer; nil: not compressed
	contents *contents
}

// openRegular opens path if it is a regular file. Opening a device could have an effect, or never
// return.
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
	if err == nil && !info.Mode().IsRegular() { // replaced between the two checks
		err = irregular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// irregular returns the error for a file that is not regular, with its type.
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
	return fmt.Errorf("%w but %s", lineage.ErrIrregular, what)
}

// openGeneration opens the file at path, to be read from its beginning.
func (d *disk) openGeneration(path string) (*generation, error) {
	h, info, err := d.openHandle(path)
	if err != nil {
		return nil, err
	}
	g := &generation{handle: h, size: info.Size(), mtime: info.ModTime(), moved: time.Now(), namedArchive: lineage.IsArchive(path)}
	if err := g.readHead(); err != nil {
		h.Close()
		return nil, err
	}
	return g, nil
}

// readHead extends the head if the file has grown. It returns errTruncated if the head has changed.
func (g *generation) readHead() error {
	if len(g.head) == lineage.HeadSize {
		return nil
	}
	b := make([]byte, lineage.HeadSize)
	n, err := g.ReadAt(b, 0)
	if err != nil && err != io.EOF && !(n > 0 && isDamage(err)) {
		return err
	}
	if !bytes.HasPrefix(b[:n], g.head) {
		return errTruncated
	}
	g.head = bytes.Clone(b[:n])
	return nil
}

// ReadAt implements [io.ReaderAt]. It reads the contents of a compressed file.
func (g *generation) ReadAt(p []byte, off int64) (int, error) {
	if g.contents != nil {
		return g.contents.ReadAt(p, off)
	}
	return g.handle.ReadAt(p, off)
}

// Close releases the descriptor and the decoder. The next use reopens the file.
func (g *generation) Close() {
	if g.contents != nil {
		g.contents.release()
	}
	g.handle.Close()
}

// unfinished reports whether bytes follow the last line end.
func (g *generation) unfinished() bool { return g.look > g.off }

// isAs reports whether info has the size and the time of the last look.
func (g *generation) isAs(info fs.FileInfo) bool {
	return info.Size() == g.size && info.ModTime().Equal(g.mtime)
}

// seek sets the read offset to off, and sets recent to the bytes before off.
func (g *generation) seek(off int64) error {
	before := make([]byte, min(off, lineage.RecentSize))
	if _, err := g.ReadAt(before, off-int64(len(before))); err != nil && err != io.EOF {
		return err
	}
	g.off, g.look, g.recent = off, off, before
	return nil
}

// lines calls emit with the whole lines since the last call: at most as many as fit into buf, or
// one longer line in parts. quiet marks lines that are not to be printed. more reports whether
// there may be more lines. The error is errTruncated, or an error of emit or of a read.
func (g *generation) lines(ctx context.Context, buf []byte, emit func(p []byte, quiet bool) error) (more bool, err error) {
	if g.contents != nil {
		return g.unpackedLines(ctx, buf, emit)
	}
	info, err := g.Stat()
	if err != nil {
		return false, err
	}
	size, mtime := info.Size(), info.ModTime()
	g.unlinked = links(info) == 0
	switch {
	case size < g.look:
		g.size = size
		return false, errTruncated
	case size == g.look && mtime.Equal(g.mtime):
		return false, nil
	}
	largest, last := g.largest, g.mtime
	defer func() {
		switch {
		case err == nil:
			g.largest = size
		case errors.Is(err, errTruncated): // the old time lets the next look detect the truncation
			g.mtime = last
			fallthrough
		default:
			g.largest = largest
		}
	}()
	g.size, g.mtime = size, mtime
	if changed, err := g.changedUnread(); changed || err != nil {
		return false, cmp.Or(err, errTruncated)
	}
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
			g.look, g.recent = at, make([]byte, lineage.RecentSize)
			return true, nil
		}
	}
	begin := g.look - int64(min(len(g.recent), lineage.RecentSize))
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
	if begin == 0 && n > 0 {
		if same, err := g.beginsWith(buf[:n]); !same || err != nil {
			return false, cmp.Or(err, errTruncated)
		}
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
	if begin > g.off || g.firstEnd(b[seen:]) == 0 && more {
		return g.longLine(ctx, b[seen:], buf, emit)
	}
	g.look = begin + int64(n)
	start := int(g.off - begin)
	// Search all bytes again: while the file held UTF-16, "\n" alone was not a line end.
	whole := b[start:max(start, g.lastEnd(b))]
	off := g.off
	g.off += int64(len(whole))
	g.remember(b)
	if err := g.emitLines(off, whole, emit); err != nil {
		g.off = off
		return false, err
	}
	return more, nil
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// remember sets recent from the end of b, which ends at g.look.
func (g *generation) remember(b []byte) {
	n := lineage.RecentSize
	if u := g.look - g.off; u > lineage.RecentSize && u <= keepSize {
		n = int(u)
	}
	g.recent = append(g.recent[:0], tail(b, n)...)
	if cap(g.recent) > 2*n+lineage.RecentSize {
		g.recent = bytes.Clone(g.recent)
	}
}

// emitLines calls emit with the whole lines at off, quiet lines first.
func (g *generation) emitLines(off int64, lines []byte, emit func(p []byte, quiet bool) error) error {
	if off < g.silent {
		n := int(min(g.silent-off, int64(len(lines))))
		n = g.lastEnd(lines[:n])
		if n > 0 {
			if err := emit(lines[:n], true); err != nil {
				return err
			}
		}
		lines = lines[n:]
		if len(lines) > 0 {
			g.silent = 0 // the line that crosses the limit is printed
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return emit(lines, false)
}

// longLine searches b, which was read at g.look, for the end of a line that is too long to be
// reread. If it finds the end, it emits the line in parts.
func (g *generation) longLine(ctx context.Context, b, buf []byte, emit func(p []byte, quiet bool) error) (more bool, err error) {
	i := g.firstEnd(b)
	if i == 0 {
		g.look += int64(len(b))
		g.remember(b)
		return true, nil
	}
	return true, g.inParts(ctx, g.look+int64(i), buf, emit)
}

// inParts emits, in parts, the line that ends at the offset end. If a read fails after the first
// part, inParts emits a line end.
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
				emit(g.newline(), quiet)
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

// skip skips quiet lines that are more than lookBack bytes before the first line to print, unless
// the file must be read from its beginning.
func (g *generation) skip() error {
	g.skips = false
	if g.needsBeginning() {
		return nil
	}
	if from := g.silent - lookBack; from > g.off {
		return g.seek(from) // the middle of a line, which is quiet
	}
	return nil
}

// endLine emits the unfinished line, which gets no further bytes. If ended is set, endLine adds a
// line end.
func (g *generation) endLine(ctx context.Context, buf []byte, ended bool, emit func(p []byte, quiet bool) error) error {
	n := g.look - g.off
	if n == 0 {
		return nil
	}
	var end []byte
	if ended {
		end = g.newline()
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
	return g.emitLines(off, append(buf[:m], end...), emit)
}

// kept returns the unfinished line if all of it is in memory. Otherwise it returns the number of
// the line's bytes as lost.
func (g *generation) kept() (line []byte, lost int64) {
	n := g.look - g.off
	if n > int64(len(g.recent)) {
		return nil, n
	}
	return tail(g.recent, int(n)), 0
}

// changedUnread reports whether g was truncated before any line was read.
func (g *generation) changedUnread() (bool, error) {
	if g.look > 0 || g.f == nil || g.contents != nil {
		return false, nil
	}
	head := make([]byte, len(g.head))
	n, err := g.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	return !bytes.Equal(head[:n], g.head), nil
}

// beginsWith reports whether b, read from the beginning of the file, agrees with the head and with
// the file's present beginning. Between two reads, the file may be truncated and rewritten, and a
// read during the truncation may return old bytes.
func (g *generation) beginsWith(b []byte) (bool, error) {
	b = b[:min(len(b), lineage.HeadSize)]
	now := make([]byte, len(b))
	n, err := g.ReadAt(now, 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	return bytes.Equal(now[:n], b) && bytes.HasPrefix(b, g.head[:min(len(b), len(g.head))]), nil
}

// mark returns the [lineage.Mark] for the end of the last line that the sink got.
func (g *generation) mark() (lineage.Mark, error) {
	if changed, err := g.changedUnread(); err != nil {
		return lineage.Mark{}, err
	} else if changed {
		last := g.mtime
		if err := g.rewind(); err != nil {
			return lineage.Mark{}, err
		}
		g.mtime = last
		g.size = -1 // the next look finds it changed
	}
	before := tail(g.recent, lineage.RecentSize)
	if n := min(g.off, lineage.RecentSize); g.look != g.off || int64(len(before)) < n {
		before = make([]byte, n)
		if _, err := g.ReadAt(before, g.off-n); err != nil {
			return lineage.Mark{}, err
		}
	}
	return lineage.MarkAt(g.State(), g.off, before), nil
}
