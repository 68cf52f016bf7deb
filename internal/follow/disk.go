package follow

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// Limits of checks of the file system.
const (
	listCheap = 2 * time.Millisecond // a folder that is listed faster is listed at every change
	// A folder with at most this number of names is also listed at every change: on a busy machine
	// any listing may be slow, and a listing during a rotation may miss a file.
	listFew = 200
	// A folder that takes longer is not listed at every change, however few names it has: many
	// files may be followed there.
	listSlow = 100 * time.Millisecond
	// a slower and larger folder that changes all the time is listed for at most 1/listShare of the
	// time
	listShare = 16
	// more than the clock step of any file system without fractions of a second: FAT's is 2 s
	coarseStep       = 3 * time.Second
	manyDescriptors  = 1 << 20 // practically no limit
	spareDescriptors = 512     // left for debug files and connections, if the limit is high enough
	// after the error "too many open files": number of descriptors that stay free for other uses,
	// and for how long
	shortSpare = 2
	shortTime  = time.Minute
	// open rotated files of one name; other rotated files are examined when their folder changes
	maxHeld = 8
	// average number of files checked per poll interval; these checks take 1/100 of a processor
	safetyShare = 100
	// idle files with events that are compared per poll interval; after an overflow of the event
	// queue, all files are examined
	sweepShare = 50
	// failed searches for a closed file before it is reported as removed
	maxMissing = 3
	// interval between checks of a rotated file that has not grown for long
	lateInterval = time.Second
	// files checked per poll interval, if no events arrive
	pollShare = 1000
	// sinks whose Changed is called per poll interval
	changeShare = 250
	// checks per poll interval of a file that was rotated recently, if no events arrive
	hurryShare = 5
	eventDelay = 2 * time.Second  // longest delay of events on a busy machine
	hurryTime  = 10 * time.Second // time after a new file during which hurryShare applies
)

// A disk is the file system state that all sources share: listings of folders, and the number of
// open files. A disk is safe for concurrent use.
type disk struct {
	room  int64                // number of open files above which idle files are closed
	short shortage             // lack of descriptors, if others use them
	full  func()               // called once, when too many files are open
	tight atomic.Bool          // full was called
	open  atomic.Int64         // files that are open
	since func() time.Duration // a monotonic clock

	ctx    context.Context // ends the unpacking of compressed files
	unpack unpacker        // Options.Unpack

	listings, opens atomic.Int64 // for tests

	mu      sync.Mutex
	folders map[string]*folder
}

func newDisk(full func()) *disk {
	begin := time.Now()
	return &disk{ctx: context.Background(), room: descriptors(), full: full, since: func() time.Duration { return time.Since(begin) }, folders: make(map[string]*folder)}
}

// A folder is the cached listing of one folder.
type folder struct {
	mu sync.Mutex
	// no events arrive from the folder, as on a network file system: its cached state may be old
	silent     bool
	state      folderState   // at the last check
	stateSince time.Duration // time at which state was first seen
	listed     folderState   // state before the last listing
	begun      time.Duration // start of the last listing; -1: never listed
	took       time.Duration // duration of the last listing
	used       time.Duration // last call of list
	sure       bool          // any change after the listing changes the state
	names      lineage.Names // never modified
	err        error
}

// A folderState changes with each added, removed or changed name in a folder. A second change
// within one step of the file system's clock may be missed.
type folderState struct {
	id       lineage.ID
	modified time.Time
}

// A listing holds the names in a folder at one moment.
type listing struct {
	names lineage.Names
	begun time.Duration // start of the listing, which distinguishes two listings of a folder
	sure  bool          // if a later call returns the same listing, nothing has changed in between
}

// errLater reports that a folder was listed too recently: see disk.list.
var errLater = errors.New("listed too often")

// list returns the names in dir. An unchanged folder is listed once for all sources. If no events
// arrive from the folder, a listing is used for at most pollInterval. A large folder that changes
// all the time is listed for at most 1/listShare of the time: the error is errLater if it was
// listed too recently.
func (d *disk) list(dir string) (listing, error) {
	asked := d.since()
	d.mu.Lock()
	f := d.folders[dir]
	if f == nil {
		f = &folder{silent: !hasEvents(dir), begun: -1}
		d.folders[dir] = f
	}
	d.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used = asked
	if f.begun >= asked { // listed for another source since this call
		return listing{f.names, f.begun, f.sure}, f.err
	}
	id, info, err := lookAt(dir)
	if err != nil {
		return listing{}, err
	}
	now := d.since()
	state := folderState{id, info.ModTime()}
	if state != f.state {
		f.state, f.stateSince = state, now
	}
	if f.begun >= 0 && f.err == nil {
		switch {
		case state == f.listed && f.sure && (!f.silent || now-f.begun < pollInterval):
			return listing{f.names, f.begun, true}, nil
		case f.took > listCheap && (len(f.names) > listFew || f.took > listSlow) && now-f.begun < listShare*f.took:
			return listing{}, errLater
		}
	}
	step := clockStep
	if state.modified.Nanosecond() == 0 {
		step = coarseStep
	}
	f.sure = now-f.stateSince > step || time.Since(state.modified) > step
	d.listings.Add(1)
	f.begun, f.listed = now, state
	f.names, f.err = readNames(dir)
	f.took = d.since() - now
	return listing{f.names, f.begun, f.sure}, f.err
}

func readNames(dir string) (lineage.Names, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// forgetFolders drops listings without a use for longer than vanish.
func (d *disk) forgetFolders() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for dir, f := range d.folders {
		if f.mu.TryLock() {
			if d.since()-f.used > vanish {
				delete(d.folders, dir)
			}
			f.mu.Unlock()
		}
	}
}

// A handle is a regular file that may be closed between reads. The next read reopens it. A handle
// is not safe for concurrent use.
type handle struct {
	disk *disk
	id   lineage.ID
	name string   // path at which it was last found
	f    *os.File // nil while it is closed
}

var errMoved = errors.New("is no longer at its path")

// openHandle opens path if it is a regular file. Opening a device could have an effect, or never
// return.
func (d *disk) openHandle(path string) (*handle, fs.FileInfo, error) {
	d.opens.Add(1)
	f, info, err := openRegular(path)
	if err != nil {
		if tooMany(err) {
			d.short.begin(d.since(), d.open.Load())
			d.reportFull()
		}
		return nil, nil, err
	}
	if d.open.Add(1) > d.limit() {
		d.reportFull()
	}
	return &handle{d, identify(f, info), path, f}, info, nil
}

// reportFull calls full at most once.
func (d *disk) reportFull() {
	if !d.tight.Swap(true) && d.full != nil {
		d.full()
	}
}

func tooMany(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// closeIfCrowded closes the file if too many are open. The next use reopens it.
func (h *handle) closeIfCrowded() {
	if h.disk.crowded() {
		h.Close()
	}
}

func (d *disk) crowded() bool { return d.open.Load() > d.limit() }

// limit returns the number of open files above which idle files are closed.
func (d *disk) limit() int64 { return min(d.room, d.short.limit(d.since())) }

// A shortage is a period in which fewer log files than usual can be open. The cause is inherited
// descriptors, or many open debug files.
type shortage struct {
	mu    sync.Mutex
	until time.Duration // 0: none
	most  int64         // files that may be open until then
}

// begin records, at the time now, that no further file could be opened while n files were open.
func (s *shortage) begin(now time.Duration, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until, s.most = now+shortTime, max(n-shortSpare, 1)
}

func (s *shortage) limit(now time.Duration) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now >= s.until {
		return math.MaxInt64
	}
	return s.most
}

func (h *handle) file() (*os.File, error) {
	if h.f != nil {
		return h.f, nil
	}
	again, _, err := h.disk.openHandle(h.name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, lineage.ErrIrregular) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	if again.id != h.id {
		again.Close()
		return nil, errMoved
	}
	h.f = again.f
	return h.f, nil
}

// ReadAt implements [io.ReaderAt]. It reopens a closed file.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	f, err := h.file()
	if err != nil {
		return 0, err
	}
	return f.ReadAt(p, off)
}

// Stat returns the state of the file. It reopens a closed file.
func (h *handle) Stat() (fs.FileInfo, error) {
	f, err := h.file()
	if err != nil {
		return nil, err
	}
	return f.Stat()
}

// Close releases the descriptor. The next use reopens the file.
func (h *handle) Close() {
	if h.f != nil {
		h.f.Close()
		h.f = nil
		h.disk.open.Add(-1)
	}
}

// descriptors returns the number of log files that may be open. Debug files, connections and short
// checks need the other descriptors.
func descriptors() int64 {
	n := descriptorLimit()
	return max(n/2, n-spareDescriptors, 1)
}

func (f *Follower) notifyFull() {
	f.notify(Event{Message: fmt.Sprintf("more files are followed than may be open at once (%d; see ulimit -n), so files take turns; unread lines of a file that is removed while closed are lost", f.disk.limit())})
}
