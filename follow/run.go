package follow

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// result is what a turn of a source came to.
type result struct {
	s     *source
	more  bool
	err   error
	given int64         // bytes that were printed
	asked bool          // a snapshot was
	cost  time.Duration // of the snapshot
}

// A run is one call of Run: what it needs beside the Follower.
type run struct {
	*Follower
	ctx        context.Context
	work       chan *source
	done       chan result
	ticks      int
	nextSafety int   // the tick at which all files are looked at
	err        error // of a sink

	saving

	hurried  map[*source]bool // whose files come quickly, without events
	turns    int              // that were handed out
	unopened []*source        // wait for their first turn, in which files are opened
	opening  int              // sources whose first turn has not ended
	held     []result         // of the others, until a checkpoint says where they begin
	flushed  time.Time        // when one did last
	pause    time.Duration    // until the next, which has more to write
}

// Shares of the beginning, with unit and reason.
const (
	firstPause = 50 * time.Millisecond // before the first checkpoint: what is printed waits for it
	openShare  = 2                     // every so many turns a file is opened, if others have lines
)

// vanish is how long a file that a pattern matched must be gone before it is
// forgotten.
const vanish = time.Minute

// Run follows the files until ctx is done, or the error of a sink. It starts
// goroutines, which have ended when it returns. At the end unfinished lines are
// printed, if there is no checkpoint from which they will be read again, the
// sinks are closed and the checkpoint is written. It may be called once.
func (f *Follower) Run(ctx context.Context) error {
	if f.ran {
		return errors.New("a Follower runs once")
	}
	f.ran, f.began = true, time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.watcher = newWatcher(f.open, f.tell)
	n := f.o.Workers
	if n <= 0 {
		n = workers
	}
	r := &run{nextSafety: safetyPolls, Follower: f, ctx: ctx, work: make(chan *source, n), done: make(chan result, n), hurried: make(map[*source]bool), saving: newSaving(f.began)}
	var pool sync.WaitGroup
	for range n {
		pool.Go(r.worker)
	}
	r.loop(n)
	cancel()
	r.settle()
	f.watcher.Close()
	close(r.work)
	pool.Wait()
	return r.end()
}

// worker gives turns to the sources that it gets.
func (r *run) worker() {
	var buf []byte
	for s := range r.work {
		if buf == nil {
			buf = make([]byte, r.turnSize())
		}
		s.given = 0
		d := result{s: s}
		d.more, d.err = s.turn(r.ctx, buf)
		d.given = s.given
		d.asked = s.wanted.Swap(false)
		if s.unsaved() && (d.asked || r.o.Taken != nil && s.affords(time.Now())) {
			begin := time.Now()
			s.snapshot()
			d.cost = time.Since(begin)
			s.allowance -= d.cost
		}
		r.done <- d
	}
}

// turnSize returns how many bytes a turn reads.
func (r *run) turnSize() int {
	if r.o.Taken != nil {
		return takenSize
	}
	return readSize
}

// loop hands out turns until the end, to n workers.
func (r *run) loop(n int) {
	for _, s := range slices.SortedFunc(maps.Values(r.sources), func(a, b *source) int { return strings.Compare(a.path, b.path) }) {
		r.saver.restore(s)
		r.ready(s)
	}
	r.match(true)
	r.unopened, r.queue, r.opening = r.queue, nil, len(r.sources)
	for _, s := range r.unopened {
		s.opening = true
	}
	r.flushed, r.pause = time.Now(), firstPause
	ticker := time.NewTicker(r.interval())
	defer ticker.Stop()
	rest := time.NewTimer(0) // runs out when events may be looked at again
	defer rest.Stop()
	defer r.timer.Stop()
	wake := r.watcher.wake
	hurry := time.NewTicker(r.interval() / hurryShare)
	defer hurry.Stop()
	for {
		if len(r.hurried) == 0 {
			hurry.Stop()
		}
		for ; len(r.queue)+len(r.unopened) > 0 && r.busy < n; r.turns++ {
			queue := &r.queue
			if len(r.queue) == 0 || len(r.unopened) > 0 && r.turns%openShare == 0 {
				queue = &r.unopened
			}
			s := (*queue)[0]
			(*queue)[0] = nil
			*queue = (*queue)[1:]
			s.queued, s.running = false, true
			r.busy++
			r.work <- s
		}
		select {
		case <-r.ctx.Done():
			return
		case d := <-r.done:
			if r.finished(d); r.err != nil {
				return
			}
			if d.s.hurries() && !r.hurried[d.s] {
				r.hurried[d.s] = true
				hurry.Reset(r.interval() / hurryShare)
			}
		case <-hurry.C:
			for s := range r.hurried {
				if r.ready(s); !s.running && !s.hurries() {
					delete(r.hurried, s)
				}
			}
		case <-wake:
			r.changed(r.watcher.take())
			wake = nil
			rest.Reset(pace)
		case <-rest.C:
			wake = r.watcher.wake
		case <-r.timer.C:
			r.checkpoint()
		case w := <-r.wrote:
			r.written(w)
		case took := <-r.secured:
			r.nextSync = time.Now().Add(max(syncInterval, saveShare*took))
			r.syncing = false
		case <-ticker.C:
			if r.tick(); r.err != nil {
				return
			}
		}
	}
}

// ready puts s into the queue, or makes it come there after its turn.
func (r *run) ready(s *source) {
	switch {
	case s.running:
		s.again = true
	case !s.queued:
		s.queued = true
		r.queue = append(r.queue, s)
	}
}

// finished takes in what a turn came to.
func (r *run) finished(d result) {
	r.busy--
	if d.s.opening {
		d.s.opening = false
		r.opening--
		r.held = append(r.held, d)
		if r.opening == 0 || r.early() {
			r.flush()
		}
		return
	}
	r.ended(d)
}

// early reports whether lines may be printed although not all files are open yet. A checkpoint has to
// say first where they begin. One that leaves files out is right for those that are read from their
// beginning.
func (r *run) early() bool {
	return r.o.State == "" || r.o.Start == Beginning && time.Since(r.flushed) > r.pause
}

// flush writes a checkpoint of the sources that are open, whose lines may be printed then.
func (r *run) flush() {
	held := r.held
	r.held = nil
	if r.o.State != "" {
		for _, d := range held {
			d.s.snapshot()
		}
		r.saver.save() // it tells what is wrong
		r.flushed, r.pause = time.Now(), 2*r.pause
	}
	for _, d := range held {
		r.ended(d)
	}
}

// ended takes in what a turn came to, but for the first.
func (r *run) ended(d result) {
	s := d.s
	s.running = false
	if d.err != nil {
		if r.ctx.Err() == nil {
			r.err = d.err
		}
		return
	}
	if r.o.State != "" {
		r.printed(d)
	}
	if s.again || d.more || s.wanted.Load() {
		s.again = false
		r.ready(s)
	}
}

// changed gives turns to what events have named.
func (r *run) changed(c changed) {
	for s := range c.sources {
		r.ready(s)
	}
	if c.all {
		r.readyAll(func(*source) bool { return true })
	}
	if c.appeared || c.all {
		r.match(false)
	}
}

func (r *run) readyAll(which func(*source) bool) {
	for _, s := range r.sources {
		if which(s) {
			r.ready(s)
		}
	}
}

// tick looks at what does not tell when it changes, and has checkpoints synced.
func (r *run) tick() {
	r.ticks++
	if r.ticks >= r.nextSafety {
		r.nextSafety = r.ticks + max(safetyPolls, len(r.sources)/safetyShare)
		r.readyAll(func(*source) bool { return true })
		r.watcher.verify()
		r.disk.forgetFolders()
		r.match(false)
		r.forget()
		if r.ticks == safetyPolls { // not at once: it may be started before what writes
			r.tellUnmatched()
		}
	} else {
		polls := r.ticks%max(1, len(r.sources)/pollShare) == 0
		r.readyAll(func(s *source) bool { return !s.running && (s.attention || s.silentFS && polls) })
	}
	r.lookForChanges()
	r.secure()
}

// tellUnmatched tells which patterns match nothing.
func (r *run) tellUnmatched() {
	for _, p := range r.patterns {
		if paths, _ := filepath.Glob(p); len(paths) == 0 {
			r.tell(Event{Name: p, Message: "matches no file yet; waiting for one"})
		}
	}
}

// match follows the files that patterns match by now, but not those that
// rotation has made of others. atStart says that nothing is followed yet: then
// these are read first, as what came before.
func (r *run) match(atStart bool) {
	dirs := make(map[string]bool)
	pattern := make(map[string]string) // by path
	for _, p := range r.patterns {
		for _, dir := range patternDirs(p) {
			dirs[dir] = true
		}
		paths, _ := filepath.Glob(p) // the pattern was checked
		for _, path := range paths {
			if r.sources[path] == nil && !isPacked(path) {
				pattern[path] = p
			}
		}
	}
	var before []string // bases of what rotation has made
	for _, path := range slices.Sorted(maps.Keys(pattern)) {
		if base := rotatedBase(path, func(base string) bool { return r.sources[base] != nil || pattern[base] != "" }); base != "" {
			before = append(before, base)
			continue
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || r.saver.is(path) || r.o.Skip != nil && r.o.Skip(info) {
			continue
		}
		s := &source{f: r.Follower, name: path, path: path, matched: true}
		if atStart && !r.saver.knows(pattern[path]) {
			s.start = r.o.Start
		} else {
			s.since = r.saver.since
		}
		r.sources[path] = s
		r.saver.restore(s)
		r.ready(s)
	}
	for _, base := range before {
		if s := r.sources[base]; s != nil && atStart && s.start == Beginning && s.saved == nil && s.since.IsZero() {
			s.whole = true
		}
	}
	if len(r.patterns) > 0 {
		r.watcher.watchPatterns(dirs)
	}
}

// rotatedBase returns the path of the file that rotation has made the one at path
// of, if followed says that it is; "" if there is none.
func rotatedBase(path string, followed func(base string) bool) string {
	dir, name := filepath.Split(path)
	ext := filepath.Ext(name)
	for i := range name {
		if i == 0 || !strings.ContainsRune(".-_", rune(name[i])) {
			continue
		}
		for _, base := range []string{name[:i], name[:i] + ext} {
			if base != name && isRotated(base, name) && followed(dir+base) {
				return dir + base
			}
		}
	}
	return ""
}

// patternDirs returns the folders in which a name may appear that makes pattern
// match more.
func patternDirs(pattern string) (dirs []string) {
	names := parts(pattern)
	head := filepath.VolumeName(pattern) + string(filepath.Separator)
	for _, name := range names {
		if hasMeta(name) {
			found, _ := filepath.Glob(head)
			for _, dir := range found {
				if real, err := filepath.EvalSymlinks(dir); err == nil {
					dirs = append(dirs, real)
				}
			}
		}
		head = filepath.Join(head, name)
	}
	return dirs
}

// forget drops what patterns matched and what has been gone for long.
func (r *run) forget() {
	for path, s := range r.sources {
		if !s.matched || s.running || s.queued || s.cur != nil || len(s.old) > 0 {
			continue
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			s.lost = time.Time{}
			continue
		}
		switch {
		case s.lost.IsZero():
			s.lost = time.Now()
		case time.Since(s.lost) > vanish:
			delete(r.sources, path)
			r.watcher.watch(s, nil)
			r.files.drop(s)
			r.saver.drop(s)
			delete(r.dirty, s)
			if err := s.finish(nil, false, nil); err != nil {
				r.err = err
			}
		}
	}
}

// settle waits for the workers. What the others have printed counts for a
// checkpoint before that: a worker may be held up for ever by who reads the
// output.
func (r *run) settle() {
	if r.o.State != "" {
		for _, s := range r.sources {
			if !s.running && s.unsaved() {
				s.snapshot()
			}
		}
	}
	for r.busy > 0 {
		d := <-r.done
		r.busy--
		d.s.running = false
		var sink sinkError
		if r.err == nil && errors.As(d.err, &sink) {
			r.err = d.err
		}
		if d.s.dirty && r.o.State != "" {
			d.s.snapshot()
		}
	}
}

// end finishes all sources and writes the last checkpoint.
func (r *run) end() error {
	resumes := r.o.State != ""
	end := []byte{'\n'}
	if len(r.sources) == 1 {
		end = nil
	}
	r.background.Wait()
	buf := make([]byte, readSize)
	all := slices.SortedFunc(maps.Values(r.sources), func(a, b *source) int { return strings.Compare(a.path, b.path) })
	for _, s := range all {
		if r.err == nil {
			if err := s.finish(buf, resumes, end); err != nil {
				r.err = err
			} else if resumes && s.unsaved() {
				s.snapshot()
			}
		}
		s.close()
	}
	if r.err == nil {
		r.saver.drain()
	}
	if err := r.saver.end(); err != nil && r.err == nil {
		r.err = err
	}
	var sink sinkError
	if errors.As(r.err, &sink) {
		return sink.error
	}
	return r.err
}

// close closes the files.
func (s *source) close() {
	for _, g := range append(s.old, s.cur) {
		if g != nil {
			g.close()
		}
	}
}
