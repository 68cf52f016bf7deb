package callgrind

// A Name is a name of an object, a file or a function, for the Reader that gave
// it: equal names are equal numbers. 0 is no name.
type Name uint32

// names are the names of a profile, each kept once.
type names struct {
	text  []string
	index map[string]Name
	share *allotment
	full  bool // a name was not kept
}

func newNames(s *allotment) *names {
	return &names{share: s, text: []string{""}, index: make(map[string]Name)}
}

// of returns the Name of text. When there are too many, it is that of "???".
func (n *names) of(text []byte) Name {
	if len(text) == 0 {
		return 0
	}
	if i, ok := n.index[string(text)]; ok {
		return i
	}
	if len(n.text) >= maxNames || !n.share.takeName(len(text)) {
		n.full = true
		text = []byte(unknown)
		if i, ok := n.index[unknown]; ok {
			return i
		}
	}
	s := string(text)
	i := Name(len(n.text))
	n.text = append(n.text, s)
	n.index[s] = i
	return i
}

// unknown is what Callgrind calls what it does not know.
const unknown = "???"

// A table says which names numbers stand for. They go up from 1 as a rule.
type table struct {
	low  []Name
	high map[uint64]Name
}

// denseIDs is up to which number a table is a slice.
const denseIDs = 1 << 16

func (t *table) get(id uint64) Name {
	if id < uint64(len(t.low)) {
		return t.low[id]
	}
	return t.high[id]
}

// set reports whether there was room.
func (t *table) set(id uint64, name Name) bool {
	switch {
	case id < uint64(len(t.low)):
		t.low[id] = name
	case id < denseIDs || id < 2*uint64(len(t.low)) && id < maxIDs: // numbers that go up
		low := make([]Name, min(max(2*id, 256), maxIDs))
		copy(low, t.low)
		for n, name := range t.high {
			if n < uint64(len(low)) {
				low[n] = name
				delete(t.high, n)
			}
		}
		t.low = low
		t.low[id] = name
	default:
		if t.high == nil {
			t.high = make(map[uint64]Name)
		}
		if _, ok := t.high[id]; !ok && len(t.high) >= maxSparse {
			return false
		}
		t.high[id] = name
	}
	return true
}

func (t *table) reset() { *t = table{} }
