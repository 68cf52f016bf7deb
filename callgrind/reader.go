package callgrind

import (
	"bytes"
	"fmt"
	"math"

	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/wording"
)

// A recordReader turns the bytes of a profile into records. It is an [io.WriteCloser]; one
// goroutine at a time may use it.
type recordReader struct {
	handle   func(*record) error
	diagnose func(string)
	err      error

	// foreign gets the lines outside of profiles, unchanged. If foreign is nil, such lines are
	// left out and reported.
	foreign func(line []byte) error

	cut        lines.Cutter
	raw        []byte // the current line with its line end, up to maxLine bytes
	passed     bool   // the current line was passed to foreign
	number     int    // number of the current line, from 1
	complaints map[string]int
	reported   map[string]int // by kind: the line whose defect was reported last
	names      *names
	share      allotment // the reader's part of the memory budget
	ev         events
	objects    table
	files      table
	fns        table

	// The state of the current part.
	rec                  record
	body                 bool // a line of numbers was read: the header has ended
	summed               bool // totals: was read
	numbered             bool // part: was read
	placed               bool // positions: was read
	named                bool // events: was read
	documents            int
	truncated            bool  // the profile ends in the middle
	positions            int   // numbers of a position
	addrIndex, lineIndex int   // index of the address and of the line; -1 if missing
	columns              []int // by column of costs: index of its event; -1 if left out
	last                 codePosition
	costs                []int64
	next                 expectation
	callee               codePlace // values of the last cob=, cfi=, cfn=
	calledOb             bool      // cob= was read since the last call; the next two: cfi=, cfn=
	calledFile           bool
	calledFn             bool
	jumpFile             nameID // values of jfi= and jfn=, for the next jump
	jumpFn               nameID
}

// expectation is the kind of data expected in the next line of numbers.
type expectation uint8

const (
	aCost expectation = iota
	aCall             // the place of a call and its cost
	aJump             // the place of a jump
)

// newReader returns a recordReader that passes records to handle, and stops at the first error
// of handle. It reports defects of the profile to diagnose, which may be nil. If memory is nil,
// report.DefaultMaxMemory bounds its memory.
func newReader(handle func(*record) error, diagnose func(string), memory report.Ledger) *recordReader {
	r := &recordReader{cut: lines.Cutter{Max: maxLine}, handle: handle, diagnose: diagnose, share: allotment{Share: report.NewShare(memory)}, complaints: make(map[string]int), reported: make(map[string]int), positions: 1, addrIndex: -1}
	r.names = newNames(&r.share)
	return r
}

// Text returns the text of a name, or "" if n has none.
func (r *recordReader) Text(n nameID) string {
	if int(n) < len(r.names.text) {
		return r.names.text[n]
	}
	return ""
}

// Events returns the counted events read so far, in the order of a record's costs. Later parts
// append events. Callers must not modify the slice.
func (r *recordReader) Events() []eventType { return r.ev.counted }

// Derived returns the calculated events.
func (r *recordReader) Derived() []eventType { return r.ev.derived() }

// newPart begins a part: relative positions restart. Without positions: and events: lines, a
// part has the layout of the preceding part.
func (r *recordReader) newPart() {
	r.body, r.summed, r.numbered, r.placed, r.named = false, false, false, false, false
	r.last = codePosition{}
	r.next = aCost
	r.rec.codePlace = codePlace{}
	r.callee = codePlace{}
	r.calledOb, r.calledFile, r.calledFn = false, false, false
	r.jumpFile, r.jumpFn = 0, 0
}

// newDocument begins a profile, and empties the tables of names.
func (r *recordReader) newDocument() error {
	r.newPart()
	r.positions, r.addrIndex, r.lineIndex = 1, -1, 0
	r.columns = nil
	r.objects.reset()
	r.files.reset()
	r.fns.reset()
	r.documents++
	return r.give(documentRecord)
}

func (r *recordReader) give(k recordKind) error {
	r.rec.Kind = k
	r.rec.Line = r.number
	return r.handle(&r.rec)
}

// Write reads the lines that end in p. It returns the first error of handle.
func (r *recordReader) Write(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	rest := p
	for len(rest) > 0 && r.err == nil {
		// shortcut for the first case below: most lines have fewer than ten bytes
		if n := bytes.IndexByte(rest, '\n') + 1; n > 0 && n <= maxLine && r.cut.IsEmpty() {
			r.read(rest[:n])
			rest = rest[n:]
			continue
		}
		var line []byte
		var kind lines.Kind
		switch line, kind, rest = r.cut.Line(rest); {
		case kind == lines.Whole:
			r.read(line)
		case kind == lines.Head:
			r.read(line)
			if !r.passed {
				r.complain("is too long", "is longer than %d bytes; the excess is left out", maxLine)
			}
		case kind == lines.Rest && r.passed:
			r.err = r.foreign(line)
		}
	}
	return len(p) - len(rest), r.err
}

// Close reads a last line without a line end, and reports the number of suppressed diagnostics.
// It returns the first error of handle.
func (r *recordReader) Close() error {
	if line, _ := r.cut.Finish(); len(line) > 0 && r.err == nil {
		r.read(line)
	}
	r.raw = nil
	switch r.next {
	case aCall:
		r.complain("cut", "is the last line, but the line with the cost of its call is missing")
	case aJump:
		r.complain("cut", "is the last line, but the line with the position of its jump is missing")
	}
	for _, kind := range []string{"cut", "is too long", "before", "none", "passed", "undefined", "clash", "number", "fraction", "large", "extra", "names", "call", "sums", "model"} {
		if n := r.complaints[kind] - maxComplaints(kind); n > 0 && r.diagnose != nil {
			r.diagnose(fmt.Sprintf("%s the same defect as line %d", wording.Count(int64(n), "more line has", "more lines have"), r.reported[kind]))
		}
		delete(r.complaints, kind)
	}
	return r.err
}

// complain reports a defect of the current line, unless the limit for its kind is reached.
func (r *recordReader) complain(kind, format string, args ...any) {
	r.complainOf(r.number, kind, format, args...)
}

// complainOf reports a defect of the given line, or of the whole profile if line is 0: see
// complain.
func (r *recordReader) complainOf(line int, kind, format string, args ...any) {
	r.complaints[kind]++
	r.truncated = r.truncated || kind == "cut"
	if r.diagnose != nil && r.complaints[kind] <= maxComplaints(kind) {
		subject := "the profile "
		if line > 0 {
			subject = fmt.Sprintf("line %d ", line)
			r.reported[kind] = line
		}
		r.diagnose(subject + fmt.Sprintf(format, args...))
	}
}

// maxComplaints bounds the defects of a kind that are reported one by one. It is 1 for kinds that
// usually repeat, such as a line before the profile or a sum out of range, and for lines that are
// printed anyway.
func maxComplaints(kind string) int {
	switch kind {
	case "before", "passed", "version", "events", "clash", "limit":
		return 1
	}
	return maxDiagnostics
}

func (r *recordReader) read(line []byte) {
	r.raw, r.passed = line, false
	if err := r.readLine(line); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *recordReader) readLine(b []byte) error {
	if n := len(b); n > 0 && b[n-1] == '\n' {
		b = b[:n-1]
	}
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
		// another file was appended to the first
		if r.body && bytes.HasPrefix(b, []byte("# callgrind format")) {
			return r.newDocument()
		}
		return nil
	case c == '=':
		if bytes.HasPrefix(b, []byte("==== NEW PROFILING FILE")) { // Xdebug's mark of a new profile
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

// byteOrderMark may begin a file written on Windows.
const byteOrderMark = "\xef\xbb\xbf"

// maxKey bounds the bytes of a key before a '=' or a ':'.
const maxKey = 32

// bad passes on the current line, which is not part of a profile, or reports it.
func (r *recordReader) bad(b []byte) {
	if r.foreign == nil {
		kind := "none"
		if len(r.Events()) == 0 { // if the input is not a profile, all its lines are bad
			kind = "before"
		}
		r.complain(kind, "is not a line of a profile and is left out: %q", b[:min(len(b), 60)])
		return
	}
	r.pass()
}

// pass passes the current line to foreign once, if foreign is set. Costs that can be read from the
// line are still counted.
func (r *recordReader) pass() {
	if r.foreign == nil || r.passed {
		return
	}
	r.passed = true
	if r.complaints["passed"] < maxComplaints("passed") {
		r.complain("passed", "is not a line of a profile and is printed as a line of a log: %q", bytes.TrimSpace(r.raw[:min(len(r.raw), 60)]))
	} else {
		r.complaints["passed"]++
	}
	if err := r.foreign(r.raw); r.err == nil {
		r.err = err
	}
}

// spec reads a line that names a place of costs, a callee, or the target of a jump.
func (r *recordReader) spec(line, key, value []byte) error {
	if r.documents == 0 {
		if err := r.newDocument(); err != nil {
			return err
		}
	}
	switch string(key) {
	case "fn":
		r.rec.Function = r.name(&r.fns, key, value)
		r.rec.Source = r.rec.File
		r.begin()
	case "fl":
		r.rec.File = r.name(&r.files, key, value)
		r.rec.Source = r.rec.File
		r.begin()
	case "fi", "fe":
		r.rec.Source = r.name(&r.files, key, value)
		r.begin()
	case "ob":
		r.rec.Object = r.name(&r.objects, key, value)
		r.begin()
	case "cfn":
		r.callee.Function = r.name(&r.fns, key, value)
		r.calledFn = true
	case "cfi", "cfl":
		r.callee.File = r.name(&r.files, key, value)
		r.calledFile = true
	case "cob":
		r.callee.Object = r.name(&r.objects, key, value)
		r.calledOb = true
	case "calls", "rcalls":
		return r.call(value)
	case "jump":
		return r.jump(value, false)
	case "jcnd":
		return r.jump(value, true)
	case "jfi", "jfl":
		r.jumpFile = r.name(&r.files, key, value)
	case "jfn":
		r.jumpFn = r.name(&r.fns, key, value)
	case "frfn", "rec", "bb", "ln": // keys of old versions of the format
	default:
		r.bad(line)
	}
	return nil
}

// begin is called for a line that names a place, or begins a call or a jump. If the reader expected
// the cost of a call or the position of a jump, begin reports that this line is missing.
func (r *recordReader) begin() {
	switch r.next {
	case aCall:
		r.complain("call", "is not the expected line with the position and the cost of a call")
	case aJump:
		r.complain("call", "is not the expected line with the position of a jump; the jump is left out")
	}
	r.next = aCost
}

// name returns the ID of the name on a line with this key: NAME, (NUMBER) NAME, or the (NUMBER)
// of an earlier name. NUMBER is decimal or hexadecimal.
func (r *recordReader) name(t *table, key, b []byte) nameID {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	if len(b) < 3 || b[0] != '(' || b[1]-'0' > 9 {
		return r.text(b)
	}
	id, used := digits(b[1:])
	i := 1 + used
	if used == 0 || id == math.MaxUint64 || i == len(b) || b[i] != ')' {
		return r.text(b)
	}
	rest := bytes.TrimLeft(b[i+1:], " \t")
	if len(rest) == 0 {
		name := t.get(id).name()
		if name == 0 {
			r.complain("undefined", "uses %s before the profile names this number", b[:i+1])
			name = r.text(b[:i+1])
			t.set(id, definition(name))
		}
		return name
	}
	name := r.text(rest)
	now := definedBy(key, name)
	if before := t.get(id); before.clashes(now) {
		r.complain("clash", "gives %s the name %q, but a line of another kind gave the same number the name %q; the later name is used",
			b[:i+1], r.Text(name), r.Text(before.name()))
	}
	if !t.set(id, now) {
		r.complain("names", "gives a name to a number, but the table of numbers is full; later uses of the number have no name")
	}
	return name
}

func (r *recordReader) text(b []byte) nameID {
	if len(b) > maxName {
		r.complain("names", "has a name of %d bytes; only %d are kept", len(b), maxName)
		b = b[:maxName]
	}
	full := r.names.full
	n := r.names.intern(b)
	if r.names.full && !full {
		r.complain("names", "exceeds the memory for names; new names are replaced by %s", unknown)
	}
	return n
}
