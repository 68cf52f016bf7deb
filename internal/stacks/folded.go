package stacks

import (
	"bufio"
	"cmp"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// WriteFolded writes the stacks of p with one of their values to w, as the tools around
// flamegraph.pl read them: a line for each stack, with the names of its functions from the root to
// the leaf, separated by semicolons, then a blank and the value. Stacks of equal names are added
// up, and sorted by name; those with the value 0 are left out. A semicolon within a name becomes a
// colon, control characters become blanks. It returns the first error of w.
func (p *Profile) WriteFolded(w io.Writer, value int) error {
	f := &folder{p: p, w: bufio.NewWriterSize(w, sendSize)}
	f.tree(value)
	f.write()
	return f.w.Flush()
}

// A folder adds up stacks of equal names. It keeps them as a tree, so that the names of deep stacks
// are not repeated in memory.
type folder struct {
	p      *Profile
	w      *bufio.Writer
	names  []string
	nodes  []foldedNode
	number [32]byte
}

// A foldedNode is a stack. The first one is empty.
type foldedNode struct {
	up    uint32 // index of the stack without the leaf
	name  uint32 // index of the leaf's name
	value int64
}

func (f *folder) tree(value int) {
	p := f.p
	index := make(map[string]uint32)
	name := func(text string) uint32 {
		text = foldedName(text)
		n, ok := index[text]
		if !ok {
			n = uint32(len(f.names))
			f.names = append(f.names, text)
			index[text] = n
		}
		return n
	}
	frames := make([][]uint32, len(p.Locations)) // by location: its names, outermost first
	for i := range p.Locations {
		for _, text := range slices.Backward(p.frameNames(&p.Locations[i])) {
			frames[i] = append(frames[i], name(text))
		}
	}
	f.nodes = append(f.nodes, foldedNode{})
	type key struct{ up, name uint32 }
	children := make(map[key]uint32)
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Values[value] == 0 {
			continue
		}
		at := uint32(0)
		call := func(n uint32) {
			k := key{at, n}
			next, ok := children[k]
			if !ok {
				next = uint32(len(f.nodes))
				f.nodes = append(f.nodes, foldedNode{up: at, name: n})
				children[k] = next
			}
			at = next
		}
		for _, l := range slices.Backward(s.Stack) {
			for _, n := range frames[l-1] {
				call(n)
			}
		}
		if at == 0 {
			call(name("[empty stack]"))
		}
		f.nodes[at].value = plus(f.nodes[at].value, s.Values[value])
	}
}

// write writes the stacks of the tree, in the order of their names.
func (f *folder) write() {
	rank := make([]uint32, len(f.names))
	byName := make([]uint32, len(f.names))
	for i := range byName {
		byName[i] = uint32(i)
	}
	slices.SortFunc(byName, func(a, b uint32) int { return cmp.Compare(f.names[a], f.names[b]) })
	for i, n := range byName {
		rank[n] = uint32(i)
	}
	order := make([]uint32, len(f.nodes)-1) // the nodes by their parents, then by their names
	for i := range order {
		order[i] = uint32(i + 1)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := &f.nodes[a], &f.nodes[b]
		return cmp.Or(cmp.Compare(x.up, y.up), cmp.Compare(rank[x.name], rank[y.name]))
	})
	first := make([]uint32, len(f.nodes)+1) // by node: where its children begin in order
	for _, n := range order {
		first[f.nodes[n].up+1]++
	}
	for i := range f.nodes {
		first[i+1] += first[i]
	}
	type visit struct {
		node, next uint32 // next is the index in order of the next child
		length     int    // of line, without the node
	}
	var line []byte
	path := []visit{{0, first[0], 0}}
	for len(path) > 0 {
		at := &path[len(path)-1]
		if at.next == first[at.node+1] {
			line = line[:at.length]
			path = path[:len(path)-1]
			continue
		}
		n := order[at.next]
		at.next++
		path = append(path, visit{n, first[n], len(line)})
		if len(line) > 0 {
			line = append(line, ';')
		}
		line = append(line, f.names[f.nodes[n].name]...)
		if v := f.nodes[n].value; v != 0 {
			f.w.Write(line)
			f.w.Write(append(strconv.AppendInt(append(f.number[:0], ' '), v, 10), '\n')) // w keeps the error
		}
	}
}

// foldedName returns a name that cannot be mistaken for several names, or for the end of the line.
func foldedName(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == ';':
			return ':'
		case c < ' ' || c == 0x7f:
			return ' '
		}
		return c
	}, name)
}

// frameNames returns the names of the functions at a location, innermost first.
func (p *Profile) frameNames(l *Location) []string {
	if len(l.Lines) == 0 {
		return []string{p.addressName(l)}
	}
	names := make([]string, len(l.Lines))
	for i, line := range l.Lines {
		if line.Function != 0 {
			names[i] = p.Functions[line.Function-1].Name
		}
		if names[i] == "" {
			names[i] = p.addressName(l)
		}
	}
	return names
}

// addressName returns a name for a location without a function: its offset in the file, or its
// address.
func (p *Profile) addressName(l *Location) string {
	if l.Mapping != 0 {
		if m := &p.Mappings[l.Mapping-1]; m.File != "" && l.Address >= m.Start {
			return path.Base(m.File) + "+0x" + strconv.FormatUint(l.Address-m.Start+m.Offset, 16)
		}
	}
	return "0x" + strconv.FormatUint(l.Address, 16)
}
