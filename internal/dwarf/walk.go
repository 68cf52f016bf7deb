package dwarf

import "encoding/binary"

// An entryWalk goes through an entry of a unit and all entries below it, in the order of
// .debug_info. It stops only at entries of the kinds in stop. After a stop, the caller reads the
// attributes and sets pos to the position after them, or calls leapTo.
type entryWalk struct {
	data  []byte // bytes of the unit
	table *abbrevTable
	big   bool
	stop  abbrevFlags
	leap  abbrevFlags // kinds of entries whose children are skipped, by DW_AT_sibling

	entry int     // position of the current entry
	pos   int     // position after the attributes read so far
	decl  *abbrev // declaration of the current entry; nil: pos is at the next entry
	depth int     // number of entries around the current entry in this walk
	low   int     // lowest depth since the last stop: entries at that depth or deeper have ended
	left  int     // entries that may still be read; -1 if there were more
	leapt bool    // children were skipped
	fault string  // reason why the walk ended early; "" if it did not
}

// endsEarly is the value of entryWalk.fault if the unit ends in the middle of its entries.
const endsEarly = "end"

// walkFrom returns a walk from an entry of u, over at most limit entries.
func (u *unit) walkFrom(entry uint32, stop, leap abbrevFlags, limit int) entryWalk {
	return entryWalk{data: u.data, table: u.abbrevs, big: u.d.big, stop: stop, leap: leap, pos: int(entry), left: limit}
}

func (w *entryWalk) attributes() cursor { return cursor{buf: w.data, pos: w.pos, big: w.big} }

// leapTo continues the walk at a sibling of the current entry.
func (w *entryWalk) leapTo(sibling int) { w.pos, w.decl, w.leapt = sibling, nil, true }

// next moves to the next entry of a kind in w.stop, if any.
func (w *entryWalk) next() bool {
	b, t := w.data, w.table
	p, depth, left := w.pos, w.depth, w.left
	stop, either := w.stop, w.stop|w.leap
	entry, a := w.entry, w.decl
	low := depth
	if a != nil && a.children {
		low++
	}
	for {
		if a != nil {
			if a.children {
				depth++
			} else if depth == 0 {
				break
			}
		}
		if uint(p) >= uint(len(b)) {
			w.fault = endsEarly
			break
		}
		if left--; left < 0 {
			w.fault = "too many entries"
			break
		}
		entry = p
		code := uint64(b[p])
		p++
		if code >= 0x80 {
			if code, p = uleb(b, entry); p < 0 {
				w.fault = "abbreviation code"
				break
			}
		}
		if code == 0 {
			if depth--; depth <= 0 {
				break
			}
			low = min(low, depth)
			a = nil
			continue
		}
		if a = t.get(code); a == nil {
			w.fault = "abbreviation code"
			break
		}
		switch {
		case a.flags&either == 0:
			if a.fixed >= 0 {
				p += int(a.fixed)
				continue
			}
			if p = t.runSteps(b, p, t.steps[a.steps:a.steps+uint32(a.numSteps)], w.big); p < 0 {
				w.fault = "attributes"
			}
		case a.flags&stop != 0:
			w.entry, w.pos, w.decl, w.depth, w.low, w.left = entry, p, a, depth, low, left
			return true
		default:
			w.leapt = true
			at := p + int(a.sibAt)
			if a.sibSteps == 0 && a.sibForm == formRef4 && at+4 <= len(b) && !w.big { // usual
				to := int(binary.LittleEndian.Uint32(b[at:]))
				if a = nil; to > p && to <= len(b) {
					p = to
					continue
				}
				p = -1
			} else {
				p = t.sibling(b, p, a, w.big)
				a = nil
			}
			if p < 0 {
				w.fault = "sibling"
			}
		}
		if p < 0 {
			break
		}
	}
	w.entry, w.pos, w.decl, w.depth, w.low, w.left = entry, p, a, depth, low, left
	return false
}

// openEntries is a stack of the entries around a walk's current entry, outermost first. Each has a
// value that applies to the entries below it. Entries without such a value are left out.
type openEntries []openEntry

type openEntry struct {
	depth int
	value uint64
}

// around removes the entries that have ended before w's current entry. It returns the remaining
// entries and the value of the innermost one, or outer if no entry remains.
func (o openEntries) around(w *entryWalk, outer uint64) (openEntries, uint64) {
	for len(o) > 0 && o[len(o)-1].depth >= w.low {
		o = o[:len(o)-1]
	}
	if len(o) == 0 {
		return o, outer
	}
	return o, o[len(o)-1].value
}
