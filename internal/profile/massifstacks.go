package profile

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// stacks returns the stacks of the tree at the peak, or of the last tree. In a report of
// --xtree-memory, each tree has values of one type, and each sample has a value of every type.
func (x *massifFile) stacks() (*stacks.Profile, error) {
	if x.all != nil {
		return x.all, nil
	}
	if x.shown == 0 {
		return nil, fmt.Errorf("%w: it has no tree", ErrCut)
	}
	if err := x.file.rewind(); err != nil {
		return nil, err
	}
	p := &stacks.Profile{Comments: []string{"Massif: " + x.command}}
	p.Values = x.values
	if len(p.Values) == 0 {
		p.Values = []stacks.ValueType{{Name: "inuse_space", Unit: "bytes"}}
		if x.isPeak {
			p.Values[0].Name = "peak_space"
		}
	}
	for _, v := range p.Values {
		if v.Name == "totB" { // all allocations; curB is 0 at the end of most programs
			p.Default = v.Name
		}
	}
	s := &massifSampler{x: x, maker: &stackMaker{p: p, o: x.o, m: x.m}, locations: make([]uint32, len(x.frames)), values: make([]int64, len(p.Values))}
	for i := range x.frames { // the program is the first mapping, by which viewers name profiles
		if isProgram(x.frames[i].raw.Object, x.command) {
			if _, err := s.location(i); err != nil {
				return nil, err
			}
			break
		}
	}
	if err := x.scan(s.line); err != nil {
		return nil, err
	}
	if err := s.end(0); err != nil {
		return nil, err
	}
	x.all = p
	return p, nil
}

// A massifSampler makes samples of trees. A sample has the bytes of a node that are in none of
// its children.
type massifSampler struct {
	x         *massifFile
	maker     *stackMaker
	locations []uint32 // by index of a frame; 0 until the location is made

	snapshot int         // snapshot of the current line, from 1
	value    int         // index of the current tree's value; -1 if the tree is not shown
	open     []massifSum // the current node and its ancestors, by level
	at       []uint32
	values   []int64 // values of the next sample; all 0 between two samples
}

// A massifSum is a node whose children are being read.
type massifSum struct {
	location uint32 // 0 for the root
	rest     uint64 // bytes of the node without its children so far
}

func (s *massifSampler) line(line []byte, n *massifNode) error {
	switch {
	case n == nil:
		if bytes.HasPrefix(line, []byte("snapshot=")) {
			s.snapshot++
		}
		return nil
	case n.level == 0:
		if err := s.end(0); err != nil {
			return err
		}
		s.begin(n)
	case s.value < 0 || n.level > len(s.open):
		return nil
	}
	if s.value < 0 {
		return nil
	}
	if err := s.end(n.level); err != nil {
		return err
	}
	sum := massifSum{rest: n.size}
	if n.level > 0 {
		parent := &s.open[n.level-1]
		parent.rest -= min(parent.rest, n.size)
		var err error
		if i, ok := s.x.index[string(n.text)]; !ok {
			sum.location = s.maker.special("[" + below(n.text) + "]")
		} else if sum.location, err = s.location(i); err != nil {
			return err
		}
	}
	s.open = append(s.open, sum)
	return nil
}

// below returns the name of a node without a frame, as stacks show it: at most 200 bytes of its
// text, or only "below massif's threshold".
func below(text []byte) string {
	if bytes.Contains(text, []byte("below massif's threshold")) {
		return "below massif's threshold"
	}
	return string(text[:min(len(text), 200)])
}

// begin begins a tree with this root.
func (s *massifSampler) begin(n *massifNode) {
	v, ok := valueOfTree(n)
	switch {
	case ok:
		s.value = slices.Index(s.maker.p.Values, v)
	case len(s.x.values) == 0 && s.snapshot == s.x.shown:
		s.value = 0
	default:
		s.value = -1
	}
}

// valueOfTree returns the type of the values in a tree of --xtree-memory. The root of the tree
// names the type:
//
//	n13: 102592 totB : total allocated Bytes
func valueOfTree(root *massifNode) (v stacks.ValueType, ok bool) {
	name, about, ok := strings.Cut(string(root.text[:min(len(root.text), 200)]), " : ")
	if !ok || name == "" || strings.ContainsAny(name, " (") {
		return v, false
	}
	v = stacks.ValueType{Name: name, Unit: "count"}
	if strings.HasSuffix(about, "Bytes") {
		v.Unit = "bytes"
	}
	return v, true
}

// learnValue adds the type of a tree's values to x.values, unless x.values has the type or is full.
func (x *massifFile) learnValue(root *massifNode) {
	v, ok := valueOfTree(root)
	if ok && !slices.Contains(x.values, v) && len(x.values) < maxMassifValues {
		x.values = append(x.values, v)
	}
}

// maxMassifValues bounds the types of values in a report; Valgrind's reports have six.
const maxMassifValues = 16

// end ends the open nodes from this level on. In a shown tree, a node with more bytes than its
// children becomes a sample.
func (s *massifSampler) end(level int) error {
	for len(s.open) > level {
		last := len(s.open) - 1
		rest := s.open[last].rest
		if rest > 0 && s.value >= 0 {
			s.at = s.at[:0]
			for _, sum := range s.open[1:] {
				s.at = append(s.at, sum.location)
			}
			s.values[s.value] = int64(min(rest, math.MaxInt64))
			if err := s.maker.sample(s.at, s.values); err != nil {
				return err
			}
			s.values[s.value] = 0
		}
		s.open = s.open[:last]
	}
	return nil
}

func (s *massifSampler) location(i int) (n uint32, err error) {
	if s.locations[i] == 0 {
		s.locations[i], err = s.maker.location(&s.x.frames[i].named)
	}
	return s.locations[i], err
}
