package symindex

import (
	"errors"
	"hash/maphash"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Listing caches the names in a directory of indexes for a second. If many files have no index,
// it saves a system call for each of them. The zero value is ready for use. It is safe for
// concurrent use.
type Listing struct {
	mu     sync.Mutex
	asked  int                 // calls of Lacks since the directory was listed
	listed time.Time           // time at which the directory was listed; zero if never
	names  map[uint64]struct{} // hashes of names; nil: not known
	seed   maphash.Seed
}

const (
	listAfter = 16 // calls of Lacks before the directory is listed
	// time in which a new index of another process may go unnoticed
	listAgain = time.Second
	maxListed = 1 << 16 // names; a directory with more is not listed: 20 ms
	listChunk = 1024    // names read at a time
)

// Lacks reports whether d had no index of s a moment ago. If it returns false, d may still have no
// index.
func (l *Listing) Lacks(d Dir, s Source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.asked++; now.Sub(l.listed) >= listAgain {
		l.names = nil
		if l.asked <= listAfter {
			return false
		}
		l.asked, l.listed = 0, now
		l.list(d)
	}
	if l.names == nil {
		return false
	}
	_, has := l.names[maphash.String(l.seed, filepath.Base(d.file(s)))]
	return !has
}

// Has records that d now has an index of s.
func (l *Listing) Has(d Dir, s Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names != nil {
		l.names[maphash.String(l.seed, filepath.Base(d.file(s)))] = struct{}{}
	}
}

// list stores the hashes of all names in d. It stores none if d fails its check, cannot be read, or
// has more than maxListed names.
func (l *Listing) list(d Dir) {
	if d.check() != nil {
		return
	}
	f, err := os.Open(d.Path)
	if err != nil {
		return
	}
	defer f.Close()
	l.seed = maphash.MakeSeed()
	names := make(map[uint64]struct{})
	for len(names) <= maxListed {
		some, err := f.Readdirnames(listChunk)
		for _, name := range some {
			names[maphash.String(l.seed, name)] = struct{}{}
		}
		if errors.Is(err, io.EOF) {
			l.names = names
			return
		}
		if err != nil {
			return
		}
	}
	l.listed = l.listed.Add(time.Minute) // too many: not tried again for a minute
}
