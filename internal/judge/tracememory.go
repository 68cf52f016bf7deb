package judge

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/symfilter/symfilter/internal/object"
)

// A Memory keeps what the traces of a log have shown about the files of its modules, beyond the end of
// each trace: a trace that was judged once is not searched again, wherever its modules were loaded. All
// traces of a log share its Memory. It keeps facts about files, by their [Image.identity], so that a file
// that was replaced has none. It takes at most 1 MiB. The zero value is that of a new log.
type Memory struct {
	searches recent[sum, searched]        // for load biases, by file and sightings
	inferred recent[sum, inferred]        // by file and return addresses
	bases    recent[sum, uint64]          // load biases that were inferred, by file and process
	shown    recent[sum, []object.Symbol] // by file and shown name; the names of the symbols are not kept
	texts    recent[sum, textFound]       // by file and text
	jumps    recent[sum, jumps]           // by file and function
	runs     recent[run, usage]
	traces   int // traces so far
}

// remembered returns the Memory of t.
func (t *Trace) remembered() *Memory {
	if t.Memory == nil {
		t.Memory = new(Memory)
	}
	return t.Memory
}

// Bounds of a Memory: entries of each kind, of which twice as many may be kept.
const (
	maxSearched = 1 << 10
	maxShown    = 1 << 8
	maxTexts    = 1 << 6
	maxJumping  = 1 << 8
)

// A recent is a map of at least the last most entries that were put or found, and at most twice as many.
type recent[K comparable, V any] struct{ young, old map[K]V }

// get returns the value of k.
func (r *recent[K, V]) get(k K, most int) (v V, ok bool) {
	if v, ok = r.young[k]; ok {
		return v, true
	}
	if v, ok = r.old[k]; ok {
		r.put(k, v, most)
	}
	return v, ok
}

// put sets the value of k.
func (r *recent[K, V]) put(k K, v V, most int) {
	if len(r.young) >= most {
		r.young, r.old = nil, r.young
	}
	if r.young == nil {
		r.young = make(map[K]V)
	}
	r.young[k] = v
}

// A sum is a hash of a file's identity and of a question about the file.
type sum [sha256.Size]byte

// A question is the text of which a sum is made.
type question []byte

// about begins a question about the file m.
func about(m *Image) question {
	return question{}.text(m.identity())
}

// text appends s, with its length, so that no other texts make the same question.
func (q question) text(s string) question {
	return append(q.number(uint64(len(s))), s...)
}

// number appends n.
func (q question) number(n uint64) question { return binary.LittleEndian.AppendUint64(q, n) }

// sum returns the hash of the question.
func (q question) sum() sum { return sha256.Sum256(q) }

// identity returns a text that differs for files that differ.
func (m *Image) identity() string {
	if !m.ID.IsZero() {
		return m.Path + "\x00" + m.ID.String()
	}
	return m.Path + "\x00" + m.State
}
