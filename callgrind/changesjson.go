package callgrind

import "github.com/symfilter/symfilter/internal/report"

// json prints the comparison as objects: both profiles, their functions in the profiles' order,
// and the verdicts.
func (c *Comparison) json() {
	p := &c.out
	var measures [2][]measure
	for i, r := range []*Report{c.Before, c.After} {
		measures[i] = r.reader.measures()
	}
	b := p.object("comparison")
	for i, r := range []*Report{c.Before, c.After} {
		h := &r.m.head
		b.Object([...]string{"before", "after"}[i])
		appendTexts(b, "inputs", r.in.labels)
		b.Optional("creator", h.creator)
		b.Optional("command", h.command)
		b.Int("parts", int64(h.parts))
		appendCosts(b, "total", measures[i], c.sides[i].g.total)
		if len(r.in.cut) > 0 {
			b.Bool("incomplete", true)
		}
		b.EndObject()
	}
	p.end(b)
	for i := range c.rows {
		c.jsonRow(&c.rows[i], measures)
	}
	c.gate.json(p, true)
}

func (c *Comparison) jsonRow(r *change, measures [2][]measure) {
	p := &c.out
	b := p.object("change")
	side, n := c.sides[1], r.after
	if n < 0 {
		side, n = c.sides[0], r.before
	}
	g := side.g
	at := &g.all[n]
	link := g.m.r.Text(at.link)
	if link == "" && report.IsMangled(withoutLevel(g.m.r.Text(at.fn))) {
		link = withoutLevel(g.m.r.Text(at.fn))
	}
	if link, _ = report.Unversioned(link); link != "" {
		link = report.WithoutCloneSuffix(link)
	}
	b.Function(r.key.name, link)
	b.Optional("object", g.m.r.Text(at.object))
	if !g.isUnknown(at.file) {
		b.String("file", g.s.file(at.file))
	}
	if at.line != 0 {
		b.Uint("line", uint64(at.line))
	}
	b.Optional("note", c.note(r))
	approximate := false
	for i, n := range [...]int{r.before, r.after} {
		if n < 0 {
			continue
		}
		g := c.sides[i].g
		b.Object([...]string{"before", "after"}[i])
		b.Int("calls", g.calls[n])
		appendCosts(b, "self", measures[i], g.selfOf(uint32(n)))
		appendCosts(b, "inclusive", measures[i], g.inclOf(uint32(n)))
		b.EndObject()
		approximate = approximate || g.approximate[n]
	}
	if approximate {
		b.Bool("approximate", true)
	}
	p.end(b)
}
