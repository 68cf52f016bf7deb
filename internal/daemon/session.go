package daemon

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/input"
)

const (
	// silence is the time without new lines after which a stream's held lines are printed: lines of
	// an unknown format, and held traces.
	silence = 100 * time.Millisecond
	// parkAfter is the idle time before a stream's context (1.5 KB) replaces its filter (150 KB).
	parkAfter = 5 * time.Second
)

var errEnded = errors.New("the stream has ended")

// A session filters the lines of one stream: a file, a connection, a request, or a sender of
// datagrams. Only one goroutine at a time may call its methods, but timers and reloads may run
// concurrently: mu orders them.
type session struct {
	p    *pipeline
	peer string    // name of the stream, for the output's path
	own  io.Writer // receives the output instead of the pipeline's output; may be nil

	ownIfPeer bool // own is used only while the pipeline's output is the peer

	// adjust changes the filter's options before the first Write. It may be nil.
	adjust func(*filter.Options)
	plain  bool // lines are not unpacked, even if they look packed

	memory *memory // keeps the context after the session; may be nil
	share  share   // part of the limits on contexts

	mu      sync.Mutex
	stage   *stage
	in      *input.Writer // nil while the session is parked
	filter  *filter.Filter
	parked  []byte // context of a parked session; nil: none
	counted filter.Stats
	total   [2]int64 // resolved and unresolved addresses of all filters so far
	quiet   bool     // lines are filtered only for their context
	used    time.Time
	timer   *time.Timer
	err     error // error of the timer's goroutine
	ended   bool
	over    atomic.Bool // equals ended, for readers without mu
	// the timer has printed held lines since the last call of [follow.Sink.Changed]
	decided atomic.Bool
	end     atomic.Int64 // offset in the output after the last write; 0 before the first

	// context of the peer's earlier stream; nil once a filter has it
	past    []byte
	changed bool // the context has changed since snapshot
	// last context from keepSnapshot, for memory; nil: none yet, or the session is parked
	snapshot  atomic.Pointer[[]byte]
	weighed   time.Time // time of the last computation of the context's bytes
	processes int64     // processes that the metric of contexts counts for the session
	turn      turn
}

// session returns a session for a new stream, which the caller closes or suspends. The output goes
// to own, or to the pipeline's output if own is nil.
func (p *pipeline) session(peer string, own io.Writer) *session {
	s := &session{p: p, peer: peer, own: own, used: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.stage = p.stage.Load()
	s.stage.join()
	p.sessions[s] = struct{}{}
	return s
}

// Write filters whole lines. On return, the output has all lines except lines held by the filter. A
// line longer than the limit may come in parts. The last line of a stream may have no line end.
func (s *session) Write(lines []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if s.ended {
		return 0, errEnded
	}
	s.working()
	defer s.rests()
	s.adopt()
	s.wake()
	if s.stage.options.ProcessKey != nil || s.stage.conf.Input.Journal != "" {
		access.Filter(s.filter).(weighed).SetLimits(s.p.house.contexts.limits(s))
	}
	s.used = time.Now()
	if s.quiet && s.in.Format() == input.Markup && s.in.Passes() {
		return s.takeIn(lines)
	}
	n, err := s.in.Write(lines)
	s.p.counts.inLines.Add(int64(countLines(lines)))
	s.p.counts.inBytes.Add(int64(n))
	s.count()
	if e := s.weigh(); err == nil {
		err = e
	}
	s.await()
	s.adopt()
	return n, err
}

// wake makes the session's filter if the session is new or parked. The filter gets the context of a
// parked session.
func (s *session) wake() {
	if s.in != nil {
		return
	}
	room := s.p.house.contexts.enter(s)
	s.begin()
	if s.parked == nil {
		if room {
			s.remember()
		}
		return
	}
	if err := s.in.Restore(s.parked); err != nil {
		s.p.log.Warn("cannot restore the context of a stream: its earlier modules and maps are lost", "stream", s.peer, "error", err)
		s.begin() // after a failed Restore, a Writer must not be used
	}
	s.parked = nil
	if s.memory != nil && s.memory.name() != "" {
		s.changed = true
		s.keepSnapshot() // for a save while the session waits for its output
	}
}

func (s *session) begin() {
	o := s.stage.options
	o.Context = s.p.waits
	if s.adjust != nil {
		s.adjust(&o)
	}
	o.Evicted = s.p.house.measures.evictedProcess
	o.Patience.Asked = s.asked
	s.awaken()
	s.filter = filter.New(emitter{s}, o)
	s.counted = filter.Stats{}
	log := func() io.WriteCloser { return s.filter }
	s.in = input.New(s.stage.format, input.Translators{
		Markup: log,
		Container: func(f input.Format) io.WriteCloser {
			var e *input.Envelope
			if s.stage.conf.Input.Journal != "" {
				e = input.NewJournalLines(o, emitter{s})
			} else {
				e = input.NewEnvelope(f, o, emitter{s}, s.stage.conf.Input.JSONFields...)
			}
			s.filter = e.Filter()
			return e
		},
		// reports and profiles are not logs, and pass unchanged
		Valgrind: log, Callgrind: log, RTrace: log,
		Fields: s.stage.conf.Input.JSONFields,
		Memory: s.p.house.unpacking, Unpacked: s.plain, Damaged: s.damaged,
	})
}

// park replaces the filter with its context. It returns false if the input has no context: see
// [input.Writer.AppendContext].
func (s *session) park() bool {
	if s.in == nil {
		return true
	}
	context, ok := s.in.AppendContext(nil)
	if !ok {
		return false
	}
	s.count()
	s.note()
	s.snapshot.Store(nil) // memory uses the parked context instead
	context = bytes.Clone(context)
	s.p.house.contexts.set(s, max(1, int(s.processes)), int64(len(context)))
	s.sleep()
	s.parked = context
	return true
}

// count adds the filter's counts since the last call to the session's totals and the daemon's
// metrics.
func (s *session) count() {
	now := s.stats()
	s.total[0] += now.Resolved - s.counted.Resolved
	s.total[1] += now.Unresolved - s.counted.Unresolved
	s.p.house.measures.add(&now, &s.counted)
	s.counted = now
	s.setProcesses(now.Processes)
}

// stats returns the filter's counts. It waits for a goroutine that unpacks the input.
func (s *session) stats() (now filter.Stats) {
	if s.in == nil {
		return s.filter.Stats()
	}
	s.in.Pause(func() { now = s.filter.Stats() })
	return now
}

func (s *session) setProcesses(n int64) {
	s.p.house.measures.contexts.Add(n - s.processes)
	s.processes = n
}

// working records that the session is busy, and that its filter has made progress now.
func (s *session) working() { s.turn.since.Store(s.p.house.clock()) }

// rests records that the session is idle, so the watchdog does not check it.
func (s *session) rests() { s.turn.since.Store(0) }

// asked records the duration of a lookup.
func (s *session) asked(took time.Duration) {
	s.p.house.measures.lookups.Observe(took.Seconds())
	s.progress()
}

// progress records progress of the filter now, unless the session is idle.
func (s *session) progress() {
	if s.turn.since.Load() != 0 {
		s.working()
	}
}

// tally returns the numbers of resolved and unresolved addresses.
func (s *session) tally() (resolved, unresolved int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total[0], s.total[1]
}

// await starts or stops the timer that prints the kept lines.
func (s *session) await() {
	switch kept := s.in != nil && s.in.Unfinished(); {
	case kept && s.timer == nil:
		s.timer = time.AfterFunc(silence, s.silent)
	case kept:
		s.timer.Reset(silence)
	case s.timer != nil:
		s.timer.Stop()
	}
}

func (s *session) silent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.err != nil || s.in == nil {
		return
	}
	s.working()
	defer s.rests()
	defer s.decided.Store(true)
	s.err = s.in.Flush()
	s.count()
	if err := s.weigh(); s.err == nil {
		s.err = err
	}
	if s.in == nil {
		return
	}
	if s.err == nil && s.in.Undecided() { // a packed input is still being unpacked
		s.timer.Reset(silence)
	}
}

// rest parks the session if it has been idle since the given time.
func (s *session) rest(since time.Time) {
	if !s.mu.TryLock() {
		return // busy
	}
	defer s.mu.Unlock()
	if s.in != nil && s.used.Before(since) && !s.ended && s.err == nil {
		s.park()
	}
}

// Close ends the stream, and prints the remaining lines.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if !s.ended {
		s.working()
		defer s.rests()
		s.wake()
		err = s.in.Close()
		s.count()
		s.finish()
	}
	return errors.Join(s.err, err)
}

// suspend ends the session, and returns its context for a session that continues it. It prints
// nothing, unless the format has no context or the next session cannot use it.
func (s *session) suspend() (context []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, s.err
	}
	if s.in == nil && s.parked != nil {
		s.wake() // wake also determines the format
	}
	if s.in != nil && !s.stage.fits(s.p.stage.Load(), s.in.Format()) || !s.park() {
		err = s.in.Close()
		s.count()
	}
	s.finish()
	return s.parked, errors.Join(s.err, err)
}

// context appends the context of the stream so far. It returns false if the stream has no context.
func (s *session) context(dst []byte) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.in != nil:
		return s.in.AppendContext(dst)
	case s.parked != nil:
		return append(dst, s.parked...), true
	case s.ended:
		return dst, false
	}
	s.wake()
	return s.in.AppendContext(dst)
}

func (s *session) restore(context []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin()
	if err := s.in.Restore(context); err != nil {
		s.in, s.filter = nil, nil
		return err
	}
	return nil
}

func (s *session) finish() {
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.in, s.filter = nil, nil
	s.setProcesses(0)
	s.over.Store(true)
	s.p.house.contexts.leave(s)
	s.stage.leave()
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	delete(s.p.sessions, s)
}

// An emitter passes on the output of a session's filter. s.mu is held during Write.
type emitter struct{ s *session }

func (e emitter) Write(p []byte) (int, error) {
	s := e.s
	if s.quiet {
		return len(p), nil
	}
	return s.emit(p)
}

// emit writes to the output. If a reload replaces the output during the write, the new output gets
// the rest.
func (s *session) emit(p []byte) (written int, err error) {
	s.turn.writing.Store(true)
	defer func() {
		s.progress()
		s.turn.writing.Store(false)
	}()
	c := &s.p.counts
	if s.own != nil && !s.ownIfPeer {
		if written, err = s.own.Write(p); err != nil {
			c.outErrors.Add(1)
		}
		c.outBytes.Add(int64(written))
		return written, err
	}
	for {
		st := s.p.stage.Load()
		var n int
		switch {
		case st.out != nil && !st.beginWrite():
			err = errReplaced
		case st.out != nil:
			c.writes.begin(time.Now())
			n, err = st.out.write(st.live, s, p[written:])
			c.writes.end(time.Now(), err)
			st.writers.Done()
		case s.own == nil: // a reload has made the peer the pipeline's output
			return written, errReplaced
		default: // a peer that does not read stops only its own lines
			n, err = s.own.Write(p[written:])
		}
		if err != nil && !errors.Is(err, errReplaced) {
			c.outErrors.Add(1)
		}
		if written += n; n > 0 {
			s.end.Store(c.outBytes.Add(int64(n)))
		}
		next := s.p.stage.Load()
		if err == nil || !errors.Is(err, errReplaced) || next == st {
			return written, err
		}
		if next.out != st.out {
			written = fromLine(p, written)
		}
	}
}

func countLines(p []byte) int { return bytes.Count(p, newline) }

var newline = []byte{'\n'}
