package follow

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/symfilter/symfilter/internal/lineage"
	"github.com/symfilter/symfilter/internal/wording"
)

// A place is a name in a folder whose path has no symbolic link.
type place struct{ dir, name string }

// maxLinks bounds the symbolic links followed for one name, as in the kernel.
const maxLinks = 40

// chain returns the places that determine the file of an absolute path: the symbolic links on the
// way, and then the file, or the first missing name.
func chain(path string) (all []place) {
	root := filepath.VolumeName(path) + string(filepath.Separator)
	dir, rest := root, parts(path)
	for links := 0; len(rest) > 0; {
		at := place{dir, rest[0]}
		full := filepath.Join(dir, rest[0])
		info, err := os.Lstat(full)
		switch {
		case err != nil || len(rest) == 1 && info.Mode()&fs.ModeSymlink == 0:
			return append(all, at)
		case info.Mode()&fs.ModeSymlink == 0:
			dir, rest = full, rest[1:]
			continue
		}
		all = append(all, at)
		target, err := os.Readlink(full)
		if links++; err != nil || links > maxLinks {
			return all
		}
		if filepath.IsAbs(target) {
			dir = root
		}
		rest = append(parts(target), rest[1:]...)
		for len(rest) > 0 && rest[0] == ".." {
			dir, rest = filepath.Dir(dir), rest[1:]
		}
	}
	return all
}

func parts(path string) []string {
	path = filepath.Clean(path[len(filepath.VolumeName(path)):])
	return slices.DeleteFunc(strings.Split(path, string(filepath.Separator)), func(s string) bool { return s == "" || s == "." })
}

// A watcher collects the system's events on changed files. It is safe for concurrent use. Some or
// all folders may have no events: sources then examine their files at intervals.
type watcher struct {
	w       *fsnotify.Watcher // nil: no events
	notify  func(Event)
	pumping sync.WaitGroup

	mu       sync.Mutex
	dirs     map[string]*watched
	sources  map[place][]*source
	pending  map[*source]bool
	appeared bool // a name has appeared in a folder of a pattern
	patterns map[string]bool
	all      bool // events were lost: any file may have changed
	reported bool // the lack of events was reported

	wake chan struct{} // holds a token if there are changes to collect
}

// A watched counts the uses of a folder's path. Another folder may have replaced the folder
// whose events arrive, so watched has its identity, too.
type watched struct {
	id   lineage.ID // folder whose events arrive; zero: none
	uses int        // number of places in the folder, plus 1 for the folder of a pattern
}

// newWatcher starts a goroutine, which ends at Close, if the system's events can be used. open
// opens the events, and is nil if no events are wanted.
func newWatcher(open func() (*fsnotify.Watcher, error), tell func(Event)) *watcher {
	w := &watcher{
		notify: tell, dirs: make(map[string]*watched), sources: make(map[place][]*source),
		pending: make(map[*source]bool), patterns: make(map[string]bool), wake: make(chan struct{}, 1),
	}
	if open == nil {
		return w
	}
	system, err := open()
	if err != nil {
		w.noEvents(err)
		return w
	}
	w.w = system
	w.pumping.Go(w.pump)
	return w
}

// noEvents reports, once, why there are no events.
func (w *watcher) noEvents(err error) {
	if !w.reported {
		w.reported = true
		what := "cannot watch files for events: " + wording.Cause(err).Error()
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EMFILE) {
			what = "cannot watch more files for events: the system's limit is reached (on Linux: sysctl fs.inotify)"
		}
		w.notify(Event{Message: what + "; files are checked at intervals instead"})
	}
}

func (w *watcher) pump() {
	for {
		select {
		case e, ok := <-w.w.Events:
			if !ok {
				return
			}
			w.mu.Lock()
			w.event(e)
			w.mu.Unlock()
		case _, ok := <-w.w.Errors: // usually an overflow of the queue
			if !ok {
				return
			}
			w.mu.Lock()
			w.all = true
			w.signal()
			w.mu.Unlock()
		}
	}
}

// event records one event. w.mu is held.
func (w *watcher) event(e fsnotify.Event) {
	if d := w.dirs[e.Name]; d != nil && e.Has(fsnotify.Remove|fsnotify.Rename) {
		d.id = lineage.ID{}
		w.all = true
		w.signal()
	}
	dir, name := filepath.Split(e.Name)
	dir = filepath.Clean(dir)
	at := place{dir, name}
	for _, s := range w.sources[at] {
		w.pending[s] = true
		if s.arrivals.places[len(s.arrivals.places)-1] == at {
			s.arrivals.named.event(e, &s.arrivals.created)
		}
		w.signal()
	}
	if w.patterns[dir] && e.Has(fsnotify.Create|fsnotify.Chmod) {
		w.appeared = true
		w.signal()
	}
}

// A named has the identities of the files that have had the followed name, according to events.
type named struct {
	id   lineage.ID // file with the followed name at the last event that found one
	away lineage.ID // last file that was renamed to another name
	// file with the followed name when the events were requested; zero after the first event; it is
	// not new, even if that event reports it
	first lineage.ID
}

// event records an event of the followed name. It increments created for a new file that may hold
// lines.
func (n *named) event(e fsnotify.Event, created *atomic.Int64) {
	first := n.first
	n.first = lineage.ID{}
	switch {
	case e.Has(fsnotify.Create):
		id, info, err := lookAt(e.Name)
		switch {
		case err == nil && !info.Mode().IsRegular():
		case err == nil && id != (lineage.ID{}) && id == n.away: // the file has its name again
			n.away = lineage.ID{}
		case err == nil && id != (lineage.ID{}) && id == first:
		default:
			created.Add(1)
		}
		if err == nil {
			n.id = id
		}
	case e.Has(fsnotify.Rename):
		n.away = n.id
	}
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// A changed holds what must be examined: the changed sources or all sources, and the patterns if a
// name has appeared.
type changed struct {
	sources  map[*source]bool
	appeared bool
	all      bool
}

func (w *watcher) takeChanges() changed {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := changed{w.pending, w.appeared, w.all}
	w.pending, w.appeared, w.all = make(map[*source]bool), false, false
	return c
}

// watch watches the places that determine the file of s. It reports whether events arrive for all
// places.
func (w *watcher) watch(s *source, places []place) (complete bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	complete = w.w != nil
	for _, p := range places {
		w.sources[p] = append(w.sources[p], s)
		complete = w.use(p.dir) && complete
	}
	for _, p := range s.arrivals.places {
		if w.sources[p] = slices.DeleteFunc(w.sources[p], func(t *source) bool { return t == s }); slices.Contains(places, p) {
			w.sources[p] = append(w.sources[p], s)
		}
		if len(w.sources[p]) == 0 {
			delete(w.sources, p)
		}
		w.release(p.dir)
	}
	var id lineage.ID
	if len(places) > 0 {
		last := places[len(places)-1]
		id, _, _ = lookAt(filepath.Join(last.dir, last.name))
	}
	s.arrivals.restart(places, id, s.has(id))
	w.pending[s] = true // for changes before the events arrive
	w.signal()
	return complete
}

// watchPatterns watches for new names in dirs, and no longer in other folders.
func (w *watcher) watchPatterns(dirs map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for dir := range dirs {
		if !w.patterns[dir] {
			w.use(dir)
			w.appeared = true // for names that appeared before the events arrive
			w.signal()
		}
	}
	for dir := range w.patterns {
		if !dirs[dir] {
			w.release(dir)
		}
	}
	w.patterns = dirs
}

// use adds one use of dir. It reports whether the events of dir arrive.
func (w *watcher) use(dir string) bool {
	d := w.dirs[dir]
	if d == nil {
		d = new(watched)
		w.dirs[dir] = d
	}
	d.uses++
	return w.request(dir, d)
}

// request requests the events of dir if they do not arrive yet. It reports whether they arrive.
func (w *watcher) request(dir string, d *watched) bool {
	if w.w == nil || !hasEvents(dir) {
		return false
	}
	if d.id != (lineage.ID{}) {
		return true
	}
	if err := w.w.Add(dir); err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			w.noEvents(err)
		}
		return false
	}
	d.id, _, _ = lookAt(dir)
	return true
}

func (w *watcher) release(dir string) {
	d := w.dirs[dir]
	if d == nil {
		return
	}
	if d.uses--; d.uses == 0 {
		delete(w.dirs, dir)
		if w.w != nil && d.id != (lineage.ID{}) {
			w.w.Remove(dir) // fails if the folder, and its events, are gone
		}
	}
}

// verify requests the events of folders that replaced watched folders.
func (w *watcher) verify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.w == nil {
		return
	}
	for dir, d := range w.dirs {
		id, _, err := lookAt(dir)
		if err != nil || id == d.id {
			continue
		}
		if d.id != (lineage.ID{}) {
			w.w.Remove(dir)
			d.id = lineage.ID{}
		}
		if w.request(dir, d) {
			w.all = true
			w.signal()
		}
	}
}

func (w *watcher) Close() {
	if w.w != nil {
		w.w.Close()
		w.pumping.Wait()
	}
}

// watch watches the places that determine the file of the source's name.
func (s *source) watch() {
	if places := chain(s.path); !slices.Equal(places, s.arrivals.places) {
		s.arrivals.silentFS = !s.f.watcher.watch(s, places)
	}
}
