package callgrind

type recordKind uint8

const (
	documentRecord recordKind = iota // a profile begins, with its own tables of names
	partRecord                       // a part begins: the costs of one thread, or of one period
	headerRecord                     // a header line, or the sums at the end, in Key and Value
	costRecord                       // the cost of a place
	callRecord                       // calls from a place, and their inclusive cost
	jumpRecord                       // jumps from one place to another
)

// A codePlace identifies code by its names and its position.
type codePlace struct {
	Object   nameID // ob: the object file
	File     nameID // fl: the source file of the function
	Function nameID // fn: the name of the function
	Source   nameID // fi, fe: the source file of the line: File, or the file of inlined code
	codePosition
}

// A codePosition is a position in a function.
type codePosition struct {
	Addr uint64 // address in the object file, as linked
	Line uint64 // from 1; 0 if unknown
}

// A record is the content of one or two lines of a profile. It and its slices are valid only during
// the call of handle.
type record struct {
	Kind recordKind
	Line int // number of the line in the input, from 1

	codePlace
	Costs []int64 // by index of the event; inclusive costs for a call

	// These are set for calls and jumps.
	To          codePlace
	Count       int64 // calls, or jumps that were followed
	Executed    int64 // executions of a conditional jump, followed or not
	Conditional bool

	Key, Value []byte // set for a header
}
