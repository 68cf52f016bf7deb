package valgrind

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/symbolize"
)

// appendRecord appends a record that cannot be copied, in Valgrind's layout.
func (x *rewriter) appendRecord(rec *Record, d *xmlDocument) {
	switch {
	case rec.Name == "" && textOf(rec) == nil:
		x.out = append(x.out, missingText...)
		return
	case rec.Name == "":
		x.out = appendXML(x.out, textOf(rec))
		return
	case len(rec.Items) == 0 && !rec.Continued && len(rec.open) == 0:
		if rec.Text == nil {
			x.out = append(appendName(append(x.out, '<'), rec.Name), "/>"...)
		} else {
			x.appendLeaf(rec.Name, rec.Text)
		}
		return
	}
	e := elementWriter{x: x, rec: rec, path: d.path}
	first := 0
	if rec.Continued {
		first = e.resumed()
	} else {
		e.begin(rec.Name)
	}
	for i := first; i < len(rec.Items); i++ {
		e.item(&rec.Items[i])
	}
	if len(rec.open) == 0 {
		if rec.Cut {
			x.out = append(x.out, missingRest...)
		}
		e.closeTo(0)
	} else {
		e.reach(rec.open)
	}
	d.path = e.path
}

type elementWriter struct {
	x    *rewriter
	rec  *Record
	path []string // open elements, outermost first
	next int      // index in rewriter.added of the next frames
}

// resumed handles the items that repeat the open elements of a continued record, and returns the
// index of the first other item. It first ends an open frame, since frames do not continue. If a
// stack continues, resumed writes its frames.
func (e *elementWriter) resumed() (first int) {
	if i := slices.Index(e.path, "frame"); i >= 0 {
		e.closeTo(i)
	}
	for first < len(e.rec.Items) && first < len(e.path)-1 {
		it := &e.rec.Items[first]
		if it.Leaf || it.Name != e.path[first+1] || it.Depth != first {
			break
		}
		if it.Name == "stack" {
			e.frames(it)
		}
		first++
	}
	return first
}

func (e *elementWriter) begin(name string) {
	if len(e.path) > 0 {
		e.indent()
	}
	e.x.out = append(appendName(append(e.x.out, '<'), name), '>')
	e.path = append(e.path, name)
}

// appendName appends the name of an element. It replaces colons, which would need a namespace.
func appendName(dst []byte, name string) []byte {
	return append(dst, strings.ReplaceAll(name, ":", "_")...)
}

// indent begins a line, indented by the number of open elements.
func (e *elementWriter) indent() {
	e.x.out = append(e.x.out, '\n')
	for range e.path {
		e.x.out = append(e.x.out, "  "...)
	}
}

// closeTo closes all but the outermost n elements.
func (e *elementWriter) closeTo(n int) {
	for i := len(e.path) - 1; i >= n; i-- {
		name := e.path[i]
		e.path = e.path[:i]
		e.indent()
		e.x.out = append(appendName(append(e.x.out, "</"...), name), '>')
	}
}

// reach closes and opens elements until exactly the elements in names are open. It stops before a
// frame: it opens neither a frame nor an element in a frame.
func (e *elementWriter) reach(names []string) {
	if i := slices.Index(names, "frame"); i >= 0 {
		names = names[:i]
	}
	n := 0
	for n < len(names) && n < len(e.path) && names[n] == e.path[n] {
		n++
	}
	e.closeTo(n)
	for _, name := range names[n:] {
		e.begin(name)
	}
}

func (e *elementWriter) item(it *Item) {
	e.closeTo(min(len(e.path), it.Depth+1))
	switch {
	case it.Name == "":
		e.indent()
		e.x.out = appendXML(e.x.out, bytes.TrimSpace(it.Text))
	case it.Leaf && it.Text == nil:
		e.indent()
		e.x.out = append(appendName(append(e.x.out, '<'), it.Name), "/>"...)
	case it.Leaf && it.Name == "rawtext":
		e.begin(it.Name)
		e.x.out = appendSection(append(e.x.out, '\n'), slices.Concat(lineEnd, it.Text, lineEnd))
		e.closeTo(len(e.path) - 1)
	case it.Leaf:
		e.indent()
		e.x.appendLeaf(it.Name, it.Text)
	default:
		e.begin(it.Name)
		if it.Name == "stack" {
			e.frames(it)
		}
	}
}

func (x *rewriter) appendLeaf(name string, text []byte) {
	x.out = append(appendName(append(x.out, '<'), name), '>')
	x.out = append(appendXML(x.out, text), "</"...)
	x.out = append(appendName(x.out, name), '>')
}

// frames writes the frames of a stack, and the frames that the symbolizer adds.
func (e *elementWriter) frames(it *Item) {
	for i := it.First; i < it.Last; i++ {
		f := &e.rec.Frames[i]
		var added []symbolize.Frame
		for e.next < len(e.x.added) && e.x.added[e.next].frame < i {
			e.next++
		}
		if e.next < len(e.x.added) && e.x.added[e.next].frame == i {
			added = e.x.added[e.next].frames
		}
		for j := range max(1, len(added)) {
			e.begin("frame")
			e.field("ip", addressText(f))
			e.field("obj", f.Obj)
			if j == len(added)-1 || len(added) == 0 {
				e.field("fn", f.Fn)
				e.field("dir", f.Dir)
				e.field("file", f.File)
				if f.Line != 0 {
					e.field("line", appendDecimal(nil, f.Line))
				}
			}
			if len(added) > 0 {
				separator := append([]byte{'\n'}, bytes.Repeat([]byte("  "), len(e.path))...)
				e.x.out = e.x.appendNames(e.x.out, &added[j], j < len(added)-1 || f.Fn == nil, separator)
			}
			e.closeTo(len(e.path) - 1)
		}
	}
}

// field writes a field of a frame, unless text is nil.
func (e *elementWriter) field(name string, text []byte) {
	if text != nil {
		e.indent()
		e.x.appendLeaf(name, text)
	}
}

// addressText returns the text of a frame's address, or nil if it has none.
func addressText(f *Frame) []byte {
	switch {
	case f.RawIP == nil:
		return appendAddress(nil, f.IP)
	case len(f.RawIP) == 0:
		return nil
	}
	return f.RawIP
}

// appendAddress appends an address as Valgrind writes it, such as 0x4A4304C.
func appendAddress(dst []byte, addr uint64) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, "0x"...)
	shift := 60
	for shift > 0 && addr>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		dst = append(dst, hex[addr>>shift&15])
	}
	return dst
}

func appendDecimal(dst []byte, n uint64) []byte { return strconv.AppendUint(dst, n, 10) }
