package demangle

import (
	"strconv"
	"strings"
)

// name reads a name. It leaves the template's arguments in q.args.
func (q *Quick) name() (h head) {
	if q.enter(); q.failed {
		return h
	}
	defer q.leave()
	start := len(q.b)
	switch q.peek() {
	case 'N':
		return q.nested()
	case 'Z':
		return q.localName()
	case 'S':
		if q.ahead(1) != 't' {
			p := q.substitution(false)
			if q.peek() == 'I' {
				h.args = q.arguments()
				h.template, h.special = true, p.form&special != 0
			}
			h.last = p.last
			return h
		}
		q.at += 2
		q.write("std::")
	}
	unnamed := q.peek() == 'U'
	p := q.unqualified()
	p.lo = int32(start)
	h.special, h.last = p.form&special != 0, p.last
	if q.peek() == 'I' {
		if h.special || unnamed {
			q.fail() // the type of a conversion may name the template parameters
			return h
		}
		q.candidate(p)
		h.args = q.arguments()
		h.template = true
	}
	return h
}

// nested reads a name with its scopes, between N and E.
func (q *Quick) nested() (h head) {
	q.at++
	h.quals = q.qualifiers()
	start, args, elems := len(q.b), len(q.args), len(q.elems)
	p := piece{lo: int32(start)}
	some := false
	for !q.failed {
		c := q.peek()
		if c == 'E' {
			if q.at++; !some {
				q.fail()
			}
			return h
		}
		if some && c != 'I' && c != 'M' {
			q.write("::")
		}
		last := p.last
		if p.form&special != 0 && (c == 'C' || c == 'D') {
			q.fail() // a constructor, destructor or conversion is not a class
		}
		switch {
		case isDigit(c) || isLower(c) || c == 'U' || c == 'L':
			if p.form&special != 0 {
				q.fail() // a name within a constructor, destructor or conversion
			}
			u := q.unqualified()
			p.last, p.form = u.last, u.form
		case c == 'C' && some && last.hi > 0 && q.ahead(1) >= '1' && q.ahead(1) <= '5':
			q.at += 2
			q.again(last.lo, last.hi)
			p.form = special
		case c == 'C' && some && last.hi > 0 && q.ahead(1) == 'I' && q.ahead(2) >= '1' && q.ahead(2) <= '5':
			q.at += 3
			q.again(last.lo, last.hi)
			q.unshown()
			p.form, h.inherited = special, true
		case c == 'D' && some && last.hi > 0 && strings.IndexByte("01245", q.ahead(1)) >= 0:
			q.at += 2
			q.write("~")
			q.again(last.lo, last.hi)
			p.form = special
		case c == 'S':
			s := q.substitution(true)
			if s.form&(parted|several) != 0 {
				q.fail()
			}
			if p.last, p.form = s.last, s.form&special; s.param > 0 {
				p.last = ident{}
			}
		case c == 'T':
			if t := q.parameter(); t.form&(parted|several) != 0 {
				q.fail()
			}
			p.last, p.form = ident{}, 0
		case c == 'I' && some && !h.template:
			q.args, q.elems = q.args[:args], q.elems[:elems]
			h.args = q.arguments()
		case c == 'M' && some:
			q.at++
			continue
		default:
			q.fail()
		}
		h.template, h.special, h.last = c == 'I', p.form&special != 0, p.last
		some = true
		if c != 'S' && q.peek() != 'E' {
			p.hi = int32(len(q.b))
			q.candidate(p)
		}
	}
	return h
}

// unshown reads the class that defines an inherited constructor, and removes the class's name from
// the output.
func (q *Quick) unshown() {
	at, subs := len(q.b), len(q.subs)
	q.typ()
	for i := range q.subs[subs:] {
		q.aside(&q.subs[subs+i])
	}
	q.b = q.b[:at]
}

// again appends a copy of [lo,hi) of the output to the output.
func (q *Quick) again(lo, hi int32) {
	if len(q.b)+int(hi-lo) > maxQuickShown {
		q.fail()
		return
	}
	q.b = append(q.b, q.b[lo:hi]...)
}

// cvTexts has the text of each set of qualifiers that cv returns.
var cvTexts = [8]string{"", " restrict", " volatile", " volatile restrict", " const", " const restrict", " const volatile", " const volatile restrict"}

func (q *Quick) cv() (set uint8) {
	for i, c := range []byte("rVK") {
		if q.take(c) {
			set |= 1 << i
		}
	}
	return set
}

// qualifiers reads a method's qualifiers. It returns their text, which follows the parameters.
func (q *Quick) qualifiers() string {
	cv := cvTexts[q.cv()]
	switch {
	case q.take('R'):
		return cv + " &"
	case q.take('O'):
		return cv + " &&"
	}
	return cv
}

func (q *Quick) localName() (h head) {
	q.at++
	q.encoding()
	q.need('E')
	if c := q.peek(); c == 's' || c == 'd' {
		q.fail() // a string, a default argument
		return h
	}
	q.write("::")
	if h = q.name(); h.local && h.quals != "" {
		q.fail()
	}
	h.local = true
	q.discriminator()
	return h
}

// discriminator skips the number that distinguishes equal names in a function.
func (q *Quick) discriminator() {
	if q.peek() != '_' {
		if isDigit(q.peek()) {
			q.fail()
		}
		return
	}
	q.at++
	long := q.take('_')
	from := q.at
	if q.peek() == 'n' {
		q.fail()
	}
	q.number()
	if long && q.at-from > 1 {
		q.need('_')
	}
}

// unqualified reads an identifier, an operator, a lambda or an unnamed type.
func (q *Quick) unqualified() (p piece) {
	start := len(q.b)
	switch c := q.peek(); {
	case isDigit(c):
		q.identifier()
	case c == 'L':
		q.at++
		q.identifier()
		q.discriminator()
	case isLower(c):
		p.form = q.operator()
	case c == 'U' && q.ahead(1) == 'l':
		q.closure()
	case c == 'U' && q.ahead(1) == 't':
		q.unnamed()
	default:
		q.fail()
	}
	p.last = ident{int32(start), int32(len(q.b))}
	for q.take('B') {
		q.write("[abi:")
		q.identifier()
		q.write("]")
	}
	p.lo, p.hi = int32(start), int32(len(q.b))
	return p
}

func (q *Quick) identifier() {
	n := 0
	for isDigit(q.peek()) && n < MaxMangled {
		n = 10*n + int(q.peek()-'0')
		q.at++
	}
	if n == 0 || n > len(q.s)-q.at {
		q.fail()
		return
	}
	id := q.s[q.at : q.at+n]
	q.at += n
	if rest, ok := strings.CutPrefix(id, "_GLOBAL_"); ok && len(rest) > 2 && strings.IndexByte("._$", rest[0]) >= 0 && rest[1] == 'N' {
		id = "(anonymous namespace)"
	}
	q.write(id)
}

func (q *Quick) operator() form {
	code := q.s[q.at:min(q.at+2, len(q.s))]
	q.at += len(code)
	if code == "cv" {
		q.write("operator ")
		cast := q.cast
		q.cast = true
		if t := q.typ(); t.form&(parted|several) != 0 || t.uses != 0 {
			q.fail()
		}
		q.cast = cast
		return special
	}
	op, ok := operators[code]
	if !ok || code == "li" {
		q.fail()
		return 0
	}
	q.write("operator")
	if isLower(op.name[0]) {
		q.write(" ")
	}
	q.write(strings.TrimSuffix(op.name, " "))
	return 0
}

func (q *Quick) closure() {
	q.at += 2
	uses, subs := q.uses, len(q.subs)
	q.uses = 0
	q.closures++
	q.write("'lambda'")
	at := len(q.b) - 1
	q.parameters(true)
	q.closures--
	q.need('E')
	if n := q.compact(); n > 0 {
		q.insert(at, strconv.Itoa(n-1), subs)
	}
	if q.uses&^usesAuto != 0 {
		q.fail()
	}
	q.uses = uses
}

func (q *Quick) unnamed() {
	q.at += 2
	start := len(q.b)
	q.write("'unnamed")
	if n := q.compact(); n > 0 {
		q.write(strconv.Itoa(n - 1))
	}
	q.write("'")
	q.candidate(piece{lo: int32(start), hi: int32(len(q.b))})
}
