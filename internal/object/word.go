package object

import (
	"hash/maphash"
	"iter"
	"math"
	"sort"
	"unsafe"
)

// limits of the table of words
const (
	// searches for a word that read all names, before a table is made: making it takes as long as 3
	// searches
	linearWords = 1
	maxWords    = 4 << 20 // words of a symbol table; a large C++ program has about 8 in each name
	maxDigits   = 4       // digits of the length of a word
)

// A wordTable finds the symbols whose mangled names have a word. A word is an identifier, which
// follows its length, or the whole name.
type wordTable struct {
	searches int
	built    bool
	large    bool // there are too many words, or names overlap: no table is made
	seed     maphash.Seed
	hashes   []uint32 // hashes of the words of all names
	// for each symbol, the number of hashes up to and including the symbol's
	ends []uint32
}

func (w *wordTable) footprint() int64 {
	return int64(cap(w.hashes)+cap(w.ends)) * int64(unsafe.Sizeof(uint32(0)))
}

// SymbolsWithWord returns the symbols of .symtab and .dynsym whose mangled names have word as an
// identifier, and possibly further symbols. steps is the cost of the search, in steps of about 50
// ns. The first search reads all names. The second makes a table of 4 bytes for each word, for
// later searches.
func (ts *symbolTables) SymbolsWithWord(word string) (all iter.Seq[Symbol], steps int) {
	if ts.closed {
		return func(func(Symbol) bool) {}, 0
	}
	tables := []*symbols{ts.primary(), ts.secondary()}
	for _, t := range tables {
		steps += t.findWord()
	}
	return func(yield func(Symbol) bool) {
		for _, t := range tables {
			if !t.withWord(word, yield) {
				return
			}
		}
	}, steps
}

// findWord counts a search, and returns its cost in steps. After linearWords searches, it makes the
// table of words, and adds the cost of making it.
func (t *symbols) findWord() int {
	if len(t.raw) == 0 {
		return 0
	}
	count, w := int(t.count()), &t.rarely().words
	if w.built {
		return len(w.hashes) / 64
	}
	if w.searches++; w.searches <= linearWords || w.large {
		return count
	}
	t.hashWords()
	return 4 * count
}

func (t *symbols) hashWords() {
	count := t.count()
	w := &t.rarely().words
	w.built, w.seed, w.ends = true, maphash.MakeSeed(), make([]uint32, count)
	budget := 2*len(t.strings) + maxNamesHashed // names may share suffixes
	for i := uint64(1); i < count; i++ {
		name := t.name(t.d.u32(t.raw[i*t.entry:]))
		if budget -= len(name) + 1; budget < 0 || len(w.hashes) > maxWords {
			*w = wordTable{searches: w.searches, large: true}
			return
		}
		if len(name) > 0 && name[0] == '_' && len(name) <= math.MaxUint16 {
			eachWord(name, func(word []byte) { w.hashes = append(w.hashes, uint32(maphash.Bytes(w.seed, word))) })
		}
		w.ends[i] = uint32(len(w.hashes))
	}
}

// withWord calls yield for each symbol whose name may have word. If yield returns false, withWord
// stops and returns false.
func (t *symbols) withWord(word string, yield func(Symbol) bool) bool {
	w := &t.rarely().words
	if !w.built {
		return t.each(yield)
	}
	last, hash := 0, uint32(maphash.String(w.seed, word))
	for at, h := range w.hashes {
		if h != hash {
			continue
		}
		if i := sort.Search(len(w.ends), func(i int) bool { return w.ends[i] > uint32(at) }); i != last {
			if last = i; !t.give(uint64(i), yield) {
				return false
			}
		}
	}
	return true
}

// eachWord calls yield for each word of a mangled name: the whole name without a version, and the n
// bytes after each number n. Digits before a number may be the end of another word, so each number
// that ends a run of digits is tried. In Rust an underscore may separate the number from the word.
func eachWord(name []byte, yield func(word []byte)) {
	whole := len(name)
	for i := 0; i < len(name); i++ {
		if name[i] == '@' {
			whole = min(whole, i)
		}
		if !isDigit(name[i]) || i+1 < len(name) && isDigit(name[i+1]) {
			continue
		}
		after := name[i+1:] // the number ends at i
		for from, size, unit := i, 0, 1; from >= 0 && i-from < maxDigits && isDigit(name[from]); from, unit = from-1, 10*unit {
			if size += int(name[from]-'0') * unit; name[from] == '0' || size > len(after) {
				continue
			}
			yield(after[:size])
			if after[0] == '_' && size < len(after) {
				yield(after[1 : 1+size])
			}
		}
	}
	yield(name[:whole])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
