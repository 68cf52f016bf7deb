package valgrind

import "github.com/symfilter/symfilter/internal/report"

// A Record is a child element of <valgrindoutput>, or text between such elements. A Record and its
// slices are valid only during the call that receives it.
type Record struct {
	// Name is the name of the element: "error", "clientmsg", "pid". "valgrindoutput" begins a
	// process, "/valgrindoutput" ends a document. Text outside elements has the name "". A
	// Record with neither Name nor Text marks a run of NUL bytes, which replace lost bytes.
	Name string

	Text   []byte  // text of an element that contains only text; nil otherwise
	Items  []Item  // content of the element, in the document's order
	Frames []Frame // frames of its stacks, in the document's order

	Continued bool // an earlier Record has the beginning of this long element
	Cut       bool // the rest of the element is missing, or follows as another Record

	raw  []byte   // bytes of the element, or of this part of the element
	lead []byte   // blanks before raw in its line
	gap  int      // line ends between the preceding Record and this one
	open []string // names of the elements open at the end of raw, if the rest follows

	encoding string // encoding of the report if it is not supported; empty otherwise
}

// An Item is an element within a Record, or text between two such elements.
type Item struct {
	Name  string // "" for text between elements
	Depth int    // 0 for a child of the record's element
	Text  []byte // text of a leaf; nil otherwise
	Leaf  bool   // the element contains only Text; otherwise its children follow, one level deeper

	First, Last int // for a stack: its frames are Record.Frames[First:Last]
}

// A Frame is one line of a stack.
type Frame struct {
	IP                 uint64 // in callers, one byte before the return address
	RawIP              []byte // text of <ip> if not a number, empty without <ip>; nil if IP is set
	Obj, Fn, Dir, File []byte // nil if the report has none
	Line               uint64 // 0 if the report has none
}

// source returns the path of the source file.
func (f *Frame) source() string {
	if len(f.Dir) == 0 {
		return string(f.File)
	}
	return string(f.Dir) + "/" + string(f.File)
}

// Get returns the text of the first item of this name at depth 0, or nil if there is none.
func (r *Record) Get(name string) []byte {
	for i := range r.Items {
		if it := &r.Items[i]; it.Depth == 0 && it.Name == name {
			return it.Text
		}
	}
	return nil
}

// parseNumber reads a number of a report: decimal, with or without thousands separators, or hex
// after 0x.
func parseNumber(text []byte) (n uint64, ok bool) {
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
