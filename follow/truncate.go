package follow

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// truncated continues with copies of what the current file held before it was truncated, if there
// are any, and then with its beginning.
func (s *source) truncated() error {
	g := s.cur
	line, lost := g.kept()
	copies, continued, err := s.copiesOf(g)
	if err != nil {
		return err
	}
	if continued {
		line, lost = nil, 0
	}
	if len(line) > 0 {
		if err := s.emit(g)(append(line[:len(line):len(line)], '\n'), false); err != nil {
			return err
		}
	}
	unread := max(0, g.largest-g.look)
	s.truncations += max(1, len(copies))
	s.dirty = true
	switch {
	case len(copies) > 0:
		s.tellCopies(copies)
	default:
		message := fmt.Sprintf("was truncated, for the %s time; anything written to it in the %v before is lost", ordinal(s.truncations), time.Since(s.read).Round(time.Millisecond))
		if lost > 0 {
			message += fmt.Sprintf(", and %d bytes of an unfinished line", lost)
		}
		if unread > 0 {
			message += fmt.Sprintf(", and %d bytes that were not read yet", unread)
		}
		s.tell(Event{Message: message, Lost: lost + unread})
	}
	return s.restart(copies)
}

// skipped is truncated for a current file of which no line was read yet. It reports whether there
// are copies.
func (s *source) skipped() (bool, error) {
	copies, _, err := s.copiesOf(s.cur)
	if err != nil || len(copies) == 0 {
		return false, err
	}
	s.truncations += len(copies)
	s.dirty = true
	s.tellCopies(copies)
	return true, s.restart(copies)
}

// tellCopies reports that the file was truncated, and from which files its old content is read.
func (s *source) tellCopies(copies []*generation) {
	names := make([]string, len(copies))
	for i, c := range copies {
		names[i] = filepath.Base(c.name)
	}
	s.tell(Event{Message: fmt.Sprintf("was truncated, for the %s time; the rest of what it held is read from %s, but not what was written to it behind that", ordinal(s.truncations), strings.Join(names, ", "))})
}

// restart continues with copies, and then with the beginning of the current file.
func (s *source) restart(copies []*generation) error {
	g := s.cur
	if err := g.restart(); err != nil {
		s.trouble("read: %v; it is tried again", bare(err))
		s.f.files.forget(g)
		g.close()
		g = nil
	}
	if len(copies) == 0 {
		if s.cur = g; g == nil {
			return nil
		}
		return s.nextSink()
	}
	if g != nil {
		s.ahead = slices.Insert(s.ahead, 0, g)
	}
	for i, c := range copies {
		c.copied = true
		if i > 0 {
			s.ahead = slices.Insert(s.ahead, i-1, c)
		}
	}
	if err := s.take(copies[0]); err != nil || copies[0].off > 0 {
		return err
	}
	return s.nextSink()
}

// restart sets the read offset to the beginning.
func (g *generation) restart() error {
	g.head, g.recent = nil, nil
	g.off, g.look, g.silent, g.since, g.hole = 0, 0, 0, 0, true
	g.size, g.mtime, g.largest = 0, time.Time{}, 0
	return g.readHead()
}

func ordinal(n int) string {
	suffix := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
