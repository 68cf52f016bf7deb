package follow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// A source is one name that is followed. Its fields belong to whoever holds it:
// the worker that has its turn, or the goroutine of Run between turns.
type source struct {
	f     *Follower
	name  string // as the user gave it, or as a pattern matched
	path  string // absolute
	start Start

	out   *outlet       // nil: no file was there yet
	cur   *generation   // nil: none is there
	old   []*generation // files before cur, in case that something is written to them late
	ahead []*generation // files after cur, which have not been read yet
	real  string        // what path stood for, when it was looked at last
	seen  time.Time     // last change of cur when path was known to stand for it
	read  time.Time     // when cur was read to its end last

	gaps    bool         // there may be files between those ahead: they are looked for
	family  *family      // the siblings, when they were looked at last
	ignored time.Time    // those not written to since then are ignored
	changed time.Time    // when the last file came
	created atomic.Int64 // files that got the name, by events, since these come
	taken   int64        // those of them that were opened
	noticed time.Time    // when there were more than that
	missing int          // times that cur, which was closed, was not found

	since time.Time // of the checkpoint that has not known a file: what was written to later is new, rotated or not
	anew  fileID    // was truncated, while a copy of it is read
	done  []mark    // files that were read and are there still

	saved       *savedSource // of a checkpoint, until its files are found
	told        string       // trouble that was told last
	truncations int
	places      []place // whose changes are of interest

	given  int64       // bytes given to sinks to be printed, in this turn
	wanted atomic.Bool // a snapshot is, at the end of a turn; Run may set it during one

	allowance time.Duration // for snapshots that nobody asked for
	allowed   time.Time     // when it was computed

	// For Run.
	queued, running, again bool
	opening                bool      // its first turn has not ended
	dirty                  bool      // there is something that the snapshot does not say
	matched                bool      // by a pattern
	whole                  bool      // rotated files that are there already are to be read, too
	lost                   time.Time // since when it is gone, if a pattern has matched it
	attention              bool      // it has to be looked at although nothing happens
	silentFS               bool      // the system tells nothing of its folder
}

// emit returns what gives lines of g to its sink.
func (s *source) emit(g *generation) func(p []byte, quiet bool) error {
	return func(p []byte, quiet bool) error {
		s.dirty = true
		if !quiet {
			s.given += int64(len(p))
		}
		return g.out.write(p, quiet)
	}
}

// turn looks at the files of the source and prints what came, at most about
// what buf holds. It reports whether there may be more. The error is a sink's.
func (s *source) turn(ctx context.Context, buf []byte) (more bool, err error) {
	s.attention = false
	defer s.makeRoom()
	defer s.countMissed()
	// What path stands for is looked at before what is read: if that is another file, and has lines, then its
	// writer has written all lines of the old one.
	id, info, noStat := lookAt(s.path)
	there := noStat == nil && info.Mode().IsRegular()
	if s.cur == nil {
		if more, err = s.late(ctx, buf); err != nil {
			return false, err
		}
		begun, err := s.begin()
		s.watch()
		return more || begun, err
	}
	same := there && id == s.newest().id
	if !same || s.gaps {
		s.watch()
		err = s.discover(predecessor{g: s.cur})
	}
	if same && len(s.ahead) == 0 && s.cur.look == 0 && !(info.Size() == s.cur.size && info.ModTime().Equal(s.cur.mtime)) {
		switched, err := s.skipped()
		if errors.Is(err, errLater) {
			return false, nil
		}
		if switched || err != nil {
			return true, err
		}
	}
	unchanged := same && id == s.cur.id && info.Size() == s.cur.look && info.Size() == s.cur.size && info.ModTime().Equal(s.cur.mtime)
	g := s.cur
	g.until = 0
	if !unchanged && s.attentive() {
		if info, err := g.Stat(); err == nil { // what is written to it after that may be younger than what is read of others now
			g.until = max(info.Size(), 1)
		}
	}
	if more, err = s.late(ctx, buf); err != nil {
		return false, err
	}
	again := false
	if !unchanged {
		again, err = g.lines(ctx, buf, s.emit(g))
	}
	switch {
	case errors.Is(err, errTruncated):
		err = s.truncated()
		if errors.Is(err, errLater) {
			return more, nil
		}
		return true, err
	case errors.Is(err, errMoved):
		err = s.moved(ctx, g)
		return !s.gaps, err
	case err != nil:
		return more, s.failed(ctx, g, err)
	case again:
		if g.skips && g.off > 0 && s.knowsContext() {
			err = g.skip()
		}
		return true, s.failed(ctx, g, err)
	}
	s.read, s.missing = time.Now(), 0
	if same && len(s.ahead) == 0 {
		if id == g.id {
			s.seen = g.mtime
		}
		s.trouble("")
		return more, nil
	}
	switch {
	case there && err != nil:
		s.trouble("%v; it is tried again", bare(err))
	case there:
	case noStat == nil:
		s.trouble("is %v; waiting for a regular file", irregular(info))
	default:
		s.absent(noStat)
	}
	s.attention = true
	switched, err := s.rotated(ctx, buf, there)
	return more || switched, err
}

// newest returns the file that is known to have come last.
func (s *source) newest() *generation {
	if n := len(s.ahead); n > 0 {
		return s.ahead[n-1]
	}
	return s.cur
}

// held returns all files of the source that are not read and closed, in the order in which they are
// printed.
func (s *source) held() []*generation {
	all := s.reading()
	return append(all, s.ahead...)
}

// attentive reports whether something may be written to files before the current one.
func (s *source) attentive() bool {
	return slices.ContainsFunc(s.old, func(g *generation) bool { return time.Since(g.moved) < linger })
}

// absent says that nothing is behind the name.
func (s *source) absent(err error) {
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		s.trouble("%v; it is tried again", bare(err))
	case s.out == nil:
		s.trouble("is not there yet; waiting for it")
	default:
		s.routine("is gone; waiting for the next")
	}
}

// failed says that g could not be read. The error is a sink's, if it is one.
func (s *source) failed(ctx context.Context, g *generation, err error) error {
	var sink sinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sink), ctx.Err() != nil:
		return err
	case errors.Is(err, syscall.ESTALE): // its server has another one
		s.retire(g)
	}
	s.attention = true
	s.trouble("read: %v; it is tried again", bare(err))
	return nil
}

// knowsContext reports whether the sink can do without the lines before.
func (s *source) knowsContext() bool {
	if s.out.Context == nil {
		return true
	}
	_, ok := s.out.Context(nil)
	return ok
}

// retire closes g, of which nothing is left to be read.
func (s *source) retire(g *generation) {
	s.f.files.done(g)
	g.close()
	if s.cur == g {
		s.cur = nil
	}
}

// late reads what is written to files that have another name by now, or none.
func (s *source) late(ctx context.Context, buf []byte) (more bool, err error) {
	kept := s.old[:0]
	for i, g := range s.old {
		if time.Since(g.moved) > linger && time.Since(g.looked) < lateInterval {
			kept = append(kept, g)
			continue
		}
		g.looked = time.Now()
		again, err := g.lines(ctx, buf, s.emit(g))
		quiet := time.Since(g.moved)
		var sink sinkError
		switch {
		case errors.As(err, &sink), ctx.Err() != nil:
			s.old = append(kept, s.old[i:]...)
			return false, err
		case err == nil && (again || quiet < linger):
			more = more || again
			s.attention = true
			kept = append(kept, g)
			continue
		case err == nil:
			if err = g.endLine(ctx, buf, []byte{'\n'}, s.emit(g)); errors.As(err, &sink) {
				s.old = append(kept, s.old[i:]...)
				return false, err
			}
			if err == nil && s.waits(g, quiet) && len(s.old)-i <= maxHeld { // the youngest
				kept = append(kept, g)
				continue
			}
		}
		s.dirty = true
		if g.out != s.out {
			if err := g.out.close(); err != nil {
				s.old = append(kept, s.old[i+1:]...)
				return false, err
			}
		}
		s.retire(g)
	}
	clear(s.old[len(kept):])
	s.old = kept
	return more, nil
}

// waits reports whether a file that was rotated, and has not grown for that long, is kept open in
// case that it does.
func (s *source) waits(g *generation, quiet time.Duration) bool {
	wait := s.f.o.RotateWait
	return !g.gone && !g.copied && g.out == s.out && (wait == 0 || quiet < wait) && !s.f.disk.crowded()
}

// rotated goes on to the next file when there is one and nothing more is to be
// expected of the current one, which was read to its end and has another name by
// now, or none. It reports whether it did.
func (s *source) rotated(ctx context.Context, buf []byte, there bool) (bool, error) {
	g := s.cur
	quiet := time.Since(g.moved)
	if s.gaps || len(s.ahead) == 0 {
		if there || !g.gone || quiet < linger {
			return false, nil // what is written to it is read, as long as there is no other
		}
		err := g.endLine(ctx, buf, []byte{'\n'}, s.emit(g))
		s.retire(g) // it has no name, and nobody writes to it: its space is given back
		var sink sinkError
		if errors.As(err, &sink) {
			return false, err
		}
		return false, nil
	}
	if g.unfinished() && !g.copied && quiet < settle*s.f.interval() {
		return false, nil
	}
	next := s.ahead[0]
	if err := g.endLine(ctx, buf, []byte{'\n'}, s.emit(g)); err != nil {
		return false, s.failed(ctx, g, err)
	}
	s.ahead = slices.Delete(s.ahead, 0, 1)
	g.until = 0
	s.cur = nil
	s.old = append(s.old, g)
	if g.copied {
		s.old = s.old[:len(s.old)-1]
		s.retire(g)
	}
	s.tell(Event{Message: "goes on as another file, " + next.name, Routine: true})
	if err := s.take(next); err != nil {
		return false, err
	}
	if err := s.nextSink(); err != nil {
		return false, err
	}
	return true, nil
}

// take makes g the current file.
func (s *source) take(g *generation) error {
	s.told = ""
	if s.out == nil {
		out, err := s.sink()
		if err != nil {
			g.close()
			return err
		}
		s.out = out
	}
	g.out = s.out
	s.cur, s.seen, s.read = g, g.mtime, time.Now()
	if g.hole {
		s.anew = fileID{}
	}
	s.dirty = true
	return nil
}

// nextSink asks for the sink of the file that has just become the current one.
func (s *source) nextSink() error {
	if s.out.Rotated == nil {
		return nil
	}
	sink, err := s.out.Rotated()
	if err != nil {
		return sinkError{err}
	}
	if sink != nil {
		s.out = &outlet{Sink: sink}
		s.cur.out = s.out
	}
	return nil
}

// begin opens the first file. It reports whether there is one.
func (s *source) begin() (bool, error) {
	if s.saved != nil {
		return s.resume()
	}
	before := predecessor{}
	if s.out == nil {
		switch {
		case s.whole:
		case s.start > 0:
			before.seen = time.Now().Add(-time.Duration(s.start))
		case !s.since.IsZero():
			before.seen = s.since
		default:
			before.seen = s.f.began // what has been rotated since then had the name when it was to be followed
		}
		s.real, _ = filepath.EvalSymlinks(s.path)
		if !s.whole && !s.ignoreSiblings(before.seen) {
			s.attention = true
			return false, nil
		}
	}
	g, err := s.next(before)
	if g == nil {
		s.attention = s.gaps || !errors.Is(err, fs.ErrNotExist)
		s.noFile(err)
		return false, nil
	}
	if s.start == End || s.start > 0 && g.mtime.Before(before.seen) {
		g.silent, g.skips = g.size, true
	}
	s.start = Beginning // of those that come later
	again := s.out != nil
	if err := s.take(g); err != nil {
		return false, err
	}
	if again {
		s.tell(Event{Message: "is there again", Routine: true})
		return true, s.nextSink()
	}
	return true, nil
}

// noFile says why there is no file to be read.
func (s *source) noFile(err error) {
	switch {
	case err == nil:
	case errors.Is(err, errIrregular):
		s.trouble("is %v; waiting for a regular file", err)
	case errors.Is(err, fs.ErrNotExist):
		s.absent(err)
		s.start = Beginning // of what comes all is new
	default:
		s.trouble("%v; it is tried again", bare(err))
	}
}

// finish ends the source: unfinished lines are printed, if end is not nil with
// it behind them, and the sinks closed; or it is suspended.
func (s *source) finish(buf []byte, suspend bool, end []byte) error {
	if s.out == nil {
		return nil
	}
	if suspend {
		if s.out.Suspend == nil {
			return nil
		}
		return s.out.Suspend()
	}
	var errs []error
	files := s.old
	if s.cur != nil {
		files = append(files, s.cur)
	}
	for _, g := range files {
		var sink sinkError
		if err := g.endLine(context.Background(), buf, end, s.emit(g)); errors.As(err, &sink) {
			errs = append(errs, err)
		}
		if g.out != s.out {
			errs = append(errs, g.out.close())
		}
	}
	return errors.Join(append(errs, s.out.close())...)
}

// trouble tells what keeps the file from being read, once; "" says that there
// is none.
func (s *source) trouble(format string, args ...any) {
	if message := fmt.Sprintf(format, args...); message != s.told {
		s.told = message
		if message != "" {
			s.tell(Event{Message: message})
		}
	}
}

// routine tells what is as it should be, once.
func (s *source) routine(format string, args ...any) {
	if message := fmt.Sprintf(format, args...); message != s.told {
		s.told = message
		s.tell(Event{Message: message, Routine: true})
	}
}

func (s *source) tell(e Event) {
	e.Name = s.name
	if s.f.o.Tell != nil {
		s.f.o.Tell(e)
	}
}

// bare returns the system's error alone: the file has been named.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
