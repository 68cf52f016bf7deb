package callgrind

// A Kind is the kind of a Record.
type Kind uint8

// The kinds of records.
const (
	Document Kind = iota // a profile begins, with tables of names of its own
	Part                 // a part begins: the costs of one thread, or of one period
	Header               // a line of the header, or the sums at the end, in Key and Value
	Cost                 // the cost of a place
	Call                 // calls from a place, and their inclusive cost
	Jump                 // jumps from a place to another
)

// A Place identifies code by its names and its position.
type Place struct {
	Object   Name // ob: the object file
	File     Name // fl: the source file of the function
	Function Name // fn: the name of the function
	Source   Name // fi, fe: the source file of the line, if it differs because of inlined code
	Position
}

// A Position is a position in a function.
type Position struct {
	Addr uint64 // address in the object file, as linked
	Line uint64 // from 1; 0 if unknown
}

// A Record is the content of one or two lines of a profile. It and its slices are valid only during
// the call of handle.
type Record struct {
	Kind Kind
	Line int // number of the line in the input, from 1

	Place
	Costs []int64 // by index in Reader.Events; inclusive costs for a Call

	// These are set for calls and jumps.
	To          Place
	Count       int64 // number of calls, or of jumps that were followed
	Executed    int64 // how often a conditional jump was executed, followed or not
	Conditional bool

	Key, Value []byte // set for a Header
}
