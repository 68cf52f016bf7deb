package filter

import (
	"slices"

	"github.com/symfilter/symfilter/internal/judge"
)

// Stats counts the work of a Filter, or of Lines, so far.
type Stats struct {
	Lines      int64 // lines of the log
	Elements   int64 // well-formed elements and raw frames
	Resolved   int64 // addresses with a name
	Unresolved int64 // addresses without a name, including addresses outside of all modules
	Pending    int64 // part of Unresolved: the debug file was still being searched
	// code addresses answered from symbols alone, without lines: when the wait ended, a better file
	// was still being searched, or debug information was being inflated
	Early   int64
	Evicted int64  // processes dropped because of Options.Limits
	Proofs  Proofs // proofs of the answers for raw backtraces
	NoCode  NoCode // addresses in raw backtraces without code
	Keyed   int64  // lines that were searched for elements and have a key by Options.ProcessKey
	// current number of processes in the stream; 0 for Lines, whose caller holds each Context
	Processes int64

	Outcomes Outcomes // addresses by origin and result
}

// A Base is a load address that the log does not give. The return addresses of a raw backtrace, or
// the maps of a living process, prove at which address the file was loaded.
type Base struct {
	Path  string
	Addr  uint64 // address of the first page of the file in the process
	Proof string // evidence, in words
}

// maxBases bounds the bases that are kept: a log may have crashes of a thousand processes.
const maxBases = 16

// Bases returns at most the first 16 bases so far. Only the goroutine that uses the Filter may call
// it.
func (f *Filter) Bases() []Base { return slices.Clone(f.bases) }

// Bases returns at most the first 16 bases in all records. Only the goroutine that uses the Lines
// may call it.
func (l *Lines) Bases() []Base { return slices.Clone(l.f.bases) }

// addBases appends to all each base that is not in all yet, up to maxBases in total.
func addBases(all, bases []Base) []Base {
	for _, b := range bases {
		if len(all) < maxBases && !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	return all
}

// Proofs counts resolved frames of raw backtraces by the proof of their answers: see [Resolved].
type Proofs struct {
	BuildID int64
	Symbol  int64
	Call    int64
	Path    int64
	Process int64 // the maps of a process: see Dialects.Mapped
	Other   int64 // other proofs, such as the bytes of the code
}

func (r *Proofs) count(verified string) {
	switch verified {
	case judge.ByBuildID:
		r.BuildID++
	case judge.BySymbol:
		r.Symbol++
	case judge.ByCall:
		r.Call++
	case judge.ByPath:
		r.Path++
	case judge.ByProcess:
		r.Process++
	default:
		r.Other++
	}
}

// Add adds the counts of o.
func (r *Proofs) Add(o Proofs) {
	r.BuildID += o.BuildID
	r.Symbol += o.Symbol
	r.Call += o.Call
	r.Path += o.Path
	r.Process += o.Process
	r.Other += o.Other
}

func (r *Proofs) sub(o Proofs) {
	r.BuildID -= o.BuildID
	r.Symbol -= o.Symbol
	r.Call -= o.Call
	r.Path -= o.Path
	r.Process -= o.Process
	r.Other -= o.Other
}

// Stats returns the counts so far. Only the goroutine that uses the Filter may call it.
func (f *Filter) Stats() Stats {
	return Stats{
		Lines: f.line, Elements: int64(f.elements), Resolved: int64(f.answered), Unresolved: f.failed,
		Pending: int64(f.pending), Early: f.early, Evicted: f.evictions, Keyed: f.keyedLines, Proofs: f.proofs, NoCode: f.noCode,
		Processes: int64(max(1, len(f.all))), Outcomes: f.outcomes,
	}
}

// Stats returns the counts of all records so far. Only the goroutine that uses the Lines may call
// it.
func (l *Lines) Stats() Stats { return l.stats }

// CacheStats describe a Cache.
type CacheStats struct {
	Bytes  int64 // approximate bytes of all answers and modules
	Budget int64 // maximum bytes
	Hits   int64 // lookups that found an answer; a Filter keeps its recent answers itself
	Misses int64 // lookups without an answer
}

// Stats returns the state of c. Many goroutines may call it.
func (c *Cache) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{c.size + c.oldSize, c.budget, c.hits, c.misses}
}

// NoCode counts addresses at which a file has no code, although the trace's other frames prove the
// file. Such addresses come from wild function pointers, or are in a device's ROM. They do not
// count as unresolved.
type NoCode struct {
	Frames int64
	Addr   uint64 // first such address
}

// Add adds the counts of o, which are from a later part of the log: w keeps its own Addr if it has
// one.
func (w *NoCode) Add(o NoCode) {
	if w.Frames == 0 {
		w.Addr = o.Addr
	}
	w.Frames += o.Frames
}
