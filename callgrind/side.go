package callgrind

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/demangle"
	"github.com/symfilter/symfilter/internal/report"
)

// A functionKey identifies a function across builds of a program. All levels of recursion, callers
// (--separate-callers) and compiler clones of a function share its key.
type functionKey struct {
	object string // base name without version; empty for the program itself, or if unknown
	name   string // demangled
	file   string // base name; set if several files have a function with this object and name
}

// A side is a profile in which all functions with the same key are one function. It is one side of
// a comparison, or a single profile with limits.
type side struct {
	o    *Options
	g    *graph
	keys []functionKey // by node of g
	// by node: suffixes of clones, such as .isra.0; nil without clones
	clones map[uint32][]string
	links  map[string]string // by linkage name without suffix: the name in a key
	index  map[functionKey]uint32

	program string // base name of the program's object
}

// joinedCost is the heap charged for a joined function, in bytes: its key, its entries in
// indexes, and its costs.
const joinedCost = 320

// ErrMemory reports that there is not enough memory to join functions by their keys.
var ErrMemory = errors.New("not enough memory for the functions of the profiles: raise --max-memory")

// joinSides joins the functions of profiles by key. If functions of one side differ only by file,
// the keys of these functions include the file on all sides.
func joinSides(profiles ...*resolution) ([]*side, error) {
	sides := make([]*side, len(profiles))
	named := make([][]naming, len(profiles))
	collide := make(map[functionKey]bool)
	for i, v := range profiles {
		if !v.m.r.share.Take(int64(len(v.all))*joinedCost, 0) {
			return nil, ErrMemory
		}
		s := &side{o: v.s.o, links: make(map[string]string), index: make(map[functionKey]uint32), clones: make(map[uint32][]string)}
		command, _, _ := strings.Cut(v.m.head.command, " ")
		s.program = path.Base(command)
		sides[i], named[i] = s, make([]naming, len(v.all))
		files := make(map[functionKey]string)
		for n := range v.all {
			at := s.naming(v, &v.all[n])
			named[i][n] = at
			if have := files[at.key]; at.file != "" && have != "" && have != at.file {
				collide[at.key] = true
			} else if have == "" {
				files[at.key] = at.file
			}
		}
	}
	joinNameless(named)
	for i, s := range sides {
		s.join(profiles[i], named[i], collide)
	}
	return sides, nil
}

// A naming describes a node across builds: its key, and the parts of its name and location that the
// key leaves out.
type naming struct {
	key   functionKey // without file
	file  string      // base name; empty if unknown
	clone string      // suffix added by the compiler
	plain bool        // the name has neither clone nor level
	hex   bool        // the name is an address
}

// nameless is the name in the key of all functions with only addresses, since addresses differ
// between builds.
const nameless = "(functions without names)"

// joinNameless gives the functions of an object that have only addresses one key. If at least half
// of one side's addresses are also on the other side, both sides ran the same build: then each
// function keeps a separate key.
func joinNameless(sides [][]naming) {
	if len(sides) != 2 {
		return
	}
	var known [2]map[functionKey]bool
	var count [2]map[string]int // by object
	both := make(map[string]int)
	for i, all := range sides {
		known[i], count[i] = make(map[functionKey]bool), make(map[string]int)
		for n := range all {
			if key := all[n].key; all[n].hex && !known[i][key] {
				known[i][key] = true
				count[i][key.object]++
				if i == 1 && known[0][key] {
					both[key.object]++
				}
			}
		}
	}
	for _, all := range sides {
		for n := range all {
			if key := &all[n].key; all[n].hex && 2*both[key.object] < min(count[0][key.object], count[1][key.object]) {
				key.name = nameless
			}
		}
	}
}

func (s *side) naming(v *resolution, n *node) (at naming) {
	text := v.m.r.Text
	link, fn := text(n.link), text(n.fn)
	if bare, _ := cutSuffix(fn); link == "" && report.IsMangled(bare) {
		link = bare
	}
	name := withoutLevel(fn)
	switch {
	case name == report.BelowMain:
	case link != "":
		link, _ = report.Unversioned(link)
		stable := report.WithoutCloneSuffix(link)
		at.clone, name = link[len(stable):], stable
		if report.IsMangled(stable) && !s.keepsMangled(stable) {
			name = report.Closed(demangle.GNU(stable))
		}
		if _, ok := s.links[stable]; !ok && stable != name {
			s.links[stable] = name
		}
	default:
		if i := strings.Index(name, " [clone "); i > 0 {
			name, at.clone = name[:i], strings.ReplaceAll(strings.TrimRight(name[i+len(" [clone "):], "]"), "] [clone ", "")
		} else if !strings.ContainsAny(name, " (<") {
			name, _ = report.Unversioned(name)
			stable := report.WithoutCloneSuffix(name)
			name, at.clone = stable, name[len(stable):]
		}
		name = report.Closed(name)
	}
	_, _, at.hex = entry(name)
	at.plain = at.clone == "" && len(withoutLevel(fn)) == len(fn)
	at.key = functionKey{object: s.objectOf(text(n.object)), name: rewrite(s.o.FunctionNames, withoutHash(name))}
	if !v.isUnknown(n.file) {
		at.file = baseOf(rewrite(s.o.FileNames, v.s.file(n.file)))
	}
	return at
}

// keepsMangled reports whether mangled names are shown. The Symbolizer then leaves link
// unchanged.
func (s *side) keepsMangled(link string) bool {
	sym := s.o.Symbolizer
	return sym != nil && sym.Demangle(link) == link
}

// withoutHash removes the hash at the end of a demangled Rust name, since it depends on the
// compiler.
func withoutHash(name string) string {
	if n := len(name) - len("::h0123456789abcdef"); n > 0 && name[n:n+3] == "::h" && strings.Trim(name[n+3:], "0123456789abcdef") == "" {
		return name[:n]
	}
	return name
}

// withoutLevel removes Callgrind's suffixes from a name: the level of recursion ('2) and the
// callers ('main'(below main)).
func withoutLevel(fn string) string {
	for {
		i := strings.LastIndexByte(fn, '\'')
		if i <= 0 || i+1 == len(fn) || strings.Trim(fn[i+1:], "0123456789") != "" {
			break
		}
		fn = fn[:i]
	}
	depth := 0
	for i := 0; i < len(fn); i++ {
		switch fn[i] {
		case '(', '<', '{', '[':
			depth++
		case ')', '>', '}', ']':
			depth = max(0, depth-1)
		case '\'': // within brackets, the quote begins a lifetime of Rust
			if depth == 0 && i > 0 {
				return fn[:i]
			}
		}
	}
	return fn
}

// objectOf returns an object's name across builds, without a version. It returns "" for the
// program, or an unknown object.
func (s *side) objectOf(name string) string {
	name = baseOf(name)
	if name == unknown || name == s.program {
		return ""
	}
	return withoutVersion(name)
}

// withoutVersion removes the version from a library's base name: libc.so.6 and libc-2.31.so
// become libc.so.
func withoutVersion(name string) string {
	if i := strings.Index(name, ".so."); i > 0 && strings.Trim(name[i+len(".so."):], "0123456789.") == "" {
		name = name[:i+len(".so")]
	}
	if stem, ok := strings.CutSuffix(name, ".so"); ok {
		if i := strings.LastIndexByte(stem, '-'); i > 0 && strings.Contains(stem[i:], ".") && strings.Trim(stem[i+1:], "0123456789.") == "" {
			name = stem[:i] + ".so"
		}
	}
	return name
}

// baseOf returns the part of a path after the last slash or backslash.
func baseOf(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }

// join makes the graph, with one function for each key.
func (s *side) join(v *resolution, named []naming, collide map[functionKey]bool) {
	j := *v
	j.all, j.index = make([]node, 0, len(v.all)), nil
	of := make([]uint32, len(v.all))
	var plain []bool
	for n := range v.all {
		at := &named[n]
		key := at.key
		if collide[key] {
			key.file = at.file
		}
		i, ok := s.index[key]
		switch {
		case !ok:
			i = uint32(len(j.all))
			s.index[key] = i
			j.all = append(j.all, v.all[n])
			s.keys, plain = append(s.keys, key), append(plain, at.plain)
		case at.plain && !plain[i]: // a plain name has the function's line
			j.all[i], plain[i] = v.all[n], true
		}
		of[n] = i
		if have := s.clones[i]; at.clone != "" && len(have) < maxClones && !slices.Contains(have, at.clone) {
			s.clones[i] = append(have, at.clone)
		}
	}
	through := func(nodes []uint32) []uint32 {
		all := make([]uint32, len(nodes))
		for i, n := range nodes {
			all[i] = of[n]
		}
		return all
	}
	j.ofFunction, j.ofPlace = through(v.ofFunction), through(v.ofPlace)
	j.implied = slices.Clone(v.implied)
	for i := range j.implied {
		c := &j.implied[i]
		c.from, c.to = of[c.from], of[c.to]
	}
	s.g = newGraph(&j, v.m.sums.total)
}

// maxClones bounds the suffixes kept for a function.
const maxClones = 8
