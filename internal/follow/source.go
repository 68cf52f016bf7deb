package follow

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// A source is one followed name, whose files it reads one after the other. Only one goroutine at a
// time uses it: the worker of its turn, or between turns the goroutine of Run.
type source struct {
	*shared
	files
	search    search    // finds the files
	arrivals  arrivals  // counts the files that got the followed name
	origin    origin    // where reading begins
	snapshots snapshots // decides when the state is recorded
	schedule  schedule  // queues its turns

	out     *outlet   // nil until a file exists
	read    time.Time // time at which cur was last read to its end
	given   int64     // bytes given to sinks for printing in this turn
	missing int       // failed searches for cur, which was closed

	truncations int        // truncations so far
	truncatedID lineage.ID // truncated file, while a copy of it is read

	lastProgress sharedProgress // progress at the end of the last turn
}

// A shared is the state that all parts of a source use.
type shared struct {
	f    *Follower
	name string // in Options.Names, or the path that matched a pattern
	path string // absolute

	lastMessage string // last message of trouble or routine
	attention   bool   // the source needs a turn even without an event
	dirty       bool   // something is not in the last snapshot
}

// A schedule is the run's state of a source. Only the goroutine of Run uses it, even during a turn.
type schedule struct {
	queued, running bool
	again           bool      // a further turn is needed
	opening         bool      // its first turn has not ended
	matched         bool      // the name comes from a pattern
	lost            time.Time // time since which the file is missing; zero: not missing
}

// An origin determines where reading begins in the files that exist at the start.
type origin struct {
	saved    *savedSource // entry in the checkpoint, until its files are found
	searches int          // repeated searches for the last file of saved; at most maxTries

	start Start // where reading begins without an entry
	// time of a checkpoint without the followed name: files written later are new, even if rotated
	since time.Time
	whole bool // existing rotated files are read too
}

// predecessor returns a description of the file that comes before the first file to read. It is for
// a name without an entry in the checkpoint. began is the start of Run.
func (o *origin) predecessor(began time.Time) lineage.Predecessor {
	switch {
	case o.whole:
		return lineage.Predecessor{}
	case o.start > 0:
		return lineage.Predecessor{Since: time.Now().Add(-time.Duration(o.start))}
	case !o.since.IsZero():
		return lineage.Predecessor{Since: o.since}
	}
	// a file rotated since began had the followed name during this run
	return lineage.Predecessor{Since: began}
}

// newSource returns the source for the file at path, which the user calls name.
func (f *Follower) newSource(name, path string) *source {
	s := &source{shared: &shared{f: f, name: name, path: path}}
	s.search = search{shared: s.shared, lineage: lineage.NewLog(name, f.records)}
	s.search.lineage.Unpacks = f.o.Unpack != nil
	return s
}

func (s *source) emit(g *generation) func(p []byte, quiet bool) error {
	return func(p []byte, quiet bool) error {
		s.dirty = true
		if !quiet {
			s.given += int64(len(p))
			s.f.totals.read.Add(int64(len(p)))
		}
		return g.out.write(p, quiet)
	}
}

// turn examines the files of the source, and prints about as many bytes of new lines as buf holds.
// It reports whether there may be more lines. Errors come from a sink or from ctx.
func (s *source) turn(ctx context.Context, buf []byte) (more bool, err error) {
	s.attention = false
	defer s.makeRoom(s.f.disk)
	defer s.countMissed()
	// Examine the followed name before the current file. If the name leads to another file with
	// lines, the old file is complete, and reading it to its end misses no line.
	id, info, noStat := lookAt(s.path)
	there := noStat == nil && info.Mode().IsRegular()
	if s.cur == nil {
		return s.first(ctx, buf)
	}
	same := there && id == s.newest().id
	var nameErr error // why the file with the followed name cannot be opened
	if !same || s.search.pending {
		s.watch()
		nameErr = s.discover(lineage.Predecessor{Content: s.cur.content()})
	}
	if same && len(s.ahead) == 0 && s.cur.look == 0 && !s.cur.isAs(info) {
		switched, err := s.truncatedUnread()
		if errors.Is(err, errLater) {
			return false, nil
		}
		if switched || err != nil {
			return true, err
		}
	}
	g := s.cur
	unchanged := same && id == g.id && info.Size() == g.look && g.isAs(info)
	s.limit(g, unchanged)
	if more, err = s.readLate(ctx, buf); err != nil {
		return false, err
	}
	again := false
	if !unchanged {
		again, err = g.lines(ctx, buf, s.emit(g))
	}
	if again || err != nil {
		switched, err := s.stopped(ctx, g, err)
		return more || switched, err
	}
	s.read, s.missing = time.Now(), 0
	if same && len(s.ahead) == 0 {
		if id == g.id {
			s.search.lineage.LastChange = g.mtime
		}
		s.trouble("")
		return more, nil
	}
	s.reportName(info, noStat, nameErr)
	s.attention = true
	switched, err := s.rotated(ctx, buf, there)
	return more || switched, err
}

// first is the turn of a source without a current file.
func (s *source) first(ctx context.Context, buf []byte) (more bool, err error) {
	if more, err = s.readLate(ctx, buf); err != nil {
		return false, err
	}
	begun, err := s.begin()
	s.watch()
	return more || begun, err
}

// limit sets the offset up to which this turn reads the current file g.
func (s *source) limit(g *generation, unchanged bool) {
	g.until = 0
	if unchanged || g.contents != nil || !s.attentive() {
		return
	}
	// later lines may be younger than lines read from other files now
	if info, err := g.Stat(); err == nil {
		g.until = max(info.Size(), 1)
	}
}

// stopped handles a turn that did not reach the end of the current file g. err is the reason; nil
// means that g has more lines. It reports whether another turn may find lines.
func (s *source) stopped(ctx context.Context, g *generation, err error) (more bool, _ error) {
	switch {
	case errors.Is(err, errTruncated):
		err = s.truncated()
		if errors.Is(err, errLater) {
			return false, nil
		}
		return true, err
	case isDamage(err):
		grows := s.search.mayGrow(g)
		if !grows {
			s.search.damaged(g, err)
		}
		return !grows, nil
	case errors.Is(err, errMoved):
		err = s.moved(ctx, g)
		return !s.search.pending, err
	case err != nil:
		return false, s.failed(ctx, g, err)
	}
	if g.skips && g.off > 0 && s.out.knowsContext() {
		err = g.skip()
	}
	return true, s.failed(ctx, g, err)
}

// reportName reports why the file with the followed name cannot be read. info and noStat are the
// results of lookAt, and nameErr is the error of opening the file.
func (s *source) reportName(info fs.FileInfo, noStat, nameErr error) {
	switch {
	case noStat != nil:
		s.absent(noStat)
	case !info.Mode().IsRegular():
		s.trouble("is %v; waiting for a regular file", irregular(info))
	case nameErr != nil && !errors.Is(nameErr, fs.ErrNotExist) && !errors.Is(nameErr, lineage.ErrIrregular):
		s.retry(nameErr) // otherwise the file has just lost the name again
	}
}

// failed reports that g could not be read. It returns err only if err comes from a sink or from
// ctx.
func (s *source) failed(ctx context.Context, g *generation, err error) error {
	switch {
	case err == nil:
		return nil
	case isSinkError(err), ctx.Err() != nil:
		return err
	case errors.Is(err, syscall.ESTALE): // the server has replaced the file
		s.retire(g)
	}
	s.attention = true
	if !tooMany(err) {
		s.trouble("read: %v; retrying", wording.Cause(err))
	}
	return nil
}

// retire closes g, and records how far it was read.
func (s *source) retire(g *generation) {
	if m, err := g.mark(); err != nil {
		s.search.lineage.Forget(g.id)
	} else {
		s.search.lineage.Finish(m, g.unlinked)
	}
	g.Close()
	if s.cur == g {
		s.cur = nil
	}
}

// readLate reads the lines written to files that were renamed or removed.
func (s *source) readLate(ctx context.Context, buf []byte) (more bool, err error) {
	kept := s.old[:0]
	for i, g := range s.old {
		if time.Since(g.moved) > linger && time.Since(g.looked) < lateInterval {
			kept = append(kept, g)
			continue
		}
		g.looked = time.Now()
		again, err := g.lines(ctx, buf, s.emit(g))
		quiet := time.Since(g.moved)
		if isDamage(err) {
			if again = s.search.mayGrow(g); !again {
				s.search.damaged(g, err)
			}
			err = nil
		}
		switch {
		case isSinkError(err), ctx.Err() != nil:
			s.old = append(kept, s.old[i:]...)
			return false, err
		case err == nil && (again || quiet < linger):
			more = more || again
			s.attention = true
			kept = append(kept, g)
			continue
		case err == nil:
			if err = g.endLine(ctx, buf, true, s.emit(g)); isSinkError(err) {
				s.old = append(kept, s.old[i:]...)
				return false, err
			}
			// only the maxHeld youngest files stay open
			if err == nil && s.keepsOpen(g, quiet) && len(s.old)-i <= maxHeld {
				kept = append(kept, g)
				continue
			}
		}
		s.dirty = true
		if err := s.release(g.out, kept, s.old[i+1:]); err != nil {
			s.old = append(kept, s.old[i+1:]...)
			return false, err
		}
		s.retire(g)
	}
	clear(s.old[len(kept):])
	s.old = kept
	return more, nil
}

// keepsOpen reports whether a rotated file that has not grown for the time quiet is kept open for
// late lines.
func (s *source) keepsOpen(g *generation, quiet time.Duration) bool {
	wait := s.f.o.RotateWait
	return !g.unlinked && !g.copied && g.out == s.out && (wait == 0 || quiet < wait) && !s.f.disk.crowded()
}

// rotated is called at the end of the current file if a later file exists or the followed name is
// lost. Unless the current file may get more lines, it switches to the next file. It reports
// whether it switched. Without a next file, it closes a removed file after linger.
func (s *source) rotated(ctx context.Context, buf []byte, there bool) (bool, error) {
	g := s.cur
	quiet := time.Since(g.moved)
	if s.search.pending || len(s.ahead) == 0 {
		if there || !g.unlinked || quiet < linger {
			return false, nil // the current file is read until there is another one
		}
		err := g.endLine(ctx, buf, true, s.emit(g))
		s.retire(g) // no process writes to g any more: closing g frees its space
		if isSinkError(err) {
			return false, err
		}
		return false, nil
	}
	if g.unfinished() && !g.copied && quiet < settle*s.f.interval() {
		return false, nil
	}
	next := s.ahead[0]
	if err := g.endLine(ctx, buf, true, s.emit(g)); err != nil {
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
	s.notify(Event{Message: "continues in another file, " + next.name, Routine: true})
	if err := s.makeCurrent(next); err != nil {
		return false, err
	}
	if err := s.nextSink(); err != nil {
		return false, err
	}
	return true, nil
}

func (s *source) makeCurrent(g *generation) error {
	s.lastMessage = ""
	if s.out == nil {
		out, err := s.sink()
		if err != nil {
			g.Close()
			return err
		}
		s.out, s.search.lineage.Begun = out, true
	}
	last := g.out // sink of a file that has its name again
	g.out = s.out
	s.cur, s.read = g, time.Now()
	// Use the time of g only while g has the followed name: late lines in a renamed file may make
	// it younger than later files.
	if id, _, err := lookAt(s.path); err == nil && id == g.id {
		s.search.lineage.LastChange = g.mtime
	}
	if g.hole {
		s.truncatedID = lineage.ID{}
	}
	s.dirty = true
	if last != nil {
		return s.release(last, s.old)
	}
	return nil
}

func (s *source) nextSink() error {
	if s.out.Rotated == nil {
		return nil
	}
	sink, err := s.out.Rotated()
	if err != nil {
		return sinkError{err}
	}
	if sink == nil {
		return nil
	}
	last := s.out
	s.out = &outlet{Sink: sink}
	s.cur.out = s.out
	return s.release(last, s.old)
}

// release closes out, unless it may get more lines. A sink that may get more lines belongs to the
// source, to a waiting file, or to a file in read.
func (s *source) release(out *outlet, read ...[]*generation) error {
	if out == s.out {
		return nil
	}
	for _, files := range append(read, s.ahead) {
		if slices.ContainsFunc(files, func(g *generation) bool { return g.out == out }) {
			return nil
		}
	}
	return out.close()
}

// begin opens the first file, or the first file after the followed name was lost. It reports
// whether such a file exists.
func (s *source) begin() (bool, error) {
	if s.origin.saved != nil {
		return s.resume()
	}
	before := lineage.Predecessor{}
	if s.out == nil {
		before = s.origin.predecessor(s.f.began)
		s.search.realPath, _ = filepath.EvalSymlinks(s.path)
		if !s.origin.whole && !s.search.ignoreSiblings(before.Since) {
			s.attention = true
			return false, nil
		}
	}
	before.LeavesArchives = before.Since.IsZero() || s.origin.start != Beginning
	g, err := s.next(before)
	if g == nil {
		s.attention = s.search.pending || !errors.Is(err, fs.ErrNotExist)
		s.noFile(err)
		return false, nil
	}
	if s.origin.start == End || s.origin.start > 0 && g.mtime.Before(before.Since) {
		g.silent, g.since, g.skips = g.size, g.size, true
	}
	s.origin.start = Beginning // for later files
	again := s.out != nil
	if err := s.makeCurrent(g); err != nil {
		return false, err
	}
	if again {
		s.notify(Event{Message: "has reappeared", Routine: true})
		return true, s.nextSink()
	}
	return true, nil
}

// finish ends the source. If suspend is set, another run continues: finish closes the sinks of
// rotated files, and suspends the source's sink. Otherwise it prints unfinished lines, with a line
// end if end is set, and closes the sinks.
func (s *source) finish(buf []byte, suspend, end bool) error {
	if s.out == nil {
		return nil
	}
	var errs []error
	if suspend {
		// the next run has new sinks for late lines
		for i, g := range s.old {
			if g.out != s.out {
				s.dirty = true
				errs = append(errs, s.release(g.out, s.old[i+1:]))
			}
		}
		if s.out.Suspend != nil {
			s.dirty = true // Suspend may print held records
			errs = append(errs, s.out.Suspend())
		}
		return errors.Join(errs...)
	}
	files := s.old
	if s.cur != nil {
		files = append(files, s.cur)
	}
	for i, g := range files {
		if err := g.endLine(context.Background(), buf, end, s.emit(g)); isSinkError(err) {
			errs = append(errs, err)
		}
		errs = append(errs, s.release(g.out, files[i+1:]))
	}
	return errors.Join(append(errs, s.out.close())...)
}
