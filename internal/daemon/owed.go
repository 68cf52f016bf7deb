package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// An unsentError reports that an output ended before it could deliver all accepted lines.
type unsentError struct {
	to   string
	owed []byte // undelivered bytes, from the beginning of a line
}

func (e *unsentError) Error() string {
	return fmt.Sprintf("output: %s: %d bytes were not sent", e.to, len(e.owed))
}

// closeStage closes a replaced or removed stage. It returns the accepted bytes that the peer of its
// output has not received.
func (p *pipeline) closeStage(s *stage) (owed []byte) {
	err := s.close()
	if e, ok := errors.AsType[*unsentError](err); ok {
		return e.owed
	}
	if err != nil {
		p.log.Error("closing the output", "error", err)
	}
	return nil
}

// succeed makes next the pipeline's stage. Undelivered bytes of the previous output go to the new
// output first. Lines from files are reread instead.
func (p *pipeline) succeed(next *stage) {
	next.hold()
	p.unsent.Add(allUnsent)
	before := p.replace(next)
	owed := p.closeStage(before)
	rereads := len(before.conf.Input.Files) > 0 // files are reread from their checkpoints
	if rereads {
		p.unsent.Add(int64(len(owed)))
	}
	p.unsent.Add(-allUnsent)
	switch {
	case len(owed) == 0 || rereads:
		next.letGo()
	case !next.takes(before):
		next.letGo()
		p.lose(owed)
	default:
		p.log.Info("the new output gets the bytes that the previous peer has not received", "bytes", len(owed))
		go p.passOn(next, owed)
	}
}

// takes reports whether the output of s can accept the undelivered lines of the stage before. Both
// outputs must write the same form. An output with a file for each peer cannot accept the lines,
// since their peers are not recorded.
func (s *stage) takes(before *stage) bool {
	form := func(c Output) string { return cmp.Or(c.Stdout, c.Format, "text") }
	out := s.out
	if shared, ok := out.(*sharedOutput); ok {
		out = shared.output
	}
	if f, ok := out.(*fileOutput); ok && f.each {
		return false
	}
	return out != nil && form(s.conf.Output) == form(before.conf.Output)
}

// passOn writes the undelivered bytes of an earlier output, and then lets the sessions write. If a
// reload replaces the stage before the end, the rest goes to the next stage.
func (p *pipeline) passOn(s *stage, owed []byte) {
	defer s.letGo()
	from := &session{p: p}
	defer from.over.Store(true)
	w := &p.counts.writes
	w.begin(time.Now())
	n, err := s.out.write(s.live, from, owed)
	w.end(time.Now(), err)
	if n < len(owed) {
		s.left = owed[fromLine(owed, n):]
	}
}

// lose counts and logs undelivered bytes that no output can accept.
func (p *pipeline) lose(owed []byte) {
	if len(owed) == 0 {
		return
	}
	p.counts.outLost.Add(int64(len(owed)))
	p.log.Warn("lines that the output's peer had not received are lost: the peer is disconnected, and no other output can accept the lines", "lost", len(owed))
}

// hold prevents sessions from writing until letGo is called. No session may use the stage yet.
func (s *stage) hold() {
	s.ready = make(chan struct{})
	s.writers.Add(1)
}

// letGo allows the sessions to write, after hold.
func (s *stage) letGo() {
	close(s.ready)
	s.writers.Done()
}
