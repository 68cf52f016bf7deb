package dwarf

import "iter"

// A loneMap maps the keys of its elements to the elements. The first element takes no memory
// besides the loneMap: a program may have thousands of small modules, with one unit each.
type loneMap[K comparable, V interface {
	comparable
	key() K
}] struct {
	lone V // the zero value if there is none
	more map[K]V
}

type (
	unitMap   = loneMap[uint64, *unit]
	abbrevMap = loneMap[abbrevKey, *abbrevTable]
)

func (u *unit) key() uint64 { return u.off }

func (t *abbrevTable) key() abbrevKey { return abbrevKey{t.off, t.enc} }

// get returns the element with the key k, or the zero value.
func (m *loneMap[K, V]) get(k K) V {
	var none V
	if m.lone != none && m.lone.key() == k {
		return m.lone
	}
	return m.more[k]
}

// put adds v, whose key must be new.
func (m *loneMap[K, V]) put(v V) {
	var none V
	if m.lone == none {
		m.lone = v
		return
	}
	if m.more == nil {
		m.more = make(map[K]V)
	}
	m.more[v.key()] = v
}

func (m *loneMap[K, V]) drop(k K) {
	var none V
	if m.lone != none && m.lone.key() == k {
		m.lone = none
		return
	}
	delete(m.more, k)
}

func (m *loneMap[K, V]) len() int {
	var none V
	n := len(m.more)
	if m.lone != none {
		n++
	}
	return n
}

// all returns the elements in unspecified order.
func (m *loneMap[K, V]) all() iter.Seq[V] {
	return func(yield func(V) bool) {
		var none V
		if m.lone != none && !yield(m.lone) {
			return
		}
		for _, v := range m.more {
			if !yield(v) {
				return
			}
		}
	}
}
