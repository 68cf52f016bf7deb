package daemon

import (
	"errors"

	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
)

// sink returns a sink that passes the lines of a file to the session. After a rotation, the
// function more makes the sink for the next file.
func (s *session) sink(more func() (*follow.Sink, error)) *follow.Sink {
	return &follow.Sink{
		WriteCloser: fileLines{s},
		Written:     s.end.Load,
		Rotated: func() (*follow.Sink, error) {
			if same, err := s.continues(); same || err != nil {
				return nil, err
			}
			return more()
		},
		Quiet:   s.beQuiet,
		Context: s.context,
		Changed: func() bool { return s.decided.Swap(false) },
		Restore: s.restore,
		Suspend: s.settle,
	}
}

type fileLines struct{ *session }

// Close ends the session. It returns no error for damage in a compressed file, since other files
// must still be read.
func (f fileLines) Close() error { return f.p.exceptDamage(f.session.Close()) }

func (s *session) damaged(e *input.UnpackError) {
	s.p.counts.lose(0)
	s.p.log.Warn("a compressed input is damaged", "stream", s.peer, "error", e)
}

// exceptDamage returns err, unless err is damage in a packed input. In this case, it counts the
// lost bytes and returns nil: damaged has logged the damage.
func (p *pipeline) exceptDamage(err error) error {
	if damage, ok := errors.AsType[*input.UnpackError](err); ok {
		p.counts.inLost.Add(damage.Lost)
		return nil
	}
	return err
}

// continues decides the format by the lines so far. It reports whether a log of this format
// continues in another file. Formats with a start and an end do not.
func (s *session) continues() (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake()
	if err := s.in.Decide(); err != nil { // kept lines come before the next file's lines
		return false, err
	}
	return s.in.Format().Continues(), nil
}

// beQuiet sets whether lines are filtered only for their context. It ends a module line that is
// still collecting its maps.
func (s *session) beQuiet(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet == on || s.ended {
		return
	}
	s.wake()
	s.in.Decide() // the next write reports an error again
	if s.quiet && s.in.Format() == input.Markup {
		s.in.Close() // prints nothing, so it cannot fail
	}
	s.quiet = on
}

// takeIn is Write for a quiet session, whose output is dropped. It filters only lines that may
// change the meaning of later lines.
func (s *session) takeIn(lines []byte) (int, error) {
	for line := range input.ContextLines(lines) {
		if _, err := s.in.Write(line); err != nil {
			return 0, err
		}
	}
	s.count()
	return len(lines), nil
}

// settle ends the session so that another run can continue. It prints a module line that is
// collecting its maps. Other held lines are in the context. If a reload has made the context
// useless, settle prints these lines, too, and the next run rereads them quietly.
func (s *session) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return s.err
	}
	s.wake()
	var err error
	fits := s.stage.fits(s.p.stage.Load(), s.in.Format())
	if s.in.Format() == input.Markup || !fits {
		err = s.in.Close()
	}
	s.count()
	if !fits || !s.park() {
		s.in = nil
	}
	parked := s.parked
	s.finish()
	s.parked = parked
	return errors.Join(s.err, err)
}
