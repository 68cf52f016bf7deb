package callgrind

// A nameID is the number of a name: of an object, a file or a function. Equal names of one
// reader have equal numbers. 0 means no name.
type nameID uint32

// names holds the names of a profile, each once.
type names struct {
	text  []string
	index map[string]nameID
	share *allotment
	full  bool // a name was left out for lack of memory
}

func newNames(s *allotment) *names {
	return &names{share: s, text: []string{""}, index: make(map[string]nameID)}
}

// intern returns the ID of text, or the ID of "???" if there is no room for another name.
func (n *names) intern(text []byte) nameID {
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
	i := nameID(len(n.text))
	n.text = append(n.text, s)
	n.index[s] = i
	return i
}

// unknown is Callgrind's name for an unknown object, file or function.
const unknown = "???"

// A definition is the name that a number in the profile stands for, as in "(5) main". Its low
// nameBits bits are a nameID. Its high bits are the kind of line that gave the name. If no line
// gave a name, the kind is 0, and the name is the number's text, such as "(5)". The definition 0 is
// an unused number.
type definition uint32

const nameBits = 24 // maxNames needs 23

// definedBy returns the definition for a name on a line with the given key, such as fn or cfn.
func definedBy(key []byte, name nameID) definition {
	kind := key[0] // the first letter of cob, cfn, cfi and jfn, the second of ob, fn, fl, fi and fe
	if len(key) == 2 {
		kind = key[1]
	}
	return definition(kind)<<nameBits | definition(name)
}

func (d definition) name() nameID { return nameID(d & (1<<nameBits - 1)) }

// clashes reports whether d and now, definitions of one number, have different names and are from
// different kinds of lines. By the format, each kind of line has its own table of numbers. In all
// known profiles, each kind of name has one table.
func (d definition) clashes(now definition) bool {
	return d>>nameBits != 0 && d.name() != now.name() && d>>nameBits != now>>nameBits
}

// A table maps the numbers of a profile to names. The numbers usually count up from 1.
type table struct {
	low  []definition
	high map[uint64]definition
}

// denseIDs bounds the numbers kept in a slice even if they do not count up.
const denseIDs = 1 << 16

func (t *table) get(id uint64) definition {
	if id < uint64(len(t.low)) {
		return t.low[id]
	}
	return t.high[id]
}

// set assigns a name to a number. It returns false if there is no room.
func (t *table) set(id uint64, d definition) bool {
	switch {
	case id < uint64(len(t.low)):
		t.low[id] = d
	case id < denseIDs || id < 2*uint64(len(t.low)) && id < maxIDs: // numbers that count up
		low := make([]definition, min(max(2*id, 256), maxIDs))
		copy(low, t.low)
		for n, old := range t.high {
			if n < uint64(len(low)) {
				low[n] = old
				delete(t.high, n)
			}
		}
		t.low = low
		t.low[id] = d
	default:
		if t.high == nil {
			t.high = make(map[uint64]definition)
		}
		if _, ok := t.high[id]; !ok && len(t.high) >= maxSparse {
			return false
		}
		t.high[id] = d
	}
	return true
}

func (t *table) reset() { *t = table{} }
