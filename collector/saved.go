package collector

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// maxStored bounds the keys of a stored. A context whose key does not fit never expires: it stays
// in the storage.
const maxStored = 1 << 17

// latest holds the newest unsaved snapshot of a context, if any. Many goroutines may use it.
type latest struct{ p atomic.Pointer[[]byte] }

// stored holds the keys of contexts that are in the storage but not in memory, to let them
// expire. The zero value is empty. Many goroutines may use it.
type stored struct {
	mu   sync.Mutex
	keys map[string]time.Time // last use, or start of the Collector
}

// list adds the keys in a storage, if the storage can list them.
func (k *stored) list(ctx context.Context, client storage.Client, t *telemetry) {
	walker, ok := client.(storage.Walker)
	if !ok {
		return
	}
	now := time.Now()
	if err := walker.Walk(ctx, func(key string, _ []byte) ([]*storage.Operation, error) {
		k.add(key, now)
		return nil, nil
	}); err != nil {
		t.storageFailed("the stored contexts cannot be listed", err)
	}
}

func (k *stored) add(key string, used time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keys == nil {
		k.keys = make(map[string]time.Time)
	}
	if len(k.keys) < maxStored {
		k.keys[key] = used
	}
}

// dropped adds a stream dropped from memory, if the storage has its context. The next record of
// the stream restores the context.
func (k *stored) dropped(s *stream, used time.Time) {
	if s.kept {
		k.add(s.key, used)
	}
}

// taken removes a key whose context is in memory again.
func (k *stored) taken(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.keys, key)
}

// expire removes and returns the keys not used for the time idle.
func (k *stored) expire(now time.Time, idle time.Duration) (keys []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, used := range k.keys {
		if now.Sub(used) >= idle {
			delete(k.keys, key)
			keys = append(keys, key)
		}
	}
	return keys
}

// load restores the context of a stream from the storage, after a restart or if it was dropped.
// s.mu is held.
func (h *shared) load(ctx context.Context, s *stream) {
	if s.loaded || h.client == nil {
		return
	}
	s.loaded = true
	data, err := h.client.Get(ctx, s.key)
	if err != nil {
		h.storageFailed("a stored context cannot be read", err)
		return
	}
	h.stored.taken(s.key)
	if data == nil {
		return
	}
	s.kept = true
	if err := s.context.UnmarshalJSON(data); err != nil {
		h.storageFailed("a stored context cannot be used", err)
	}
}

// take sets the snapshot of s to the changed context, for the next save. s.mu is held.
func (h *shared) take(s *stream) {
	if h.client == nil {
		return
	}
	data := []byte{} // empty: nothing to keep
	if s.context.Size() > emptyContext {
		data, _ = s.context.MarshalJSON() // never fails: see filter.Context
		s.kept = true
	}
	s.snapshot.p.Store(&data)
}

// save writes the newest snapshots of streams before their batch is passed on. A restart then
// forgets no module that the next consumer has seen. An error is logged, and the batch is still
// passed on.
func (h *shared) save(ctx context.Context, changed []*stream) {
	if h.client == nil || len(changed) == 0 {
		return
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	ops := make([]*storage.Operation, 0, len(changed))
	for _, s := range changed {
		switch data := s.snapshot.p.Swap(nil); {
		case data == nil: // another batch has saved it meanwhile
		case len(*data) == 0:
			ops = append(ops, storage.DeleteOperation(s.key))
		default:
			ops = append(ops, storage.SetOperation(s.key, *data))
		}
	}
	if len(ops) == 0 {
		return
	}
	if err := h.client.Batch(ctx, ops...); err != nil {
		h.storageFailed("contexts cannot be stored, and a restart will lose them", err)
	}
}

// forget removes contexts from the storage.
func (h *shared) forget(ctx context.Context, keys []string) {
	if h.client == nil || len(keys) == 0 {
		return
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	ops := make([]*storage.Operation, 0, len(keys))
	for _, key := range keys {
		ops = append(ops, storage.DeleteOperation(key))
	}
	if err := h.client.Batch(ctx, ops...); err != nil {
		h.storageFailed("old contexts cannot be removed", err)
	}
}
