package valgrind

import "github.com/symfilter/symfilter/report"

// A Record is one element of a report: a child of <valgrindoutput>, or text
// between such. It is valid during the call that hands it over.
type Record struct {
	// Name is the element's: "error", "clientmsg", "pid". "valgrindoutput"
	// begins a process, "/valgrindoutput" ends a document; "" is text that is in
	// no element.
	Name string

	Text   []byte  // of an element without others in it
	Items  []Item  // what is in the element, in the document's order
	Frames []Frame // of its stacks, in the document's order

	// Continued: the beginning of the element was so long that it has come as a
	// Record already. Cut: the rest of it is missing, or comes as another. One
	// without a name and text says that zeros stand in place of what is missing.
	Continued, Cut bool
}

// An Item is an element within a Record, or text between such ("").
type Item struct {
	Name  string
	Depth int    // 0: a child of the record's element
	Text  []byte // of an element without others in it

	// Leaf: nothing but Text is in it. Otherwise its children follow, one deeper.
	Leaf bool

	// The frames of a stack are Record.Frames[First:Last].
	First, Last int
}

// A Frame is one line of a stack.
type Frame struct {
	IP                 uint64 // where the instruction is: of callers, one byte before the return address
	RawIP              []byte // what stands in place of a number; nil where IP is one
	Obj, Fn, Dir, File []byte // nil where the report has none
	Line               uint64 // 0 where the report has none
}

// source returns the name of the source file.
func (f *Frame) source() string {
	if len(f.Dir) == 0 {
		return string(f.File)
	}
	return string(f.Dir) + "/" + string(f.File)
}

// Get returns the text of the first item at depth 0 of this name.
func (r *Record) Get(name string) []byte {
	for i := range r.Items {
		if it := &r.Items[i]; it.Depth == 0 && it.Name == name {
			return it.Text
		}
	}
	return nil
}

// number reads a number as Valgrind writes them: decimal, with or without
// thousands separators, or hex behind 0x.
func number(text []byte) (n uint64, ok bool) {
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		return report.Hex(text[2:])
	}
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			if n > (1<<64-1-9)/10 {
				return 0, false
			}
			n = n*10 + uint64(c-'0')
			ok = true
		case c != ',':
			return 0, false
		}
	}
	return n, ok
}
