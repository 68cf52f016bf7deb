package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/input"
)

// errReplaced is the error of a write to a replaced output.
var errReplaced = errors.New("the output was replaced by a reload")

type output interface {
	// write writes lines of a stream. It waits until the system has accepted all of them. If ctx is
	// done first, n bytes were accepted, and the error is errReplaced. Lines of several streams are
	// never mixed.
	write(ctx context.Context, from *session, p []byte) (n int, err error)

	// reopen reopens files at their names after a rotation.
	reopen() error

	close() error
}

// A stage is the path of a pipeline's lines: filters with its options, then its output. A reload
// replaces the stage, but not the input and its sessions.
type stage struct {
	conf    Pipeline
	options filter.Options // options of each filter
	format  input.Format
	symbols *symbols
	out     output // nil: each session has its own output
	failed  int64  // failed attempts of a shared out before the stage began

	ready chan struct{} // closed when sessions may write to out; nil: at once
	// bytes of an earlier output that out has not accepted; valid after writers.Wait
	left []byte

	live context.Context // done when the stage is replaced
	end  context.CancelFunc

	mu      sync.Mutex
	users   int // sessions
	closed  bool
	writers sync.WaitGroup // writes to out in progress
}

// newStage opens the output of c. If it succeeds, the stage takes over the caller's reference to
// sym.
func newStage(c Pipeline, limits Limits, sym *symbols, open func(Output) (output, error)) (*stage, error) {
	s := &stage{conf: c, symbols: sym}
	if err := s.setOptions(limits); err != nil {
		return nil, err
	}
	if !c.Output.Peer {
		var err error
		if s.out, err = open(c.Output); err != nil {
			return nil, err
		}
	}
	s.failed, _ = s.attempts()
	s.live, s.end = context.WithCancel(context.Background())
	return s, nil
}

func (s *stage) setOptions(limits Limits) error {
	c := &s.conf
	s.options = filter.Options{
		Symbolizer: s.symbols.Symbolizer,
		Cache:      s.symbols.Cache,
		Patience: filter.Patience{
			Local: time.Duration(c.Patience.Local), Servers: time.Duration(c.Patience.Servers),
			PerMinute: time.Duration(c.Patience.PerMinute), Never: c.Patience.Never,
		},
		Limits: filter.Limits{Processes: limits.Contexts, ContextBytes: int64(limits.ContextBytes)},
		Dialects: filter.Dialects{
			None: c.Filter.Dialects == "none", NoPaths: !s.symbols.conf.ModulePaths, Complete: s.symbols.Complete,
		},
		Paths: filter.Paths{Basenames: c.Filter.Basenames},
	}
	for _, m := range c.Filter.PrefixMap {
		from, to, ok := strings.Cut(m, "=")
		if !ok {
			return fmt.Errorf("prefix_map: %q is not of the form OLD=NEW", m)
		}
		s.options.Paths.Map = append(s.options.Paths.Map, buildid.PrefixMap{Old: from, New: to})
	}
	if c.Output.Format == "json" || c.Output.Stdout == "json" {
		s.options.Output = filter.JSON
	}
	if c.Filter.Color == "never" {
		s.options.Color = filter.ColorNever
	}
	lines := []string{"full", "short", "none", "raw"}
	s.options.ModuleLines = filter.ModuleLines(max(0, slices.Index(lines, c.Filter.ModuleLines)))
	if c.Input.Key != "" {
		var err error
		if s.options.ProcessKey, err = filter.ProcessKey(c.Input.Key); err != nil {
			return err
		}
	}
	if c.Input.Journal != "" {
		s.format = input.Journal
		return nil
	}
	s.format = input.Format(max(int(input.Auto), slices.Index(input.Names(), c.Input.Format)))
	return nil
}

// fits reports whether filters of the next stage, to, can continue contexts that filters of s have
// made. format is the format of the lines that these filters have read.
func (s *stage) fits(to *stage, format input.Format) bool {
	from, now := &s.conf.Input, &to.conf.Input
	return from.Key == now.Key && slices.Equal(from.JSONFields, now.JSONFields) && (from.Journal == "") == (now.Journal == "") &&
		(s.format == to.format || to.format == input.Auto || to.format == format)
}

func (s *stage) join() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

// leave removes a session from the stage. If the stage is closed, the last session to leave
// releases the symbols.
func (s *stage) leave() {
	s.mu.Lock()
	s.users--
	last := s.users == 0 && s.closed
	s.mu.Unlock()
	if last {
		s.symbols.release()
	}
}

// beginWrite begins a write to out, which ends with writers.Done. It returns false if the stage was
// replaced.
func (s *stage) beginWrite() bool {
	if s.ready != nil {
		select {
		case <-s.ready:
		case <-s.live.Done():
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.writers.Add(1)
	return true
}

// close ends the stage, and waits for the end of its writes. If sessions still use the stage, the
// last of them releases the symbols.
func (s *stage) close() error {
	s.end()
	s.mu.Lock()
	s.closed = true
	last := s.users == 0
	s.mu.Unlock()
	if last {
		s.symbols.release()
	}
	s.writers.Wait()
	if s.out == nil {
		return nil
	}
	err := s.out.close()
	if len(s.left) == 0 {
		return err
	}
	if e, ok := errors.AsType[*unsentError](err); ok {
		e.owed = append(e.owed, s.left...)
		return e
	}
	return errors.Join(err, &unsentError{cmp.Or(s.conf.Output.Connect, s.conf.Output.File, "standard output"), s.left})
}

// attempts returns the failed attempts of the output since the stage began, and its current error,
// if any.
func (s *stage) attempts() (failed int64, now error) {
	if out, ok := s.out.(attempting); ok {
		failed, now = out.attempts()
		return failed - s.failed, now
	}
	return 0, nil
}
