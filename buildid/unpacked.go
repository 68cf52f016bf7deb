package buildid

import (
	"context"
	"os"
	"sync"
)

// An unpackedKey identifies a member of an archive, and the version of the archive.
type unpackedKey struct {
	path  string
	state state
	index int
}

// An unpackedSet holds inflated members of archives. Each is inflated once and shared by its users.
// Unused members are kept, at most maxUnpacked of them, with at most maxUnpackedBytes in total. The
// zero value is an empty set. It is safe for concurrent use.
type unpackedSet struct {
	mu     sync.Mutex
	items  map[unpackedKey]*unpackedItem
	clock  uint64
	closed bool
}

type unpackedItem struct {
	key  unpackedKey
	done chan struct{} // closed once file or err is set
	file *tempFile
	err  error
	refs int
	used uint64 // the set's clock when refs last became 0
}

// get returns the item of key. It calls inflate if the set has none. The caller must release the
// item.
func (s *unpackedSet) get(ctx context.Context, key unpackedKey, inflate func() (*tempFile, error)) (*unpackedItem, error) {
	for {
		s.mu.Lock()
		item := s.items[key]
		if item == nil {
			break
		}
		item.refs++
		s.mu.Unlock()
		select {
		case <-item.done:
		case <-ctx.Done():
			s.release(item)
			return nil, ctx.Err()
		}
		if item.err == nil {
			return item, nil
		}
		s.release(item)
		// try again if the context of the goroutine that inflated the member has ended, but ctx has
		// not
		if ctx.Err() == nil && !isContext(item.err) {
			return nil, item.err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	item := &unpackedItem{key: key, done: make(chan struct{}), refs: 1}
	if s.items == nil {
		s.items = make(map[unpackedKey]*unpackedItem)
	}
	s.items[key] = item
	s.mu.Unlock()

	file, err := inflate()

	s.mu.Lock()
	item.file, item.err = file, err
	if err != nil {
		delete(s.items, key)
	}
	close(item.done)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return item, nil
}

func (s *unpackedSet) release(item *unpackedItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	item.refs--
	s.clock++
	item.used = s.clock
	return s.trim()
}

// trim closes unused items beyond the limits, the least recently used first. s.mu is held.
func (s *unpackedSet) trim() error {
	for {
		var oldest *unpackedItem
		idle, bytes := 0, int64(0)
		for _, item := range s.items {
			if item.refs > 0 {
				continue
			}
			idle++
			bytes += item.file.size
			if oldest == nil || item.used < oldest.used {
				oldest = item
			}
		}
		if oldest == nil || !s.closed && idle <= maxUnpacked && bytes <= maxUnpackedBytes {
			return nil
		}
		delete(s.items, oldest.key)
		if err := oldest.file.Close(); err != nil {
			return err
		}
	}
}

// close closes all unused items. An item in use is closed at the end of its last use.
func (s *unpackedSet) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.trim()
}

// An unpackedRef is one use of an item. Close ends the use.
type unpackedRef struct {
	set  *unpackedSet
	item *unpackedItem
}

func (r *unpackedRef) Close() error {
	item := r.item
	if item == nil {
		return os.ErrClosed
	}
	r.item = nil
	return r.set.release(item)
}
