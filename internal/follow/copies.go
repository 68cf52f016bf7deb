package follow

import (
	"bytes"
	"io"
	"slices"
	"time"
)

// copyWindow is the number of bytes that are compared, before the end of the shorter of two files.
const copyWindow = 4 << 10

// sameUpTo reports whether the first n bytes of g and old are the same, judged by their heads and
// the last bytes before n, which it returns.
func (g *generation) sameUpTo(old *generation, n int64) (last []byte, same bool) {
	head := min(len(g.head), len(old.head))
	if n == 0 || !bytes.Equal(g.head[:head], old.head[:head]) {
		return nil, false
	}
	a, b := make([]byte, min(n, copyWindow)), make([]byte, min(n, copyWindow))
	for _, of := range []struct {
		g *generation
		b []byte
	}{{g, a}, {old, b}} {
		if _, err := of.g.ReadAt(of.b, n-int64(len(a))); err != nil && err != io.EOF {
			return nil, false
		}
	}
	return a, bytes.Equal(a, b)
}

// copies reports whether one of g and old is a copy of the other, or of its beginning. If all
// compared lines are equal to each other, the files are not taken for copies: the same line may
// have been logged many times.
func (g *generation) copies(old *generation) bool {
	if g.contents != nil || old.contents != nil {
		return false
	}
	last, same := g.sameUpTo(old, min(g.size, old.size))
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

// isCopy reports whether g is a copy of the file before, or of a rotated file that is still open.
func (s *source) isCopy(g, before *generation) bool {
	return before != nil && g.copies(before) || slices.ContainsFunc(s.old, g.copies)
}

// copiesOf returns the copies of the content that g had before it was truncated, perhaps several
// times since the last read, the oldest first. They are open, claimed and not yet read. continued
// reports whether the first one holds all bytes that were read of g; its read offset is then that
// of g. The only error is errLater.
func (s *source) copiesOf(g *generation) (copies []*generation, continued bool, err error) {
	for try := 0; ; try++ {
		beside, err := s.steady()
		if err != nil {
			s.attention = true
			return nil, false, err
		}
		copies, again, err := s.copiesAmong(beside, g)
		if err != nil {
			return nil, false, err
		}
		continued = continued || again
		// a copy that was compressed meanwhile may be missing
		if s.f.o.Unpack == nil || try == maxTries || s.isCurrent(beside) {
			return copies, continued, nil
		}
		s.unclaim(copies)
	}
}

// copiesAmong does the same among the siblings in beside.
func (s *source) copiesAmong(beside *family, g *generation) (copies []*generation, continued bool, err error) {
	now, err := s.f.disk.openGeneration(s.path)
	if err == nil {
		defer now.close()
	}
	rest := -1
	for _, c := range beside.all {
		if c.id == g.id || s.f.files.same(c) {
			continue
		}
		copied, err := s.f.disk.openGeneration(c.path)
		if err != nil {
			continue
		}
		_, known := s.f.files.recordOf(copied)
		switch {
		case known || copied.size == 0:
		case copied.mtime.Before(s.read.Add(-time.Minute)): // made before g was last read
		case g.look > 0 && rest < 0 && copied.continues(g):
			if copied.size > g.off && copied.seek(g.off) == nil && s.f.files.claim(copied, s) == nil {
				rest = len(copies)
				copies = append(copies, copied)
				continue
			}
			s.f.files.leave(s, copied)
			continued = true
		// g was replaced, so the file may be a later one and not a copy
		case now == nil || now.id != g.id:
		case s.isOfNow(copied, now):
		case !s.isCopy(copied, nil) && s.f.files.claim(copied, s) == nil:
			copies = append(copies, copied)
			continue
		}
		copied.close()
	}
	copies, rest, again, err := s.unpackedCopies(beside, g, now, copies, rest)
	if err != nil {
		s.unclaim(copies)
		return nil, false, err
	}
	continued = continued || again
	s.f.files.prune(s, beside, now) // of many files, only the last marks are kept: archives were compared before
	s.forgetLeftOut(beside)
	s.family = beside // so that the next run knows the copies
	first := (*generation)(nil)
	if rest >= 0 {
		first, continued = copies[rest], true
		copies = slices.Delete(copies, rest, rest+1)
	}
	sortByAge(copies, nil, beside.named())
	if first != nil {
		copies = slices.Insert(copies, 0, first)
	}
	return copies, continued, nil
}

// unclaim closes files that were claimed, and are to be opened again later.
func (s *source) unclaim(all []*generation) {
	for _, g := range all {
		s.f.files.forget(g)
		g.close()
	}
}

// isOfNow reports whether copied is a copy of the current content of the file: such a copy is still
// being made, before the truncation.
func (s *source) isOfNow(copied, now *generation) bool {
	if copied.size > now.size {
		return false
	}
	_, same := copied.sameUpTo(now, copied.size)
	return same
}

// continues reports whether g holds all bytes that were read of old.
func (g *generation) continues(old *generation) bool {
	if g.contents == nil && g.size < old.look || !bytes.HasPrefix(g.head, old.head) || len(old.recent) == 0 {
		return false
	}
	b := make([]byte, len(old.recent))
	n, err := g.ReadAt(b, old.look-int64(len(b)))
	return (err == nil || err == io.EOF) && bytes.Equal(b[:n], old.recent)
}
