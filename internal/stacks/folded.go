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
	var names []string
	index := make(map[string]uint32)
	name := func(text string) uint32 {
		text = foldedName(text)
		n, ok := index[text]
		if !ok {
			n = uint32(len(names))
			names = append(names, text)
			index[text] = n
		}
		return n
	}
	frames := make([][]uint32, len(p.Locations))
	for i := range p.Locations {
		for _, text := range slices.Backward(p.frameNames(&p.Locations[i])) {
			frames[i] = append(frames[i], name(text))
		}
	}
	t := newTree(p, value, frames, name(emptyStack))
	out := bufio.NewWriterSize(w, sendSize)
	var line []byte
	t.walk(ranks(len(names), func(a, b uint32) int { return cmp.Compare(names[a], names[b]) }), func(stack []uint32, n int64) {
		line = line[:0]
		for i, f := range stack {
			if i > 0 {
				line = append(line, ';')
			}
			line = append(line, names[f]...)
		}
		line = append(strconv.AppendInt(append(line, ' '), n, 10), '\n')
		out.Write(line) // out keeps the error
	})
	return out.Flush()
}

// emptyStack is the frame of a stack without frames.
const emptyStack = "[empty stack]"

// ranks returns the rank of each number below n in the order of compare.
func ranks(n int, compare func(a, b uint32) int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, compare)
	rank := make([]uint32, n)
	for i, at := range order {
		rank[at] = uint32(i)
	}
	return rank
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
