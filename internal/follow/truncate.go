package follow

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// truncated handles a truncation of the current file. It continues with copies of the old contents,
// if any, and then at the beginning of the file.
func (s *source) truncated() error {
	g := s.cur
	line, lost := g.kept()
	copies, continued, err := s.search.copiesOf(g, s.read, s.held(), s.old)
	if err != nil {
		return err
	}
	if continued {
		line, lost = nil, 0
	}
	if len(line) > 0 {
		if err := s.emit(g)(append(line[:len(line):len(line)], g.newline()...), false); err != nil {
			return err
		}
	}
	unread := max(0, g.largest-g.look)
	if g.contents == nil && len(g.recent) > 0 { // a copy of g may be compressed later
		s.search.lineage.AddGone(lineage.MarkAt(g.State(), g.look, tail(g.recent, lineage.RecentSize)))
	}
	s.truncations += max(1, len(copies))
	s.dirty = true
	switch {
	case len(copies) > 0:
		s.notifyCopies(s.truncations, copies)
	default:
		message := fmt.Sprintf("was truncated, for the %s time; lost: anything written in the %v before the truncation", ordinal(s.truncations), time.Since(s.read).Round(time.Millisecond))
		if lost > 0 {
			message += fmt.Sprintf(", %d bytes of an unfinished line", lost)
		}
		if unread > 0 {
			message += fmt.Sprintf(", %d bytes that were not read yet", unread)
		}
		if e := (Event{Message: message, Lost: lost + unread}); e.Lost > 0 {
			s.lose(e)
		} else {
			s.notify(e)
		}
	}
	return s.readCopies(copies)
}

// truncatedUnread is truncated for a current file from which no line was read. It reports whether
// there are copies. Without copies, it does nothing.
func (s *source) truncatedUnread() (bool, error) {
	copies, _, err := s.search.copiesOf(s.cur, s.read, s.held(), s.old)
	if err != nil || len(copies) == 0 {
		return false, err
	}
	s.truncations += len(copies)
	s.dirty = true
	s.notifyCopies(s.truncations, copies)
	return true, s.readCopies(copies)
}

func (s *shared) notifyCopies(truncations int, copies []*generation) {
	names := make([]string, len(copies))
	for i, c := range copies {
		names[i] = filepath.Base(c.name)
	}
	s.notify(Event{Message: fmt.Sprintf("was truncated, for the %s time; the rest of the old content is read from %s; bytes written after this copy are lost", ordinal(truncations), strings.Join(names, ", "))})
}

// readCopies continues with the copies, and then at the beginning of the current file.
func (s *source) readCopies(copies []*generation) error {
	g := s.cur
	if err := g.rewind(); err != nil {
		s.trouble("read: %v; retrying", wording.Cause(err))
		s.search.lineage.Forget(g.id)
		g.Close()
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
	if err := s.makeCurrent(copies[0]); err != nil || copies[0].off > 0 {
		return err
	}
	return s.nextSink()
}

// rewind sets the read offset to the beginning, and rereads the head.
func (g *generation) rewind() error {
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
