package filter

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/symfilter/symfilter/internal/checkpoint"
)

// contexts holds the Contexts of the logs of [Lines], by key. It implements [access.Contexts]. At
// its limits it drops the Contexts that have been idle longest. One goroutine at a time may use
// contexts.
type contexts struct{ all processes }

// newContexts returns empty contexts within the limits l. evicted is like [Options.Evicted]; it may
// be nil.
func newContexts(l Limits, evicted func(key, reason string)) *contexts {
	none := new(process)
	return &contexts{processes{
		process: none, all: map[string]*process{"": none},
		limits: l.orDefault(), evicted: evicted,
	}}
}

// Of returns the Context with the given key, or an empty Context if there is none. The Context is
// valid until the next call of Of.
func (c *contexts) Of(key []byte) *Context {
	a := &c.all
	if key = shortKey(key); a.process.key != string(key) {
		a.change(key)
	}
	a.turn++
	a.process.used = a.turn
	return &a.process.Context
}

// shortKey returns key, or the start and a hash of a key longer than maxKey bytes. Different keys
// thus never share a Context.
func shortKey(key []byte) []byte {
	if len(key) <= maxKey {
		return key
	}
	hash := sha256.Sum256(key)
	return hex.AppendEncode(key[:maxKey-2*len(hash):maxKey-2*len(hash)], hash[:])
}

// AppendProcesses appends all Contexts in the form of [inner.AppendProcesses].
func (c *contexts) AppendProcesses(dst []byte) []byte {
	a := &c.all
	return checkpoint.Append(dst, savedFilter{Version: checkpoint.Version, Turn: a.turn, Process: a.process.saved(), Idle: a.savedIdle()})
}

// Restore sets c, which must be new, from the output of AppendProcesses. It fails like
// [Filter.Restore]; then c is unchanged.
func (c *contexts) Restore(context []byte) error {
	var s savedFilter
	if err := checkpoint.Decode(context, &s); err != nil {
		return err
	}
	restored, err := s.processes(max(c.all.limits.Processes, maxProcesses))
	if err != nil {
		return err
	}
	a := &c.all
	a.turn, a.process, a.began = s.Turn, restored[0], restored[0].weight()
	for _, p := range restored {
		a.all[p.key] = p
	}
	a.evict()
	return nil
}
