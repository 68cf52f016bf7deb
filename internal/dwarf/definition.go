package dwarf

import (
	"bytes"
	"cmp"
	"slices"
	"sort"
)

// Clang usually describes a class only in the unit that has its constructor or virtual table. Other
// units declare the class by name, in the same namespaces.

// A definition locates the entry that defines a type. Other units may only declare this type.
type definition struct {
	scope uint64 // hash of the type's name and of the names of its scopes
	unit  uint64
	entry uint32
}

// complete returns the definition of the type that t declares, or the zero typeAt if none is found.
func (w *typeWalk) complete(t typeAt, e *typeEntry) typeAt {
	d, v := t.u.d, t.u.d.variables()
	if !v.defined {
		v.defined = true
		v.definitions = v.findDefinitions()
	}
	name := w.text(t, e.name)
	if len(v.definitions) == 0 || len(name) == 0 {
		return typeAt{}
	}
	var scope uint64
	found := false
	n := t.u.walkScopes(min(16*w.left, maxDIEs), func(entry uint32, hash uint64, _ bool) bool {
		if entry == t.entry {
			scope, found = hash, true
		}
		return entry < t.entry
	})
	if !w.spend(n/16) || !found {
		return typeAt{}
	}
	i := sort.Search(len(v.definitions), func(i int) bool { return v.definitions[i].scope >= scope })
	if i == len(v.definitions) || v.definitions[i].scope != scope {
		return typeAt{}
	}
	u := d.unitAt(v.definitions[i].unit)
	if u == nil {
		return typeAt{}
	}
	u.used = d.tick
	def := typeAt{u, v.definitions[i].entry}
	var de typeEntry
	// different names may have equal hashes
	if !w.read(def, &de) || !bytes.Equal(w.text(def, de.name), name) {
		return typeAt{}
	}
	return def
}

// findDefinitions returns the first definition of each type in all units, sorted by scope, at most
// maxDefinitions. It returns nil if .debug_info is larger than maxDefinitionScan, or is in a
// package.
func (v *variables) findDefinitions() []definition {
	d := v.d
	if d.packaged || len(d.sec.get(secInfo)) > maxDefinitionScan {
		return nil
	}
	left := d.work
	d.work = maxWork
	defer func() { d.work = min(left, d.work) }()
	var all []definition
	var u unit
	for _, off := range d.unitOffsets() {
		if _, ok := u.parseHeader(d, d.sec.get(secInfo), off); !ok {
			continue
		}
		d.space().abbrevs.parse(cursorAt(d.sec.get(secAbbrev), u.abbrevOff, d.big), u.enc, 0)
		u.abbrevs = &d.space().abbrevs
		if !d.spend(d.space().abbrevs.tried) || !u.parseRoot(&d.space().abbrevs) {
			continue
		}
		n := u.walkScopes(min(d.work, maxDIEs), func(entry uint32, hash uint64, declaration bool) bool {
			if !declaration {
				all = append(all, definition{hash, off, entry})
			}
			return len(all) < maxDefinitions
		})
		if !d.spend(n) || len(all) == maxDefinitions {
			break
		}
	}
	slices.SortFunc(all, func(a, b definition) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.unit, b.unit), cmp.Compare(a.entry, b.entry))
	})
	return slices.Clip(slices.CompactFunc(all, func(a, b definition) bool { return a.scope == b.scope }))
}

// walkScopes calls visit for the named classes, structs and unions of a unit outside of functions,
// until visit returns false. It returns the number of entries that it has read, at most limit.
func (u *unit) walkScopes(limit int, visit func(entry uint32, scope uint64, declaration bool) bool) int {
	const none = 0 // scope of types that other units cannot name
	const global = 14695981039346656037
	types := typeWalk{left: limit}
	w := u.walkFrom(u.root, isScope, leapTypes, limit)
	open := make(openEntries, 0, 16)
	for w.next() && w.depth < maxDepth {
		at := typeAt{u, uint32(w.entry)}
		var e typeEntry
		if !types.read(at, &e) {
			break
		}
		w.pos = e.next
		var scope uint64
		open, scope = open.around(&w, global)
		inner := uint64(none)
		isNamespace := e.tag == tagNamespace
		switch name := types.text(at, e.name); {
		case e.tag == tagSubprogram:
		case len(name) > 0 && scope != none:
			inner = hashName(scope, name)
			if !isNamespace && e.tag != tagModule && !visit(at.entry, inner, e.declaration) {
				return limit - w.left
			}
		case isNamespace: // anonymous: its types belong to this unit
			inner = hashName(scope^u.off, nil)
		}
		if e.children {
			open = append(open, openEntry{w.depth, inner})
		}
	}
	return limit - w.left
}

// hashName adds a name to a hash (FNV-1a).
func hashName(h uint64, name []byte) uint64 {
	for _, c := range name {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return max((h^':')*1099511628211, 1)
}
