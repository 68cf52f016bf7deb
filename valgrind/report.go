package valgrind

import (
	"encoding/base64"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// reportVersion is the "v" of each object: it changes when a field changes its
// meaning or goes, not when one is added.
const reportVersion = `{"v":1`

// NewReport returns a writer that prints the report written to it to w as JSON
// Lines: an object for each record, with all that is in it in its order, its
// frames resolved by the symbolizer of o. The published form is report.schema.json. What is
// written is printed as far as its records are whole; Close prints the rest.
func NewReport(w io.Writer, o Options) io.WriteCloser {
	r := &reporter{w: w, o: &o, t: newTracker(&o)}
	r.answers = r.t.answers
	r.Reader = NewReader(r.record)
	return r
}

// reporter makes objects of records.
type reporter struct {
	*Reader
	w       io.Writer
	o       *Options
	t       *tracker
	answers *answerer

	out   []byte
	sites []site
	known []*epoch // that have their object
	named []string // the items that are members of the object at work
}

// Write prints the records that p completes.
func (r *reporter) Write(p []byte) (int, error) {
	n, err := r.Reader.Write(p)
	if e := r.send(); err == nil {
		err = e
	}
	return n, err
}

// Close prints what is left. It does not close the writer.
func (r *reporter) Close() error {
	err := r.Reader.Close()
	r.t.end()
	if e := r.send(); err == nil {
		err = e
	}
	return err
}

func (r *reporter) send() error {
	if len(r.out) == 0 {
		return nil
	}
	_, err := r.w.Write(r.out)
	r.out = r.out[:0]
	return err
}

// sendSize is how many bytes of objects are collected while more comes.
const sendSize = 256 << 10

// record prints a record.
func (r *reporter) record(rec *Record) error {
	r.answers.time = time.Time{}
	p := r.t.cur
	switch r.t.turn(rec) {
	case begins, resumes:
		p = r.t.cur
		for _, e := range r.known {
			e.shown = false
		}
		r.known = r.known[:0]
	case ends:
		r.t.tell(p)
	default:
		if !p.header(rec) {
			r.t.learn(rec)
		}
		r.introduce(rec)
	}
	r.begin(p)
	b := escape.AppendMember(r.out, "record", rec.Name)
	if rec.Text != nil {
		b = appendContent(b, rec.Text)
	}
	r.out = b
	r.members(rec)
	if rec.Continued {
		r.out = append(r.out, `,"continued":true`...)
	}
	if rec.Cut {
		r.out = append(r.out, `,"cut":true`...)
	}
	r.out = append(r.out, "}\n"...)
	if len(r.out) >= sendSize {
		return r.send()
	}
	return nil
}

// begin begins an object of a process.
func (r *reporter) begin(p *process) {
	b := append(r.out, reportVersion...)
	b = strconv.AppendInt(append(b, `,"process":`...), int64(p.number), 10)
	if pid, ok := number([]byte(p.pid)); ok {
		b = strconv.AppendUint(append(b, `,"pid":`...), pid, 10)
	}
	r.out = b
}

// introduce prints an object for each file in a record whose place was found.
func (r *reporter) introduce(rec *Record) {
	for i := range rec.Frames {
		e := r.t.place(&rec.Frames[i])
		if e == nil || e.shown {
			continue
		}
		e.shown = true
		r.known = append(r.known, e)
		f := e.of.file
		r.begin(r.t.cur)
		b := escape.AppendMember(r.out, "record", "object")
		b = escape.AppendMember(b, "object", e.of.name)
		b = escape.AppendMember(b, "path", f.Path)
		if !f.ID.IsZero() {
			b = escape.AppendMember(b, "build_id", f.ID.String())
		}
		b = escape.AppendHex(b, "bias", e.bias)
		b = escape.AppendMember(b, "by", e.by)
		r.out = append(b, "}\n"...)
	}
}

// members prints what is in a record: what tells errors apart as members, all
// of it, but for these, as items.
func (r *reporter) members(rec *Record) {
	r.named = r.named[:0]
	rest := 0
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Depth > 0 || !it.Leaf || !isMember(it.Name) || slices.Contains(r.named, it.Name) {
			rest++
			continue
		}
		r.named = append(r.named, it.Name)
		if n, ok := number(it.Text); ok && it.Name != "unique" && it.Name != "siaddr" && n < 1<<53 {
			r.out = strconv.AppendUint(escape.AppendKey(r.out, it.Name), n, 10)
		} else if code, err := strconv.ParseInt(string(it.Text), 10, 32); it.Name == "sicode" && err == nil { // of signals that programs send
			r.out = strconv.AppendInt(escape.AppendKey(r.out, it.Name), code, 10)
		} else if it.Name == "isrootthread" {
			r.out = append(escape.AppendKey(r.out, it.Name), "true"...)
		} else {
			r.out = escape.AppendMember(r.out, it.Name, it.Text)
		}
	}
	if rest == 0 {
		return
	}
	r.out = append(r.out, `,"items":`...)
	r.items(rec, 0, len(rec.Items), true)
}

// isMember reports whether an item of this name is a member of its record's
// object: the first is.
func isMember(name string) bool {
	switch name {
	case "unique", "tid", "threadname", "kind", "signo", "signame", "sicode", "event", "siaddr", "isrootthread":
		return true
	}
	return false
}

// items prints the items from i to end as an array.
func (r *reporter) items(rec *Record, i, end int, top bool) {
	r.out = append(r.out, '[')
	first := true
	for i < end {
		it := &rec.Items[i]
		next := i + 1
		for next < end && rec.Items[next].Depth > it.Depth {
			next++
		}
		if j := slices.Index(r.named, it.Name); top && it.Leaf && j >= 0 { // only the first is one
			r.named = slices.Delete(r.named, j, j+1)
			i = next
			continue
		}
		if !first {
			r.out = append(r.out, ',')
		}
		first = false
		r.out = escape.AppendMember(append(r.out, '{'), "name", it.Name)
		switch {
		case it.Leaf:
			r.out = appendContent(r.out, it.Text)
			if n, ok := number(it.Text); ok && n < 1<<53 && it.Text[len(it.Text)-1] <= '9' && (len(it.Text) < 2 || it.Text[1] != 'x') {
				r.out = strconv.AppendUint(append(r.out, `,"number":`...), n, 10)
			}
			r.variables(it.Text)
		case it.Name == "stack":
			r.out = append(r.out, `,"frames":`...)
			r.frames(rec.Frames[it.First:it.Last])
			if next > i+1 {
				r.out = append(r.out, `,"items":`...)
				r.items(rec, i+1, next, false)
			}
		default:
			r.out = append(r.out, `,"items":`...)
			r.items(rec, i+1, next, false)
		}
		r.out = append(r.out, '}')
		i = next
	}
	r.out = append(r.out, ']')
}

// frames prints the physical frames of a stack.
func (r *reporter) frames(frames []Frame) {
	r.sites = r.t.sites(r.sites[:0], frames)
	r.out = append(r.out, '[')
	for i := range r.sites {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		r.frame(&r.sites[i])
	}
	r.out = append(r.out, ']')
}

func (r *reporter) frame(s *site) {
	last := &s.frames[len(s.frames)-1]
	b := strconv.AppendUint(append(r.out, `{"frame":`...), s.number, 10)
	if last.RawIP != nil {
		b = escape.AppendMember(b, "raw_ip", last.RawIP)
	} else {
		b = escape.AppendHex(b, "ip", last.IP)
	}
	if last.Obj != nil {
		b = escape.AppendMember(b, "object", last.Obj)
	}
	var got *answer
	var why error
	if s.at != nil {
		f := s.at.of.file
		if !f.ID.IsZero() {
			b = escape.AppendMember(b, "build_id", f.ID.String())
		}
		b = escape.AppendHex(b, "offset", s.rel)
		got = r.answers.ask(s)
		why = got.err
	} else {
		_, why = r.t.cur.placeless(last)
	}
	switch {
	case got != nil && got.better(s):
		if got.json == nil {
			got.json = r.symbolFrames(nil, got.frames)
		}
		b = append(b, got.json...)
	case last.Fn != nil || last.File != nil:
		b = append(escape.AppendMember(b, "source", "report"), `,"frames":[`...)
		for i := range s.frames {
			if i > 0 {
				b = append(b, ',')
			}
			b = r.reportFrame(b, &s.frames[i], i < len(s.frames)-1, got.linkage(&s.frames[i]))
		}
		b = append(b, ']')
	default:
		r.t.miss(s, why)
		reason := "no symbol covers the address"
		if why != nil {
			reason = why.Error()
		}
		b = escape.AppendMember(b, "reason", reason)
	}
	if last.Fn != nil || last.File != nil || last.Dir != nil || last.Line != 0 {
		b = append(b, `,"reported":[`...)
		for i := range s.frames {
			if i > 0 {
				b = append(b, ',')
			}
			b = reported(b, &s.frames[i])
		}
		b = append(b, ']')
	}
	r.out = append(b, '}')
}

// linkage returns the linkage name of a function that the report names, where
// the symbolizer knows the function by that name.
func (a *answer) linkage(f *Frame) string {
	if a == nil || len(a.frames) == 0 {
		return ""
	}
	if outer := &a.frames[len(a.frames)-1]; report.Closed(outer.Func) == report.Closed(string(f.Fn)) {
		return outer.Linkage
	}
	return ""
}

// symbolFrames appends the members of an answer.
func (r *reporter) symbolFrames(b []byte, frames []symbolize.Frame) []byte {
	b = append(b, `,"source":"symbols","frames":[`...)
	for i := range frames {
		if i > 0 {
			b = append(b, ',')
		}
		b = r.symbolFrame(b, &frames[i])
	}
	return append(b, ']')
}

// symbolFrame appends a frame of an answer.
func (r *reporter) symbolFrame(b []byte, f *symbolize.Frame) []byte {
	name := report.FuncName(r.o.Symbolizer, f)
	b = escape.AppendMember(append(b, '{'), "function", name)
	if f.Linkage != "" && f.Linkage != name {
		b = escape.AppendMember(b, "linkage", f.Linkage)
	}
	if f.File != "" {
		b = escape.AppendMember(b, "file", r.o.ShownFile(f.File))
		b = strconv.AppendUint(append(b, `,"line":`...), uint64(f.Line), 10)
		b = strconv.AppendUint(append(b, `,"column":`...), uint64(f.Column), 10)
	} else {
		b = escape.AppendHex(b, "offset", f.Offset)
	}
	return append(strconv.AppendBool(append(b, `,"inlined":`...), f.Inlined), '}')
}

// reportFrame appends a frame as the report has it, in the form of an answer's.
func (r *reporter) reportFrame(b []byte, f *Frame, inlined bool, linkage string) []byte {
	name := string(f.Fn)
	if isMangled(f.Fn) {
		linkage = name
		if r.o.Symbolizer != nil {
			name = r.o.Symbolizer.Demangle(name)
		}
	}
	b = escape.AppendMember(append(b, '{'), "function", name)
	if linkage != "" && linkage != name {
		b = escape.AppendMember(b, "linkage", linkage)
	}
	if f.File != nil {
		b = escape.AppendMember(b, "file", r.o.ShownFile(f.source()))
		b = strconv.AppendUint(append(b, `,"line":`...), f.Line, 10)
	}
	return append(strconv.AppendBool(append(b, `,"inlined":`...), inlined), '}')
}

// reported appends the fields of a frame in the report.
func reported(b []byte, f *Frame) []byte {
	b = append(b, '{')
	for _, m := range []struct {
		name string
		text []byte
	}{{"fn", f.Fn}, {"dir", f.Dir}, {"file", f.File}} {
		if m.text != nil {
			b = escape.AppendMember(b, m.name, m.text)
		}
	}
	if f.Line != 0 {
		b = strconv.AppendUint(escape.AppendKey(b, "line"), f.Line, 10)
	}
	return append(b, '}')
}

// variables prints the variables whose addresses stand in a text.
func (r *reporter) variables(text []byte) {
	first := true
	addresses(text, func(_ int, addr uint64) {
		v, ok := r.answers.variable(r.t, addr)
		if !ok {
			return
		}
		if first {
			r.out = append(r.out, `,"variables":[`...)
		} else {
			r.out = append(r.out, ',')
		}
		first = false
		b := escape.AppendHex(append(r.out, '{'), "address", addr)
		b = escape.AppendMember(b, "name", v.Name)
		if v.Linkage != v.Name {
			b = escape.AppendMember(b, "linkage", v.Linkage)
		}
		if v.Member != "" {
			b = escape.AppendMember(b, "member", v.Member)
		}
		b = escape.AppendHex(b, "offset", v.Offset)
		r.out = append(b, '}')
	})
	if !first {
		r.out = append(r.out, ']')
	}
}

// variable returns the variable at addr in the process that speaks.
func (a *answerer) variable(t *tracker, addr uint64) (v symbolize.Variable, ok bool) {
	e := t.covering(addr)
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

// appendContent appends the text of an element, and its bytes where they are
// no text.
func appendContent(b, text []byte) []byte {
	b = escape.AppendMember(b, "text", text)
	if !utf8.Valid(text) {
		b = append(b, `,"raw":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, text), '"')
	}
	return b
}
