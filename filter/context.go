package filter

import (
	"math"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/checkpoint"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/markup"
)

// A Context is the context of one process of a log: its modules, their maps, an open hexdict, and
// facts about modules from raw backtraces in the records of [Lines]. The zero value is empty. A
// Context has at most 65,536 modules, 262,144 maps and 8 MiB of names. One goroutine at a time may
// use it.
type Context struct {
	space space
	hex   *openDict // nil if no hexdict is open

	facts *dialect.Facts // facts from the records so far; nil if none

	by    *Lines // the last Lines that used the Context, or nil
	cache *Cache // the Cache that module.cached refers to
}

// Approximate sizes in bytes: of an empty Context, and of each map and module in it.
const (
	contextBytes = 400
	mapBytes     = 60
	moduleBytes  = 100 // without the binary
)

// Size returns the approximate bytes of memory of c. It counts the names of binaries, but not the
// table that Contexts share, which takes about 200 bytes for each binary.
func (c *Context) Size() int {
	n := contextBytes + mapBytes*c.space.n + moduleBytes*len(c.space.modules) + c.space.names
	if c.hex != nil {
		n += cap(c.hex.body) + cap(c.hex.prefix)
	}
	if c.facts != nil {
		n += c.facts.Size()
	}
	return n
}

// Reset makes c empty.
func (c *Context) Reset() { *c = Context{} }

// MarshalJSON returns c as a versioned object. A map takes about 70 bytes, a module 100.
func (c *Context) MarshalJSON() ([]byte, error) {
	return checkpoint.Append(nil, versioned{checkpoint.Version, c.saved()}), nil
}

// UnmarshalJSON sets c from the output of MarshalJSON. The data are not trusted: c stays within its
// bounds. If the data are damaged or from another version of symfilter, UnmarshalJSON returns an
// error, and c is unchanged.
func (c *Context) UnmarshalJSON(data []byte) error {
	var saved versioned
	if err := checkpoint.Decode(data, &saved); err != nil {
		return err
	}
	got, err := saved.context()
	if err != nil {
		return err
	}
	*c = got
	return nil
}

type versioned struct {
	Version int `json:"v"`
	savedContext
}

type savedContext struct {
	Modules checkpoint.List[savedModule] `json:"modules,omitempty"`
	// disjoint, in the order of their addresses
	Maps    checkpoint.List[savedMap] `json:"maps,omitempty"`
	HexDict *savedDict                `json:"hexdict,omitempty"`
	Facts   *savedFacts               `json:"facts,omitempty"`
}

type savedModule struct {
	ID       uint64          `json:"id"`
	Name     checkpoint.Text `json:"name"`
	BuildID  string          `json:"build_id,omitempty"`
	Replaced bool            `json:"replaced,omitempty"` // another binary now has its ID
}

type savedMap struct {
	Module int `json:"module"` // index in Modules
	savedRange
}

type savedRange struct {
	Start uint64      `json:"start"`
	End   uint64      `json:"end"` // inclusive
	Rel   uint64      `json:"offset,omitempty"`
	Mode  markup.Mode `json:"mode,omitempty"`
}

type savedDict struct {
	Lines  int             `json:"lines"`
	Prefix checkpoint.Text `json:"prefix,omitempty"`
	Body   checkpoint.Text `json:"body,omitempty"`
}

func (v interval) saved() savedRange { return savedRange{v.start, v.end, v.rel, v.mode} }

func (c *Context) saved() (to savedContext) {
	s := &c.space
	index := make(map[*module]int, len(s.modules))
	add := func(m *module, replaced bool) {
		index[m] = len(to.Modules)
		to.Modules = append(to.Modules, savedModule{m.id, checkpoint.Text(m.name()), m.buildID().String(), replaced})
	}
	for _, id := range s.ids() {
		add(s.modules[id], false)
	}
	for _, run := range s.runs {
		for _, v := range run {
			if _, known := index[v.mod]; !known {
				add(v.mod, true)
			}
			to.Maps = append(to.Maps, savedMap{index[v.mod], v.saved()})
		}
	}
	if d := c.hex; d != nil {
		to.HexDict = &savedDict{d.lines, d.prefix, d.body}
	}
	if c.facts != nil {
		to.Facts = factsSaved(c.facts)
	}
	return to
}

// context returns the Context in c, or an error if c is damaged or exceeds the bounds.
func (c *savedContext) context() (to Context, err error) {
	modules := make([]*module, len(c.Modules))
	replaced := 0
	for i, from := range c.Modules {
		if len(from.Name) > maxName+len("…") {
			return to, checkpoint.Damaged("the name of module %d has %d bytes", from.ID, len(from.Name))
		}
		var id buildid.ID
		if from.BuildID != "" {
			if id, err = buildid.Parse([]byte(from.BuildID)); err != nil {
				return to, checkpoint.Damaged("module %d: %v", from.ID, err)
			}
		}
		m := newModule(from.ID, id, string(from.Name))
		if modules[i] = m; from.Replaced {
			replaced++
			to.space.names += len(m.name())
			continue
		}
		if to.space.modules[m.id] != nil {
			return to, checkpoint.Damaged("two modules have the ID %d", m.id)
		}
		if err := to.space.add(m); err != nil {
			return to, checkpoint.Damaged("%v", err)
		}
	}
	if to.space.names > maxNames {
		return to, checkpoint.Damaged("%v", errTooManyMod)
	}
	if err := to.space.restore(c.Maps, modules); err != nil {
		return to, err
	}
	for i, m := range modules {
		if c.Modules[i].Replaced && m.maps == 0 {
			return to, checkpoint.Damaged("module %d is replaced and has no map", m.id)
		}
	}
	if d := c.HexDict; d != nil {
		if d.Lines < 0 || d.Lines > maxDictLines || len(d.Prefix) > maxRepeat || len(d.Body) > maxDict {
			return to, checkpoint.Damaged("the open hexdict is too long")
		}
		to.hex = &openDict{lines: d.Lines, prefix: d.Prefix, body: d.Body}
	}
	if c.Facts != nil {
		facts, err := c.Facts.facts()
		if err != nil {
			return to, err
		}
		to.facts = &facts
	}
	return to, nil
}

// restore adds maps to an empty space.
func (s *space) restore(maps []savedMap, modules []*module) error {
	if len(maps) > maxMaps {
		return checkpoint.Damaged("%v", errTooManyMap)
	}
	for i, from := range maps {
		if from.Module < 0 || from.Module >= len(modules) {
			return checkpoint.Damaged("map %d refers to module %d, but the context has %d modules", i, from.Module, len(modules))
		}
		if !from.valid() || i > 0 && from.Start <= maps[i-1].End {
			return checkpoint.Damaged("map %d [%#x-%#x] overlaps another or is not valid", i, from.Start, from.End)
		}
		s.put(from.interval(modules[from.Module]))
	}
	return nil
}

// valid reports whether an mmap element can define the range r.
func (r savedRange) valid() bool {
	return r.Start <= r.End && r.Mode <= markup.Read|markup.Write|markup.Exec && r.End-r.Start < math.MaxUint64
}

func (r savedRange) interval(m *module) interval {
	return interval{start: r.Start, end: r.End, rel: r.Rel, mod: m, mode: r.Mode}
}
