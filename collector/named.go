package collector

import (
	"sync"
	"time"

	"github.com/symfilter/symfilter/buildid"
)

// maxNamed bounds the bytes of answers kept across batches of profiles. A line takes about 100
// bytes, and names are shared, so the bound is about 200,000 locations.
const maxNamed = 32 << 20

// An image is a file by its build ID or, if it has none, by its path and state.
type image struct {
	id   buildid.ID
	path string // a name of [report.NameOf]; empty with a build ID
}

// A spot is an address of a file.
type spot struct {
	image
	addr uint64
}

// A function has the texts of a function in a profile: its name, its linkage name and its file.
type function struct{ name, system, file string }

// A line is a call at a location.
type line struct {
	function     *function
	line, column int64
}

// An answer has the lines of a location, innermost first.
type answer struct {
	lines []line
	until time.Time // expiry; zero means never
}

// size returns the bytes of the answer for a spot, without its functions.
func (a *answer) size(at *spot) int { return 176 + len(at.path) + 24*len(a.lines) }

// A named keeps recently used answers across batches. It has two generations. If the young
// generation exceeds half of maxNamed, it becomes the old generation. An answer found in the old
// generation is copied to the young generation. Many goroutines may use it.
type named struct {
	mu         sync.Mutex
	young, old generation
}

// A generation holds answers. Answers with equal functions share one copy of the function.
type generation struct {
	answers   map[spot]answer
	functions map[function]*function
	size      int
}

func newGeneration() generation {
	return generation{answers: make(map[spot]answer), functions: make(map[function]*function)}
}

// get returns the kept answer for a location, unless the answer has expired.
func (n *named) get(at spot) (a answer, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok = n.young.answers[at]; ok {
		return a, !expired(a.until)
	}
	if a, ok = n.old.answers[at]; !ok || expired(a.until) {
		return a, false
	}
	for i := range a.lines { // the young generation needs the functions, too
		n.function(a.lines[i].function)
	}
	n.keep(at, a)
	return a, true
}

// put keeps an answer. If an equal function is kept, the answer refers to the kept function.
func (n *named) put(at spot, a answer) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range a.lines {
		a.lines[i].function = n.function(a.lines[i].function)
	}
	n.keep(at, a)
}

// keep adds an answer to the young generation. n.mu is held.
func (n *named) keep(at spot, a answer) {
	if n.young.answers == nil || n.young.size > maxNamed/2 {
		n.old, n.young = n.young, newGeneration()
	}
	if old, ok := n.young.answers[at]; ok {
		n.young.size -= old.size(&at)
	}
	n.young.answers[at] = a
	n.young.size += a.size(&at)
}

// function returns the kept function equal to f. n.mu is held.
func (n *named) function(f *function) *function {
	if kept := n.young.functions[*f]; kept != nil {
		return kept
	}
	kept := n.old.functions[*f]
	if kept == nil {
		kept = f
	}
	if n.young.functions == nil {
		n.young = newGeneration()
	}
	n.young.functions[*f] = kept
	n.young.size += 160 + len(f.name) + len(f.system) + len(f.file)
	return kept
}
