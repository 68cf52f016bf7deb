package symbolize

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/symfilter/symfilter/internal/demangle"
)

// names copies names out of mapped files and demangles them. It keeps recent names, within a bound
// in bytes. Many goroutines may use it.
type names struct {
	plain  bool // names are not demangled
	llvm   bool // Options.OldRustAsLLVM
	seed   maphash.Seed
	budget int64        // bytes per generation of a shard
	size   atomic.Int64 // bytes in all shards
	shards [16]nameShard
}

// A nameShard holds two generations of names: when the young generation exceeds its budget, it
// replaces the old generation, which is dropped. A name found in the old generation moves to the
// young one.
type nameShard struct {
	mu         sync.RWMutex
	young, old map[string]*name // the names do not change
	size       int64            // bytes of young
	oldSize    int64
}

type name struct {
	linkage string // as in the file
	shown   string // demangled, if it can be
	plain   bool   // shown is printable ASCII
}

func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

func (n *names) init(budget int64, plain, llvm bool) {
	n.plain, n.llvm = plain, llvm
	n.seed = maphash.MakeSeed()
	n.budget = budget / int64(2*len(n.shards))
}

// get returns the name for linkage, demangled. It keeps no reference to linkage, which may be in a
// mapped file.
func (n *names) get(linkage string) *name {
	if len(linkage) > maxName {
		linkage = linkage[:maxName]
	}
	s := &n.shards[maphash.String(n.seed, linkage)%uint64(len(n.shards))]
	v, isYoung := s.find(linkage)
	if isYoung {
		return v
	}
	if v == nil {
		v = &name{linkage: strings.Clone(linkage)}
		v.shown = v.linkage
		if !n.plain {
			v.shown = demangled(v.linkage, n.llvm)
		}
		v.plain = isPlain(v.shown)
	}
	n.size.Add(s.put(v, n.budget))
	return v
}

// knownNames caches the names of one file by reference: dwarf.Frame.Ref, or the address in memory
// of a symbol's name. A name in the cache is not read from the file again. The zero value is empty.
type knownNames struct {
	few   []knownName      // in no order, until there are more than fewNames
	byRef map[uint64]*name // nil: few has all
	size  int64            // bytes
}

type knownName struct {
	ref uint64
	*name
}

const (
	knownOverhead = 64 // bytes of memory of a known name, without its text
	// names kept in a slice: a map takes as much memory as that many names
	fewNames = 8
)

// find returns the name at ref. It calls read only for unknown names.
func (k *knownNames) find(n *names, ref uint64, read func(uint64) []byte) *name {
	for i := range k.few {
		if k.few[i].ref == ref {
			return k.few[i].name
		}
	}
	if v, ok := k.byRef[ref]; ok {
		return v
	}
	v := n.ofFile(read(ref))
	// The cost always includes the text. n may hold the same text, but may drop it before k does.
	cost := int64(knownOverhead + len(v.linkage) + len(v.shown))
	if k.size+cost > n.budget*int64(len(n.shards)) {
		*k = knownNames{}
	}
	k.size += cost
	if k.byRef == nil && len(k.few) < fewNames {
		k.few = append(k.few, knownName{ref, v})
		return v
	}
	if k.byRef == nil {
		k.byRef = make(map[uint64]*name)
		for _, f := range k.few {
			k.byRef[f.ref] = f.name
		}
		k.few = nil
	}
	k.byRef[ref] = v
	return v
}

// find looks up linkage. It panics if linkage is in a mapped file that was truncated; the deferred
// unlock then keeps the shard usable.
func (s *nameShard) find(linkage string) (v *name, isYoung bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if v := s.young[linkage]; v != nil {
		return v, true
	}
	return s.old[linkage], false
}

// put adds v to the young generation and returns the growth of the shard in bytes.
func (s *nameShard) put(v *name, budget int64) int64 {
	cost := int64(nameOverhead + len(v.linkage))
	if v.shown != v.linkage {
		cost += int64(len(v.shown))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.young[v.linkage]; ok {
		return 0
	}
	before := s.size + s.oldSize
	if s.young == nil || s.size+cost > budget {
		s.old, s.oldSize = s.young, s.size
		s.young, s.size = make(map[string]*name), 0
	}
	s.young[v.linkage] = v
	s.size += cost
	return s.size + s.oldSize - before
}

// demangled returns s as LLVM's symbolizer shows it. It returns s unchanged if s exceeds the
// limits, is not a mangled name, or makes the demangler fail, panic or exceed its steps. Names of
// Rust's old mangling are shown as LLVM does only if oldRustAsLLVM is set.
//
// LLVM accepts one to four underscores before the Z of a C++ name, and a dot before them for the
// entry points of PowerPC. It takes Rust's old mangling for C++ and does not know the clones for
// transactional memory. It puts a C++ name's suffix, which begins at the first dot, in one pair of
// parentheses. LLVM 19 makes mistakes in template parameters around generic lambdas and in the
// types of template parameters; demangled does not copy them.
func demangled(s string, oldRustAsLLVM bool) string {
	if !looksMangled(strings.TrimPrefix(s, ".")) {
		return s
	}
	if name, suffix, ok := oldRust(s); ok && !oldRustAsLLVM {
		shown := demangle.Bounded(name, func(name string) (string, bool) {
			shown, err := demangle.ToString(name, demangle.LLVMStyle, demangle.MaxLength(demangle.MaxShown))
			return shown, err == nil
		})
		if suffix != "" {
			shown += " (" + suffix + ")"
		}
		return shown
	}
	return demangle.Bounded(s, spellLLVM)
}

// oldRust splits a name of Rust's old mangling, which ends in a hash, from its suffix. ok is false
// for other names.
func oldRust(s string) (name, suffix string, ok bool) {
	const hash = 16 // hex digits
	i := strings.LastIndex(s, "17h")
	end := i + len("17h") + hash
	if i < 0 || end >= len(s) || s[end] != 'E' || !strings.HasPrefix(s, "_ZN") {
		return "", "", false
	}
	name, suffix = s[:end+1], s[end+1:]
	return name, suffix, suffix == "" || suffix[0] == '.'
}

// spellLLVM returns s as LLVM's symbolizer shows it. ok is false if s is not a mangled name or
// takes too many steps.
func spellLLVM(s string) (shown string, ok bool) {
	mangled, dot := strings.CutPrefix(s, ".")
	if strings.HasPrefix(mangled, "_R") {
		out, err := demangle.ToString(mangled, demangle.LLVMStyle, demangle.MaxLength(demangle.MaxShown))
		if err != nil {
			return "", false
		}
		shown = out
	} else {
		if strings.HasPrefix(mangled, "__Z") || strings.HasPrefix(mangled, "____Z") {
			mangled = mangled[1:]
		}
		var suffix string
		if shown, suffix, ok = quick(mangled); !ok {
			var tree demangle.AST
			if tree, suffix = parse(mangled); tree == nil {
				return "", false
			}
			shown = demangle.ASTToString(tree, demangle.LLVMStyle, demangle.MaxLength(demangle.MaxShown))
			if shown == "" { // too many steps
				return "", false
			}
		}
		if strings.Contains(shown, "*(") || strings.Contains(shown, "operator<") {
			shown = spaced(shown)
		}
		if suffix != "" {
			shown += " (" + suffix + ")"
		}
	}
	if dot {
		shown = "." + shown
	}
	return shown, true
}

var quicks = sync.Pool{New: func() any { return new(demangle.Quick) }}

// quick is [demangle.Quick.Show]. A Quick that panicked is not used again.
func quick(mangled string) (shown, suffix string, ok bool) {
	q := quicks.Get().(*demangle.Quick)
	shown, suffix, ok = q.Show(mangled)
	quicks.Put(q)
	return shown, suffix, ok
}

// slowName returns the demangled form of s for an index to store. It returns "" if s does not look
// mangled, or is demangled fast.
func slowName(s string) string {
	if !looksMangled(strings.TrimPrefix(s, ".")) {
		return ""
	}
	if _, _, rust := oldRust(s); !rust {
		q := quicks.Get().(*demangle.Quick)
		can := q.Can(s)
		quicks.Put(q)
		if can {
			return ""
		}
	}
	return demangled(s, false)
}

// spaced inserts blanks into a name where LLVM prints them.
func spaced(name string) string {
	name = spacing.Replace(name)
	// Undo the replacement of "::*(" after a conversion operator to a pointer to member. In such a
	// name, the parenthesis begins the parameters of the operator.
	_, target, ok := strings.Cut(name, "::operator ")
	if i := strings.LastIndex(target, "::* ("); ok && i >= 0 && strings.Count(target[:i], "<") == strings.Count(target[:i], ">") {
		at := len(name) - len(target) + i + len("::*")
		name = name[:at] + name[at+1:]
	}
	return name
}

var spacing = strings.NewReplacer("operator<< <", "operator<<<", "operator< <", "operator<<", "::*(", "::* (", "(*(", "(* (")

// parse returns the syntax tree of a C++ name, and its suffix, the text from the first dot outside
// an identifier. The tree is nil if mangled is not a mangled name.
func parse(mangled string) (tree demangle.AST, suffix string) {
	tree, err := demangle.ToAST(mangled, demangle.LLVMStyle)
	switch err {
	case demangle.ErrTooManySteps:
		return nil, ""
	case nil:
		n := 0 // total bytes of the suffixes
		for {
			clone, ok := tree.(*demangle.Clone)
			if !ok {
				return tree, mangled[len(mangled)-n:]
			}
			tree = clone.Base
			n += len(clone.Suffix)
		}
	}
	// The demangler rejects a suffix after a name without parameters, so the suffix is cut off
	// before parsing. It begins at the first dot or, since Rust's identifiers may contain dots,
	// after the last 'E'.
	first, last := strings.IndexByte(mangled, '.'), strings.LastIndex(mangled, "E.")+1
	if last == first {
		last = 0
	}
	for _, i := range []int{first, last} {
		if i <= 0 {
			continue
		}
		if tree, err := demangle.ToAST(mangled[:i], demangle.LLVMStyle, demangle.NoClones); err == nil {
			return tree, mangled[i:]
		}
	}
	return nil, ""
}

func looksMangled(s string) bool {
	if strings.HasPrefix(s, "_R") {
		return true
	}
	underscores := len(s) - len(strings.TrimLeft(s, "_"))
	return underscores >= 1 && underscores <= 4 && strings.HasPrefix(s[underscores:], "Z") &&
		!strings.HasPrefix(s[underscores:], "ZGT")
}
