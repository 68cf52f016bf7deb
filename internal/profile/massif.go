package profile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/stacks"
)

// A Massif file (massif/ms_main.c, coregrind/m_xtree.c) has a head, and snapshots of lines
// KEY=VALUE. Some snapshots end with a tree of the code that has allocated the memory. Each node
// has a line, indented by a blank for each level:
//
//	n2: 72792 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
//	 n1: 72704 0x48FB7B9: ??? (in /usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30)
//	  n0: 72704 0x401AB9F: ??? (in /usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2)
//	 n0: 88 in 2 places, all below massif's threshold (1.00%)
//
// A node has the number of its children, the bytes allocated by them and itself, and a frame. The
// children are callers of the frame. Reports of other tools by --xtree-memory have the same format.

// Limits of a Massif file.
const (
	maxMassifLine  = 1 << 20 // bytes of a line; longer lines are copied
	maxMassifDepth = 4096    // levels of a tree; Massif's --depth ends at 200
)

// isMassif reports whether head begins a Massif file. The first lines are the flags (desc:),
// the command (cmd:) and the unit of time (time_unit:).
func isMassif(head []byte) bool {
	first, rest, _ := bytes.Cut(head, []byte("\n"))
	if !bytes.HasPrefix(first, []byte("desc:")) {
		return false
	}
	second, third, _ := bytes.Cut(rest, []byte("\n"))
	return bytes.HasPrefix(second, []byte("cmd:")) && bytes.HasPrefix(third, []byte("time_unit:"))
}

func readMassif(f *traceFile, o *Options, m *memory) (document, error) {
	x := &massifFile{file: f, o: o, m: m, index: make(map[string]int)}
	if err := x.scan(x.learn); err != nil {
		return nil, err
	}
	x.reportDefects()
	return x, nil
}

// A massifFile is the index of a Massif file: its frames, snapshots and values.
type massifFile struct {
	file     *traceFile
	o        *Options
	m        *memory
	spelling spelling

	frames []massifFrame
	index  map[string]int  // index of a frame, by the text of its node
	all    *stacks.Profile // nil before stacks

	command string
	pages   bool // the current tree is of pages, allocated by system calls: --pages-as-heap=yes
	// by level, the index of the frame of the current node or its ancestor; -1 if the node has no
	// frame
	path    []int
	left    int    // nodes of the current tree not yet read
	unended bool   // the last line has no line end
	count   int    // snapshots so far
	number  string // number of the last snapshot, as in the file
	// number of the snapshot with the peak, or else of the last one with a tree; 0: none
	shown  int
	isPeak bool // shown is the snapshot with the peak
	// values of the trees of --xtree-memory; empty for Massif's own trees
	values []stacks.ValueType
}

type massifFrame struct {
	named
	inner int // index of the frame that this frame called first; -1 if unknown
	// texts that replace the text of its nodes, innermost first; nil before the first node
	texts []string
}

// A massifNode is a line of a tree.
type massifNode struct {
	level    int
	children uint64
	size     uint64
	text     []byte // the part after the size
	end      []byte // line end, or empty
}

func parseNode(line []byte) (n massifNode, ok bool) {
	for n.level < len(line) && line[n.level] == ' ' {
		n.level++
	}
	rest, ok := bytes.CutPrefix(line[n.level:], []byte("n"))
	if !ok {
		return n, false
	}
	children, rest, ok := bytes.Cut(rest, []byte(": "))
	if !ok {
		return n, false
	}
	size, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return n, false
	}
	n.text = bytes.TrimRight(rest, "\r\n")
	n.end = rest[len(n.text):]
	var err1, err2 error
	n.children, err1 = strconv.ParseUint(string(children), 10, 32)
	n.size, err2 = strconv.ParseUint(string(size), 10, 64)
	return n, err1 == nil && err2 == nil && n.level < maxMassifDepth
}

// scan passes each line of the file, with its line end, to the function take. n is nil for a line
// that is not a node, and for the parts of a long line.
func (x *massifFile) scan(take func(line []byte, n *massifNode) error) error {
	c := lines.Cutter{Max: maxMassifLine}
	buf := make([]byte, dhatBlock)
	var node massifNode // one for all lines
	pass := func(line []byte, kind lines.Kind) error {
		isNode := kind == lines.Whole
		if isNode {
			node, isNode = parseNode(line)
		}
		if !isNode {
			return take(line, nil)
		}
		return take(line, &node)
	}
	for {
		n, err := x.file.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			var line []byte
			var kind lines.Kind
			if line, kind, rest = c.Line(rest); kind == lines.None {
				continue
			}
			if err := pass(line, kind); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF:
			last, long := c.Finish()
			x.unended = len(last) > 0 || long
			if len(last) == 0 {
				return nil
			}
			return pass(last, lines.Whole)
		case err != nil:
			return err
		}
	}
}

func (x *massifFile) learn(line []byte, n *massifNode) error {
	if n == nil {
		x.learnHead(line)
		return nil
	}
	if n.level == 0 {
		x.left = 0
		x.pages = bytes.HasPrefix(n.text, []byte("(page allocation"))
		if !x.isPeak {
			x.shown = x.count
		}
		x.learnValue(n)
	} else {
		x.left--
	}
	x.left += int(n.children)
	for len(x.path) < n.level { // levels were skipped, which Massif never does
		x.path = append(x.path, -1)
	}
	i, err := x.frame(n)
	x.path = append(x.path[:n.level], i)
	return err
}

// frame returns the index of a node's frame, added if new, or -1 if the node has no frame.
func (x *massifFile) frame(n *massifNode) (int, error) {
	if i, ok := x.index[string(n.text)]; ok {
		return i, nil
	}
	raw, ok := parseFrame(n.text)
	if !ok {
		return -1, nil
	}
	raw.Exact = x.pages && n.level == 1
	// inner is the nearest ancestor with another address: a node with its parent's address is the
	// function into which the parent was inlined
	inner := -1
	for level := n.level - 1; level > 0; level-- {
		if inner = x.path[level]; inner < 0 || x.frames[inner].raw.Addr != raw.Addr {
			break
		}
	}
	i := len(x.frames)
	x.frames = append(x.frames, massifFrame{named: named{raw: raw}, inner: inner})
	x.index[string(n.text)] = i
	return i, x.m.take(entrySize + 2*len(n.text))
}

func (x *massifFile) learnHead(line []byte) {
	switch key, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte("=")); {
	case x.count == 0 && bytes.HasPrefix(line, []byte("cmd: ")) && x.command == "":
		x.command = string(bytes.TrimSpace(line[len("cmd: "):min(len(line), maxHeader)]))
	case string(key) == "snapshot":
		x.count++
		x.number = string(value[:min(len(value), 20)])
	case string(key) == "heap_tree" && string(value) == "peak" && !x.isPeak:
		x.shown, x.isPeak = x.count, true
	}
}

// resolve locates the objects of the frames, and looks up the frames' names.
func (x *massifFile) resolve(*resolver) error {
	n := newNamer(x.o, x.m, x.command)
	defer n.close()
	for i := range x.frames {
		f := &x.frames[i]
		if f.inner < 0 {
			n.learn(&f.raw, nil)
		} else {
			n.learn(&f.raw, &x.frames[f.inner].raw)
		}
	}
	for i := range x.frames {
		if err := n.name(&x.frames[i].named); err != nil {
			return err
		}
	}
	x.spelling = n.spelling
	return nil
}

// reportDefects reports the missing parts of the file.
func (x *massifFile) reportDefects() {
	switch {
	case x.left > 0:
		x.o.Report(fmt.Sprintf("the file is cut off in the tree of snapshot %.20s: at least %d nodes are missing", x.number, x.left))
	case x.unended:
		x.o.Report("the file is cut off within its last line")
	case x.shown == 0:
		x.o.Report("the file has no snapshot with a tree, and so no frames")
	}
}

// rewrite prints the file with names. If calls were inlined into a node's function, each inlined
// call becomes a node, the innermost first, and the node of the function comes last. The function's
// callers are indented further. All other bytes stay the same.
func (x *massifFile) rewrite(w io.Writer) error {
	if err := x.file.rewind(); err != nil {
		return err
	}
	out := massifWriter{x: x, w: buffered(w)}
	if err := x.scan(out.line); err != nil {
		return err
	}
	return out.w.Flush()
}

// A massifWriter prints a Massif file with names.
type massifWriter struct {
	x *massifFile
	w *bufio.Writer
	// by level of a node, the number of levels by which its children are indented further
	deeper []int
	b      []byte
}

func (out *massifWriter) line(line []byte, n *massifNode) error {
	if n == nil {
		_, err := out.w.Write(line)
		return err
	}
	shift := 0
	if n.level > 0 && n.level <= len(out.deeper) {
		shift = out.deeper[n.level-1]
	}
	texts, err := out.x.texts(n.text)
	if err != nil {
		return err
	}
	out.b = out.b[:0]
	last := max(0, len(texts)-1)
	for i, text := range texts {
		children, end := uint64(1), []byte("\n")
		if i == last {
			children, end = n.children, n.end
		}
		out.node(n.level+shift+i, children, n.size)
		out.b = append(append(out.b, text...), end...)
		if _, err := out.w.Write(out.b); err != nil {
			return err
		}
		out.b = out.b[:0]
	}
	if len(texts) == 0 {
		out.b = append(out.indent(shift), line...)
	}
	for len(out.deeper) < n.level {
		out.deeper = append(out.deeper, shift)
	}
	out.deeper = append(out.deeper[:n.level], shift+last)
	_, err = out.w.Write(out.b)
	return err
}

// indent returns out.b with n blanks after it.
func (out *massifWriter) indent(n int) []byte {
	for range n {
		out.b = append(out.b, ' ')
	}
	return out.b
}

// node appends the beginning of a node's line to out.b: the indentation, the number of children and
// the size.
func (out *massifWriter) node(level int, children, size uint64) {
	out.b = append(strconv.AppendUint(append(out.indent(level), 'n'), children, 10), ": "...)
	out.b = append(strconv.AppendUint(out.b, size, 10), ' ')
}

// texts returns the texts that replace a node's text, innermost first, or none. They are made
// once for each frame, since the snapshots repeat the frames.
func (x *massifFile) texts(text []byte) ([]string, error) {
	i, ok := x.index[string(text)]
	if !ok || len(x.frames[i].frames) == 0 {
		return nil, nil
	}
	f := &x.frames[i]
	if f.texts != nil {
		return f.texts, nil
	}
	f.texts = x.spelling.appendFrames(nil, &f.named)
	size := 0
	for i, text := range f.texts {
		f.texts[i] = string(escape.AppendText(nil, text, ""))
		size += tableSize + len(f.texts[i])
	}
	return f.texts, x.m.take(size)
}
