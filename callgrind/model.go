package callgrind

import (
	"math"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// A model sums the costs, calls and jumps of a profile, or of one part, by key. The names of its
// functions are those in the profile, before addresses are resolved.
type model struct {
	r *recordReader

	functions     []function // number 0: the functions beyond the limit
	index         map[function]uint32
	current       function // the function of the last line; currentNumber is its index
	currentNumber uint32

	costs     sums // by function, source file, address and line
	calls     sums // by place and callee: the number of calls, then the costs
	jumps     sums // by place and target: how often followed, how often executed
	keepJumps bool // jumps are summed, too
	stacked   bool // stacks are made at the end, so places leave 3/8 of the budget
	full      bool // costs of new places are added to their functions

	charged int64 // bytes of heap taken from the budget

	head headings
	sums partSums
}

// A function is identified by its names in the profile.
type function struct{ object, file, name nameID }

// headings holds the values of header lines that a report shows, from all inputs and from the
// current part.
type headings struct {
	creator, command, pid, version string
	parts, documents               int
	threads                        map[string]bool
	pids, commands                 map[string]bool // from all inputs; at most maxThreads of each
	descriptions                   []string
	thread, trigger                string   // thread and trigger of the part
	number                         string   // number of the part, as in its header
	all                            []string // the descriptions of the part
}

// partSums holds the costs of the current part, and of all ended parts.
type partSums struct {
	begun           bool
	self            []int64 // sum of the part's lines
	summary, totals []int64 // the part's summary: and totals: lines; nil without them
	line            int     // number of the totals: line
	summaryLine     int     // number of the summary: line
	total           []int64 // sum over all ended parts
	// costs of the last ended part: from its header, and as the sum of its lines
	ended, lines              []int64
	endedSummary, endedTotals []int64 // summary and totals of the last ended part; nil without them
	calculated                bool    // total includes a part whose costs are the sum of its lines
}

func newModel(r *recordReader) *model {
	m := &model{r: r, functions: make([]function, 1), index: make(map[function]uint32)}
	m.calls.width, m.jumps.width = 1, 2
	m.head.threads, m.head.pids, m.head.commands = make(map[string]bool), make(map[string]bool), make(map[string]bool)
	return m
}

func (m *model) addRecord(rec *record) error {
	switch rec.Kind {
	case documentRecord, partRecord:
		m.endPart()
		if rec.Kind == documentRecord {
			m.head.documents++
		}
	case headerRecord:
		m.header(rec)
	case costRecord:
		m.sums.begun = true
		i := m.place(rec)
		costs := rec.Costs[:min(len(rec.Costs), m.costs.width)]
		c := m.costs.counts[i*m.costs.width:]
		s := m.sums.self[:len(costs)]
		for e, n := range costs {
			c[e] = stacks.Plus(c[e], n)
			s[e] = stacks.Plus(s[e], n)
		}
	case callRecord:
		m.sums.begun = true
		from := m.place(rec)
		to := m.functionNumber(function{rec.To.Object, rec.To.File, rec.To.Function})
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
				i = m.calls.insert(k)
			}
		}
		c := m.calls.countsOf(i)
		c[0] = stacks.Plus(c[0], rec.Count)
		stacks.AddTo(c[1:], rec.Costs[:min(len(rec.Costs), m.costs.width)])
	case jumpRecord:
		m.sums.begun = true
		if m.keepJumps {
			m.jump(rec)
		}
	}
	return nil
}

func line32(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// place returns the index in costs for the place of a record, added if new.
func (m *model) place(rec *record) int {
	if len(rec.Costs) > m.costs.width {
		m.widen(len(rec.Costs))
	}
	fn := function{rec.Object, rec.File, rec.Function}
	if fn != m.current || m.currentNumber == 0 {
		m.current, m.currentNumber = fn, m.functionNumber(fn)
	}
	k := key{addr: rec.Addr, from: m.currentNumber, to: uint32(rec.Source), line: line32(rec.codePosition.Line)}
	i := m.costs.find(k)
	if i >= 0 {
		return i
	}
	if m.isFull(&m.costs) { // add the cost to the function as a whole
		k.addr, k.line, k.to = 0, 0, 0
		if m.isTooFull(&m.costs) {
			k.from = 0
		}
		if i = m.costs.find(k); i >= 0 {
			return i
		}
	}
	return m.costs.insert(k)
}

// functionNumber returns the number of a function, or 0 if there is no room for it.
func (m *model) functionNumber(fn function) uint32 {
	n, ok := m.index[fn]
	switch {
	case ok:
	case len(m.functions) >= maxFunctions || !m.hasRoom(functionCost, 0):
		m.r.complain("model", "exceeds the memory for %d functions (--max-memory); further functions are summed as one", len(m.functions))
	default:
		n = uint32(len(m.functions))
		m.functions = append(m.functions, fn)
		m.index[fn] = n
	}
	return n
}

// isFull reports whether there is no room for another place, call or jump.
func (m *model) isFull(s *sums) bool {
	if m.full {
		return true
	}
	spare := m.r.share.Budget.Most() / 8
	if m.stacked {
		spare *= 3
	}
	if !m.hasRoom(s.keyCost(), spare) || len(s.keys) >= math.MaxInt32 {
		m.full = true
		m.r.complain("model", "exceeds the %d MiB of memory for costs by line (--max-memory); further costs are counted by function only", m.r.share.Budget.Most()>>20)
	}
	return m.full
}

// isTooFull reports whether the budget has no room for one more key, not even for the costs of a
// whole function.
func (m *model) isTooFull(s *sums) bool { return !m.hasRoom(s.keyCost(), 0) }

// hasRoom charges the budget for the model's contents plus more bytes. It returns false, and
// charges nothing, if the budget cannot grant this or would keep fewer than spare bytes. Bytes
// taken for an earlier part are reused.
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

// cost returns the bytes that the model's contents cost the budget.
func (m *model) cost() int64 {
	return int64(m.size())*placeHalves/2 + int64(len(m.functions))*functionCost
}

func (m *model) size() int { return m.costs.size() + m.calls.size() + m.jumps.size() }

// widen extends the tables of costs to this number of events. If the memory does not suffice, the
// costs of the new events are left out.
func (m *model) widen(events int) {
	if events <= m.costs.width && events <= len(m.sums.total) {
		return
	}
	if more := (len(m.costs.keys) + len(m.calls.keys)) * 8 * (events - m.costs.width); more > 0 && !m.hasRoom(int64(more)*placeHalves/2, 0) {
		m.r.complain("model", "names an event whose costs do not fit in the memory allowed (--max-memory) and are left out")
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

func (m *model) jump(rec *record) {
	from := m.place(rec)
	to := m.functionNumber(function{rec.To.Object, rec.To.File, rec.To.Function})
	k := key{addr: rec.To.Addr, from: uint32(from), to: to << 1, line: line32(rec.To.Line)}
	if rec.Conditional {
		k.to |= 1
	}
	i := m.jumps.find(k)
	if i < 0 {
		if m.isFull(&m.jumps) {
			return
		}
		i = m.jumps.insert(k)
	}
	c := m.jumps.countsOf(i)
	c[0] = stacks.Plus(c[0], rec.Count)
	c[1] = stacks.Plus(c[1], rec.Executed)
}

// header keeps the header lines that a report shows, and the sums of the part.
func (m *model) header(rec *record) {
	h := &m.head
	value := strings.TrimRight(string(rec.Value), " \t")
	set := func(s *string) {
		if *s == "" {
			*s = value
		}
	}
	note := func(all map[string]bool) {
		if len(all) < maxThreads {
			all[value] = true
		}
	}
	switch string(rec.Key) {
	case "version":
		set(&h.version)
	case "creator":
		set(&h.creator)
	case "cmd":
		set(&h.command)
		note(h.commands)
	case "pid":
		set(&h.pid)
		note(h.pids)
	case "thread":
		h.thread = value
	case "part":
		h.number = value
	case "desc":
		if len(h.all) < maxDescriptions {
			h.all = append(h.all, value)
		}
		if t, ok := strings.CutPrefix(value, "Trigger:"); ok {
			h.trigger = strings.TrimSpace(t)
		} else if len(h.descriptions) < maxDescriptions && !slices.Contains(h.descriptions, value) && !strings.HasPrefix(value, "Timerange") && !strings.HasSuffix(value, ":") {
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
		} else {
			m.sums.summaryLine = rec.Line
		}
		*s = make([]int64, m.costs.width)
		copy(*s, rec.Costs) // as many as fit
	}
}

func (h *headings) endPart() {
	h.thread, h.trigger, h.number, h.all = "", "", "", h.all[:0]
}

// endPart adds the current part to the total: its summary, or else its totals, or else the sum
// of its lines. It reports sums that disagree.
func (m *model) endPart() {
	p := &m.sums
	if !p.begun {
		return
	}
	m.widen(len(m.r.Events()))
	m.head.parts++
	if t := m.head.thread; t != "" && len(m.head.threads) < maxThreads {
		m.head.threads[t] = true
	}
	m.checkSum("the lines of a part", p.self)
	for e := range p.totals {
		if p.totals[e] != p.self[e] {
			m.r.complainOf(p.line, "sums", "gives part %d the cost %d %s, but the lines of the part add up to %d",
				m.head.parts, p.totals[e], m.r.Events()[e].Name, p.self[e])
			break
		}
	}
	if !isZero(p.summary) { // otherwise the part has no summary
		for e, n := range p.summary {
			if n < p.self[e] {
				m.r.complainOf(p.summaryLine, "sums", "gives part %d the cost %d %s, less than the sum of its lines, %d",
					m.head.parts, n, m.r.Events()[e].Name, p.self[e])
				break
			}
		}
	}
	m.r.truncated = m.r.truncated || m.lacksEnd()
	// Callgrind writes totals at the end of each part
	if p.totals == nil && strings.HasPrefix(m.head.creator, "callgrind-") {
		for e, n := range p.summary {
			if n > p.self[e] {
				m.r.complain("cut", "ends part %d without totals: the profile is incomplete, and its lines add up to only %d of %d %s",
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
	stacks.AddTo(p.total, all)
	m.checkSum("its parts", p.total)
	p.ended, p.lines = append(p.ended[:0], all...), append(p.lines[:0], p.self...)
	p.endedSummary, p.endedTotals = p.summary, p.totals
	clear(p.self)
	p.begun, p.summary, p.totals = false, nil, nil
}

// checkSum reports the first of the sums that has reached the limits of int64, and may be wrong.
func (m *model) checkSum(of string, sums []int64) {
	for e, n := range sums {
		if n == math.MaxInt64 || n == math.MinInt64 {
			m.r.complainOf(0, "limit", "has an out-of-range sum of %s in %s; this sum is read as %d", m.r.Events()[e].Name, of, n)
			return
		}
	}
}

// lacksEnd reports whether the current part lacks its last line. Callgrind ends a part with
// totals, Xdebug and Cachegrind with a summary. Only Cachegrind writes a command without a
// creator.
func (m *model) lacksEnd() bool {
	switch h := &m.head; {
	case strings.HasPrefix(h.creator, "callgrind-"):
		return m.sums.totals == nil
	case strings.HasPrefix(h.creator, "xdebug"), h.creator == "" && h.command != "":
		return m.sums.summary == nil && m.sums.totals == nil
	}
	return false
}

func isZero(costs []int64) bool {
	return !slices.ContainsFunc(costs, func(n int64) bool { return n != 0 })
}

// addresses reports whether any place has an address.
func (m *model) addresses() bool {
	return slices.ContainsFunc(m.costs.keys, func(k key) bool { return k.addr != 0 })
}

// forget removes the sums of a part, in time proportional to their number.
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
	m.currentNumber, m.full = 0, false
}
