package valgrind

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// NewReport returns a writer that prints a report to w as JSON Lines, with the schema
// report.schema.json. Each record becomes an object with all its content in order. The
// symbolizer of o resolves the frames. A record is printed when it is whole. Close prints the
// rest, and does not close w. All errors come from w. The writer is for one goroutine.
func NewReport(w io.Writer, o Options) io.WriteCloser {
	r := &reporter{w: w, o: &o, t: newTracker(&o)}
	r.answers = r.t.answers
	r.Reader = NewReader(r.printRecord)
	return r
}

// A reporter converts records to JSON objects.
type reporter struct {
	*Reader
	w       io.Writer
	o       *Options
	t       *tracker
	answers *answerer

	out   jsonout.Buffer
	sites []site
	known []*epoch // epochs already printed as objects
	named []string // names of items printed as members of the current object
}

// Write prints the records that p completes.
func (r *reporter) Write(p []byte) (int, error) {
	n, err := r.Reader.Write(p)
	return n, cmp.Or(err, r.send())
}

// Close prints the record that the end of the report cuts off.
func (r *reporter) Close() error {
	err := r.Reader.Close()
	r.t.finish()
	return cmp.Or(err, r.send())
}

func (r *reporter) send() error {
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.w.Write(r.out)
	r.out = r.out[:0]
	return err
}

// sendSize bounds the bytes of objects collected during one Write.
const sendSize = 256 << 10

func (r *reporter) printRecord(rec *Record) error {
	r.answers.time = time.Time{}
	p := r.t.cur
	if rec.Name == "/"+document {
		r.printSummary(p)
	}
	switch r.t.changeProcess(rec) {
	case begins, resumes:
		p = r.t.cur
		for _, e := range r.known {
			e.shown = false
		}
		r.known = r.known[:0]
	case ends:
		r.t.reportUnplaced(p)
	default:
		if !p.learnHeader(rec) {
			r.t.learn(rec)
		}
		r.t.checkVersion(rec)
		p.learnSummary(rec)
		r.printObjects(rec)
	}
	r.beginObject(p, rec.Name)
	if rec.Text != nil {
		r.out.Text(rec.Text)
	}
	r.printMembers(rec)
	if rec.Continued {
		r.out.Bool("continued", true)
	}
	if rec.Cut {
		r.out.Bool("cut", true)
	}
	r.out.EndLine()
	if len(r.out) >= sendSize {
		return r.send()
	}
	return nil
}

func (r *reporter) beginObject(p *process, record string) {
	r.out.Line()
	r.out.Members(r.o.Members)
	r.out.Int("process", int64(p.number))
	if pid, ok := parseNumber([]byte(p.pid)); ok {
		r.out.Uint("pid", pid)
	}
	r.out.String("record", record)
}

// printObjects prints an object for each new file of a record. It starts the searches for all
// debug files of the record at once.
func (r *reporter) printObjects(rec *Record) {
	for i := range rec.Frames {
		e := r.t.epochOf(&rec.Frames[i])
		if e == nil || e.shown {
			continue
		}
		e.shown = true
		r.known = append(r.known, e)
		f := e.of.file
		r.answers.Prefetch(f.Object)
		r.beginObject(r.t.cur, "object")
		r.out.String("object", e.of.name)
		r.out.String("path", f.Path)
		r.out.BuildID(f.ID)
		r.out.Hex("bias", e.bias)
		r.out.String("by", e.by)
		r.out.EndLine()
	}
}

// printMembers prints the items of a record: those that isMember selects as members of the record's
// object, and all others in the array items.
func (r *reporter) printMembers(rec *Record) {
	if what, ok := whatOf(rec); ok && rec.Name == "error" {
		r.out.Bytes("what", what)
	}
	r.named = r.named[:0]
	rest := 0
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Depth > 0 || !it.Leaf || !isMember(it.Name) || slices.Contains(r.named, it.Name) {
			rest++
			continue
		}
		r.named = append(r.named, it.Name)
		if n, ok := parseNumber(it.Text); ok && it.Name != "unique" && it.Name != "siaddr" && n < 1<<53 {
			r.out.Uint(it.Name, n)
		} else if code, err := strconv.ParseInt(string(it.Text), 10, 32); it.Name == "sicode" && err == nil {
			// a signal sent by a program has a negative code
			r.out.Int(it.Name, code)
		} else if it.Name == "isrootthread" {
			r.out.Bool(it.Name, true)
		} else {
			r.out.Bytes(it.Name, it.Text)
		}
	}
	if rest == 0 {
		return
	}
	r.printItems(rec, 0, len(rec.Items), true)
}

// whatOf returns the description of an error, from its element what or from the text in xwhat.
func whatOf(rec *Record) (text []byte, ok bool) {
	for i := range rec.Items {
		switch it := &rec.Items[i]; {
		case it.Depth > 0:
		case it.Name == "stack" && !it.Leaf:
			return nil, false
		case it.Name == "what" && it.Leaf:
			return it.Text, true
		case it.Name == "xwhat" && !it.Leaf:
			text = childText(rec, i, "text")
			return text, text != nil
		}
	}
	return nil, false
}

// isMember reports whether the first item of this name is a member of its record's object.
func isMember(name string) bool {
	switch name {
	case "unique", "tid", "threadname", "kind", "signo", "signame", "sicode", "event", "siaddr", "isrootthread":
		return true
	}
	return false
}

func (r *reporter) printItems(rec *Record, i, end int, top bool) {
	r.out.Array("items")
	for i < end {
		it := &rec.Items[i]
		next := i + 1
		for next < end && rec.Items[next].Depth > it.Depth {
			next++
		}
		// printMembers has printed the first item of this name
		if j := slices.Index(r.named, it.Name); top && it.Leaf && j >= 0 {
			r.named = slices.Delete(r.named, j, j+1)
			i = next
			continue
		}
		r.out.Item()
		r.out.String("name", it.Name)
		switch {
		case it.Leaf:
			r.out.Text(it.Text)
			if n, ok := parseNumber(it.Text); ok && n < 1<<53 && it.Text[len(it.Text)-1] <= '9' && (len(it.Text) < 2 || it.Text[1] != 'x') {
				r.out.Uint("number", n)
			}
			r.printVariables(it.Text)
		case it.Name == "stack":
			r.printFrames(rec.Frames[it.First:it.Last])
			if next > i+1 {
				r.printItems(rec, i+1, next, false)
			}
		default:
			r.printItems(rec, i+1, next, false)
		}
		r.out.EndObject()
		i = next
	}
	r.out.EndArray()
}

// printFrames prints the physical frames of a stack.
func (r *reporter) printFrames(frames []Frame) {
	r.sites = r.t.appendSites(r.sites[:0], frames)
	r.out.Array("frames")
	for i := range r.sites {
		r.printFrame(&r.sites[i])
	}
	r.out.EndArray()
}

func (r *reporter) printFrame(s *site) {
	last := &s.frames[len(s.frames)-1]
	r.out.Item()
	r.out.Uint("frame", s.number)
	if last.RawIP != nil {
		r.out.Bytes("raw_ip", last.RawIP)
	} else {
		r.out.Hex("ip", last.IP)
	}
	if last.Obj != nil {
		r.out.Bytes("object", last.Obj)
	}
	var got *answer
	var why error
	if s.at != nil {
		r.out.BuildID(s.at.of.file.ID)
		r.out.Hex("offset", s.rel)
		got = r.answers.answerFor(s)
		why = got.err
	} else {
		_, why = r.t.cur.whyUnplaced(last)
	}
	switch {
	case got != nil && got.improvesOn(s):
		if got.json == nil {
			for i := range got.frames {
				shown := r.o.report().Shown(&got.frames[i])
				got.json.Frame(&shown)
			}
		}
		r.t.missing.Named++
		r.out.String("source", "symbols")
		r.out.Array("frames")
		r.out.Values(got.json)
		r.out.EndArray()
	case last.Fn != nil || last.File != nil:
		r.out.String("source", "report")
		r.out.Array("frames")
		for i := range s.frames {
			r.printReportFrame(&s.frames[i], i < len(s.frames)-1, got.linkageFor(&s.frames[i]))
		}
		r.out.EndArray()
	default:
		r.t.countUnresolved(s, why)
		r.out.Reason(why)
	}
	if last.Fn != nil || last.File != nil || last.Dir != nil || last.Line != 0 {
		r.out.Array("reported")
		for i := range s.frames {
			r.printReported(&s.frames[i])
		}
		r.out.EndArray()
	}
	r.out.EndObject()
}

// linkageFor returns the linkage name of f's function from the answer. It returns "" if the answer
// has no frames or another function.
func (a *answer) linkageFor(f *Frame) string {
	if a == nil || len(a.frames) == 0 {
		return ""
	}
	if outer := &a.frames[len(a.frames)-1]; report.Closed(outer.Func) == report.Closed(string(f.Fn)) {
		return outer.Linkage
	}
	return ""
}

// printReportFrame prints a frame with the function and line that the report has for it, in the
// form of the symbolizer's frames.
func (r *reporter) printReportFrame(f *Frame, inlined bool, linkage string) {
	name := string(f.Fn)
	if isMangled(f.Fn) {
		linkage = name
		if r.o.Symbolizer != nil {
			name = r.o.Symbolizer.Demangle(name)
		}
	}
	r.out.Item()
	r.out.Function(name, linkage)
	if f.File != nil {
		r.out.String("file", r.o.report().ShownFile(f.source()))
		r.out.Uint("line", f.Line)
	}
	r.out.Bool("inlined", inlined)
	r.out.EndObject()
}

func (r *reporter) printReported(f *Frame) {
	r.out.Item()
	for _, m := range []struct {
		name string
		text []byte
	}{{"fn", f.Fn}, {"dir", f.Dir}, {"file", f.File}} {
		if m.text != nil {
			r.out.Bytes(m.name, m.text)
		}
	}
	if f.Line != 0 {
		r.out.Uint("line", f.Line)
	}
	r.out.EndObject()
}

// printVariables prints the variables at the addresses in a text.
func (r *reporter) printVariables(text []byte) {
	first := true
	eachAddress(text, func(_ int, addr uint64) {
		v, ok := r.answers.variable(r.t, addr)
		if !ok {
			return
		}
		if first {
			r.out.Array("variables")
			first = false
		}
		r.out.Item()
		r.out.Hex("address", addr)
		r.out.Variable(&v)
		r.t.missing.Named++
		r.out.EndObject()
	})
	if !first {
		r.out.EndArray()
	}
}

// variable returns the variable at addr in the current process, if any.
func (a *answerer) variable(t *tracker, addr uint64) (v symbolize.Variable, ok bool) {
	e := t.epochCovering(addr)
	if e == nil {
		return v, false
	}
	k := placeKey{e, addr - e.bias}
	if known, ok := a.variables[k]; ok {
		return known, known.Name != ""
	}
	v, err := a.Variable(e.of.file.Object, k.rel)
	if !errors.Is(err, symbolize.ErrPending) && v.Until.IsZero() {
		if len(a.variables) >= maxAnswers {
			clear(a.variables)
		}
		a.variables[k] = v
	}
	return v, v.Name != "" && (err == nil || errors.Is(err, symbolize.ErrPending))
}
