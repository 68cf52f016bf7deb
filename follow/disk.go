package follow

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Limits of what is looked at, with unit and reason.
const (
	listCheap        = 2 * time.Millisecond // a folder that is listed faster is listed whenever it has changed
	listShare        = 16                   // a larger one that changes all the time is listed for at most 1/16 of it
	coarseStep       = 3 * time.Second      // of the clock of a file system that has no fractions of a second: FAT counts 2 s
	manyDescriptors  = 1 << 20              // as good as no limit
	spareDescriptors = 512                  // that are left to debug files and connections, of many
	maxHeld          = 8                    // files of one name that were rotated and are kept open: others are looked at when their folder changes
	safetyShare      = 100                  // files for each poll interval between two looks at all: they take 1/100 of a processor
	maxMissing       = 3                    // times that a closed file is not among those of its folder before it counts as removed
	lateInterval     = time.Second          // between two looks at a rotated file that has not grown for long
	pollShare        = 1000                 // files for each poll interval between two looks, if no events come
	hurryShare       = 5                    // looks in an interval at a file that was rotated lately, if no events come
	eventDelay       = 2 * time.Second      // that events may take, on a busy machine
	hurryTime        = 10 * time.Second     // after a rotation
)

// A disk is what all sources share of the file system: listings of folders, and the number of
// files that are open. Many goroutines may use it.
type disk struct {
	room  int64                // files that may be open before those read to their end are closed
	full  func()               // called once, when there are more
	tight atomic.Bool          // full was called
	open  atomic.Int64         // files that are open
	since func() time.Duration // a clock that is never set

	listings, opens atomic.Int64 // so far; of interest for tests

	mu      sync.Mutex
	folders map[string]*folder
}

func newDisk(full func()) *disk {
	begin := time.Now()
	return &disk{room: descriptors(), full: full, since: func() time.Duration { return time.Since(begin) }, folders: make(map[string]*folder)}
}

// A folder is the listing of one folder.
type folder struct {
	mu     sync.Mutex
	silent bool          // the system tells nothing of what others do in it: what stat says may be old
	state  folderState   // when it was looked at last
	seen   time.Duration // when it was in that state first
	listed folderState   // before it was listed last
	begun  time.Duration // when it was listed last, and how long that took
	took   time.Duration
	used   time.Duration // when it was asked for last
	sure   bool          // what changes after the listing changes the state, too
	names  []string      // sorted; never modified
	err    error
}

// A folderState changes whenever a name comes, goes or changes in a folder, but for changes within
// one step of the file system's clock.
type folderState struct {
	id       fileID
	modified time.Time
}

// A listing is what a folder held at a moment.
type listing struct {
	names []string
	begun time.Duration // tells listings of a folder apart
	sure  bool          // the folder is as it was then if a later call returns the same
}

// errLater reports that a large folder was listed just now, and changes all the time.
var errLater = errors.New("listed too often")

// list returns the names in dir. However many sources ask, a folder that does not change is listed
// once; one that changes is listed again, but for at most 1/listShare of the time: then the error
// is errLater.
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
	if f.begun >= asked { // another source asked at the same time
		return listing{f.names, f.begun, f.sure}, f.err
	}
	id, info, err := lookAt(dir)
	if err != nil {
		return listing{}, err
	}
	now := d.since()
	state := folderState{id, info.ModTime()}
	if state != f.state {
		f.state, f.seen = state, now
	}
	if f.begun >= 0 && f.err == nil {
		switch {
		case state == f.listed && f.sure && (!f.silent || now-f.begun < pollInterval):
			return listing{f.names, f.begun, true}, nil
		case f.took > listCheap && now-f.begun < listShare*f.took:
			return listing{}, errLater
		}
	}
	step := clockStep
	if state.modified.Nanosecond() == 0 {
		step = coarseStep
	}
	f.sure = now-f.seen > step || time.Since(state.modified) > step
	d.listings.Add(1)
	f.begun, f.listed = now, state
	f.names, f.err = readNames(dir)
	f.took = d.since() - now
	return listing{f.names, f.begun, f.sure}, f.err
}

// readNames returns the names in dir, sorted.
func readNames(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// beginning returns those of the names of l that begin with prefix.
func (l listing) beginning(prefix string) []string {
	from, _ := slices.BinarySearch(l.names, prefix)
	rest := l.names[from:]
	n, _ := slices.BinarySearchFunc(rest, prefix, func(name, prefix string) int {
		if strings.HasPrefix(name, prefix) {
			return -1
		}
		return 1
	})
	return rest[:n]
}

// has reports whether name is in the listing.
func (l listing) has(name string) bool {
	_, found := slices.BinarySearch(l.names, name)
	return found
}

// forgetFolders drops listings that nobody asked for in the last while.
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

// A handle is a regular file that may be closed while nothing is read of it, and is opened again
// when something is. One goroutine at a time may use it.
type handle struct {
	disk *disk
	id   fileID
	name string   // under which it was found last
	f    *os.File // nil: it is closed
}

// errMoved reports that a file that was closed is not where it was.
var errMoved = errors.New("is no longer under its name")

// openHandle opens path if it is a regular file. Nothing else is opened: that alone may do harm, or
// never return.
func (d *disk) openHandle(path string) (*handle, fs.FileInfo, error) {
	d.opens.Add(1)
	f, info, err := openRegular(path)
	if err != nil {
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			d.tell()
		}
		return nil, nil, err
	}
	if d.open.Add(1) > d.room {
		d.tell()
	}
	return &handle{d, identify(f, info), path, f}, info, nil
}

// tell calls full, once: there is no room for more files.
func (d *disk) tell() {
	if !d.tight.Swap(true) && d.full != nil {
		d.full()
	}
}

// crowded reports whether a file that is not read at the moment should be closed.
func (d *disk) crowded() bool { return d.open.Load() > d.room }

func (h *handle) file() (*os.File, error) {
	if h.f != nil {
		return h.f, nil
	}
	again, _, err := h.disk.openHandle(h.name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errIrregular) {
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

// ReadAt is that of os.File.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	f, err := h.file()
	if err != nil {
		return 0, err
	}
	return f.ReadAt(p, off)
}

// Stat is that of os.File.
func (h *handle) Stat() (fs.FileInfo, error) {
	f, err := h.file()
	if err != nil {
		return nil, err
	}
	return f.Stat()
}

// Close gives the descriptor back; the next use opens the file again.
func (h *handle) Close() {
	if h.f != nil {
		h.f.Close()
		h.f = nil
		h.disk.open.Add(-1)
	}
}

// descriptors returns how many files may be open, of those that the system allows: the rest is for
// debug files, connections, and files that are looked at in passing.
func descriptors() int64 {
	n := descriptorLimit()
	return max(n/2, n-spareDescriptors, 1)
}

// tellFull reports that files take turns.
func (f *Follower) tellFull() {
	f.tell(Event{Message: fmt.Sprintf("more files are read than may be open at once (%d of ulimit -n): they are closed and opened in turn; one that is removed while it is closed loses what was not read", f.disk.room)})
}
