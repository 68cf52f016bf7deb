package callgrind

import (
	"math"
	"slices"
	"strings"
)

// A model is what a profile, or a part of one, sums up to: each place once, as
// the profile names it.
type model struct {
	r *Reader

	functions []function // 0: those that were too many
	index     map[function]uint32
	current   function // the function of the last line, and its number
	number    uint32

	costs sums // by function and source file
	calls sums // by place and function: the count, and the costs
	jumps sums // by place and function: followed, and executed
	jumpy bool // jumps are kept
	full  bool // places are no longer told apart

	charged int64 // to the budget of heap, for all of these

	head headings
	sums partSums
}

// A function is one as the profile names it.
type function struct{ object, file, name Name }

// headings are what the lines of a header say that a report shows.
type headings struct {
	creator, command, pid, version string
	parts, documents               int
	threads                        map[string]bool
	descriptions                   []string
	thread, trigger                string // of the part
}

// partSums are the costs of a part, and those of all parts that have ended.
type partSums struct {
	begun           bool
	self            []int64 // of its lines
	summary, totals []int64 // as it says; nil: it does not
	line            int     // where totals: is
	total           []int64 // of all parts that have ended
	ended, lines    []int64 // of the part that ended last, as it says, and as its lines are
	said, added     []int64 // its summary and its totals; nil: it has none
	calculated      bool    // one of them does not say
}

func newModel(r *Reader) *model {
	m := &model{r: r, functions: make([]function, 1), index: make(map[function]uint32)}
	m.calls.width, m.jumps.width = 1, 2
	m.head.threads = make(map[string]bool)
	return m
}

// take adds a record.
func (m *model) take(rec *Record) error {
	switch rec.Kind {
	case Document, Part:
		m.endPart()
		if rec.Kind == Document {
			m.head.documents++
		}
	case Header:
		m.header(rec)
	case Cost:
		m.sums.begun = true
		i := m.place(rec)
		costs := rec.Costs[:min(len(rec.Costs), m.costs.width)]
		c := m.costs.counts[i*m.costs.width:]
		s := m.sums.self[:len(costs)]
		for e, n := range costs {
			c[e] = plus(c[e], n)
			s[e] = plus(s[e], n)
		}
	case Call:
		m.sums.begun = true
		from := m.place(rec)
		to := m.of(function{rec.To.Object, rec.To.File, rec.To.Function})
		k := key{addr: rec.To.Addr, from: uint32(from), to: to, line: line32(rec.To.Line)}
		i := m.calls.find(k)
		if i < 0 {
			if m.isFull(&m.calls) {
				k.addr, k.line = 0, 0
				if i = m.calls.find(k); i < 0 && m.isTooFull(&m.calls) {
					return nil
				}
			}
			if i < 0 {
				i = m.calls.add(k)
			}
		}
		c := m.calls.of(i)
		c[0] = plus(c[0], rec.Count)
		add(c[1:], rec.Costs[:min(len(rec.Costs), m.costs.width)])
	case Jump:
		m.sums.begun = true
		if m.jumpy {
			m.jump(rec)
		}
	}
	return nil
}

func line32(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// place returns where the costs of a record's place are summed.
func (m *model) place(rec *Record) int {
	if len(rec.Costs) > m.costs.width {
		m.widen(len(rec.Costs))
	}
	fn := function{rec.Object, rec.File, rec.Function}
	if fn != m.current || m.number == 0 {
		m.current, m.number = fn, m.of(fn)
	}
	k := key{addr: rec.Addr, from: m.number, to: uint32(rec.Source), line: line32(rec.Position.Line)}
	i := m.costs.find(k)
	if i >= 0 {
		return i
	}
	if m.isFull(&m.costs) { // it counts for its function
		k.addr, k.line, k.to = 0, 0, 0
		if m.isTooFull(&m.costs) {
			k.from = 0
		}
		if i = m.costs.find(k); i >= 0 {
			return i
		}
	}
	return m.costs.add(k)
}

// of returns the number of a function.
func (m *model) of(fn function) uint32 {
	n, ok := m.index[fn]
	switch {
	case ok:
	case len(m.functions) >= maxFunctions || !m.hasRoom(functionCost, 0):
		m.r.complain("model", "has a function too many; there are %d, and what others cost is put together", len(m.functions))
	default:
		n = uint32(len(m.functions))
		m.functions = append(m.functions, fn)
		m.index[fn] = n
	}
	return n
}

// isFull reports whether there is no room for another key that may be left out.
func (m *model) isFull(s *sums) bool {
	if m.full {
		return true
	}
	if !m.hasRoom(s.keyCost(), m.r.share.Budget.Most()/8) || len(s.keys) >= math.MaxInt32 {
		m.full = true
		m.r.complain("model", "has a place too many for the %d MiB of memory allowed; others count for their functions", m.r.share.Budget.Most()>>20)
	}
	return m.full
}

// isTooFull reports whether there is no room for a function's key either.
func (m *model) isTooFull(s *sums) bool { return !m.hasRoom(s.keyCost(), 0) }

// hasRoom reports whether more bytes fit the budget and leave spare bytes of it. What was taken for
// an earlier part is kept for the next.
func (m *model) hasRoom(more, spare int64) bool {
	need := m.cost() + more
	if need <= m.charged {
		return true
	}
	if !m.r.share.Take(need-m.charged, spare) {
		return false
	}
	m.charged = need
	return true
}

// cost returns what the model has cost the budget if no earlier part was larger.
func (m *model) cost() int64 {
	return int64(m.size())*placeHalves/2 + int64(len(m.functions))*functionCost
}

func (m *model) size() int { return m.costs.size() + m.calls.size() + m.jumps.size() }

// widen makes room for the costs of more events.
func (m *model) widen(events int) {
	if events <= m.costs.width && events <= len(m.sums.total) {
		return
	}
	if more := (len(m.costs.keys) + len(m.calls.keys)) * 8 * (events - m.costs.width); more > 0 && !m.hasRoom(int64(more)*placeHalves/2, 0) {
		m.r.complain("model", "has an event too many: there is no room for its costs")
		return
	}
	m.costs.widen(events)
	m.calls.widen(events + 1)
	m.sums.widen(events)
}

func (p *partSums) widen(events int) {
	for _, s := range []*[]int64{&p.self, &p.summary, &p.totals, &p.total} {
		if *s != nil || s == &p.self || s == &p.total {
			*s = append(*s, make([]int64, max(0, events-len(*s)))...)
		}
	}
}

// jump adds a jump.
func (m *model) jump(rec *Record) {
	from := m.place(rec)
	to := m.of(function{rec.To.Object, rec.To.File, rec.To.Function})
	k := key{addr: rec.To.Addr, from: uint32(from), to: to << 1, line: line32(rec.To.Line)}
	if rec.Conditional {
		k.to |= 1
	}
	i := m.jumps.find(k)
	if i < 0 {
		if m.isFull(&m.jumps) {
			return
		}
		i = m.jumps.add(k)
	}
	c := m.jumps.of(i)
	c[0] = plus(c[0], rec.Count)
	c[1] = plus(c[1], rec.Executed)
}

// header takes what a report shows of a header.
func (m *model) header(rec *Record) {
	h := &m.head
	value := strings.TrimRight(string(rec.Value), " \t")
	set := func(s *string) {
		if *s == "" {
			*s = value
		}
	}
	switch string(rec.Key) {
	case "version":
		set(&h.version)
	case "creator":
		set(&h.creator)
	case "cmd":
		set(&h.command)
	case "pid":
		set(&h.pid)
	case "thread":
		h.thread = value
		if len(h.threads) < maxThreads {
			h.threads[value] = true
		}
	case "desc":
		if t, ok := strings.CutPrefix(value, "Trigger:"); ok {
			h.trigger = strings.TrimSpace(t)
		} else if len(h.descriptions) < maxDescriptions && !strings.HasPrefix(value, "Timerange") && !strings.HasSuffix(value, ":") {
			h.descriptions = append(h.descriptions, value)
		}
	case "summary", "totals":
		if len(rec.Costs) > m.costs.width {
			m.widen(len(rec.Costs))
		}
		m.sums.begun = true
		s := &m.sums.summary
		if string(rec.Key) == "totals" {
			s = &m.sums.totals
			m.sums.line = rec.Line
		}
		*s = make([]int64, m.costs.width)
		copy(*s, rec.Costs) // as many as there is room for
	}
}

// endPart adds up a part: what it says that it costs, or what its lines do.
func (m *model) endPart() {
	p := &m.sums
	if !p.begun {
		return
	}
	m.widen(len(m.r.Events()))
	m.head.parts++
	for e := range p.totals {
		if p.totals[e] != p.self[e] {
			m.r.complainOf(p.line, "sums", "says that part %d cost %d %s; its lines add up to %d",
				m.head.parts, p.totals[e], m.r.Events()[e].Name, p.self[e])
			break
		}
	}
	if p.totals == nil && strings.HasPrefix(m.head.creator, "callgrind-") { // which writes them at the end of each part
		for e, n := range p.summary {
			if n > p.self[e] {
				m.r.complain("cut", "ends part %d, which has no totals: it is cut; its lines add up to %d of %d %s",
					m.head.parts, p.self[e], n, m.r.Events()[e].Name)
				break
			}
		}
	}
	all := p.summary
	if isZero(all) {
		all = p.totals
	}
	if isZero(all) {
		all = p.self
		p.calculated = p.calculated || !isZero(all)
	}
	p.total = append(p.total, make([]int64, m.costs.width-len(p.total))...)
	add(p.total, all)
	p.ended, p.lines = append(p.ended[:0], all...), append(p.lines[:0], p.self...)
	p.said, p.added = p.summary, p.totals
	clear(p.self)
	p.begun, p.summary, p.totals = false, nil, nil
}

func isZero(costs []int64) bool {
	return !slices.ContainsFunc(costs, func(n int64) bool { return n != 0 })
}

// addresses reports whether any place has an address.
func (m *model) addresses() bool {
	return slices.ContainsFunc(m.costs.keys, func(k key) bool { return k.addr != 0 })
}

// forget forgets what a part summed up to, in as much time as there was of it.
func (m *model) forget() {
	m.costs.clear()
	m.calls.clear()
	m.jumps.clear()
	if len(m.functions) > 64 {
		m.index = make(map[function]uint32)
	} else {
		clear(m.index)
	}
	m.functions = m.functions[:1]
	m.number, m.full = 0, false
}
