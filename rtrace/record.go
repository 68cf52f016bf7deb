package rtrace

type recordKind uint8

const (
	commentRecord    recordKind = iota // a comment, or any unknown line
	headerRecord                       // the line that begins a report
	mapRecord                          // a mapped file
	allocRecord                        // a call that allocated a resource
	freeRecord                         // a call that freed a resource
	argumentRecord                     // an argument of the preceding call
	frameRecord                        // a frame of the backtrace of the preceding calls
	contextRecord                      // the name of a context
	resourceRecord                     // a type of resource
	attachmentRecord                   // a file that belongs to the report
	blankRecord                        // an empty line, which may end a call
)

var kinds = [...]string{"comment", "header", "map", "alloc", "free", "argument", "frame", "context", "resource", "attachment", "blank"}

func (k recordKind) String() string { return kinds[k] }

// A record is a line of a report, or the lines of one frame. It and its slices are valid only
// during the call of visit.
type record struct {
	Kind recordKind
	Raw  []byte // the lines of the report, with their line ends

	// set for a comment that the next post-processing drops ("# ...")
	Temporary bool

	Fields []headerField // set for a header

	Path     []byte // set for a map and an attachment
	From, To uint64 // set for a map; To is exclusive

	// Set for a call. Joined is true if the call shares the preceding call's backtrace, as in a
	// compressed report.
	Index    uint64
	Contexts uint64 // a mask of bits
	Time     []byte // nil if the report has none
	Function []byte
	Type     []byte // nil if the report has none
	Size     int64  // bytes allocated
	ID       uint64 // ID of the resource
	Joined   bool

	Name  []byte // set for an argument, a context, a resource type, an attachment
	Value []byte // set for an argument

	Mask        uint64 // set for a context and a resource type
	Description []byte // set for a resource type
	Flags       []byte // set for a resource type, separated by '|'
	RefCount    bool   // resources of the type count their allocations

	// Set for a frame. Reported holds the texts after the address, one for each line with text,
	// inlined calls first.
	Frame    uint64 // number in the backtrace, from 0
	Addr     uint64 // a return address
	Reported [][]byte

	epoch int // epoch of the mappings of a kept frame; 0 for the present mappings
}

// A headerField is a key of a header with its value.
type headerField struct{ Key, Value []byte }

// headerValue returns the value of a header's field, or nil.
func (r *record) headerValue(key string) []byte {
	for i := range r.Fields {
		if string(r.Fields[i].Key) == key {
			return r.Fields[i].Value
		}
	}
	return nil
}

// end returns the line end of the record's last line: "\n", "\r\n", or nothing at the end of a
// report.
func (r *record) end() []byte { return r.Raw[len(bare(r.Raw)):] }

// bare returns a line without its line end.
func bare(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n > 1 && line[n-2] == '\r' {
			line = line[:n-2]
		}
	}
	return line
}

// A symbolText is the parsed text after the address of a frame:
//
//	in func() at a.c:12
//	func() from /lib/libc.so.6
//	ns::f(int) at b.cpp:7
//	from /lib/libc.so.6
//	in ??
type symbolText struct {
	function, module, file []byte // nil if missing
	line                   uint64
}

// parseSymbol parses the text after an address.
func parseSymbol(text []byte) (s symbolText) {
	text = trim(text)
	if i := lastIndex(text, " at "); i >= 0 {
		if file, line, ok := position(text[i+len(" at "):]); ok {
			s.file, s.line = file, line
			text = trim(text[:i])
		}
	} else if rest, ok := cutPrefix(text, "at "); ok {
		if file, line, ok := position(rest); ok {
			s.file, s.line = file, line
			text = nil
		}
	}
	if s.file == nil {
		if i := lastIndex(text, " from "); i >= 0 {
			s.module = trim(text[i+len(" from "):])
			text = trim(text[:i])
		} else if rest, ok := cutPrefix(text, "from "); ok {
			s.module = trim(rest)
			text = nil
		}
	}
	if rest, ok := cutPrefix(text, "in "); ok {
		text = trim(rest)
	}
	if n := len(text); n > 2 && text[0] == '(' && text[n-1] == ')' { // the form of old versions
		text = text[1 : n-1]
	}
	if len(text) > 0 && string(text) != "??" && string(text) != "??()" {
		s.function = text
	}
	return s
}

// position parses "a.c:12".
func position(text []byte) (file []byte, line uint64, ok bool) {
	i := lastIndex(text, ":")
	if i <= 0 {
		return nil, 0, false
	}
	line, ok = decimal(trim(text[i+1:]))
	return text[:i], line, ok
}
