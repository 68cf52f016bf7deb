package demangle

import "strings"

// A Quick demangles common C++ names to the text of ToAST and ASTToString in LLVM's style. It
// supports nested names, templates, packs, substitutions, pointers, functions and lambdas. It
// writes while it reads, without a tree, into memory that it reuses. The zero value is ready for
// use. It is not safe for concurrent use.
type Quick struct {
	s      string
	at     int
	failed bool // at is then the end of s, so that nothing more is read
	depth  int
	parts  int

	b     []byte  // the demangled name so far
	side  []byte  // copies of the texts of subs whose text in b changes
	subs  []piece // substitution candidates
	args  []piece // template arguments: a stack of lists
	elems []piece // substitution candidates, in order

	active    span // args of the template whose parameters may be named
	templates int  // number of template functions being read; parameters are supported if it is 1
	scope     int  // number of the enclosing template function; 0 outside of one
	scopes    int
	closures  int  // lambdas being read
	cast      bool // in the type of a conversion operator
	element   int  // index of the current element of an expansion; none outside of expansions
	packed    bool // the expansion has named a pack
	pack      span // elements of the pack that the expansion has named
	repeated  bool // the current element of an expansion is not the first
	uses      use  // what the text of the current type depends on
}

// Show returns the demangled name. suffix is the end of the mangled name; it is empty or begins
// with a dot. ok is false if the library may return another name, for example for expressions and
// for invalid names.
func (q *Quick) Show(mangled string) (shown, suffix string, ok bool) {
	if suffix, ok = q.read(mangled); ok {
		shown = string(q.b)
	}
	return shown, suffix, ok
}

// Can reports whether Show returns ok for the name.
func (q *Quick) Can(mangled string) bool {
	_, ok := q.read(mangled)
	return ok
}

func (q *Quick) read(mangled string) (suffix string, ok bool) {
	if !strings.HasPrefix(mangled, "_Z") || len(mangled) > MaxMangled {
		return "", false
	}
	*q = Quick{s: mangled, at: 2, element: none, b: q.b[:0], side: q.side[:0], subs: q.subs[:0], args: q.args[:0], elems: q.elems[:0]}
	q.encoding()
	suffix = q.s[q.at:]
	q.s = "" // s may be in a mapped file, which may be closed before the next call
	if q.failed || !clones(suffix) {
		return "", false
	}
	return suffix, true
}

const (
	maxQuickShown = 1 << MaxShown // bytes; the library cuts longer names
	maxQuickSide  = 64 << 10      // bytes of side
	maxQuickDepth = 48            // nested types and names, which take space on the stack
	maxQuickParts = 4 << 10       // types, names and arguments; repeated ones in expansions count

	none = -1
)

// A span is the elements [lo,hi) of a list.
type span struct{ lo, hi int }

// A use is a set of things on which the text of a part of a mangled name depends. Elsewhere in the
// name, an equal part may have another text if one of these things differs.
type use uint8

const (
	usesTemplate use = 1 << iota // template arguments of its scope
	usesPack                     // the element of an expansion
	usesAuto                     // a parameter of a lambda
)

// A form is a set of properties of a type or name. They determine how text is added to it.
type form uint16

const (
	lvalue   form = 1 << iota // ends with &
	rvalue                    // ends with &&
	function                  // a function, not a pointer to a function
	array
	parted   // additions are inserted at mid
	pack     // elems has its elements
	expanded // has several types, one for each element of a pack
	empty    // an empty pack, or the expansion of one
	special  // a name that ends in a conversion, constructor or destructor
)

// several has the forms of a piece that stands for no type, or may stand for more than one.
const several = pack | expanded | empty

// An ident is the range [lo,hi) of the part of a class's name that the names of its constructors
// repeat.
type ident struct{ lo, hi int32 }

// A piece is the text [lo,hi) of a type or a name: in Quick.side if beside is set, otherwise in
// Quick.b.
type piece struct {
	lo, mid, hi int32
	last        ident
	elems       span
	scope       int
	param       int16 // 1 + the number of the template parameter, if the piece is one; else 0
	form        form
	cv          uint8 // set of qualifiers at its end; see cvTexts
	uses        use
	beside      bool // in side
}

func (q *Quick) fail() {
	q.failed = true
	q.at = len(q.s)
}

// peek returns the next byte, or 0 at the end.
func (q *Quick) peek() byte { return q.ahead(0) }

func (q *Quick) ahead(n int) byte {
	if q.at+n >= len(q.s) {
		return 0
	}
	return q.s[q.at+n]
}

func (q *Quick) take(c byte) bool {
	if q.peek() != c {
		return false
	}
	q.at++
	return true
}

func (q *Quick) need(c byte) {
	if !q.take(c) {
		q.fail()
	}
}

func (q *Quick) write(s string) {
	if len(q.b)+len(s) > maxQuickShown {
		q.fail()
		return
	}
	q.b = append(q.b, s...)
}

// enter begins a name, type or argument; leave ends it. enter fails if there are too many of these,
// or if they are nested too deeply.
func (q *Quick) enter() {
	q.depth++
	q.parts++
	if q.depth > maxQuickDepth || q.parts > maxQuickParts {
		q.fail()
	}
}

func (q *Quick) leave() { q.depth-- }

// A head is the part of a name before its parameters.
type head struct {
	template  bool // it ends with template arguments
	special   bool // it ends with a conversion, constructor or destructor, then perhaps arguments
	inherited bool // it ends with an inherited constructor, of an unknown template
	args      span
	last      ident
	local     bool
	quals     string // qualifiers of the method
}

// encoding reads a function with its parameters, a variable, or a special name.
func (q *Quick) encoding() {
	if q.enter(); q.failed {
		return
	}
	defer q.leave()
	start, args, elems, uses, closures := len(q.b), len(q.args), len(q.elems), q.uses, q.closures
	defer func() { q.args, q.elems, q.uses, q.closures = q.args[:args], q.elems[:elems], uses, closures }()
	if q.uses, q.closures = 0, 0; q.element != none {
		q.fail()
		return
	}
	if c := q.peek(); c == 'T' || c == 'G' {
		q.special()
		return
	}
	h := q.name()
	if q.failed {
		return
	}
	if c := q.peek(); c == 0 || c == 'E' {
		if h.quals != "" {
			q.fail()
		}
		return
	}
	active, templates, scope := q.active, q.templates, q.scope
	q.active = span{}
	if h.template {
		q.active = h.args
	}
	if h.template || h.inherited {
		q.templates++
		q.scopes++
		q.scope = q.scopes
	}
	if h.template && !h.special {
		q.returned(start, args, elems)
	}
	q.parameters(false)
	q.write(h.quals)
	q.active, q.templates, q.scope = active, templates, scope
}

// returned reads the result type of a function. It inserts the type before the function's name,
// which begins at offset start of the output.
func (q *Quick) returned(start, args, elems int) {
	n := len(q.b)
	t := q.typ()
	if q.failed || t.form&(parted|several) != 0 {
		q.fail()
		return
	}
	size, name := len(q.b)-n, n-start
	q.write(" ")
	q.side = append(q.side, q.b[n:n+size]...)
	copy(q.b[start+size+1:], q.b[start:n])
	copy(q.b[start:], q.side[len(q.side)-size:])
	q.b[start+size] = ' '
	q.side = q.side[:len(q.side)-size]
	for _, list := range [][]piece{q.subs, q.args[args:], q.elems[elems:]} {
		for i := range list {
			switch p := &list[i]; {
			case p.beside || int(p.lo) < start:
			case int(p.lo) < n:
				p.move(size + 1)
			default:
				p.move(-name)
			}
		}
	}
}

func (p *piece) move(by int) {
	p.lo += int32(by)
	p.mid += int32(by)
	p.hi += int32(by)
	if p.last.hi > 0 { // last is set
		p.last.lo += int32(by)
		p.last.hi += int32(by)
	}
}

func (q *Quick) parameters(lambda bool) {
	q.write("(")
	if q.peek() == 'v' {
		if q.at++; q.parametersEnd() {
			q.write(")")
			return
		}
		q.at--
	}
	if q.parametersEnd() {
		q.fail() // at least one is required
	}
	for first := true; !q.failed && !q.parametersEnd(); {
		at := len(q.b)
		if !first {
			q.write(", ")
		}
		switch t := q.typ(); {
		case lambda && t.form&(parted|empty) != 0:
			q.fail()
		case t.form&empty != 0:
			q.b = q.b[:min(at, len(q.b))]
		default:
			first = false
		}
	}
	q.write(")")
}

func (q *Quick) parametersEnd() bool {
	switch q.peek() {
	case 0, 'E', '.':
		return true
	}
	return false
}

// special reads a special name, such as a vtable, a thunk or a guard variable.
func (q *Quick) special() {
	code := q.s[q.at:min(q.at+2, len(q.s))]
	q.at += len(code)
	switch code {
	case "TV":
		q.write("vtable for ")
	case "TT":
		q.write("VTT for ")
	case "TI":
		q.write("typeinfo for ")
	case "TS":
		q.write("typeinfo name for ")
	case "Th", "Tv":
		if q.number(); code == "Tv" {
			q.need('_')
			q.number()
		}
		q.need('_')
		if code == "Tv" {
			q.write("virtual thunk to ")
		} else {
			q.write("non-virtual thunk to ")
		}
		q.encoding()
		return
	case "GV":
		q.write("guard variable for ")
		if h := q.name(); h.quals != "" {
			q.fail()
		}
		return
	default:
		q.fail()
	}
	if t := q.typ(); t.form&empty != 0 {
		q.fail()
	}
}

// number skips a number; it may be negative.
func (q *Quick) number() {
	q.take('n')
	if !isDigit(q.peek()) {
		q.fail()
	}
	for n := 0; isDigit(q.peek()); n++ {
		if q.at++; n > 8 { // the library fails above 31 bits
			q.fail()
		}
	}
}

// compact reads a number with a final '_', and returns the number plus 1; 0 if there are no digits.
func (q *Quick) compact() int {
	if q.take('_') {
		return 0
	}
	if !isDigit(q.peek()) {
		q.fail()
	}
	n := 0
	for isDigit(q.peek()) && n < 1<<20 {
		n = 10*n + int(q.peek()-'0')
		q.at++
	}
	q.need('_')
	return n + 1
}

// clones reports whether s is empty, or has only suffixes that the library accepts, such as
// ".part.0.cold".
func clones(s string) bool {
	digits := func(c byte) bool { return isDigit(c) }
	word := func(c byte) bool { return isLower(c) || isDigit(c) || c == '_' }
	skip := func(of func(byte) bool) bool {
		if len(s) < 2 || s[0] != '.' || !of(s[1]) {
			return false
		}
		for s = s[1:]; len(s) > 0 && of(s[0]); {
			s = s[1:]
		}
		return true
	}
	for len(s) > 0 {
		if !skip(word) {
			return false
		}
		for skip(digits) {
		}
	}
	return true
}
