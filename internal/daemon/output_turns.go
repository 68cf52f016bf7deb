package daemon

import (
	"context"
	"log/slog"
	"time"
)

const (
	// Other streams wait while a stream has an unfinished line: at most lineWait after its last
	// write, and at most lineMost after its first. Then the output ends the line.
	lineWait = time.Second
	lineMost = 30 * time.Second
	// interval between checks whether the line has ended
	linePause = 2 * time.Millisecond

	// pauses before a retry of a failed write, for example to a full disk
	retryFirst = 100 * time.Millisecond
	retryMost  = 5 * time.Second
)

// A turns lets one stream at a time write to an output.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// take waits for the turn. It returns errReplaced if ctx is done first.
func (t turns) take(ctx context.Context) error {
	if ctx.Err() != nil {
		return errReplaced
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errReplaced
	}
}

// takeWithin waits for the turn for at most d, and reports whether it got the turn.
func (t turns) takeWithin(d time.Duration) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-time.After(d):
		return false
	}
}

func (t turns) give() { <-t }

// takeFor takes the turn for a stream. It waits while the output ends with another stream's
// unfinished line. If first is not nil, the caller must write this line end before its own bytes.
func (t turns) takeFor(ctx context.Context, end *lineEnd, from *session) (first []byte, err error) {
	for {
		if err := t.take(ctx); err != nil {
			return nil, err
		}
		first, ok := end.ends(from)
		if ok {
			return first, nil
		}
		t.give()
		if err := pause(ctx, linePause); err != nil {
			return nil, err
		}
	}
}

// A lineEnd records whether an output ends with an unfinished line, and which stream has written
// it. No other stream may write before that line ends.
type lineEnd struct {
	by            *session // nil: the output ends with a whole line
	begun, lately time.Time
}

// ends returns the bytes that must end another stream's line before the given session may write. It
// returns false if the given session must wait.
func (l *lineEnd) ends(from *session) (first []byte, ok bool) {
	switch {
	case l.by == nil || l.by == from:
		return nil, true
	case l.by.over.Load() || time.Since(l.lately) >= lineWait || time.Since(l.begun) >= lineMost:
		return newline, true
	}
	return nil, false
}

func (l *lineEnd) wrote(from *session, p []byte) {
	if len(p) == 0 {
		return
	}
	if p[len(p)-1] == '\n' {
		l.by = nil
		return
	}
	l.lately = time.Now()
	if l.by != from {
		l.by, l.begun = from, l.lately
	}
}

// pause waits for d. It returns errReplaced if ctx is done first.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return errReplaced
	case <-t.C:
		return nil
	}
}

// A persistent retries the failed attempts of an output, with growing pauses.
type persistent struct {
	trouble
	log  *slog.Logger
	told string // last logged error; empty after a successful attempt
	some bool   // the attempt has written something
}

// insist calls do until it succeeds. It logs each new error. It returns errReplaced if ctx is done
// first.
func (k *persistent) insist(ctx context.Context, do func() error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		k.some = false
		err := do()
		if k.some {
			wait = retryFirst
		}
		if err == nil {
			k.works()
			return nil
		}
		if ctx.Err() != nil {
			return errReplaced
		}
		k.fails(err)
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

func (k *persistent) fails(err error) {
	k.fail(err)
	if message := err.Error(); message != k.told {
		k.told = message
		k.log.Error("the output cannot be written; reading stops until writing works again", "error", err)
	}
}

func (k *persistent) works() {
	k.succeed()
	if k.told != "" {
		k.told = ""
		k.log.Info("the output can be written again")
	}
}

// fromLine returns the offset in p at which a stream continues in a new output: the start of the
// unfinished line. The previous output has received p[:written].
func fromLine(p []byte, written int) int { return lastLineEnd(p[:written]) }
