package daemon

import "time"

func (s *session) release() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.err != nil || s.in == nil && s.parked == nil {
		return s.err
	}
	s.working()
	defer s.rests()
	s.wake()
	s.err = s.in.Release()
	s.count()
	s.note()
	s.keepSnapshot()
	s.await()
	return s.err
}

// saveAfter prints the held lines of s, and saves the contexts of the pipeline. A failed save is
// only logged.
func (m *memory) saveAfter(s *session) error {
	if err := s.release(); err != nil {
		return err
	}
	// the output now has all lines that the caller will acknowledge
	if err := m.save(); err != nil {
		if n, ok := m.failed.May(time.Now()); ok {
			m.p.log.Error("cannot save the contexts of peers; if symfilterd is killed, later frames may stay unresolved", "file", m.name(), "error", err, "times", n)
		}
	}
	return nil
}
