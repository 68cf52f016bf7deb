package lineage

import (
	"bytes"
	"io"
	"slices"
)

// copyWindow is the number of bytes before an offset that sameUpTo compares, in addition to the
// bytes in State.Head.
const copyWindow = 4 << 10

// sameUpTo reports whether the first n bytes of a and b are the same, judged by State.Head and the
// last bytes before n. It returns these last bytes. It returns false if n is 0 or a file cannot be
// read.
func sameUpTo(a, b Content, n int64) (last []byte, same bool) {
	one, other := a.State().Head, b.State().Head
	head := min(len(one), len(other))
	if n == 0 || !bytes.Equal(one[:head], other[:head]) {
		return nil, false
	}
	last, theirs := make([]byte, min(n, copyWindow)), make([]byte, min(n, copyWindow))
	for _, of := range []struct {
		c Content
		b []byte
	}{{a, last}, {b, theirs}} {
		if _, err := of.c.ReadAt(of.b, n-int64(len(last))); err != nil && err != io.EOF {
			return nil, false
		}
	}
	return last, bytes.Equal(last, theirs)
}

// areCopies reports whether one of two plain files is a copy of the other, or of its beginning. It
// returns false if all compared lines are equal: one line may have been logged many times.
func areCopies(a, b Content) bool {
	x, y := a.State(), b.State()
	if x.Packed || y.Packed {
		return false
	}
	last, same := sameUpTo(a, b, min(x.Size, y.Size))
	if !same {
		return false
	}
	_, rest, _ := bytes.Cut(last, []byte{'\n'})
	line, rest, _ := bytes.Cut(rest, []byte{'\n'})
	for next := range bytes.Lines(rest) {
		if !bytes.HasPrefix(line, bytes.TrimSuffix(next, []byte{'\n'})) {
			return true
		}
	}
	return false
}

func isCopyOfAny(c Content, files []Content) bool {
	return slices.ContainsFunc(files, func(f Content) bool { return areCopies(c, f) })
}

// continues reports whether c has the bytes read from old, judged by the first and the last of
// these bytes. It returns false if no bytes were read.
func continues(c, old Content) bool {
	s, o := c.State(), old.State()
	if !s.Packed && s.Size < o.Look || !bytes.HasPrefix(s.Head, o.Head) || len(o.Recent) == 0 {
		return false
	}
	b := make([]byte, len(o.Recent))
	n, err := c.ReadAt(b, o.Look-int64(len(b)))
	return (err == nil || err == io.EOF) && bytes.Equal(b[:n], o.Recent)
}

// isTruncated reports whether f no longer has the bytes last read from it.
func isTruncated(f Content) bool {
	s := f.State()
	b := make([]byte, len(s.Recent))
	n, err := f.ReadAt(b, s.Look-int64(len(b)))
	return (err == nil || err == io.EOF) && !bytes.Equal(b[:n], s.Recent)
}

// isPartOf reports whether f, of size bytes, begins with the contents of the archive c. Lines may
// have been added to f after the compression.
func isPartOf(c, f Content, size int64) bool {
	var next [1]byte
	if _, err := c.ReadAt(next[:], size); err != io.EOF {
		return false
	}
	length := c.State().Length
	if length > size {
		return false
	}
	_, same := sameUpTo(c, f, length)
	return same
}

// hasTwin reports whether a plain file in all begins with the contents of the archive c. Some
// programs shift the names of rotated files before they compress. The archive then has another
// number, and its file is removed later.
func hasTwin(c Content, all []Content) bool {
	head := c.State().Head
	return slices.ContainsFunc(all, func(f Content) bool {
		if f == nil {
			return false
		}
		s := f.State()
		return !s.Packed && bytes.HasPrefix(s.Head, head) && isPartOf(c, f, s.Size)
	})
}

// hasMore reports whether c has a byte at off. A damaged archive has no bytes after its damage. The
// error is ErrLater if the byte cannot be read now.
func hasMore(c Content, off int64) (bool, error) {
	var next [1]byte
	n, err := c.ReadAt(next[:], off)
	if n == 0 && err != nil && err != io.EOF && !c.State().Damaged {
		return false, ErrLater
	}
	return n > 0, nil
}
