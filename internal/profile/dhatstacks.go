package profile

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/symfilter/symfilter/internal/stacks"
)

// A dhatValue is a type of the samples' values. Its values come from one of the counts in each
// program point.
type dhatValue struct {
	key  string // key of the count in a point
	kind stacks.ValueType
}

// values returns the types of the samples' values. If points have lifetimes, the types have the
// names in Go's heap profiles, which viewers recognize, and similar names for the peak. Otherwise
// the names are the file's units.
func (x *dhatIndex) values() []dhatValue {
	if x.lifetimes {
		return []dhatValue{
			{"tbk", stacks.ValueType{Name: "alloc_objects", Unit: "count"}},
			{"tb", stacks.ValueType{Name: "alloc_space", Unit: "bytes"}},
			{"gbk", stacks.ValueType{Name: "peak_objects", Unit: "count"}},
			{"gb", stacks.ValueType{Name: "peak_space", Unit: "bytes"}},
			{"ebk", stacks.ValueType{Name: "inuse_objects", Unit: "count"}},
			{"eb", stacks.ValueType{Name: "inuse_space", Unit: "bytes"}},
		}
	}
	unit := "count"
	if x.bytes == "" {
		unit = "bytes"
	}
	return []dhatValue{
		{"tbk", stacks.ValueType{Name: cmp.Or(x.blocks, "blocks"), Unit: "count"}},
		{"tb", stacks.ValueType{Name: cmp.Or(x.bytes, "bytes"), Unit: unit}},
	}
}

func (x *dhatIndex) stacks() (*stacks.Profile, error) {
	if x.profile != nil {
		return x.profile, nil
	}
	if len(x.frames) == 0 {
		return nil, fmt.Errorf("%w: its frames, which DHAT writes last, are missing", ErrCut)
	}
	if err := x.file.rewind(); err != nil {
		return nil, err
	}
	values := x.values()
	p := &stacks.Profile{Default: values[1].kind.Name, Comments: []string{"DHAT: " + x.command}}
	for _, v := range values {
		p.Values = append(p.Values, v.kind)
	}
	maker := &stackMaker{p: p, o: x.o, m: x.m}
	c := &dhatSampler{x: x, maker: maker, values: values, sums: make([]int64, len(values)), locations: make([]uint32, len(x.frames))}
	for n := range x.frames { // the program is the first mapping, by which viewers name profiles
		if f := &x.frames[n]; f.isFrame && isProgram(f.raw.Object, x.command) {
			if _, err := c.location(uint32(n)); err != nil {
				return nil, err
			}
			break
		}
	}
	c.scan.part = c.part
	if err := c.scan.scan(x.file); err != nil {
		return nil, err
	}
	x.profile = p
	return p, nil
}

// A dhatSampler makes a sample from each program point of a DHAT file.
type dhatSampler struct {
	x         *dhatIndex
	maker     *stackMaker
	scan      dhatScanner
	values    []dhatValue
	locations []uint32 // by number of a frame; 0 until the location is made

	sums  []int64 // the values of the current point
	stack []uint32
	at    []uint32
}

func (c *dhatSampler) part(p dhatPart, b []byte) error {
	switch p {
	case dhatCount:
		for i, v := range c.values {
			if string(c.scan.key) == v.key {
				n, err := strconv.ParseInt(string(b), 10, 64)
				if err != nil {
					return fmt.Errorf("the count %.30q is not a number", b)
				}
				c.sums[i] = n
			}
		}
	case dhatStack:
		c.stack, _ = parseStack(c.stack[:0], b)
	case dhatPointEnd:
		return c.add()
	}
	return nil
}

func (c *dhatSampler) add() error {
	c.at = c.at[:0]
	for _, n := range c.stack {
		l, err := c.location(n)
		if err != nil {
			return err
		}
		c.at = append(c.at, l)
	}
	err := c.maker.sample(c.at, c.sums)
	c.stack = c.stack[:0]
	clear(c.sums)
	return err
}

// location returns the number of a frame's location. Frames missing in the file share one
// location.
func (c *dhatSampler) location(n uint32) (uint32, error) {
	if int(n) >= len(c.x.frames) {
		return c.maker.special("[missing in the file]"), nil
	}
	if c.locations[n] == 0 {
		var err error
		f := &c.x.frames[n]
		if !f.isFrame {
			c.locations[n] = c.maker.special(unquoted([]byte(`"` + f.text + `"`)))
		} else if c.locations[n], err = c.maker.location(&f.named); err != nil {
			return 0, err
		}
	}
	return c.locations[n], nil
}
