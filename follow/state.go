package follow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// A checkpoint is a file of two lines: what it is, with a hash of the other,
// and JSON.
const (
	stateVersion = 1
	stateMagic   = "symfilter state "
	unusedEnd    = ".unused" // of the name under which what stood in the checkpoint's place is kept
	clockStep    = 20 * time.Millisecond
	lockPatience = 2 * time.Second // for a process that is just ending
	lockPause    = 20 * time.Millisecond
	stateNames   = 100                // names tried for a temporary file
	stateMode    = fs.FileMode(0o600) // it tells names of files and programs
)

// checkpoint is the content of the state file.
type checkpoint struct {
	Version int               `json:"v"`
	Host    string            `json:"host,omitempty"`  // hash of the machine's ID
	Time    time.Time         `json:"time"`            // when it was written
	Names   []string          `json:"names,omitempty"` // patterns that were followed
	Files   []json.RawMessage `json:"files"`
}

// savedSource is what is said of one name.
type savedSource struct {
	Path    string         `json:"path"`
	Reading []savedReading `json:"reading,omitempty"` // the oldest first; the last has the name, or had it
	Read    []mark         `json:"read,omitempty"`    // those that are not to be read again
	Context string         `json:"context,omitempty"` // for the lines behind all of them
	Real    string         `json:"real,omitempty"`    // what the name stood for
	Beside  *string        `json:"beside,omitempty"`  // the siblings that are not to be read
}

// savedReading is a place in a file up to which lines were printed.
type savedReading struct {
	mark
	Replay bool  `json:"replay,omitempty"` // the lines before are to be read again, quietly
	Quiet  int64 `json:"quiet,omitempty"`  // up to where lines are not printed
}

// A saver writes checkpoints. Many goroutines may use it.
type saver struct {
	path     string // empty: none are written
	host     string
	sync     func() error
	tell     func(Event)
	patterns []string

	loaded map[string]savedSource // by path, until restored
	known  []string               // patterns that the loaded checkpoint has followed
	since  time.Time              // when it was written, give or take the steps of file systems' clocks

	mu      sync.Mutex
	sources map[string]json.RawMessage // what was printed, by path
	changed bool                       // since the file was written
	failing bool                       // the file cannot be written; told
	asked   time.Time                  // when sources were asked for what they have printed
	next    time.Time                  // when the file may be written again

	writing sync.Mutex // held while the file is being written
	locked  *os.File   // the state file, which no other process may use; nil: it is not there, or cannot be locked
	ended   sync.WaitGroup
}

// newSaver returns a saver for path, which may hold a checkpoint. The error says
// that none can be written there.
func newSaver(path string, patterns []string, o Options) (*saver, error) {
	w := &saver{path: path, host: hostID(), sync: o.Sync, tell: o.Tell, patterns: patterns, sources: make(map[string]json.RawMessage)}
	if w.tell == nil {
		w.tell = func(Event) {}
	}
	if path == "" {
		return w, nil
	}
	f, err := createBeside(path)
	if err != nil {
		return nil, fmt.Errorf("write a checkpoint beside %s: %w", path, bare(err))
	}
	f.Close()
	os.Remove(f.Name())
	if err := w.lock(); err != nil {
		return nil, fmt.Errorf("%s is %w", path, err)
	}
	if err := w.read(); err != nil {
		w.unlock()
		return nil, err
	}
	return w, nil
}

// read takes in the checkpoint that is there. The error says that another must
// not take its place.
func (w *saver) read() error {
	unused := ""
	c, err := readCheckpoint(w.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, errIrregular):
		return fmt.Errorf("%s is %w", w.path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read the checkpoint %s: %w", w.path, bare(err))
	case errors.Is(err, errForeign):
		path := resolved(w.path)
		if err := os.Rename(path, path+unusedEnd); err != nil {
			return fmt.Errorf("%s is no checkpoint, and cannot be renamed: %w", w.path, bare(err))
		}
		unused = fmt.Sprintf("it is torn, or no checkpoint; what it held is in %s now", path+unusedEnd)
	case err != nil:
		unused = bare(err).Error()
	case c.Host != "" && w.host != "" && c.Host != w.host:
		unused = "it was written on another machine"
	default:
		w.load(c)
		return nil
	}
	w.tell(Event{Message: fmt.Sprintf("the checkpoint %s is not used: %s", w.path, unused)})
	return nil
}

var errInUse = errors.New("in use: another process writes its checkpoint there")

// lock keeps other processes from using the state file, if it is there. Each
// file that takes its place is locked, too.
func (w *saver) lock() error {
	for begin := time.Now(); ; time.Sleep(lockPause) {
		f, info, err := openRegular(w.path)
		if err != nil {
			return nil // it is not there, or whoever reads it says what is wrong
		}
		free := lockFile(f)
		if id, _, err := lookAt(w.path); free && err == nil && id == identify(f, info) {
			w.locked = f
			return nil
		}
		f.Close() // another file has taken its place, perhaps
		if time.Since(begin) > lockPatience {
			return errInUse
		}
	}
}

func (w *saver) unlock() {
	if w.locked != nil {
		w.locked.Close()
		w.locked = nil
	}
}

// is reports whether path is that of the state file.
func (w *saver) is(path string) bool {
	return w.path != "" && filepath.Base(path) == filepath.Base(w.path) && resolved(path) == resolved(w.path)
}

// resolved returns the path of what path stands for.
func resolved(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return path
}

// hostID returns what tells this machine from others; empty where nothing does.
func hostID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil && len(bytes.TrimSpace(id)) == 32 {
			return hash(append([]byte("symfilter "), id...))
		}
	}
	return ""
}

var (
	errTorn    = errors.New("it is torn, or no checkpoint")
	errForeign = errors.New("it is no checkpoint") // but something that somebody may want to keep
)

// readCheckpoint reads a state file.
func readCheckpoint(path string) (c checkpoint, err error) {
	f, info, err := openRegular(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	if info.Size() > maxState {
		return c, errTorn
	}
	data, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return c, err
	}
	head, body, _ := bytes.Cut(data, []byte{'\n'})
	if n := min(len(data), len(stateMagic)); string(data[:n]) != stateMagic[:n] && len(bytes.Trim(data, "\x00")) > 0 {
		return c, errForeign
	}
	if string(head) != stateHead(body) || json.Unmarshal(body, &c) != nil {
		return c, errTorn
	}
	if c.Version != stateVersion {
		return c, fmt.Errorf("it has version %d, not %d", c.Version, stateVersion)
	}
	return c, nil
}

// stateHead is the first line of a state file.
func stateHead(body []byte) string { return stateMagic + hash(body) }

// load takes in a checkpoint. What it says of files that are gone, and that
// nobody asks for, goes with the first that is written.
func (w *saver) load(c checkpoint) {
	w.loaded = make(map[string]savedSource)
	w.known = c.Names
	w.since = c.Time.Add(-clockStep)
	for _, raw := range c.Files {
		var s savedSource
		if json.Unmarshal(raw, &s) != nil {
			continue
		}
		w.loaded[s.Path] = s
		if _, err := os.Lstat(s.Path); err == nil {
			w.sources[s.Path] = raw
		}
	}
}

// restore gives s what the checkpoint says of it.
func (w *saver) restore(s *source) {
	if saved, ok := w.loaded[s.path]; ok {
		delete(w.loaded, s.path)
		s.saved = &saved
		for _, r := range saved.Reading {
			s.f.files.add(s, r.mark) // no other source may read it
		}
	}
	s.dirty = true
}

// knows reports whether the checkpoint has followed what a pattern matches:
// what it does not name is new.
func (w *saver) knows(pattern string) bool { return slices.Contains(w.known, pattern) }

// put takes in what was printed of s.
func (w *saver) put(s savedSource) {
	raw, err := json.Marshal(s)
	if err != nil {
		return // of strings and numbers: none
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !bytes.Equal(raw, w.sources[s.Path]) {
		w.sources[s.Path] = raw
		w.changed = true
	}
}

// drop forgets s.
func (w *saver) drop(s *source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sources, s.path)
	w.changed = true
}

// due has the checkpoint written in a goroutine, if it is time, and reports
// whether sources are to be asked for what they have printed.
func (w *saver) due() bool {
	if w.path == "" {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.changed && now.After(w.next) {
		w.next = now.Add(time.Hour) // until it is written
		w.ended.Go(func() {
			begin := time.Now()
			w.save()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.next = time.Now().Add(max(saveInterval/2, saveShare*time.Since(begin)))
		})
	}
	if now.Sub(w.asked) < saveInterval {
		return false
	}
	w.asked = now
	return true
}

// end writes the last checkpoint, and waits for what is being written.
func (w *saver) end() error {
	w.ended.Wait()
	err := w.save()
	w.writing.Lock()
	defer w.writing.Unlock()
	w.unlock()
	return err
}

// save writes a checkpoint if there is anything new to say. It tells what is
// wrong once.
func (w *saver) save() error {
	if w.path == "" {
		return nil
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	w.mu.Lock()
	if !w.changed {
		w.mu.Unlock()
		return nil
	}
	c := checkpoint{Version: stateVersion, Host: w.host, Time: time.Now(), Names: w.patterns}
	for _, path := range slices.Sorted(maps.Keys(w.sources)) {
		c.Files = append(c.Files, w.sources[path])
	}
	w.changed = false
	w.mu.Unlock()
	err := w.write(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.changed = true
		err = fmt.Errorf("write the checkpoint %s: %w", w.path, bare(err))
		if !w.failing {
			w.tell(Event{Message: err.Error() + "; it is tried again"})
		}
	}
	w.failing = err != nil
	return err
}

// write replaces the state file: who reads it sees the old one or the new one.
func (w *saver) write(c checkpoint) (err error) {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if w.sync != nil {
		if err := w.sync(); err != nil {
			return err
		}
	}
	f, err := createBeside(w.path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = io.WriteString(f, stateHead(body)+"\n"); err != nil {
		return err
	}
	if _, err = f.Write(body); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	keeps := locks && lockFile(f)
	if !keeps {
		f.Close() // all of it is written
	}
	if err = os.Rename(f.Name(), resolved(w.path)); err == nil && keeps {
		w.unlock()
		w.locked = f
	}
	return err
}

// createBeside creates a file in the folder of path, which may be a link.
func createBeside(path string) (f *os.File, err error) {
	dir, name := filepath.Split(resolved(path))
	for i := range stateNames {
		temporary := dir + "." + name + "." + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(i) + ".tmp"
		f, err = os.OpenFile(temporary, os.O_CREATE|os.O_EXCL|os.O_WRONLY, stateMode)
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return f, err
}

// snapshot takes in what was printed of the source. What cannot be told at the
// moment stays as it was told before.
func (s *source) snapshot() {
	s.wanted = false
	if s.saved != nil { // its files are not found yet
		s.dirty = false
		s.f.saver.put(*s.saved)
		return
	}
	all := savedSource{Path: s.path, Real: s.real, Read: s.done[max(0, len(s.done)-maxKnown):], Beside: s.known()}
	replay := false
	if s.out != nil && s.out.Context != nil {
		context, ok := s.out.Context(nil)
		if replay = !ok || !utf8.Valid(context); !replay {
			all.Context = string(context)
		}
	}
	for _, g := range s.reading() {
		m, err := g.mark()
		if err != nil {
			return
		}
		r := savedReading{mark: m, Replay: replay && g.out == s.out}
		if g.silent > g.off {
			r.Quiet = g.silent
		}
		all.Reading = append(all.Reading, r)
	}
	s.dirty = false
	s.f.saver.put(all)
}

// reading returns the files that the source reads, the oldest first.
func (s *source) reading() []*generation {
	all := slices.Clone(s.old)
	if s.cur != nil {
		all = append(all, s.cur)
	}
	return all
}

// resume goes on where the checkpoint says. It reports whether there is
// something to be read.
func (s *source) resume() (bool, error) {
	saved := *s.saved
	if len(saved.Reading) == 0 && saved.Context == "" {
		s.saved, s.start, s.since = nil, Beginning, s.f.saver.since
		return s.begin()
	}
	s.real = saved.Real
	now, all, err := s.present()
	if errors.Is(err, errLater) {
		s.attention = true
		return false, nil
	}
	defer func() { closeAll(all) }()
	last := savedReading{}
	if n := len(saved.Reading); n > 0 {
		last = saved.Reading[n-1]
	}
	found := claim(all, last.mark)
	if found == nil && now == nil {
		s.noFile(err)
		return false, nil
	}
	s.saved, s.start = nil, Beginning
	sink, err := s.f.o.Open(s.name)
	if err != nil {
		return false, sinkError{err}
	}
	s.out = &outlet{Sink: sink}
	if saved.Context != "" && s.out.Restore != nil {
		if err := s.out.Restore([]byte(saved.Context)); err != nil {
			s.tell(Event{Message: fmt.Sprintf("what the checkpoint says is not understood (%v); it is read again", err)})
			last.Replay = true
		}
	}
	for _, r := range saved.Reading[:max(0, len(saved.Reading)-1)] {
		if g := claim(all, r.mark); g != nil {
			if err := s.resumeOld(g, r); err != nil {
				return false, err
			}
		}
	}
	s.knowBefore(saved, all, last.Time)
	s.dirty = true
	if found != nil {
		if err := found.resume(last); err != nil || s.f.files.claim(found, s) != nil {
			found.close()
			return false, nil
		}
		return true, s.take(found)
	}
	if last.Len > 0 {
		s.lostTrack(now, last)
		if copied := claimCopy(all, last.mark); copied != nil && s.f.files.claim(copied, s) == nil {
			if now != nil && now.id.ino == last.Ino {
				s.anew = now.id
			}
			if copied.seek(last.Off) == nil {
				return true, s.take(copied)
			}
			copied.close()
		}
	}
	g, err := s.next(predecessor{})
	if g == nil {
		s.noFile(err)
		return false, nil
	}
	if err := s.take(g); err != nil || last.Len == 0 && len(saved.Reading) > 0 {
		return err == nil, err // the first lines of a file that was empty
	}
	return true, s.nextSink()
}

// present opens what the name stands for, and its siblings, all that are there
// at one moment; all contains now.
func (s *source) present() (now *generation, all []*generation, err error) {
	for try := 0; ; try++ {
		now, err = s.f.disk.openGeneration(s.path)
		beside, later := s.siblings()
		if later != nil {
			closeAll([]*generation{now})
			return nil, nil, later
		}
		if try == maxTries || s.settled(now, beside) {
			if now != nil {
				all = append(all, now)
			}
			for _, c := range beside.all {
				if g, err := s.f.disk.openGeneration(c.path); err == nil && (now == nil || g.id != now.id) {
					all = append(all, g)
				} else if err == nil {
					g.close()
				}
			}
			return now, all, err
		}
		if now != nil {
			now.close()
		}
	}
}

// claim takes the file of m out of all. A device may have another number since
// the machine was started again. One that was empty is not found: nothing tells
// it from a later one that was given its inode.
func claim(all []*generation, m mark) *generation {
	for i, g := range all {
		if g != nil && m.Len > 0 && g.id.ino == m.Ino && m.holds(g) {
			all[i] = nil
			return g
		}
	}
	return nil
}

// claimCopy takes a copy of the file of m out of all, of when it had more.
func claimCopy(all []*generation, m mark) *generation {
	for i, g := range all {
		if g != nil && m.Off > 0 && g.id.ino != m.Ino && g.size > m.Off && !g.mtime.Before(m.Time) && m.holds(g) {
			all[i] = nil
			return g
		}
	}
	return nil
}

// resume makes reading go on where r says.
func (g *generation) resume(r savedReading) error {
	g.silent = r.Quiet
	if r.Replay {
		g.silent = max(r.Off, r.Quiet)
		return nil
	}
	return g.seek(r.Off)
}

// resumeOld goes on with a file that had lost its name already.
func (s *source) resumeOld(g *generation, r savedReading) error {
	g.out = s.out
	if r.Replay {
		sink, err := s.f.o.Open(s.name)
		if err != nil {
			g.close()
			return sinkError{err}
		}
		g.out = &outlet{Sink: sink}
	}
	if err := g.resume(r); err != nil || s.f.files.claim(g, s) != nil {
		g.close()
		return nil
	}
	s.old = append(s.old, g)
	return nil
}

// lostTrack says why reading does not go on where the checkpoint says.
func (s *source) lostTrack(now *generation, last savedReading) {
	if now != nil && now.id.ino == last.Ino {
		s.tell(Event{Message: fmt.Sprintf("holds less, or another text, than when it was read up to byte %d: it was truncated, or is another file; it is read from its beginning", last.Off)})
		s.anew = now.id
		return
	}
	s.tell(Event{Message: fmt.Sprintf("the file that was read up to byte %d is gone; what was written to it since %s is lost", last.Off, last.Time.Format(time.DateTime))})
}

// hasMeta reports whether a name may be a pattern.
func hasMeta(name string) bool { return strings.ContainsAny(name, `*?[`) }
