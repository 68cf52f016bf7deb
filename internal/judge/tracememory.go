package judge

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/symfilter/symfilter/internal/object"
)

// A Memory keeps facts about the files of a log's modules beyond the end of each trace. A repeated
// trace is not searched again, even if its modules were loaded elsewhere. All traces of a log share
// its Memory. Its keys include [Image.identity], so a replaced file has no facts. The number of
// entries is bounded. The zero value is for a new log.
type Memory struct {
	searches recent[sum, searched]        // for load biases, by file and sightings
	inferred recent[sum, inferred]        // inferences, by file and return addresses
	bases    recent[sum, uint64]          // load biases that were inferred, by file and process
	shown    recent[sum, []object.Symbol] // by file and shown name; the symbols lack their names
	texts    recent[sum, textFound]       // by file and text
	jumps    recent[sum, jumps]           // by file and function
	runs     recent[run, usage]
	traces   int // traces so far
}

func (t *Trace) remembered() *Memory {
	if t.Memory == nil {
		t.Memory = new(Memory)
	}
	return t.Memory
}

// Numbers of entries of each kind that a Memory is sure to keep. It keeps at most twice as many:
// see recent.
const (
	maxSearched = 1 << 10
	maxShown    = 1 << 8
	maxTexts    = 1 << 6
	maxJumping  = 1 << 8
)

// A recent is a map that drops old entries. Its methods have the bound most as a parameter. The map
// keeps at least that many of the entries last added or found, and at most twice as many.
type recent[K comparable, V any] struct{ young, old map[K]V }

func (r *recent[K, V]) get(k K, most int) (v V, ok bool) {
	if v, ok = r.young[k]; ok {
		return v, true
	}
	if v, ok = r.old[k]; ok {
		r.put(k, v, most)
	}
	return v, ok
}

func (r *recent[K, V]) put(k K, v V, most int) {
	if len(r.young) >= most {
		r.young, r.old = nil, r.young
	}
	if r.young == nil {
		r.young = make(map[K]V)
	}
	r.young[k] = v
}

// A sum is a key of a Memory: the hash of a question about a file.
type sum [sha256.Size]byte

// A question is the text of a key before it is hashed: the identity of a file, and the values that
// were searched for in it.
type question []byte

// about begins a question about the file m.
func about(m *Image) question {
	return question{}.text(m.identity())
}

// text appends s with its length, so different texts never make the same question.
func (q question) text(s string) question {
	return append(q.number(uint64(len(s))), s...)
}

func (q question) number(n uint64) question { return binary.LittleEndian.AppendUint64(q, n) }

func (q question) sum() sum { return sha256.Sum256(q) }

// identity returns a text that is different for different files.
func (m *Image) identity() string {
	if !m.ID.IsZero() {
		return m.Path + "\x00" + m.ID.String()
	}
	return m.Path + "\x00" + m.State
}
