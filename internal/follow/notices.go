package follow

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// absent reports that no file has the followed name.
func (s *source) absent(err error) {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		s.trouble("%v; retrying", wording.Cause(err))
	case s.out == nil:
		s.trouble("does not exist yet; waiting for it")
	default:
		s.routine("is gone; waiting for a new file")
	}
}

// noFile reports why no file can be read. If the file does not exist, noFile makes reading start at
// the beginning of a later file.
func (s *source) noFile(err error) {
	switch {
	case err == nil:
	case errors.Is(err, lineage.ErrIrregular):
		s.trouble("is %v; waiting for a regular file", err)
	case errors.Is(err, fs.ErrNotExist):
		s.absent(err)
		s.origin.start = Beginning // a file that appears later is entirely new
	default:
		s.retry(err)
	}
}

// trouble reports, once, why the file cannot be read. An empty message clears the reason.
func (s *shared) trouble(format string, args ...any) {
	if message := fmt.Sprintf(format, args...); message != s.lastMessage {
		s.lastMessage = message
		if message != "" {
			s.notify(Event{Message: message})
		}
	}
}

// retry reports why the file cannot be opened. It does not report a lack of descriptors, which is
// reported elsewhere, once.
func (s *shared) retry(err error) {
	if !tooMany(err) {
		s.trouble("%v; retrying", wording.Cause(err))
	}
}

// routine reports an expected event, once.
func (s *shared) routine(format string, args ...any) {
	if message := fmt.Sprintf(format, args...); message != s.lastMessage {
		s.lastMessage = message
		s.notify(Event{Message: message, Routine: true})
	}
}

// lose reports a loss of e.Lost bytes. 0 means that the number is unknown.
func (s *shared) lose(e Event) {
	s.f.totals.losses.Add(1)
	s.f.totals.lost.Add(e.Lost)
	e.Loss = true
	s.notify(e)
}

func (s *shared) notify(e Event) {
	e.Name = s.name
	if s.f.o.Notify != nil {
		s.f.o.Notify(e)
	}
}
