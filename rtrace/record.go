package rtrace

// A Kind says what a record is.
type Kind uint8

// The kinds of records.
const (
	Comment    Kind = iota // and all that is nothing else
	Header                 // of a report: the first line
	Map                    // a file was mapped
	Alloc                  // a call that allocated a resource
	Free                   // a call that freed one
	Argument               // of the call before
	Frame                  // of the backtrace of the calls before
	Context                // a name of a context
	Resource               // a type of resources
	Attachment             // a file that belongs to the report
	Blank                  // an empty line: the end of a call
)

var kinds = [...]string{"comment", "header", "map", "alloc", "free", "argument", "frame", "context", "resource", "attachment", "blank"}

func (k Kind) String() string { return kinds[k] }

// A Record is a line of a report, or the lines of one frame. It is valid during
// the call that hands it over.
type Record struct {
	Kind Kind
	Raw  []byte // the lines as they came, with their ends

	// Of a comment: the next post-processing drops it ("# ...").
	Temporary bool

	Fields []Field // of a header

	Path     []byte // of a map, and of an attachment
	From, To uint64 // of a map: To is not in it

	// Of a call. Joined: it shares the backtrace of the call before, as in a
	// compressed report.
	Index    uint64
	Contexts uint64 // bits
	Time     []byte // nil where the report has none
	Function []byte
	Type     []byte // nil where the report has none
	Size     int64  // of what was allocated
	ID       uint64 // of the resource
	Joined   bool

	Name  []byte // of an argument, a context, a resource type, an attachment
	Value []byte // of an argument

	Mask        uint64 // of a context, a resource type
	Description []byte // of a resource type
	Flags       []byte // of a resource type, between '|'
	RefCount    bool   // resources of the type count how often they were allocated

	// Of a frame. Said are the lines behind its address, inlined calls first; a
	// line that has nothing there is not in it.
	Frame uint64 // its number in the backtrace
	Addr  uint64 // a return address
	Said  [][]byte

	epoch int // of the mappings that a kept frame means; 0: those that hold
}

// A Field is a key of a header and its value.
type Field struct{ Key, Value []byte }

// Field returns the value of a header's field.
func (r *Record) Field(key string) []byte {
	for i := range r.Fields {
		if string(r.Fields[i].Key) == key {
			return r.Fields[i].Value
		}
	}
	return nil
}

// IsCall reports whether the record is a call.
func (r *Record) IsCall() bool { return r.Kind == Alloc || r.Kind == Free }

// end returns the end of the record's last line: "\n", "\r\n", or nothing where
// the report ends without.
func (r *Record) end() []byte { return r.Raw[len(bare(r.Raw)):] }

// bare returns a line without its end.
func bare(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		if n > 1 && line[n-2] == '\r' {
			line = line[:n-2]
		}
	}
	return line
}

// A said is what stands behind the address of a frame:
//
//	in func() at a.c:12
//	func() from /lib/libc.so.6
//	ns::f(int) at b.cpp:7
//	from /lib/libc.so.6
//	in ??
type said struct {
	function, module, file []byte // nil where it does not say so
	line                   uint64
}

// parseSaid takes apart what stands behind an address.
func parseSaid(text []byte) (s said) {
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
	if n := len(text); n > 2 && text[0] == '(' && text[n-1] == ')' { // as old versions have it
		text = text[1 : n-1]
	}
	if len(text) > 0 && string(text) != "??" && string(text) != "??()" {
		s.function = text
	}
	return s
}

// position takes apart "a.c:12".
func position(text []byte) (file []byte, line uint64, ok bool) {
	i := lastIndex(text, ":")
	if i <= 0 {
		return nil, 0, false
	}
	line, ok = decimal(trim(text[i+1:]))
	return text[:i], line, ok
}
