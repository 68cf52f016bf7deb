package demangle

import "strings"

// quickTypes has the names of types with a one-letter code, 'a' first.
var quickTypes = [26]string{0: "signed char", 'b' - 'a': "bool", 'c' - 'a': "char", 'd' - 'a': "double",
	'e' - 'a': "long double", 'f' - 'a': "float", 'g' - 'a': "__float128", 'h' - 'a': "unsigned char", 'i' - 'a': "int",
	'j' - 'a': "unsigned int", 'l' - 'a': "long", 'm' - 'a': "unsigned long", 'n' - 'a': "__int128",
	'o' - 'a': "unsigned __int128", 's' - 'a': "short", 't' - 'a': "unsigned short", 'v' - 'a': "void",
	'w' - 'a': "wchar_t", 'x' - 'a': "long long", 'y' - 'a': "unsigned long long", 'z' - 'a': "..."}

func (q *Quick) typ() (t piece) {
	if q.enter(); q.failed {
		return t
	}
	defer q.leave()
	uses, subs, args, elems := q.uses, len(q.subs), len(q.args), len(q.elems)
	q.uses = 0
	start := len(q.b)

	cv := q.cv()
	quals := cvTexts[cv]
	method := ""
	if q.peek() == 'D' && q.ahead(1) == 'o' && cv == 0 {
		q.at += 2
		method = " noexcept"
	}
	c := q.peek()
	candidate := true
	switch {
	case isLower(c) && c != 'u' && quickTypes[c-'a'] != "":
		q.at++
		q.write(quickTypes[c-'a'])
		candidate = false
	case c == 'F':
		t = q.function()
		if method += quals; method != "" {
			q.write(method)
			candidate = false
		}
		quals = ""
	case isDigit(c) || c == 'N' || c == 'Z':
		h := q.name()
		if h.quals != "" {
			q.fail()
		}
		t.last = h.last
	case c == 'A':
		t = q.array()
	case c == 'M':
		t = q.member(subs)
	case c == 'T':
		t = q.parameter()
		if q.peek() == 'I' {
			q.fail()
		}
	case c == 'S':
		t, candidate = q.substituted()
	case c == 'P' || c == 'R' || c == 'O':
		q.at++
		t = q.pointer(c, q.typ(), subs)
	case c == 'U' && q.ahead(1) == 'l':
		q.closure()
		t.last = ident{int32(start), int32(len(q.b))}
		candidate = false
	case c == 'U' && q.ahead(1) == 't':
		q.unnamed()
		t.last = ident{int32(start), int32(len(q.b))}
		candidate = false
	case c == 'D' && q.ahead(1) == 'p':
		q.at += 2
		t = q.expansion()
	case c == 'D':
		candidate = false
		q.at += 2
		switch q.s[min(q.at, len(q.s))-1] {
		case 'a':
			q.write("auto")
		case 'n':
			q.write("std::nullptr_t")
		case 'u':
			q.write("char8_t")
		case 's':
			q.write("char16_t")
		case 'i':
			q.write("char32_t")
		default:
			q.fail()
		}
	default:
		q.fail()
	}
	if method != "" && c != 'F' || q.failed {
		q.fail()
		return t
	}
	t.lo, t.hi, t.uses = int32(start), int32(len(q.b)), q.uses
	if candidate {
		q.candidate(t)
	}
	t.param = 0
	if quals != "" {
		switch {
		case t.form&(function|array|several) != 0 || t.cv != 0 && t.cv != cv:
			q.fail()
		case t.cv == cv:
		case t.form&parted != 0:
			q.insert(int(t.mid), quals, subs)
			t.mid += int32(len(quals))
		default:
			q.write(quals)
		}
		t.cv, t.form, t.last = cv, t.form&parted, ident{}
		t.hi = int32(len(q.b))
		q.candidate(t)
	} else if method != "" {
		q.candidate(t)
	}
	q.args, q.elems = q.args[:args], q.elems[:elems]
	q.uses |= uses
	return t
}

// candidate adds p to the substitution candidates, except in later elements of an expansion: they
// repeat the candidates of the first. It copies text that may still change.
func (q *Quick) candidate(p piece) {
	if q.repeated {
		return
	}
	p.scope, p.uses = q.scope, q.uses
	if p.form&(parted|several) != 0 {
		q.aside(&p)
	}
	q.subs = append(q.subs, p)
}

func (q *Quick) aside(p *piece) {
	n := len(q.side)
	if p.beside {
		return
	}
	if n+int(p.hi-p.lo) > maxQuickSide {
		q.fail()
		return
	}
	q.side = append(q.side, q.b[p.lo:p.hi]...)
	p.move(n - int(p.lo))
	p.beside = true
}

// insert inserts text in b at an offset. It moves the candidates in q.subs[subs:] at or after the
// offset.
func (q *Quick) insert(at int, text string, subs int) {
	if q.write(text); q.failed {
		return
	}
	copy(q.b[at+len(text):], q.b[at:])
	copy(q.b[at:], text)
	for i := range q.subs[subs:] {
		if p := &q.subs[subs+i]; !p.beside && int(p.lo) >= at {
			p.move(len(text))
		}
	}
}

// pointer turns t, the last type in b, into a pointer (c is P) or a reference (R or O).
func (q *Quick) pointer(c byte, t piece, subs int) piece {
	if t.form&several != 0 {
		q.fail()
	}
	if c != 'P' && t.form&(lvalue|rvalue) != 0 {
		if t.uses == 0 { // the library simplifies a repeated node only once
			q.fail()
		}
		if c == 'R' && t.form&rvalue != 0 {
			if t.form&parted != 0 {
				q.fail()
				return t
			}
			q.b = q.b[:len(q.b)-1]
			t.form = lvalue
			// The text of the candidates from subs on has changed. Only template parameters are
			// allowed, since substitution writes their arguments again.
			for i := range q.subs[subs:] {
				if p := &q.subs[subs+i]; p.param == 0 {
					q.fail()
				} else {
					*p = piece{param: p.param, beside: true}
				}
			}
		}
		return piece{form: t.form, mid: t.mid}
	}
	sign, form := "*", form(0)
	switch c {
	case 'R':
		sign, form = "&", lvalue
	case 'O':
		sign, form = "&&", rvalue
	}
	switch {
	case t.form&function != 0:
		q.insert(int(t.mid), "("+sign+")", subs)
		return piece{form: form | parted, mid: t.mid + 1 + int32(len(sign))}
	case t.form&array != 0:
		q.insert(int(t.mid), "("+sign+") ", subs)
		return piece{form: form | parted, mid: t.mid + 1 + int32(len(sign))}
	case t.form&parted != 0:
		q.insert(int(t.mid), sign, subs)
		return piece{form: form | parted, mid: t.mid + int32(len(sign))}
	}
	q.write(sign)
	return piece{form: form}
}

func (q *Quick) function() (t piece) {
	q.at++
	if q.peek() == 'Y' {
		q.fail()
	}
	if r := q.typ(); r.form&(parted|several) != 0 {
		q.fail()
	}
	q.write(" ")
	t.mid = int32(len(q.b))
	t.form = function | parted
	q.parameters(false)
	q.need('E')
	return t
}

// array reads the type of an array of known size.
func (q *Quick) array() (t piece) {
	q.at++
	from := q.at
	for isDigit(q.peek()) {
		q.at++
	}
	size := q.s[from:q.at]
	if size == "" {
		q.fail()
	}
	q.need('_')
	if e := q.typ(); e.form&(parted|several) != 0 {
		q.fail()
	}
	q.write(" ")
	t.mid = int32(len(q.b))
	t.form = array | parted
	q.write("[")
	q.write(size)
	q.write("]")
	return t
}

// member reads a pointer to a member of a class. The mangled name has the class before the member's
// type. The output has the class after the type or, for a method, within the type.
func (q *Quick) member(subs int) (t piece) {
	q.at++
	start := len(q.b)
	if c := q.typ(); c.form&(parted|several) != 0 {
		q.fail()
	}
	n := len(q.b)
	m := q.typ()
	if q.failed || m.form&(several|array) != 0 || m.form&parted != 0 && m.form&function == 0 {
		q.fail()
		return t
	}
	// the class and the member change places in b, so each candidate needs a copy of its text
	for i := range q.subs[subs:] {
		q.aside(&q.subs[subs+i])
	}
	class, member := string(q.b[start:n]), string(q.b[n:])
	q.b = q.b[:start]
	if m.form&function == 0 {
		q.write(member)
		q.write(" ")
		q.write(class)
		q.write("::*")
		return piece{}
	}
	at := int(m.mid) - n
	q.write(member[:at])
	q.write("(")
	q.write(class)
	q.write("::*")
	t = piece{form: parted, mid: int32(len(q.b))}
	q.write(")")
	q.write(member[at:])
	return t
}

func (q *Quick) parameter() piece {
	q.at++
	return q.argument(q.compact())
}

// argument writes argument i of the enclosing template, or "auto" for a parameter of a generic
// lambda.
func (q *Quick) argument(i int) (t piece) {
	if q.closures > 0 && q.templates == 0 && !q.cast {
		q.write("auto")
		q.uses |= usesAuto
		return piece{param: int16(min(i, 1<<14) + 1)}
	}
	if q.templates != 1 || q.closures > 0 || q.cast || i >= q.active.hi-q.active.lo {
		q.fail()
		return t
	}
	q.uses |= usesTemplate
	arg := q.args[q.active.lo+i]
	if arg.form&pack != 0 {
		if q.element == none || q.packed && q.pack != arg.elems {
			q.fail()
			return t
		}
		q.uses |= usesPack
		q.pack, q.packed = arg.elems, true
		if arg.elems.hi == arg.elems.lo {
			return piece{param: int16(i + 1)}
		}
		arg = q.elems[arg.elems.lo+q.element]
	}
	if arg.form&several != 0 {
		q.fail()
		return t
	}
	t = q.copied(arg)
	t.param = int16(i + 1)
	return t
}

// copied writes the text of p again, and returns the new piece.
func (q *Quick) copied(p piece) piece {
	from := q.b
	if p.beside {
		from = q.side
	}
	if len(q.b)+int(p.hi-p.lo) > maxQuickShown {
		q.fail()
		return piece{}
	}
	at := len(q.b)
	q.b = append(q.b, from[p.lo:p.hi]...)
	p.move(at - int(p.lo))
	p.beside = false
	return p
}

// expansion reads a type, and writes the type once for each element of its pack.
func (q *Quick) expansion() (t piece) {
	if q.element != none {
		q.fail()
		return t
	}
	at, start, subs := q.at, len(q.b), len(q.subs)
	q.element, q.packed, q.pack = 0, false, span{}
	for q.element == 0 || q.element < q.pack.hi-q.pack.lo {
		q.at = at
		if q.element > 0 {
			q.write(", ")
			q.repeated = true
		}
		if e := q.typ(); e.form&several != 0 || !q.packed {
			q.fail()
		}
		if q.failed {
			return t
		}
		q.element++
	}
	q.element, q.repeated = none, false
	q.uses &^= usesPack
	if q.pack.hi > q.pack.lo {
		return piece{form: expanded}
	}
	q.b = q.b[:start]
	for i := range q.subs[subs:] {
		p := &q.subs[subs+i]
		if p.uses&usesPack == 0 {
			q.fail() // the candidate's text is lost
		}
		*p = piece{param: p.param, uses: usesPack, beside: true}
	}
	return piece{form: expanded | empty}
}

// standard returns the name in namespace std for the abbreviation S followed by c; "" if there is
// none.
func standard(c byte) string {
	switch c {
	case 'a':
		return "allocator"
	case 'b':
		return "basic_string"
	case 's':
		return "string"
	case 'i':
		return "istream"
	case 'o':
		return "ostream"
	case 'd':
		return "iostream"
	}
	return ""
}

// substituted reads a substitution as a type. candidate reports whether the type is a new
// substitution candidate.
func (q *Quick) substituted() (t piece, candidate bool) {
	c := q.ahead(1)
	if c == '_' || isDigit(c) || isUpper(c) {
		if t = q.substitution(false); q.peek() != 'I' {
			return t, false
		}
		if t.form&^special != 0 || t.param != 0 {
			q.fail()
		}
		q.arguments()
		return piece{last: t.last}, true
	}
	h := q.name()
	return piece{last: h.last}, c == 't' || h.template
}

// substitution reads a reference to an earlier candidate, or to a name of the standard library.
// inScope is true in a nested name.
func (q *Quick) substitution(inScope bool) (p piece) {
	q.at++
	c := q.peek()
	if c == '_' || isDigit(c) || isUpper(c) {
		i := q.sequence()
		if i >= len(q.subs) {
			q.fail()
			return p
		}
		if p = q.subs[i]; p.param > 0 {
			return q.argument(int(p.param) - 1)
		}
		if p.uses&usesPack != 0 || p.form&several != 0 ||
			p.uses&usesAuto != 0 && (q.closures == 0 || q.templates != 0) ||
			p.uses&usesTemplate != 0 && (p.scope != q.scope || q.closures > 0 || q.cast) {
			q.fail()
			return p
		}
		q.uses |= p.uses
		return q.copied(p)
	}
	q.at++
	name := standard(c)
	ok := name != ""
	if c == 't' && inScope {
		name, ok = "std", true
	} else {
		q.write("std::")
	}
	if next := q.peek(); !ok || next == 'B' || inScope && (next == 'C' || next == 'D') && strings.IndexByte("siod", c) >= 0 {
		q.fail()
		return p
	}
	p.lo = int32(len(q.b))
	q.write(name)
	p.hi = int32(len(q.b))
	p.last = ident{p.lo, p.hi}
	return p
}

func (q *Quick) sequence() int {
	n := 0
	for !q.take('_') {
		switch c := q.peek(); {
		case n >= 1<<16:
			q.fail()
		case isDigit(c):
			n = 36*n + int(c-'0')
		case isUpper(c):
			n = 36*n + int(c-'A') + 10
		default:
			q.fail()
		}
		if q.failed {
			return 0
		}
		q.at++
		if q.peek() == '_' {
			n++
		}
	}
	return n
}

// arguments reads template arguments. It leaves them in q.args.
func (q *Quick) arguments() span {
	q.at++
	if n := len(q.b); n > 0 && q.b[n-1] == '<' {
		q.write(" ")
	}
	q.write("<")
	lo := len(q.args)
	q.list()
	q.write(">")
	return span{lo, len(q.args)}
}

// list reads arguments to the end of a list or pack.
func (q *Quick) list() {
	first := true
	for !q.take('E') && !q.failed {
		at := len(q.b)
		if !first {
			q.write(", ")
		}
		arg := q.templateArgument()
		if arg.form&empty != 0 {
			q.b = q.b[:min(at, len(q.b))]
		} else {
			first = false
		}
		q.args = append(q.args, arg)
	}
}

func (q *Quick) templateArgument() (arg piece) {
	if q.enter(); q.failed {
		return arg
	}
	defer q.leave()
	start := len(q.b)
	switch q.peek() {
	case 'I', 'J':
		q.at++
		lo := len(q.args)
		q.list()
		arg.elems.lo = len(q.elems)
		q.elems = append(q.elems, q.args[lo:]...)
		q.args = q.args[:lo]
		arg.elems.hi = len(q.elems)
		arg.form = pack
		if len(q.b) == start {
			arg.form |= empty
		}
	case 'L':
		q.literal()
	case 'X':
		q.at++
		switch {
		case strings.HasPrefix(q.s[q.at:], "adL_Z"):
			q.at += 2
			q.write("&")
			q.literal()
		case q.peek() == 'T':
			q.parameter()
		default:
			q.fail()
		}
		q.need('E')
	default:
		return q.typ()
	}
	arg.lo, arg.hi = int32(start), int32(len(q.b))
	return arg
}

// literal reads a number, a truth value, or the name of a function or variable.
func (q *Quick) literal() {
	q.at++
	if q.take('_') {
		q.need('Z')
		q.encoding()
		q.need('E')
		return
	}
	c := q.peek()
	suffix, plain := "", false
	switch c {
	case 'i', 'j', 'l', 'm', 'x', 'y':
		suffix, plain = [...]string{'j': "u", 'l': "l", 'm': "ul", 'x': "ll", 'y': "ull"}[c], true
		q.at++
	case 'b':
		if v := q.ahead(1); (v == '0' || v == '1') && q.ahead(2) == 'E' {
			q.write([2]string{"false", "true"}[v-'0'])
			q.at += 3
			return
		}
		q.fail()
		return
	case 'a', 'c', 'h', 's', 't', 'w', 'N', 'S', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		q.write("(")
		if t := q.typ(); t.form&(parted|several) != 0 {
			q.fail()
		}
		q.write(")")
	default:
		q.fail()
		return
	}
	if q.take('n') {
		q.write("-")
	}
	from := q.at
	for isDigit(q.peek()) {
		q.at++
	}
	if from == q.at {
		q.fail()
	}
	q.write(q.s[from:q.at])
	if plain {
		q.write(suffix)
	}
	q.need('E')
}
