package buildid

import (
	"context"
	"os"
	"sync"
)

// An unpackedKey names a member of an archive as it was at some time.
type unpackedKey struct {
	path  string
	state state
	index int
}

// An unpackedSet holds the members of archives that were inflated: each once, while it is in use and, up to a limit, for the next
// who wants it. It may be used by many goroutines at once.
type unpackedSet struct {
	mu     sync.Mutex
	items  map[unpackedKey]*unpackedItem
	clock  uint64
	closed bool
}

type unpackedItem struct {
	key  unpackedKey
	done chan struct{} // closed when file or err is there
	file *tempFile
	err  error
	refs int
	used uint64 // the set's clock when refs last became 0
}

// get returns the item of key, which inflate makes if nobody has. The caller gives it back with release.
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
		if ctx.Err() == nil && !isContext(item.err) { // that one's context ended, not ours
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

// release gives item back.
func (s *unpackedSet) release(item *unpackedItem) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	item.refs--
	s.clock++
	item.used = s.clock
	return s.trim()
}

// trim closes what nobody uses and there is no room for; s.mu is held.
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

// close closes what nobody uses, now and from now on.
func (s *unpackedSet) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.trim()
}

// An unpackedRef is one use of an item.
type unpackedRef struct {
	set  *unpackedSet
	item *unpackedItem
}

// Close gives the item back.
func (r *unpackedRef) Close() error {
	item := r.item
	if item == nil {
		return os.ErrClosed
	}
	r.item = nil
	return r.set.release(item)
}
