package callgrind

// A Kind is what a record says.
type Kind uint8

// The kinds of records.
const (
	Document Kind = iota // a profile begins, with tables of names of its own
	Part                 // a part begins: a thread, or a time
	Header               // a line of the header, or the sums at the end: Key, Value
	Cost                 // the cost of a place
	Call                 // the cost of what was called from a place
	Jump                 // a place jumped to another
)

// A Place is where code is.
type Place struct {
	Object   Name // ob: the file of the code
	File     Name // fl: the source file of the function
	Function Name // fn
	Source   Name // fi, fe: the source file of the line, where code is inlined
	Position
}

// A Position is a place in a function.
type Position struct {
	Addr uint64 // as linked in the object's file
	Line uint64 // 1-based; 0: not known
}

// A Record is what a line of a profile says, or two of them. It is valid during
// the call that hands it over.
type Record struct {
	Kind Kind
	Line int // its number in the input, 1-based

	Place
	Costs []int64 // one for each of Reader.Events; of a Call, of all that it called

	// Of calls and jumps.
	To          Place
	Count       int64 // how often it was called, or jumped to
	Executed    int64 // how often a conditional jump was decided
	Conditional bool

	Key, Value []byte // of a Header
}
