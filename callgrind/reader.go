package callgrind

import (
	"bytes"
	"fmt"

	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/report"
)

// A Reader turns the bytes of a profile into records.
type Reader struct {
	handle   func(*Record) error
	diagnose func(string)
	err      error

	foreign func(line []byte) error // takes lines that are not of a profile, as they came; nil: they are left out

	cut     lines.Cutter
	raw     []byte // the current line as it came, up to maxLine bytes
	passed  bool   // the current line was given to foreign
	number  int    // of the line
	told    map[string]int
	names   *names
	share   allotment // of the budget of heap
	ev      events
	objects table
	files   table
	fns     table

	// The part.
	rec        Record
	body       bool // lines of numbers have come: its header has ended
	summed     bool // its totals have come
	numbered   bool // its number has come
	placed     bool // what its places are has come
	documents  int
	positions  int   // numbers that say where, in each line
	addr, at   int   // which of them is the address, and the line; -1: none
	columns    []int // of the costs: the event of each; -1: none
	last       Position
	costs      []int64
	next       expectation
	callee     Place // what the last cob=, cfi=, cfn= say
	calledOb   bool  // they have come since the last call
	calledFile bool
	calledFn   bool
	jumpFile   Name // likewise, of the next jump
	jumpFn     Name
}

// expectation says what the next line of numbers is.
type expectation uint8

const (
	aCost expectation = iota
	aCall             // where a call is, and what it cost
	aJump             // where a jump is
)

// NewReader returns a Reader that gives each record to handle, and stops at its
// first error. It tells diagnose, which may be nil, of lines that are none.
func NewReader(handle func(*Record) error, diagnose func(string)) *Reader {
	return newReader(handle, diagnose, nil)
}

// newReader is NewReader within a budget, which may be nil.
func newReader(handle func(*Record) error, diagnose func(string), b *report.Budget) *Reader {
	r := &Reader{cut: lines.Cutter{Max: maxLine}, handle: handle, diagnose: diagnose, share: allotment{Share: report.NewShare(b)}, told: make(map[string]int), positions: 1, addr: -1}
	r.names = newNames(&r.share)
	return r
}

// Text returns the text of a name.
func (r *Reader) Text(n Name) string {
	if int(n) < len(r.names.text) {
		return r.names.text[n]
	}
	return ""
}

// Events returns the events that were counted in the parts so far, in the order
// of a record's costs. Those of later parts come behind them.
func (r *Reader) Events() []Event { return r.ev.counted }

// Derived returns the events that are calculated of the counted ones.
func (r *Reader) Derived() []Event { return r.ev.derived() }

// newPart begins a part: positions begin anew. A part that does not say what its
// lines hold has lines like those before.
func (r *Reader) newPart() {
	r.body, r.summed, r.numbered, r.placed = false, false, false, false
	r.last = Position{}
	r.next = aCost
	r.rec.Place = Place{}
	r.callee = Place{}
	r.calledOb, r.calledFile, r.calledFn = false, false, false
	r.jumpFile, r.jumpFn = 0, 0
}

// newDocument begins a profile: its names are its own.
func (r *Reader) newDocument() error {
	r.newPart()
	r.positions, r.addr, r.at = 1, -1, 0
	r.columns = nil
	r.objects.reset()
	r.files.reset()
	r.fns.reset()
	r.documents++
	return r.give(Document)
}

// give hands the record over.
func (r *Reader) give(k Kind) error {
	r.rec.Kind = k
	r.rec.Line = r.number
	return r.handle(&r.rec)
}

// Write reads the lines that p completes.
func (r *Reader) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	rest := p
	for len(rest) > 0 && r.err == nil {
		var line []byte
		var kind lines.Kind
		switch line, kind, rest = r.cut.Line(rest); {
		case kind == lines.Whole:
			r.read(line)
		case kind == lines.Head:
			r.read(line)
			if !r.passed {
				r.complain("is too long", "is longer than %d bytes; its end is left out", maxLine)
			}
		case kind == lines.Rest && r.passed:
			r.err = r.foreign(line)
		}
	}
	return len(p) - len(rest), r.err
}

// Close reads the last line, if it has no end, and tells how many lines were not
// told of.
func (r *Reader) Close() error {
	if line, _ := r.cut.Finish(); len(line) > 0 && r.err == nil {
		r.read(line)
	}
	r.raw = nil
	if r.next == aCall {
		r.complain("cut", "is the last one; the call before it has no cost")
	}
	for _, kind := range []string{"cut", "is too long", "none", "passed", "undefined", "number", "fraction", "extra", "names", "call", "sums", "model"} {
		if n := r.told[kind] - tellable(kind); n > 0 && r.diagnose != nil {
			r.diagnose(fmt.Sprintf("%d more lines are like the last of these", n))
		}
		delete(r.told, kind)
	}
	return r.err
}

// complain tells of the line at work, unless it was told of many of that kind.
func (r *Reader) complain(kind, format string, args ...any) {
	r.complainOf(r.number, kind, format, args...)
}

func (r *Reader) complainOf(line int, kind, format string, args ...any) {
	r.told[kind]++
	if r.diagnose != nil && r.told[kind] <= tellable(kind) {
		r.diagnose(fmt.Sprintf("line %d ", line) + fmt.Sprintf(format, args...))
	}
}

// tellable returns how many complaints of a kind are told one by one. Lines that are printed are seen
// anyway.
func tellable(kind string) int {
	if kind == "passed" {
		return 1
	}
	return maxTold
}

// read reads a line, which may have its end.
func (r *Reader) read(line []byte) {
	r.raw, r.passed = line, false
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
	}
	if err := r.readLine(line); r.err == nil {
		r.err = err
	}
}

func (r *Reader) readLine(b []byte) error {
	r.number++
	if r.number == 1 {
		b = bytes.TrimPrefix(b, []byte(byteOrderMark))
	}
	if len(b) > 0 && b[len(b)-1] == '\r' {
		b = b[:len(b)-1]
	}
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	if len(b) == 0 {
		return nil
	}
	switch c := b[0]; {
	case c-'0' < 10 || c == '+' || c == '-' || c == '*' || c == '?':
		return r.numbers(b)
	case c == '#':
		if r.body && bytes.HasPrefix(b, []byte("# callgrind format")) { // another file is behind the first
			return r.newDocument()
		}
		return nil
	case c == '=':
		if bytes.HasPrefix(b, []byte("==== NEW PROFILING FILE")) { // of Xdebug
			return r.newDocument()
		}
	}
	for i := 0; i < len(b) && i <= maxKey; i++ {
		switch b[i] {
		case '=':
			return r.spec(b, b[:i], b[i+1:])
		case ':':
			return r.header(b, b[:i], b[i+1:])
		}
	}
	r.bad(b)
	return nil
}

// byteOrderMark may begin a file of Windows.
const byteOrderMark = "\xef\xbb\xbf"

// maxKey is the longest word before a '=' or a ':', in bytes.
const maxKey = 32

// bad passes on the current line, which is not of a profile, or complains of it.
func (r *Reader) bad(b []byte) {
	if r.foreign == nil {
		r.complain("none", "is none of a profile, and left out: %q", b[:min(len(b), 60)])
		return
	}
	r.pass()
}

// pass passes on the current line, once, if foreign takes such lines. What is left of the line may
// count nevertheless.
func (r *Reader) pass() {
	if r.foreign == nil || r.passed {
		return
	}
	r.passed = true
	if r.told["passed"] < tellable("passed") {
		r.complain("passed", "is not a line of a profile, and printed as it is: %q", bytes.TrimSpace(r.raw[:min(len(r.raw), 60)]))
	} else {
		r.told["passed"]++
	}
	if err := r.foreign(r.raw); r.err == nil {
		r.err = err
	}
}

// spec reads a line that says where the next costs are, or what comes next.
func (r *Reader) spec(line, key, value []byte) error {
	if r.documents == 0 {
		if err := r.newDocument(); err != nil {
			return err
		}
	}
	switch string(key) {
	case "fn":
		r.rec.Function = r.name(&r.fns, value)
		r.rec.Source = r.rec.File
		r.begin()
	case "fl":
		r.rec.File = r.name(&r.files, value)
		r.rec.Source = r.rec.File
		r.begin()
	case "fi", "fe":
		r.rec.Source = r.name(&r.files, value)
		r.begin()
	case "ob":
		r.rec.Object = r.name(&r.objects, value)
		r.begin()
	case "cfn":
		r.callee.Function = r.name(&r.fns, value)
		r.calledFn = true
	case "cfi", "cfl":
		r.callee.File = r.name(&r.files, value)
		r.calledFile = true
	case "cob":
		r.callee.Object = r.name(&r.objects, value)
		r.calledOb = true
	case "calls", "rcalls":
		return r.call(value)
	case "jump":
		return r.jump(value, false)
	case "jcnd":
		return r.jump(value, true)
	case "jfi", "jfl":
		r.jumpFile = r.name(&r.files, value)
	case "jfn":
		r.jumpFn = r.name(&r.fns, value)
	case "frfn", "rec", "bb", "ln": // of old versions
	default:
		r.bad(line)
	}
	return nil
}

// begin is called for lines that say where: what is expected is no longer.
func (r *Reader) begin() {
	if r.next == aCall {
		r.complain("call", "comes where the place and the cost of a call should be")
	}
	r.next = aCost
}

// name returns the name that a position names: NAME, (NUMBER) NAME, or (NUMBER)
// of one that was given before.
func (r *Reader) name(t *table, b []byte) Name {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	if len(b) < 3 || b[0] != '(' || b[1]-'0' > 9 {
		return r.text(b)
	}
	id, i := uint64(0), 1
	for ; i < len(b) && b[i]-'0' < 10; i++ {
		if id > 1<<60 {
			return r.text(b)
		}
		id = id*10 + uint64(b[i]-'0')
	}
	if i == len(b) || b[i] != ')' {
		return r.text(b)
	}
	rest := bytes.TrimLeft(b[i+1:], " \t")
	if len(rest) == 0 {
		name := t.get(id)
		if name == 0 {
			r.complain("undefined", "names (%d), which is not given a name before", id)
			name = r.text(b[:i+1])
			t.set(id, name)
		}
		return name
	}
	name := r.text(rest)
	if !t.set(id, name) {
		r.complain("names", "gives another number a name; there are too many")
	}
	return name
}

// text returns the Name of b.
func (r *Reader) text(b []byte) Name {
	if len(b) > maxName {
		r.complain("names", "has a name of %d bytes; %d are kept", len(b), maxName)
		b = b[:maxName]
	}
	full := r.names.full
	n := r.names.of(b)
	if r.names.full && !full {
		r.complain("names", "has a name too many; names that come now are %s", unknown)
	}
	return n
}
