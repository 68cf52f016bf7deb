package stacks

import (
	"bufio"
	"cmp"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
)

// WriteFolded writes the stacks of p to w, with the value of the given index, for tools such as
// flamegraph.pl. Each stack has a line: the names of its functions from the root to the leaf,
// separated by semicolons, then a blank and the value. Stacks with the same names are merged, and
// their values added up; the lines are sorted by name. Stacks with the value 0 are left out. A
// semicolon within a name becomes a colon, and control characters are escaped, as in \x0a.
// WriteFolded returns the first error of w.
func (p *Profile) WriteFolded(w io.Writer, value int) error {
	return writeFolded(w, value, p)
}

// WriteFoldedPair writes the stacks of before and after with one of their values to w, like
// [Profile.WriteFolded]. Each line has two numbers: the values in before and in after.
// flamegraph.pl draws their difference.
func WriteFoldedPair(w io.Writer, before, after *Profile, value int) error {
	return writeFolded(w, value, before, after)
}

func writeFolded(w io.Writer, value int, profiles ...*Profile) error {
	var f folder
	t := newTree(profiles, value, f.frames, f.name(emptyStack))
	rank := ranks(len(f.names), func(a, b uint32) int { return cmp.Compare(f.names[a], f.names[b]) })
	out := bufio.NewWriterSize(w, sendSize)
	var b []byte
	t.walk(rank, func(stack []uint32, values pair) { // out keeps the error
		for i, n := range stack {
			if i > 0 {
				out.WriteByte(';')
			}
			out.WriteString(f.names[n])
		}
		b = b[:0]
		for side := range profiles {
			b = strconv.AppendInt(append(b, ' '), values[side], 10)
		}
		out.Write(append(b, '\n'))
	})
	return out.Flush()
}

// FoldedWeight returns a weight for each location of p, at the index of its number minus 1. The
// weight is 1, plus 1 for each 128 bytes of the location's names. Callers set Graph.Weights to the
// result, to bound the output of WriteFolded.
func (p *Profile) FoldedWeight() []int {
	weights := make([]int, len(p.Locations))
	for i := range p.Locations {
		n := 0
		for _, name := range p.frameNames(&p.Locations[i]) {
			n += len(name)
		}
		weights[i] = 1 + n/128
	}
	return weights
}

// A folder numbers the names of folded stacks.
type folder struct {
	names []string
	index map[string]uint32
}

func (f *folder) name(text string) uint32 {
	text = foldedName(text)
	n, ok := f.index[text]
	if !ok {
		if f.index == nil {
			f.index = make(map[string]uint32)
		}
		n = uint32(len(f.names))
		f.names = append(f.names, text)
		f.index[text] = n
	}
	return n
}

// frames returns the names at each location of p, outermost first.
func (f *folder) frames(p *Profile) [][]uint32 {
	frames := make([][]uint32, len(p.Locations))
	for i := range p.Locations {
		for _, text := range slices.Backward(p.frameNames(&p.Locations[i])) {
			frames[i] = append(frames[i], f.name(text))
		}
	}
	return frames
}

// emptyStack is the frame of a stack without frames.
const emptyStack = "[empty stack]"

// foldedName replaces semicolons in name, and escapes line ends and characters that harm a
// terminal.
func foldedName(name string) string {
	return string(escape.AppendText(nil, strings.ReplaceAll(name, ";", ":"), ""))
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
